"""Hunts of faulty clients: known bugs, put back into the reference client, and mutants of its model.

A hunt plays scenarios or random schedules in this process on virtual time, or has an assignor make plans, until a
violation is seen twice. All seconds are those of one core.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial

from fencepost.adapters.assignor import AssignorError
from fencepost.adapters.client.reference.driver import ReferenceSubject
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.assignors.run import AssignorTest
from fencepost.conformance.clients.classic import DRIVEN_CLIENTS
from fencepost.conformance.clients.classic import SCENARIOS as CLIENT_SCENARIOS
from fencepost.conformance.clients.classic.schedules.protocol import ClassicClientSchedules
from fencepost.conformance.clients.play import ClientPlay
from fencepost.conformance.clients.schedule_bench import ClientBench
from fencepost.conformance.clients.stage import ClientFacts
from fencepost.conformance.results import RemarkKind, RequirementResult
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.conformance.schedules.falsify import Counterexample, find_counterexample, schedule_source
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.zoo.cache import CpuClock
from fencepost.conformance.zoo.classic.clients.bug import ClientBug, Side
from fencepost.conformance.zoo.classic.clients.registry import CLIENT_BUGS
from fencepost.conformance.zoo.hunt import HANG_SECONDS, HuntResult, HuntTask
from fencepost.conformance.zoo.strategies import GROUPS, REMARKS, SCENARIOS, SCHEDULES
from fencepost.conformance.zoo.timeouts import CpuLimitExceeded, cpu_limit
from fencepost.model.assignors.group import Assign, Assignment, ClusterTopics, GroupMember
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.traces.events import Event, Kind
from fencepost.traces.verdict import CheckStatus

CLIENT_HANGS = "the client hangs"
"""What is found about a client, or an assignor, that never ends."""
CLIENT_STUCK = "the client gets stuck"
"""What is found about a client that does not take part in a scenario in time, as the reference client does."""
RANDOM_GROUPS = 400
"""How many random groups an assignor makes plans for."""
MEMBER_STRATEGIES = (SCHEDULES, SCENARIOS, REMARKS)
"""How a faulty member or fetcher is hunted, the plainest first."""


def strategies_for(bug: ClientBug) -> tuple[str, ...]:
    """How a bug is hunted."""
    return (GROUPS,) if bug.side is Side.ASSIGNOR else MEMBER_STRATEGIES


def hunt_client(task: HuntTask) -> HuntResult:
    """Run a hunt for a bug of the zoo."""
    return hunt_bug(task, CLIENT_BUGS[task.name])


def hunt_bug(task: HuntTask, bug: ClientBug) -> HuntResult:
    """Run a hunt for a bug. A client that hangs is found by that."""
    begun = time.process_time()
    logging.getLogger("fencepost.adapters.serve").setLevel(logging.CRITICAL)  # what clients do is judged, and no news
    try:
        with cpu_limit(task.seconds + task.shrink + HANG_SECONDS):
            match task.strategy:
                case "groups":
                    return hunt_by_groups(task, bug)
                case "schedules":
                    return hunt_by_schedules(task, bug)
                case "scenarios":
                    return hunt_by_scenarios(task, bug)
                case _:
                    return hunt_by_remarks(task, bug)
    except CpuLimitExceeded:
        return HuntResult(task, CLIENT_HANGS, 1, time.process_time() - begun)


# -- members and fetchers -------------------------------------------------------------------------------------------


def facts_about(settings: ClientSettings) -> ClientFacts:
    """What the first scenario would show of a client."""
    names = tuple(strategy.name for strategy in settings.strategies)
    return ClientFacts(names, settings.session_timeout, settings.rebalance_timeout)


def make_play(settings: ClientSettings) -> ClientPlay:
    """A play with the reference client, which the kit drives."""
    subject = ReferenceSubject(settings, is_driven=True)
    follow = DRIVEN_CLIENTS.follow
    return ClientPlay(subject, "reference", follow, subject.start_cluster, 30.0, clock="virtual", is_driven=True)


@dataclass(frozen=True, slots=True)
class FaultyClientBench(ClientBench):
    """A bench whose client has a fault while it is played with. What the client violates without it does not count."""

    bug: ClientBug | None = None

    def play(self, schedule: Schedule) -> ScenarioRun:
        """As `ClientBench.play`, with the fault."""
        assert self.bug is not None
        with self.bug.activate():
            return ClientBench.play(self, schedule)

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """As `ClientBench.violated_by`, without what the client violates without the fault."""
        found = ClientBench.violated_by(self, schedule)
        return found - ClientBench(self.protocol, self.make_play, self.facts).violated_by(schedule) if found else found


def hunt_by_schedules(task: HuntTask, bug: ClientBug) -> HuntResult:
    """Play random schedules until one shows a violation twice."""
    protocol = ClassicClientSchedules(is_driven=True)
    bench = FaultyClientBench(protocol, partial(make_play, bug.settings), facts_about(bug.settings), bug)
    found = find_counterexample(bench, schedule_source(protocol, task.seed), task.seconds, task.shrink, CpuClock())
    if not isinstance(found, Counterexample):
        return HuntResult(task, "", found.schedules, found.seconds)
    moves = tuple(str(move) for move in found.shrunk.moves)
    return HuntResult(task, found.requirement, found.schedules, found.seconds, found.requests, moves)


def play_scenarios(bug: ClientBug, names: Iterable[str] = ()) -> Iterator[tuple[int, ScenarioRun]]:
    """The run of each scenario, or of those with these names, with their numbers from 1 on."""
    chosen = set(names)
    for number, scenario in enumerate(CLIENT_SCENARIOS, 1):
        if not chosen or scenario.name in chosen:
            with bug.activate():
                run = run_virtual(make_play(bug.settings).play(scenario, facts_about(bug.settings)))
            yield number, run  # without the fault: who takes the run may compare it with the shipped client's


def hunt_by_scenarios(task: HuntTask, bug: ClientBug) -> HuntResult:
    """Play the scenarios until one shows a violation twice, or else one in which the client gets stuck twice."""
    begun, tried, stuck = time.process_time(), 0, ""
    for tried, run in play_scenarios(bug):
        if found := run.verdict.violated:
            ((_, again),) = play_scenarios(bug, [run.scenario.name])
            if both := (found & again.verdict.violated) - usual_violations(bug.settings, run.scenario.name):
                wanted = [each for each in run.verdict.violations if each.requirement in both]
                first = min(wanted, key=lambda each: (each.requirement not in bug.breaks, each.sequence))
                requests = count_requests(run.events, first.sequence)
                seconds = time.process_time() - begun
                return HuntResult(task, first.requirement, tried, seconds, requests, (run.scenario.name,))
        if not stuck and is_stuck(bug, run):
            stuck = run.scenario.name
        if time.process_time() - begun > task.seconds:
            break
    seconds = time.process_time() - begun
    return HuntResult(task, CLIENT_STUCK if stuck else "", tried, seconds, 0, (stuck,) if stuck else ())


def is_stuck(bug: ClientBug, run: ScenarioRun) -> bool:
    """Whether a scenario cannot go on with a faulty client, twice, and can with the reference client: a report calls it
    inconclusive, and never conformant."""
    name = run.scenario.name
    if not run.blocked or usual_run(bug.settings, name).blocked:
        return False
    ((_, again),) = play_scenarios(bug, [name])
    return bool(again.blocked)


def hunt_by_remarks(task: HuntTask, bug: ClientBug) -> HuntResult:
    """Play the scenarios, and find the first remark that is not made about the reference client."""
    begun, tried = time.process_time(), 0
    for tried, run in play_scenarios(bug):
        news = unusual_in(run) - usual_remarks(bug.settings, run.scenario.name)
        if news:
            ((_, again),) = play_scenarios(bug, [run.scenario.name])
            if both := sorted(news & unusual_in(again)):
                first = next((id for id in both if id in bug.breaks), both[0])
                return HuntResult(task, first, tried, time.process_time() - begun, 0, (run.scenario.name,))
        if time.process_time() - begun > task.seconds:
            break
    return HuntResult(task, "", tried, time.process_time() - begun)


def unusual_in(run: ScenarioRun) -> frozenset[str]:
    """The requirements that a client keeps in an unusual way."""
    return frozenset(check.requirement for check in run.verdict.check_results if check.status is CheckStatus.UNUSUAL)


def usual_remarks(settings: ClientSettings, name: str) -> frozenset[str]:
    """The remarks about the reference client without a fault."""
    return unusual_in(usual_run(settings, name))


def usual_violations(settings: ClientSettings, name: str) -> frozenset[str]:
    """The requirements that the reference client violates without a fault: none, unless a check is wrong."""
    return usual_run(settings, name).verdict.violated


@cache
def usual_run(settings: ClientSettings, name: str) -> ScenarioRun:
    """The run of a scenario with the reference client without a fault."""
    scenario = next(each for each in CLIENT_SCENARIOS if each.name == name)
    return run_virtual(make_play(settings).play(scenario, facts_about(settings)))


def count_requests(events: Sequence[Event], sequence: int) -> int:
    """The number of requests up to the one with this sequence number."""
    return sum(event.kind is Kind.REQUEST and event.sequence <= sequence for event in events)


# -- assignors ------------------------------------------------------------------------------------------------------


def hunt_by_groups(task: HuntTask, bug: ClientBug) -> HuntResult:
    """Have each assignor make plans for chosen and for random groups until a requirement is broken."""
    begun = time.process_time()
    for tried, name in enumerate(ASSIGNORS, 1):
        report = AssignorTest(name, with_fault(name, bug.activate), RANDOM_GROUPS, task.seed).run()
        failed = [result.id for result in report.failed_results()]
        unusual = [result.id for result in report.results if is_unusual(result)]
        if failed or unusual:
            both = failed or unusual
            named = next((id for id in both if id in bug.breaks), both[0])
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
