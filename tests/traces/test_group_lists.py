"""A list of groups without a group that exists is a violation; after its members have left it may be gone."""

import pytest

from fencepost.traces.events import Kind, Order
from tests.support.trace_builder import OK, OneMemberTrace, commit_offset


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
