"""What the judge does between proved steps: its stated properties, and for each a broken judge that does not have it.

The search takes a request at once that may as well be handled later (`is_commutative`), and takes sessions together
that began at almost one time (`extend_session`). Both have to lose no explanation and to add none.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.internal_actions import ArmedTimer, Timer, armed_timers, fire_timer
from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core.state import (
    Choices,
    Context,
    HeartbeatRequest,
    JoinRequest,
    LeaveRequest,
    Protocol,
    Slot,
    SyncRequest,
)
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup, Request, SyncGroup
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.protocol import Cluster
from fencepost.model.settings import Settings
from fencepost.traces.classic import calm_group, nondeterminism, stepping
from fencepost.traces.classic.stepping import is_commutative
from fencepost.traces.events import Header, Kind, Lookahead, Order
from fencepost.traces.judge.judge import Judge, judge
from fencepost.traces.verdict import TraceVerdict
from tests.support.edits import mutant
from tests.support.plain_values import build
from tests.support.trace_builder import GRACE, SETTINGS, OneMemberTrace, fetch_offset, join_body, sync_response

CLUSTER = Cluster(Settings(initial_rebalance_delay=0), {})
OFFERS = (build(Protocol, "p", b""),)
SESSION, FIRST_WAIT = 10_000, 300_000
SENDERS = ("a", "b")
WALKS, LENGTH = 7, 9
"""How many walks there are, and how many moves each has."""

Move = Request | ArmedTimer


def requests(handle: int) -> Iterator[Request]:
    """What members and strangers may send, all with this handle."""
    joins = {"session_timeout": SESSION, "rebalance_timeout": SESSION, "can_skip": True}
    for requires_id in (False, True):
        yield JoinGroup("g", build(JoinRequest, handle, None, None, "t", OFFERS, requires_id=requires_id, **joins))
    for sender in SENDERS:
        yield JoinGroup("g", build(JoinRequest, handle, sender, None, "t", OFFERS, requires_id=True, **joins))
        yield LeaveGroup("g", build(LeaveRequest, handle, ((sender, None),)))
        for generation in (0, 1):
            yield Heartbeat("g", build(HeartbeatRequest, handle, sender, None, generation))
            yield SyncGroup("g", build(SyncRequest, handle, sender, None, generation, None, None, ()), complete=True)


def step(state: GroupState, move: Move, new_id: str, now: int) -> StepResult:
    """What comes of a move at a moment."""
    moment = Context(now, choices=build(Choices, new_id), dialect=Dialect(), new_member_timeout=FIRST_WAIT)
    if isinstance(move, ArmedTimer):
        return fire_timer(state, move, moment)
    return handle_request(state, move, moment, CLUSTER)


@dataclass(frozen=True, slots=True)
class Place:
    """A world on a walk, and the moment."""

    world: GroupState
    now: int


def places() -> Iterator[Place]:
    """The worlds of one group along a few random walks, in which timers of phases fire and sessions do not end."""
    for seed in range(WALKS):
        draw, world, now = random.Random(seed), GroupState(), 0
        for number in range(1, LENGTH + 1):
            phases = [timer for timer in armed_timers(world) if timer.kind is not Timer.MEMBER]
            known = [move for move in requests(number) if step(world, move, next_id(world), now).state is not world]
            move = draw.choice(phases or known if number % 3 == 0 else known or phases)
            now = max(now, moment_of(move, now))
            world = step(world, move, next_id(world), now).state
            yield Place(world, now)


def moment_of(move: Move, now: int) -> int:
    """When a move happens."""
    return max(now, move.deadline) if isinstance(move, ArmedTimer) else now


def next_id(state: GroupState) -> str:
    """The id that is issued next."""
    used = set() if state.group is None else {slot.id for slot in state.group.slots}
    return next((name for name in SENDERS if name not in used), "y")


PLACES = tuple(places())
MINE, THEIRS = 1_001, 1_002
"""The handles of a request that commutes, and of another one."""


def commuting(place: Place) -> Iterator[tuple[Request, StepResult]]:
    """The requests that are taken at once in a world, with what comes of them."""
    for request in requests(MINE):
        outcome = step(place.world, request, "y", place.now)
        if is_commutative(place.world, request, outcome.rule, outcome.state):
            yield request, outcome


def without_deadlines(state: GroupState) -> Any:
    """The state without the ends of sessions: sessions that begin at almost one time are taken together."""
    group = state.group
    if group is None:
        return state
    return evolve(state, group=evolve(group, slots=tuple(evolve(slot, deadline=0) for slot in group.slots)))


def reply_to(outcome: StepResult, handle: int) -> list[Any]:
    """What the request with this handle is answered."""
    return [reply.response for reply in outcome.replies if reply.handle == handle]


def lost_explanations() -> int:
    """How often a request handled later, with the same response, lets something happen that it prevents if handled at
    once."""
    lost = 0
    for place in PLACES:
        for request, first in commuting(place):
            for move in (*requests(THEIRS), *armed_timers(place.world)):
                now = moment_of(move, place.now)
                other = step(place.world, move, "y", now)
                later = step(other.state, request, "y", now)
                if reply_to(later, MINE) != reply_to(first, MINE):
                    continue
                second = step(first.state, move, "y", now)
                same = without_deadlines(second.state) == without_deadlines(later.state)
                lost += not (same and reply_to(second, THEIRS) == reply_to(other, THEIRS))
    return lost


def earlier_ends() -> int:
    """How often a request that is handled at once makes a timer due earlier."""
    pairs: list[tuple[Slot, Slot]] = []
    for place in PLACES:
        for _, outcome in commuting(place):
            if place.world.group is not None and outcome.state.group is not None:
                pairs += zip(place.world.group.slots, outcome.state.group.slots, strict=True)
    return sum(new.armed and old.armed and new.deadline < old.deadline for old, new in pairs)


def test_there_is_something_to_exchange() -> None:
    assert {outcome.rule for place in PLACES for _, outcome in commuting(place)} >= {
        "heartbeat.stable",
        "heartbeat.preparing",
        "sync.stable",
        "sync.other-generation",
        "join.unknown-member",
    }


def test_a_request_that_commutes_loses_no_explanation() -> None:
    assert lost_explanations() == 0
    assert earlier_ends() == 0


BROKEN: dict[str, tuple[Callable[..., Any], str, str, Callable[[], int]]] = {
    "the Heartbeat of a new member commutes": (is_commutative, " and not group.slots[place].is_new", "", earlier_ends),
    "a LeaveGroup commutes": (
        is_commutative,
        'rule == "sync.stable"',
        'rule in ("sync.stable", "leave.member")',
        lost_explanations,
    ),
    "a JoinGroup that begins a rebalance commutes": (
        is_commutative,
        'rule == "sync.stable"',
        'rule in ("sync.stable", "join.new", "join.stable.leader")',
        lost_explanations,
    ),
    "a SyncGroup of the leader commutes": (
        is_commutative,
        'rule == "sync.stable"',
        'rule in ("sync.stable", "sync.leader")',
        lost_explanations,
    ),
}
"""By what is wrong: a function of the judge, a text in it, what is there instead, and what shows it."""
EQUIVALENT = {
    "an id that is pending is refused for good": (is_commutative, " and not is_pending_id(group, request)", ""),
    "a SyncGroup of a generation to come commutes": (
        is_commutative,
        " and request.core.generation < group.generation",
        "",
    ),
}
"""Broken judges that judge alike: a request that changes nothing, and has the response that was seen, may be taken."""


@pytest.mark.parametrize("wrong", BROKEN)
def test_a_judge_that_exchanges_too_much_is_found(wrong: str) -> None:
    function, before, after, shows = BROKEN[wrong]
    with mutant(function, before, after):
        assert shows() > 0


@pytest.mark.parametrize("harmless", EQUIVALENT)
def test_a_judge_that_exchanges_what_changes_nothing_judges_alike(harmless: str) -> None:
    with mutant(*EQUIVALENT[harmless]):
        assert lost_explanations() == earlier_ends() == 0


# --- A session that is shortened ends when it should.


def shortened_session(silent_until: int, before: int = 3 * SESSION) -> OneMemberTrace:
    """A member joins again with a session that is shorter than before, and is heard of at this time."""
    tape = OneMemberTrace(Order.INTERVALS)
    response = {
        "error_code": 0,
        "generation_id": 1,
        "protocol_name": "p",
        "leader": "a",
        "member_id": "a",
        "members": [{"member_id": "a", "metadata": b"m"}],
    }
    tape.exchange(10, "JoinGroup", join_body("", before), response, 2)
    tape.sync(20, 1, sync_response(b"plan"))
    tape.exchange(30, "JoinGroup", join_body("a"), {**response, "generation_id": 2}, 2)
    tape.sync(40, 2, sync_response(b"plan"))
    tape.heartbeat(silent_until, 0, generation=2)
    return tape


def test_a_session_that_is_shortened_ends_earlier() -> None:
    assert not shortened_session(SESSION // 2).verdict().violations
    assert shortened_session(2 * SESSION).verdict().violations


def test_a_session_that_is_shortened_by_less_than_the_slack_may_end_when_it_was_going_to() -> None:
    silent, since_sync = 41 + SESSION + 2 * GRACE, 20
    assert not shortened_session(silent, SESSION + since_sync + 3 * GRACE // 2).verdict().violations
    assert shortened_session(silent, SESSION + since_sync + 5 * GRACE // 2).verdict().violations


@pytest.mark.parametrize("slack", ["3 * self.grace", "10 * self.grace"])
def test_a_judge_with_more_slack_is_found(slack: str) -> None:
    with mutant(stepping.CoordinatorStepper.apply_outcome, "2 * self.grace", slack):
        assert not shortened_session(41 + SESSION + 2 * GRACE, SESSION + 20 + 5 * GRACE // 2).verdict().violations


def test_a_judge_that_never_ends_a_session_earlier_is_found() -> None:
    with mutant(
        stepping.extend_deadline, "0 < high(before) - high(deadline) <= slack", "0 < high(before) - high(deadline)"
    ):
        assert not shortened_session(2 * SESSION).verdict().violations


# --- Offsets that a group had while it was empty for too long may be gone, until they are committed again (LAT-17).


def fetched_after(empty_ms: int, offset: int, *, is_committed_again: bool, order: Order) -> bool:
    """Whether this offset may be fetched by a member of a group that kept offset 5 while it was empty."""
    tape, begun = OneMemberTrace(order).form_stable_group(), 40 + empty_ms
    commit(tape, 30, "a", 1, 5)
    tape.exchange(40, "LeaveGroup", {"member_id": "a"}, {"error_code": 0}, 1)
    told = {"generation_id": 3, "protocol_name": "p", "leader": "b", "member_id": "b"}
    members = [{"member_id": "b", "metadata": b"m"}]
    tape.exchange(begun, "JoinGroup", join_body(""), {"error_code": 0, **told, "members": members}, 2)
    plan = {"generation_id": 3, "member_id": "b", "assignments": [{"member_id": "b", "assignment": b"plan"}]}
    tape.exchange(begun + 10, "SyncGroup", plan, sync_response(b"plan"), 1)
    if is_committed_again:
        commit(tape, begun + 20, "b", 3, 6)
    for number in range(3):
        tape.heartbeat(begun + 25 + number, 0, generation=3, member="b")
    fetch_offset(tape, begun + 30, offset)
    header = Header("test", order, "wall", replace(SETTINGS, offsets_retention=RETENTION), 10)
    return not judge(header, tape.events).violations


RETENTION = 1_000


def commit(tape: OneMemberTrace, time: int, member: str, generation: int, offset: int) -> None:
    """A member commits this offset of partition 0."""
    row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    membership = {"generation_id_or_member_epoch": generation, "member_id": member}
    body = {**membership, "topics": [{"name": "t", "partitions": [row]}]}
    done = {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "error_code": 0}]}]}
    tape.exchange(time, "OffsetCommit", body, done, 3)


@pytest.mark.parametrize("order", Order)
def test_an_offset_may_be_gone_once_its_group_was_empty_for_too_long(order: Order) -> None:
    assert fetched_after(5 * RETENTION, 5, is_committed_again=False, order=order)
    assert fetched_after(5 * RETENTION, -1, is_committed_again=False, order=order)
    assert not fetched_after(RETENTION // 2, -1, is_committed_again=False, order=order)


@pytest.mark.parametrize("order", Order)
def test_an_offset_that_is_committed_again_is_there(order: Order) -> None:
    assert fetched_after(5 * RETENTION, 6, is_committed_again=True, order=order)
    assert not fetched_after(5 * RETENTION, -1, is_committed_again=True, order=order)


WRONG_DOUBTS = {
    "no offset is in doubt": ("doubtful if after.offsets", "frozenset() if after.offsets", -1, False),
    "an offset stays in doubt": ("if doubtful and before.offsets is not after.offsets", "if False", -1, True),
}
"""By what is wrong: a text in `maybe_expired_offsets`, what is there instead, the offset that is fetched, and whether
it was committed again."""


@pytest.mark.parametrize("wrong", WRONG_DOUBTS)
def test_a_judge_that_doubts_other_offsets_is_found(wrong: str) -> None:
    before, after, offset, again = WRONG_DOUBTS[wrong]
    with mutant(stepping.maybe_expired_offsets, before, after):
        assert fetched_after(5 * RETENTION, offset, is_committed_again=again, order=Order.TOTAL) is again


# --- A request repeats what was learned of another one only if it says the same.


def heartbeats_of_two_instances() -> OneMemberTrace:
    """A member's Heartbeats, and one that names an instance which the group does not have, all answered NONE."""
    tape = OneMemberTrace(Order.TOTAL).form_stable_group()
    for number in range(5):
        body = {"generation_id": 1, "member_id": "a"} | ({"group_instance_id": "other"} if number == 4 else {})
        tape.exchange(100 + number, "Heartbeat", body, {"error_code": 0}, 3)
    return tape


def test_a_heartbeat_that_names_an_instance_is_no_repetition() -> None:
    assert len(heartbeats_of_two_instances().verdict().violations) == 1


def test_a_judge_that_repeats_a_heartbeat_whatever_else_it_says_is_found() -> None:
    with mutant(calm_group.learn_step, "None if isinstance(asked, OffsetCommit) else operation.body", "None"):
        assert not heartbeats_of_two_instances().verdict().violations


# --- What a response decides about the target is kept, on the fast path too.


def commits_of_version_0(*errors: int) -> TraceVerdict:
    """Commits of version 0 into an active group, with these errors: a target keeps that version or it does not."""
    tape = OneMemberTrace(Order.TOTAL).form_stable_group()
    row = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    for number, error in enumerate(errors):
        refused = {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "error_code": error}]}]}
        body = {"topics": [{"name": "t", "partitions": [row]}]}
        tape.exchange(30 + 10 * number, "OffsetCommit", body, refused, 0)
    return tape.verdict()


def test_a_target_keeps_version_0_or_does_not() -> None:
    unknown, unsupported = Error.UNKNOWN_MEMBER_ID, Error.UNSUPPORTED_VERSION
    assert not commits_of_version_0(unknown, unknown).violations
    assert not commits_of_version_0(unsupported, unsupported).violations
    assert commits_of_version_0(unknown, unsupported).violations


def test_a_judge_that_decides_nothing_on_its_fast_path_is_found() -> None:
    with mutant(calm_group.take_fast_path, "probe.open_questions or ", ""):
        assert not commits_of_version_0(Error.UNKNOWN_MEMBER_ID, Error.UNSUPPORTED_VERSION).violations


# --- Nothing is repeated once a timer may be due.


def two_members_heard_of(silent_until: int) -> OneMemberTrace:
    """Two members, A with a session three times as long; their Heartbeats are repeated, and B's is next at this
    time."""
    tape = OneMemberTrace(Order.TOTAL)
    one = {"error_code": 0, "protocol_name": "p", "leader": "a"}
    view = [{"member_id": name, "metadata": b"m"} for name in SENDERS]
    alone = {**one, "generation_id": 1, "member_id": "a", "members": view[:1]}
    tape.exchange(10, "JoinGroup", join_body("", 3 * SESSION), alone, 2)
    tape.sync(20, 1, sync_response(b"plan"))
    joins = tape.send_request(30, "JoinGroup", join_body(""), 2)
    again = tape.send_request(40, "JoinGroup", join_body("a", 3 * SESSION), 2)
    tape.send_response(41, again, {**one, "generation_id": 2, "member_id": "a", "members": view})
    tape.send_response(41, joins, {**one, "generation_id": 2, "member_id": "b", "members": []})
    tape.sync(50, 2, sync_response(b"plan"))
    follows = {"generation_id": 2, "member_id": "b", "assignments": []}
    tape.exchange(60, "SyncGroup", follows, sync_response(b""), 1)
    for time, member in enumerate("bbbaaaaaa", 70):
        tape.heartbeat(time, 0, generation=2, member=member)
    tape.heartbeat(silent_until, 0, generation=2, member="b")
    return tape


def test_a_member_whose_session_is_over_repeats_nothing() -> None:
    assert not two_members_heard_of(SESSION // 2).verdict().violations
    assert [one.requirements for one in two_members_heard_of(2 * SESSION).verdict().violations] == [("HB-03",)]


def test_a_judge_that_waits_for_the_last_timer_is_found() -> None:
    with mutant(calm_group.earliest_deadline, "min(map", "max(map"):
        assert not two_members_heard_of(2 * SESSION).verdict().violations


# --- An id that no response to its member has shown is the one that another response shows first.


def described_as(*names: str) -> OneMemberTrace:
    """A member whose JoinGroup got no response, and whose group is described with these ids for it, one after the
    other."""
    tape = OneMemberTrace(Order.TOTAL)
    tape.exchange(10, "JoinGroup", join_body(""), None, 2)
    row = {"error_code": 0, "group_id": "g", "group_state": "CompletingRebalance", "protocol_type": "x"}
    for number, name in enumerate(names):
        member = {
            "member_id": name,
            "client_id": "",
            "client_host": "",
            "member_metadata": b"",
            "member_assignment": b"",
        }
        asked = tape.add_event(Kind.REQUEST, 40 + 10 * number, "DescribeGroups", {"groups": ["g"]}, version=1)
        described = {**row, "protocol_data": "", "members": [member]}
        tape.send_response(41 + 10 * number, asked, {"groups": [described]})
    return tape


def test_an_id_that_was_shown_once_stays() -> None:
    assert not described_as("a", "a").verdict().violations
    assert len(described_as("a", "b").verdict().violations) == 1


def listed_after_description(described: str, told: str) -> TraceVerdict:
    """A group is described with this id for a member whose JoinGroup got no response, and its leader is then told of
    another. It is judged as it happens: no response is known before it comes."""
    tape = OneMemberTrace(Order.TOTAL).form_stable_group()
    tape.exchange(40, "JoinGroup", join_body(""), None, 2)
    again = tape.send_request(50, "JoinGroup", join_body("a"), 2)
    asked = tape.add_event(Kind.REQUEST, 51, "DescribeGroups", {"groups": ["g"]}, version=1)
    nothing = {"client_id": "", "client_host": "", "member_metadata": b"", "member_assignment": b""}
    row = {"error_code": 0, "group_id": "g", "group_state": "CompletingRebalance", "protocol_type": "x"}
    members = [{"member_id": name, **nothing} for name in ("a", described)]
    tape.send_response(52, asked, {"groups": [{**row, "protocol_data": "", "members": members}]})
    views = [{"member_id": name, "metadata": b"m"} for name in ("a", told)]
    leads = {"generation_id": 2, "protocol_name": "p", "leader": "a", "member_id": "a", "members": views}
    tape.send_response(53, again, {"error_code": 0, **leads})
    live = Judge(Header("test", Order.TOTAL, "wall", SETTINGS, GRACE))
    for moment in Lookahead(tape.events, window=0).pair_operations():
        live.on_event(*moment)
    return live.finish()


def test_a_leader_is_told_of_the_id_that_was_shown() -> None:
    assert not listed_after_description("b", "b").violations
    assert [one.requirements for one in listed_after_description("b", "c").violations] == [("JOIN-37",)]


def test_a_judge_that_forgets_whom_it_expected_is_found() -> None:
    with mutant(nondeterminism.resolve_response_ids, ", members=members", ""):
        assert not listed_after_description("b", "c").violations


def test_a_judge_that_forgets_an_id_that_was_shown_is_found() -> None:
    with mutant(
        nondeterminism.resolve_ids, "world=resolve_state_ids(configuration.world, shown)", "world=configuration.world"
    ):
        assert not described_as("a", "b").verdict().violations
