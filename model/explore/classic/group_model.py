"""The world that is explored: one group at its coordinator, the processes that want to be members, and their network.

Each process has one register for requests, one for commits and one for answers. A request stays where it is after it
was handled, or goes: so it may come twice or late. An answer is heard at most once, and may be lost. What is written
over a message loses it. Time is left out: every armed timer may fire at any moment. What a step leaves open is tried
out in every way.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations, product

from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import commit, heartbeat, leave
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    CommitAnswer,
    CommitRequest,
    Context,
    Group,
    HeartbeatAnswer,
    HeartbeatRequest,
    Holder,
    JoinAnswer,
    JoinRequest,
    LeaveAnswer,
    LeaveRequest,
    Output,
    Silence,
    Step,
    SyncAnswer,
    SyncRequest,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import MemberRequest, MemberStep, PartitionCommit
from fencepost.model.errors import Error
from fencepost.model.explore.classic.absent_group import absent_group
from fencepost.model.explore.classic.properties import breached
from fencepost.model.explore.classic.state_layout import (
    ANSWER,
    COLUMNS,
    COMMIT,
    COORDINATOR,
    PROCESS,
    REQUEST,
    Bounds,
    Coordinator,
    Heard,
    Process,
    Setting,
    column_of,
)
from fencepost.model.explore.transition_system import Column, Move, Permutation, Site, Symmetry, System, Value
from fencepost.model.frozen import alter
from fencepost.model.logic import Token

COMMITTING = 1
"""The handle of every commit: nobody looks at it."""


class GroupWorld:
    """Builds the system to explore from a setting and bounds."""

    def __init__(self, setting: Setting, bounds: Bounds) -> None:
        self.setting = setting
        self.bounds = bounds
        self.count = len(setting.members)
        self.names = tuple("ABCDEFGH"[: self.count])

    def system(self) -> System:
        """The system, without reductions and properties."""
        columns = [Column("coordinator", "coordinator")]
        initial: list[Value] = [Coordinator(Group(slots=(FREE,) * self.bounds.slots))]
        sites: list[Site] = []
        for index, (name, settings) in enumerate(zip(self.names, self.setting.members, strict=True)):
            process, request, answer, late = (column_of(index, which) for which in range(COLUMNS))
            columns += [Column(f"{name} {what}", what) for what in ("process", "request", "answer", "commit")]
            begun = Process(members.started(settings, self.setting.partitions))
            initial += [self.live_process(begun), None, None, None]
            sites += [
                Site(f"{name} acts", (process,), Acting(self, index)),
                Site(f"{name} hears", (process, answer), Hearing(self, index)),
                Site(f"{name} is served", (COORDINATOR, request), Serving(self, index, request)),
                Site(f"{name} commits", (COORDINATOR, late), Serving(self, index, late)),
            ]
        sites.append(Site("timers", (COORDINATOR,), self.timers))
        return System(tuple(columns), tuple(initial), tuple(sites))

    def symmetry(self) -> Symmetry:
        """Processes with the same settings are alike."""
        settings = self.setting.members
        allowed = tuple(
            permutation
            for permutation in permutations(range(self.count))
            if all(settings[place] == mine for place, mine in zip(permutation, settings, strict=True))
        )
        blocks = tuple(tuple(column_of(index, which) for which in range(COLUMNS)) for index in range(self.count))
        return Symmetry(blocks, allowed, self.renamed)

    def live_process(self, process: Process) -> Process:
        """The process as it is kept; a reduced world leaves out what is over."""
        return process

    def live_coordinator(self, coordinator: Coordinator) -> Coordinator:
        """The coordinator as it is kept; a reduced world leaves out what is over."""
        return coordinator

    # -- handles ------------------------------------------------------------------------------------------------

    def handle(self, process: int, number: int) -> int:
        """The coordinator's name for a request of a process."""
        return number * self.count + process + 1

    def sender(self, handle: int) -> tuple[int, int]:
        """Which process sent a request, and its number there."""
        number, process = divmod(handle - 1, self.count)
        return process, number

    def renamed(self, coordinator: Coordinator | None, permutation: Permutation) -> Coordinator | None:
        """The coordinator as it would be had the processes changed places."""
        if coordinator is None:
            return None

        def place(handle: int) -> int:
            process, number = self.sender(handle)
            return self.handle(permutation[process], number) if handle else 0

        slots = tuple(alter(slot, join=place(slot.join), sync=place(slot.sync)) for slot in coordinator.group.slots)
        return alter(coordinator, group=alter(coordinator.group, slots=slots))

    # -- the coordinator ----------------------------------------------------------------------------------------

    def contexts(self, coordinator: Coordinator) -> Iterator[Context]:
        """Every way in which a step can be left open: the leader to be, the protocol to be."""
        leaders = [slot.id for slot in coordinator.group.slots if slot.holder != Holder.NOBODY]
        leaders.append(coordinator.last_id + 1)
        names = {name for settings in self.setting.members for name in settings.names}
        for leader, name in product(leaders, sorted(names) if len(names) > 1 else [None]):
            yield Context(
                now=0,
                choices=Choices(coordinator.last_id + 1, leader, name),
                dialect=self.setting.dialect,
                max_group_size=self.setting.max_group_size,
                initial_rebalance_delay=0,
                new_member_timeout=0,
            )

    def served(self, coordinator: Coordinator, process: int, request: MemberRequest) -> list[tuple[Step, Coordinator]]:
        """Every step that a request can bring about, and the coordinator after it."""
        group = self.roomy(coordinator)
        return self.distinct(
            coordinator, [self.handled(group, process, request, c) for c in self.contexts(coordinator)]
        )

    def roomy(self, coordinator: Coordinator) -> Group:
        """The group with a slot more than the bounds allow, so that a step never finds the table full."""
        return alter(coordinator.group, slots=(*coordinator.group.slots, FREE))

    def trimmed(self, coordinator: Coordinator) -> Coordinator:
        """The coordinator with the slots that the bounds allow."""
        slots = coordinator.group.slots[: self.bounds.slots]
        return alter(coordinator, group=alter(coordinator.group, slots=slots))

    def handled(self, group: Group, process: int, request: MemberRequest, context: Context) -> Step:
        """One step of the shipped core."""
        match request:
            case JoinRequest():
                return join(group, alter(request, handle=self.handle(process, request.handle)), context)
            case SyncRequest():
                syncing = alter(request, handle=self.handle(process, request.handle))
                return absent_group(group, syncing) or sync(group, syncing, context)
            case HeartbeatRequest():
                beating = alter(request, handle=self.handle(process, 0))
                return absent_group(group, beating) or heartbeat(group, beating, context)
            case LeaveRequest():
                return leave(group, alter(request, handle=self.handle(process, 0)), context)
            case PartitionCommit():
                return commit(group, alter(request.request, handle=self.handle(process, 0)), context)

    def distinct(self, before: Coordinator, steps: list[Step]) -> list[tuple[Step, Coordinator]]:
        """The different ones among the steps, with time left out."""
        found: dict[tuple[Step, Coordinator], None] = {}
        for step in dict.fromkeys(steps):
            used = any(slot.id == before.last_id + 1 for slot in step.group.slots)
            after = self.live_coordinator(Coordinator(untimed(step.group), before.last_id + used))
            found[alter(step, group=after.group), after] = None
        return list(found)

    def beyond(self, coordinator: Coordinator) -> bool:
        """The coordinator has left the bounds."""
        group = coordinator.group
        full = group.slots[self.bounds.slots :] not in ((), (FREE,))
        return full or group.generation > self.bounds.generations or coordinator.last_id > self.bounds.ids

    def timers(self, coordinator: Coordinator) -> tuple[Move, ...]:
        """Every timer that can fire."""
        slots = range(len(coordinator.group.slots))
        moves = [move for index in slots for move in self.slot_timer(coordinator, index)]
        return (*moves, *self.phase_timers(coordinator))

    def slot_timer(self, coordinator: Coordinator, index: int) -> tuple[Move, ...]:
        """The timer of one slot, if it can fire."""
        group = self.roomy(coordinator)
        return self.fired(coordinator, [expire_member(group, index, c) for c in self.contexts(coordinator)])

    def phase_timers(self, coordinator: Coordinator) -> tuple[Move, ...]:
        """The join timer and the sync timer, if they can fire."""
        group, contexts = self.roomy(coordinator), list(self.contexts(coordinator))
        joins = self.fired(coordinator, [expire_join(group, context) for context in contexts])
        return (*joins, *self.fired(coordinator, [expire_sync(group, context) for context in contexts]))

    def fired(self, coordinator: Coordinator, steps: list[Step]) -> tuple[Move, ...]:
        """What came of a timer as moves."""
        different = self.distinct(coordinator, steps)
        return tuple(
            self.moved(step.rule, coordinator, step, after, None)
            for step, after in different
            if step.outputs or self.trimmed(after) != coordinator
        )

    def moved(
        self, label: str, before: Coordinator, step: Step, after: Coordinator, request: MemberRequest | None
    ) -> Move:
        """A step of the coordinator as a move: what it writes into its own column and into those of answers."""
        if self.beyond(after):
            return Move(label, rule=step.rule, cut=True)
        writes: dict[int, Value] = {COORDINATOR: self.trimmed(after)}
        for output in step.outputs:
            process, heard = self.heard(output, request)
            if heard is not None:
                writes[column_of(process, ANSWER)] = heard
        breach = breached(before.group, request, step, self.setting.by_id)
        return Move(label, tuple(writes.items()), step.rule, breach=breach)

    def heard(self, output: Output, request: MemberRequest | None) -> tuple[int, Heard | None]:
        """Whom an answer goes to, and what there is to hear: nothing if it would not change anything there."""
        process, number = self.sender(output.handle)
        match output.answer:
            case JoinAnswer() | SyncAnswer():
                return process, Heard(output.answer, number)
            case HeartbeatAnswer(error) if error != Error.NONE and isinstance(request, HeartbeatRequest):
                return process, Heard(output.answer, request=request)
            case CommitAnswer(error) if error != Error.NONE and isinstance(request, PartitionCommit):
                return process, Heard(output.answer, request=request.request)
            case HeartbeatAnswer() | CommitAnswer() | LeaveAnswer() | Silence():
                return process, None


def untimed(group: Group) -> Group:
    """The group with every deadline at zero, so that what is armed is due."""
    slots = tuple(slot if slot.deadline == 0 else alter(slot, deadline=0) for slot in group.slots)
    return alter(group, slots=slots, join_deadline=0, sync_deadline=0, initial_wait=0, initial_left=0)


@dataclass(frozen=True, slots=True)
class Acting:
    """What a process does by itself."""

    world: GroupWorld
    index: int

    def __call__(self, process: Process) -> tuple[Move, ...]:
        member, number = process.member, process.last + 1
        again = members.disconnect(members.ask_rejoin(member).member).member
        everything = (True,) * self.world.setting.partitions
        steps = [
            ("joins", members.join(again, number), number),
            ("restarts", members.restart(member), process.last),
            ("leaves", members.leave(member, 0), process.last),
            ("commits", members.commit(member, COMMITTING, everything), process.last),
        ]
        if self.world.setting.heartbeats:
            steps.append(("heartbeats", members.heartbeat(member, 0), process.last))
        name = self.world.names[self.index]
        moves = (acted(self.world, self.index, f"{name} {what}", process, step, last) for what, step, last in steps)
        return tuple(move for move in moves if move is not None)


def acted(
    world: GroupWorld, index: int, label: str, before: Process, step: MemberStep, last: int, heard: bool = False
) -> Move | None:
    """A step of a member as a move; None if nothing happens."""
    if last > world.bounds.requests:
        return Move(label, rule=step.rule, cut=True)
    after = world.live_process(Process(step.member, last))
    sent = [one.request for one in step.sent if one.when]
    if after == before and not sent and not heard:
        return None
    writes: dict[int, Value] = {column_of(index, PROCESS): after}
    if heard:
        writes[column_of(index, ANSWER)] = None
    for request in sent:
        writes[column_of(index, COMMIT if isinstance(request, PartitionCommit) else REQUEST)] = request
    return Move(label, tuple(writes.items()), step.rule)


@dataclass(frozen=True, slots=True)
class Hearing:
    """A process gets an answer, or (the first move) never does."""

    world: GroupWorld
    index: int

    def __call__(self, process: Process, heard: Heard | None) -> tuple[Move, ...]:
        if heard is None:
            return ()
        lost = Move(f"{self.world.names[self.index]} loses an answer", ((column_of(self.index, ANSWER), None),))
        found: dict[Move, None] = {lost: None}
        for step, last in self.steps(process, heard):
            label = f"{self.world.names[self.index]} hears {step.rule}"
            move = acted(self.world, self.index, label, process, step, last, heard=True)
            if move is not None:
                found[move] = None
        return tuple(found)

    def steps(self, process: Process, heard: Heard) -> Iterator[tuple[MemberStep, int]]:
        """Every step that the answer can bring about: a leader may plan in many ways."""
        member = process.member
        match heard.answer:
            case JoinAnswer() as answer:
                for plan in self.plans(answer):
                    step = members.on_join_answer(member, heard.number, answer, process.last + 1, plan)
                    yield step, process.last + (1 if step.sent else 0)
            case SyncAnswer() as answer:
                yield members.on_sync_answer(member, heard.number, answer, COMMITTING), process.last
            case HeartbeatAnswer() as answer:
                assert isinstance(heard.request, HeartbeatRequest)
                yield members.on_heartbeat_answer(member, heard.request, answer), process.last
            case CommitAnswer() as answer:
                assert isinstance(heard.request, CommitRequest)
                yield members.on_commit_answer(member, heard.request, answer), process.last
            case LeaveAnswer() | Silence():
                return

    def plans(self, answer: JoinAnswer) -> Iterable[tuple[Token, ...]]:
        """Every plan that a leader could make."""
        ids = [view.id for view in answer.members if view.id is not None]
        return product([None, *ids], repeat=self.world.setting.partitions)


@dataclass(frozen=True, slots=True)
class Serving:
    """The coordinator gets what lies in a register, for the last time or not."""

    world: GroupWorld
    index: int
    register: int

    def __call__(self, coordinator: Coordinator, request: MemberRequest | None) -> tuple[Move, ...]:
        if request is None:
            return ()
        moves: list[Move] = []
        for step, after in self.world.served(coordinator, self.index, request):
            label = f"{self.world.names[self.index]} gets {step.rule}"
            move = self.world.moved(label, coordinator, step, after, request)
            moves.append(move)
            if not move.cut:
                moves.append(alter(move, writes=(*move.writes, (self.register, None))))
        return tuple(moves)
