"""One explanation of what was seen of a group so far: its world, requests not handled yet, answers yet to be seen."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fencepost.model.classic.coordinator.state import Outcome, World
from fencepost.model.classic.core.state import FREE, Group, Holder, Slot
from fencepost.model.classic.messages.requests import Partition, Request
from fencepost.model.classic.messages.responses import Answer
from fencepost.model.frozen import alter, quick
from fencepost.traces.judge.classic.fresh_ids import renamed_answer, renamed_world
from fencepost.traces.judge.classic.matching import Difference, Fresh
from fencepost.traces.judge.classic.nondeterminism import Decisions
from fencepost.traces.judge.search.time_interval import Moment, Span, high, low, no_later
from fencepost.traces.operations import Operation


@quick
@dataclass(frozen=True, slots=True)
class Trail:
    """How a configuration came about: the last thing that happened, and what was before."""

    rule: str
    handle: int
    before: "Trail | None"
    start: World | None = None
    """The world in which it happened, where it was a step of the model, and what came of it."""
    outcome: Outcome | None = None
    request: Request | None = None
    """What was handled; None for a timer."""


@quick
@dataclass(frozen=True, slots=True)
class Configuration:
    """One explanation of what was seen."""

    world: World
    waiting: frozenset[int] = frozenset()
    """Requests sent and not handled yet."""
    given: frozenset[int] = frozenset()
    """Answers given, and right, whose event is still to come."""
    unseen: tuple[tuple[int, Answer], ...] = ()
    """Answers given before anyone knows what was seen of them."""
    clock: int = 0
    """The earliest the present moment can be."""
    decisions: Decisions = ()
    loading: bool = False
    """The coordinator was restarted and has not yet shown that it is ready."""
    swept: int | None = None
    """The earliest that the last clean-up pass can have been; the next comes a period later."""
    doubtful: frozenset[Partition] = frozenset()
    """Offsets that a clean-up pass may have removed, though no answer has shown it."""
    soft: frozenset[tuple[int, str]] = frozenset()
    """Answers, and fields of theirs, that are unusual if this is what happened."""
    trail: Trail | None = field(default=None, compare=False)
    faults: tuple["Fault", ...] = ()
    """Answers that had to be waved through; none but where the judge looks for what went wrong."""

    def __hash__(self) -> int:
        """Of what tells most configurations apart; the whole world takes too long."""
        group = self.world.group
        slots = () if group is None else tuple((slot.id, slot.join, slot.sync) for slot in group.slots)
        state = None if group is None else (group.phase, group.generation)
        return hash((self.waiting, self.given, self.clock, self.decisions, state, slots))


@quick
@dataclass(frozen=True, slots=True)
class Fault:
    """An answer that does not fit: the request, the fields that differ, what the model says, and its rule.

    The field `time` stands for an answer that came too early or too late.
    """

    handle: int
    fields: frozenset[str]
    expected: Answer | None
    rule: str
    world: World


@quick
@dataclass(frozen=True, slots=True)
class Part:
    """An operation as far as one group is concerned."""

    operation: Operation
    request: Request


def ready_by(one: Configuration, now: Moment) -> Configuration:
    """The configuration at the first answer after a restart: by now the group was loaded and sessions have begun."""
    group = one.world.group
    if not one.loading or group is None:
        return alter(one, loading=False) if one.loading else one
    slots = tuple(
        alter(slot, deadline=no_later(slot.deadline, high(now) + slot.session_timeout)) for slot in group.slots
    )
    return alter(one, loading=False, world=alter(one.world, group=alter(group, slots=slots)))


def noted(one: Configuration, number: int, difference: Difference) -> Configuration:
    """The configuration that remembers what is unusual about an answer."""
    found = {(number, name) for name in difference.soft}
    return alter(one, soft=one.soft | found) if found else one


def united(found: Iterable[Configuration]) -> list[Configuration]:
    """The configurations, those that differ in decisions alone taken as one in which only the common ones stand.

    To leave a decision open again allows more, never less; a later answer that depends on it decides it anew.
    """
    merged: dict[Configuration, Configuration] = {}
    for one in found:
        bare = alter(one, decisions=())
        twin = merged.get(bare)
        if twin is None:
            merged[bare] = one
        elif twin.decisions != one.decisions:
            common = tuple(each for each in twin.decisions if each in one.decisions)
            merged[bare] = alter(twin, decisions=common)
    return list(merged.values())


def tidied(world: World, before: Group | None, slack: int) -> World:
    """The world with its member table in one order, which means nothing, so that equal worlds are found equal.

    A session may have begun with either of two requests handled within one span of time: it ends with the later one.
    """
    group = world.group
    if group is None:
        return world
    known = {} if before is None else {slot.id: slot for slot in before.slots if slot.armed and not slot.is_new}
    held = [drawn_out(slot, known.get(slot.id), slack) for slot in group.slots if slot.holder is not Holder.NOBODY]
    return alter(world, group=alter(group, slots=(*sorted(held, key=lambda slot: str(slot.id)), FREE)))


def drawn_out(slot: Slot, before: Slot | None, slack: int) -> Slot:
    """The slot with its session ending no earlier than it was going to, if that is hardly later."""
    if before is None or not slot.armed or not 0 < high(before.deadline) - high(slot.deadline) <= slack:
        return slot
    return alter(slot, deadline=Span(low(slot.deadline), high(before.deadline)))


def renamed(one: Configuration, shown: Mapping[Fresh, str]) -> Configuration:
    """The configuration with ids in the place of those that were not known before."""
    if not shown:
        return one
    unseen = tuple((handle, renamed_answer(answer, shown)) for handle, answer in one.unseen)
    return alter(one, world=renamed_world(one.world, shown), unseen=unseen)
