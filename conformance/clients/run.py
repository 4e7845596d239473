"""A whole run against a client, traces of clients that are judged once more, and traces that are played again."""

import asyncio
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from fencepost.adapters.client.cluster import REFUSED
from fencepost.adapters.serve.record_apis import OFFERED_VERSIONS
from fencepost.conformance.analysis.failures import Origin, failure_in
from fencepost.conformance.analysis.report_builder import ReportBuilder
from fencepost.conformance.analysis.trace_report import MALFORMED_ERRORS, describe_unreadable
from fencepost.conformance.clients.protocol import ClientProtocol, schedule_in
from fencepost.conformance.clients.stage import (
    ClientFacts,
    ClientPlayer,
    ClientStage,
    facts_in,
    run_in_trace,
    software_of,
)
from fencepost.conformance.events import Progress, RunEvent
from fencepost.conformance.plan import Plan, ReplayResult
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Ending, EndKind, NamedBy, Provenance, Report, Scope
from fencepost.conformance.run.engine import ScheduleEngine, ScheduleResult
from fencepost.conformance.run.play import Player, discard_if_lagging
from fencepost.conformance.run.pool import play_together
from fencepost.conformance.run.provenance import (
    describe_machine,
    record_judging,
    record_plan,
    record_profile,
    started_now,
)
from fencepost.conformance.run.replay import replay_scenario
from fencepost.conformance.run.run_state import RunState, play_and_confirm, run_schedules
from fencepost.conformance.run.schedule import BatchSpec, GeneratedSchedule, Schedule, ScheduleProtocol, generate_batch
from fencepost.conformance.run.stream import Emit, RunLimits, TraceSaver, consume, stream_events, trace_file, write_run
from fencepost.conformance.subject import Scenario, ScenarioRun, Selection
from fencepost.model.catalogue.requirement import Requirement, select_requirements
from fencepost.model.wire.codec import API_NAMES
from fencepost.traces.client_judge.judge import is_client_trace, is_driven_trace
from fencepost.traces.events import SAVED, Event, Header, Kind
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.verdict import violations_in

# -- the run ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ClientRun:
    """A run with the client of a command, or with its driver if it `is_driven`. `profile` says what the client is, and
    declares deviations; so many scenarios are played at once."""

    plan: Plan
    command: tuple[str, ...]
    protocol: ClientProtocol
    player: ClientPlayer
    profile: Profile = field(default_factory=Profile)
    at_once: int = 4
    is_driven: bool = False

    def requirements(self) -> tuple[Requirement, ...]:
        """The requirements of the plan. Raises `UnknownRequirement`."""
        catalogue = self.protocol.specification.requirements.values()
        return select_requirements(catalogue, self.plan.patterns, self.plan.excluded)

    async def run(self, *consumers: Callable[[RunEvent], None]) -> Report:
        """Play everything, save the traces that the plan asks for, and hand the events of the run to the consumers.
        Whatever ends the run, there is a report."""
        requirements, saver = self.requirements(), TraceSaver(self.plan.save, self.plan.traces)
        return await consume(stream_events(lambda emit: self.play(requirements, emit), saver), *consumers)

    # -- playing --------------------------------------------------------------------------------------------------

    async def play(self, requirements: tuple[Requirement, ...], emit: Emit) -> Report:
        """Play everything, emitting events."""
        limits, started = RunLimits(self.plan.seconds), started_now()
        plan = replace(self.plan, shrink_seconds=None)  # the engine knows how long it shrinks one schedule
        state = RunState(
            plan,
            self.select(requirements),
            emit,
            self.profile.deviations,
            limits,
            subject=self.protocol.subject,
            find_origin=self.origin_of,
            scope=Scope.SELECTED if plan.patterns or plan.excluded else Scope.FULL,
        )
        state.start(self.describe_client(None))
        ended = await limits.play(self.play_all(state), state.work)
        first = state.runs[0] if state.runs else None
        if first is None or facts_in(first.events) is None:
            ended = describe_start(first, ended, limits)
        state.provenance = self.describe_origin(first, started)
        return state.finish(self.describe_client(first), ended)

    def select(self, requirements: tuple[Requirement, ...]) -> Selection:
        """The scenarios to play: the first one always, for it shows what the client is."""
        first = self.protocol.scenarios[0]
        chosen = self.protocol.scenarios_for(frozenset(each.id for each in requirements))
        left_out = self.protocol.requirements_out_of_reach(requirements)
        return Selection(requirements, (first, *(each for each in chosen if each is not first)), left_out)

    async def play_all(self, state: RunState) -> None:
        """Play the scenarios, replay what failed, then play random schedules."""
        play = partial(self.play_side_by_side, state)
        first, *others = state.selection.scenarios
        await play([first], "run", state.add_run)
        facts = facts_in(state.runs[0].events)
        if facts is None:
            return
        self.player = replace(self.player, facts=facts)
        await play_and_confirm(state, play, others)
        if self.plan.schedules and self.protocol.schedules is not None:
            engine = ClientEngine(self.protocol.schedules, self.player, self.plan, self.at_once)
            await run_schedules(state, engine, partial(play_and_confirm, state, play))

    async def play_side_by_side(
        self, state: RunState, scenarios: Sequence[Scenario], attempt: str, on_run: Callable[[ScenarioRun], None]
    ) -> None:
        """Play scenarios, so many at once."""
        places = asyncio.Semaphore(self.at_once)

        async def play(scenario: Scenario) -> None:
            async with places:
                state.work.playing.add(scenario.name)
                run = await self.player.play(scenario, attempt)
                state.work.playing.discard(scenario.name)
                on_run(run)

        await play_together(play(scenario) for scenario in scenarios)

    # -- where the report comes from ------------------------------------------------------------------------------

    def describe_client(self, first: ScenarioRun | None) -> dict[str, str]:
        """The client, by what its profile says, and what it says of itself in its first scenario."""
        about = self.profile.about
        told = {"name": about.get("name", shlex.join(self.command))}
        told |= software_of(first) if first is not None else {}
        return told | ({"version": about["version"]} if "version" in about else {})

    def describe_origin(self, first: ScenarioRun | None, started: str) -> Provenance:
        """The origin of the report: the plan, the profile, and who names the client."""
        told = NamedBy.TARGET if first is not None and software_of(first) else NamedBy.NOBODY
        return Provenance(
            started,
            describe_machine(),
            replace(record_plan(self.plan), command=self.command_line()),
            record_profile(self.profile) if self.plan.profile is not None else None,
            NamedBy.PROFILE if "name" in self.profile.about else told,
            dict(self.profile.about),
        )

    def command_line(self) -> tuple[str, ...]:
        """The command line of the run."""
        plan = self.plan
        words = ["fencepost", "test-client", *(["--driven"] if self.is_driven else [])]
        for option, patterns in (("--only", plan.patterns), ("--exclude", plan.excluded)):
            words += [option, *patterns] if patterns else []
        words += ["--schedules", str(plan.schedules), "--seed", str(plan.seed)] if plan.schedules else []
        words += ["--seconds", f"{plan.seconds:g}"] if plan.seconds is not None else []
        words += ["--profile", str(plan.profile)] if plan.profile is not None else []
        return (*words, "--", *self.command)

    def origin_of(self, run: ScenarioRun, requirement: str) -> Origin:
        """Where the trace of a run that violates a requirement is saved, and the command that shows that again."""
        plan, folder = self.plan, self.plan.save if self.plan.save is not None else self.plan.traces
        trace = str(trace_file(folder, run.scenario.name)) if folder is not None else ""
        if run.scenario.requirements or run.scenario in self.protocol.scenarios:
            options: list[str] = []
        elif plan.save is not None:
            return Origin(trace, shlex.join(["fencepost", "replay", trace, "--", *self.command]))
        else:
            options = ["--schedules", str(plan.schedules), "--seed", str(plan.seed)]
        words = ["fencepost", "test-client", *(["--driven"] if self.is_driven else []), *options]
        return Origin(trace, shlex.join([*words, "--only", requirement, "--", *self.command]))


def describe_start(first: ScenarioRun | None, ended: Ending | None, limits: RunLimits) -> Ending:
    """How a run ended whose client never joined: nothing was tested, unless somebody ended it."""
    if ended is not None and ended.kind is not EndKind.TARGET_DOWN:
        return ended
    silence = "the client was not started"
    if first is not None:
        silence = f"the client sent no JoinGroup: {describe_requests(first.events)}; {first.blocked}"
    reason = ended.reason if ended is not None else silence
    return Ending(EndKind.NOT_STARTED, reason, round(limits.elapsed_seconds(), 3))


def describe_requests(events: Sequence[Event]) -> str:
    """What a client sent that never joined."""
    asked = {event.api for event in events if event.kind is Kind.REQUEST} & set(API_NAMES.values())
    refused = next((event.body["reason"] for event in events if event.api == REFUSED), "")
    if refused and not asked:
        return f"it sends what is not Kafka's protocol ({refused})"
    if not asked:
        return "it never connected"
    if asked == {"ApiVersions"} and not refused:
        offered = ", ".join(f"{api} {low} to {high}" for api, (low, high) in OFFERED_VERSIONS.items())
        return f"it asked for versions, and no more came; it may need others than {offered}"
    return f"it sent only {', '.join(sorted(asked))}" + (f", and was hung up on ({refused})" if refused else "")


# -- the engine of random schedules -----------------------------------------------------------------------------------

SHRINK_SECONDS = 120.0
"""How long the schedule of one violation is shrunk at most."""


class ClientEngine(ScheduleEngine):
    """Plays the schedules of a plan with a client, `at_once` side by side."""

    batches_per_round = 1

    def __init__(self, protocol: ScheduleProtocol, player: ClientPlayer, plan: Plan, at_once: int) -> None:
        super().__init__(protocol, plan.seed, plan.schedules, {})
        self.player = player
        self.at_once = at_once
        self.traces = plan.traces
        self.shrink_seconds = (
            SHRINK_SECONDS if plan.shrink_seconds is None else min(plan.shrink_seconds, SHRINK_SECONDS)
        )

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
        """Play a new schedule, and write its trace if traces are wanted."""
        run = await self.play_once(generated.schedule)
        if self.traces is not None:
            write_run(self.traces, run)
        return ScheduleResult.from_run(generated, run)

    async def find_attempts(self, requirement: str) -> list[Schedule]:
        """As `ScheduleEngine.find_attempts`: at once, for schedules of clients have no shortcuts."""
        return self.attempts_for(requirement)

    async def replay(self, schedules: Sequence[Schedule]) -> list[ScenarioRun]:
        """As `ScheduleEngine.replay`, side by side."""
        runs: list[ScenarioRun] = []
        for begin in range(0, len(schedules), self.at_once):
            runs += await asyncio.gather(*map(self.play_once, schedules[begin : begin + self.at_once]))
        return runs

    async def play_once(self, schedule: Schedule) -> ScenarioRun:
        """Play a schedule."""
        return await self.player.play(self.protocol.scenario_of(schedule), schedule.name)


# -- judging once more ------------------------------------------------------------------------------------------------


def find_client_traces(paths: Sequence[Path]) -> dict[Path, bool]:
    """The traces of clients among some traces, and whether each has an application in it; a file that cannot be read is
    none, and standard input is not looked at."""
    found = {}
    for path in paths:
        try:
            header = open_trace(path)[0] if path.is_file() else None
        except (TraceError, OSError):
            continue
        if header is not None and is_client_trace(header):
            found[path] = is_driven_trace(header)
    return found


def judge_client_files(paths: Sequence[Path], progress: Callable[[Progress], None], protocol: ClientProtocol) -> Report:
    """The report on traces of clients. A file that cannot be read is told in the report; it is a `TraceError` if it is
    the only one. Interrupted, report on those judged so far."""
    requirements, subject = protocol.specification.requirements, protocol.subject
    left_out = protocol.requirements_out_of_reach(requirements.values())
    builder = ReportBuilder(requirements, left_out, specification=protocol.specification)
    provenance, begun = record_judging(), time.monotonic()
    ended: Ending | None = None
    errors, names, violated, events = list[TraceError](), set[str](), set[str](), 0
    done = 0
    try:
        for path in paths:
            try:
                run = judge_client_trace(path, protocol)
            except TraceError as error:
                errors.append(error)
            else:
                for result in violations_in(run.verdict):
                    failure = failure_in(run, result, subject, Origin(str(path), ""), replayed=False)
                    builder.add_failure(result.requirement, failure)
                builder.add_watched_run(run)
                body = run.events[-1].body if run.events and run.events[-1].api == SAVED else {}
                if gone := body.get("left_out"):
                    told = f"an excerpt without {', '.join(gone)}: only {', '.join(body['requirements'])} is judged"
                    builder.undecided.append(f"{path.name}: {told}")
                names.add(run.header.implementation.get("name", run.header.source))
                violated |= run.verdict.violated
                events += len(run.events)
            done += 1
            progress(Progress(done, len(paths), time.monotonic() - begun, len(violated), path.name))
    except KeyboardInterrupt:
        ended = Ending(EndKind.INTERRUPTED, "interrupted", time.monotonic() - begun)
    if len(errors) == len(paths):
        raise errors[0]
    if errors:
        builder.undecided += (f"not judged: {error}" for error in errors)
        told = describe_unreadable(len(errors), len(paths), errors[0])
        ended = ended or Ending(EndKind.UNREADABLE, told, time.monotonic() - begun)
    report = builder.build(
        target={"name": next(iter(names)) if len(names) == 1 else f"{len(names)} clients"},
        schedules=done - len(errors),
        events=events,
        seconds=time.monotonic() - begun,
        ended=ended,
    )
    return replace(report, provenance=provenance)


def judge_client_trace(path: Path, protocol: ClientProtocol) -> ScenarioRun:
    """The run of the scenario that a trace names, which is one without requirements for a random schedule, or an
    unknown one. Raises `TraceError`."""
    header, stream = open_trace(path)
    try:
        events = tuple(stream)
        verdict = protocol.judge(header, events)
    except TraceError:
        raise
    except MALFORMED_ERRORS as error:
        raise TraceError(str(path), 0, f"a message has not the form of its API: {error}") from None
    name = header.implementation.get("scenario", "")
    known = (each for each in protocol.scenarios if each.name == name)
    scenario = next(known, Scenario(name, (), play_nothing))
    return discard_if_lagging(run_in_trace(header, events, verdict, scenario))


async def play_nothing(stage: ClientStage) -> None:
    """A scenario that is known by its trace alone."""


# -- playing again ----------------------------------------------------------------------------------------------------


async def replay_client(path: Path, player: ClientPlayer, protocol: ClientProtocol) -> ReplayResult:
    """Play what is in a trace again, and say whether what it was saved for fails again. Raises `TraceError` and
    `TargetError`."""

    def prepare(header: Header, events: tuple[Event, ...]) -> tuple[Scenario, Player]:
        scenario = scenario_in(path, header, events, protocol)
        return scenario, replace(player, facts=facts_in(events) or ClientFacts())

    return await replay_scenario(path, protocol.subject, prepare, path.stem)


def scenario_in(path: Path, header: Header, events: Sequence[Event], protocol: ClientProtocol) -> Scenario:
    """The schedule in a trace, or the scenario that it names. Raises `TraceError`."""
    try:
        schedule = schedule_in(events)
    except ValueError as error:
        raise TraceError(str(path), 0, str(error)) from None
    if schedule is not None and protocol.schedules is not None:
        try:
            return protocol.schedules.scenario_of(schedule)
        except KeyError as error:
            raise TraceError(str(path), 0, f"a schedule of another version: no move {error}") from None
    name = header.implementation.get("scenario", "")
    found = next((each for each in protocol.scenarios if each.name == name), None)
    if found is None:
        raise TraceError(str(path), 0, f"no schedule, and no scenario named {name!r}; was it written by test-client?")
    return found
