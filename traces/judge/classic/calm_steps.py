"""Steps that have to do with time in one way: they set deadlines that are counted from the present moment.

To know that, the handler that judges is run once on a group whose deadlines and offsets nobody can look at, at a moment
that nobody can look at. What it does then, it does whenever the same is said in that group and no timer is due.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from operator import attrgetter, is_
from typing import Any, NamedTuple, TypeAlias, cast

from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Choices, Group, Slot
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages.requests import Heartbeat
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import CommitRequest, Offset, OffsetCommit
from fencepost.traces.events import Body, Operation
from fencepost.traces.judge.classic.nondeterminism import DialectProbe
from fencepost.traces.judge.classic.opaque_values import REST, Opaque, OpaqueMapping, OpaqueTime, OpaqueValueRead
from fencepost.traces.judge.classic.stepping import CoordinatorStepper
from fencepost.traces.judge.classic.transitions import transition_fields
from fencepost.traces.judge.classic.unseen import unseen_of
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Path
from fencepost.traces.judge.search.stepper import RepeatedStep

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
