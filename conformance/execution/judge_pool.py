"""Judging in processes beside the run, so that members do not miss their heartbeats while a trace is judged.

Who judges what: `play_scenario` judges where it plays unless it is given a judge function; a `ScenarioPool` has its
runs judged by the function it was made with; a pool made without one leaves its runs unjudged, and whoever takes them
judges them (`ConcurrentEngine` does so while the next schedules are played).
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from fencepost.conformance.execution.play import JudgeFunction
from fencepost.conformance.execution.workers import WorkerPool
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

JUDGE_PROCESSES = 2
"""How many processes judge, and generate random schedules."""


class JudgePool:
    """Processes that judge traces. `executor` also takes other work that would hold up the run."""

    def __init__(self, processes: int = JUDGE_PROCESSES) -> None:
        self.workers = WorkerPool(processes)
        self.executor = self.workers.executor

    def start(self) -> None:
        """Start the processes now instead of with the first trace."""
        self.workers.start()

    async def judge(self, header: Header, events: tuple[Event, ...]) -> TraceVerdict:
        """Return the verdict on a trace. A `JudgeFunction`."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, judge, header, events)

    def judge_with(self, decisions: Mapping[str, bool]) -> JudgeFunction:
        """A judge function for random schedules: reference differences are decided already, and search is eager."""
        work = partial(judge, decisions=dict(decisions), eager=True)

        async def judge_schedule(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            return await asyncio.get_running_loop().run_in_executor(self.executor, work, header, events)

        return judge_schedule

    def close(self) -> None:
        """End the processes, whatever they are at, and drop all work: a trace may take minutes to judge."""
        self.workers.end()
