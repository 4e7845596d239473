"""A whole run against a client: scenarios, replays of their violations, and the report."""

import asyncio
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fencepost.conformance.analysis.aggregation import NOT_AGAIN, NOT_REPLAYED, ViolationStatus
from fencepost.conformance.analysis.report_builder import ReportBuilder
from fencepost.conformance.clients.failures import build_client_failure
from fencepost.conformance.clients.play import ClientPlay, ClientScenarioRun, facts_of, software_of
from fencepost.conformance.clients.protocol import ClientProtocol
from fencepost.conformance.clients.scenario import ClientScenario
from fencepost.conformance.clients.stage import ClientFacts
from fencepost.conformance.execution.saving import save_trace, trace_file
from fencepost.conformance.results import Ending, EndKind, Report, Scope
from fencepost.conformance.run.ending import CurrentWork, RunLimits
from fencepost.conformance.run.provenance import record_judging
from fencepost.model.catalogue.requirement import Requirement, Verifiability
from fencepost.model.catalogue.selection import select_requirements
from fencepost.traces.verdict import PASSING, CheckStatus

MAX_REPLAYS = 2
"""How many scenarios are replayed at most to confirm one violation."""


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """The options of a run: the `command` of the client, the requirements, and how many scenarios are played at once.

    `traces` is the folder for the traces of all scenarios, None to keep none; `seconds` ends the run.
    """

    command: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    at_once: int = 4
    seconds: float | None = None
    traces: Path | None = None


@dataclass(slots=True)
class ClientRun:
    """A run under way. `tell` gets a line for each scenario that was played."""

    plan: ClientPlan
    protocol: ClientProtocol
    playing: ClientPlay
    tell: Callable[[str], None] = lambda line: None
    facts: ClientFacts | None = None
    runs: list[ClientScenarioRun] = field(default_factory=list)
    again: dict[str, frozenset[str]] = field(default_factory=dict)
    """The requirements that the replay of a scenario violated, by its name."""

    def requirements(self) -> tuple[Requirement, ...]:
        """The requirements of the plan. Raises `UnknownRequirement`."""
        catalogue = self.protocol.specification.requirements.values()
        return select_requirements(catalogue, self.plan.patterns, self.plan.excluded)

    async def run(self) -> Report:
        """Play everything, and report whatever ends the run."""
        requirements = self.requirements()
        limits, work, provenance = RunLimits(self.plan.seconds), CurrentWork(), record_judging()
        begun = time.monotonic()
        ended = await limits.play(self._play({each.id for each in requirements}, work), work)
        if self.facts is None:
            ended = self._describe_start(ended, limits)
        builder = self._collect(requirements)
        report = builder.build(
            target=self._describe_target(),
            schedules=len(self.runs),
            events=sum(len(run.events) for run in self.runs),
            seconds=time.monotonic() - begun,
            scope=Scope.SELECTED if self.plan.patterns or self.plan.excluded else Scope.FULL,
            ended=ended,
        )
        return replace(report, provenance=provenance)

    # -- playing --------------------------------------------------------------------------------------------------

    async def _play(self, asked: set[str], work: CurrentWork) -> None:
        first, *others = self.protocol.scenarios
        await self._play_one(first, work)
        self.facts = facts_of(self.runs[0])
        if self.facts is None:
            return
        await self._play_all([each for each in others if asked & set(each.requirements)], work)
        for _ in range(MAX_REPLAYS):
            await self._play_all(self._scenarios_to_replay(asked), work, is_replay=True)

    async def _play_all(
        self, scenarios: Sequence[ClientScenario], work: CurrentWork, *, is_replay: bool = False
    ) -> None:
        """Play scenarios side by side, so many at once."""
        places = asyncio.Semaphore(self.plan.at_once)

        async def play(scenario: ClientScenario) -> None:
            async with places:
                await self._play_one(scenario, work, is_replay=is_replay)

        async with asyncio.TaskGroup() as group:
            for scenario in scenarios:
                group.create_task(play(scenario))

    async def _play_one(self, scenario: ClientScenario, work: CurrentWork, *, is_replay: bool = False) -> None:
        work.playing.add(scenario.name)
        run = await self.playing.play(scenario, self.facts or ClientFacts())
        work.playing.discard(scenario.name)
        if is_replay:
            self.again[scenario.name] = run.verdict.violated
        else:
            self.runs.append(run)
            if self.plan.traces is not None:
                save_trace(trace_file(self.plan.traces, scenario.name), run.header, run.events)
        violated = ", ".join(sorted(run.verdict.violated))
        found = (
            f"violates {violated}" if violated else run.misconduct or run.blocked or run.not_shown or "as it should be"
        )
        self.tell(f"{scenario.name}{' again' if is_replay else ''}: {found or 'as it should be'}")

    def _scenarios_to_replay(self, asked: set[str]) -> list[ClientScenario]:
        """For each violation that is not confirmed, the shortest scenario that was not replayed yet."""
        chosen: dict[str, ClientScenario] = {}
        open_ids = self._violated_ids() & asked - frozenset[str]().union(*self.again.values())
        for id in sorted(open_ids):
            fitting = [run for run in self.runs if id in run.verdict.violated and run.scenario.name not in self.again]
            if fitting:
                shortest = min(fitting, key=lambda run: len(run.events)).scenario
                chosen[shortest.name] = shortest
        return list(chosen.values())

    def _violated_ids(self) -> frozenset[str]:
        return frozenset[str]().union(*(run.verdict.violated for run in self.runs))

    # -- reporting ------------------------------------------------------------------------------------------------

    def _describe_start(self, ended: Ending | None, limits: RunLimits) -> Ending | None:
        """How a run ended whose client never joined: nothing was tested, unless somebody ended it."""
        if ended is not None and ended.kind is not EndKind.TARGET_DOWN:
            return ended
        first = self.runs[0] if self.runs else None
        reason = ended.reason if ended is not None else describe_silence(first)
        return Ending(EndKind.NOT_STARTED, reason, round(limits.elapsed_seconds(), 3))

    def _describe_target(self) -> dict[str, str]:
        name = shlex.join(self.plan.command)
        return {"name": name, **(software_of(self.runs[0]) if self.runs else {})}

    def _collect(self, requirements: Sequence[Requirement]) -> ReportBuilder:
        """What all scenarios show of the requirements."""
        left_out = {each.id: reason for each in requirements if (reason := self._reason_left_out(each))}
        specification = self.protocol.specification
        builder = ReportBuilder([each.id for each in requirements], left_out, specification=specification)
        confirmed = frozenset[str]().union(*self.again.values())
        for run in self.runs:
            self._add_violations(builder, run, confirmed)
            if run.misconduct:
                builder.undecided.append(f"{run.scenario.name}: {run.misconduct}")
            shown = {check.requirement for check in run.verdict.check_results} | run.verdict.violated
            builder.add_checks(
                check
                for check in run.verdict.check_results
                if check.requirement not in left_out or check.status not in PASSING
            )
            for id in run.scenario.requirements:
                if id not in shown and id not in left_out and (run.blocked or run.not_shown):
                    status = CheckStatus.INCONCLUSIVE if run.blocked else CheckStatus.NOT_OBSERVED
                    builder.add_check(id, status, f"{run.scenario.name}: {run.blocked or run.not_shown}")
        return builder

    def _add_violations(self, builder: ReportBuilder, run: ClientScenarioRun, confirmed: frozenset[str]) -> None:
        name = run.scenario.name
        trace = str(trace_file(self.plan.traces, name)) if self.plan.traces is not None else ""
        for violation in run.verdict.violations:
            id = violation.requirement
            if id not in builder.findings:
                continue
            if id in self.again.get(name, ()):
                builder.add_failure(id, build_client_failure(run, violation, trace, self._replay_command(id)))
            elif id in confirmed:
                builder.findings[id].add_violation(ViolationStatus.CONFIRMED_ELSEWHERE, violation.title)
            else:
                note = (NOT_AGAIN if name in self.again else NOT_REPLAYED).format(trace or name)
                builder.findings[id].add_violation(ViolationStatus.UNCONFIRMED, note)

    def _replay_command(self, id: str) -> str:
        return shlex.join(["fencepost", "test-client", "--only", id, "--", *self.plan.command])

    def _reason_left_out(self, requirement: Requirement) -> str:
        """Why a program without a driver cannot show that it keeps a requirement, "" if it can."""
        if requirement.testability is Verifiability.UNTESTABLE:
            return requirement.why
        out_of_reach: Mapping[str, str] = self.protocol.out_of_reach
        missing = [out_of_reach[need] for need in requirement.needs if need in out_of_reach]
        return f"needs {' and '.join(missing)}" if missing else ""


def describe_silence(run: ClientScenarioRun | None) -> str:
    """Why a client that never joined cannot be tested."""
    if run is None:
        return "the client was not started"
    asked = {event.api for event in run.events if event.connection}
    did = f"it sent only {', '.join(sorted(asked))}" if asked else "it never connected"
    return f"the client sent no JoinGroup: {did}; {run.blocked}"
