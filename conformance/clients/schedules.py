"""Random schedules with clients: the engine, the bench on virtual time, and the last stage of a run."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fencepost.conformance.clients.stage import ClientPlayer
from fencepost.conformance.run.engine import ScheduleEngine, ScheduleResult, Shrunk
from fencepost.conformance.run.schedule import BatchSpec, GeneratedSchedule, Schedule, ScheduleProtocol, generate_batch
from fencepost.conformance.run.stream import save_trace, trace_file
from fencepost.conformance.subject import ScenarioRun
from fencepost.traces.verdict import CheckResult, CheckStatus

# -- the engine -------------------------------------------------------------------------------------------------------

PlaySchedule = Callable[[Schedule], Awaitable[ScenarioRun]]
"""Plays a schedule with a client, and judges it."""


class ClientEngine(ScheduleEngine):
    """Plays schedules with a client, `at_once` side by side; `on_run` gets each run of a new schedule."""

    batches_per_round = 1
    shrink_seconds = 120.0
    protocol: ScheduleProtocol

    def __init__(
        self,
        protocol: ScheduleProtocol,
        seed: int,
        count: int,
        play_schedule: PlaySchedule,
        at_once: int,
        on_run: Callable[[ScenarioRun], None] = lambda run: None,
    ) -> None:
        super().__init__(protocol, seed, count, {})
        self.play_schedule = play_schedule
        self.at_once = at_once
        self.on_run = on_run

    async def play(self, rounds: Iterator[list[BatchSpec]], on_result: Callable[[ScheduleResult], None]) -> None:
        """As `ScheduleEngine.play`."""
        drawn = iter([each for specs in rounds for spec in specs for each in generate_batch(spec)])

        async def play_some() -> None:
            for generated in drawn:
                on_result(await self.play_generated(generated))

        async with asyncio.TaskGroup() as group:
            for _ in range(self.at_once):
                group.create_task(play_some())

    async def play_generated(self, generated: GeneratedSchedule) -> ScheduleResult:
        """Play a new schedule."""
        run = await self.play_schedule(generated.schedule)
        self.on_run(run)
        return ScheduleResult.from_run(generated, run)

    async def find_attempts(self, requirement: str) -> list[Schedule]:
        """As `ScheduleEngine.find_attempts`: at once, for schedules of clients have no shortcuts."""
        return self.attempts_for(requirement)

    async def replay(self, schedules: Sequence[Schedule]) -> list[ScenarioRun]:
        """As `ScheduleEngine.replay`, side by side."""
        runs: list[ScenarioRun] = []
        for begin in range(0, len(schedules), self.at_once):
            some = schedules[begin : begin + self.at_once]
            runs += await asyncio.gather(*(self.play_schedule(each) for each in some))
        return runs


# -- the last stage of a run against a client -------------------------------------------------------------------------


@dataclass(slots=True)
class ScheduleStage:
    """Random schedules under way. `asked` are the ids of the run's requirements, `tell` gets a line for each schedule,
    and `traces` is the folder for every trace."""

    protocol: ScheduleProtocol
    playing: ClientPlayer
    asked: frozenset[str]
    at_once: int
    tell: Callable[[str], None]
    traces: Path | None = None
    checks: set[str] = field(default_factory=set)
    """The requirements that a schedule was seen to keep."""
    undecided: list[str] = field(default_factory=list)
    count: int = 0
    """How many schedules were played."""
    events: int = 0
    found: list[tuple[ScenarioRun, frozenset[str]]] = field(default_factory=list)
    """The shortest run for each violated requirement, and what its replay violates."""
    cut_short: list[str] = field(default_factory=list)
    """The requirements whose schedules were not shrunk to the end."""

    def make_engine(self, seed: int, count: int) -> ClientEngine:
        """The engine of so many schedules of a seed."""
        return ClientEngine(self.protocol, seed, count, self.play, self.at_once, self.add_run)

    async def play(self, schedule: Schedule) -> ScenarioRun:
        """Play a schedule."""
        return await self.playing.play(self.protocol.scenario_of(schedule))

    def add_run(self, run: ScenarioRun) -> None:
        """Take note of a new schedule's run."""
        name = run.scenario.name
        self.count += 1
        self.events += len(run.events)
        self.checks |= {check.requirement for check in run.verdict.check_results if check.status is CheckStatus.PASS}
        if (problem := run.misconduct or run.blocked) and not run.verdict.violations:
            self.undecided.append(f"{name}: {problem}")
        if self.traces is not None:
            save_trace(trace_file(self.traces, name), run.header, run.events)
        violated = ", ".join(sorted(run.verdict.violated))
        self.tell(
            f"{name}: {f'violates {violated}' if violated else run.misconduct or run.blocked or 'as it should be'}"
        )

    async def shrink(self, engine: ClientEngine, known: frozenset[str], seconds: float | None) -> None:
        """Replay and shrink the schedules that violate what is not `known` to be violated, each for so many seconds."""
        violated = engine.statistics.candidate_failures
        open_ids = sorted(id for id in violated if id in self.asked - known)
        for id, confirmation in (await engine.confirm_violations(open_ids)).items():
            shrunk = await engine.shrink_violation(id, confirmation, seconds)
            self.add_shrunk(id, shrunk)

    def add_shrunk(self, requirement: str, shrunk: Shrunk) -> None:
        """Take note of the shortest run for a requirement. It may end early: what it is about it shows before."""
        scenario = replace(shrunk.run.scenario, requirements=(requirement,))
        run = replace(shrunk.run, scenario=scenario, blocked="", not_shown="", misconduct="")
        self.found.append((run, shrunk.again))
        if not shrunk.is_minimal:
            self.cut_short.append(requirement)

    def kept(self) -> Iterable[CheckResult]:
        """A check for each requirement that schedules were seen to keep. What is unusual or open in a schedule has not
        been played again, and is left out."""
        return (CheckResult(id, 0, CheckStatus.PASS) for id in sorted(self.checks))
