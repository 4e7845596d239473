"""The inputs of a tour of the coordinator: a small universe of requests, and their translation for the core."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias, cast

from fencepost.model.classic.core.state import (
    CoreDialect,
    Group,
    HeartbeatRequest,
    JoinRequest,
    LeaveRequest,
    Protocol,
    SyncRequest,
)
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.sorts import (
    AssignmentBytes,
    ClientId,
    Handle,
    HandleNumber,
    InstanceId,
    MemberId,
    MetadataBytes,
    OtherProtocolType,
    ProtocolName,
    ProtocolType,
    numbered_id,
)

RANGE, OTHER = "range", ProtocolName("other")
CONSUMER: ProtocolType = "consumer"
OTHER_TYPE = OtherProtocolType("other")
NEWER = CoreDialect()


CoreRequest: TypeAlias = JoinRequest | SyncRequest | HeartbeatRequest | LeaveRequest | CommitRequest


@dataclass(frozen=True, slots=True)
class Input:
    """A request, or "wait": let time pass until some timer fires; or "rest": until it is just about to.

    `member` is 0 for none, else which of the ids handed out so far, one more for an id that nobody has; `instance`
    likewise (one that nobody has is odd). `variant` tells apart how a JoinGroup is made and what a SyncGroup carries
    (0: nothing; n: all to the n-th member; more: see `sync_request`), and whether a LeaveGroup is of two members.
    "look" is DescribeGroups, "fire" a timer that goes off now, whether or not it is time.
    """

    kind: str
    member: int = 0
    generation: int = -1
    variant: int = 0
    instance: int = 0


@dataclass(frozen=True, slots=True)
class TourState:
    """What is asked: the group, its times counted from now, and how many ids were handed out."""

    group: Group
    ids: int = 0


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """How a member joins. Times in milliseconds."""

    names: tuple[str, ...] = (RANGE,)
    metadata: int = 0
    session_timeout: int = 6_000
    rebalance_timeout: int = 9_000
    requires_id: bool = True
    can_skip: bool = True
    protocol_type: ProtocolType | None = CONSUMER
    alike: bool = False
    """Every protocol carries the same metadata."""
    rising: int = 0
    """How much is added to the metadata from each protocol to the next."""


def joinings(count: int, session_timeout: int = 6_000, rebalance_timeout: int = 9_000) -> tuple[JoinOptions, ...]:
    """A number of ways to join that differ in their metadata alone."""
    return tuple(JoinOptions((RANGE,), each, session_timeout, rebalance_timeout) for each in range(count))


@dataclass(frozen=True, slots=True)
class Universe:
    """What a tour tries. Times in milliseconds; the defaults suit a target whose bounds allow them.

    `odd` adds requests that no proper client sends but for its own mistake, `fires` timers at any moment and `rests`
    moments just before a timer, which only the model itself can be asked.
    """

    ids: int = 2
    generations: int = 2
    joinings: tuple[JoinOptions, ...] = joinings(2)
    instances: int = 0
    only: tuple[str, ...] = ()
    """The kinds of inputs, all of them if empty."""
    strangers: bool = True
    """Ids that nobody has, and a generation that never was."""
    odd: bool = False
    fires: bool = False
    rests: bool = False
    initial_delay: int = 3_000
    new_member_timeout: int = 300_000
    max_group_size: int = 2_147_483_647
    dialect: CoreDialect = NEWER
    leader: int = 0
    """Which id is to lead where that is open, 0 for any."""
    protocol: ProtocolName | None = None
    """Which protocol is to be selected where that is open."""
    clock: int = 0
    """What the coordinator's clock shows whenever something is asked. Nothing depends on it, unless by a mistake."""


def inputs_in(universe: Universe) -> Iterator[Input]:
    """Every input of the kinds that the universe has."""
    return (each for each in all_inputs(universe) if not universe.only or each.kind in universe.only)


def all_inputs(universe: Universe) -> Iterator[Input]:
    """Every input, of whatever kind."""
    somebody = range(1, universe.ids + 1 + universe.strangers)
    generations = range(not universe.strangers, universe.generations + 1)
    instances = range(universe.instances + 1 + (universe.odd and universe.instances > 0))
    for member, variant, instance in product((0, *somebody), range(len(universe.joinings)), instances):
        yield Input("join", member, variant=variant, instance=instance)
    for member, generation, instance in product(somebody, generations, instances):
        yield Input("heartbeat", member, generation, instance=instance)
        yield Input("commit", member, generation, instance=instance)
        for variant in range(universe.ids + 1):
            yield Input("sync", member, generation, variant, instance)
    for member, instance in product((0, *somebody) if universe.instances else somebody, instances):
        yield Input("leave", member, instance=instance)
    if universe.odd:
        yield from odd_inputs(universe, somebody, instances)
    if universe.rests:
        yield Input("rest")
    if universe.fires:
        yield from (Input("fire", member) for member in (*range(-1, 1), *somebody))
    yield Input("look")
    yield Input("wait")


def odd_inputs(universe: Universe, somebody: range, instances: range) -> Iterator[Input]:
    """Requests of other kinds of clients, and those that make no sense."""
    for generation, instance in product(range(-1, universe.generations + 1), instances):
        yield Input("commit", 0, generation, instance=instance)
        yield Input("heartbeat", 0, generation, instance=instance)
    for member, instance in product(somebody, instances):
        yield Input("commit", member, -1, instance=instance)
    for member, generation, variant in product(somebody, range(1, universe.generations + 1), range(1, 6)):
        yield Input("sync", member, generation, universe.ids + variant)
    for member, instance in product((0, *somebody), instances):
        yield Input("leave", member, variant=1, instance=instance)


# -- what they read ----------------------------------------------------------------------------------------------


def request_handle(universe: Universe, given: Input, newcomer: int) -> Handle:
    """A handle that tells who sent a request, of which kind and variant; a newcomer is known by the id it will get."""
    kinds = ("join", "sync", "heartbeat", "commit", "leave")
    sender = (given.member or newcomer) * len(kinds) + kinds.index(given.kind)
    return HandleNumber(sender * (universe.ids + len(universe.joinings) + 7) + given.variant + 1)


def sender_id(given: Input) -> MemberId | None:
    """The member id that a request carries, if there is one."""
    return numbered_id(given.member) if given.member else None


def instance_name(given: Input) -> InstanceId | None:
    """The instance id, if there is one; no number, for an id is never an instance id."""
    return InstanceId(f"instance {given.instance}") if given.instance else None


def join_request(universe: Universe, given: Input, newcomer: int) -> JoinRequest:
    """JoinGroup."""
    how = universe.joinings[given.variant]
    return JoinRequest(
        handle=request_handle(universe, given, newcomer),
        member=sender_id(given),
        instance=instance_name(given),
        protocol_type=how.protocol_type,
        protocols=tuple(
            Protocol(ProtocolName(name), numbered_metadata((not how.alike and name, how.metadata + place * how.rising)))
            for place, name in enumerate(how.names)
        ),
        session_timeout=how.session_timeout,
        rebalance_timeout=how.rebalance_timeout,
        requires_id=how.requires_id,
        can_skip=how.can_skip,
        client=ClientId(f"client {given.member}"),
    )


def numbered_metadata(parts: tuple[str | bool, int]) -> MetadataBytes:
    """Metadata of these parts; the core only compares them."""
    token: Any = parts
    return cast(MetadataBytes, token)


def sync_request(universe: Universe, given: Input, newcomer: int) -> SyncRequest:
    """SyncGroup. Its variants after those that name an owner: an older version; another protocol, or another type;
    another protocol without a type; two entries for the same member, of which the last one counts."""
    beyond = max(0, given.variant - universe.ids)
    owner = 1 if beyond else given.variant
    members = [numbered_id(number) for number in range(1, universe.ids + 1)]
    assigned = tuple((one, AssignmentBytes(b"all" if one == numbered_id(owner) else b"")) for one in members)
    offered = ProtocolName(universe.joinings[0].names[0])
    name = (offered, None, OTHER, offered, OTHER, None)[beyond]
    usual = universe.joinings[0].protocol_type
    kind = (usual, None, usual, OTHER_TYPE, None, None)[beyond]
    twice = ((members[0], AssignmentBytes(b"first")), *assigned) if beyond == 5 else assigned
    return SyncRequest(
        request_handle(universe, given, newcomer),
        sender_id(given),
        instance_name(given),
        given.generation,
        kind,
        name,
        twice if given.variant else (),
    )


def heartbeat_request(universe: Universe, given: Input, newcomer: int) -> HeartbeatRequest:
    """The Heartbeat that the input stands for; a sender without an id counts as `newcomer`, the id it will get."""
    return HeartbeatRequest(
        request_handle(universe, given, newcomer), sender_id(given), instance_name(given), given.generation
    )


def commit_request(universe: Universe, given: Input, newcomer: int) -> CommitRequest:
    """OffsetCommit."""
    return CommitRequest(
        request_handle(universe, given, newcomer), sender_id(given), instance_name(given), given.generation
    )


def leave_request(universe: Universe, given: Input, newcomer: int) -> LeaveRequest:
    """LeaveGroup of one member, or of it and the one after it."""
    first = (sender_id(given), instance_name(given))
    entries = (first, (numbered_id(given.member + 1), None)) if given.variant else (first,)
    return LeaveRequest(request_handle(universe, given, newcomer), entries)
