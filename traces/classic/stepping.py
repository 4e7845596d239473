"""Single steps of the coordinator: their context, the choices and ids left open, and steps that may stay unseen."""

from abc import ABC
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fencepost.model.classic.coordinator import internal_actions
from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.group_protocol import CLASSIC_GROUP
from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core.member_table import NOWHERE, find, group_timeout
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    Context,
    Group,
    Holder,
    JoinResponse,
    NoResponse,
    Phase,
    Slot,
)
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import Heartbeat, JoinGroup, Request, Response, SyncGroup
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import OffsetFetch, Partition, TopicNames
from fencepost.model.groups.offsets import expired_offsets
from fencepost.model.groups.protocol import Cluster
from fencepost.model.settings import Settings
from fencepost.model.sorts import MemberId
from fencepost.traces.classic.matching import (
    PARTITION_APIS,
    ObservedResponse,
    compare_responses,
    missing_partitions,
    offset_fetch_rows,
)
from fencepost.traces.classic.nondeterminism import (
    DialectProbe,
    StepFunction,
    Unseen,
    outcomes_over_choices,
    resolve_ids,
    settle_question_of_room,
    unseen_of,
)
from fencepost.traces.events import Body, Operation, Order
from fencepost.traces.judge.diagnosis.diagnosis import errors_in
from fencepost.traces.judge.search.configuration import (
    Configuration,
    Decisions,
    FreshId,
    GroupOperation,
    Instant,
    Mismatch,
    ResponseDifference,
    TimeInterval,
    high,
    low,
)
from fencepost.traces.judge.search.stepper import Stepper

# --- Offsets whose retention is over: a pass may have removed them, or not, until a response shows which (LAT-17).


def maybe_expired_offsets(
    configuration: Configuration, after: GroupState, now: int, retention: int
) -> frozenset[Partition]:
    """The offsets in doubt after a step to this world. What may be removed depends on the phase that ends here."""
    before, doubtful = configuration.world, unseen_of(configuration).maybe_expired
    if before.offsets and before.group is not None and after.group is not None:
        if before.group.phase is not after.group.phase:
            doubtful = doubtful | expired_offsets(before, now, retention, CLASSIC_GROUP)
        if doubtful and before.offsets is not after.offsets:
            doubtful = frozenset(each for each in doubtful if before.offsets.get(each) is after.offsets.get(each))
    return doubtful if after.offsets else frozenset()


def states_after_cleanup(
    configuration: Configuration, part: GroupOperation, now: int, cluster: Cluster
) -> Iterator[GroupState]:
    """The worlds in which offsets that this response shows to be gone, or the whole group, were removed."""
    world, request, settings = configuration.world, part.request, cluster.settings
    if world.group is None:
        return
    # A transaction whose pending offsets were deleted keeps the group on the older coordinator alone.
    empty = world.group.phase is Phase.EMPTY and not any(world.pending.values())
    unseen = unseen_of(configuration)
    if not empty and not isinstance(request, OffsetFetch):
        return
    doubtful = unseen.maybe_expired | expired_offsets(world, now, settings.offsets_retention, CLASSIC_GROUP)
    if empty and doubtful.issuperset(world.offsets):  # a pass may come sooner than after the interval that is told
        yield GroupState(deleted=world.deleted)
    gone = missing_offsets(part, request, doubtful, cluster.names) if isinstance(request, OffsetFetch) else frozenset()
    if gone:
        yield evolve(world, offsets={where: offset for where, offset in world.offsets.items() if where not in gone})


def missing_offsets(
    part: GroupOperation, request: OffsetFetch, doubtful: frozenset[Partition], names: TopicNames
) -> frozenset[Partition]:
    """Which of these offsets are not there by the response to an OffsetFetch."""
    operation = part.operation
    if not doubtful or operation.response is None:
        return frozenset()
    rows = offset_fetch_rows(operation.version, operation.response, request.group, names)
    asked = doubtful if request.partitions is None else doubtful.intersection(request.partitions)
    return frozenset(where for where in asked if where not in rows or is_offset_unset(rows[where]))


def is_offset_unset(row: Body) -> bool:
    """The row says that nothing was committed."""
    return row.get("error_code") == 0 and row.get("committed_offset") == -1


# --- Fewer configurations without losing an explanation: requests that commute, and states that mean the same.
#
# A waiting request may be handled at once if the response seen fits, it changes nothing but its member's session, and
# it would change no more at any later moment at which the same response could be given. The order of the member table
# means nothing.

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


def may_end_at_any_time(world: GroupState, before: Group | None, now: Instant) -> GroupState:
    """The state in which an initial delay of unknown length, if one has just begun, may be over at any moment from now
    to the rebalance timeout."""
    group = world.group
    if group is None or not (group.initial and group.join_armed):
        return world
    if before is not None and before.initial and before.join_deadline == group.join_deadline:
        return world
    latest = max(high(group.join_deadline), high(now + group_timeout(group)))
    return evolve(world, group=evolve(group, join_deadline=TimeInterval(low(now), latest)))


def extend_deadline(deadline: Instant, before: Instant, slack: int) -> Instant:
    """The deadline, no earlier than the one before it if that is hardly later."""
    return TimeInterval(low(deadline), high(before)) if 0 < high(before) - high(deadline) <= slack else deadline


IMMEDIATE_JOIN_ERRORS = frozenset(
    {
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_GROUP_ID,
        Error.INVALID_SESSION_TIMEOUT,
        Error.MEMBER_ID_REQUIRED,
        Error.GROUP_MAX_SIZE_REACHED,
    }
)
"""Errors that refuse a JoinGroup at once or not at all."""


def sender_of(request: Any) -> MemberId | None:
    """The member id that a request comes with, None if it has none or is not a member's."""
    return getattr(getattr(request, "core", None), "member", None)


def lists_another_number(expected: Response | None, body: Body) -> bool:
    """Whether a JoinGroup response lists more or fewer members than the expected one."""
    if not isinstance(expected, JoinResponse):
        return False
    return len(body.get("members") or ()) != sum(view.id is not None for view in expected.members)


KnownStep: TypeAlias = tuple[GroupState, list[tuple[StepResult, Decisions]]]
"""The state that a step was taken from, which keeps its identity, and the outcomes."""


SHOWN_FIELDS = frozenset({"instances", "protocol_type", "skip_assignment"})
"""What a JoinGroup or SyncGroup response tells besides, and the coordinator does not go by."""
FIELD_WEIGHT, STATE_WEIGHT = 2, 8
"""How many of the fields that a response shows besides another wrong field counts for, and a wrong name of the state of
a group."""


@dataclass(slots=True)
class CoordinatorStepper(Stepper, ABC):
    """Takes steps of the model of the coordinator."""

    cluster: Cluster = field(default_factory=lambda: Cluster(Settings()))
    issued_ids: dict[str, int] = field(default_factory=dict)
    """By member id, the request that it was issued for (LAT-01)."""
    known_states: dict[GroupState, GroupState] = field(default_factory=dict)
    """While steps are remembered, one state for all that are equal."""
    known_steps: dict[Hashable, KnownStep] = field(default_factory=dict)
    """While steps are remembered, what came of them, by what that depends on."""
    remembers_steps: bool = False
    is_delay_told: bool = True
    """Whether the initial rebalance delay is known; else the first join phase of a group may end at any moment up to
    its rebalance timeout."""

    armed_timers = staticmethod(internal_actions.armed_timers)
    armed_deadlines = staticmethod(internal_actions.armed_deadlines)

    def initial_state(self) -> GroupState:
        """A group that does not exist."""
        return GroupState()

    def initial_configuration(self, decisions: Decisions) -> Configuration:
        """The group that does not exist; after a restart the coordinator may not be ready yet."""
        return Configuration(GroupState(), decisions=decisions, unseen=Unseen(loading=self.was_restarted))

    def on_restart(self, settings: Settings) -> None:
        """The target was killed and started again with these settings."""
        self.was_restarted = True
        self.cluster = evolve(self.cluster, settings=settings)

    def is_parked(self, state: GroupState, handle: int) -> bool:
        """A JoinGroup or SyncGroup waits for others."""
        group = state.group
        return group is not None and any(handle in (slot.join, slot.sync) for slot in group.slots)

    def is_of_next_round(self, state: GroupState, body: Body) -> bool:
        """Whether a response has the generation after that of the group, which is in its join phase."""
        group = state.group
        if group is None or group.phase is not Phase.PREPARING:
            return False
        return bool(body.get("generation_id") == group.generation + 1)

    def is_unlikely(self, mismatch: Mismatch) -> bool:
        """Whether the coordinator says that it does not know the group, in a state in which it exists, or names another
        state; or lists more or fewer members than there are; or accepts what is to be refused, where the response may
        be that of another state."""
        part = self.open_operations.get(mismatch.handle)
        body = (part.operation.response if part is not None else None) or {}
        seen = errors_in(body)
        is_refusal = getattr(mismatch.expected, "error", Error.NONE) != Error.NONE
        is_admitted = is_refusal and seen == {Error.NONE}
        return (
            is_admitted
            or "state" in mismatch.fields
            or ("members" in mismatch.fields and lists_another_number(mismatch.expected, body))
            or (Error.GROUP_ID_NOT_FOUND in seen and mismatch.world.group is not None)
        )

    def weight_of(self, name: str) -> int:
        """What the target calls its state is believed rather than how it shows what is in it, and that rather than what
        it tells besides."""
        return 1 if name in SHOWN_FIELDS else STATE_WEIGHT if name == "state" else FIELD_WEIGHT

    def may_be_missing(self, expected: Response) -> bool:
        """A request that has lost its place need not get a response (LAT-09, LAT-10)."""
        return isinstance(expected, NoResponse)

    def resolve_ids(self, configuration: Configuration, shown: Mapping[FreshId, str]) -> Configuration:
        """The configuration with member ids in the place of fresh ones."""
        return resolve_ids(configuration, shown)

    def step_context(self, now: Instant, choices: Choices, dialect: Dialect) -> Context:
        """The context of a step at `now`, with the size limit and the delays from the cluster's settings."""
        settings = self.cluster.settings
        return Context(
            now,
            choices,
            dialect,
            settings.max_group_size,
            settings.initial_rebalance_delay,
            settings.new_member_timeout,
        )

    def member_id_for(self, operation: Operation) -> Any:
        """The id issued for this request: the one its response shows, or a fresh one."""
        if operation.api != "JoinGroup":
            return None
        shown = operation.response.get("member_id") if operation.response is not None else None
        if not shown or not isinstance(shown, str):
            return FreshId(operation.handle)
        return shown

    # --- steps --------------------------------------------------------------------------------------------------

    def step_request(
        self, configuration: Configuration, part: GroupOperation, request: Any, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after the model handles the request, which may be another than the operation's."""

        def run(choices: Choices, dialect: Dialect) -> StepResult:
            context = self.step_context(now, choices, dialect)
            settle_question_of_room(context, configuration.world, request)
            if isinstance(dialect, DialectProbe) and not self.is_superseded_answered(configuration.world, request):
                dialect.settle("superseded_stays_silent")
            return handle_request(configuration.world, request, context, cluster)

        operation = part.operation
        cluster = self.cluster
        if cluster.topics is None and operation.api in PARTITION_APIS and operation.response is not None:
            cluster = evolve(cluster, missing=missing_partitions(operation.response, cluster.names))
        kind = operation.handle if request is part.request else None
        return self.step_over_choices(configuration, run, kind, operation.handle, self.member_id_for(operation), now)

    def is_superseded_answered(self, state: GroupState, request: Any) -> bool:
        """Whether a response was seen to the parked request that a member's next one supersedes, if it is one."""
        if state.group is None or not isinstance(request, JoinGroup | SyncGroup):
            return False
        slot = next((slot for slot in state.group.slots if slot.id == request.core.member), FREE)
        part = self.open_operations.get(slot.join if isinstance(request, JoinGroup) else slot.sync)
        return part is not None and part.operation.response is not None

    def handle_timer(self, configuration: Configuration, timer: Any, now: Instant) -> Iterator[Configuration]:
        """The configurations after the model fires a timer."""

        def run(choices: Choices, dialect: Dialect) -> StepResult:
            return internal_actions.fire_timer(configuration.world, timer, self.step_context(now, choices, dialect))

        return self.step_over_choices(configuration, run, timer, 0, None, now)

    @contextmanager
    def remember_steps(self, configurations: Iterable[Configuration]) -> Iterator[None]:
        """As `Stepper.remember_steps`."""
        self.remembers_steps = True
        for configuration in configurations:
            self.known_states.setdefault(configuration.world, configuration.world)
        try:
            yield
        finally:
            self.remembers_steps = False
            self.known_states, self.known_steps = {}, {}

    def step_over_choices(
        self, configuration: Configuration, run: StepFunction, kind: Hashable, handle: int, member_id: Any, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after a step, over all choices and dialects, as far as they fit what was seen.

        `kind` is the timer or the handle of the request, None if the step is not to be remembered.
        """
        key = id(configuration.world), kind, now, configuration.decisions
        _, outcomes = self.known_steps.get(key, (None, None))
        if outcomes is None:
            leaders, protocols = self.candidate_choices(configuration, handle)
            outcomes = list(
                outcomes_over_choices(run, configuration.world, member_id, leaders, protocols, configuration.decisions)
            )
            if self.remembers_steps and kind is not None:
                self.known_steps[key] = configuration.world, outcomes
        for outcome, decisions in outcomes:
            for after in self.apply_outcome(configuration, outcome, handle, now):
                yield evolve(after, decisions=decisions) if decisions is not configuration.decisions else after

    def candidate_choices(self, configuration: Configuration, handle: int) -> tuple[list[str], list[str]]:
        """The leaders and protocols in the responses that parked JoinGroups are known to get."""
        group, asked = configuration.world.group, self.open_operations.get(handle)
        joins = asked is None or asked.operation.api == "JoinGroup"
        if not joins and (group is None or group.phase is not Phase.PREPARING):
            return [], []
        handles = [slot.join for slot in group.slots if slot.join] if group is not None else []
        leaders: dict[str, None] = {}
        protocols: dict[str, None] = {}
        for each in (*handles, handle):
            part = self.open_operations.get(each)
            if part is not None and part.operation.api == "JoinGroup" and part.operation.response is not None:
                body = part.operation.response
                if body.get("error_code") == 0 and isinstance(body.get("leader"), str):
                    leaders[body["leader"]] = None
                    protocols[body.get("protocol_name") or ""] = None
        return list(leaders), list(protocols)

    def apply_outcome(
        self, configuration: Configuration, outcome: StepResult, handle: int, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after an outcome: none if a response that was seen differs from it."""
        seen_by_clients = self.order is Order.INTERVALS
        if self.skip_dead_ends and seen_by_clients and self.is_dead_end(outcome, handle):
            self.has_skipped = True
            return iter(())
        after, before = outcome.state, configuration.world
        if not self.is_delay_told and after.group is not before.group:
            after = may_end_at_any_time(after, before.group, now)
        start = self.with_expired_offsets(configuration, after, high(now))
        if seen_by_clients and after.group is not before.group:
            after = normalize_members(after, before.group, 2 * self.grace)
            if self.remembers_steps:
                after = self.known_states.setdefault(after, after)
        return self.apply(start, outcome, after, handle, now)

    def with_expired_offsets(self, configuration: Configuration, after: GroupState, now: int) -> Configuration:
        """The configuration with the offsets in doubt that a clean-up may remove before the state is `after`."""
        unseen = unseen_of(configuration)
        doubtful = maybe_expired_offsets(configuration, after, now, self.cluster.settings.offsets_retention)
        if doubtful == unseen.maybe_expired:
            return configuration
        return evolve(configuration, unseen=evolve(unseen, maybe_expired=doubtful))

    def is_dead_end(self, outcome: StepResult, handle: int) -> bool:
        """The request is a JoinGroup that parks now, but its response cannot come of that.

        It would not fit in the end; seen here, it spares the search everything up to the end of the join phase. To
        say which response is wrong one has to get there, though.
        """
        part, group = self.open_operations.get(handle), outcome.state.group
        if part is None or group is None or part.operation.response is None or part.operation.api != "JoinGroup":
            return False
        parked = next((slot for slot in group.slots if slot.join == handle), None)
        if parked is None:
            return False
        body = part.operation.response
        if body.get("error_code") != Error.NONE:
            return body.get("error_code") in IMMEDIATE_JOIN_ERRORS
        usurped = parked.id == group.leader != body.get("leader")
        return usurped or body.get("generation_id") != group.generation + 1

    def compare_response(self, part: GroupOperation, expected: Response) -> Iterator[ResponseDifference]:
        """Compare the response seen with the one expected, and its member id with all ids issued before."""
        operation = part.operation
        assert operation.response is not None
        seen = ObservedResponse(
            operation.api,
            operation.version,
            operation.body,
            operation.response,
            self.group,
            self.cluster.names,
            self.cluster.client,
        )
        for difference in compare_responses(expected, seen):
            if operation.api == "JoinGroup" and not operation.body.get("member_id"):
                shown = operation.response.get("member_id")
                if shown and self.issued_ids.setdefault(shown, operation.handle) != operation.handle:
                    difference.require("member", "an id of its own", shown)
            yield difference
