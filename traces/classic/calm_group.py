"""Values that may be kept, passed on and counted from, and that nobody may look at.

A step that goes well on them does the same whatever they are. Only the identity of a value shows: it is none of the
protocol's business.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from math import inf
from operator import attrgetter, is_
from typing import Any, NamedTuple, TypeAlias, cast

from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.internal_actions import armed_deadlines
from fencepost.model.classic.coordinator.state import GroupState, Reply, StepResult
from fencepost.model.classic.core.state import Choices, Group, Holder, Phase, Slot
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import Heartbeat, Request, read_requests
from fencepost.model.frozen import evolve, evolver
from fencepost.model.groups.messages import CommitRequest, Offset, OffsetCommit, Partition
from fencepost.traces.classic.matching import ObservedResponse, compare_with_choices
from fencepost.traces.classic.nondeterminism import DialectProbe, unseen_of
from fencepost.traces.classic.stepping import CoordinatorStepper, extend_deadline
from fencepost.traces.events import Body, Operation, Order
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Instant, Path, TimeInterval, low
from fencepost.traces.judge.search.stepper import RepeatedStep
from fencepost.traces.verdict import Transition, TransitionFields


class OpaqueValueRead(Exception):
    """Somebody looked at an opaque value."""


def refuse(*_: object) -> Any:
    """Raise `OpaqueValueRead`."""
    raise OpaqueValueRead


class Opaque:
    """A value without any operation."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        raise OpaqueValueRead


READS = (
    *("eq", "ne", "lt", "le", "gt", "ge", "hash", "bool", "int", "index", "float", "complex", "round", "trunc"),
    *("floor", "ceil"),
    *("str", "repr", "format", "bytes", "len", "iter", "next", "contains", "getitem", "call", "neg", "pos", "abs"),
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "and", "or", "xor", "lshift", "rshift"),
    *("radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rmod", "rdivmod", "rpow", "rand", "ror", "rxor", "invert"),
)
for _name in READS:
    setattr(Opaque, f"__{_name}__", refuse)


class OpaqueTime(Opaque):
    """The present moment, or one `later` by so many milliseconds: it may be counted from."""

    __slots__ = ("later",)

    def __init__(self, later: int = 0) -> None:
        self.later = later

    def __add__(self, duration: int) -> "OpaqueTime":
        return OpaqueTime(self.later + duration) if type(duration) is int else refuse()

    __radd__ = __add__


class OpaqueMapping(Opaque):
    """A mapping to which entries may be added, as in `{**mapping, key: value}`; `REST` then stands for its own."""

    __slots__ = ()

    def keys(self) -> "OpaqueKeys":
        """The keys, which can be taken over alone."""
        return OpaqueKeys()

    def __getitem__(self, key: object) -> object:
        return REST if key is REST else refuse()


class OpaqueKeys(Opaque):
    """The keys of an opaque mapping."""

    __slots__ = ()

    def __iter__(self) -> Iterator[object]:
        yield REST


class Rest(Opaque):
    """The entries of an opaque mapping, as the key that stands for them."""

    __slots__ = ()
    __hash__ = object.__hash__


REST = Rest()
"""The key, and the value, of the entries of an opaque mapping."""


# --- The way most requests are explained: handled as they come, no timer due, and responded to at once as the model
# says.
#
# It is the only thing that the search finds then, found without one; where anything at all is open, it is left to it.

FAST_PATH_REQUESTS = (Heartbeat, OffsetCommit)
"""Requests that are responded to at once and elect no leader."""
NO_CHOICES = Choices()
replace_after_step = evolver(Configuration, "world", "clock", "path")


def take_fast_path(
    stepper: CoordinatorStepper, configuration: Configuration, part: GroupOperation
) -> Configuration | None:
    """The configuration after a request seen at the coordinator, if it is plain that there is no other."""
    if not is_plain(stepper, configuration, part):
        return None
    operation, state, now = part.operation, configuration.world, part.operation.sent_at
    probe = DialectProbe(configuration.decisions)
    context = stepper.step_context(now, NO_CHOICES, cast(Dialect, probe))
    outcome = handle_request(state, part.request, context, stepper.cluster)
    after = outcome.state.group
    if probe.open_questions or after is None or after.phase is not state.group.phase or len(outcome.replies) != 1:
        return None
    if not is_exact(stepper, operation, outcome.replies[0]):
        return None
    # The response is right, so there is nothing left to compare when it comes.
    del stepper.open_operations[operation.handle]
    path = Path(outcome.rule, operation.handle, configuration.path, state, outcome, part.request)
    explained: Configuration = replace_after_step(configuration, outcome.state, max(configuration.clock, now), path)
    return explained


def is_plain(stepper: CoordinatorStepper, configuration: Configuration, part: GroupOperation) -> bool:
    """The request is handled at its event, no timer is due, and nothing else can have happened."""
    operation, state = part.operation, configuration.world
    if type(part.request) not in FAST_PATH_REQUESTS or operation.response is None or operation.responded_at is None:
        return False
    if state.group is None or state.group.phase is Phase.EMPTY:
        return False
    if stepper.order is not Order.TOTAL or stepper.was_restarted or stepper.allow_mismatches:
        return False
    unseen = unseen_of(configuration)
    if unseen.loading or unseen.maybe_expired:
        return False
    now = operation.sent_at
    if operation.responded_at > now + stepper.grace:
        return False
    due = armed_deadlines(state)
    return TimeInterval not in map(type, due) and now < min(due, default=now + 1)


def is_exact(stepper: CoordinatorStepper, operation: Operation, reply: Reply) -> bool:
    """The reply is to this request, and the response seen is the very same."""
    if reply.handle != operation.handle or operation.response is None:
        return False
    seen = ObservedResponse(
        operation.api, operation.version, operation.body, operation.response, stepper.group, stepper.cluster.names
    )
    difference = compare_with_choices(reply.response, seen, ())
    return not (difference.required or difference.advisory or difference.fresh_ids or difference.choice_points)


# --- Transitions of the classic coordinator.
#
# The state before is the phase, with three facts: the initial delay is running, the group has one or several members,
# member ids were issued that have not joined yet. The event is a request and the role of its sender in the group, or a
# timer. The state afterwards is the phase alone.

PHASE_LABELS = {each: each.name.lower() for each in Phase}


def transition_of(before: GroupState, request: Request | None, outcome: StepResult) -> Transition:
    """The transition of a step; `request` is None for a step of the coordinator itself."""
    return Transition(*transition_fields(before, request, outcome))


def transition_fields(before: GroupState, request: Request | None, outcome: StepResult) -> TransitionFields:
    """The fields of the transition of a step."""
    happened = "by itself" if request is None else event_label(before, request)
    return state_label(before), happened, outcome.rule, phase_label(outcome.state)


def phase_label(world: GroupState) -> str:
    """The phase of the group as text."""
    return "no group" if world.group is None else PHASE_LABELS[world.group.phase]


def state_label(world: GroupState) -> str:
    """The state of the group as text."""
    group = world.group
    if group is None:
        return "no group"
    holders = [slot.holder for slot in group.slots]
    delayed = group.phase is Phase.PREPARING and group.initial
    return format_state_label(group.phase, delayed, min(holders.count(Holder.MEMBER), 2), Holder.PENDING in holders)


@cache
def format_state_label(phase: Phase, delayed: bool, members: int, handed_out: bool) -> str:
    """The text for a state; `members` is 0, 1 or 2, where 2 stands for several."""
    words = [PHASE_LABELS[phase]]
    if delayed:
        words.append("in its initial delay")
    if members:
        words.append("with one member" if members == 1 else "with several members")
    if handed_out:
        words.append("and ids handed out" if members else "with ids handed out")
    return " ".join(words)


def event_label(world: GroupState, request: Request) -> str:
    """The request and the role of its sender as text."""
    name = type(request).__name__
    core: Any = getattr(request, "core", None)
    if core is None or not hasattr(core, "member"):
        return name
    static = " static" if core.instance is not None else ""
    return f"{name} by{static} {role_of(world.group, core.member)}"


def role_of(group: Group | None, member: object) -> str:
    """The role of a member id in the group, as text."""
    if member is None:
        return "nobody"
    if group is None:
        return "stranger"
    for slot in group.slots:
        if slot.id == member and slot.holder is Holder.MEMBER:
            return "leader" if member == group.leader else "member"
        if slot.id == member and slot.holder is Holder.PENDING:
            return "newcomer"
    return "stranger"


# --- Steps that have to do with time in one way: they set deadlines that are counted from the present moment.
#
# To know that, the handler that judges is run once on a group whose deadlines and offsets nobody can look at, at a
# moment that nobody can look at. What it does then, it does whenever the same is said in that group and no timer is
# due.

CalmRequest: TypeAlias = Heartbeat | OffsetCommit
"""A request of which a calm group has many."""
CALM_APIS = frozenset({"Heartbeat", "OffsetCommit"})
"""Their names."""


def fields_except(kind: type, *others: str) -> Callable[[Any], tuple[Any, ...]]:
    """The function that gives all fields of a value of this kind but the `others`."""
    return attrgetter(*(each.name for each in fields(kind) if each.name not in others))


state_frame = fields_except(GroupState, "group", "offsets")
group_frame = fields_except(Group, "slots")
slot_frame = fields_except(Slot, "deadline")
commit_frame = fields_except(OffsetCommit, "core", "offsets")
membership_frame = fields_except(CommitRequest, "handle")
offset_frame = fields_except(Offset, "offset", "epoch")


class Renewal(NamedTuple):
    """The deadline of the slot at this place is set to `later` milliseconds from now."""

    place: int
    later: int


@dataclass(frozen=True, slots=True)
class CalmStep(RepeatedStep):
    """What comes of a request of a member whenever it is handled: the deadlines that are set."""

    body: Body | None
    """The body of a heartbeat; that of a commit differs each time."""
    renewals: tuple[Renewal, ...]


class Words(NamedTuple):
    """All that a request says but for its body's numbers: what it says of its sender, and of the offsets it commits."""

    sender: Hashable
    offsets: Hashable


def heartbeat_words(operation: Operation) -> Words:
    """What a heartbeat is looked up by; its body says the rest."""
    body = operation.body
    sender = operation.version, body["member_id"], body["generation_id"]
    return Words(sender, sender)


def commit_words(request: OffsetCommit) -> Words:
    """All that a commit says but for the offsets and their epochs."""
    sender = commit_frame(request), membership_frame(request.core)
    return Words(sender, (request.version, *[(where, offset_frame(offset)) for where, offset in request.offsets]))


def words_of(part: GroupOperation) -> Words:
    """The words of a request of a calm group."""
    request = part.request
    return commit_words(request) if isinstance(request, OffsetCommit) else heartbeat_words(part.operation)


def differs_in_times_alone(before: GroupState, after: GroupState) -> bool:
    """Whether the states of a group that exists differ in nothing but deadlines of members and offsets."""
    old, new = before.group, after.group
    if old is None or new is None or len(old.slots) != len(new.slots):
        return False
    if after is before:
        return True
    if state_frame(before) != state_frame(after) or group_frame(old) != group_frame(new):
        return False
    pairs = zip(old.slots, new.slots, strict=True)
    return all(mine is other or slot_frame(mine) == slot_frame(other) for mine, other in pairs)


def is_calm(before: Configuration, after: Configuration) -> bool:
    """Whether a step changes nothing but times, the response is as it always is, and nothing can have happened
    unseen."""
    unseen = unseen_of(before)
    if unseen.loading or unseen.maybe_expired or after.unseen != before.unseen:
        return False
    if after.decisions != before.decisions or after.unusual != before.unusual or after.mismatches:
        return False
    return differs_in_times_alone(before.world, after.world)


def learn_step(stepper: CoordinatorStepper, before: Configuration, part: GroupOperation, path: Path) -> CalmStep | None:
    """The last step of a path as it is at any time; None if it does more than set deadlines and store the offsets as
    they came."""
    operation, state, outcome = part.operation, before.world, path.outcome
    hidden, asked = hide_times(state), hide_numbers(part.request)
    probe = DialectProbe(before.decisions)
    context = stepper.step_context(cast(int, OpaqueTime()), Choices(), cast(Dialect, probe))
    try:
        found = handle_request(hidden, asked, context, stepper.cluster)
        is_same = found.rule == outcome.rule and found.replies == outcome.replies and not probe.open_questions
        renewals = renewals_between(hidden, found.state)
        if not is_same or renewals is None or not stores_as_asked(hidden, asked, found.state):
            return None
    except OpaqueValueRead:
        return None
    transition = transition_fields(state, part.request, outcome)
    body = None if isinstance(asked, OffsetCommit) else operation.body
    return CalmStep(outcome.rule, transition, body, renewals)


def hide_times(state: GroupState) -> GroupState:
    """The state with opaque deadlines and offsets."""
    group, hidden = state.group, OpaqueTime()
    if group is not None:
        slots = tuple(evolve(slot, deadline=hidden) for slot in group.slots)
        group = evolve(group, slots=slots, join_deadline=hidden, sync_deadline=hidden)
    return evolve(state, group=group, offsets=OpaqueMapping(), emptied_at=hidden)


def hide_numbers(request: CalmRequest) -> CalmRequest:
    """The request with opaque offsets and epochs."""
    if not isinstance(request, OffsetCommit):
        return request
    offsets = tuple((where, evolve(offset, offset=Opaque(), epoch=Opaque())) for where, offset in request.offsets)
    return evolve(request, offsets=offsets)


def stores_as_asked(before: GroupState, request: CalmRequest, after: GroupState) -> bool:
    """Whether the offsets in `after` are those before and those of the request, committed now."""
    if after.offsets is before.offsets:
        return not isinstance(request, OffsetCommit)
    stored: dict[Any, Any] = dict(after.offsets)
    if stored.pop(REST, None) is not REST or not isinstance(request, OffsetCommit):
        return False
    return stored.keys() == {where for where, _ in request.offsets} and all(
        is_committed_now(stored[where], offset) for where, offset in request.offsets
    )


def is_committed_now(stored: Offset, asked: Offset) -> bool:
    """Whether the offset is stored as it came, now and until the broker's retention ends."""
    if stored.offset is not asked.offset or stored.epoch is not asked.epoch:
        return False
    times: tuple[Any, Any] = stored.committed, stored.expires
    is_now = type(times[0]) is OpaqueTime and times[0].later == 0 and times[1] is None
    return is_now and (stored.metadata, stored.number) == (asked.metadata, asked.number)


def renewals_between(before: GroupState, after: GroupState) -> tuple[Renewal, ...] | None:
    """The deadlines that a step sets; None if it does anything else to the group."""
    old, new = before.group, after.group
    if not all(map(is_, state_frame(before), state_frame(after))) or old is None or new is None:
        return None
    if len(old.slots) != len(new.slots) or not all(map(is_, group_frame(old), group_frame(new))):
        return None
    renewals = []
    for place, (mine, other) in enumerate(zip(old.slots, new.slots, strict=True)):
        if mine is not other:
            deadline: Any = other.deadline
            if slot_frame(mine) != slot_frame(other) or type(deadline) is not OpaqueTime:
                return None
            renewals.append(Renewal(place, deadline.later))
    return tuple(renewals)


# --- Calm groups, in which members do no more than show that they are alive and commit offsets.
#
# What a request of such a group comes to is remembered (`learn_step`) until something arrives that changes the group
# in more than deadlines and offsets, or a deadline comes near. What was repeated since is put into the state when
# somebody looks at it. A request is learned when it is met for the second time: learning costs as much as handling it
# twice. What a commit does for its sender and what becomes of its offsets have nothing to do with each other, and are
# remembered apart.

MAX_REMEMBERED_WORDS = 1_000
"""How much of what requests said is remembered of one group."""
replace_deadline = evolver(Slot, "deadline")
replace_commit_time = evolver(Offset, "committed")


def earliest_deadline(state: GroupState) -> float:
    """No timer is due before this moment, in milliseconds."""
    return min(map(low, armed_deadlines(state)), default=inf)


class CalmGroup:
    """What is known of one group from a configuration on, the only one, with the topics as they are then."""

    def __init__(self, configuration: Configuration, topics_revision: int) -> None:
        self.configuration = configuration
        """The latest, without the steps that were repeated since."""
        self.topics_revision = topics_revision
        self.earliest = earliest_deadline(configuration.world)
        """No timer is due before, in milliseconds."""
        self.clock = 0
        """When the last step was repeated that was seen at the coordinator."""
        self.deadlines: dict[int, Instant] = {}
        """By place in the member table, the deadlines set since."""
        self.offsets: dict[Partition, tuple[Offset, Instant]] = {}
        """The offsets committed since, and when."""
        self.met: set[Hashable] = set()
        """What requests said, of their senders and of offsets."""
        self.steps: dict[Hashable, CalmStep | None] = {}
        """What was learned of a sender's requests; None if what comes of them depends on more."""
        self.responses: dict[Hashable, Body | None] = {}
        """The responses to heartbeats, and to commits of certain partitions that are stored as they come."""

    def follow(self, configuration: Configuration) -> bool:
        """Go on from this configuration; false if it is another one in more than times."""
        known = self.configuration
        if configuration.decisions != known.decisions or configuration.unseen != known.unseen:
            return False
        if configuration.world is known.world:
            self.configuration = configuration
            return True
        if not differs_in_times_alone(known.world, configuration.world):
            return False
        self.advance_to(configuration)
        return True

    def advance_to(self, configuration: Configuration) -> None:
        """Go on from a configuration that differs in times alone."""
        self.configuration = configuration
        self.earliest = earliest_deadline(configuration.world)

    # --- learning -----------------------------------------------------------------------------------------------

    def meet(
        self, stepper: CoordinatorStepper, before: Configuration, part: GroupOperation, after: Configuration
    ) -> None:
        """Take in what came of a request; learn it if it was met before."""
        if not isinstance(part.request, Heartbeat | OffsetCommit) or after.path is None:
            return
        words, response = words_of(part), part.operation.response
        if words.sender in self.steps and words.offsets in self.responses:
            if self.responses[words.offsets] != response:
                self.responses[words.offsets] = None
        elif self.met.issuperset(words):
            step = learn_step(stepper, before, part, after.path)
            self.steps.setdefault(words.sender, step)
            self.responses.setdefault(words.offsets, response if step is not None else None)
        elif len(self.met) < MAX_REMEMBERED_WORDS:
            self.met.update(words)

    # --- repeating ----------------------------------------------------------------------------------------------

    def repeat(self, stepper: CoordinatorStepper, operation: Operation) -> CalmStep | None:
        """Take the step that was learned of such a request; None if there is none, or anything else may happen."""
        if operation.sent_at >= self.earliest or operation.responded_at is None:
            return None
        offsets: tuple[tuple[Partition, Offset], ...] = ()
        try:
            if operation.api == "Heartbeat":
                words = heartbeat_words(operation)
            elif stepper.order is Order.INTERVALS:
                return None  # a commit does not commute with others
            else:
                names = stepper.cluster.names
                (request,) = read_requests(operation.api, operation.version, operation.body, 0, (), names)
                words, offsets = commit_words(cast(OffsetCommit, request)), cast(OffsetCommit, request).offsets
            step, response = self.steps.get(words.sender), self.responses.get(words.offsets)
        except (AttributeError, KeyError, TypeError):
            return None  # it is not well formed
        if step is None or response != operation.response or step.body not in (None, operation.body):
            return None
        now = stepper.handling_time(self.configuration, operation)
        if stepper.is_late(operation, now):
            return None
        for place, later in step.renewals:
            self.renew(place, now + later, 2 * stepper.grace)
        for where, offset in offsets:
            self.offsets[where] = offset, now
        if isinstance(now, int):
            self.clock = now
        return step

    def renew(self, place: int, deadline: Instant, slack: int) -> None:
        """Set the deadline of a slot, as `normalize_members` leaves it."""
        if isinstance(deadline, TimeInterval):
            before = self.deadlines.get(place) or self.configuration.world.group.slots[place].deadline
            deadline = extend_deadline(deadline, before, slack)
        self.deadlines[place] = deadline
        self.earliest = min(self.earliest, low(deadline))

    def catch_up(self) -> Configuration:
        """The configuration after the steps that were repeated."""
        before = self.configuration
        state, group = before.world, before.world.group
        slots = list(group.slots)
        for place, deadline in self.deadlines.items():
            slots[place] = replace_deadline(slots[place], deadline)
        committed = {where: replace_commit_time(offset, now) for where, (offset, now) in self.offsets.items()}
        state = evolve(
            state,
            group=evolve(group, slots=tuple(slots)),
            offsets={**state.offsets, **committed} if committed else state.offsets,
        )
        self.advance_to(evolve(before, world=state, clock=max(before.clock, self.clock)))
        self.deadlines.clear()
        self.offsets.clear()
        return self.configuration
