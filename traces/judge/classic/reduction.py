"""Fewer configurations without losing an explanation: requests that commute, and states that mean the same.

A waiting request may be handled at once if the response seen fits, it changes nothing but its member's session, and it
would change no more at any later moment at which the same response could be given. The order of the member table means
nothing.
"""

from collections.abc import Mapping
from typing import Any

from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.member_table import NOWHERE, find
from fencepost.model.classic.core.state import FREE, Group, Holder, Slot
from fencepost.model.classic.messages.requests import Heartbeat, JoinGroup, Request, SyncGroup
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.search.time_interval import Instant, TimeInterval, high, low

READ_ONLY_RULES = frozenset(
    {
        "heartbeat.invalid-group",
        "heartbeat.unknown-group",
        "heartbeat.empty",
        "heartbeat.unknown-member",
        "heartbeat.fenced",
        "heartbeat.other-generation",
        "fetch.unknown-group",
        "fetch.offsets",
        "describe.unknown-group",
        "describe.group",
        "describe.stable",
        "list.unknown-group",
        "list.filtered",
        "list.group",
        "commit.nothing-to-ask",
        "commit.unknown-group",
        "commit.simple-in-active",
        "commit.unknown-member",
        "commit.fenced",
        "commit.other-generation",
        "commit.completing",
        "leave.invalid-group",
        "leave.unknown-group",
        "leave.nobody",
        "delete.unknown-group",
        "delete.active",
        "offset-delete.invalid-group",
        "offset-delete.unknown-group",
        "offset-delete.active",
        "join.invalid-group",
        "join.invalid-session-timeout",
        "join.fenced",
        "join.completing.same-protocols",
        "join.stable.same-protocols",
        "sync.incomplete",
        "sync.invalid-group",
        "sync.fenced",
        "sync.preparing",
    }
)
"""Rules that change nothing, of requests that could change nothing later and still get the same response."""
SESSION_RULES = frozenset({"heartbeat.preparing", "heartbeat.completing", "heartbeat.stable"})
"""Rules that begin the member's session anew. Sessions that begin within one span of time are not distinguished."""
UNKNOWN_MEMBER_RULES = frozenset({"join.unknown-group", "join.unknown-member", "sync.unknown-member", "sync.empty"})
"""Rules that refuse an id for good, unless it waits to be used."""
COMMUTING_ERRORS: Mapping[str, frozenset[int] | None] = {
    "Heartbeat": None,
    "OffsetFetch": None,
    "DescribeGroups": None,
    "ListGroups": None,
    "OffsetCommit": None,
    "LeaveGroup": None,
    "DeleteGroups": None,
    "OffsetDelete": None,
    "JoinGroup": frozenset({0, 24, 25, 26, 82}),
    "SyncGroup": frozenset({0, 22, 23, 24, 25, 27, 82}),
}
"""The APIs, and where it matters the errors, with which a request may be such a one."""


def may_commute(api: str, response: Mapping[str, Any] | None) -> bool:
    """The response is one that such a request may get: a quick look before the model is asked."""
    if response is None or api not in COMMUTING_ERRORS:
        return False
    if api == "OffsetCommit":
        return errors_in(response) != {Error.NONE}
    errors = COMMUTING_ERRORS[api]
    return errors is None or response.get("error_code") in errors


def is_commutative(before: GroupState, request: Request, rule: str, after: GroupState) -> bool:
    """Handled by this rule, the request may be taken as handled at once."""
    if rule in READ_ONLY_RULES:
        return after is before
    group = before.group
    if rule in UNKNOWN_MEMBER_RULES:
        return after is before and not is_pending_id(group, request)
    if rule in SESSION_RULES and group is not None and isinstance(request, Heartbeat):
        place = find(group, request.core.member, Holder.MEMBER)
        return place != NOWHERE and not group.slots[place].is_new
    if rule == "sync.other-generation" and group is not None and isinstance(request, SyncGroup):
        return after is before and request.core.generation < group.generation
    return rule == "sync.stable"


def is_pending_id(group: Group | None, request: Request) -> bool:
    """The id of the request is one whose owner is yet to come back."""
    if group is None or not isinstance(request, JoinGroup | SyncGroup):
        return False
    return find(group, request.core.member, Holder.PENDING) != NOWHERE


def normalize_members(world: GroupState, before: Group | None, slack: int) -> GroupState:
    """The state with its member table in one order, so that equal states are found equal.

    A session may have begun with either of two requests handled within `slack` milliseconds: it ends with the later
    one.
    """
    group = world.group
    if group is None:
        return world
    known = {} if before is None else {slot.id: slot for slot in before.slots if slot.armed and not slot.is_new}
    held = [extend_session(slot, known.get(slot.id), slack) for slot in group.slots if slot.holder is not Holder.NOBODY]
    return evolve(world, group=evolve(group, slots=(*sorted(held, key=lambda slot: str(slot.id)), FREE)))


def extend_session(slot: Slot, before: Slot | None, slack: int) -> Slot:
    """The slot with its session ending no earlier than it was going to, if that is hardly later."""
    if before is None or not slot.armed:
        return slot
    deadline = extend_deadline(slot.deadline, before.deadline, slack)
    return slot if deadline is slot.deadline else evolve(slot, deadline=deadline)


def extend_deadline(deadline: Instant, before: Instant, slack: int) -> Instant:
    """The deadline, no earlier than the one before it if that is hardly later."""
    return TimeInterval(low(deadline), high(before)) if 0 < high(before) - high(deadline) <= slack else deadline
