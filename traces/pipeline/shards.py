"""What is judged by itself: a trace, or the groups of one bucket in a long one, with all that concerns every group.

Groups do not know of each other, so the verdict on a group is the same whichever of the others are judged beside it.
Lookups are an exception: which node coordinates which group is about all of them, and has a unit of its own.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fencepost.model.classic.core.state import Group, Holder, Phase
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.judge.classic.failover import NOT_READY
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.search.configuration import Part
from fencepost.traces.operations import WINDOW, Lookahead, Moment, Operation

WHOLE = -2
"""The unit that is a whole trace."""
LOOKUPS = -1
"""The unit of lookups, by the place of what concerns no single group."""


class Change(NamedTuple):
    """A group is seen in another state: when, in milliseconds, which, and who brought it about."""

    time: int
    sequence: int
    group: str
    phase: str
    generation: int
    members: int
    by: str


class Rebalance(NamedTuple):
    """A round: when it began, when all had joined, when it ended, in which phase, and by whose request."""

    began: int
    joined: int | None
    ended: int
    group: str
    generation: int
    members: int
    outcome: str
    by: str


class Stuck(NamedTuple):
    """A group whose round was not over when the trace was: since when, and for whom it waits."""

    since: int
    group: str
    phase: str
    generation: int
    awaited: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class State:
    """The state of a group as last told."""

    phase: Phase | None
    generation: int
    since: int


class UnitJudge(Judge):
    """The judge, who looks at some groups of a trace alone and notes the states that they are in.

    `mine` says which groups; None is all of them.
    """

    def __init__(self, header: Header, mine: Callable[[str], bool] | None = None) -> None:
        super().__init__(header)
        self.mine = mine
        self.states: dict[str, State] = {}
        self.changes: list[Change] = []
        self.rounds: dict[str, tuple[int, int | None]] = {}
        """By group, when its present round began, and when all had joined."""
        self.rebalances: list[Rebalance] = []

    def parts(self, operation: Operation) -> Iterator[Part]:
        """As `Judge.parts`, for groups of this unit."""
        for part in super().parts(operation):
            if self.mine is None or self.mine(part.request.group):
                yield part
            else:
                del self.searches[part.request.group]

    def noted(self, event: Event) -> None:
        """As `Judge.noted`; what a coordinator tells of itself belongs to one unit of a trace, as lookups do."""
        if self.mine is None or event.api != "step":
            super().noted(event)

    def looked_up(self, operation: Operation) -> None:
        """As `Judge.looked_up`; what is wrong with lookups is said by one unit of a trace."""
        known = len(self.faults)
        super().looked_up(operation)
        if self.mine is not None:
            del self.faults[known:]

    def advance(self, group: str, part: Part, time: int, *, sent: bool) -> None:
        """As `Judge.advance`."""
        super().advance(group, part, time, sent=sent)
        if group in self.searches and group not in self.stopped:
            self.note(group, part.operation, time)

    def note(self, group: str, operation: Operation, time: int) -> None:
        """Write down the state of a group, if all explanations agree on one and it is news."""
        configurations = self.searches[group].configurations
        first = configurations[0].world.group
        phase, generation = state_of(first)
        known = self.states.get(group)
        if known is not None and known.phase is phase and known.generation == generation:
            return
        if len({state_of(one.world.group) for one in configurations}) != 1:
            return
        if known is None and phase is None:
            return
        self.states[group] = State(phase, generation, time)
        who = operation.body.get("member_id") or operation.member
        by = f"{operation.api} of {who}" if who else operation.api
        name, members = "Dead" if phase is None else phase.name.capitalize(), members_of(first)
        self.changes.append(Change(time, operation.handle - 1, group, name, generation, members, by))
        self.turned(self.changes[-1], phase)

    def turned(self, change: Change, phase: Phase | None) -> None:
        """A round begins, goes on or is over."""
        group, time = change.group, change.time
        began, joined = self.rounds.pop(group, (None, None))
        if began is not None and (phase is not Phase.COMPLETING):
            rest = (change.generation, change.members, change.phase, change.by)
            self.rebalances.append(Rebalance(began, joined, time, group, *rest))
        if phase is Phase.PREPARING:
            self.rounds[group] = (time, None)
        elif phase is Phase.COMPLETING:
            self.rounds[group] = (time if began is None else began, time)

    def stuck(self) -> Iterator[Stuck]:
        """The groups whose round is not over."""
        for group, state in self.states.items():
            if (
                group in self.stopped
                or group not in self.searches
                or state.phase not in (Phase.PREPARING, Phase.COMPLETING)
            ):
                continue
            found = self.searches[group].configurations[0].world.group
            if found is not None and found.phase is state.phase:
                awaited = tuple(awaited_in(found))
                yield Stuck(state.since, group, state.phase.name.capitalize(), state.generation, awaited)


def state_of(group: Group | None) -> tuple[Phase | None, int]:
    """The phase and the generation of a group."""
    return (None, 0) if group is None else (group.phase, group.generation)


def members_of(group: Group | None) -> int:
    """How many members a group has."""
    return 0 if group is None else sum(slot.holder is Holder.MEMBER for slot in group.slots)


def awaited_in(group: Group) -> Iterator[str]:
    """Who holds a round up: members that have not rejoined, or not sent SyncGroup; only the leader, if it has not."""
    members = [slot for slot in group.slots if slot.holder is Holder.MEMBER]
    if group.phase is Phase.PREPARING:
        yield from (str(slot.id) for slot in members if not slot.join)
        yield from (f"{slot.id} (not yet back)" for slot in group.slots if slot.holder is Holder.PENDING)
        return
    silent = [str(slot.id) for slot in members if not slot.sync]
    yield from [each for each in silent if each == group.leader] or silent


class LookupJudge(Judge):
    """The judge of lookups: hears of everything that a lookup is held against, and of no group."""

    def parts(self, operation: Operation) -> Iterator[Part]:
        """No group is looked at."""
        yield from ()

    def take(self, event: Event, operation: Operation | None) -> None:
        """As `Judge.take`; an answer whose request is not here says no more than that coordinators may have moved."""
        if event.kind is Kind.ANSWER and operation is None and event.body.get("error_code") in NOT_READY:
            self.lookup.forget()
        super().take(event, operation)


def moments(events: Iterable[tuple[int, Event]]) -> Iterator[Moment]:
    """As `Lookahead.moments`, of events some of which were left out: each has its place among all of them.

    An answer is looked for as far ahead as if all were here, so that nothing comes out differently.
    """
    ahead = Lookahead(())
    waiting: deque[tuple[int, Moment]] = deque()
    for place, event in events:
        while waiting and place > waiting[0][0] + WINDOW:
            yield waiting.popleft()[1]
        waiting.append((place, ahead.read(event)))
    for _, moment in waiting:
        yield moment
