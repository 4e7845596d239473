"""Members in recordings: what their requests to the coordinator show, and what they do not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from fencepost.model.assignors.consumer_protocol import encode_assignment, encode_subscription
from fencepost.model.assignors.group import Subscription, TopicPartition
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.client_judge.classic.recorded import MAX_MEMBERS, RecordedMembers
from fencepost.traces.client_judge.evidence import MemberViolation
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.operations import Lookahead

HEADER = Header("kafka://broker", Order.INTERVALS, "wall", Settings(), 1_000, {"recorder": "fencepost record"})
T0, T1, T2 = (("t", number) for number in range(3))


class Recording:
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
            metadata = encode_subscription(Subscription(tuple(topics), tuple(owned), generation - 1))
        body = {
            "session_timeout_ms": 6_000,
            "rebalance_timeout_ms": 6_000,
            "member_id": member_id,
            "group_instance_id": None,
            "protocol_type": kind,
            "protocols": [{"name": self.strategy, "metadata": metadata}],
        }
        members = {"a": metadata, **others} if leader == "a" else {}
        response = {
            "error_code": error,
            "generation_id": generation,
            "protocol_name": self.strategy,
            "leader": leader,
            "member_id": "a",
            "members": [{"member_id": id, "group_instance_id": None, "metadata": data} for id, data in members.items()],
        }
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

    def settle(self) -> None:
        """Everything that was under way has arrived: the member has shown that it is awake."""
        for _ in range(3):
            self.wait(1_000)
            self.add(Kind.REQUEST, "ApiVersions", 3, {})

    def violations(self, members: RecordedMembers | None = None) -> Iterator[MemberViolation]:
        members = members or RecordedMembers(HEADER)
        for moment in Lookahead(self.events).pair_operations():
            yield from members.on_event(moment.event, moment.operation)

    def violated(self) -> list[tuple[str, int]]:
        """The requirements that are violated, each with the number of the event."""
        return [(each.violation.requirement, each.violation.sequence) for each in self.violations()]

    def kept(self) -> set[str]:
        members = RecordedMembers(HEADER)
        assert list(self.violations(members)) == []
        return {requirement for requirement, _ in members.checks}


def stable(strategy: str = "range") -> Recording:
    """A member alone in its group, with three partitions."""
    recording = Recording(strategy)
    recording.join("", error=Error.MEMBER_ID_REQUIRED)
    recording.join()
    recording.sync((T0, T1, T2))
    recording.heartbeat()
    return recording


def test_a_member_that_does_as_it_should() -> None:
    recording = stable()
    recording.commit()
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.join(generation=2)
    recording.sync((T0, T1, T2), 2)
    recording.heartbeat(2)
    recording.leave("a")
    assert recording.kept() >= {"HBT-02", "MCOMMIT-03", "MEMBER-06", "MEMBER-08", "MEMBER-10", "WIRE-01"}


def test_a_heartbeat_of_a_generation_that_is_over() -> None:
    recording = stable()
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.join(generation=2)
    recording.sync((T0,), 2)
    recording.wait(2_000)
    recording.heartbeat(2)
    recording.wait(2_000)
    wrong = recording.heartbeat(1)
    ((found,),) = ([*recording.violations()],)
    assert (found.violation.requirement, found.violation.sequence) == ("HBT-02", wrong)
    assert (found.group, found.member) == ("g", "A")
    assert found.events[-1].sequence == wrong and found.events[0].api == "JoinGroup"


def test_a_member_id_that_the_coordinator_does_not_know_is_dropped() -> None:
    recording = stable()
    recording.heartbeat(error=Error.UNKNOWN_MEMBER_ID)
    recording.wait(2_000)
    wrong = recording.join(generation=2)
    assert recording.violated() == [("MEMBER-13", wrong)]


@pytest.mark.parametrize("error", [Error.NONE, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS])
def test_a_member_may_forget_its_id_for_a_reason_of_its_own(error: Error) -> None:
    recording = stable("cooperative-sticky")
    recording.heartbeat(error=error)
    recording.wait(2_000)
    recording.join("", generation=2)
    assert recording.violated() == []


def test_what_a_cooperative_member_has_is_in_its_join() -> None:
    recording = stable("cooperative-sticky")
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    wrong = recording.join(generation=2, owned=(T0,))
    assert recording.violated() == [("COOP-01", wrong)]


def test_a_member_may_have_refused_an_assignment_that_it_no_longer_wants() -> None:
    recording = Recording("cooperative-sticky")
    recording.join(topics=("t", "u"))
    recording.sync((T0, ("u", 0)))
    recording.wait(2_000)
    recording.join(generation=2, topics=("t",))
    assert recording.violated() == []


def rejoin(recording: Recording, **joined: Any) -> Recording:
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.join(generation=2, **joined)
    return recording


B = encode_subscription(Subscription(("t",)))
PLANS = {
    "one that lacks a member": ({"a": (T0, T1)}, "MEMBER-08"),
    "one that gives a partition twice": ({"a": (T0, T1), "b": (T1, T2)}, "ASSIGN-02"),
    "one that is uneven": ({"a": (T0, T1, T2), "b": ()}, "RANGE-02"),
    "one that leaves a partition out": ({"a": (T0,), "b": (T2,)}, "ASSIGN-03"),
}


@pytest.mark.parametrize(("plan", "requirement"), PLANS.values(), ids=PLANS)
def test_a_plan(plan: Mapping[str, Sequence[TopicPartition]], requirement: str) -> None:
    recording = rejoin(stable(), others={"b": B})
    wrong = recording.sync((T0, T1), 2, plan=plan)
    assert (requirement, wrong) in recording.violated()


def test_the_partitions_that_a_leader_knows_are_those_that_it_gives_out() -> None:
    recording = rejoin(stable(), others={"b": B})
    recording.sync((T0, T1), 2, plan={"a": (T0, T1), "b": (T2,)})
    assert recording.kept() >= {"ASSIGN-03", "RANGE-01", "RANGE-02"}


def test_a_partition_is_withheld_from_others_while_a_member_claims_it() -> None:
    recording = rejoin(stable("cooperative-sticky"), owned=(T0, T1, T2), others={"b": B})
    recording.sync((T0, T1), 2, plan={"a": (T0, T1), "b": ()})
    assert recording.kept() >= {"COOP-09", "COOP-10"}


def test_nothing_is_said_of_a_plan_where_racks_count() -> None:
    rack = encode_subscription(Subscription(("t",), rack="r"))
    recording = rejoin(stable(), others={"b": rack})
    recording.sync((T0,), 2, plan={"a": (T0, T2), "b": (T1,)})
    assert "RANGE-01" not in recording.kept()


def test_a_member_that_is_told_to_join_and_only_sends_heartbeats() -> None:
    recording = stable("cooperative-sticky")
    rejoin(recording, owned=(T0, T1, T2), others={"b": B})
    recording.sync((T0, T1), 2, plan={"a": (T0, T1), "b": ()})
    recording.wait(15_000)
    recording.heartbeat(2)
    assert recording.violated() == []
    recording.wait(15_000)
    wrong = recording.heartbeat(2)
    assert recording.violated() == [("COOP-03", wrong)]


def test_a_member_that_is_heard_no_more_owes_nothing() -> None:
    recording = stable()
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.wait(600_000)
    recording.join("", generation=3, member="B", connection=2)
    assert recording.violated() == []


def test_a_member_is_followed_from_its_join_on() -> None:
    recording = Recording()
    recording.heartbeat(4)
    recording.commit(3)
    recording.heartbeat(2)
    assert recording.violated() == []


@pytest.mark.parametrize("group", [None, "g"])
def test_nothing_is_known_after_a_gap(group: str | None) -> None:
    recording = stable()
    recording.lose_messages(group)
    recording.wait(5_000)
    recording.heartbeat(7)
    assert recording.violated() == []


def test_a_gap_in_another_group_does_not_matter() -> None:
    recording = stable()
    recording.lose_messages("another")
    recording.wait(5_000)
    wrong = recording.heartbeat(7)
    assert recording.violated() == [("HBT-02", wrong)]


def test_somebody_else_may_end_a_membership() -> None:
    recording = stable()
    recording.leave("a", connection=9)
    recording.wait(5_000)
    recording.commit()
    assert recording.violated() == []


def test_a_member_that_left_commits_nothing() -> None:
    recording = stable()
    recording.leave("a")
    recording.wait(5_000)
    wrong = recording.commit()
    assert recording.violated() == [("MCOMMIT-11", wrong)]


def test_a_commit_of_nobody_is_none_of_a_member() -> None:
    recording = stable()
    recording.leave("a")
    recording.wait(5_000)
    recording.commit(-1, member_id="")
    assert recording.violated() == []


def test_other_kinds_of_groups_are_left_alone() -> None:
    recording = Recording()
    recording.join(kind="connect", metadata=b"x")
    recording.wait(5_000)
    recording.heartbeat(7)
    assert recording.violated() == []


def test_a_message_that_cannot_be_read_ends_the_following() -> None:
    recording = stable()
    recording.add(Kind.REQUEST, "JoinGroup", 5, {"group_id": "g", "_findings": ["surplus bytes"], "_size": 9})
    recording.wait(5_000)
    recording.heartbeat(7)
    assert recording.violated() == []


def test_only_the_members_of_chosen_groups_are_followed() -> None:
    recording = stable()
    recording.wait(5_000)
    recording.heartbeat(7)
    assert len(list(recording.violations(RecordedMembers(HEADER, lambda group: group == "g")))) == 1
    assert list(recording.violations(RecordedMembers(HEADER, lambda group: group != "g"))) == []


def test_of_very_many_members_the_last_are_followed() -> None:
    first = stable()
    members, numbers = RecordedMembers(HEADER), count(1)
    assert list(first.violations(members)) == []
    for _ in range(MAX_MEMBERS):
        (join,) = [event for event in first.events if event.sequence == 2]
        other = replace(join, member=f"other {next(numbers)}")
        for moment in Lookahead([other]).pair_operations():
            assert list(members.on_event(moment.event, moment.operation)) == []
    late = Recording()
    late.wait(9_000)
    late.heartbeat(7)
    assert list(late.violations(members)) == []


def test_a_protocol_named_twice_is_seen_in_each_member() -> None:
    recording = stable()
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.strategy = "roundrobin"
    wrong = recording.join(generation=2)
    assert recording.violated() == [("MEMBER-04", wrong)]
