"""The history of groups by their messages alone, where the model does not know their state.

Messages show who asks to join and when, which generation the members get, and which errors they meet. Why a rebalance
began shows only if it was a JoinGroup or a LeaveGroup of the trace.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.errors import Error
from fencepost.traces.events import Body, Operation
from fencepost.traces.history.builder import (
    COMPLETING,
    NOT_SHOWN,
    PREPARING,
    STABLE,
    UNKNOWN,
    CauseKind,
    ChangeCause,
    HoldKind,
    PartitionLag,
    PhaseHold,
    TimelineBuilder,
)
from fencepost.traces.message_fields import (
    accepted_offsets,
    int32,
    int64,
    log_end_offsets,
    named_groups,
    objects_in,
    partitions_in,
    topic_name_of,
    topic_names,
)

MAX_MEMBERS = 10_000
"""How many members of a group are remembered."""
SETTLED = (UNKNOWN, STABLE, "Empty", "Dead")


@dataclass(slots=True)
class MessageSteps:
    """Tells the history of one group by requests and responses."""

    builder: TimelineBuilder
    waiting: dict[int, str] = field(default_factory=dict)
    """By handle, the members whose JoinGroup has no response yet; "" for one without an id."""
    issued: set[str] = field(default_factory=set)
    """Ids that the trace shows to be handed out to members without one."""
    heard: dict[str, int] = field(default_factory=dict)
    """When members were last heard that were told to join again and have not."""

    def on_request(self, operation: Operation) -> None:
        """Tell a request."""
        member, time = text_of(operation.body, "member_id"), operation.sent_at
        if operation.api != "JoinGroup" or is_refused(operation.response):
            return
        if operation.response is not None and operation.response.get("generation_id") == self.builder.generation:
            return  # the present generation again
        self.waiting[operation.handle] = member
        self.heard.pop(member, None)
        if self.builder.phase in SETTLED:
            known = member in self.builder.members
            kind = CauseKind.REJOINED if known else CauseKind.CAME
            is_told = member and (known or self.builder.phase == STABLE)
            self.builder.begin_rebalance(time, ChangeCause(kind, (member,)) if is_told else NOT_SHOWN)
        if member:
            self.builder.mark_back(time, member)

    def on_response(self, operation: Operation, time: int) -> None:
        """Tell a response."""
        handle = RESPONSE_HANDLERS.get(operation.api)
        if handle is not None and operation.response is not None:
            handle(self, operation, operation.response, time)

    def on_join(self, operation: Operation, response: Body, time: int) -> None:
        """A response to JoinGroup: with it the join phase is over."""
        self.waiting.pop(operation.handle, None)
        generation, member = response.get("generation_id"), text_of(response, "member_id")
        if not operation.body.get("member_id") and len(self.issued) < MAX_MEMBERS:
            self.issued.add(member)
        if response.get("error_code") != 0 or type(generation) is not int or not member:
            return
        builder = self.builder
        if builder.generation != generation:
            if builder.open is not None and builder.open.joined is None:
                builder.open.back.setdefault(member, max(operation.sent_at, builder.open.began))
            builder.add_member(time, member, *names_of(operation.body), is_new=member in self.issued)
            self.waiting.clear()
            builder.end_join_phase(time, generation)
        else:
            builder.add_member(time, member, *names_of(operation.body), is_new=member in self.issued)
        builder.protocol = text_of(response, "protocol_name") or builder.protocol
        self.compare_members(response, time)

    def compare_members(self, response: Body, time: int) -> None:
        """What the leader sees of the members: some may be new, and some gone."""
        rows = list(objects_in(response, "members"))
        shown = {text_of(row, "member_id"): row.get("group_instance_id") for row in rows}
        if not shown:
            return
        for gone in [member for member in self.builder.members if member not in shown]:
            self.builder.remove_member(time, gone, ChangeCause(CauseKind.MISSING, (gone,)))
        for member, instance in shown.items():
            name = instance if isinstance(instance, str) else None
            self.builder.add_member(time, member, name, is_new=member in self.issued)
        if self.builder.open is not None:
            self.builder.open.members = len(shown)

    def on_sync(self, operation: Operation, response: Body, time: int) -> None:
        """A response to SyncGroup: with the first one the sync phase is over."""
        member, generation = text_of(operation.body, "member_id"), operation.body.get("generation_id")
        if response.get("error_code") == 0 and type(generation) is int:
            self.builder.add_member(time, member, is_new=False)
            if self.builder.phase == COMPLETING and generation == self.builder.generation:
                self.builder.end_rebalance(time, STABLE, self.leader_hold(operation))
            elif self.builder.phase == UNKNOWN:
                self.builder.set_phase(time, STABLE, generation)
        self.on_member_error(operation, response, time)

    def leader_hold(self, operation: Operation) -> PhaseHold | None:
        """What held the sync phase up, if this is the leader's SyncGroup."""
        joined = self.builder.open.joined if self.builder.open is not None else None
        if joined is None or not operation.body.get("assignments"):
            return None
        leader = (text_of(operation.body, "member_id"),)
        return PhaseHold(HoldKind.LEADER, leader, max(0, operation.sent_at - joined))

    def on_heartbeat(self, operation: Operation, response: Body, time: int) -> None:
        """A response to Heartbeat: it may tell the member to join again."""
        member, generation = text_of(operation.body, "member_id"), operation.body.get("generation_id")
        error, builder = response.get("error_code"), self.builder
        if error == Error.NONE and builder.phase == UNKNOWN and type(generation) is int:
            builder.set_phase(time, STABLE, generation)
        if error in (Error.NONE, Error.REBALANCE_IN_PROGRESS) and member:
            builder.add_member(time, member, is_new=False)
        if error == Error.REBALANCE_IN_PROGRESS:
            if builder.phase in SETTLED:
                if builder.generation is None and type(generation) is int:
                    builder.generation = generation
                builder.begin_rebalance(operation.sent_at, NOT_SHOWN)
            if builder.phase == PREPARING and member not in self.waiting.values() and len(self.heard) < MAX_MEMBERS:
                self.heard[member] = time
        self.on_member_error(operation, response, time)

    def on_member_error(self, operation: Operation, response: Body, time: int) -> None:
        """The coordinator may not know the member any more."""
        member = text_of(operation.body, "member_id")
        if response.get("error_code") == Error.UNKNOWN_MEMBER_ID and member in self.builder.members:
            self.builder.remove_member(time, member, ChangeCause(CauseKind.UNKNOWN_TO_COORDINATOR, (member,)))

    def on_leave(self, operation: Operation, response: Body, time: int) -> None:
        """A response to LeaveGroup: members are gone, and a rebalance begins."""
        if response.get("error_code") != 0:
            return
        for member in leaving_members(operation.body):
            if member not in self.builder.members:
                continue
            cause = ChangeCause(CauseKind.LEFT, (member,))
            if self.builder.phase == STABLE and len(self.builder.members) > 1:
                self.builder.begin_rebalance(operation.sent_at, cause)
            self.builder.remove_member(operation.sent_at, member, cause)

    def awaited_members(self) -> tuple[str, ...]:
        """The members that were told to join again and have not."""
        return tuple(member for member in self.heard if member in self.builder.members)


RESPONSE_HANDLERS: Mapping[str, Callable[[MessageSteps, Operation, Body, int], None]] = {
    "JoinGroup": MessageSteps.on_join,
    "SyncGroup": MessageSteps.on_sync,
    "Heartbeat": MessageSteps.on_heartbeat,
    "LeaveGroup": MessageSteps.on_leave,
    "OffsetCommit": MessageSteps.on_member_error,
}


def text_of(body: Mapping[str, Any], name: str) -> str:
    """A field that is text; "" if it is anything else."""
    value = body.get(name)
    return value if isinstance(value, str) else ""


def names_of(request: Body) -> tuple[str | None, str | None]:
    """The instance id in a JoinGroup, and no client id, which messages without their headers do not have."""
    return text_of(request, "group_instance_id") or None, None


def is_refused(response: Body | None) -> bool:
    """Whether a response is an error."""
    return response is not None and response.get("error_code") != 0


def leaving_members(request: Body) -> Iterator[str]:
    """The member ids that a LeaveGroup names."""
    if isinstance(request.get("members"), list):
        yield from (text_of(row, "member_id") for row in objects_in(request, "members"))
    else:
        yield text_of(request, "member_id")


# --- Committed offsets, ends of logs and owners of partitions, as far as the messages of a trace show them.

MAX_PARTITIONS = 100_000
"""How many partitions are followed in one trace."""
Partition = tuple[str, int]


@dataclass(slots=True)
class OffsetTable:
    """The latest offsets and owners in one trace."""

    topics: dict[str, str] = field(default_factory=dict)
    """Names by id."""
    committed: dict[str, dict[Partition, int]] = field(default_factory=dict)
    owners: dict[str, dict[str, str]] = field(default_factory=dict)
    """By group and `topic/number`, the member that it is assigned to."""
    log_ends: dict[Partition, int] = field(default_factory=dict)
    count: int = 0

    def on_response(self, operation: Operation) -> None:
        """Take in a response."""
        api, request, response = operation.api, operation.body, operation.response
        if response is None:
            return
        if api == "Metadata":
            self.topics |= topic_names(response)
        elif api in ("Fetch", "ListOffsets"):
            for topic, number, offset in log_end_offsets(api, request, response, self.topics) or ():
                if (topic, number) in self.log_ends or self.has_room():
                    self.log_ends[topic, number] = offset
        elif api == "OffsetCommit":
            self.add_committed(operation, accepted_offsets(request, response, self.topics) or [])
        elif api == "OffsetFetch":
            for group, body in fetched_groups(request, response):
                for row in objects_in(body, "topics"):
                    self.add_fetched(group, row)
        elif api == "SyncGroup" and response.get("error_code") == 0:
            self.add_assignment(operation, response)

    def has_room(self) -> bool:
        """Whether a further partition may be followed; it counts."""
        self.count += 1
        return self.count <= MAX_PARTITIONS

    def add_committed(self, operation: Operation, offsets: list[tuple[str, int, int]]) -> None:
        """Take in accepted offsets."""
        for group in named_groups(operation.body):
            known = self.committed.setdefault(group, {})
            for topic, number, offset in offsets:
                if (topic, number) in known or self.has_room():
                    known[topic, number] = offset

    def add_fetched(self, group: str, topic: Body) -> None:
        """Take in the offsets of one topic that a response to OffsetFetch shows."""
        name = topic_name_of(topic, self.topics)
        known = self.committed.setdefault(group, {})
        for row in objects_in(topic, "partitions"):
            number, offset = int32(row.get("partition_index")), int64(row.get("committed_offset"))
            if name is None or number is None or offset is None or offset < 0 or row.get("error_code"):
                continue
            if (name, number) in known or self.has_room():
                known[name, number] = offset

    def add_assignment(self, operation: Operation, response: Body) -> None:
        """Take in the partitions that a member is assigned: it has no others."""
        member = operation.body.get("member_id")
        for group in named_groups(operation.body):
            owners = self.owners.setdefault(group, {})
            for partition in [partition for partition, owner in owners.items() if owner == member]:
                del owners[partition]
            for partition in partitions_in(response.get("assignment")):
                if self.has_room():
                    owners[partition] = str(member)

    def partitions_of(self, group: str, members: set[str]) -> Iterator[PartitionLag]:
        """The partitions of a group by topic and number; only present members own any."""
        committed, owners = self.committed.get(group, {}), self.owners.get(group, {})
        owned = {split_partition(name): owner for name, owner in owners.items() if owner in members}
        for topic, number in sorted({*committed, *owned}):
            where = (topic, number)
            yield PartitionLag(topic, number, committed.get(where), self.log_ends.get(where), owned.get(where))


def split_partition(name: str) -> Partition:
    """The topic and the number in `topic/number`."""
    topic, _, number = name.rpartition("/")
    return topic, int(number)


def fetched_groups(request: Body, response: Body) -> Iterator[tuple[str, Body]]:
    """The groups in a response to OffsetFetch, each with its topics."""
    if isinstance(response.get("groups"), list):
        for row in objects_in(response, "groups"):
            if isinstance(row.get("group_id"), str) and not row.get("error_code"):
                yield row["group_id"], row
    elif not response.get("error_code"):
        yield from ((group, response) for group in named_groups(request))
