"""The states that groups are seen in while a trace is judged: changes of state, rebalances, and stuck ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fencepost.model.classic.core.state import Group, Holder, Phase
from fencepost.traces.judge.groups.group_judge import GroupJudge
from fencepost.traces.operations import Operation


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
