"""One explanation of what was seen of a group so far: its world, requests not handled yet, answers yet to be seen."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core.state import FREE, Group, Holder, Slot
from fencepost.model.classic.messages.requests import Partition, Request
from fencepost.model.classic.messages.responses import Response
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.traces.judge.classic.fresh_ids import resolve_response_ids, resolve_state_ids
from fencepost.traces.judge.classic.matching import FreshId, ResponseDifference
from fencepost.traces.judge.classic.nondeterminism import Decisions
from fencepost.traces.judge.search.time_interval import Instant, TimeInterval, cap_at, high, low
from fencepost.traces.operations import Operation


@fast_frozen
@dataclass(frozen=True, slots=True)
class Path:
    """How a configuration came about: the last thing that happened, and what was before."""

    rule: str
    handle: int
    previous: "Path | None"
    start: GroupState | None = None
    """The world in which it happened, where it was a step of the model, and what came of it."""
    outcome: StepResult | None = None
    request: Request | None = None
    """What was handled; None for a timer."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Configuration:
    """One explanation of what was seen."""

    world: GroupState
    waiting: frozenset[int] = frozenset()
    """Requests sent and not handled yet."""
    matched: frozenset[int] = frozenset()
    """Answers given, and right, whose event is still to come."""
    predicted: tuple[tuple[int, Response], ...] = ()
    """Answers given before anyone knows what was seen of them."""
    clock: int = 0
    """The earliest the present moment can be."""
    decisions: Decisions = ()
    loading: bool = False
    """The coordinator was restarted and has not yet shown that it is ready."""
    last_cleanup: int | None = None
    """The earliest that the last clean-up pass can have been; the next comes a period later."""
    maybe_expired: frozenset[Partition] = frozenset()
    """Offsets that a clean-up pass may have removed, though no answer has shown it."""
    unusual: frozenset[tuple[int, str]] = frozenset()
    """Answers, and fields of theirs, that are unusual if this is what happened."""
    path: Path | None = field(default=None, compare=False)
    mismatches: tuple["Mismatch", ...] = ()
    """Answers that had to be waved through; none but where the judge looks for what went wrong."""

    def __hash__(self) -> int:
        """Of what tells most configurations apart; the whole world takes too long."""
        group = self.world.group
        slots = () if group is None else tuple((slot.id, slot.join, slot.sync) for slot in group.slots)
        state = None if group is None else (group.phase, group.generation)
        return hash((self.waiting, self.matched, self.clock, self.decisions, state, slots))


@fast_frozen
@dataclass(frozen=True, slots=True)
class Mismatch:
    """An answer that does not fit: the request, the fields that differ, what the model says, and its rule.

    The field `time` stands for an answer that came too early or too late.
    """

    handle: int
    fields: frozenset[str]
    expected: Response | None
    rule: str
    world: GroupState


@fast_frozen
@dataclass(frozen=True, slots=True)
class GroupOperation:
    """An operation as far as one group is concerned."""

    operation: Operation
    request: Request


def finish_loading(configuration: Configuration, now: Instant) -> Configuration:
    """The configuration at the first answer after a restart: by now the group was loaded and sessions have begun."""
    group = configuration.world.group
    if not configuration.loading or group is None:
        return evolve(configuration, loading=False) if configuration.loading else configuration
    slots = tuple(
        evolve(slot, deadline=cap_at(slot.deadline, high(now) + slot.session_timeout)) for slot in group.slots
    )
    return evolve(configuration, loading=False, world=evolve(configuration.world, group=evolve(group, slots=slots)))


def with_unusual_fields(configuration: Configuration, number: int, difference: ResponseDifference) -> Configuration:
    """The configuration that remembers what is unusual about an answer."""
    found = {(number, name) for name in difference.advisory}
    return evolve(configuration, unusual=configuration.unusual | found) if found else configuration


def merge_decisions(configurations: Iterable[Configuration]) -> list[Configuration]:
    """The configurations, those that differ in decisions alone taken as one in which only the common ones stand.

    To leave a decision open again allows more, never less; a later answer that depends on it decides it anew.
    """
    merged: dict[Configuration, Configuration] = {}
    for one in configurations:
        bare = evolve(one, decisions=())
        twin = merged.get(bare)
        if twin is None:
            merged[bare] = one
        elif twin.decisions != one.decisions:
            common = tuple(each for each in twin.decisions if each in one.decisions)
            merged[bare] = evolve(twin, decisions=common)
    return list(merged.values())


def normalize_members(world: GroupState, before: Group | None, slack: int) -> GroupState:
    """The world with its member table in one order, which means nothing, so that equal worlds are found equal.

    A session may have begun with either of two requests handled within one span of time: it ends with the later one.
    """
    group = world.group
    if group is None:
        return world
    known = {} if before is None else {slot.id: slot for slot in before.slots if slot.armed and not slot.is_new}
    held = [extend_session(slot, known.get(slot.id), slack) for slot in group.slots if slot.holder is not Holder.NOBODY]
    return evolve(world, group=evolve(group, slots=(*sorted(held, key=lambda slot: str(slot.id)), FREE)))


def extend_session(slot: Slot, before: Slot | None, slack: int) -> Slot:
    """The slot with its session ending no earlier than it was going to, if that is hardly later."""
    if before is None or not slot.armed or not 0 < high(before.deadline) - high(slot.deadline) <= slack:
        return slot
    return evolve(slot, deadline=TimeInterval(low(slot.deadline), high(before.deadline)))


def resolve_ids(configuration: Configuration, shown: Mapping[FreshId, str]) -> Configuration:
    """The configuration with ids in the place of those that were not known before."""
    if not shown:
        return configuration
    unseen = tuple((handle, resolve_response_ids(response, shown)) for handle, response in configuration.predicted)
    return evolve(configuration, world=resolve_state_ids(configuration.world, shown), predicted=unseen)
