"""How faults of clients are played: on the reference client, in this process and on virtual time.

Members and fetchers play scenarios and random schedules, assignors make plans for groups. What a client violates
without its fault does not count. A scenario that cannot go on with a fault, twice, and can without it shows the fault,
if nothing else does.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeAlias

from fencepost.adapters.assignor import AssignorError
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.assignors.run import AssignorTest
from fencepost.conformance.classic.clients import DRIVEN_CLIENTS
from fencepost.conformance.classic.clients import SCENARIOS as CLIENT_SCENARIOS
from fencepost.conformance.classic.clients.schedules.protocol import ClassicClientSchedules
from fencepost.conformance.classic.zoo.clients import reference
from fencepost.conformance.clients.stage import ClientFacts, ClientPlayer
from fencepost.conformance.results import RemarkKind
from fencepost.conformance.run.play import Bench, schedule_source
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.conformance.zoo.fault import Fault
from fencepost.conformance.zoo.hunt import HANG_SECONDS, BenchWithFault, HuntResult, HuntTask, Stand, UnusualCount
from fencepost.conformance.zoo.measuring import CpuClock, CpuLimitExceeded, cpu_limit
from fencepost.conformance.zoo.strategies import REMARKS, SCENARIOS, SCHEDULES
from fencepost.model.assignors.group import Assign, Assignment, ClusterTopics, GroupMember
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.model.classic.member.settings import ClientSettings
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
    """The player with the reference client as `make_subject` makes it."""
    subject = reference.make_subject(settings)
    logging.getLogger("fencepost.adapters.serve").setLevel(logging.CRITICAL)  # what clients do is judged, and no news
    return ClientPlayer(
        subject,
        "reference",
        DRIVEN_CLIENTS.judge,
        subject.start_cluster,
        30.0,
        clock="virtual",
        is_driven=subject.is_driven,
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


def make_faulty_bench(fault: ClientFault, clock: CpuClock) -> BenchWithFault:
    """A bench on which a client with a fault is hunted."""
    whole = make_bench(fault.setting)
    return BenchWithFault(whole.protocol, whole.make_player, whole.judge, fault=fault)


def unusual_in(run: ScenarioRun) -> frozenset[str]:
    """The requirements that a client keeps in an unusual way."""
    return frozenset(check.requirement for check in run.verdict.check_results if check.status is CheckStatus.UNUSUAL)


def shown_by(run: ScenarioRun) -> frozenset[str]:
    """The requirements that a client violates, and the recommendations that it does not keep."""
    return run.verdict.violated | unusual_in(run)


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


def hunt_assignor(task: HuntTask, fault: ClientFault) -> HuntResult:
    """Have each assignor make plans for chosen and random groups until a requirement is broken, or a recommendation.

    The shipped ones keep all. One that hangs is found by that.
    """
    begun, tried, found, name = time.process_time(), 0, list[str](), ""
    try:
        with cpu_limit(task.seconds + HANG_SECONDS):
            for name in ASSIGNORS:
                tried += 1
                report = AssignorTest(name, with_fault(name, fault.activate), RANDOM_GROUPS, task.seed).run()
                unusual = (each for each in report.results if each.remark and each.remark.kind is RemarkKind.UNUSUAL)
                found = [result.id for result in [*report.failed_results()] or unusual]
                if found:
                    break
    except CpuLimitExceeded:
        return HuntResult(task, CLIENT_HANGS, 1, time.process_time() - begun)
    named = next((id for id in found if id in fault.breaks), found[0] if found else "")
    return HuntResult(task, named, tried, time.process_time() - begun, 0, (name,) if found else ())


def with_fault(name: str, activate: Callable[[], AbstractContextManager[None]]) -> Assign:
    """The assignor with this name while a context is active; whatever it raises is an `AssignorError`."""

    def assign(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
        with activate():
            try:
                return ASSIGNORS[name].assign(members, cluster)
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise AssignorError(f"it fails: {type(error).__name__}") from error

    return assign
