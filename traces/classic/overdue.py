"""Requirements that say when a response comes, and the words for one that does not."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from fencepost.model.catalogue.specification import Rule
from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Holder, Phase
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.settings import Settings
from fencepost.traces.classic.nondeterminism import unseen_of
from fencepost.traces.classic.stepping import CoordinatorStepper
from fencepost.traces.events import Header, Operation
from fencepost.traces.judge.groups.group_judge import MISSING
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Instant, Mismatch, high, low

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


# --- Groups that a clean-up pass has to have removed by now: Empty, without offsets and transactions (ADMIN-35).

MAX_CLEANUP_PASSES = 3
"""By how many clean-up intervals a group that may go is gone."""
MAX_PASS_DELAY_MS = 5_000
"""How late a pass may be where time is not virtual, beyond the grace of the trace."""
READING_APIS = frozenset({"DescribeGroups", "ListGroups", "Heartbeat", "OffsetFetch"})
"""Requests that do not keep a group."""
STAYS = ("ADMIN-35",)
"""The requirement that a group breaks which clean-up passes should have removed."""


@dataclass(slots=True)
class CleanupWatch:
    """Until when each group of a trace was in use, in milliseconds."""

    header: Header
    last_use: dict[str, float] = field(default_factory=dict)
    restarted_at: float = -inf

    def observe(self, group: str, operation: Operation) -> None:
        """Take in a request that keeps a group; one without a response may be handled at any time."""
        until = inf if operation.responded_at is None else operation.responded_at
        self.last_use[group] = max(self.last_use.get(group, -inf), until)

    def is_overdue(self, configuration: Configuration, group: str, settings: Settings, now: Instant) -> bool:
        """Whether the group, if it is as this configuration has it, has to be gone by now."""
        state = configuration.world
        if not can_be_removed(state):
            return False
        cleanup = unseen_of(configuration).last_cleanup
        return self.is_idle(group, settings, now, max(high(state.emptied_at), -inf if cleanup is None else cleanup))

    def is_idle(self, group: str, settings: Settings, now: Instant, since: float = -inf) -> bool:
        """Whether the group was not used in so many clean-up passes, counted from `since`, that it is gone if it may
        go.

        Who told the period of clean-up passes told another than the default one.
        """
        if "retention_check_interval" in self.header.not_told:
            return False
        is_virtual = self.header.clock == "virtual"
        if not is_virtual and settings.retention_check_interval == Settings().retention_check_interval:
            return False
        idle_since = max(self.last_use.get(group, inf), self.restarted_at, since)
        late = self.header.grace if is_virtual else 2 * self.header.grace + MAX_PASS_DELAY_MS
        return low(now) > idle_since + MAX_CLEANUP_PASSES * settings.retention_check_interval + late


def can_be_removed(state: GroupState) -> bool:
    """Whether nothing keeps the group: no member, no offset, no transaction."""
    group = state.group
    if group is None or group.phase is not Phase.EMPTY:
        return False
    return not (state.offsets or state.pending or state.ended_transactions)


def keep_overdue_group(
    stepper: CoordinatorStepper, configuration: Configuration, part: GroupOperation, now: Instant
) -> Iterator[Configuration]:
    """For a diagnosis: the configuration in which the group is still there, and the response is wrong for that."""
    gone = evolve(configuration, world=GroupState(deleted=configuration.world.deleted))
    for after in stepper.step_request(gone, part, part.request, now):
        for mismatch in after.mismatches[len(configuration.mismatches) :]:
            wrong = Mismatch(
                part.operation.handle,
                mismatch.fields,
                mismatch.expected,
                "clean-up.overdue",
                configuration.world,
                is_certain=True,
            )
            unseen = evolve(unseen_of(configuration), last_cleanup=low(now))
            yield evolve(configuration, mismatches=(*configuration.mismatches, wrong), unseen=unseen)
            return
