"""Recorded traces: judged by themselves, or driven against a target once more."""

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

from fencepost.conformance.api.targets import AnyTarget, KafkaTarget, target_factory
from fencepost.conformance.plan import ReplayResult
from fencepost.conformance.run.replay import judge_trace, replay_in_process, replay_trace
from fencepost.conformance.run.runner import profile_or_default
from fencepost.traces.events import Event, Header
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import judge as judge_events
from fencepost.traces.verdict import TraceVerdict


def judge(trace: str | os.PathLike[str] | Iterable[Event], header: Header | None = None) -> TraceVerdict:
    """Judge a recorded trace against the model; no target is needed.

    `trace` is the path of a trace file, or its events in order: these need the `header` that says how they were seen.
    The verdict has the violations, the results of checks, and what could not be decided and why. Raises `TraceError`
    for a file that is no trace, `OSError` for one that cannot be read, and `TypeError` for events without a header.
    """
    if isinstance(trace, str | os.PathLike):
        path = Path(trace)
        return judge_trace(path, *open_trace(path)).verdict
    if header is None:
        raise TypeError("events are judged by the header of their trace: judge(events, header)")
    return judge_events(header, tuple(trace))


def replay(
    trace: str | os.PathLike[str], target: AnyTarget, *, profile: str | os.PathLike[str] | None = None
) -> ReplayResult:
    """Drive the schedule of a trace against a target, judge the responses and compare: is a recorded failure fixed?

    For `target` see `AnyTarget`; "bundled" has the settings of the recorded target. The result has an `outcome` (fixed,
    still fails, different or inconclusive) and the failure, if there is one. Not for async code, where
    `await asyncio.to_thread(replay, ...)` serves. Raises `TraceError` for a file that cannot be replayed, `OSError`,
    `TargetError` and `ProfileError`.
    """
    path = Path(trace)
    if isinstance(target, KafkaTarget):
        at = target.profile_path if target.profile_path is not None else profile
        return asyncio.run(replay_trace(path, target.url, profile_or_default(Path(at) if at is not None else None)))
    if isinstance(target, str):
        return asyncio.run(
            replay_trace(path, target, profile_or_default(Path(profile) if profile is not None else None))
        )
    return asyncio.run(replay_in_process(path, target_factory(target)))
