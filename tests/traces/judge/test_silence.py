"""Silence in traces: overdue responses are violations beside a sign of life, and nothing else is."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.play import record_scenario
from fencepost.conformance.subject import Scenario
from fencepost.model.errors import Error
from fencepost.traces.classic.partial_trace import ASSUMED_SETTINGS_REASON, MAX_UNSEEN_SESSION_MS
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.judge.groups.group_judge import SILENCE_GRACE_MS
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import UNCLASSIFIED, TraceVerdict
from tests.support.faulty_coordinators import (
    NEVER_ENDS_JOIN_PHASE,
    NEVER_HANDS_OUT_ASSIGNMENTS,
    altering_coordinator,
    drop_responses,
)

DELAY_MS = BUNDLED_SETTINGS.initial_rebalance_delay
"""When the first JoinGroup of a group is due."""
GRACE_MS = 100
"""How late a response may be in a trace on a wall clock."""
Trace = tuple[Header, tuple[Event, ...]]


def record(coordinator: type[Coordinator], play: Callable[..., object]) -> Trace:
    """The trace of a scenario on a coordinator, on virtual time."""

    async def run() -> Trace:
        target = InProcessTarget(BUNDLED_SETTINGS, make_coordinator=coordinator)
        scenario = Scenario("silence", (), play)  # type: ignore[arg-type]
        run = await record_scenario(scenario, target, await target.open(), "g", grace=0)
        return run.header, run.events

    return run_virtual(run())


def join_and_look(*looks: int) -> Callable[..., object]:
    """A scenario in which one member joins, and the group is described at these times."""

    async def play(group: ScenarioContext) -> None:
        group.join(group.member("A"), version=3)
        for time in looks:
            await group.sleep(time - group.now_ms)
            await group.describe_groups()

    return play


def on_wall_clock(trace: Trace, order: Order = Order.INTERVALS) -> Trace:
    """The same trace, recorded on a wall clock."""
    header, events = trace
    return replace(header, clock="wall", order=order, grace=GRACE_MS), events


def silent_join(verdict: TraceVerdict) -> list[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    """The violations: which request, in which fields, of which requirements."""
    return [(each.sequence, each.fields, each.requirements) for each in verdict.violations]


OVERDUE = [(1, ("missing",), ("TIMER-16",))]
"""The JoinGroup, which is the first request after the annotation of the topics."""


@pytest.mark.parametrize(("look", "found"), [(DELAY_MS - 1, []), (DELAY_MS, []), (DELAY_MS + 1, OVERDUE)])
def test_on_virtual_time_there_is_no_grace(look: int, found: object) -> None:
    verdict = judge(*record(NEVER_ENDS_JOIN_PHASE, join_and_look(look)))
    assert (silent_join(verdict), verdict.inconclusive) == (found, ())


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("late", [False, True])
def test_on_a_wall_clock_there_is_grace(order: Order, late: bool) -> None:
    due = DELAY_MS + 2 * GRACE_MS + SILENCE_GRACE_MS
    looks = (100, due + 500 if late else due - 50)
    verdict = judge(*on_wall_clock(record(NEVER_ENDS_JOIN_PHASE, join_and_look(*looks)), order))
    assert (silent_join(verdict), verdict.inconclusive) == (OVERDUE if late else [], ())


LATE = join_and_look(100, 20_000)
"""There is no doubt that a response is overdue at the end."""


@pytest.mark.parametrize("order", list(Order))
def test_the_bundled_coordinator_is_never_silent(order: Order) -> None:
    for trace in (record(Coordinator, LATE), on_wall_clock(record(Coordinator, LATE), order)):
        verdict = judge(*trace)
        assert (verdict.violations, verdict.inconclusive) == ((), ())


def without_signs_of_life(events: Sequence[Event]) -> tuple[Event, ...]:
    """The trace in which nothing is answered any more after the first second."""
    return tuple(event for event in events if event.kind is not Kind.RESPONSE or event.time < 1_000)


def not_ready(events: Sequence[Event]) -> tuple[Event, ...]:
    """The trace in which the coordinator says in the end that it is not in charge."""
    row = {"group_id": "g", "error_code": int(Error.NOT_COORDINATOR), "group_state": "", "members": []}
    *rest, last = events
    return (*rest, replace(last, body={**last.body, "groups": [row]}))


def dropped(events: Sequence[Event]) -> tuple[Event, ...]:
    """The trace in which the client drops the connection of the JoinGroup before the response is due."""
    fault = Event(0, DELAY_MS - 1, 0, "A", Kind.FAULT, "drop", 0, {}, of=1)
    return renumbered(
        [*(each for each in events if each.time < 500), fault, *(each for each in events if each.time >= 500)]
    )


def renumbered(events: Sequence[Event]) -> tuple[Event, ...]:
    """The events with new sequence numbers."""
    numbers = {id(event): number for number, event in enumerate(events)}
    by_old = {event.sequence: numbers[id(event)] for event in events if event.kind is Kind.REQUEST and event.sequence}
    return tuple(
        replace(event, sequence=number, of=None if event.of is None else by_old.get(event.of, event.of))
        for number, event in enumerate(events)
    )


@pytest.mark.parametrize("change", [without_signs_of_life, not_ready, dropped])
@pytest.mark.parametrize("order", list(Order))
def test_without_a_sign_of_life_silence_is_no_violation(
    change: Callable[[Sequence[Event]], tuple[Event, ...]], order: Order
) -> None:
    header, events = on_wall_clock(record(NEVER_ENDS_JOIN_PHASE, LATE), order)
    assert silent_join(judge(header, events)) == OVERDUE
    assert judge(header, change(events)).violations == ()


def test_a_response_in_flight_when_the_run_ends_is_no_violation() -> None:
    header, events = record(Coordinator, LATE)
    cut = [event for event in events if event.time < DELAY_MS]
    assert cut[-1].kind is Kind.RESPONSE and judge(header, cut).violations == ()


def test_a_request_behind_one_without_a_response_is_not_overdue() -> None:
    """A broker reads the requests of a connection one by one."""

    async def play(group: ScenarioContext) -> None:
        group.join(group.member("A"), version=3)
        await group.sleep(100)
        group.heartbeat(group.member("A"))
        await group.sleep(100)
        await group.describe_groups()

    silent = altering_coordinator(drop_responses("Heartbeat"))
    header, events = record(silent, play)
    (violation,) = judge(header, events).violations
    assert violation.api == "Heartbeat"
    same = [replace(event, connection=events[1].connection) if event.api == "Heartbeat" else event for event in events]
    assert judge(header, same).violations == ()


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize(
    ("api", "requirement"), [("Heartbeat", "HB-02"), ("OffsetFetch", "FETCH-03"), ("LeaveGroup", "LEAVE-02")]
)
def test_a_request_that_has_to_be_answered_at_once_is_blamed_on_its_own_requirement(
    order: Order, api: str, requirement: str
) -> None:
    async def play(group: ScenarioContext) -> None:
        member = group.member("A")
        if api == "Heartbeat":
            group.heartbeat(member)
        elif api == "LeaveGroup":
            group.leave(member)
        else:
            group.fetch()
        await group.sleep(20_000)
        await group.describe_groups()

    header, events = on_wall_clock(record(altering_coordinator(drop_responses(api)), play), order)
    assert silent_join(judge(header, events)) == [(1, ("missing",), (requirement,))]


def test_followers_that_get_no_assignment_are_overdue() -> None:
    async def play(group: ScenarioContext) -> None:
        leader, follower = await group.form_generation(group.member("A"), group.member("B"))
        group.sync(follower)
        await group.sleep(10)
        await group.sync_leader(leader, follower)
        await group.sleep(10)
        await group.describe_groups()
        await group.sleep(10)
        await group.describe_groups()

    (violation,) = judge(*record(NEVER_HANDS_OUT_ASSIGNMENTS, play)).violations
    assert (violation.api, violation.requirements) == ("SyncGroup", ("SYNC-10",))
    assert judge(*record(Coordinator, play)).violations == ()


def hang_up(trace: Trace, api: str, fault: str) -> Trace:
    """The trace in which the coordinator's last response to an API is the end of the connection."""
    header, events = trace
    last = max(event.sequence for event in events if event.api == api and event.kind is Kind.RESPONSE)
    return header, tuple(
        replace(event, kind=Kind.FAULT, api=fault, body={"reason": "it closed it"}) if event.sequence == last else event
        for event in events
    )


@pytest.mark.parametrize("order", list(Order))
def test_a_coordinator_that_closes_the_connection_instead_of_answering_is_blamed(order: Order) -> None:
    """A broker may close a connection over a request that it cannot read; this one reads it from everybody else."""

    async def play(group: ScenarioContext) -> None:
        await group.heartbeat(group.member("A"))
        await group.sleep(20_000)
        await group.describe_groups()

    trace = on_wall_clock(record(Coordinator, play), order)
    (violation,) = judge(*hang_up(trace, "Heartbeat", "closed")).violations
    assert (violation.fields, violation.requirements) == (("closed",), ("HB-02",))
    assert violation.observed == "the connection was closed without an answer"
    assert judge(*hang_up(trace, "Heartbeat", "drop")).violations == ()


def test_a_connection_that_ends_while_a_join_is_parked_is_blamed() -> None:
    async def play(group: ScenarioContext) -> None:
        await group.join(group.member("A"), version=3)
        await group.describe_groups()

    header, events = hang_up(on_wall_clock(record(Coordinator, play)), "JoinGroup", "closed")
    (violation,) = judge(header, events).violations
    assert (violation.api, violation.fields) == ("JoinGroup", ("closed",))


def test_no_request_is_blamed_for_an_end_that_cuts_off_several() -> None:
    """Whichever of them brought the target down, the others say nothing of it."""

    async def play(group: ScenarioContext) -> None:
        for number in range(2):
            other = group.for_group(number)
            other.join(other.member("A"), version=3)
        await group.sleep(20_000)

    header, events = on_wall_clock(record(Coordinator, play))
    joins = [event for event in events if event.api == "JoinGroup" and event.kind is Kind.RESPONSE]
    for ends, requirements in ((joins[:1], "JOIN-08"), (joins, UNCLASSIFIED)):
        cut = {event.sequence: joins[0].time for event in ends}
        trace = [
            replace(each, kind=Kind.FAULT, api="closed", body={}, time=cut[each.sequence])
            if each.sequence in cut
            else each
            for each in events
        ]
        (violation,) = judge(header, trace).violations
        assert (violation.fields, violation.requirement) == (("closed",), requirements)


@pytest.mark.parametrize(("settings", "is_blamed"), [("assumed", False), ("told", True)])
def test_nobody_is_blamed_by_settings_that_are_only_assumed(settings: str, is_blamed: bool) -> None:
    """A trace that begins in the middle, and does not say how its target is set."""

    async def play(group: ScenarioContext) -> None:
        await group.form_stable_group(group.member("A"), group.member("B"))
        await group.sleep(2 * MAX_UNSEEN_SESSION_MS)
        group.delete_offsets([0])
        await group.sleep(30_000)
        await group.describe_groups()

    header, events = on_wall_clock(record(altering_coordinator(drop_responses("OffsetDelete")), play))
    first, *rest = events
    gap = replace(first, api="unknown", body={"reason": "the recording begins"})
    verdict = judge(replace(header, implementation={"settings": settings}), [gap, *rest])
    assert bool(verdict.violations) is is_blamed
    assert any(ASSUMED_SETTINGS_REASON in each for each in verdict.inconclusive) is not is_blamed
