"""Recording the traffic between clients and a cluster while a test runs, and judging it afterwards."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost.adapters.address import TargetError, format_address, parse_bootstrap
from fencepost.adapters.record.recorder import RecordingOptions, RecordingResult, record_traffic
from fencepost.conformance.analysis.failures import Origin, build_failure
from fencepost.conformance.run.replay import judge_trace
from fencepost.conformance.testing.case import NextSteps, make_violation
from fencepost.conformance.testing.runs import FailedRequirement
from fencepost.conformance.testing.threads import enter_in_thread
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.verdict import TraceVerdict, violations_in


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
        options = RecordingOptions(("127.0.0.1", 0), bootstrap, recording.path)
        with enter_in_thread(lambda: record_meanwhile(options, recording.notices.append)) as (address, _):
            recording.bootstrap = address
            yield recording


@asynccontextmanager
async def record_meanwhile(
    options: RecordingOptions, show: Callable[[str], None]
) -> AsyncIterator[tuple[str, asyncio.Task[RecordingResult]]]:
    """Record until the block ends; gives the address for the clients, and what will have the result. Raises as
    `record_traffic`."""
    stop = asyncio.Event()
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def announce(host: str, port: int) -> None:
        address.set_result(format_address(host, port))

    work = asyncio.create_task(record_traffic(options, announce, show, stop))
    either: tuple[asyncio.Future[Any], ...] = (work, address)
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    try:
        if address.done():
            yield address.result(), work
    finally:
        stop.set()
        await work
