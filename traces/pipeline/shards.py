"""Judges of shards. A shard is a trace, or the groups of one bucket of a long trace with the events about all groups.

Groups are independent of each other, so the verdict on a group does not depend on the other groups in its shard.
Lookups are an exception: they concern all groups, and have a shard of their own.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fencepost.model.classic.core.state import Group, Holder, Phase
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.judge.groups.group_judge import GroupJudge
from fencepost.traces.judge.judge import Judge
from fencepost.traces.operations import MAX_LOOKAHEAD, Lookahead, Operation, PairedEvent

WHOLE_TRACE = -2
"""The bucket of a shard that is a whole trace."""
LOOKUPS_SHARD = -1
"""The bucket of the shard of lookups, which is also that of events about no single group."""


UNRELATED_APIS = frozenset({"ApiVersions", "Fetch", "InitProducerId", "ListOffsets", "Produce"})
UNRELATED_KINDS = frozenset({Kind.POLL, Kind.CALLBACK})


def is_unrelated(kind: str, api: str) -> bool:
    """Whether the judge of a group learns nothing from such an event.

    Most events of real clients are of this kind. Shards of groups leave them out; that of lookups has them.
    """
    return kind in UNRELATED_KINDS or (api in UNRELATED_APIS and kind in (Kind.REQUEST, Kind.RESPONSE))


class StateChange(NamedTuple):
    """A change of a group's phase or generation: time in milliseconds, the new state, and its cause `by`."""

    time: int
    sequence: int
    group: str
    phase: str
    generation: int
    members: int
    by: str


class Rebalance(NamedTuple):
    """A rebalance: times of its beginning, of the end of the join phase and of its end, the phase after it, and the
    request that ended it. Times in milliseconds."""

    began: int
    joined: int | None
    ended: int
    group: str
    generation: int
    members: int
    outcome: str
    by: str


class StuckRebalance(NamedTuple):
    """A rebalance that did not end within the trace: the time of its last phase change, and the members awaited."""

    since: int
    group: str
    phase: str
    generation: int
    awaited: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ObservedState:
    """The last recorded state of a group."""

    phase: Phase | None
    generation: int
    since: int


class StateHistory:
    """The states that groups were seen in, as far as all explanations agree."""

    def __init__(self) -> None:
        self.judges: dict[str, GroupJudge] = {}
        """By group, the judge that follows it, or did at last."""
        self.states: dict[str, ObservedState] = {}
        self.state_changes: list[StateChange] = []
        self.open_rebalances: dict[str, tuple[int, int | None]] = {}
        """By group, when its present rebalance began, and when all had joined."""
        self.rebalances: list[Rebalance] = []

    def record_state(self, judge: GroupJudge, operation: Operation, time: int) -> None:
        """Record the state of a group after an operation, if all explanations agree on one and it is new."""
        group, configurations = judge.group, judge.search.configurations
        self.judges[group] = judge
        first = configurations[0].world.group
        phase, generation = phase_and_generation(first)
        known = self.states.get(group)
        if known is not None and known.phase is phase and known.generation == generation:
            return
        if len({phase_and_generation(one.world.group) for one in configurations}) != 1:
            return
        if known is None and phase is None:
            return
        self.states[group] = ObservedState(phase, generation, time)
        who = operation.body.get("member_id") or operation.member
        by = f"{operation.api} of {who}" if who else operation.api
        name, members = "Dead" if phase is None else phase.name.capitalize(), member_count(first)
        self.state_changes.append(StateChange(time, operation.handle - 1, group, name, generation, members, by))
        self.update_rebalance(self.state_changes[-1], phase)

    def update_rebalance(self, change: StateChange, phase: Phase | None) -> None:
        """Begin, continue or end the rebalance of a group by a change of its state."""
        group, time = change.group, change.time
        began, joined = self.open_rebalances.pop(group, (None, None))
        if began is not None and (phase is not Phase.COMPLETING):
            rest = (change.generation, change.members, change.phase, change.by)
            self.rebalances.append(Rebalance(began, joined, time, group, *rest))
        if phase is Phase.PREPARING:
            self.open_rebalances[group] = (time, None)
        elif phase is Phase.COMPLETING:
            self.open_rebalances[group] = (time if began is None else began, time)

    def stuck_rebalances(self) -> Iterator[StuckRebalance]:
        """Yield the rebalances that are not over."""
        for group, state in self.states.items():
            judge = self.judges[group]
            if judge.stop_reason or state.phase not in (Phase.PREPARING, Phase.COMPLETING):
                continue
            found = judge.search.configurations[0].world.group
            if found is not None and found.phase is state.phase:
                awaited = tuple(awaited_members(found))
                yield StuckRebalance(state.since, group, state.phase.name.capitalize(), state.generation, awaited)


def phase_and_generation(group: Group | None) -> tuple[Phase | None, int]:
    """The phase and the generation of a group; (None, 0) if there is no group."""
    return (None, 0) if group is None else (group.phase, group.generation)


def member_count(group: Group | None) -> int:
    """The number of members of a group."""
    return 0 if group is None else sum(slot.holder is Holder.MEMBER for slot in group.slots)


def awaited_members(group: Group) -> Iterator[str]:
    """The members that a rebalance waits for: those that have not rejoined, or have not sent SyncGroup (only the leader
    if it has not)."""
    members = [slot for slot in group.slots if slot.holder is Holder.MEMBER]
    if group.phase is Phase.PREPARING:
        yield from (str(slot.id) for slot in members if not slot.join)
        yield from (f"{slot.id} (not yet back)" for slot in group.slots if slot.holder is Holder.PENDING)
        return
    silent = [str(slot.id) for slot in members if not slot.sync]
    yield from [each for each in silent if each == group.leader] or silent


class ShardJudge:
    """The judge of one unit, and the states that it sees groups in.

    `owns_group` says which groups are in the unit; None is all of them. What concerns no single group is in the unit of
    the whole trace, or in that of lookups.
    """

    def __init__(self, header: Header, owns_group: Callable[[str], bool] | None = None) -> None:
        self.history = StateHistory()
        self.own_events = 0
        """The number of events that were read and belong to no other shard."""
        self.judge = Judge(
            header,
            only=owns_group,
            is_shared_judged=owns_group in (None, owns_no_group),
            on_advance=self.history.record_state,
        )


def owns_no_group(group: str) -> bool:
    """In the unit of lookups there is no group."""
    return False


def pair_shard_operations(events: Iterable[tuple[int, Event]]) -> Iterator[PairedEvent]:
    """As `Lookahead.pair_operations`, for a part of the events of a trace, each with its place in the whole trace.

    The lookahead is counted in places of the whole trace, so that the verdict is the same.
    """
    ahead = Lookahead(())
    waiting: deque[tuple[int, PairedEvent]] = deque()
    for place, event in events:
        while waiting and place > waiting[0][0] + MAX_LOOKAHEAD:
            yield waiting.popleft()[1]
        waiting.append((place, ahead.pair_event(event)))
    for _, moment in waiting:
        yield moment
