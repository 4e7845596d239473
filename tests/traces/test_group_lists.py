"""A list of groups without a group that exists is a violation; after its members have left it may be gone."""

import pytest

from fencepost.model.errors import Error
from fencepost.traces.events import Kind, Order
from tests.support.trace_builder import OK, OneMemberTrace, commit_offset, join_body


def listed_without(order: Order, *, has_left: bool, has_offset: bool) -> list[str]:
    """The requirements that a list without the group violates."""
    trace = OneMemberTrace(order)
    if has_offset:
        commit_offset(trace, 5, 3, answered=True)
    trace.form_stable_group()
    if has_left:
        trace.exchange(60, "LeaveGroup", {"member_id": "a"}, OK, 1)
    asked = trace.add_event(Kind.REQUEST, 80, "ListGroups", {"states_filter": []}, version=4)
    trace.send_response(81, asked, {"error_code": 0, "groups": []})
    verdict = trace.verdict()
    assert verdict.inconclusive == ()
    return [id for each in verdict.violations for id in each.requirements]


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize(("has_left", "has_offset"), [(False, False), (False, True), (True, True)])
def test_a_group_that_exists_is_listed(order: Order, has_left: bool, has_offset: bool) -> None:
    assert listed_without(order, has_left=has_left, has_offset=has_offset) == ["ADMIN-11"]


@pytest.mark.parametrize("order", Order)
def test_an_empty_group_without_offsets_may_have_been_removed(order: Order) -> None:
    assert listed_without(order, has_left=True, has_offset=False) == []


def seen_again(trace: OneMemberTrace) -> list[str]:
    """The requirements that a group violates which is described as Dead, and then listed in this state."""
    gone = {"error_code": 0, "group_id": "g", "group_state": "Dead", "protocol_type": "", "protocol_data": ""}
    asked = trace.add_event(Kind.REQUEST, 80, "DescribeGroups", {"groups": ["g"]}, version=1)
    trace.send_response(81, asked, {"groups": [{**gone, "members": []}]})
    asked = trace.add_event(Kind.REQUEST, 82, "ListGroups", {}, version=3)
    trace.send_response(83, asked, {"error_code": 0, "groups": [{"group_id": "g", "protocol_type": ""}]})
    return [id for each in trace.verdict().violations for id in each.requirements]


@pytest.mark.parametrize("order", Order)
def test_a_group_of_which_nothing_is_stored_may_be_overlooked_for_a_while(order: Order) -> None:
    """LAT-21: Kafka 4 looks at what is committed, and an id that was handed out is not written."""
    trace = OneMemberTrace(order)
    trace.exchange(0, "JoinGroup", join_body(""), {"error_code": Error.MEMBER_ID_REQUIRED, "member_id": "a"}, 4)
    assert seen_again(trace) == []


@pytest.mark.parametrize("order", Order)
def test_a_group_with_a_generation_is_not_overlooked(order: Order) -> None:
    assert seen_again(OneMemberTrace(order).form_stable_group()) != []
