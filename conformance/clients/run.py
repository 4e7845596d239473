"""A whole run against a client: scenarios, replays of their violations, and the report."""

import asyncio
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fencepost.adapters.client.cluster import REFUSED
from fencepost.conformance.analysis.failures import Origin, build_failure, shortest_excerpt
from fencepost.conformance.analysis.report_builder import NOT_AGAIN, NOT_REPLAYED_HERE, ReportBuilder, ViolationStatus
from fencepost.conformance.clients.protocol import ClientProtocol
from fencepost.conformance.clients.schedules import ScheduleStage
from fencepost.conformance.clients.stage import ClientFacts, ClientPlayer, facts_of, software_of
from fencepost.conformance.events import Progress
from fencepost.conformance.profile import Profile
from fencepost.conformance.provenance import NamedBy, PlanRecord, Provenance
from fencepost.conformance.results import Ending, EndKind, Failure, Report, Scope
from fencepost.conformance.run.pool import play_together
from fencepost.conformance.run.provenance import describe_machine, record_profile, started_now
from fencepost.conformance.run.schedule import ScheduleProtocol
from fencepost.conformance.run.stream import CurrentWork, RunLimits, save_trace, trace_file, with_requirements
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.model.catalogue.requirement import Requirement, Verifiability
from fencepost.model.catalogue.selection import select_requirements
from fencepost.model.wire.codec import API_NAMES
from fencepost.traces.events import Event, Kind
from fencepost.traces.verdict import PASSING, CheckResult, CheckStatus, violations_in

# -- findings about a client ------------------------------------------------------------------------------------------

NOT_CHOSEN = "failed once, see {}, which was not replayed"
"""The note of a violation in a scenario in whose place others that show it were replayed, or none."""


def begin_client_report(
    protocol: ClientProtocol, requirements: tuple[Requirement, ...], deviations: Mapping[str, str] | None = None
) -> ReportBuilder:
    """A report on these requirements, without findings; those that the client cannot show are left out, `deviations`
    are declared."""
    left_out = {each.id: reason for each in requirements if (reason := reason_left_out(protocol, each))}
    return ReportBuilder([each.id for each in requirements], left_out, deviations, specification=protocol.specification)


def reason_left_out(protocol: ClientProtocol, requirement: Requirement) -> str:
    """Why a client of which only requests are seen cannot show that it keeps a requirement, "" if it can."""
    if requirement.testability is Verifiability.UNTESTABLE:
        return requirement.why
    missing = [protocol.needs[need] for need in requirement.needs if need in protocol.out_of_reach]
    return f"needs {' and '.join(missing)}" if missing else ""


def build_client_failure(run: ScenarioRun, result: CheckResult, protocol: ClientProtocol, origin: Origin) -> Failure:
    """A violation in a run as a failure; if `origin` has the command that shows it again, a replay has confirmed it."""
    assert result.violation is not None
    excerpt = shortest_excerpt(run.header, run.events, result.violation, protocol.judge)
    return build_failure(run.events, result, origin, replayed=bool(origin.replay), excerpt=excerpt)


def add_client_run(
    builder: ReportBuilder,
    protocol: ClientProtocol,
    run: ScenarioRun,
    trace: str,
    again: Mapping[str, frozenset[str]],
    command: str,
) -> None:
    """Add a run of a scenario, with its `trace` if that is saved. `again` has the requirements that the replays of
    scenarios violated, by their names; `command` tests one requirement again, with {} in the place of its id."""
    name = run.scenario.name
    confirmed = frozenset[str]().union(*again.values())
    for result in violations_in(run.verdict):
        id = result.requirement
        if id not in builder.findings:
            continue
        if id in again.get(name, ()):
            failure = build_client_failure(run, result, protocol, Origin(trace, command.format(id)))
            builder.add_failure(id, failure)
        elif id in confirmed:
            builder.findings[id].add_violation(ViolationStatus.CONFIRMED_ELSEWHERE, NOT_REPLAYED_HERE)
        else:
            note = (NOT_AGAIN if name in again else NOT_CHOSEN).format(trace or name)
            builder.findings[id].add_violation(ViolationStatus.UNCONFIRMED, note)
    add_client_results(builder, run)


def add_client_results(builder: ReportBuilder, run: ScenarioRun) -> None:
    """Add what a run of a scenario shows beside its violations: checks, and why some were not made."""
    name = run.scenario.name
    if run.misconduct:
        builder.undecided.append(f"{name}: {run.misconduct}")
    add_client_checks(builder, run.verdict.check_results)
    shown = {check.requirement for check in run.verdict.check_results} | run.verdict.violated
    for id in run.scenario.requirements:
        if id not in shown and id not in builder.left_out and (run.blocked or run.not_shown):
            status = CheckStatus.INCONCLUSIVE if run.blocked else CheckStatus.NOT_OBSERVED
            builder.add_check(id, status, f"{name}: {run.blocked or run.not_shown}")


def add_client_checks(builder: ReportBuilder, checks: Iterable[CheckResult]) -> None:
    """Add the results of checks; a requirement that is left out is not said to hold."""
    builder.add_checks(
        check for check in checks if check.requirement not in builder.left_out or check.status not in PASSING
    )


# -- the run ----------------------------------------------------------------------------------------------------------

MAX_REPLAYS = 2
"""How many scenarios are replayed at most to confirm one violation."""


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """The options of a run: the `command` of the client, or of its driver, the requirements, and how many scenarios are
    played at once.

    `save` is the folder for the traces of failures and `traces` that for all traces, None to keep none; `seconds` ends
    the run; `profile` is the path of a profile.
    """

    command: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    at_once: int = 4
    seconds: float | None = None
    save: Path | None = None
    traces: Path | None = None
    profile: Path | None = None
    is_driven: bool = False
    schedules: int = 0
    """How many random schedules are played, by `seed`."""
    seed: int = 0
    shrink_seconds: float | None = None
    """How long the schedule of one violation is shrunk; None for as long as the engine takes."""


@dataclass(slots=True)
class ClientRun:
    """A run under way. `profile` says what the client is, and declares deviations; `tell` gets a line for each scenario
    that was played, `show` how far the run has come."""

    plan: ClientPlan
    protocol: ClientProtocol
    playing: ClientPlayer
    profile: Profile = field(default_factory=Profile)
    tell: Callable[[str], None] = lambda line: None
    show: Callable[[Progress], None] = lambda progress: None
    facts: ClientFacts | None = None
    runs: list[ScenarioRun] = field(default_factory=list)
    asked: frozenset[str] = frozenset()
    """The ids of the plan's requirements."""
    again: dict[str, frozenset[str]] = field(default_factory=dict)
    """The requirements that the replay of a scenario violated, by its name."""
    planned: int = 1
    """How many scenarios are to be played, replays included, as far as that is known."""
    begun: float = 0.0
    random: ScheduleStage | None = None
    """The random schedules, once they have begun."""

    def requirements(self) -> tuple[Requirement, ...]:
        """The requirements of the plan. Raises `UnknownRequirement`."""
        catalogue = self.protocol.specification.requirements.values()
        return select_requirements(catalogue, self.plan.patterns, self.plan.excluded)

    async def run(self) -> Report:
        """Play everything, and report whatever ends the run."""
        requirements = self.requirements()
        limits, work, started = RunLimits(self.plan.seconds), CurrentWork(), started_now()
        self.begun = time.monotonic()
        self.asked = frozenset(each.id for each in requirements)
        ended = await limits.play(self._play(work), work)
        if self.plan.save is not None:
            self._save_failures(self.plan.save)
        if self.facts is None:
            ended = self._describe_start(ended, limits)
        builder = self._collect(requirements)
        report = builder.build(
            target=self._describe_target(),
            schedules=len(self.runs) + (self.random.count if self.random is not None else 0),
            events=sum(len(run.events) for run in self.runs) + (self.random.events if self.random is not None else 0),
            seconds=time.monotonic() - self.begun,
            seed=self.plan.seed,
            scope=Scope.SELECTED if self.plan.patterns or self.plan.excluded else Scope.FULL,
            ended=ended,
        )
        return replace(report, provenance=self._describe_origin(started))

    # -- playing --------------------------------------------------------------------------------------------------

    async def _play(self, work: CurrentWork) -> None:
        first = self.protocol.scenarios[0]
        await self._play_one(first, work)
        self.facts = facts_of(self.runs[0])
        if self.facts is None:
            return
        self.playing = replace(self.playing, facts=self.facts)
        await self._play_all([each for each in self.protocol.scenarios_for(self.asked) if each is not first], work)
        for _ in range(MAX_REPLAYS):
            await self._play_all(self._scenarios_to_replay(), work, is_replay=True)
        if self.plan.schedules and self.protocol.schedules is not None:
            await self._play_schedules(self.protocol.schedules, work)

    async def _play_schedules(self, schedules: ScheduleProtocol, work: CurrentWork) -> None:
        """Play random schedules, and shrink those that violate what no scenario violates."""
        plan = self.plan
        self.random = ScheduleStage(schedules, self.playing, self.asked, plan.at_once, self.tell, plan.traces)
        work.stage = "random schedules"
        engine = self.random.make_engine(plan.seed, plan.schedules)
        await engine.run(lambda result: None)
        work.stage = "shrinking random schedules"
        await self.random.shrink(engine, frozenset[str]().union(*self.again.values()), plan.shrink_seconds)

    async def _play_all(self, scenarios: Sequence[Scenario], work: CurrentWork, *, is_replay: bool = False) -> None:
        """Play scenarios side by side, so many at once."""
        places = asyncio.Semaphore(self.plan.at_once)
        self.planned += len(scenarios)
        self._show_progress()

        async def play(scenario: Scenario) -> None:
            async with places:
                await self._play_one(scenario, work, is_replay=is_replay)
            self._show_progress()

        await play_together(play(scenario) for scenario in scenarios)

    async def _play_one(self, scenario: Scenario, work: CurrentWork, *, is_replay: bool = False) -> None:
        work.playing.add(scenario.name)
        run = await self.playing.play(scenario)
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

    def _show_progress(self) -> None:
        """Show how far the run has come. How long the longest scenario takes is not known."""
        done, failures = len(self.runs) + len(self.again), len(self._violated_ids() & self.asked)
        seconds = time.monotonic() - self.begun
        self.show(Progress(done, self.planned, seconds, failures, unit="scenarios", are_at_once=True))

    def _scenarios_to_replay(self) -> list[Scenario]:
        """For each violation that is not confirmed, the shortest scenario that was not replayed yet."""
        chosen: dict[str, Scenario] = {}
        open_ids = self._violated_ids() & self.asked - frozenset[str]().union(*self.again.values())
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

    def _describe_origin(self, started: str) -> Provenance:
        """The origin of the report: the plan, the profile, and who names the client."""
        told = NamedBy.TARGET if self.runs and software_of(self.runs[0]) else NamedBy.NOBODY
        return Provenance(
            started,
            describe_machine(),
            record_client_plan(self.plan),
            record_profile(self.profile) if self.plan.profile is not None else None,
            NamedBy.PROFILE if "name" in self.profile.about else told,
            dict(self.profile.about),
        )

    def _describe_target(self) -> dict[str, str]:
        about = self.profile.about
        told = {"name": about.get("name", shlex.join(self.plan.command))}
        told |= software_of(self.runs[0]) if self.runs else {}
        return told | ({"version": about["version"]} if "version" in about else {})

    def _collect(self, requirements: tuple[Requirement, ...]) -> ReportBuilder:
        """The findings of all scenarios."""
        builder = begin_client_report(self.protocol, requirements, self.profile.deviations)
        command = replay_command(self.plan.command, self.plan.is_driven)
        for run in self.runs:
            folder = self.plan.save if self._failures_in(run) and self.plan.save is not None else self.plan.traces
            trace = str(trace_file(folder, run.scenario.name)) if folder is not None else ""
            add_client_run(builder, self.protocol, run, trace, self.again, command)
        if self.random is not None:
            self._collect_schedules(builder, self.random)
        return builder

    def _collect_schedules(self, builder: ReportBuilder, random: ScheduleStage) -> None:
        """The findings of random schedules."""
        add_client_checks(builder, random.kept())
        builder.undecided += random.undecided
        for run, again in random.found:
            trace = str(trace_file(self.plan.save, run.scenario.name)) if self.plan.save is not None else ""
            command = trace_command(trace, self.plan) if trace else schedule_command(self.plan)
            add_client_run(builder, self.protocol, run, trace, {run.scenario.name: again}, command)

    def _failures_in(self, run: ScenarioRun) -> frozenset[str]:
        """The requirements of the plan that a scenario violates, and its replay as well."""
        return run.verdict.violated & self.again.get(run.scenario.name, frozenset()) & self.asked

    def _save_failures(self, folder: Path) -> None:
        """Save the traces of failures. Raises `OSError`."""
        for run in self.runs:
            if failures := self._failures_in(run):
                events = with_requirements(run.events, sorted(failures))
                save_trace(trace_file(folder, run.scenario.name), run.header, events)
        for run, again in self.random.found if self.random is not None else ():
            events = with_requirements(run.events, sorted(again & set(run.scenario.requirements)))
            save_trace(trace_file(folder, run.scenario.name), run.header, events)


def record_client_plan(plan: ClientPlan) -> PlanRecord:
    """The options of a run on a client, as reports have them."""
    words = ["fencepost", "test-client", *(["--driven"] if plan.is_driven else [])]
    for option, patterns in (("--only", plan.patterns), ("--exclude", plan.excluded)):
        words += [option, *patterns] if patterns else []
    words += ["--schedules", str(plan.schedules), "--seed", str(plan.seed)] if plan.schedules else []
    words += ["--seconds", f"{plan.seconds:g}"] if plan.seconds is not None else []
    words += ["--profile", str(plan.profile)] if plan.profile is not None else []
    return PlanRecord(
        command=(*words, "--", *plan.command),
        only=plan.patterns,
        exclude=plan.excluded,
        smoke=False,
        slow=False,
        intrusive=False,
        seed=plan.seed,
        schedules=plan.schedules,
        tours=0,
        max_failures=None,
        seconds=plan.seconds,
        shrink_seconds=plan.shrink_seconds,
    )


def replay_command(command: Sequence[str], is_driven: bool) -> str:
    """The command line that tests one requirement on a client again, with {} in the place of its id."""
    words = [shlex.quote(word).replace("{", "{{").replace("}", "}}") for word in command]
    return " ".join([f"fencepost test-client {'--driven ' if is_driven else ''}--only {{}} --", *words])


def trace_command(trace: str, plan: ClientPlan) -> str:
    """The command line that replays a saved trace with a client."""
    words = [shlex.quote(word).replace("{", "{{").replace("}", "}}") for word in (trace, "--", *plan.command)]
    return " ".join(["fencepost replay", *words])


def schedule_command(plan: ClientPlan) -> str:
    """The command line that plays the schedules of a plan with its client again, with {} in the place of the id of a
    requirement."""
    options = f"--schedules {plan.schedules} --seed {plan.seed} --only"
    return replay_command(plan.command, plan.is_driven).replace("--only", options, 1)


def describe_silence(run: ScenarioRun | None) -> str:
    """Why a client that never joined cannot be tested."""
    if run is None:
        return "the client was not started"
    return f"the client sent no JoinGroup: {describe_requests(run.events)}; {run.blocked}"


def describe_requests(events: Sequence[Event]) -> str:
    """What a client sent that never joined."""
    asked = {event.api for event in events if event.kind is Kind.REQUEST} & set(API_NAMES.values())
    refused = next((event.body["reason"] for event in events if event.api == REFUSED), "")
    if refused and not asked:
        return f"it sends what is not Kafka's protocol ({refused})"
    if not asked:
        return "it never connected"
    return f"it sent only {', '.join(sorted(asked))}" + (f", and was hung up on ({refused})" if refused else "")
