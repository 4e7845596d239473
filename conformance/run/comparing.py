"""Runs of the same schedules on two targets, one after the other, and the comparison of what they show."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fencepost.conformance.analysis.comparison import PlayedTarget, TargetComparison, compare_played
from fencepost.conformance.events import RunEvent, ScenarioFinished, ScheduleFinished
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import load_profile
from fencepost.conformance.results import EndKind
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.registry import is_bundled
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.runner import make_run, requirements_of
from fencepost.conformance.run.stream import TraceSaver, consume, stream_events, trace_file
from fencepost.traces.events import Event
from fencepost.traces.files.trace_files import open_trace

Consumer = Callable[[RunEvent], None]


async def compare_targets(one: Plan, other: Plan, *consumers: Consumer) -> TargetComparison:
    """Test two targets by the same schedules, and compare what they do. Raises as `runner.run`, and `KeyboardInterrupt`
    if the first run was interrupted: one target alone compares with nothing.

    Random schedules depend on what a target allows: those that are drawn for the first are played on the second, too. A
    target on virtual time comes second, for what is drawn for it may last for days.
    """
    swapped = is_bundled(one.target) and not is_bundled(other.target)
    plans = (other, one) if swapped else (one, other)
    runs = [make_run(plan, load_profile(plan.profile)) for plan in plans]
    first = await record(runs[0], *consumers)
    if first.report.ended is not None and first.report.ended.kind is EndKind.INTERRUPTED:
        raise KeyboardInterrupt("interrupted before both targets were tested")
    runs[1].scope = runs[0].scope
    second = await record(runs[1], *consumers)
    return compare_played(second, first) if swapped else compare_played(first, second)


async def record(run: BundledRun | RemoteRun, *consumers: Consumer) -> PlayedTarget:
    """Test a target, and keep the traces that violate nothing."""
    decisions: dict[str, bool] = {}
    traces: dict[str, tuple[Event, ...]] = {}
    names: list[str] = []

    def keep(event: RunEvent) -> None:
        if isinstance(event, ScenarioFinished):
            decisions.update(event.verdict.decisions)
            if not (event.violated or event.blocked or event.unsupported):
                traces[event.name] = event.events
        elif isinstance(event, ScheduleFinished) and not (event.violated or event.undecided):
            names.append(event.name)

    with tempfile.TemporaryDirectory() as folder:
        run.plan = replace(run.plan, traces=Path(folder))
        stream = stream_events(lambda emit: run.run(requirements_of(run.plan), emit), TraceSaver())
        report = await consume(stream, *consumers, keep)
        for name in names:
            traces[name] = tuple(open_trace(trace_file(Path(folder), name))[1])
    return PlayedTarget(report, decisions, traces)
