"""What a trace shows of a group where it does not show everything: its past, or what happened in a gap.

A group is judged from a moment on at which its state is known: from its beginning if its first round has none but
members that were seen to come, and otherwise from the first moment at which a whole round was seen and nothing is in
flight. Until then nothing is said about it. Offsets are taken as they are first shown. Members that a trace does not
show at all make everything about their group uncertain.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import FREE, Group, Phase
from fencepost.model.classic.messages.requests import (
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    Offset,
    OffsetCommit,
    OffsetFetch,
    Partition,
    Request,
    SyncGroup,
)
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.traces.events import Body
from fencepost.traces.judge.classic.failover import NOT_READY_ERRORS
from fencepost.traces.judge.classic.matching import offset_fetch_bodies, offset_fetch_rows
from fencepost.traces.judge.classic.offset_expiry import is_offset_unset
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.observe.round_reconstruction import ReconstructedRebalance
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Mismatch
from fencepost.traces.operations import Operation

if TYPE_CHECKING:
    from fencepost.traces.judge.judge import Judge

MAX_HISTORY = 20_000
"""How much of a group is kept until its first round is seen."""
MAX_UNSEEN_SESSION_MS = 60_000
"""How long an id that nobody saw given out may be waited for: a session timeout, of which clients choose less."""
FIRST_EPOCH_VERSION = 5
"""The first version of OffsetFetch that shows an offset in full."""
MAX_MEMBER_IDS = 10_000
"""How many member ids of a group are remembered."""
SETTINGS_ERRORS = frozenset(
    {
        Error.INVALID_SESSION_TIMEOUT,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.OFFSET_METADATA_TOO_LARGE,
    }
)
"""Errors that depend on how the target is set."""
ASSUMED_SETTINGS_REASON = "what it shows depends on settings of the target, which the trace does not tell"
UNKNOWN_PAST_REASON = "what was before is not known, and no round was seen from its beginning to its end"
UNSEEN_MEMBERS_REASON = "it has members that the trace does not show"


@dataclass(slots=True)
class UnknownGroup:
    """A group whose state is not known."""

    open_operations: dict[int, GroupOperation] = field(default_factory=dict)
    history: list[tuple[GroupOperation, int, bool]] | None = field(default_factory=list)
    """Everything since, as long as it may have been from the group's beginning: what, when, sent or answered."""
    issued_ids: set[str] = field(default_factory=set)
    """Ids that were given out since."""
    rebalance: ReconstructedRebalance = field(default_factory=ReconstructedRebalance)
    is_active: bool = False
    """Members were heard of."""

    def record(self, part: GroupOperation, time: int, *, sent: bool) -> None:
        """Take note of a request or an answer."""
        self.is_active |= isinstance(part.request, JoinGroup | SyncGroup | Heartbeat | LeaveGroup)
        if self.history is not None:
            self.history.append((part, time, sent))
            if len(self.history) > MAX_HISTORY:
                self.history = None


class PartialTrace:
    """What is known of the groups of one trace. As long as nothing is said to be unknown, it has no part in judging."""

    def __init__(self, *, settings_assumed: bool = False) -> None:
        self.is_partial = False
        self.settings_assumed = settings_assumed
        self.since = 0
        self.unknown_groups: dict[str, UnknownGroup] = {}
        self.member_ids: dict[str, dict[str, None]] = {}
        self.known_offsets: dict[str, set[Partition]] = {}
        """Offsets that are known, by group."""
        self.violation_counts: dict[str, int] = {}
        """How many faults there were when a group was taken up."""

    # --- what is lost -------------------------------------------------------------------------------------------

    def reset(self, judge: "Judge", time: int) -> None:
        """Nothing that was known of groups holds any more."""
        self.is_partial = True
        self.since = time
        judge.lookup.reset()
        self.unknown_groups = {
            group: UnknownGroup(open_operations=unseen.open_operations, history=None)
            for group, unseen in self.unknown_groups.items()
        }
        for group in list(judge.searches):
            self.untrack(judge, group)

    def untrack(self, judge: "Judge", group: str) -> None:
        """Nothing that was known of this group holds any more."""
        search = judge.searches.pop(group)
        judge.commit_history(search)
        judge.stop_reasons.pop(group, None)
        left = {handle: part for handle, part in search.open_operations.items() if not part.operation.lost}
        self.unknown_groups[group] = UnknownGroup(open_operations=left, history=None if left else [])
        self.known_offsets.pop(group, None)

    def retract(self, judge: "Judge", group: str) -> None:
        """Whatever was said of this group may be owed to somebody unseen."""
        before = self.violation_counts.get(group, 0)
        judge.violations[before:] = [fault for fault in judge.violations[before:] if fault.group != group]
        judge.inconclusive.append(f"group {group!r}: {UNSEEN_MEMBERS_REASON}")
        self.untrack(judge, group)

    def explains_mismatch(self, judge: "Judge", group: str, part: GroupOperation) -> bool:
        """An answer that fits nothing says no more than that less is known than was thought."""
        response = part.operation.response or {}
        if response and errors_in(response) <= NOT_READY_ERRORS:
            self.untrack(judge, group)
            return True
        sender = getattr(getattr(part.request, "core", None), "member", None)
        if (sender is not None and sender not in self.member_ids[group]) or self.has_unseen_members(
            judge, group, part.operation
        ):
            self.retract(judge, group)
            return True
        return False

    def may_predate_trace(self, judge: "Judge", part: GroupOperation, mismatch: Mismatch, time: int) -> bool:
        """A round may have waited for an id that was handed out before, an offset may be of an older transaction."""
        group, touched = (
            part.request.group,
            isinstance(part.request, OffsetFetch) or mismatch.fields & {"time", "state"},
        )
        errors = errors_in(part.operation.response or {}) | {getattr(mismatch.expected, "error", 0)}
        if self.settings_assumed and (mismatch.fields & {"time", "state"} or errors & SETTINGS_ERRORS):
            judge.inconclusive.append(f"group {group!r}: {ASSUMED_SETTINGS_REASON}")
        elif time <= self.since + MAX_UNSEEN_SESSION_MS and touched:
            judge.inconclusive.append(f"group {group!r}: an answer may be owed to what was before the trace")
        else:
            return False
        self.untrack(judge, group)
        return True

    def undecided_reasons(self) -> tuple[str, ...]:
        """The groups of which nothing could be said in the end."""
        return tuple(
            f"group {group!r}: {UNKNOWN_PAST_REASON}"
            for group, unseen in self.unknown_groups.items()
            if unseen.is_active
        )

    # --- what is seen -------------------------------------------------------------------------------------------

    def defer(self, judge: "Judge", operation: Operation, request: Request) -> bool:
        """The request is not to be judged: its group is not known yet, or its answer is not."""
        group, part = request.group, GroupOperation(operation, request)
        if group in judge.searches:
            return self.adopt_offsets(judge, part)
        unseen = self.unknown_groups.setdefault(group, UnknownGroup())
        unseen.open_operations[operation.handle] = part
        unseen.record(part, operation.sent_at, sent=True)
        return True

    def on_response(self, judge: "Judge", operation: Operation, time: int) -> None:
        """An answer was seen: perhaps a group is known by it."""
        if operation.api == "JoinGroup" and operation.body.get("group_id") in judge.searches:
            group = operation.body["group_id"]
            if self.has_unseen_members(judge, group, operation):
                self.retract(judge, group)
            self.learn_member_ids(group, operation)
        for group, unseen in list(self.unknown_groups.items()):
            part = unseen.open_operations.pop(operation.handle, None)
            if part is None:
                continue
            self.learn_member_ids(group, operation)
            unseen.record(part, time, sent=False)
            unseen.rebalance.on_response(part, time)
            if operation.api == "JoinGroup" and not operation.body.get("member_id"):
                unseen.issued_ids.add((operation.response or {}).get("member_id", ""))
            if self.try_from_start(judge, group, unseen, part) or self.try_from_rebalance(judge, group, unseen, time):
                del self.unknown_groups[group]

    def on_connection_lost(self, operation: Operation) -> None:
        """A request lost its connection: what came of it is not known."""
        for unseen in self.unknown_groups.values():
            if unseen.open_operations.pop(operation.handle, None) is not None:
                unseen.rebalance.is_over = True

    def learn_member_ids(self, group: str, operation: Operation) -> None:
        """Remember whom the trace shows."""
        ids = self.member_ids.setdefault(group, {})
        for shown in (operation.body.get("member_id"), (operation.response or {}).get("member_id")):
            if shown and operation.response and operation.response.get("error_code") in (0, Error.MEMBER_ID_REQUIRED):
                ids[shown] = None
        while len(ids) > MAX_MEMBER_IDS:
            del ids[next(iter(ids))]

    def has_unseen_members(self, judge: "Judge", group: str, operation: Operation) -> bool:
        """An answer tells of members that the trace does not show."""
        response = operation.response or {}
        if operation.api != "JoinGroup" or response.get("error_code") != Error.NONE:
            return False
        others = judge.searches[group].open_operations.values()
        joining = [part.operation for part in others if part.operation.api == "JoinGroup"]
        known = {each.response.get("member_id") for each in (operation, *joining) if each.response is not None}
        anonymous = any(each.response is None for each in joining)
        return not anonymous and not set(member_ids_in(response)) <= known | set(self.member_ids.get(group, ()))

    # --- what is known again ------------------------------------------------------------------------------------

    def try_from_start(self, judge: "Judge", group: str, unseen: UnknownGroup, part: GroupOperation) -> bool:
        """The first round is complete, and all its members were seen to come: so there were none before."""
        response = part.operation.response or {}
        if unseen.history is None or part.operation.api != "JoinGroup" or not response.get("members"):
            return False
        moments, unseen.history = unseen.history, None
        joining = {(each.operation.response or {}).get("member_id") for each in unseen.open_operations.values()}
        if response["error_code"] or not set(member_ids_in(response)) <= unseen.issued_ids | joining:
            return False
        generation = response["generation_id"] - 1
        long_ago = -judge.settings.offsets_retention
        kind = getattr(part.request, "core").protocol_type  # noqa: B009 (a JoinGroup has one)
        empty = Group(generation=generation, protocol_type=kind, slots=(FREE,)) if generation else None
        world = GroupState(empty, frozenset() if empty else None, emptied_at=long_ago, stored=empty)
        kept = (len(judge.violations), len(judge.inconclusive), judge.rules.copy(), judge.transitions.copy())
        self.track(judge, group, world, 0)
        for each, time, sent in moments:
            if group in judge.searches and (not sent or not self.adopt_offsets(judge, each)):
                judge.advance_group(group, each, time, sent=sent)
        if group in judge.searches and group not in judge.stop_reasons and len(judge.violations) == kept[0]:
            return True
        # It had members after all, of which nothing was heard but that things took longer.
        judge.searches.pop(group, None)
        judge.stop_reasons.pop(group, None)
        del judge.violations[kept[0] :], judge.inconclusive[kept[1] :]
        judge.rules, judge.transitions = kept[2], kept[3]
        self.unknown_groups[group] = unseen
        return False

    def try_from_rebalance(self, judge: "Judge", group: str, unseen: UnknownGroup, time: int) -> bool:
        """A whole round was seen, all of its members have their assignments, and nothing is in flight."""
        known = unseen.rebalance.reconstruct_state(time) if not unseen.open_operations else None
        if known is None:
            return False
        self.track(judge, group, known, time)
        return True

    def track(self, judge: "Judge", group: str, world: GroupState, time: int) -> None:
        """Judge the group from here on."""
        self.violation_counts[group] = len(judge.violations)
        self.known_offsets[group] = set()
        judge.search_for(group).configurations = [Configuration(world, clock=time, decisions=judge.decisions)]

    # --- offsets ------------------------------------------------------------------------------------------------

    def adopt_offsets(self, judge: "Judge", part: GroupOperation) -> bool:
        """Take offsets that are not known yet as this answer shows them; true if it cannot be judged even then."""
        request, operation = part.request, part.operation
        search = judge.searches[request.group]
        if not isinstance(request, OffsetFetch):
            return False
        if operation.response is None:
            return True
        rows = offset_fetch_rows(operation.version, operation.response, request.group, search.cluster.names)
        bodies = offset_fetch_bodies(operation.version, operation.response, request.group)
        committed = committed_partitions(part for part in search.open_operations.values())
        known = self.known_offsets[request.group].union(*(one.world.offsets for one in search.configurations))
        new = {where: row for where, row in rows.items() if where not in known}
        if operation.version < FIRST_EPOCH_VERSION and not all(map(is_offset_unset, new.values())):
            return True
        if len(bodies) != 1 or bodies[0].get("error_code") or any(row.get("error_code") for row in new.values()):
            return True
        long_ago = -judge.settings.offsets_retention
        shown = {where: offset_from_row(row, long_ago) for where, row in new.items() if not is_offset_unset(row)}
        self.known_offsets[request.group] |= new.keys() - committed
        if shown:
            search.configurations = [with_offsets(one, shown) for one in search.configurations]
        return False


def offset_from_row(row: Body, committed: int) -> Offset:
    """An offset as an answer shows it."""
    epoch = row.get("committed_leader_epoch", -1)
    return Offset(row["committed_offset"], epoch, row.get("metadata") or "", None, committed)


def with_offsets(configuration: Configuration, shown: dict[Partition, Offset]) -> Configuration:
    """The configuration with offsets that were there all the time."""
    group = configuration.world.group
    if group is None:
        group = Group(Phase.EMPTY)
    return evolve(
        configuration, world=evolve(configuration.world, group=group, offsets={**shown, **configuration.world.offsets})
    )


def committed_partitions(parts: Iterator[GroupOperation]) -> set[Partition]:
    """The partitions that commits in flight are about."""
    return {where for part in parts if isinstance(part.request, OffsetCommit) for where, _ in part.request.offsets}


def member_ids_in(response: Any) -> Iterator[str]:
    """Whom an answer to JoinGroup tells of."""
    yield response.get("leader") or ""
    for member in response.get("members") or ():
        yield member.get("member_id") or ""
