"""The recording of one member, event by event, by hand."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fencepost.model.assignors.consumer_protocol import encode_assignment, encode_subscription
from fencepost.model.assignors.group import Subscription, TopicPartition
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.classic.client.client import RecordedMembers
from fencepost.traces.events import Event, Header, Kind, Lookahead, Order
from fencepost.traces.history.recordings import ShownViolation

RECORDED = Header("kafka://broker", Order.INTERVALS, "wall", Settings(), 1_000, {"recorder": "fencepost record"})
T0, T1, T2 = (("t", number) for number in range(3))


class MemberRecording:
    """Builds the recording of group "g", event by event. Times in milliseconds."""

    def __init__(self, strategy: str = "range") -> None:
        self.strategy = strategy
        self.events: list[Event] = []
        self.now = 0

    def add(self, kind: Kind, api: str, version: int, body: Mapping[str, Any], **more: Any) -> int:
        number = len(self.events)
        member = more.pop("member", "A")
        connection = more.pop("connection", 1)
        self.events.append(Event(number, self.now, connection, member, kind, api, version, body, **more))
        return number

    def exchange(
        self, api: str, version: int, body: Mapping[str, Any], response: Mapping[str, Any], **more: Any
    ) -> int:
        self.now += 10
        sent = self.add(Kind.REQUEST, api, version, {"group_id": "g", **body}, **more)
        self.add(Kind.RESPONSE, api, version, response, of=sent, **more)
        return sent

    def join(
        self,
        member_id: str = "a",
        generation: int = 1,
        *,
        error: int = 0,
        owned: Iterable[TopicPartition] = (),
        others: Mapping[str, bytes] = {},
        leader: str = "a",
        topics: Sequence[str] = ("t",),
        kind: str = "consumer",
        metadata: bytes | None = None,
        **more: Any,
    ) -> int:
        if metadata is None:
            metadata = encode_subscription(Subscription(tuple(topics), None, tuple(owned), generation - 1))
        body = {
            "session_timeout_ms": 6_000,
            "rebalance_timeout_ms": 6_000,
            "member_id": member_id,
            "group_instance_id": None,
            "protocol_type": kind,
            "protocols": [{"name": self.strategy, "metadata": metadata}],
        }
        members = {"a": metadata, **others} if leader == "a" else {}
        response: dict[str, Any] = {"error_code": error, "generation_id": -1, "protocol_name": "", "leader": ""}
        response |= {"member_id": member_id or "a", "members": []}
        if not error:
            rows = [{"member_id": id, "group_instance_id": None, "metadata": data} for id, data in members.items()]
            told = {"protocol_name": self.strategy, "leader": leader, "member_id": "a", "members": rows}
            response |= {"generation_id": generation, **told}
        return self.exchange("JoinGroup", 5, body, response, **more)

    def sync(
        self,
        assigned: Iterable[TopicPartition] = (),
        generation: int = 1,
        *,
        plan: Mapping[str, Iterable[TopicPartition]] | None = None,
        error: int = 0,
        member_id: str = "a",
    ) -> int:
        wanted = {"a": assigned} if plan is None else plan
        rows = [{"member_id": id, "assignment": encode_assignment(sorted(own))} for id, own in wanted.items()]
        body = {"generation_id": generation, "member_id": member_id, "group_instance_id": None, "assignments": rows}
        response = {"error_code": error, "assignment": encode_assignment(sorted(assigned))}
        return self.exchange("SyncGroup", 3, body, response)

    def heartbeat(self, generation: int = 1, *, error: int = 0, member_id: str = "a", **more: Any) -> int:
        body = {"generation_id": generation, "member_id": member_id, "group_instance_id": None}
        return self.exchange("Heartbeat", 3, body, {"error_code": error}, **more)

    def commit(self, generation: int = 1, *, member_id: str = "a") -> int:
        body = {"generation_id": generation, "member_id": member_id, "group_instance_id": None, "topics": []}
        return self.exchange("OffsetCommit", 7, body, {"topics": []})

    def leave(self, *named: str, **more: Any) -> int:
        rows = [{"member_id": id, "group_instance_id": None} for id in named]
        return self.exchange("LeaveGroup", 3, {"members": rows}, {"error_code": 0, "members": []}, **more)

    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds

    def lose_messages(self, group: str | None = None) -> None:
        self.add(Kind.INTERNAL, "unknown", 0, {"reason": "a gap", **({"group": group} if group else {})}, member="")

    def violations(self, members: RecordedMembers | None = None) -> Iterator[ShownViolation]:
        members = members or RecordedMembers(RECORDED)
        for moment in Lookahead(self.events).pair_operations():
            yield from members.on_event(moment.event, moment.operation)

    def violated_requirements(self) -> list[tuple[str, int]]:
        """The requirements that are violated, each with the number of the event."""
        return [(violation.requirement, violation.sequence) for violation, _ in self.violations()]

    def kept(self) -> set[str]:
        members = RecordedMembers(RECORDED)
        assert list(self.violations(members)) == []
        return {requirement for requirement, _ in members.checks}


def record_stable_member(strategy: str = "range") -> MemberRecording:
    """A member alone in its group, with three partitions."""
    recording = MemberRecording(strategy)
    recording.join("", error=Error.MEMBER_ID_REQUIRED)
    recording.join()
    recording.sync((T0, T1, T2))
    recording.heartbeat()
    return recording


def record_wrong_member() -> MemberRecording:
    """A member that keeps its id, which the coordinator does not know."""
    recording = record_stable_member()
    recording.heartbeat(error=Error.UNKNOWN_MEMBER_ID)
    recording.wait(2_000)
    recording.join(generation=2, error=Error.UNKNOWN_MEMBER_ID)
    return recording
