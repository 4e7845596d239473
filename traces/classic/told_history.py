"""The history of groups where the model does not know it: as messages tell it, or the lines of a coordinator's log."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.errors import Error
from fencepost.traces.events import Body, Operation
from fencepost.traces.history.builder import (
    COMPLETING,
    EMPTY,
    MAX_NAMES,
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

# --- The history of groups by their messages alone, where the model does not know their state.
#
# Messages show who asks to join and when, which generation the members get, and which errors they meet. Why a
# rebalance began shows only if it was a JoinGroup or a LeaveGroup of the trace.

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

    def on_stored(self, step: str, body: Body) -> None:
        """Take in what a coordinator stored: an offset, or the assignments of a generation."""
        group, topic = text_of(body, "group"), text_of(body, "topic")
        number, offset = int32(body.get("partition")), int64(body.get("offset"))
        if step == "stored":
            rows = ((text_of(row, "member"), row.get("partitions") or ()) for row in objects_in(body, "members"))
            self.owners[group] = {name: member for member, names in rows for name in names if self.has_room()}
        elif number is not None and offset is not None and self.has_room():
            self.committed.setdefault(group, {})[topic, number] = offset

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


# --- The history of groups by the lines that their coordinator logged.

NEAR_MS = 200
"""How far apart lines about one thing may be: several threads write them."""
CLIENT_REASON = re.compile(r";? ?client reason: (?P<told>.*?)\.?$")
NAMES = re.compile(r"^(?:\w*\(|\[)?(.*?)[\])]?$")
REASONS: tuple[tuple[re.Pattern[str], CauseKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"removing member (?P<names>\S+) on LeaveGroup.*", CauseKind.LEFT),
        (r"explicit `LeaveGroup` request for \((?P<names>[^)]*)\) members.*", CauseKind.LEFT),
        (r"removing member (?P<names>\S+) on heartbeat expiration.*", CauseKind.SESSION),
        (r"removing (?P<names>.*?) on pending sync request expiration.*", CauseKind.NO_SYNC),
        (r"adding new (?:static )?member (?P<names>\S+?)(?:[ ;].*)?", CauseKind.CAME),
        (r"leader (?P<names>\S+) (?:re-)?joining group.*", CauseKind.REJOINED),
        (r"updating metadata for (?:static )?member (?P<names>\S+?)(?:[ ;].*)?", CauseKind.REJOINED),
        (r"group's selectedProtocol will change because static member (?P<names>\S+) .*", CauseKind.REJOINED),
    )
)
"""Why a rebalance begins, in the words of Apache Kafka's coordinators."""


@dataclass(slots=True)
class LogSteps:
    """Tells the history of one group by logged steps."""

    builder: TimelineBuilder
    issued: dict[str, None] = field(default_factory=dict)
    """Ids handed out whose owners no line shows to have joined."""
    departed: list[tuple[int, str, ChangeCause]] = field(default_factory=list)
    """Members that were removed a moment ago: the line of the rebalance may come after theirs."""
    expelled: dict[str, ChangeCause] = field(default_factory=dict)
    """Members that a line says did not join, or sync, in time."""

    def add_step(self, step: str, body: Body, time: int) -> None:
        """Tell one line."""
        handle = HANDLERS.get(step)
        if handle is not None:
            handle(self, body, time)

    def on_prepare(self, body: Body, time: int) -> None:
        """A rebalance begins, for a reason."""
        builder, cause = self.builder, read_reason(str(body.get("reason") or ""))
        builder.generation = number_of(body, "generation")
        builder.begin_rebalance(time, cause)
        assert builder.open is not None
        builder.open.gone += [(name, why) for when, name, why in self.departed if when >= time - NEAR_MS][:MAX_NAMES]
        self.departed.clear()
        if cause.kind is CauseKind.CAME:
            for name in cause.members:
                self.issued.pop(name, None)
                builder.add_member(time, name)
                if name not in builder.open.came:
                    builder.open.came.append(name)

    def on_complete(self, body: Body, time: int) -> None:
        """The join phase ends."""
        builder, count = self.builder, number_of(body, "count")
        if count is not None and count - len(builder.members) == len(self.issued):
            for name in self.issued:
                builder.add_member(time, name)
            self.issued.clear()
        builder.end_join_phase(time, number_of(body, "generation") or 0, self.join_hold(time))
        if builder.open is not None:
            builder.open.members = count

    def join_hold(self, time: int) -> PhaseHold:
        """Who held the join phase up, if lines show it: members that were removed at its end."""
        rebalance = self.builder.open
        waited = time - rebalance.began if rebalance is not None else 0
        begun = rebalance.cause.members if rebalance is not None else ()
        latest = [name for when, name, _ in self.departed if when >= time - NEAR_MS and name not in begun]
        missed = list(self.expelled) or latest
        self.expelled.clear()
        return PhaseHold(HoldKind.GONE if missed else HoldKind.NOT_SHOWN, tuple(missed[:MAX_NAMES]), waited)

    def on_empty(self, body: Body, time: int) -> None:
        """The join phase ends without members, also if the line of the last one's removal comes after this one."""
        rebalance = self.builder.open
        if rebalance is not None:
            cause, rebalance.members = rebalance.cause, 0
            for name in [name for name in self.builder.members if name in cause.members]:
                self.remove(name, ChangeCause(cause.kind, (name,), detail=cause.detail), time)
        self.builder.generation = number_of(body, "generation")
        self.builder.end_rebalance(time, EMPTY)

    def on_publish(self, body: Body, time: int) -> None:
        """The leader has sent the assignment: the group is stable."""
        leader, builder = text_of(body, "member"), self.builder
        joined = builder.open.joined if builder.open is not None else None
        hold = PhaseHold(HoldKind.LEADER, (leader,), time - joined) if joined is not None and leader else None
        if leader:
            builder.add_member(time, leader, is_new=False)
        builder.end_rebalance(time, STABLE, hold)
        builder.generation = number_of(body, "generation")

    def on_issue(self, body: Body, time: int) -> None:
        """An id is handed out."""
        self.issued[str(body.get("member"))] = None

    def on_withdraw(self, body: Body, time: int) -> None:
        """An id that was handed out becomes invalid."""
        self.issued.pop(str(body.get("member")), None)

    def on_register(self, body: Body, time: int) -> None:
        """A member is added."""
        name = str(body.get("member"))
        self.issued.pop(name, None)
        self.builder.add_member(time, name)
        self.builder.mark_back(time, name)

    def on_unregister(self, body: Body, time: int) -> None:
        """A member is removed."""
        name, reason = str(body.get("member")), str(body.get("reason") or "")
        if any(name == gone and when >= time - NEAR_MS for when, gone, _ in self.departed):
            return  # told by another line
        kind = CauseKind.SESSION if reason.startswith("failed") else CauseKind.LEFT
        detail = client_reason(CLIENT_REASON.search(reason))
        self.remove(name, ChangeCause(kind, (name,), detail=detail), time)

    def remove(self, name: str, cause: ChangeCause, time: int) -> None:
        """Tell that a member is gone."""
        self.builder.add_member(time, name, is_new=False)
        self.builder.remove_member(time, name, cause)
        self.issued.pop(name, None)
        self.departed = [*self.departed[-MAX_NAMES:], (time, name, cause)]

    def on_expel(self, body: Body, time: int) -> None:
        """Members are removed that did not join in time."""
        self.expel(body, CauseKind.NOT_BACK, time)

    def on_expel_unsynced(self, body: Body, time: int) -> None:
        """Members are removed that did not sync in time."""
        self.expel(body, CauseKind.NO_SYNC, time)
        self.expelled.clear()

    def expel(self, body: Body, kind: CauseKind, time: int) -> None:
        """Members are removed for this reason."""
        for name in split_names(str(body.get("members"))):
            cause = ChangeCause(kind, (name,))
            self.expelled[name] = cause
            self.remove(name, cause, time)

    def on_replace(self, body: Body, time: int) -> None:
        """A static member has another id now, which the line does not show."""
        self.remove(str(body.get("member")), ChangeCause(CauseKind.REPLACED), time)

    def on_forget(self, body: Body, time: int) -> None:
        """The group is removed."""
        self.builder.forget_group(time)

    def on_stored(self, body: Body, time: int) -> None:
        """A generation is stored, when its leader has sent the assignment or when nobody is left."""
        builder, generation = self.builder, number_of(body, "generation")
        rows = list(objects_in(body, "members"))
        shown = {
            text_of(row, "member"): (text_of(row, "instance") or None, text_of(row, "client") or None) for row in rows
        }
        joined = number_of(body, "joined")
        if generation == builder.generation:
            builder.set_members(time, shown)
            return
        builder.begin_rebalance(time if joined is None else min(joined, time), NOT_SHOWN)
        is_followed = builder.generation is not None
        for gone in [member for member in builder.members if member not in shown]:
            builder.remove_member(builder.now, gone, ChangeCause(CauseKind.MISSING, (gone,)))
        for member, names in shown.items():
            builder.add_member(builder.now, member, *names, is_new=is_followed)
        builder.protocol = text_of(body, "protocol") or builder.protocol
        if not shown:
            builder.generation = generation
            builder.end_rebalance(time, EMPTY)
            return
        builder.end_join_phase(builder.now, generation, PhaseHold(HoldKind.NOT_SHOWN))
        leader = text_of(body, "leader")
        hold = PhaseHold(HoldKind.LEADER, (leader,), time - builder.now) if leader and joined is not None else None
        builder.end_rebalance(time, STABLE, hold)

    def on_lose(self, body: Body, time: int) -> None:
        """The state of the group is not known from here on."""
        self.builder.lose_track(time, text_of(body, "reason"))
        self.issued.clear()
        self.departed.clear()
        self.expelled.clear()

    def awaited_members(self) -> tuple[str, ...]:
        """Nobody: a log does not show who is awaited."""
        return ()


HANDLERS: Mapping[str, Any] = {
    "prepare": LogSteps.on_prepare,
    "complete": LogSteps.on_complete,
    "empty": LogSteps.on_empty,
    "publish": LogSteps.on_publish,
    "issue": LogSteps.on_issue,
    "withdraw": LogSteps.on_withdraw,
    "register": LogSteps.on_register,
    "unregister": LogSteps.on_unregister,
    "expel": LogSteps.on_expel,
    "expel-unsynced": LogSteps.on_expel_unsynced,
    "replace": LogSteps.on_replace,
    "forget": LogSteps.on_forget,
    "stored": LogSteps.on_stored,
    "lose": LogSteps.on_lose,
}


def read_reason(reason: str) -> ChangeCause:
    """The reason for a rebalance as a cause."""
    told = CLIENT_REASON.search(reason)
    for pattern, kind in REASONS:
        found = pattern.fullmatch(reason)
        if found is not None:
            return ChangeCause(kind, tuple(split_names(found["names"])), detail=client_reason(told))
    return ChangeCause(CauseKind.OTHER, detail=reason) if reason else ChangeCause(CauseKind.NOT_SHOWN)


def client_reason(found: re.Match[str] | None) -> str:
    """What the client gave as its reason; "" if it gave none."""
    return "" if found is None or found["told"] == "not provided" else found["told"]


def split_names(names: str) -> list[str]:
    """Member ids in a list, as Java or Scala prints it."""
    inner = NAMES.match(names.strip())
    return [name.strip() for name in inner[1].split(",") if name.strip()] if inner is not None else []


def number_of(body: Body, name: str) -> int | None:
    """A field that is an integer, else None."""
    value = body.get(name)
    return value if type(value) is int else None
