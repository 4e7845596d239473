"""The group once its members stop changing: live members act when they have to, dead ones never, nothing is lost."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fencepost.model.classic.core.membership import heartbeat
from fencepost.model.classic.core.state import (
    Context,
    HeartbeatRequest,
    HeartbeatResponse,
    Holder,
    JoinResponse,
    Phase,
)
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberState
from fencepost.model.explore.classic.absent_group import empty_group_step
from fencepost.model.explore.classic.group_model import GroupModel, HandleRequest, ReceiveResponse, member_transition
from fencepost.model.explore.classic.state_layout import (
    COMMIT,
    COORDINATOR,
    PROCESS,
    REQUEST,
    RESPONSE,
    Bounds,
    CoordinatorState,
    IncomingResponse,
    ModelConfig,
    ProcessState,
    column_of,
)
from fencepost.model.explore.search import Row
from fencepost.model.explore.transition_system import Action, Transition, TransitionSystem, Value
from fencepost.model.logic import holds
from fencepost.model.sorts import HandleNumber, MemberId

NO_BOUND = 1 << 40
HEARTBEATING_STATES = (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)


class UnboundedModel(GroupModel):
    """The world without bounds but the number of slots. Nobody judges its steps: the search with bounds has.

    What a timer of a slot brings about is computed once.
    """

    judges_steps = False

    def __init__(self, config: ModelConfig, slots: int) -> None:
        super().__init__(config, Bounds(NO_BOUND, NO_BOUND, NO_BOUND, slots))
        self._of_slots: dict[tuple[CoordinatorState, int], tuple[Transition, ...]] = {}

    def slot_timer_transitions(self, coordinator: CoordinatorState, index: int) -> tuple[Transition, ...]:
        """The timer of one slot, if it can fire."""
        key = (coordinator, index)
        found = self._of_slots.get(key)
        if found is None:
            found = self._of_slots[key] = super().slot_timer_transitions(coordinator, index)
        return found


class QuietModel:
    """The world from some moment on: the living do what they have to, the dead do nothing.

    Models of the same world with others alive have the same actions, but for the timers of slots.
    """

    def __init__(self, model: UnboundedModel, alive: frozenset[int], steady: bool = True) -> None:
        self.model = model
        self.alive = alive
        self.hearing = SteadyLeaderReceive if steady else ReceiveResponse

    def system(self) -> TransitionSystem:
        """The system; its initial row is that of the whole world."""
        sites: list[Action] = []
        for index, name in enumerate(self.model.names):
            process, request, response, late = (
                column_of(index, which) for which in (PROCESS, REQUEST, RESPONSE, COMMIT)
            )
            sites.append(
                Action(
                    f"{name} is served", (COORDINATOR, request), HandleOnce(HandleRequest(self.model, index, request))
                )
            )
            sites.append(
                Action(f"{name} commits", (COORDINATOR, late), HandleOnce(HandleRequest(self.model, index, late)))
            )
            if index in self.alive:
                sites += [
                    Action(f"{name} joins", (process,), SendJoin(self.model, index)),
                    Action(f"{name} hears", (process, response), ReceiveWithoutLoss(self.hearing(self.model, index))),
                    Action(f"{name} heartbeats", (COORDINATOR, process), HeartbeatRoundTrip(self.model, index)),
                    Action(
                        f"{name} gives up",
                        (COORDINATOR, process, request, response),
                        GiveUpRequest(self.model, index),
                        True,
                    ),
                ]
        processes = tuple(column_of(index, PROCESS) for index in range(self.model.count))
        for slot in range(self.model.bounds.slots):
            expire = ExpireSlot(self.model, self.alive, slot)
            sites.append(Action(f"timer of slot {slot}", (COORDINATOR, *processes), expire, True))
        sites.append(Action("timers of the phase", (COORDINATOR,), self.model.phase_timer_transitions, True))
        return replace(self.model.system(), actions=tuple(sites))

    def is_settled(self, row: Row) -> bool:
        """Everyone alive is a stable member of a Stable group, and nobody else is; nothing is parked."""
        group = row[COORDINATOR].group
        living: list[Member] = [row[column_of(index, PROCESS)].member for index in sorted(self.alive)]
        if not living:
            return bool(group.phase == Phase.EMPTY)
        present = {slot.id for slot in group.slots if slot.holder != Holder.NOBODY}
        return bool(
            group.phase == Phase.STABLE
            and present == {member.id for member in living}
            and all(member.state == MemberState.STABLE for member in living)
            and all(member.generation == group.generation for member in living)
            and all(slot.join == 0 and slot.sync == 0 for slot in group.slots)
        )


@dataclass(frozen=True, slots=True)
class HandleOnce:
    """A request is handled, and is then gone."""

    serving: HandleRequest

    def __call__(self, coordinator: CoordinatorState, request: Value) -> tuple[Transition, ...]:
        moves = self.serving(coordinator, request)
        return tuple(move for move in moves if (self.serving.register, None) in move.writes)


@dataclass(frozen=True, slots=True)
class ReceiveWithoutLoss:
    """An answer is heard and not lost."""

    hearing: ReceiveResponse

    def __call__(self, process: ProcessState, incoming: IncomingResponse | None) -> tuple[Transition, ...]:
        moves = self.hearing(process, incoming)
        return moves[1:]


@dataclass(frozen=True, slots=True)
class SteadyLeaderReceive(ReceiveResponse):
    """A leader that leaves a partition with whom it finds it, and gives any other to the first member."""

    def plans(self, response: JoinResponse) -> Iterable[tuple[MemberId | None, ...]]:
        """The one plan."""
        views = [view for view in response.members if view.id is not None]
        partitions = range(self.model.config.partitions)
        claims = [[view.id for view in views if holds(view.metadata, part)] for part in partitions]
        first = [view.id for view in views][:1]
        return [tuple(next(iter(claim or first), None) for claim in claims)]


@dataclass(frozen=True, slots=True)
class SendJoin:
    """A process that has to join does."""

    model: GroupModel
    index: int

    def __call__(self, process: ProcessState) -> tuple[Transition, ...]:
        number = HandleNumber(process.last + 1)
        step = members.join(process.member, number)
        name = self.model.names[self.index]
        move = (
            member_transition(self.model, self.index, f"{name} joins", process, step, number)
            if step.sent_requests
            else None
        )
        return () if move is None else (move,)


@dataclass(frozen=True, slots=True)
class HeartbeatRoundTrip:
    """A heartbeat and its answer at once, if the member learns something from it."""

    model: GroupModel
    index: int

    def __call__(self, coordinator: CoordinatorState, process: ProcessState) -> tuple[Transition, ...]:
        for sent in members.heartbeat(process.member, HandleNumber(1)).sent_requests:
            request = sent.request
            assert isinstance(request, HeartbeatRequest)
            group = coordinator.group
            step = empty_group_step(group, request) or heartbeat(group, request, Context(now=0))
            response = step.outputs[0].response
            assert isinstance(response, HeartbeatResponse)
            learned = members.on_heartbeat_response(process.member, request, response).member
            if learned != process.member:
                after = replace(process, member=learned)
                return (Transition(f"{self.model.names[self.index]} hears of {step.rule}", ((self.column, after),)),)
        return ()

    @property
    def column(self) -> int:
        """The column of the process."""
        return column_of(self.index, PROCESS)


@dataclass(frozen=True, slots=True)
class GiveUpRequest:
    """A process waits for an answer to a request that is nowhere any more: it asks again at last."""

    model: GroupModel
    index: int

    def __call__(
        self, coordinator: CoordinatorState, process: ProcessState, request: Value, incoming: IncomingResponse | None
    ) -> tuple[Transition, ...]:
        waiting = process.member.waiting
        handle = self.model.handle_of(self.index, waiting)
        parked = any(handle in (slot.join, slot.sync) for slot in coordinator.group.slots)
        if waiting == 0 or parked or request is not None or incoming is not None:
            return ()
        after = replace(process, member=members.disconnect(process.member).member)
        return (Transition(f"{self.model.names[self.index]} gives up", ((column_of(self.index, PROCESS), after),)),)


@dataclass(frozen=True, slots=True)
class ExpireSlot:
    """The timer of one slot, unless somebody alive sends heartbeats for it or waits there with a first JoinGroup."""

    model: UnboundedModel
    alive: frozenset[int]
    slot: int

    def __call__(self, coordinator: CoordinatorState, *processes: ProcessState) -> tuple[Transition, ...]:
        slot = coordinator.group.slots[self.slot]
        for index in self.alive:
            member = processes[index].member
            if member.id == slot.id and member.state in HEARTBEATING_STATES:
                return ()
            if slot.is_new and slot.join == self.model.handle_of(index, member.waiting):
                return ()
        return self.model.slot_timer_transitions(coordinator, self.slot)
