"""The shortest runs in which Kafka's coordinator and that of the proposal of client-side assignment differ."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import Any, cast

from fencepost.model.classic.coordinator import group_log
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    Context,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    Holder,
    JoinRequest,
    JoinResponse,
    Step,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.core.timers import expire_join
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.explore.coordinator_tour import core_step
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberSettings, MemberState, MemberStep, new_member
from fencepost.model.errors import Error
from fencepost.model.explore.engine import find_run, search_until_found
from fencepost.model.explore.rows import value_system
from fencepost.model.explore.search import NO_LIMIT
from fencepost.model.explore.transition_system import PropertyKind
from fencepost.model.frozen import evolve
from fencepost.model.proposal import coordinator as proposal
from fencepost.model.proposal import member as proposed_member
from fencepost.model.proposal.member import Leadership
from fencepost.model.sorts import HandleNumber, MemberId, OtherProtocolType, ProtocolName, numbered_id

# One of the two groups: its coordinator with a log, two members, and what lies between them.


SLOTS = 2
PARTITIONS = 2
"""The second one comes when the topic grows."""
HANDLES = 100
"""How many handles each member has."""
SETTINGS = MemberSettings(
    names=(ProtocolName("range"),),
    protocol_type=OtherProtocolType("claims"),
    session_timeout=0,
    rebalance_timeout=0,
    requires_id=False,
)


@dataclass(frozen=True, slots=True)
class Actor:
    """A member process, the SyncGroup that it has to send, and a response that lies ready for it."""

    member: Member
    handles: int = 0
    request: SyncRequest | None = None
    response: JoinResponse | SyncResponse | None = None
    leadership: Leadership | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two groups. `told` has generations with who was told that it leads them, `given` the generations,
    partitions and members of assignments as members were told; `errors` are those of the last move, by member."""

    is_proposed: bool
    group: Group
    actors: tuple[Actor, ...]
    record: Group = field(default_factory=Group)
    ids: int = 0
    told: frozenset[tuple[int, int]] = frozenset()
    given: frozenset[tuple[int, int, int]] = frozenset()
    errors: tuple[tuple[int, str, Error], ...] = ()

    def context(self) -> Context:
        """Time does not pass, and every armed timer is due."""
        choices = Choices(member_id=numbered_id(self.ids + 1))
        dialect = proposal.PROPOSED if self.is_proposed else Dialect()
        return Context(0, choices, dialect, initial_rebalance_delay=0, new_member_timeout=0)


def new_side(is_proposed: bool) -> Side:
    """A group without members, of Kafka's coordinator or of the proposal's, and two processes."""
    actors = tuple(Actor(new_member(SETTINGS, PARTITIONS)) for _ in range(2))
    return Side(is_proposed, Group(slots=(FREE,) * SLOTS), actors)


def sender_of(handle: int) -> int:
    """The member that sent the request of this handle."""
    return handle // HANDLES


def next_handle(side: Side, index: int) -> HandleNumber:
    """A handle that no request of the member had."""
    return HandleNumber(index * HANDLES + side.actors[index].handles + 1)


def with_actor(side: Side, index: int, actor: Actor) -> Side:
    """The group with this actor in the place of another."""
    actors = tuple(actor if place == index else other for place, other in enumerate(side.actors))
    return evolve(side, actors=actors)


def handle_request(
    side: Side, request: JoinRequest | SyncRequest | HeartbeatRequest, failure: Error = Error.NONE
) -> Side:
    """The coordinator handles a request."""
    group, context = side.group, side.context()
    step = core_step(group, request, context)
    if side.is_proposed:
        step = proposal.proposed_step(group, request, failure, step.rule, context) or step
    return take_step(side, step)


def take_step(side: Side, step: Step) -> Side:
    """The group after a step of its coordinator: the record is written, and responses are on their way."""
    context = side.context()
    used = any(slot.id == numbered_id(side.ids + 1) for slot in step.group.slots)
    record, log = side.record, proposal if side.is_proposed else group_log
    if step.group is not side.group and log.writes_record(side.group, step, context):
        record = log.group_record(step.group, context)
    side = evolve(side, group=step.group, record=record, ids=side.ids + used)
    for output in step.outputs:
        if output.when:
            side = deliver(side, int(output.handle), output.response)
    return side


def deliver(side: Side, handle: int, response: object) -> Side:
    """A response is on its way to who asked."""
    index = sender_of(handle)
    actor = side.actors[index]
    if isinstance(response, HeartbeatResponse):
        return evolve(side, errors=(*side.errors, (index, "Heartbeat", response.error)))
    if not isinstance(response, JoinResponse | SyncResponse):
        return side
    kind = "JoinGroup" if isinstance(response, JoinResponse) else "SyncGroup"
    side = evolve(side, errors=(*side.errors, (index, kind, response.error)))
    if isinstance(response, JoinResponse) and response.leader is not None and response.leader == response.member:
        side = evolve(side, told=side.told | {(response.generation, index)})
    if isinstance(response, SyncResponse) and response.error is Error.NONE:
        parts = [part for part, has in enumerate(cast(tuple[bool, ...], response.assignment or ())) if has]
        given = {(side.group.generation, part, index) for part in parts}
        side = evolve(side, given=side.given | given)
    if handle != actor.member.waiting:
        return side  # given up meanwhile
    return with_actor(side, index, evolve(actor, response=response))


def lose_coordinator(side: Side) -> Side:
    """The coordinator is lost, and the next one begins with the record."""
    step = (proposal if side.is_proposed else group_log).load_record(side.record, side.context())
    members = [slot for slot in step.group.slots if slot.holder != Holder.NOBODY]
    slots = (*members, *(FREE,) * SLOTS)[:SLOTS]
    return evolve(side, group=evolve(step.group, slots=slots))


# The moves of the two groups. A move that means nothing to one of them leaves it as it is.


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
    return Pair(new_side(False), new_side(True))


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
        leadership = proposed_member.lead(response, plan) if leads else None
        return with_actor(side, index, Actor(step.member, actor.handles + 1, request, None, leadership))
    step = members.on_sync_response(actor.member, waiting, response)
    leadership = actor.leadership
    if leadership is not None and response.error is Error.NONE:
        leadership = proposed_member.confirm(leadership)
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
    if not side.is_proposed:
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
    if not side.is_proposed:
        heard = members.on_heartbeat_response(actor.member, requests[0], response)
        return with_actor(side, index, evolve(actor, member=heard.member))
    heard = proposed_member.on_heartbeat_told(actor.member, requests[0], response, handle)
    asked = next(iter(requests_of(heard)), actor.request)
    return with_actor(side, index, evolve(actor, member=heard.member, handles=actor.handles + 1, request=asked))


def notice_growth(side: Side) -> Side:
    """The leader of a stable group sees a second partition, for the other member. Kafka's has to rejoin for that."""
    for index, actor in enumerate(side.actors):
        if is_stable_leader(actor):
            if not side.is_proposed:
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
        and proposed_member.can_resync(actor.member, leadership)
        and other_id(actor) is not None
    )


def other_id(actor: Actor) -> MemberId | None:
    """The id of the other member, as a leader knows it."""
    assert actor.leadership is not None
    return next((view.id for view in actor.leadership.members if view.id not in (None, actor.member.id)), None)


def send_plan(index: int, side: Side, plan: proposed_member.Plan, *, may_move: bool) -> Side:
    """The leader's further SyncGroup, handled at once."""
    actor = side.actors[index]
    assert actor.leadership is not None
    leadership = actor.leadership
    if may_move:
        leadership = evolve(leadership, given=(None,) * PARTITIONS)
    step, leadership = proposed_member.resync(actor.member, leadership, next_handle(side, index), plan)
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


# The shortest runs in which the two groups differ: what Kafka gave up, and what it spared itself.


REFUSED = (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID)


@dataclass(frozen=True, slots=True)
class Difference:
    """A way in which the groups differ: what Kafka's does, what the proposal's does, and the pairs that show it.
    `is_given_up` tells what Kafka gave up from what it spared itself."""

    name: str
    kafka: str
    proposal: str
    shows: Callable[[Pair], bool]
    start: Callable[[], Pair] = stable_groups
    is_given_up: bool = True


@dataclass(frozen=True, slots=True)
class FoundDifference:
    """A difference with its shortest run, None if the search found none."""

    difference: Difference
    run: tuple[str, ...] | None


def errors_of(side: Side, kind: str) -> dict[int, Error]:
    """The errors of responses of this kind to the last move, by member."""
    return {index: error for index, api, error in side.errors if api == kind}


def has_two_leaders(side: Side) -> bool:
    """Whether members were told of two leaders of one generation."""
    return any(one[0] == other[0] for one, other in combinations(side.told, 2))


def has_two_owners(side: Side) -> bool:
    """Whether two members were given a partition in one generation."""
    return any(one[:2] == other[:2] for one, other in combinations(side.given, 2))


def is_sync_refused(pair: Pair, error: Error) -> bool:
    """Whether a SyncGroup after a loss gets the error from Kafka, and none from the proposal."""
    if not pair.is_lost or not pair.last.endswith("syncs"):
        return False
    kafka, proposal = errors_of(pair.kafka, "SyncGroup"), errors_of(pair.proposal, "SyncGroup")
    return error in kafka.values() and not any(proposal.values())


def is_stopped_by_growth(pair: Pair) -> bool:
    """Whether the growth of a topic has the other member rejoin in Kafka's group, and ask once more in the other."""
    kafka, proposal = (side.actors[1] for side in (pair.kafka, pair.proposal))
    has_to_join = kafka.member.rejoins and not kafka.member.waiting
    return pair.is_grown and pair.joins == (0, 0) and has_to_join and proposal.request is not None


def is_failure_told(pair: Pair) -> bool:
    """Whether a leader's failure reaches the other member in the proposal's group alone."""
    kafka, proposal = errors_of(pair.kafka, "SyncGroup"), errors_of(pair.proposal, "SyncGroup")
    return pair.last.endswith("cannot assign") and len(proposal) > 1 and not kafka


def is_aborted(pair: Pair) -> bool:
    """Whether a JoinGroup that comes again costs the other member its synchronization in the proposal's group alone."""
    kafka, proposal = errors_of(pair.kafka, "SyncGroup"), errors_of(pair.proposal, "SyncGroup")
    return pair.last.endswith("joins") and Error.REBALANCE_IN_PROGRESS in proposal.values() and not kafka


DIFFERENCES = (
    Difference(
        "two leaders",
        "A generation whose assignment was not stored is forgotten, and its number is given again, to another leader.",
        "The generation is stored before anybody is told of it.",
        lambda pair: has_two_leaders(pair.kafka) and not has_two_leaders(pair.proposal),
        new_groups,
    ),
    Difference(
        "a member is forgotten",
        "A member whose first assignment was not stored is unknown to the next coordinator, and has to join anew.",
        "Its SyncGroup is taken up.",
        lambda pair: is_sync_refused(pair, Error.UNKNOWN_MEMBER_ID),
        new_groups,
    ),
    Difference(
        "a generation is forgotten",
        "A SyncGroup of the lost generation is refused, and the member rejoins.",
        "The synchronization goes on.",
        lambda pair: is_sync_refused(pair, Error.ILLEGAL_GENERATION),
    ),
    Difference(
        "a topic grows",
        "The leader rejoins, and every other member has to: all give up what they own.",
        "The leader sends another assignment, the others ask for theirs, and all keep what they own.",
        is_stopped_by_growth,
    ),
    Difference(
        "an assignment fails",
        "The leader cannot say so; the other member waits for the sync timer.",
        "The other member gets the leader's error.",
        is_failure_told,
        synchronizing_groups,
    ),
    Difference(
        "two owners",
        "A further SyncGroup of the leader changes nothing, so that a partition has one owner in a generation.",
        "A leader may give a partition to another member in the same generation, while its owner still commits.",
        lambda pair: has_two_owners(pair.proposal) and not has_two_owners(pair.kafka),
        is_given_up=False,
    ),
    Difference(
        "a repeated JoinGroup",
        "A JoinGroup that comes again gets its generation again.",
        "It aborts the synchronization, and who waits has to rejoin.",
        is_aborted,
        is_given_up=False,
    ),
)


STARTS: Mapping[Callable[[], Pair], str] = MappingProxyType(
    {
        new_groups: "the group is new",
        synchronizing_groups: "A and B have heard of generation 1",
        stable_groups: "A and B are stable",
    }
)
"""How the groups may begin, in words."""


def find_differences(
    limit: int = NO_LIMIT, differences: Sequence[Difference] = DIFFERENCES
) -> Iterator[FoundDifference]:
    """Every difference with its shortest run, in the order of the table; a search ends when all of its are found."""
    for start in STARTS:
        wanted = [one for one in differences if one.start is start]
        if wanted:
            witnesses = {one.name: one.shows for one in wanted}
            system = value_system("two groups", start(), moves_from, witnesses, PropertyKind.SOMETIMES)
            found = search_until_found(system, list(witnesses), limit)
            yield from (FoundDifference(one, find_run(found, one.name)) for one in wanted)
