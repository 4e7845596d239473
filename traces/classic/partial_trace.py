"""Groups in a trace that does not show everything: their past is missing, or the events in a gap.

A group is judged from a moment on at which its state is known: from its beginning if its first round has none but
members that were seen to come, and otherwise from the first moment at which a whole round was seen and nothing is in
flight. Until then nothing is said about it. Offsets are taken as they are first shown. Members that a trace does not
show at all make everything about their group uncertain.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import FREE, Group, Holder, Phase, Slot
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup, SyncGroup, subscribed_topics
from fencepost.model.errors import COORDINATOR_NOT_READY, Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import Offset, OffsetCommit, OffsetFetch, Partition
from fencepost.model.sorts import Assignment, AssignmentBytes, MemberId
from fencepost.traces.classic.matching import offset_fetch_bodies, offset_fetch_rows
from fencepost.traces.classic.nondeterminism import NOTHING_UNSEEN
from fencepost.traces.classic.stepping import CoordinatorStepper, is_offset_unset, sender_of
from fencepost.traces.events import Body, Operation
from fencepost.traces.judge.diagnosis.diagnosis import errors_in
from fencepost.traces.judge.groups.group_judge import MISSING, GroupJudge, TraceContext
from fencepost.traces.judge.groups.judged_protocol import UNKNOWN_STATE_REASON, PartialGroup, TraceGap
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Mismatch, TimeInterval

# --- One rebalance of a group as responses show it: enough to know the state once it is over.


@dataclass(slots=True)
class ReconstructedRebalance:
    """The latest rebalance that was seen."""

    generation: int = -1
    leader_response: Body = field(default_factory=dict)
    """The response to its leader."""
    joins: dict[MemberId, JoinGroup] = field(default_factory=dict)
    """By member id, the request that brought the member into the round."""
    assignments: dict[MemberId | None, Assignment | None] | None = None
    """What the leader sent, once it was accepted."""
    synced: set[MemberId | None] = field(default_factory=set)
    last_heard: dict[MemberId | None, int] = field(default_factory=dict)
    """When members last sent something that extends their sessions."""
    pending: dict[MemberId, tuple[int, int]] = field(default_factory=dict)
    """Ids handed out whose owners have not come back: when, and for how long they hold."""
    is_over: bool = False
    """Something has happened since, or may have."""

    def on_response(self, part: GroupOperation, time: int) -> None:
        """Take in a response."""
        request, body = part.request, part.operation.response or {}
        error, sent = body.get("error_code", 0), part.operation.sent_at
        if isinstance(request, JoinGroup):
            self.on_join_response(request, body, sent)
        elif isinstance(request, SyncGroup) and error == Error.NONE and request.core.generation == self.generation:
            self.synced.add(request.core.member)
            self.last_heard[request.core.member] = sent
            if request.core.member == self.leader_response.get("leader"):
                self.assignments = dict(request.core.assignments)
        elif isinstance(request, Heartbeat):
            self.last_heard[request.core.member] = sent
            self.is_over |= error != Error.NONE and request.core.generation == self.generation
        elif isinstance(request, LeaveGroup):
            self.is_over = True

    def on_join_response(self, request: JoinGroup, body: Body, sent: int) -> None:
        """A response to JoinGroup."""
        error, member = body.get("error_code"), MemberId(body.get("member_id") or "")
        if error == Error.MEMBER_ID_REQUIRED:
            self.pending[member] = (sent, request.core.session_timeout)
        if error != Error.NONE:
            return
        generation = body.get("generation_id", -1)
        if generation != self.generation:
            self.generation, self.leader_response, self.assignments, self.is_over = generation, {}, None, False
            self.joins, self.synced = {}, set()
        # Responded to within a rebalance that goes on: a static member came back, or one that had missed its response.
        self.is_over |= member in self.joins or self.assignments is not None
        self.joins[member] = request
        self.last_heard[member] = sent
        self.pending.pop(member, None)
        if body.get("leader") == member:
            self.leader_response = body

    def reconstruct_state(self, now: int) -> GroupState | None:
        """The group, if this is how it stands: Stable, and every member has its assignment."""
        told = self.leader_response
        members = {row.get("member_id"): row.get("group_instance_id") for row in told.get("members") or ()}
        if self.is_over or self.assignments is None or not members:
            return None
        if not self.joins.keys() == members.keys() == self.synced:
            return None
        waiting = [
            pending_slot(member, since, now, timeout)
            for member, (since, timeout) in self.pending.items()
            if since + 2 * timeout > now
        ]
        kind = next(iter(self.joins.values())).core.protocol_type
        group = Group(
            phase=Phase.STABLE,
            generation=self.generation,
            protocol_type=kind,
            protocol=told.get("protocol_name"),
            leader=told.get("leader"),
            slots=(*(self.member_slot(member, now) for member in members), *waiting, FREE),
        )
        return GroupState(group, subscribed_topics(group), stored=group)

    def member_slot(self, member: MemberId, now: int) -> Slot:
        """The place of one member; its session began when it was last heard of, or up to now."""
        core = self.joins[member].core
        assert self.assignments is not None
        return Slot(
            Holder.MEMBER,
            member,
            core.instance,
            session_timeout=core.session_timeout,
            rebalance_timeout=core.rebalance_timeout,
            protocols=core.protocols,
            assignment=self.assignments.get(member, AssignmentBytes(b"")),
            armed=True,
            deadline=TimeInterval(self.last_heard[member] + core.session_timeout, now + core.session_timeout),
        )


def pending_slot(member: MemberId, since: int, now: int, timeout: int) -> Slot:
    """The place of an id whose owner has not come back."""
    return Slot(
        Holder.PENDING,
        member,
        armed=True,
        session_timeout=timeout,
        deadline=TimeInterval(since + timeout, now + timeout),
    )


MAX_HISTORY = 20_000
"""How much of a group is kept until its first round is seen."""
MAX_UNSEEN_SESSION_MS = 60_000
"""How long an id issued before the trace may be waited for: a session timeout, of which clients choose less."""
FIRST_EPOCH_VERSION = 5
"""The first version of OffsetFetch that shows an offset in full."""
MAX_MEMBER_IDS = 10_000
"""How many member ids of a group are remembered."""
LIMITS_OF_ERRORS: Mapping[int, tuple[str, ...]] = {
    Error.INVALID_SESSION_TIMEOUT: ("min_session_timeout", "max_session_timeout"),
    Error.GROUP_MAX_SIZE_REACHED: ("max_group_size",),
    Error.OFFSET_METADATA_TOO_LARGE: ("max_offset_metadata",),
}
"""By error that depends on how the target is set, the settings without which nobody can say whether it is right."""
ASSUMED_SETTINGS_REASON = "what it shows depends on settings of the target, which the trace does not tell"
UNKNOWN_PAST_REASON = "what was before is not known, and no round was seen from its beginning to its end"
OLDER_CAUSE_REASON = "an answer may be owed to what was before the trace"
UNSEEN_MEMBERS_REASON = "it has members that the trace does not show"


@dataclass(slots=True)
class UnknownGroup:
    """A group whose state is not known."""

    open_operations: dict[int, GroupOperation] = field(default_factory=dict)
    history: list[tuple[GroupOperation, int, bool]] | None = field(default_factory=list)
    """Everything since, as long as it may have been from the group's beginning: what, when, sent or responded to."""
    issued_ids: set[str] = field(default_factory=set)
    """Ids that were given out since."""
    rebalance: ReconstructedRebalance = field(default_factory=ReconstructedRebalance)
    is_active: bool = False
    """Members were heard of."""

    def record(self, part: GroupOperation, time: int, *, sent: bool) -> None:
        """Record a request or a response."""
        self.is_active |= isinstance(part.request, JoinGroup | SyncGroup | Heartbeat | LeaveGroup)
        if self.history is not None:
            self.history.append((part, time, sent))
            if len(self.history) > MAX_HISTORY:
                self.history = None


class ClassicPartialGroup(PartialGroup):
    """One group of such a trace: its state is unknown, or a judge follows it as long as nothing unseen matters."""

    def __init__(self, trace: TraceContext, group: str, gap: TraceGap, judge: GroupJudge | None = None) -> None:
        super().__init__(trace, group, gap, judge)
        self.unknown = UnknownGroup()
        self.member_ids: dict[str, None] = {}
        self.known_offsets: set[Partition] = set()

    # --- what is lost -------------------------------------------------------------------------------------------

    def on_gap(self) -> None:
        """Nothing that was known of the group holds any more."""
        if self.judge is not None:
            self.untrack(self.judge)
        else:
            self.unknown = UnknownGroup(open_operations=self.unknown.open_operations, history=None)

    def untrack(self, judge: GroupJudge, reason: str = "") -> None:
        """Stop following the group; what came to light stays, and so does the reason, if there is one."""
        super().untrack(judge, reason)
        waiting = judge.search.open_operations
        left = {handle: part for handle, part in waiting.items() if not part.operation.lost}
        self.unknown = UnknownGroup(open_operations=left, history=None if left else [])

    def retract(self, judge: GroupJudge) -> None:
        """Stop following the group; members that the trace does not show may account for every violation."""
        judge.findings.violations.clear()
        self.untrack(judge, UNSEEN_MEMBERS_REASON)

    def excuse(self, part: GroupOperation, mismatch: Mismatch | None, time: int) -> bool:
        """A response without an explanation may show no more than that less is known than it seemed."""
        judge = self.judge
        assert judge is not None
        reason = self.excuse_reason(judge, part, mismatch, time)
        if reason == UNSEEN_MEMBERS_REASON:
            self.retract(judge)
        elif reason is not None:
            self.untrack(judge, reason)
        return reason is not None

    def excuse_reason(
        self, judge: GroupJudge, part: GroupOperation, mismatch: Mismatch | None, time: int
    ) -> str | None:
        """Why a response without an explanation is no violation; None if it is one."""
        errors = errors_in(part.operation.response or {})
        if mismatch is None:
            sender = sender_of(part.request)
            if part.operation.response and errors <= COORDINATOR_NOT_READY:
                return ""
            unseen = sender is not None and sender not in self.member_ids
            return UNSEEN_MEMBERS_REASON if unseen or self.has_unseen_members(judge, part.operation) else None
        depends_on_time = mismatch.fields & {"time", "state", MISSING}
        errors = errors | {getattr(mismatch.expected, "error", 0)}
        if self.gap.settings_assumed and (depends_on_time or errors & LIMITS_OF_ERRORS.keys() or may_be_timed(judge)):
            return ASSUMED_SETTINGS_REASON
        if time <= self.gap.time + MAX_UNSEEN_SESSION_MS and (isinstance(part.request, OffsetFetch) or depends_on_time):
            # A rebalance may have waited for an id issued before, an offset may be of an older transaction.
            return OLDER_CAUSE_REASON
        return None

    def undecided_reason(self) -> str:
        """Why nothing can be said about the group in the end; empty if something can."""
        if self.judge is not None or not self.unknown.is_active:
            return ""
        return f"group {self.group!r}: {UNKNOWN_PAST_REASON}"

    # --- what is seen -------------------------------------------------------------------------------------------

    def defer(self, part: GroupOperation) -> bool:
        """Take in a request that cannot be judged: its group is not known yet, or its response is not."""
        if self.judge is not None:
            return not self.adopt_offsets(self.judge, part)
        self.unknown.open_operations[part.operation.handle] = part
        self.unknown.record(part, part.operation.sent_at, sent=True)
        return True

    def on_response(self, operation: Operation, time: int) -> None:
        """Take in a response; perhaps it makes the group known."""
        super().on_response(operation, time)
        if self.judge is not None and operation.api == "JoinGroup":
            if self.has_unseen_members(self.judge, operation):
                self.retract(self.judge)
            self.learn_member_ids(operation)
        part = None if self.judge is not None else self.unknown.open_operations.pop(operation.handle, None)
        if part is not None:
            self.on_unknown_response(part, time)

    def on_unknown_response(self, part: GroupOperation, time: int) -> None:
        """Take in a response while the group is unknown."""
        unknown, operation = self.unknown, part.operation
        self.learn_member_ids(operation)
        unknown.record(part, time, sent=False)
        unknown.rebalance.on_response(part, time)
        if operation.api == "JoinGroup" and not operation.body.get("member_id"):
            unknown.issued_ids.add((operation.response or {}).get("member_id", ""))
        self.judge = self.judge_from_start(part) or self.judge_from_rebalance(time)
        if self.judge is not None:
            self.judge.excuse = self.excuse

    def on_connection_lost(self, operation: Operation) -> None:
        """A request lost its connection: what came of it is not known."""
        if self.judge is None and self.unknown.open_operations.pop(operation.handle, None) is not None:
            self.unknown.rebalance.is_over = True

    def learn_member_ids(self, operation: Operation) -> None:
        """Remember the members that the trace shows."""
        ids = self.member_ids
        for shown in (operation.body.get("member_id"), (operation.response or {}).get("member_id")):
            if shown and operation.response and operation.response.get("error_code") in (0, Error.MEMBER_ID_REQUIRED):
                ids[shown] = None
        while len(ids) > MAX_MEMBER_IDS:
            del ids[next(iter(ids))]

    def has_unseen_members(self, judge: GroupJudge, operation: Operation) -> bool:
        """A response names members that the trace does not show."""
        response = operation.response or {}
        if operation.api != "JoinGroup" or response.get("error_code") != Error.NONE:
            return False
        others = judge.search.open_operations.values()
        joining = [part.operation for part in others if part.operation.api == "JoinGroup"]
        known = {each.response.get("member_id") for each in (operation, *joining) if each.response is not None}
        anonymous = any(each.response is None for each in joining)
        return not anonymous and not set(member_ids_in(response)) <= known | set(self.member_ids)

    # --- what is known again ------------------------------------------------------------------------------------

    def judge_from_start(self, part: GroupOperation) -> GroupJudge | None:
        """Follow the group from its beginning: the first round is complete, and all its members were seen to come.

        If its history has no explanation then, it had members after all that the trace does not show.
        """
        unknown, response = self.unknown, part.operation.response or {}
        if unknown.history is None or part.operation.api != "JoinGroup" or not response.get("members"):
            return None
        history, unknown.history = unknown.history, None
        joining = {(each.operation.response or {}).get("member_id") for each in unknown.open_operations.values()}
        if response["error_code"] or not set(member_ids_in(response)) <= unknown.issued_ids | joining:
            return None
        judge = self.begin_judge(self.state_before(part), 0)
        judge.excuse = lambda part, mismatch, time: self.give_up(judge, part, mismatch, time)
        for each, time, sent in history:
            if judge.stop_reason != UNKNOWN_STATE_REASON and (not sent or self.adopt_offsets(judge, each)):
                judge.advance(each, time, sent=sent)
        return None if judge.stop_reason or judge.findings.violations else judge

    def give_up(self, judge: GroupJudge, part: GroupOperation, mismatch: Mismatch | None, time: int) -> bool:
        """Stop a judge on trial if the trace does not show enough."""
        if self.excuse_reason(judge, part, mismatch, time) is None:
            return False
        judge.commit_history()
        judge.stop_reason = UNKNOWN_STATE_REASON
        return True

    def state_before(self, part: GroupOperation) -> GroupState:
        """The state of a group without members before the round that this JoinGroup completes."""
        generation = (part.operation.response or {})["generation_id"] - 1
        kind = getattr(part.request, "core").protocol_type  # noqa: B009 (a JoinGroup has one)
        empty = Group(generation=generation, protocol_type=kind, slots=(FREE,)) if generation else None
        return GroupState(
            empty, frozenset() if empty else None, emptied_at=-self.trace.settings.offsets_retention, stored=empty
        )

    def judge_from_rebalance(self, time: int) -> GroupJudge | None:
        """Follow the group from here: a whole round was seen, all members have assignments, nothing is in flight."""
        known = None if self.unknown.open_operations else self.unknown.rebalance.reconstruct_state(time)
        return None if known is None else self.begin_judge(known, time)

    def begin_judge(self, state: GroupState, time: int) -> GroupJudge:
        """A judge that follows the group from this state on."""
        self.known_offsets = set()
        start = Configuration(state, clock=time, decisions=self.trace.settled_decisions, unseen=NOTHING_UNSEEN)
        return GroupJudge(self.trace, self.group, start)

    # --- offsets ------------------------------------------------------------------------------------------------

    def adopt_offsets(self, judge: GroupJudge, part: GroupOperation) -> bool:
        """Take offsets that are not known yet as the response shows them; false if even then it cannot be judged."""
        request, operation = part.request, part.operation
        search, stepper = judge.search, judge.search.stepper
        if not isinstance(request, OffsetFetch):
            return True
        assert isinstance(stepper, CoordinatorStepper)
        if operation.response is None:
            return False
        rows = offset_fetch_rows(operation.version, operation.response, request.group, stepper.cluster.names)
        bodies = offset_fetch_bodies(operation.version, operation.response, request.group)
        committed = committed_partitions(part for part in search.open_operations.values())
        known = self.known_offsets.union(*(one.world.offsets for one in search.configurations))
        new = {where: row for where, row in rows.items() if where not in known}
        if operation.version < FIRST_EPOCH_VERSION and not all(map(is_offset_unset, new.values())):
            return False
        if len(bodies) != 1 or bodies[0].get("error_code") or any(row.get("error_code") for row in new.values()):
            return False
        long_ago = -self.trace.settings.offsets_retention
        shown = {where: offset_from_row(row, long_ago) for where, row in new.items() if not is_offset_unset(row)}
        self.known_offsets |= new.keys() - committed
        if shown:
            search.configurations = [with_offsets(one, shown) for one in search.configurations]
        return True


def may_be_timed(judge: GroupJudge) -> bool:
    """Whether the group may be in a state that a setting of the target ends: without members, until its retention is
    over, or in its initial delay."""
    groups = (one.world.group for one in judge.search.configurations)
    return any(each is None or each.phase == Phase.EMPTY or bool(each.initial) for each in groups)


def offset_from_row(row: Body, committed: int) -> Offset:
    """An offset as a response shows it."""
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
    """The ids in a response to JoinGroup."""
    yield response.get("leader") or ""
    for member in response.get("members") or ():
        yield member.get("member_id") or ""
