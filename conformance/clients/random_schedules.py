"""The last stage of a run against a client: random schedules, and the shrinking of those that show a violation."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from fencepost.conformance.clients.play import ClientPlay
from fencepost.conformance.clients.schedule_engine import ClientEngine
from fencepost.conformance.clients.schedule_protocol import ClientScheduleProtocol
from fencepost.conformance.clients.stage import ClientFacts
from fencepost.conformance.execution.saving import save_trace, trace_file
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.conformance.schedules.engine import Shrunk
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.traces.verdict import CheckResult, CheckStatus


@dataclass(slots=True)
class ScheduleStage:
    """Random schedules under way. `asked` are the ids of the run's requirements, `tell` gets a line for each schedule,
    and `traces` is the folder for every trace."""

    protocol: ClientScheduleProtocol
    playing: ClientPlay
    facts: ClientFacts
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
        return await self.playing.play(self.protocol.client_scenario_of(schedule), self.facts)

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
