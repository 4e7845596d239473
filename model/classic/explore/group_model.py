"""The world that is explored: one group at its coordinator, the processes that want to be members, and their network.

Each process has one register for requests, one for commits and one for answers. A request stays where it is after it
was handled, or goes: so it may come twice or late. An answer is heard at most once, and may be lost. What is written
over a message loses it. Time is left out: every armed timer may fire at any moment. What a step leaves open is tried
out in every way.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations, product

from fencepost.model.classic.core.state import (
    FREE,
    CommitResponse,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinResponse,
    LeaveResponse,
    NoResponse,
    SyncResponse,
)
from fencepost.model.classic.explore.coordinator_steps import CoordinatorSteps
from fencepost.model.classic.explore.properties import CLAIM_WITHHELD
from fencepost.model.classic.explore.state_layout import (
    COLUMNS_PER_PROCESS,
    COMMIT,
    COORDINATOR,
    PROCESS,
    REQUEST,
    RESPONSE,
    CoordinatorState,
    IncomingResponse,
    ProcessState,
    column_of,
    render_value,
)
from fencepost.model.classic.explore.step_checks import NO_FINDINGS, StepFindings, judge_member_step, probe_member
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import MemberRequest, MemberStep, PartitionCommit
from fencepost.model.classic.theorems.member_statements import (
    HeardResponse,
    MemberAction,
)
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
            actor = ProcessActions(self, index)
            sites += [
                Action(f"{name} acts", (process,), actor.act),
                Action(f"{name} hears", (process, response), actor.hear),
                Action(f"{name} is served", (COORDINATOR, request), actor.serve),
                Action(f"{name} commits", (COORDINATOR, late), actor.serve_commit),
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
class ProcessActions:
    """What one process does and hears, and what comes of its requests at the coordinator."""

    model: GroupModel
    index: int

    @property
    def name(self) -> str:
        """The name of the process."""
        return self.model.names[self.index]

    def act(self, process: ProcessState) -> tuple[Transition, ...]:
        """What a process does by itself."""
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
        self,
        what: str,
        before: ProcessState,
        step: MemberStep,
        last: int,
        findings: StepFindings = NO_FINDINGS,
        heard: bool = False,
    ) -> Transition | None:
        """A step of the member as a move; None if nothing happens."""
        label = f"{self.name} {what}"
        if last > self.model.bounds.requests:
            return Transition(label, rule=step.rule, cut=True)
        after = self.model.reduce_process(ProcessState(step.member, last))
        sent = [one.request for one in step.sent_requests if one.when]
        if after == before and not sent and not heard:
            return None
        writes: dict[int, Value] = {column_of(self.index, PROCESS): after}
        if heard:
            writes[column_of(self.index, RESPONSE)] = None
        for request in sent:
            writes[column_of(self.index, COMMIT if isinstance(request, PartitionCommit) else REQUEST)] = request
        return Transition(label, tuple(writes.items()), step.rule, violates=findings.violated, shows=findings.shown)

    def hear(self, process: ProcessState, incoming: IncomingResponse | None) -> tuple[Transition, ...]:
        """A process gets an answer, or (the first move) never does."""
        if incoming is None:
            return ()
        lost = Transition(f"{self.name} loses an answer", ((column_of(self.index, RESPONSE), None),))
        if isinstance(incoming.response, LeaveResponse | NoResponse):
            return (lost,)
        found: dict[Transition, tuple[str, ...]] = {lost: ()}
        for step, last, shows, plan in self.steps(process, incoming):
            heard = HeardResponse(incoming.response, incoming.request or HandleNumber(incoming.number), plan)
            findings = judge_member_step(process.member, heard, step)
            move = self.move(f"hears {step.rule}", process, step, last, findings, heard=True)
            if move is not None:
                found[move] = found.get(move, ()) or shows
        return tuple(evolve(move, shows=(*move.shows, *shows)) if shows else move for move, shows in found.items())

    def steps(
        self, process: ProcessState, incoming: IncomingResponse
    ) -> Iterator[tuple[MemberStep, int, tuple[str, ...], tuple[MemberId | None, ...]]]:
        """Every step that the answer can bring about, what it shows, and the plan: a leader may plan in many ways."""
        member, number = process.member, HandleNumber(incoming.number)
        match incoming.response:
            case JoinResponse() as response:
                following = HandleNumber(process.last + 1)
                for plan in self.plans(response):
                    step = members.on_join_response(member, number, response, following, plan)
                    shows = (CLAIM_WITHHELD.name,) if step.sent_requests and withholds(response, plan) else ()
                    yield step, process.last + (1 if step.sent_requests else 0), shows, plan
            case SyncResponse() as response:
                yield members.on_sync_response(member, number, response, COMMIT_HANDLE), process.last, (), ()
            case HeartbeatResponse() as response:
                assert isinstance(incoming.request, HeartbeatRequest)
                yield members.on_heartbeat_response(member, incoming.request, response), process.last, (), ()
            case CommitResponse() as response:
                assert isinstance(incoming.request, CommitRequest)
                yield members.on_commit_response(member, incoming.request, response), process.last, (), ()
            case LeaveResponse() | NoResponse():
                return

    def plans(self, response: JoinResponse) -> Iterable[tuple[MemberId | None, ...]]:
        """Every plan that a leader could make."""
        ids = [view.id for view in response.members if view.id is not None]
        return product([None, *ids], repeat=self.model.config.partitions)

    def serve(self, coordinator: CoordinatorState, request: MemberRequest | None) -> tuple[Transition, ...]:
        """The coordinator gets what lies in the register of requests, for the last time or not."""
        return self._serve_register(REQUEST, coordinator, request)

    def serve_commit(self, coordinator: CoordinatorState, request: MemberRequest | None) -> tuple[Transition, ...]:
        """The coordinator gets what lies in the register of commits, for the last time or not."""
        return self._serve_register(COMMIT, coordinator, request)

    def _serve_register(
        self, which: int, coordinator: CoordinatorState, request: MemberRequest | None
    ) -> tuple[Transition, ...]:
        if request is None:
            return ()
        moves: list[Transition] = []
        for judged in self.model.possible_steps(coordinator, self.index, request):
            move = self.model.coordinator_transition(
                f"{self.name} gets {judged.step.rule}", coordinator, judged, request
            )
            moves.append(move)
            if not move.cut:
                moves.append(evolve(move, writes=(*move.writes, (column_of(self.index, which), None))))
        return tuple(moves)


def withholds(response: JoinResponse, plan: tuple[MemberId | None, ...]) -> bool:
    """The plan has a partition for one member that another claims."""
    return any(
        owner is not None and holds(view.metadata, part) and view.id != owner
        for part, owner in enumerate(plan)
        for view in response.members
    )
