"""The moves of the two groups. A move that means nothing to one of them leaves it as it is."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fencepost.model.classic.core.sorts import MemberId
from fencepost.model.classic.core.state import HeartbeatResponse, JoinResponse
from fencepost.model.classic.core.timers import expire_join
from fencepost.model.classic.dialect import KAFKA, PROPOSED
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member import resync
from fencepost.model.classic.member.member import MemberState, MemberStep
from fencepost.model.errors import Error
from fencepost.model.explore.classic.proposal.world import (
    PARTITIONS,
    Actor,
    Side,
    handle_request,
    lose_coordinator,
    new_side,
    next_handle,
    take_step,
    with_actor,
)
from fencepost.model.frozen import evolve

NAMES = ("A", "B")
MAX_JOINS = 2
"""JoinGroups of a member."""
Move = Callable[[Side], Side]


@dataclass(frozen=True, slots=True)
class Pair:
    """Kafka's group and the proposal's. `joins` counts the JoinGroups of each member; a coordinator is lost once, and
    the topic grows once."""

    kafka: Side
    proposal: Side
    joins: tuple[int, int] = (0, 0)
    is_lost: bool = False
    is_grown: bool = False
    last: str = ""
    """The last move."""


def new_groups() -> Pair:
    """Two groups without members."""
    return Pair(new_side(KAFKA), new_side(PROPOSED))


def groups_after(run: Sequence[str]) -> Pair:
    """Two groups after this run; from here on JoinGroups count."""
    pair = new_groups()
    for label in run:
        pair = dict(moves_from(pair))[label]
    return evolve(pair, joins=(0, 0), last="")


def synchronizing_groups() -> Pair:
    """Two groups whose members have heard of generation 1, which A leads, and have not sent SyncGroup."""
    return groups_after(("A joins", "B joins", "the join phase ends", "A hears", "B hears"))


def stable_groups() -> Pair:
    """Two stable groups in generation 1, which A leads; both members have heard of their assignments."""
    joined = ("A joins", "B joins", "the join phase ends", "A hears", "B hears")
    return groups_after((*joined, "A syncs", "B syncs", "A hears", "B hears"))


def moves_from(pair: Pair) -> Iterator[tuple[str, Pair]]:
    """Every move that means something to at least one of the groups."""
    for index, name in enumerate(NAMES):
        if pair.joins[index] < MAX_JOINS:
            joins = (pair.joins[0] + (index == 0), pair.joins[1] + (index == 1))
            yield from apply(evolve(pair, joins=joins), f"{name} joins", partial(send_join, index))
        for what, move in ACTS.items():
            yield from apply(pair, f"{name} {what}", partial(move, index))
    yield from apply(pair, "the join phase ends", lambda side: take_step(side, expire_join(side.group, side.context())))
    if not pair.is_lost:
        yield from apply(evolve(pair, is_lost=True), "the coordinator is lost", lose_coordinator)
    if not pair.is_grown:
        yield from apply(evolve(pair, is_grown=True), "the topic grows", notice_growth)


def apply(pair: Pair, label: str, move: Move) -> Iterator[tuple[str, Pair]]:
    """The move in both groups, if one of them has a use for it."""
    kafka, proposal = (evolve(side, errors=()) for side in (pair.kafka, pair.proposal))
    after = evolve(pair, kafka=move(kafka), proposal=move(proposal), last=label)
    if (after.kafka, after.proposal) != (kafka, proposal):
        yield label, after


def send_join(index: int, side: Side) -> Side:
    """JoinGroup, whatever was asked before; what was not answered is given up."""
    actor = side.actors[index]
    again = members.disconnect(members.ask_rejoin(actor.member).member).member
    handle = next_handle(side, index)
    step = members.join(again, handle)
    (request,) = requests_of(step)
    return handle_request(with_actor(side, index, Actor(step.member, actor.handles + 1)), request)


def requests_of(step: MemberStep) -> list[Any]:
    """The requests that a member sends."""
    return [sent.request for sent in step.sent_requests if sent.when]


def hear(index: int, side: Side) -> Side:
    """The response that lies ready is heard. A SyncGroup that follows is sent by a move of its own."""
    actor = side.actors[index]
    response, waiting = actor.response, actor.member.waiting
    if response is None:
        return side
    if isinstance(response, JoinResponse):
        plan = (response.leader, None)
        step = members.on_join_response(actor.member, waiting, response, next_handle(side, index), plan)
        request = next(iter(requests_of(step)), None)
        leads = request is not None and response.leader == response.member
        leadership = resync.lead(response, plan) if leads else None
        return with_actor(side, index, Actor(step.member, actor.handles + 1, request, None, leadership))
    step = members.on_sync_response(actor.member, waiting, response)
    leadership = actor.leadership
    if leadership is not None and response.error is Error.NONE:
        leadership = resync.confirm(leadership)
    return with_actor(side, index, Actor(step.member, actor.handles, None, None, leadership))


def miss(index: int, side: Side) -> Side:
    """The response that lies ready is lost, and the member notices that."""
    actor = side.actors[index]
    if actor.response is None:
        return side
    return with_actor(side, index, Actor(members.disconnect(actor.member).member, actor.handles))


def send_sync(index: int, side: Side, failure: Error = Error.NONE) -> Side:
    """The SyncGroup of the member, for the first time or again."""
    actor = side.actors[index]
    if actor.request is None or actor.response is not None:
        return side
    return handle_request(side, actor.request, failure)


def fail_to_assign(index: int, side: Side) -> Side:
    """The leader cannot make an assignment. Kafka's has no way to say so, and sends nothing more."""
    actor = side.actors[index]
    if actor.request is None or actor.leadership is None or actor.response is not None:
        return side
    if side.dialect.synchronizes_once:
        return with_actor(side, index, evolve(actor, request=None))
    return send_sync(index, side, Error.UNKNOWN_SERVER_ERROR)


def send_heartbeat(index: int, side: Side) -> Side:
    """Heartbeat, and its response."""
    actor = side.actors[index]
    handle = next_handle(side, index)
    requests = requests_of(members.heartbeat(actor.member, handle))
    if actor.member.waiting or not requests:
        return side
    side = handle_request(side, requests[0])
    response = HeartbeatResponse(side.errors[-1][2])
    if side.dialect.synchronizes_once:
        heard = members.on_heartbeat_response(actor.member, requests[0], response)
        return with_actor(side, index, evolve(actor, member=heard.member))
    heard = resync.on_heartbeat_told(actor.member, requests[0], response, handle)
    asked = next(iter(requests_of(heard)), actor.request)
    return with_actor(side, index, evolve(actor, member=heard.member, handles=actor.handles + 1, request=asked))


def notice_growth(side: Side) -> Side:
    """The leader of a stable group sees a second partition, for the other member. Kafka's has to rejoin for that."""
    for index, actor in enumerate(side.actors):
        if is_stable_leader(actor):
            if side.dialect.synchronizes_once:
                return send_join(index, side)
            return send_plan(index, side, (actor.member.id, other_id(actor)), may_move=False)
    return side


def move_partition(index: int, side: Side) -> Side:
    """A leader that knows no duties gives its partition to the other member, in another SyncGroup."""
    actor = side.actors[index]
    if not is_stable_leader(actor):
        return side
    return send_plan(index, side, (other_id(actor), None), may_move=True)


def is_stable_leader(actor: Actor) -> bool:
    """Whether the member leads a generation with another member, and may send another assignment."""
    leadership = actor.leadership
    return (
        actor.member.state is MemberState.STABLE
        and leadership is not None
        and resync.can_resync(actor.member, leadership)
        and other_id(actor) is not None
    )


def other_id(actor: Actor) -> MemberId | None:
    """The id of the other member, as a leader knows it."""
    assert actor.leadership is not None
    return next((view.id for view in actor.leadership.members if view.id not in (None, actor.member.id)), None)


def send_plan(index: int, side: Side, plan: resync.Plan, *, may_move: bool) -> Side:
    """The leader's further SyncGroup, handled at once."""
    actor = side.actors[index]
    assert actor.leadership is not None
    leadership = actor.leadership
    if may_move:
        leadership = evolve(leadership, given=(None,) * PARTITIONS)
    step, leadership = resync.resync(actor.member, leadership, next_handle(side, index), plan)
    (request,) = requests_of(step)
    after = Actor(step.member, actor.handles + 1, request, None, leadership)
    return send_sync(index, with_actor(side, index, after))


ACTS: dict[str, Callable[[int, Side], Side]] = {
    "hears": hear,
    "loses its response": miss,
    "syncs": send_sync,
    "cannot assign": fail_to_assign,
    "heartbeats": send_heartbeat,
    "gives its partition away": move_partition,
}
"""What a member may do, besides JoinGroup."""
