"""Recording the traffic between clients and a cluster while a test runs, and judging it afterwards."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fencepost.adapters.address import TargetError, format_address, parse_bootstrap
from fencepost.adapters.record.recorder import RecordingOptions, record_traffic
from fencepost.conformance.analysis.failures import Origin, build_failure
from fencepost.conformance.run.replay import judge_trace
from fencepost.conformance.testing.case import NextSteps, make_violation
from fencepost.conformance.testing.runs import FailedRequirement
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.verdict import TraceVerdict, violations_in

TIMEOUT_S = 30.0
"""How long the recorder may take to begin or to end."""


@dataclass(slots=True)
class Recording:
    """What is recorded: clients connect to `bootstrap`, the trace is at `path` once the block has ended, and `notices`
    are what the recorder has to say."""

    path: Path
    bootstrap: str = ""
    notices: list[str] = field(default_factory=list)

    def check(self) -> TraceVerdict:
        """Judge the trace. Raises `Violation` for the first response that the model does not allow."""
        __tracebackhide__ = True
        header, events = open_trace(self.path)
        judged = judge_trace(self.path, header, events)
        first = min(violations_in(judged.verdict), key=lambda each: each.sequence, default=None)
        if first is not None:
            origin = Origin(str(self.path), "")
            failure = build_failure(judged.events, first, origin, replayed=False, header=header)
            raise make_violation(FailedRequirement(first.requirement, failure), NextSteps(trace=str(self.path)))
        return judged.verdict


class Recorder:
    """Makes recordings, as `fencepost_recorder` gives it: `with fencepost_recorder(upstream) as recording:`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recordings = 0

    @contextmanager
    def __call__(self, upstream: str) -> Iterator[Recording]:
        """Record until the block ends. `upstream` is the address of the cluster, host:port. Raises `TargetError` if it
        cannot be reached, and `OSError`."""
        bootstrap = parse_bootstrap(upstream)
        if bootstrap is None:
            raise TargetError(f"{upstream!r} is no address: write host:port")
        self._recordings += 1
        recording = Recording(self._folder / f"recording-{self._recordings}.jsonl")
        started: Future[tuple[str, int]] = Future()
        ends: Future[None] = Future()
        errors: list[BaseException] = []
        options = RecordingOptions(("127.0.0.1", 0), bootstrap, recording.path)

        async def live() -> None:
            stop = asyncio.Event()
            asyncio.wrap_future(ends).add_done_callback(lambda _: stop.set())
            try:
                await record_traffic(
                    options, lambda host, port: started.set_result((host, port)), recording.notices.append, stop
                )
            except BaseException as error:
                errors.append(error)
                if not started.done():
                    started.set_exception(error)

        thread = threading.Thread(target=asyncio.run, args=(live(),), name="fencepost recorder", daemon=True)
        thread.start()
        try:
            recording.bootstrap = format_address(*started.result(TIMEOUT_S))
            yield recording
        finally:
            ends.set_result(None)
            thread.join(TIMEOUT_S)
        if errors:
            raise errors[0]
