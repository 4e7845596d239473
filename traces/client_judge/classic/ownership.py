"""Which member of a group has which partitions, and for how long, as the requests of the members show it.

A member has what its SyncGroup brought until it joins again under an eager protocol, gets another assignment, leaves,
or is told that its membership is over. One that a generation begins without has had it until it was heard last.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fencepost.model.assignors.consumer_protocol import ConsumerProtocolError, decode_assignment
from fencepost.model.errors import Error
from fencepost.traces.client_judge.classic.state import COOPERATIVE_ASSIGNORS
from fencepost.traces.events import Event, Kind, Operation

OVER = frozenset({Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID})
"""The errors that tell a member that its membership is over."""
MEMBER_APIS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"})


class OwnershipEnd(StrEnum):
    """What ended the time in which a member has partitions."""

    JOINED = "joined"
    """It joined again, and gave everything up before."""
    REASSIGNED = "reassigned"
    LEFT = "left"
    OVER = "over"
    """It was told that its membership is over."""
    REPLACED = "replaced"
    """Another client joined as the same static member."""
    EXPELLED = "expelled"
    """A generation began without it: until then it was not heard for a while."""
    GAP = "gap"
    """Messages are missing in the trace."""
    TRACE = "trace"
    """The trace ends."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """A member had partitions (`topic/number`) from one time to another, in milliseconds since the trace began."""

    group: str
    member_id: str
    generation: int
    partitions: tuple[str, ...]
    since: int
    until: int
    end: OwnershipEnd
    sequence: int
    """Of the SyncGroup response that brought them."""


@dataclass(slots=True)
class Owner:
    """A member that has partitions now. Times in milliseconds."""

    generation: int
    partitions: tuple[str, ...]
    since: int
    sequence: int
    heard: int
    """When its last request came."""
    instance: str | None = None
    """The id of a static member."""


@dataclass(slots=True)
class OwnershipHistory:
    """Follows who has what in the groups of a trace, all or those chosen; each period is yielded when it is over."""

    owns_group: Callable[[str], bool] | None = None
    owners: dict[str, dict[str, Owner]] = field(default_factory=dict)
    """By group and member id."""
    time: int = 0

    def on_event(self, event: Event, operation: Operation | None) -> Iterator[Ownership]:
        """Take the next event."""
        self.time = event.time
        if event.kind is Kind.INTERNAL and event.api == "unknown":
            yield from self._end_all(event.body.get("group"), OwnershipEnd.GAP)
        if operation is None or "_findings" in operation.body or "_findings" in event.body:
            return
        group = operation.body.get("group_id")
        if not isinstance(group, str) or not (self.owns_group is None or self.owns_group(group)):
            return
        if operation.api == "LeaveGroup" and event.kind is Kind.REQUEST:
            for row in operation.body.get("members") or (operation.body,):
                yield from self._end(group, row.get("member_id"), event.time, OwnershipEnd.LEFT)
        elif operation.api in MEMBER_APIS and event.kind is Kind.REQUEST:
            yield from self._on_request(group, operation, event)
        elif operation.api in MEMBER_APIS and event.kind is Kind.RESPONSE:
            yield from self._on_response(group, operation, event)

    def finish(self) -> Iterator[Ownership]:
        """Yield what is not over at the end of the trace."""
        yield from self._end_all(None, OwnershipEnd.TRACE)

    def _on_request(self, group: str, operation: Operation, event: Event) -> Iterator[Ownership]:
        member = operation.body.get("member_id")
        owner = self.owners.get(group, {}).get(member or "")
        if owner is not None:
            owner.heard = event.time
        if operation.api == "JoinGroup":
            names = {protocol["name"] for protocol in operation.body["protocols"]}
            if not names <= COOPERATIVE_ASSIGNORS:
                yield from self._end(group, member, event.time, OwnershipEnd.JOINED)

    def _on_response(self, group: str, operation: Operation, event: Event) -> Iterator[Ownership]:
        body, member = event.body, operation.body.get("member_id")
        error = body.get("error_code", 0)
        if error in OVER:
            yield from self._end(group, member, event.time, OwnershipEnd.OVER)
        elif operation.api == "JoinGroup" and not error:
            yield from self._on_joined(group, operation, event)
        elif operation.api == "SyncGroup" and not error and member:
            yield from self._assign(group, member, operation, event)

    def _on_joined(self, group: str, operation: Operation, event: Event) -> Iterator[Ownership]:
        """A member has joined: as the static member that another one was, or as the leader, who hears who is there."""
        owners, instance = self.owners.get(group, {}), operation.body.get("group_instance_id")
        for other, owner in tuple(owners.items()):
            if instance is not None and owner.instance == instance and other != event.body.get("member_id"):
                yield from self._end(group, other, event.time, OwnershipEnd.REPLACED)
        remaining = {row["member_id"] for row in event.body.get("members") or ()}
        for gone in [each for each in owners if remaining and each not in remaining]:
            yield from self._end(group, gone, owners[gone].heard, OwnershipEnd.EXPELLED)

    def _assign(self, group: str, member: str, operation: Operation, event: Event) -> Iterator[Ownership]:
        """SyncGroup brings an assignment; one that is none of Kafka's consumers' counts as nothing."""
        yield from self._end(group, member, event.time, OwnershipEnd.REASSIGNED)
        try:
            assigned = decode_assignment(as_bytes(event.body.get("assignment")))
        except ConsumerProtocolError:
            return
        if assigned:
            names = tuple(f"{topic}/{number}" for topic, number in sorted(assigned))
            generation = int(operation.body.get("generation_id", -1))
            instance = operation.body.get("group_instance_id")
            owner = Owner(generation, names, event.time, event.sequence, event.time, instance)
            self.owners.setdefault(group, {})[member] = owner

    def _end(self, group: str, member: Any, until: int, end: OwnershipEnd) -> Iterator[Ownership]:
        """What a member has is over."""
        owner = self.owners.get(group, {}).pop(member, None)
        if owner is not None:
            if not self.owners[group]:
                del self.owners[group]
            times = owner.since, max(owner.since, until)
            yield Ownership(group, member, owner.generation, owner.partitions, *times, end, owner.sequence)

    def _end_all(self, group: str | None, end: OwnershipEnd) -> Iterator[Ownership]:
        """What the members of a group, or of all, have is over as far as the trace shows."""
        for name in [name for name in self.owners if group in (None, name)]:
            for member in list(self.owners.get(name, ())):
                yield from self._end(name, member, self.time, end)


def as_bytes(value: object) -> bytes:
    """The bytes of a field, b"" if it has none."""
    return value if isinstance(value, bytes) else b""
