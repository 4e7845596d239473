"""The world that is explored: one group at its coordinator, the processes that want to be members, and their network.

Each process has one register for requests, one for commits and one for answers. A request stays where it is after it
was handled, or goes: so it may come twice or late. An answer is heard at most once, and may be lost. What is written
over a message loses it. Time is left out: every armed timer may fire at any moment. What a step leaves open is tried
out in every way.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations, product

from fencepost.model.classic.core.membership import heartbeat
from fencepost.model.classic.core.state import (
    FREE,
    CommitResponse,
    Context,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    Holder,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    NoResponse,
    Phase,
    SyncResponse,
)
from fencepost.model.classic.explore.coordinator_inputs import empty_group_step
from fencepost.model.classic.explore.coordinator_steps import CoordinatorSteps
from fencepost.model.classic.explore.properties import CLAIM_WITHHELD
from fencepost.model.classic.explore.state_layout import (
    COLUMNS_PER_PROCESS,
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
    render_value,
)
from fencepost.model.classic.explore.step_checks import NO_FINDINGS, StepFindings
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberRequest, MemberState, MemberStep, PartitionCommit
from fencepost.model.classic.theorems.member_statements import (
    MEMBER_THEOREMS,
    HeardResponse,
    MemberAction,
    MemberChange,
    is_in_time,
)
from fencepost.model.errors import Error
from fencepost.model.explore.search import Row
from fencepost.model.explore.transition_system import (
    Action,
    Column,
    Permutation,
    Symmetry,
    Transition,
    TransitionSystem,
    Value,
)
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.logic import holds
from fencepost.model.sorts import Handle, HandleNumber, MemberId

# --- The theorems about members, checked of every step of a member in a search, and the witnesses in each step.

LOST_MEMBERSHIP = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION)


def judge_member_step(before: Member, cause: MemberAction | HeardResponse, step: MemberStep) -> StepFindings:
    """Check the theorems of a step of a member."""
    change = MemberChange(before, cause, step.member, step.sent_requests)
    violated = next((one.id for one in MEMBER_THEOREMS if not one.holds(change)), "")
    return StepFindings(violated, tuple(name for name, shows in MEMBER_WITNESSES.items() if shows(change)))


def probe_member(member: Member) -> StepFindings:
    """What the theorems say of steps that a search does without, each tried for its own sake.

    It clears a response that comes too late, and lets everybody join at any moment, who lost a request or not.
    """
    quiet = evolve(member, rejoins=False)
    found = judge_member_step(quiet, MemberAction.DISCONNECT, members.disconnect(quiet))
    earlier = HeartbeatRequest(0, member.id, member.settings.instance, member.generation - 1)
    unknown = HeartbeatResponse(Error.UNKNOWN_MEMBER_ID)
    heard = members.on_heartbeat_response(member, earlier, unknown)
    found += judge_member_step(member, HeardResponse(unknown, earlier), heard)
    other, refused = HandleNumber(member.waiting + 1), JoinResponse(Error.UNKNOWN_MEMBER_ID)
    heard = members.on_join_response(member, other, refused, other, ())
    return found + judge_member_step(member, HeardResponse(refused, other), heard)


def hears_late(change: MemberChange) -> bool:
    """A response to an earlier request says that the membership is over."""
    heard = change.input
    if not isinstance(heard, HeardResponse) or is_in_time(change.before, heard):
        return False
    return heard.response.error in LOST_MEMBERSHIP


def hears_of_end(change: MemberChange) -> bool:
    """The member is told in time that its id or its generation is over."""
    heard = change.input
    if not isinstance(heard, HeardResponse) or not is_in_time(change.before, heard):
        return False
    return heard.response.error in LOST_MEMBERSHIP


def says_that_it_leaves(change: MemberChange) -> bool:
    """A LeaveGroup is sent."""
    return any(one.when and isinstance(one.request, LeaveRequest) for one in change.sent)


def commits(change: MemberChange) -> bool:
    """A commit is sent."""
    return any(one.when and isinstance(one.request, PartitionCommit) for one in change.sent)


def loses_request(change: MemberChange) -> bool:
    """A connection ends while the member waits, and nothing else has it join."""
    lost = change.input is MemberAction.DISCONNECT and change.before.waiting != 0
    return lost and not change.before.rejoins


MEMBER_WITNESSES: Mapping[str, Callable[[MemberChange], bool]] = {
    "T43": hears_late,
    "T44": hears_of_end,
    "T45": says_that_it_leaves,
    "T46": commits,
    "T47": loses_request,
}
"""By the name of a property: the steps of which it says something."""

COMMIT_HANDLE = HandleNumber(1)
"""The handle of every commit: nobody looks at it."""


class GroupModel(CoordinatorSteps):
    """Builds the system to explore from a setting and bounds."""

    def system(self) -> TransitionSystem:
        """The system, without reductions and properties."""
        columns = [Column("coordinator", "coordinator")]
        initial: list[Value] = [CoordinatorState(Group(slots=(FREE,) * self.bounds.slots))]
        sites: list[Action] = []
        for index, (name, settings) in enumerate(zip(self.names, self.config.members, strict=True)):
            process, request, response, late = (column_of(index, which) for which in range(COLUMNS_PER_PROCESS))
            columns += [Column(f"{name} {what}", what) for what in ("process", "request", "response", "commit")]
            begun = ProcessState(members.new_member(settings, self.config.partitions))
            initial += [self.reduce_process(begun), None, None, None]
            sites += [
                Action(f"{name} acts", (process,), MemberAct(self, index)),
                Action(f"{name} hears", (process, response), ReceiveResponse(self, index)),
                Action(f"{name} is served", (COORDINATOR, request), HandleRequest(self, index, request)),
                Action(f"{name} commits", (COORDINATOR, late), HandleRequest(self, index, late)),
            ]
        sites.append(Action("timers", (COORDINATOR,), self.timer_transitions))
        return TransitionSystem(tuple(columns), tuple(initial), tuple(sites), render_value=render_value)

    def symmetry(self) -> Symmetry:
        """Processes with the same settings are alike."""
        settings = self.config.members
        allowed = tuple(
            permutation
            for permutation in permutations(range(self.count))
            if all(settings[place] == mine for place, mine in zip(permutation, settings, strict=True))
        )
        blocks = tuple(
            tuple(column_of(index, which) for which in range(COLUMNS_PER_PROCESS)) for index in range(self.count)
        )
        return Symmetry(blocks, allowed, self.permute_handles)

    def reduce_process(self, process: ProcessState) -> ProcessState:
        """The process as it is kept; a reduced world leaves out what is over."""
        return process

    def permute_handles(
        self, coordinator: CoordinatorState | None, permutation: Permutation
    ) -> CoordinatorState | None:
        """The coordinator as it would be had the processes changed places."""
        if coordinator is None:
            return None

        def place(handle: Handle) -> Handle:
            process, number = self.sender_of(handle)
            return self.handle_of(permutation[process], number) if handle else 0

        slots = tuple(evolve(slot, join=place(slot.join), sync=place(slot.sync)) for slot in coordinator.group.slots)
        return evolve(coordinator, group=evolve(coordinator.group, slots=slots))


@dataclass(frozen=True, slots=True)
class MemberAct:
    """What a process does by itself."""

    model: GroupModel
    index: int

    def __call__(self, process: ProcessState) -> tuple[Transition, ...]:
        member, last = process.member, process.last
        again = members.disconnect(members.ask_rejoin(member).member).member
        everything = (True,) * self.model.config.partitions
        acts = [
            ("restarts", MemberAction.RESTART, members.restart(member)),
            ("leaves", MemberAction.LEAVE, members.leave(member, 0)),
            ("commits", MemberAction.COMMIT, members.commit(member, COMMIT_HANDLE, everything)),
        ]
        if self.model.config.heartbeats:
            acts.append(("heartbeats", MemberAction.HEARTBEAT, members.heartbeat(member, 0)))
        joined = members.join(again, HandleNumber(last + 1))
        found = judge_member_step(again, MemberAction.JOIN, joined) + probe_member(member)
        moves = [self.move("joins", process, joined, last + 1, found)]
        for what, action, step in acts:
            moves.append(self.move(what, process, step, last, judge_member_step(member, action, step)))
        return tuple(move for move in moves if move is not None)

    def move(
        self, what: str, before: ProcessState, step: MemberStep, last: int, findings: StepFindings
    ) -> Transition | None:
        """The move of this process."""
        return member_transition(
            self.model, self.index, f"{self.model.names[self.index]} {what}", before, step, last, findings
        )


def member_transition(
    model: GroupModel,
    index: int,
    label: str,
    before: ProcessState,
    step: MemberStep,
    last: int,
    findings: StepFindings = NO_FINDINGS,
    heard: bool = False,
) -> Transition | None:
    """A step of a member as a move; None if nothing happens."""
    if last > model.bounds.requests:
        return Transition(label, rule=step.rule, cut=True)
    after = model.reduce_process(ProcessState(step.member, last))
    sent = [one.request for one in step.sent_requests if one.when]
    if after == before and not sent and not heard:
        return None
    writes: dict[int, Value] = {column_of(index, PROCESS): after}
    if heard:
        writes[column_of(index, RESPONSE)] = None
    for request in sent:
        writes[column_of(index, COMMIT if isinstance(request, PartitionCommit) else REQUEST)] = request
    return Transition(label, tuple(writes.items()), step.rule, violates=findings.violated, shows=findings.shown)


@dataclass(frozen=True, slots=True)
class ReceiveResponse:
    """A process gets an answer, or (the first move) never does."""

    model: GroupModel
    index: int

    def __call__(self, process: ProcessState, incoming: IncomingResponse | None) -> tuple[Transition, ...]:
        if incoming is None:
            return ()
        lost = Transition(f"{self.model.names[self.index]} loses an answer", ((column_of(self.index, RESPONSE), None),))
        if isinstance(incoming.response, LeaveResponse | NoResponse):
            return (lost,)
        found: dict[Transition, tuple[str, ...]] = {lost: ()}
        heard = HeardResponse(incoming.response, incoming.request or HandleNumber(incoming.number))
        for step, last, shows in self.steps(process, incoming):
            label = f"{self.model.names[self.index]} hears {step.rule}"
            findings = judge_member_step(process.member, heard, step)
            move = member_transition(self.model, self.index, label, process, step, last, findings, heard=True)
            if move is not None:
                found[move] = found.get(move, ()) or shows
        return tuple(evolve(move, shows=(*move.shows, *shows)) if shows else move for move, shows in found.items())

    def steps(
        self, process: ProcessState, incoming: IncomingResponse
    ) -> Iterator[tuple[MemberStep, int, tuple[str, ...]]]:
        """Every step that the answer can bring about, and what it shows: a leader may plan in many ways."""
        member, number = process.member, HandleNumber(incoming.number)
        match incoming.response:
            case JoinResponse() as response:
                following = HandleNumber(process.last + 1)
                for plan in self.plans(response):
                    step = members.on_join_response(member, number, response, following, plan)
                    shows = (CLAIM_WITHHELD.name,) if step.sent_requests and withholds(response, plan) else ()
                    yield step, process.last + (1 if step.sent_requests else 0), shows
            case SyncResponse() as response:
                yield members.on_sync_response(member, number, response, COMMIT_HANDLE), process.last, ()
            case HeartbeatResponse() as response:
                assert isinstance(incoming.request, HeartbeatRequest)
                yield members.on_heartbeat_response(member, incoming.request, response), process.last, ()
            case CommitResponse() as response:
                assert isinstance(incoming.request, CommitRequest)
                yield members.on_commit_response(member, incoming.request, response), process.last, ()
            case LeaveResponse() | NoResponse():
                return

    def plans(self, response: JoinResponse) -> Iterable[tuple[MemberId | None, ...]]:
        """Every plan that a leader could make."""
        ids = [view.id for view in response.members if view.id is not None]
        return product([None, *ids], repeat=self.model.config.partitions)


def withholds(response: JoinResponse, plan: tuple[MemberId | None, ...]) -> bool:
    """The plan has a partition for one member that another claims."""
    return any(
        owner is not None and holds(view.metadata, part) and view.id != owner
        for part, owner in enumerate(plan)
        for view in response.members
    )


@dataclass(frozen=True, slots=True)
class HandleRequest:
    """The coordinator gets what lies in a register, for the last time or not."""

    model: GroupModel
    index: int
    register: int

    def __call__(self, coordinator: CoordinatorState, request: MemberRequest | None) -> tuple[Transition, ...]:
        if request is None:
            return ()
        moves: list[Transition] = []
        for judged in self.model.possible_steps(coordinator, self.index, request):
            label = f"{self.model.names[self.index]} gets {judged.step.rule}"
            move = self.model.coordinator_transition(label, coordinator, judged, request)
            moves.append(move)
            if not move.cut:
                moves.append(evolve(move, writes=(*move.writes, (self.register, None))))
        return tuple(moves)


# --- The group once its members stop changing: live members act when they have to, dead ones never, nothing is lost.

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
