"""The history of groups by their messages alone, where the model does not know their state.

Messages show who asks to join and when, which generation the members get, and which errors they meet. Why a rebalance
began shows only if it was a JoinGroup or a LeaveGroup of the trace.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.errors import Error
from fencepost.traces.events import Body
from fencepost.traces.history.builder import (
    COMPLETING,
    NOT_SHOWN,
    PREPARING,
    STABLE,
    UNKNOWN,
    TimelineBuilder,
)
from fencepost.traces.history.timeline import CauseKind, ChangeCause, HoldKind, PhaseHold
from fencepost.traces.message_fields import objects_in
from fencepost.traces.operations import Operation

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
