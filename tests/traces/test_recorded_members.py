"""Members in recordings: what their requests to the coordinator show, and what they do not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from fencepost.model.assignors.consumer_protocol import encode_subscription
from fencepost.model.assignors.group import Subscription, TopicPartition
from fencepost.model.errors import Error
from fencepost.traces.classic.client.client import MAX_MEMBERS, RecordedMembers
from fencepost.traces.events import Kind, Lookahead
from tests.support.member_recording import RECORDED, T0, T1, T2, MemberRecording, record_stable_member


def test_a_member_that_does_as_it_should() -> None:
    recording = record_stable_member()
    recording.commit()
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.join(generation=2)
    recording.sync((T0, T1, T2), 2)
    recording.heartbeat(2)
    recording.leave("a")
    assert recording.kept() >= {"HBT-02", "MCOMMIT-03", "MEMBER-06", "MEMBER-08", "MEMBER-10", "WIRE-01"}


def test_a_heartbeat_of_a_generation_that_is_over() -> None:
    recording = record_stable_member()
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.join(generation=2)
    recording.sync((T0,), 2)
    recording.wait(2_000)
    recording.heartbeat(2)
    recording.wait(2_000)
    wrong = recording.heartbeat(1)
    ((found, events),) = recording.violations()
    assert (found.requirement, found.sequence) == ("HBT-02", wrong)
    assert found.group == "g" and found.title.startswith("A in group 'g': ")
    assert events[-1].sequence == wrong and events[0].api == "JoinGroup"


def test_a_member_id_that_the_coordinator_does_not_know_is_dropped() -> None:
    recording = record_stable_member()
    recording.heartbeat(error=Error.UNKNOWN_MEMBER_ID)
    recording.wait(2_000)
    wrong = recording.join(generation=2)
    assert recording.violated_requirements() == [("MEMBER-13", wrong)]


@pytest.mark.parametrize("error", [Error.NONE, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS])
def test_a_member_may_forget_its_id_for_a_reason_of_its_own(error: Error) -> None:
    recording = record_stable_member("cooperative-sticky")
    recording.heartbeat(error=error)
    recording.wait(2_000)
    recording.join("", generation=2)
    assert recording.violated_requirements() == []


def test_what_a_cooperative_member_has_is_in_its_join() -> None:
    recording = record_stable_member("cooperative-sticky")
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    wrong = recording.join(generation=2, owned=(T0,))
    assert recording.violated_requirements() == [("COOP-01", wrong)]


def test_a_member_may_have_refused_an_assignment_that_it_no_longer_wants() -> None:
    recording = MemberRecording("cooperative-sticky")
    recording.join(topics=("t", "u"))
    recording.sync((T0, ("u", 0)))
    recording.wait(2_000)
    recording.join(generation=2, topics=("t",))
    assert recording.violated_requirements() == []


def rejoin(recording: MemberRecording, **joined: Any) -> MemberRecording:
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
    recording = rejoin(record_stable_member(), others={"b": B})
    wrong = recording.sync((T0, T1), 2, plan=plan)
    assert (requirement, wrong) in recording.violated_requirements()


def test_the_partitions_that_a_leader_knows_are_those_that_it_gives_out() -> None:
    recording = rejoin(record_stable_member(), others={"b": B})
    recording.sync((T0, T1), 2, plan={"a": (T0, T1), "b": (T2,)})
    assert recording.kept() >= {"ASSIGN-03", "RANGE-01", "RANGE-02"}


def test_a_partition_is_withheld_from_others_while_a_member_claims_it() -> None:
    recording = rejoin(record_stable_member("cooperative-sticky"), owned=(T0, T1, T2), others={"b": B})
    recording.sync((T0, T1), 2, plan={"a": (T0, T1), "b": ()})
    assert recording.kept() >= {"COOP-09", "COOP-10"}


def test_nothing_is_said_of_a_plan_where_racks_count() -> None:
    rack = encode_subscription(Subscription(("t",), rack="r"))
    recording = rejoin(record_stable_member(), others={"b": rack})
    recording.sync((T0,), 2, plan={"a": (T0, T2), "b": (T1,)})
    assert "RANGE-01" not in recording.kept()


def test_a_member_that_is_told_to_join_and_only_sends_heartbeats() -> None:
    recording = record_stable_member("cooperative-sticky")
    rejoin(recording, owned=(T0, T1, T2), others={"b": B})
    recording.sync((T0, T1), 2, plan={"a": (T0, T1), "b": ()})
    recording.wait(15_000)
    recording.heartbeat(2)
    assert recording.violated_requirements() == []
    recording.wait(15_000)
    wrong = recording.heartbeat(2)
    assert recording.violated_requirements() == [("COOP-03", wrong)]


def test_a_member_that_is_heard_no_more_owes_nothing() -> None:
    recording = record_stable_member()
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.wait(600_000)
    recording.join("", generation=3, member="B", connection=2)
    assert recording.violated_requirements() == []


def test_a_member_is_followed_from_its_join_on() -> None:
    recording = MemberRecording()
    recording.heartbeat(4)
    recording.commit(3)
    recording.heartbeat(2)
    assert recording.violated_requirements() == []


@pytest.mark.parametrize("group", [None, "g"])
def test_nothing_is_known_after_a_gap(group: str | None) -> None:
    recording = record_stable_member()
    recording.lose_messages(group)
    recording.wait(5_000)
    recording.heartbeat(7)
    assert recording.violated_requirements() == []


def test_a_gap_in_another_group_does_not_matter() -> None:
    recording = record_stable_member()
    recording.lose_messages("another")
    recording.wait(5_000)
    wrong = recording.heartbeat(7)
    assert recording.violated_requirements() == [("HBT-02", wrong)]


def test_somebody_else_may_end_a_membership() -> None:
    recording = record_stable_member()
    recording.leave("a", connection=9)
    recording.wait(5_000)
    recording.commit()
    assert recording.violated_requirements() == []


def test_a_member_that_left_commits_nothing() -> None:
    recording = record_stable_member()
    recording.leave("a")
    recording.wait(5_000)
    wrong = recording.commit()
    assert recording.violated_requirements() == [("MCOMMIT-11", wrong)]


def test_a_commit_of_nobody_is_none_of_a_member() -> None:
    recording = record_stable_member()
    recording.leave("a")
    recording.wait(5_000)
    recording.commit(-1, member_id="")
    assert recording.violated_requirements() == []


def test_other_kinds_of_groups_are_left_alone() -> None:
    recording = MemberRecording()
    recording.join(kind="connect", metadata=b"x")
    recording.wait(5_000)
    recording.heartbeat(7)
    assert recording.violated_requirements() == []


def test_a_message_that_cannot_be_read_ends_the_following() -> None:
    recording = record_stable_member()
    recording.add(Kind.REQUEST, "JoinGroup", 5, {"group_id": "g", "_findings": ["surplus bytes"], "_size": 9})
    recording.wait(5_000)
    recording.heartbeat(7)
    assert recording.violated_requirements() == []


def test_only_the_members_of_chosen_groups_are_followed() -> None:
    recording = record_stable_member()
    recording.wait(5_000)
    recording.heartbeat(7)
    assert len(list(recording.violations(RecordedMembers(RECORDED, lambda group: group == "g")))) == 1
    assert list(recording.violations(RecordedMembers(RECORDED, lambda group: group != "g"))) == []


def test_of_very_many_members_the_last_are_followed() -> None:
    first = record_stable_member()
    members, numbers = RecordedMembers(RECORDED), count(1)
    assert list(first.violations(members)) == []
    for _ in range(MAX_MEMBERS):
        (join,) = [event for event in first.events if event.sequence == 2]
        other = replace(join, member=f"other {next(numbers)}")
        for moment in Lookahead([other]).pair_operations():
            assert list(members.on_event(moment.event, moment.operation)) == []
    late = MemberRecording()
    late.wait(9_000)
    late.heartbeat(7)
    assert list(late.violations(members)) == []


def test_a_protocol_named_twice_is_seen_in_each_member() -> None:
    recording = record_stable_member()
    recording.heartbeat(error=Error.REBALANCE_IN_PROGRESS)
    recording.strategy = "roundrobin"
    wrong = recording.join(generation=2)
    assert recording.violated_requirements() == [("MEMBER-04", wrong)]
