"""Incarnations: the responses that certainly belong to one life of a group within one term of its coordinator.

Generations repeat in another term and in another life of the group, so the invariants hold within one incarnation only.
A group does not end before it is empty; so an incarnation continues while a member is certain. Without a certain member
the next response begins a new number, although the group may still be the same: queries over incarnations report only
true violations, and may miss some.

A commit of a member that is accepted shows more: the member has been in the group since it joined, for no id is issued
twice. So all numbers since then are of one life, and the commit gets the one of them with the highest generation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.events import Header, Order

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Membership:
    """The identity behind a member id, and how long in ms it certainly stays a member after its last request."""

    identity: str
    timeout: int


@dataclass(slots=True)
class Incarnation:
    """One life of a group: its number, and the time until which each identity certainly is a member."""

    number: int = 0
    certain_members: dict[str, int] = field(default_factory=dict)
    members: dict[str, Membership] = field(default_factory=dict)
    leave_times: dict[str, int] = field(default_factory=dict)
    """Time of the last request to remove each identity."""
    generations: dict[int, int] = field(default_factory=dict)
    """The highest generation that was joined in each number of this term."""
    joined: dict[str, int] = field(default_factory=dict)
    """The number in which each member id joined, of this term."""

    def begin_term(self) -> None:
        """Begin a new number in another term of the coordinator: nothing that was before is certain."""
        self.begin_next()
        self.generations.clear()
        self.joined.clear()

    def note_generation(self, member: str, generation: int, *, is_new: bool) -> None:
        """Note that a member joined a generation; its id may just have been issued."""
        self.generations[self.number] = max(generation, self.generations.get(self.number, 0))
        if is_new or member not in self.joined:
            self.joined[member] = self.number
        drop_oldest(self.generations, MAX_GENERATIONS)
        drop_oldest(self.joined, MAX_IDLE_IDS + 2 * len(self.certain_members))

    def number_since(self, member: str) -> int | None:
        """The number with the highest generation since a member joined; None if the term does not show when it did."""
        since = self.joined.get(member)
        if since is None:
            return None
        later = [number for number in self.generations if number >= since]
        return max(later, key=lambda number: self.generations[number], default=None)

    def begin_next(self) -> None:
        """Begin a new number: the next response may be of another incarnation."""
        self.number += 1
        self.certain_members.clear()

    def has_certain_member(self, time: int) -> bool:
        """Whether the group certainly has a member at `time`."""
        return any(until >= time for until in self.certain_members.values())

    def confirm_member(self, member: Membership, since: int) -> None:
        """Note that `member` was a member at `since`, unless it was asked to leave later."""
        if since > self.leave_times.get(member.identity, -1):
            self.certain_members[member.identity] = max(
                self.certain_members.get(member.identity, 0), since + member.timeout
            )

    def forget_idle_ids(self) -> None:
        """Forget member ids without a certain member, if there are many."""
        if len(self.members) > MAX_IDLE_IDS + 2 * len(self.certain_members):
            self.members = {id: each for id, each in self.members.items() if each.identity in self.certain_members}
            self.leave_times.clear()


MAX_IDLE_IDS = 1_000
"""Maximum number of idle member ids remembered for each group."""
MAX_GENERATIONS = 100
"""Maximum number of numbers of which the highest generation is remembered for each group."""


def drop_oldest(known: dict[Any, int], most: int) -> None:
    """Forget the oldest entries beyond `most`."""
    while len(known) > most:
        del known[next(iter(known))]


class Incarnations:
    """Tracks the incarnations of all groups of one trace, event by event."""

    def __init__(self, header: Header) -> None:
        # Clients see a response some time after it was sent; at most the grace is assumed.
        self.delay = header.grace if header.order is Order.INTERVALS else 0
        self.groups: dict[str, Incarnation] = {}

    def on_restart(self) -> None:
        """Begin new incarnations of all groups after a restart of the target."""
        for incarnation in self.groups.values():
            incarnation.begin_term()

    def on_request(self, api: str, body: Body, group: str, time: int) -> int | None:
        """Note a request. Returns the number of its incarnation if it is a member's commit and is accepted."""
        incarnation = self.groups.get(group)
        if incarnation is None:
            return None
        if api == "LeaveGroup":
            self.on_leave(incarnation, body, time)
        if api in ("OffsetCommit", "TxnOffsetCommit") and claimed_generation(body) >= 0:
            return incarnation.number_since(str(body.get("member_id")))
        return None

    def on_leave(self, incarnation: Incarnation, body: Body, time: int) -> None:
        """Note the members that a LeaveGroup request removes."""
        rows = body.get("members")
        for row in rows if isinstance(rows, list) else [body]:
            if isinstance(row, dict):
                incarnation.joined.pop(str(row.get("member_id")), None)
                known = incarnation.members.get(str(row.get("member_id")))
                for who in (identity_of(None, row.get("group_instance_id")), known.identity if known else ""):
                    incarnation.certain_members.pop(who, None)
                    incarnation.leave_times[who] = time

    def on_response(self, api: str, request: Body, response: Body, group: str, sent: int, time: int) -> int:
        """Note a response, and return the number of its incarnation. `sent` is the time of the request."""
        incarnation = self.groups.setdefault(group, Incarnation())
        error = response.get("error_code")
        if error in COORDINATOR_NOT_READY:
            incarnation.begin_term()
        elif not incarnation.has_certain_member(time):
            incarnation.begin_next()
        if api == "JoinGroup":
            if error == 0:
                self.on_join(incarnation, request, response, sent, time)
        elif (api in MEMBER_ONLY_APIS and error == 0) or (
            api == "OffsetCommit" and claimed_generation(request) >= 0 and has_accepted_offset(response)
        ):
            known = incarnation.members.get(str(request.get("member_id")))
            if known is not None:
                incarnation.confirm_member(known, sent)
        return incarnation.number

    def on_join(self, incarnation: Incarnation, request: Body, response: Body, sent: int, time: int) -> None:
        """Note the member that a successful JoinGroup response confirms."""
        member, session = response.get("member_id"), request.get("session_timeout_ms")
        rebalance = request.get("rebalance_timeout_ms", session)
        if not isinstance(member, str) or type(session) is not int or type(rebalance) is not int:
            return
        incarnation.forget_idle_ids()
        generation = response.get("generation_id")
        if type(generation) is int:
            incarnation.note_generation(member, generation, is_new=request.get("member_id") != member)
        known = Membership(identity_of(member, request.get("group_instance_id")), min(session, rebalance))
        incarnation.members[member] = known
        if sent > incarnation.leave_times.get(known.identity, -1):
            incarnation.confirm_member(known, max(sent, time - self.delay))


MEMBER_ONLY_APIS = frozenset({"Heartbeat", "SyncGroup"})
"""APIs that succeed for members only."""


def claimed_generation(request: Body) -> int:
    """The generation in which a commit claims a membership; -1 if it claims none."""
    generation = request.get("generation_id", request.get(COMMIT_GENERATION, -1))
    return generation if type(generation) is int else -1


COMMIT_GENERATION = "generation_id_or_member_epoch"
"""The generation in a commit, as Kafka has named the field since its newer protocol."""
STATIC_PREFIX, DYNAMIC_PREFIX = "i ", "m "


def identity_of(member: object, instance: object) -> str:
    """The identity behind a member id: that of a static member is its instance id."""
    return f"{STATIC_PREFIX}{instance}" if instance is not None else f"{DYNAMIC_PREFIX}{member}"


def has_accepted_offset(response: Body) -> bool:
    """Whether at least one offset of a commit was accepted."""
    topics = response.get("topics")
    return isinstance(topics, list) and any(
        row.get("error_code") == 0
        for topic in topics
        if isinstance(topic, dict)
        for row in topic.get("partitions") or ()
        if isinstance(row, dict)
    )
