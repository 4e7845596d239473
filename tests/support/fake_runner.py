"""A runner behind the command line that runs nothing."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fencepost.conformance.events import Progress, RunEvent, RunFinished
from fencepost.conformance.plan import Plan, ReplayOutcome, ReplayResult
from fencepost.conformance.results import Report
from fencepost.traces.history.builder import TraceHistory
from tests.support.sample_reports import KEPT


@dataclass
class FakeRunner:
    """A runner that returns `report` and `outcome`, or raises `error`, and collects its calls."""

    report: Report = KEPT
    outcome: ReplayResult = field(default_factory=lambda: ReplayResult(ReplayOutcome.FIXED))
    error: BaseException | None = None
    interrupted: bool = False
    calls: list[object] = field(default_factory=list)

    async def run(self, plan: Plan, *consumers: Callable[[RunEvent], None]) -> Report:
        self._record_call(plan)
        report = self.report
        for consumer in consumers:
            consumer(Progress(1, 2, 1.0))
        if self.interrupted:
            await _interrupt()
            report = replace(report, cut_short=True)
        for consumer in consumers:
            consumer(Progress(2, 2, 2.0))
        for consumer in consumers:
            consumer(RunFinished(report))
        return report

    async def replay(self, trace: Path, target: str, profile: Path | None) -> ReplayResult:
        self._record_call((trace, target, profile))
        return self.outcome

    def judge_files(
        self,
        paths: Sequence[Path],
        progress: Callable[[Progress], None],
        histories: list[TraceHistory] | None = None,
        jobs: int = 1,
    ) -> Report:
        self._record_call(tuple(paths))
        progress(Progress(len(paths), len(paths), 1.0))
        return self.report

    async def serve(
        self,
        host: str,
        port: int,
        storage: Path | None,
        announce: Callable[[str], None],
        slowness: int = 0,
        nodes: int = 1,
        dialect: str = "kafka",
    ) -> None:
        self._record_call((host, port, storage, slowness, nodes, dialect))
        announce(f"{host}:{port}")
        await _interrupt()
        raise asyncio.CancelledError

    def _record_call(self, what: object) -> None:
        self.calls.append(what)
        if self.error is not None:
            raise self.error


async def _interrupt() -> None:
    """Press Ctrl-C, and swallow the cancellation that it becomes."""
    signal.raise_signal(signal.SIGINT)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return
