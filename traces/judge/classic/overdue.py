"""Requirements that say when a response comes, and the words for one that does not."""

from collections.abc import Mapping
from typing import Any

from fencepost.model.catalogue.specification import Rule
from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.core.state import Holder
from fencepost.model.errors import Error
from fencepost.traces.judge.groups.silence_watch import MISSING
from fencepost.traces.judge.search.configuration import GroupOperation, Mismatch

RELEASED: Mapping[tuple[str, Error], Mapping[str, str]] = {
    ("JoinGroup", Error.NONE): {
        "timer.rebalance": "JOIN-44",
        "timer.initial-delay": "TIMER-16",
        "timer.pending-id": "TIMER-08",
        "": "JOIN-27",
    },
    ("JoinGroup", Error.UNKNOWN_MEMBER_ID): {"leave.member": "LEAVE-09", "timer.new-member": "TIMER-06"},
    ("JoinGroup", Error.FENCED_INSTANCE_ID): {"": "STATIC-05"},
    ("SyncGroup", Error.NONE): {"": "SYNC-10"},
    ("SyncGroup", Error.REBALANCE_IN_PROGRESS): {
        "timer.sync": "TIMER-13",
        "leave.member": "LEAVE-19",
        "": "SYNC-18",
    },
    ("SyncGroup", Error.FENCED_INSTANCE_ID): {"": "STATIC-05"},
}
"""By API and error of the response to a parked request, the requirement that says when it comes: by the rule that ends
the wait, or by any other ("")."""

PROTECTED_BY: Mapping[str, str] = {"JoinGroup": "TIMER-03", "SyncGroup": "TIMER-04"}
"""By API, the requirement that a member does not expire while its request waits."""
STRANGER_RULES = frozenset(
    {"join.unknown-group", "join.unknown-member", "sync.empty", "sync.unknown-group", "sync.unknown-member"}
)
"""Rules that refuse the JoinGroup or SyncGroup of one who is no member."""


def overdue_requirements(part: GroupOperation, mismatch: Mismatch, own_rules: frozenset[str]) -> tuple[str, ...]:
    """The requirement that a missing response violates; `own_rules` are those by which its request was handled."""
    api = part.operation.api
    if was_member(part, mismatch):
        return (PROTECTED_BY[api],)
    applied: Rule | None = RULES.get(mismatch.rule)
    error: Any = getattr(mismatch.expected, "error", None)
    if is_immediate(mismatch.rule, own_rules) and not (api == "JoinGroup" and is_end_of_join_phase(applied, error)):
        return applied.requirements[:1] if applied is not None else ()
    by_rule = RELEASED.get((api, error), {})
    found = by_rule.get(mismatch.rule) or by_rule.get("")
    if found is not None:
        return (found,)
    return applied.requirements[:1] if applied is not None else ()


def was_member(part: GroupOperation, mismatch: Mismatch) -> bool:
    """Whether the sender of a request that is refused as a stranger's was a member when it sent the request.

    The request may have come in so late that the session was over; far likelier the session ran out while it waited.
    """
    group = getattr(mismatch.sent_in, "group", None)
    if group is None or mismatch.rule not in STRANGER_RULES:
        return False
    return any(slot.holder == Holder.MEMBER and slot.id == part.request.core.member for slot in group.slots)


def is_immediate(rule: str, own_rules: frozenset[str]) -> bool:
    """Whether the request had to be answered when it was handled."""
    return rule in own_rules or (not own_rules and not rule.startswith("timer."))


def is_end_of_join_phase(applied: Rule | None, error: Any) -> bool:
    """Whether a JoinGroup by this rule is answered because it was the last that the join phase waited for."""
    return applied is not None and applied.error is None and error == Error.NONE


def is_overdue(mismatch: Mismatch) -> bool:
    """Whether the mismatch is a response that was never seen."""
    return MISSING in mismatch.fields
