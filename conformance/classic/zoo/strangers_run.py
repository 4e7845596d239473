"""A run on a stranger that speaks the classic protocol, as `fencepost test bundled` has it."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

from fencepost.adapters.address import format_address
from fencepost.adapters.serve.server import Server, start_server
from fencepost.adapters.target import Target
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.analysis.causes import find_causes
from fencepost.conformance.classic.zoo.bugs.environments import PLAIN, CrashingTarget, Environment
from fencepost.conformance.classic.zoo.coordinator_stand import CoordinatorFault, skip_judging
from fencepost.conformance.classic.zoo.strangers import DIFFERENCES
from fencepost.conformance.classic.zoo.strangers_faults import fault_pools
from fencepost.conformance.classic.zoo.strangers_names import names_of
from fencepost.conformance.events import RunEvent
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import EndKind, RemarkKind, Report, Verdict
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.run.play import DEFAULT_GRACE_MS, NewTarget
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.runner import requirements_of
from fencepost.conformance.subject import Scenario
from fencepost.conformance.testing.threads import enter_in_thread
from fencepost.conformance.zoo.fault import Fault, Patch
from fencepost.conformance.zoo.strangers import (
    UNCLASSIFIED,
    Disguise,
    FaultNames,
    Stranger,
    StrangerKind,
    StrangerOutcome,
    find_fault,
    play_named,
    put_in_differences,
)
from fencepost.model.classic.catalogue import CLASSIC
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind

MAX_RUN_SECONDS = 150.0
"""The limit of the time of a run."""
SHRINK_SECONDS = 1.0


def goes_with(fault: Fault[Any], others: Sequence[Fault[Any]], differences: Sequence[str]) -> bool:
    """Whether a fault fits beside others: one environment is enough."""
    return fault.setting is PLAIN or (
        "environment" not in differences and all(each.setting is PLAIN for each in others)
    )


def play_stranger(stranger: Stranger) -> StrangerOutcome:
    """Put differences and faults into this process, test, and take them out again."""
    return play_named(stranger, fault_with, names_of, play_faulty, shows_on, names_beside)


def play_faulty(stranger: Stranger, faults: tuple[CoordinatorFault, ...]) -> StrangerOutcome:
    """The outcome of a run on a stranger with these faults."""
    begun = time.process_time()
    with Patch() as patch:
        disguise = put_in_differences(DIFFERENCES, stranger.differences, patch)
        for fault in faults:
            fault.apply(patch)
            disguise.allow(fault.setting.grace, fault.setting.order)
        test = test_over_network if stranger.is_remote else test_disguised
        report = test(stranger, disguise)
        forms_no_group = bool(faults) and not forms_groups(make_run(stranger, disguise))
    return replace(outcome_of(stranger, report, time.process_time() - begun), forms_no_group=forms_no_group)


LONE_MEMBER = Scenario("lone-member", (), lambda group: group.form_stable_group(group.member("A")))


def forms_groups(run: BundledRun) -> bool:
    """Whether the coordinator of a run brings a member into a stable group."""
    player = NewTarget(partial(run.make_target, run.settings), run.grace)
    try:
        events = run_virtual(player.play(LONE_MEMBER, LONE_MEMBER.name, skip_judging)).events
    except Exception:  # a mutant may raise anything
        return False
    synced = (each.body for each in events if each.api == "SyncGroup" and each.kind is Kind.RESPONSE)
    return any(body["error_code"] == Error.NONE for body in synced)


def shows_on(stranger: Stranger, faults: Sequence[CoordinatorFault], id: str) -> bool:
    """Whether one of some faults changes anything that scenarios see of a stranger that has the others."""
    fault = fault_with(id)
    with Patch() as patch:
        disguise = put_in_differences(DIFFERENCES, stranger.differences, patch)
        for other in (each for each in faults if each.id != id):
            other.apply(patch)
        disguise.allow(fault.setting.grace, fault.setting.order)
        fault.setting.install(patch)
        run = make_run(stranger, disguise)
        before = list(traces_on(run))
        fault.apply(patch)
        return any(one != other for one, other in zip_longest(before, traces_on(run)))


def names_beside(stranger: Stranger, faults: tuple[CoordinatorFault, ...]) -> FaultNames | None:
    """The names of faults beside the differences of a stranger, which change what shows where."""

    def install(patch: Patch) -> None:
        put_in_differences(DIFFERENCES, stranger.differences, patch)
        for fault in faults:
            fault.setting.install(patch)

    with Patch() as patch:
        disguise = put_in_differences(DIFFERENCES, stranger.differences, patch)
    for fault in faults:
        disguise.allow(fault.setting.grace, fault.setting.order)
    settings = replace(BUNDLED_SETTINGS, **disguise.settings)
    return names_of(faults, Environment(str(stranger), install, disguise.grace, disguise.order, settings))


def traces_on(run: BundledRun) -> Iterator[tuple[Event, ...]]:
    """What the scenarios of a run see, not judged."""
    description = run_virtual(run.describe_target())
    for scenario in run.select(tuple(CLASSIC.requirements.values()), description).scenarios:
        player = NewTarget(partial(run.make_target, run.settings), run.grace)
        yield run_virtual(player.play(scenario, scenario.name, skip_judging)).events


def fault_with(id: str) -> CoordinatorFault:
    """The fault with this id."""
    return find_fault(fault_pools(), id)


def plan_for(stranger: Stranger, target: str) -> Plan:
    """The plan of the run on a stranger; little is shrunk, as only verdicts count."""
    seed = stranger.seed * 1_000 + stranger.number
    return Plan(
        target,
        patterns=stranger.only,
        seed=seed,
        schedules=stranger.schedules,
        seconds=MAX_RUN_SECONDS,
        shrink_seconds=SHRINK_SECONDS,
    )


def make_run(stranger: Stranger, disguise: Disguise) -> BundledRun:
    """A run on the bundled coordinator as it is in this process at present."""
    profile = Profile(grace=disguise.grace, settings=disguise.settings)
    make_target = partial(make_disguised, disguise)
    return BundledRun(plan_for(stranger, BUNDLED), profile, make_target, can_configure=False)


def test_disguised(stranger: Stranger, disguise: Disguise) -> Report:
    """The report of a run in this process."""
    run = make_run(stranger, disguise)
    return asyncio.run(run.run(requirements_of(run.plan), drop_event))


def test_over_network(stranger: Stranger, disguise: Disguise) -> Report:
    """The report of a run on the bundled server as it is in this process at present."""
    settings = replace(BUNDLED_SETTINGS, **disguise.settings)
    with enter_in_thread(partial(serve_disguised, settings, disguise.nodes)) as server:
        plan = plan_for(stranger, f"kafka://{format_address(*server.address)}")
        run = RemoteRun(plan, Profile(grace=DEFAULT_GRACE_MS + disguise.grace))
        return asyncio.run(run.run(requirements_of(plan), drop_event))


@asynccontextmanager
async def serve_disguised(settings: Settings, nodes: int) -> AsyncIterator[Server]:
    """The bundled server on loopback, as it is in this process at present."""
    server = await start_server("127.0.0.1", 0, settings, nodes=nodes)
    try:
        yield server
    finally:
        await server.close()


def drop_event(event: RunEvent) -> None:
    """Take no notice of an event of a run."""


def make_disguised(disguise: Disguise, settings: Settings) -> Target:
    """A bundled coordinator that crashes as a process does."""
    return CrashingTarget(settings, order=disguise.order)


def outcome_of(stranger: Stranger, report: Report, seconds: float) -> StrangerOutcome:
    """What a report says of a stranger."""
    causes = find_causes(report)
    failed = dict.fromkeys(each for cause in causes for each in cause.requirements)
    titles = {id: cause.title for cause in causes for id in cause.requirements}
    if report.unclassified:
        failed[UNCLASSIFIED] = None
        titles[UNCLASSIFIED] = report.unclassified[0].title
    ended = report.ended
    as_it_should = (EndKind.TARGET_DOWN, EndKind.STOPPED)
    reason = "" if ended is None or ended.kind in as_it_should else f"{ended.kind}: {ended.reason}"
    return StrangerOutcome(
        stranger,
        reason,
        tuple(failed),
        {each.id: each.note for each in report.results if each.verdict is Verdict.INCONCLUSIVE},
        sum(each.verdict is Verdict.PASS for each in report.results),
        frozenset(each.id for each in report.results if each.remark and each.remark.kind is RemarkKind.UNUSUAL),
        frozenset(each.id for each in report.results if each.verdict in (Verdict.UNSUPPORTED, Verdict.NOT_OBSERVED)),
        seconds,
        titles,
    )


CLASSIC_STRANGERS = StrangerKind(DIFFERENCES, fault_pools, goes_with, play_stranger, lambda: CLASSIC.requirements)
"""Strangers that coordinate classic groups."""
