"""The runs behind test cases: they play the scenarios and schedules that the wanted requirements need."""

import hashlib
import tempfile
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

from fencepost.adapters.virtual_clock import run_virtual_in_thread
from fencepost.conformance.capabilities import REMEDIES
from fencepost.conformance.events import RunEvent, RunFinished, ScheduleShrunk, ViolationConfirmed
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Ending, Failure, Report, RequirementResult, Scope
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.provenance import name_target, record_run
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.run_state import RunState, order_scenarios, replay_failures
from fencepost.conformance.run.stream import TraceSaver, stream_events
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.subject import Scenario, ScenarioRun, Selection
from fencepost.conformance.testing.threads import in_thread, iterate_in_thread
from fencepost.model.errors import FencepostError
from fencepost.traces.events import Event, Kind
from fencepost.traces.verdict import UNCLASSIFIED

# -- the runs behind test cases ---------------------------------------------------------------------------------------

MakeRun: TypeAlias = Callable[[Plan, Profile], BundledRun]
"""Makes the run of a plan and a profile on a target."""
EXCEPTION = "exception"
"""The field of a `closed` event with the traceback of the exception that ended the coordinator."""
SEED_STEP = 1_000_003
"""How far the seeds of two batches of random schedules are apart; the first has that of the session."""
RESTART_REMEDY = "in_memory(..., restart=True)"
"""What a test suite does for restarts to be tested."""


@dataclass(frozen=True, slots=True)
class RunChoices:
    """What the test session chooses about a run: the profile, the seed, whether the smoke scenarios are enough, and the
    folder for traces of failures."""

    profile: Profile = field(default_factory=Profile)
    seed: int = 0
    smoke: bool = False
    save: Path | None = None


@dataclass(frozen=True, slots=True)
class FailedRequirement:
    """A violation to be shown: the requirement, or `UNCLASSIFIED`, and its failure."""

    requirement: str
    failure: Failure


class SessionRun(Protocol):
    """A run of a test session on one target."""

    def result(self, id: str) -> RequirementResult:
        """The result for a requirement; what it needs is played if it was not."""
        ...

    def findings_beside(self, id: str) -> tuple[FailedRequirement, ...]:
        """What the scenarios of a requirement show and no other test case reports."""
        ...

    def run_batch(self, batch: int, size: int, seed: int) -> tuple[FailedRequirement, ...]:
        """Play a batch of random schedules; what they show."""
        ...

    def report(self) -> Report | None:
        """The report on the requirements that were asked for; None if there were none."""
        ...

    def doubt_beside(self, id: str) -> str:
        """The reason why a requirement without a violation is no pass; "" if it is one."""
        ...

    @property
    def ended(self) -> Ending | None:
        """How the run ended before everything was played; None if it did not."""
        ...

    def failed_ids(self) -> frozenset[str]:
        """The requirements known to be violated by now."""
        ...

    def exceptions(self) -> list[str]:
        """Tracebacks of the exceptions that ended coordinators in this process, one for each scenario that met one."""
        ...


class InProcessRun:
    """A run in this process, on virtual time: it plays the scenarios of a requirement when its result is asked for.

    `requirements` are those of the session. Those in `expected` are asked for sooner or later, so that their scenarios
    are played at once; it is empty where nobody knows. As soon as anything is wrong, the scenarios of all requirements
    are played: what a violation follows from is found out with all of them.
    """

    ended: Ending | None = None

    def __init__(
        self,
        make_run: MakeRun,
        choices: RunChoices,
        requirements: Sequence[str],
        expected: Collection[str] = (),
    ) -> None:
        self.choices = choices
        self.asked: set[str] = set()
        self.expected = frozenset(expected)
        self.plan = Plan("target", seed=choices.seed, smoke=choices.smoke, save=choices.save)
        self.run = make_run(self.plan, choices.profile)
        chosen = tuple(DEFAULT_SPECIFICATION.requirements[id] for id in requirements)
        self.description = in_thread(run_virtual_in_thread(self.run.describe_target()))
        selection = self.run.select(chosen, self.description)
        # A test suite remedies what is left out by other means than a profile.
        left_out = {
            id: reason.replace(REMEDIES["restart"], RESTART_REMEDY) for id, reason in selection.left_out.items()
        }
        self.selection = replace(selection, left_out=left_out)
        self.saver = TraceSaver(choices.save)
        self.unclassified: dict[str, list[Failure]] = {}
        """Violations that no requirement speaks of, by scenario."""
        self.state = self.new_state(self.plan, self.selection)
        self.state.provenance = record_run(self.plan, choices.profile, self.description.implementation)
        self.left = {each.name: each for each in self.selection.scenarios}
        """The scenarios that were not played yet."""
        self.is_clean = True
        self.is_settled = False
        """Something was wrong, and everything was played and replayed since."""
        self._report: Report | None = None

    # -- playing ------------------------------------------------------------------------------------------------

    def new_state(self, plan: Plan, selection: Selection) -> RunState:
        """The state of a run that begins."""
        return RunState(plan, selection, self.on_event, self.run.deviations, subject=self.run.protocol.subject)

    def on_event(self, event: RunEvent) -> None:
        """Save traces, and keep violations that no requirement speaks of."""
        self.saver(event)
        if isinstance(event, ViolationConfirmed) and event.requirement == UNCLASSIFIED:
            self.unclassified.setdefault(event.name, []).append(event.failure)

    def result(self, id: str) -> RequirementResult:
        """As `SessionRun.result`."""
        self.asked.add(id)
        self.play_for({id} | self.expected)
        if not self.left:
            return self.whole_report().result(id)
        runs = [run for run in self.state.runs if id in run.scenario.requirements]
        return self.report_on([id], runs).result(id)

    def play_for(self, ids: Collection[str]) -> None:
        """Play the scenarios of these requirements that were not played yet, and all others if anything is wrong."""
        self.play([each for each in self.left.values() if not set(ids).isdisjoint(each.requirements)])
        if not self.is_clean and not self.is_settled:
            self.is_settled = True
            self.play(list(self.left.values()))
            in_thread(replay_failures(self.state, partial(self.run.play_in_turn, self.state)))

    def play(self, scenarios: Sequence[Scenario]) -> None:
        """Play scenarios that were not played yet."""
        if scenarios:
            in_thread(self.play_in_turn(order_scenarios(scenarios, self.choices.seed)))

    async def play_in_turn(self, scenarios: Sequence[Scenario]) -> None:
        """Play scenarios one after the other."""
        for scenario in scenarios:
            run = await self.run.play_now(scenario, "run", self.state)
            self.state.add_run(run)
            self._report = None
            del self.left[scenario.name]
            if run.verdict.violated or run.blocked or run.verdict.inconclusive:
                self.is_clean = False

    # -- results ------------------------------------------------------------------------------------------------

    def report_on(self, ids: Iterable[str], runs: list[ScenarioRun]) -> Report:
        """The report on some requirements by some of the runs."""
        chosen = tuple(DEFAULT_SPECIFICATION.requirements[id] for id in ids)
        state = replace(self.state, runs=runs, selection=replace(self.selection, requirements=chosen))
        return state.build_report(self.target_name())

    def whole_report(self) -> Report:
        """The report on all requirements of the session by all runs."""
        if self._report is None:
            self._report = self.report_on([each.id for each in self.selection.requirements], self.state.runs)
        return self._report

    def target_name(self) -> dict[str, str]:
        """The description of the target for reports."""
        about = self.choices.profile.about
        return name_target(self.description.name, self.description.implementation, about)

    def findings_beside(self, id: str) -> tuple[FailedRequirement, ...]:
        """As `SessionRun.findings_beside`: of the scenarios whose first requirement it is, the violations that no
        requirement speaks of, and those of requirements whose own scenarios do not show them, unless their test cases
        run here and so know all scenarios."""
        if self.is_clean:
            return ()
        own = [run for run in self.state.runs if self.owner_of(run.scenario) == id]
        names = {run.scenario.name for run in own}
        found = [
            FailedRequirement(UNCLASSIFIED, each) for name in sorted(names) for each in self.unclassified.get(name, ())
        ]
        by_themselves = {
            requirement
            for run in self.state.runs
            for requirement in run.verdict.violated & set(run.scenario.requirements)
        }
        hidden = frozenset[str]().union(*(run.verdict.violated for run in own)) - by_themselves - self.expected - {id}
        for result in self.whole_report().failed_results():
            if result.id in hidden:
                found.append(FailedRequirement(result.id, result.failures_by_length()[0]))
        return tuple(found)

    def doubt_beside(self, id: str) -> str:
        """As `SessionRun.doubt_beside`: nothing."""
        return ""

    def failed_ids(self) -> frozenset[str]:
        """As `SessionRun.failed_ids`."""
        return frozenset(result.id for result in self.whole_report().failed_results())

    def exceptions(self) -> list[str]:
        """As `SessionRun.exceptions`."""
        return [exceptions[0] for run in self.state.runs if (exceptions := exceptions_in(run.events))]

    def owner_of(self, scenario: Scenario) -> str:
        """The first requirement of a scenario that the session asks for."""
        chosen = {each.id for each in self.selection.requirements}
        return next((id for id in scenario.requirements if id in chosen), "")

    def run_batch(self, batch: int, size: int, seed: int) -> tuple[FailedRequirement, ...]:
        """As `SessionRun.run_batch`. The batch is drawn by a seed of its own: it does not depend on what was played
        before."""
        plan = replace(self.plan, schedules=size, seed=seed + SEED_STEP * batch)
        state = self.new_state(plan, replace(self.selection, scenarios=()))
        in_thread(self.playing_schedules(plan, state))
        report = state.build_report(self.target_name())
        findings = [FailedRequirement(each.id, each.failures_by_length()[0]) for each in report.failed_results()]
        findings += [FailedRequirement(UNCLASSIFIED, failure) for failure in report.unclassified]
        return tuple(findings)

    async def playing_schedules(self, plan: Plan, state: RunState) -> None:
        """Play the random schedules of a plan."""
        before, self.run.plan = self.run.plan, plan
        try:
            await self.run.play_schedules(state, self.description)
        finally:
            self.run.plan = before

    def report(self) -> Report | None:
        """As `SessionRun.report`."""
        asked = [id for id in DEFAULT_SPECIFICATION.requirements if id in self.asked]
        if not asked:
            return None
        report = self.report_on(asked, self.state.runs)
        full = len(asked) == len(DEFAULT_SPECIFICATION.requirements) and not self.choices.smoke
        scope = Scope.FULL if full else Scope.SMOKE if self.choices.smoke else Scope.SELECTED
        return replace(report, scope=scope, provenance=self.state.provenance)


def exceptions_in(events: Iterable[Event]) -> list[str]:
    """The tracebacks of the exceptions that ended coordinators in a trace, each once."""
    told = (event.body.get(EXCEPTION) for event in events if event.kind is Kind.FAULT)
    return list(dict.fromkeys(each for each in told if isinstance(each, str)))


# -- the run behind test cases on a broker ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker to be tested over TCP; made by `broker`."""

    address: str
    profile: Profile
    profile_path: Path | None = None

    @property
    def name(self) -> str:
        """What it is called before it was asked."""
        return self.address or " ".join(self.profile.start)


class BrokerRun:
    """A run over TCP: one for the whole session, at the first result that is asked for.

    `requirements` are those that are played, and `schedules` random ones after them.
    """

    def __init__(self, broker: Broker, choices: RunChoices, requirements: Sequence[str], schedules: int) -> None:
        self.broker = broker
        self.choices = choices
        self.requirements = tuple(requirements)
        self.schedules = schedules
        self.shrunk: list[ScheduleShrunk] = []
        self._report: Report | None = None
        self._unusable: FencepostError | None = None

    def whole_report(self) -> Report:
        """The report of the run, which is made now if it was not. Raises `TargetError`, each time."""
        if self._unusable is not None:
            raise self._unusable
        if self._report is None:
            try:
                with hold_lock(self.broker):
                    self._report = self.play()
            except FencepostError as error:
                self._unusable = error
                raise
        return self._report

    def play(self) -> Report:
        """Play everything. Raises `TargetError` if the broker cannot be used."""
        is_full = set(self.requirements) == set(DEFAULT_SPECIFICATION.requirements)
        plan = Plan(
            self.broker.address,
            () if is_full else self.requirements,
            smoke=self.choices.smoke,
            seed=self.choices.seed,
            profile=self.broker.profile_path,
            schedules=self.schedules,
            save=self.choices.save,
        )
        chosen = [DEFAULT_SPECIFICATION.requirements[id] for id in self.requirements]
        saver = TraceSaver(plan.save)

        def start() -> AsyncGenerator[RunEvent, None]:
            run = RemoteRun(plan, self.broker.profile)
            return stream_events(partial(run.run, chosen), saver)

        report: Report | None = None
        with closing(iterate_in_thread(start)) as events:
            for event in events:
                if isinstance(event, ScheduleShrunk) and event.confirmed:
                    self.shrunk.append(event)
                if isinstance(event, RunFinished):
                    report = event.report
        assert report is not None, "a run ends with its report or raises"
        return report

    def result(self, id: str) -> RequirementResult:
        """As `SessionRun.result`."""
        return self.whole_report().result(id)

    def findings_beside(self, id: str) -> tuple[FailedRequirement, ...]:
        """As `SessionRun.findings_beside`: the first test case reports what no requirement speaks of."""
        report = self.whole_report()
        if id != self.requirements[0]:
            return ()
        return tuple(FailedRequirement(UNCLASSIFIED, failure) for failure in report.unclassified)

    def doubt_beside(self, id: str) -> str:
        """As `SessionRun.doubt_beside`: what the broker did while it was idle."""
        findings = self.whole_report().idle_findings
        return f"while idle: {findings[0]}" if findings and id == self.requirements[0] else ""

    def failed_ids(self) -> frozenset[str]:
        """As `SessionRun.failed_ids`."""
        return frozenset(result.id for result in self.whole_report().failed_results())

    def exceptions(self) -> list[str]:
        """As `SessionRun.exceptions`: none in this process."""
        return []

    @property
    def ended(self) -> Ending | None:
        """As `SessionRun.ended`."""
        return self.whole_report().ended

    def run_batch(self, batch: int, size: int, seed: int) -> tuple[FailedRequirement, ...]:
        """As `SessionRun.run_batch`: what the run found with the schedules of the batch."""
        report = self.whole_report()
        # A random schedule is named schedule-SEED-BATCH-NUMBER, and maybe a requirement; what is not brought it down.
        drawn = (event for event in self.shrunk if event.name.startswith("schedule-"))
        shown = {event.requirement for event in drawn if int(event.name.split("-")[2]) == batch}
        failed = [each for each in report.failed_results() if each.id in shown]
        return tuple(FailedRequirement(each.id, each.failures_by_length()[0]) for each in failed)

    def report(self) -> Report | None:
        """As `SessionRun.report`."""
        return self._report


@contextmanager
def hold_lock(broker: Broker) -> Iterator[None]:
    """Keep other processes of this machine from testing the same broker at the same time, where files can be locked."""
    name = hashlib.sha256(repr((broker.address, broker.profile.start)).encode()).hexdigest()[:16]
    with (Path(tempfile.gettempdir()) / f"fencepost-{name}.lock").open("a") as file:
        with suppress(ImportError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
