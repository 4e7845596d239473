"""How faults of clients are played: on the reference client, in this process and on virtual time.

Members and fetchers play scenarios and random schedules, assignors make plans for groups. A mutant of the client's
model is found if a schedule or a scenario shows twice what it does not show of the shipped client, if the client raises
an error, or if it hangs; or, if nothing else is, a scenario that cannot go on with it, twice, and can with the shipped
client. One that does the same as the shipped client in all of them is not told apart.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeAlias

from fencepost.adapters.assignor import AssignorError
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.assignors.run import AssignorTest
from fencepost.conformance.classic.clients import DRIVEN_CLIENTS
from fencepost.conformance.classic.clients import SCENARIOS as CLIENT_SCENARIOS
from fencepost.conformance.classic.clients.schedules.protocol import ClassicClientSchedules
from fencepost.conformance.classic.zoo.clients import reference
from fencepost.conformance.classic.zoo.clients.reference import KINDS, NO_POLICY
from fencepost.conformance.clients.stage import ClientFacts, ClientPlayer
from fencepost.conformance.results import RemarkKind, RequirementResult
from fencepost.conformance.run.falsify import Bench, schedule_source
from fencepost.conformance.run.play import JudgeFunction
from fencepost.conformance.run.schedule import Schedule
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.conformance.zoo.fault import Fault
from fencepost.conformance.zoo.hunt import HuntResult, HuntTask, Stand, UnusualCount, is_stuck, usual_run
from fencepost.conformance.zoo.measuring import CpuClock, CpuLimitExceeded, cpu_limit
from fencepost.conformance.zoo.strategies import REMARKS, SCENARIOS, SCHEDULES
from fencepost.model.assignors.group import Assign, Assignment, ClusterTopics, GroupMember
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.traces.events import Kind
from fencepost.traces.verdict import CheckStatus

ClientFault: TypeAlias = Fault[ClientSettings]
CLIENT_HANGS = "the client hangs"
"""What is found about a client, or an assignor, that never ends."""
CLIENT_STUCK = "the client gets stuck"
"""What is found about a client that does not take part in a scenario in time, as the reference client does."""
RANDOM_GROUPS = 400
"""How many random groups an assignor makes plans for."""
PROTOCOL = ClassicClientSchedules(is_driven=True)


# -- members and fetchers --------------------------------------------------------------------------------------------


def make_player(settings: ClientSettings, facts: ClientFacts) -> ClientPlayer:
    """The player with the reference client, which the kit drives."""
    subject = reference.make_subject(settings)
    logging.getLogger("fencepost.adapters.serve").setLevel(logging.CRITICAL)  # what clients do is judged, and no news
    return ClientPlayer(
        subject,
        "reference",
        DRIVEN_CLIENTS.follow,
        subject.start_cluster,
        30.0,
        clock="virtual",
        is_driven=True,
        facts=facts,
    )


def make_bench(settings: ClientSettings) -> Bench:
    """A bench for a client with whatever is active in this process, with the facts that a first scenario would show."""
    names = tuple(strategy.name for strategy in settings.strategies)
    given = reference.make_subject(settings).settings
    facts = ClientFacts(names, given.session_timeout, given.rebalance_timeout, settings.instance is not None)
    return Bench(PROTOCOL, partial(make_player, settings, facts), DRIVEN_CLIENTS.judge)


def play_scenario(settings: ClientSettings, scenario: Scenario, attempt: str = "run") -> ScenarioRun:
    """The run of a scenario, or of a schedule as one, with whatever is active in this process."""
    return run_virtual(make_bench(settings).make_player().play(scenario, attempt))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedClient(Bench):
    """A bench whose client has a fault while it is played with. What the client violates without it does not count."""

    fault: ClientFault

    def play(self, schedule: Schedule, judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """As `Bench.play`, with the fault."""
        with self.fault.activate():
            return Bench.play(self, schedule, judge_trace)

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """As `Bench.violated_by`, without what the client violates without the fault."""
        found = Bench.violated_by(self, schedule)
        return found - Bench(self.protocol, self.make_player, self.judge).violated_by(schedule) if found else found


def make_faulty_bench(fault: ClientFault, clock: CpuClock) -> ComparedClient:
    """A bench on which a client with a fault is hunted."""
    whole = make_bench(fault.setting)
    return ComparedClient(whole.protocol, whole.make_player, whole.judge, fault=fault)


def unusual_in(run: ScenarioRun) -> frozenset[str]:
    """The requirements that a client keeps in an unusual way."""
    return frozenset(check.requirement for check in run.verdict.check_results if check.status is CheckStatus.UNUSUAL)


CLIENTS: Stand[ClientSettings] = Stand(
    strategies=(SCHEDULES, SCENARIOS, REMARKS),
    plays=lambda strategy: CLIENT_SCENARIOS,
    play=play_scenario,
    shipped=nullcontext,
    bench=make_faulty_bench,
    sources={SCHEDULES: partial(schedule_source, PROTOCOL)},
    describe_hang=lambda exceeded: CLIENT_HANGS,
    remarks=lambda run: frozenset(UnusualCount(each, 0) for each in unusual_in(run)),
    stuck=CLIENT_STUCK,
)
"""How faults of members and fetchers are hunted."""


# -- assignors ------------------------------------------------------------------------------------------------------


def hunt_by_groups(task: HuntTask, fault: ClientFault) -> HuntResult:
    """Have each assignor make plans for chosen and for random groups until a requirement is broken."""
    begun = time.process_time()
    for tried, name in enumerate(ASSIGNORS, 1):
        report = AssignorTest(name, with_fault(name, fault.activate), RANDOM_GROUPS, task.seed).run()
        failed = [result.id for result in report.failed_results()]
        unusual = [result.id for result in report.results if is_unusual(result)]
        if failed or unusual:
            both = failed or unusual
            named = next((id for id in both if id in fault.breaks), both[0])
            return HuntResult(task, named, tried, time.process_time() - begun, 0, (name,))
    return HuntResult(task, "", len(ASSIGNORS), time.process_time() - begun)


def is_unusual(result: RequirementResult) -> bool:
    """Whether a recommendation is not kept; the shipped assignors keep all."""
    return result.remark is not None and result.remark.kind is RemarkKind.UNUSUAL


def with_fault(name: str, activate: Callable[[], AbstractContextManager[None]]) -> Assign:
    """The assignor with this name while a context is active; whatever it raises is an `AssignorError`."""

    def assign(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
        with activate():
            try:
                return ASSIGNORS[name].assign(members, cluster)
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise AssignorError(f"it fails: {type(error).__name__}") from error

    return assign


# -- mutants of members ----------------------------------------------------------------------------------------------

SECONDS_FOR_ONE = 10.0
"""Of a core, for a schedule or a scenario: one that takes longer hangs."""
COMPARED_KINDS = (Kind.REQUEST, Kind.CALLBACK, Kind.POLL)


@dataclass(frozen=True, slots=True)
class MutantOutcome:
    """What was found about a mutant: by which requirement or error, after how many plays and seconds of a core.
    Where nothing was, `differs` says whether it did anything else than the shipped client."""

    name: str
    found: str
    plays: int
    seconds: float
    differs: bool = True


@cache
def plays_of(seed: int, count: int) -> tuple[tuple[ClientSettings, Scenario], ...]:
    """All scenarios, and then so many schedules of a seed, each for every kind of client."""
    schedules = tuple(PROTOCOL.scenario_of(each.schedule) for each in PROTOCOL.generate(seed, 0, count))
    usual = ((kind, play) for plays in (CLIENT_SCENARIOS, schedules) for kind in KINDS.values() for play in plays)
    first_offsets = ((NO_POLICY, play) for play in CLIENT_SCENARIOS if "MCOMMIT-19" in play.requirements)
    return (*usual, *first_offsets)


def hunt_mutant(fault: ClientFault, seed: int, count: int) -> MutantOutcome:
    """Play all scenarios and so many schedules with a mutant until one shows twice what the shipped client does not."""
    begun, played, differs, stuck = time.process_time(), 0, False, ""
    for played, (settings, scenario) in enumerate(plays_of(seed, count), 1):
        mutant, misconduct = replace(fault, setting=settings), ""
        shipped = usual_run(CLIENTS, settings, scenario)
        try:
            with cpu_limit(SECONDS_FOR_ONE):
                run = CLIENTS.run_with(mutant, scenario)
                misconduct = run.misconduct and "misconduct"
                shown = shown_by(run) - shown_by(shipped)
                found = min(shown & shown_by(CLIENTS.run_with(mutant, scenario)), default="") if shown else ""
                stuck = stuck or (CLIENT_STUCK if is_stuck(CLIENTS, mutant, scenario, run) else "")
        except CpuLimitExceeded:
            found = CLIENT_HANGS
        except Exception as error:  # a mutant may raise anything
            found = f"the client raises {type(error).__name__}"
        if found or misconduct:
            return MutantOutcome(fault.id, found or misconduct, played, time.process_time() - begun)
        differs |= actions_of(run) != actions_of(shipped)
    return MutantOutcome(fault.id, stuck, played, time.process_time() - begun, differs)


def shown_by(run: ScenarioRun) -> frozenset[str]:
    """The requirements that a client violates, and the recommendations that it does not keep."""
    return run.verdict.violated | unusual_in(run)


def actions_of(run: ScenarioRun) -> tuple[tuple[int, str, str], ...]:
    """What a client did, with the times, but for the ids in it; in no order where that was at once, by chance."""
    done = ((event.time, event.kind.value, event.api) for event in run.events if event.kind in COMPARED_KINDS)
    return tuple(sorted(done))
