"""The coordinator as a machine for tours: the shipped core on a clock, under every request of a small universe."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace

from fencepost.model.classic.coordinator.group_protocol import CLASSIC_GROUP
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import commit, heartbeat, leave
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    Context,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    LeaveRequest,
    Output,
    Phase,
    Slot,
    Step,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.classic.explore.coordinator_inputs import (
    CoreRequest,
    Input,
    TourState,
    Universe,
    commit_request,
    heartbeat_request,
    inputs_in,
    join_request,
    leave_request,
    sync_request,
)
from fencepost.model.errors import Error
from fencepost.model.explore.tours import Machine, Reaction
from fencepost.model.groups.admin import on_describe
from fencepost.model.groups.messages import CommitRequest, DescribeGroup
from fencepost.model.sorts import numbered_id

__all__ = ["CoordinatorDriver", "Input", "TourState", "Universe", "coordinator_machine"]


TIMED_KINDS = ("wait", "rest")
"""What takes time."""
MAX_TIMER_FIRINGS = 200
"""How much may happen in a wait; a timer that is due again and again would never come to an end."""


def coordinator_machine(universe: Universe) -> Machine[TourState, Input]:
    """The coordinator under every request of the universe."""
    group = Group(slots=(FREE,) * (universe.ids + 1))
    coordinating = CoordinatorDriver(universe)
    return Machine(TourState(group), tuple(inputs_in(universe)), coordinating.react, coordinating.follow)


REQUESTS: Mapping[str, Callable[[Universe, Input, int], CoreRequest]] = {
    "join": join_request,
    "sync": sync_request,
    "heartbeat": heartbeat_request,
    "commit": commit_request,
    "leave": leave_request,
}
"""The request that an input of each kind stands for."""


@dataclass(frozen=True, slots=True)
class CoordinatorDriver:
    """What the coordinator makes of an input."""

    universe: Universe

    def react(self, state: TourState, given: Input) -> Reaction[TourState] | None:
        """Within the bounds of the universe; timers that are due come first."""
        times = armed_deadlines(state.group)
        if given.kind in TIMED_KINDS:
            milliseconds = min(times, default=-1) - (given.kind == "rest")
            if milliseconds < (given.kind == "rest"):
                return None
        elif times and min(times) == 0:
            return None
        else:
            milliseconds = 0
        reaction = self.follow(state, given, milliseconds)
        return None if self.is_out_of_bounds(reaction.state) else reaction

    def follow(self, state: TourState, given: Input, milliseconds: int) -> Reaction[TourState]:
        """Whatever comes of it; a timer that is due goes off unasked."""
        if given.kind in TIMED_KINDS:
            return self.advance_time(state, milliseconds)
        if not is_any_due(state.group, 0):
            return self.apply_input(state, given)
        late = self.advance_time(state, 0)
        reaction = self.apply_input(late.state, given)
        return replace(reaction, rule=late.rule, responses=late.responses + reaction.responses)

    def is_out_of_bounds(self, state: TourState) -> bool:
        """The bounds are left."""
        full = all(slot != FREE for slot in state.group.slots)
        return full or state.ids > self.universe.ids or state.group.generation > self.universe.generations

    def apply_input(self, state: TourState, given: Input) -> Reaction[TourState]:
        """An input at once; its answers are what the group's clients see of it."""
        if given.kind == "look":
            _, shown, rule = on_describe(GroupState(state.group), DescribeGroup("", 0, 5), CLASSIC_GROUP)
            return Reaction(state, rule, responses=(shown, tuple(slot.client for slot in state.group.slots)))
        clock = self.universe.clock
        before = state if clock == 0 else TourState(relative_to(state.group, -clock), state.ids)
        step = self.fire_early(before, given) if given.kind == "fire" else self.handle_request(before, given)
        if step.group is before.group:
            return Reaction(state, step.rule, responses=sent_responses(step, 0))
        ids = state.ids + any(slot.id == numbered_id(state.ids + 1) for slot in step.group.slots)
        return Reaction(TourState(relative_to(step.group, clock), ids), step.rule, responses=sent_responses(step, 0))

    def advance_time(self, state: TourState, milliseconds: int) -> Reaction[TourState]:
        """All timers that are due by then, each at its time, those of members first; the rule of the last one.

        The rules of all of them are told with the answers.
        """
        clock = self.universe.clock
        group, rule, responses = relative_to(state.group, -clock), "", list[Hashable]()
        while is_any_due(group, clock + milliseconds) and len(responses) < MAX_TIMER_FIRINGS:
            now = min(armed_deadlines(group))
            step = self.fire_due_timer(replace(state, group=group), now)
            rule = step.rule
            responses += [*sent_responses(step, now - clock), (now - clock, step.rule)]
            group = step.group
        after = TourState(relative_to(group, clock + milliseconds), state.ids)
        return Reaction(after, rule, milliseconds, tuple(responses))

    def context(self, state: TourState, now: int) -> Context:
        """The moment of a step, with the choices that the universe makes."""
        universe = self.universe
        leader = numbered_id(universe.leader) if universe.leader else None
        return Context(
            now,
            Choices(numbered_id(state.ids + 1), leader, universe.protocol),
            universe.dialect,
            universe.max_group_size,
            universe.initial_delay,
            universe.new_member_timeout,
        )

    def handle_request(self, state: TourState, given: Input) -> Step:
        """A request, at once."""
        request = REQUESTS[given.kind](self.universe, given, state.ids + 1)
        return core_step(state.group, request, self.context(state, self.universe.clock))

    def fire_early(self, state: TourState, given: Input) -> Step:
        """A timer before its time: that of a slot, the join timer (0) or the sync timer (-1)."""
        context = self.context(state, self.universe.clock)
        if given.member > 0:
            return expire_member(state.group, given.member - 1, context)
        return (expire_join if given.member == 0 else expire_sync)(state.group, context)

    def fire_due_timer(self, state: TourState, now: int) -> Step:
        """The first timer that is due."""
        group, context = state.group, self.context(state, now)
        for index, slot in enumerate(group.slots):
            if slot.armed and slot.deadline <= now:
                return expire_member(group, index, context)
        if group.join_armed and group.join_deadline <= now:
            return expire_join(group, context)
        return expire_sync(group, context)


def core_step(group: Group, request: CoreRequest, context: Context) -> Step:
    """One step of the shipped core. A group without members knows nobody (SYNC-02, HB-02) before the core is asked."""
    match request:
        case JoinRequest():
            return join(group, request, context)
        case SyncRequest():
            if group.phase != Phase.EMPTY:
                return sync(group, request, context)
            return Step(group, (Output(request.handle, SyncResponse(Error.UNKNOWN_MEMBER_ID)),), "sync.empty")
        case HeartbeatRequest():
            if group.phase != Phase.EMPTY:
                return heartbeat(group, request, context)
            return Step(group, (Output(request.handle, HeartbeatResponse(Error.UNKNOWN_MEMBER_ID)),), "heartbeat.empty")
        case LeaveRequest():
            return leave(group, request, context)
        case CommitRequest():
            return commit(group, request, context)


def armed_deadlines(group: Group) -> list[int]:
    """The deadlines of all timers that are armed."""
    times = [slot.deadline for slot in group.slots if slot.armed]
    times += [group.join_deadline] * group.join_armed
    times += [group.sync_deadline] * group.sync_armed
    return times


def is_any_due(group: Group, now: int) -> bool:
    """Some timer is due."""
    return any(time <= now for time in armed_deadlines(group))


def relative_to(group: Group, now: int) -> Group:
    """The group with its times counted from `now`, and none where nothing is armed."""

    def slot_from(slot: Slot) -> Slot:
        left = slot.deadline - now if slot.armed else 0
        return slot if left == slot.deadline else replace(slot, deadline=left)

    slots = tuple(slot_from(slot) for slot in group.slots)
    join_left = group.join_deadline - now if group.join_armed else 0
    sync_left = group.sync_deadline - now if group.sync_armed else 0
    if (slots, join_left, sync_left) == (group.slots, group.join_deadline, group.sync_deadline):
        return group
    return replace(group, slots=slots, join_deadline=join_left, sync_deadline=sync_left)


def sent_responses(step: Step, now: int) -> tuple[Hashable, ...]:
    """The answers of a step, each with its request and its time."""
    return tuple((now, output.handle, output.response) for output in step.outputs if output.when)
