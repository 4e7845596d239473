"""A group, its members and a network that delays, duplicates, reorders and loses, one event at a time."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from fencepost.model.classic.coordinator.dispatch import with_room
from fencepost.model.classic.coordinator.internal_actions import Due, Timer, timers
from fencepost.model.classic.coordinator.state import World
from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import commit, heartbeat, leave
from fencepost.model.classic.core.state import (
    Choices,
    CommitAnswer,
    Context,
    CoreAnswer,
    Dialect,
    Group,
    HeartbeatAnswer,
    HeartbeatRequest,
    JoinAnswer,
    JoinRequest,
    LeaveRequest,
    Step,
    SyncAnswer,
    SyncRequest,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.classic.kernel.refinement import Shadow, coordinated, judged, moved
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberRequest, MemberSettings, MemberStep, PartitionCommit

PARTITIONS = 2
NEWER = Dialect()
OLDER = Dialect(
    sync_in_stable_keeps_session=False,
    initial_delay_grows_always=False,
    batch_leave_settles_once=False,
    pending_leave_rebalances=False,
    eviction_waits=False,
    expiry_cuts_initial_delay=False,
    unselected_protocol_fits_any=False,
)
"""The older of the two reference coordinators, as far as the core goes."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer on its way to a process."""

    process: int
    request: MemberRequest
    answer: CoreAnswer


@dataclass(slots=True)
class Walk:
    """A run of the coordinator core and some member cores, and its shadow in the kernel."""

    random: Random
    processes: list[Member]
    dialect: Dialect = NEWER
    max_group_size: int = 6
    group: Group = field(default_factory=Group)
    shadow: Shadow = field(default_factory=Shadow)
    now: int = 0
    handles: int = 0
    requests: dict[int, tuple[int, MemberRequest]] = field(default_factory=dict)
    answers: list[Answered] = field(default_factory=list)
    rules: Counter[str] = field(default_factory=Counter)
    seen: int = 0
    """The last request that was delivered in order."""
    read: int = 0
    """How many answers were delivered in order."""

    # --- members

    def handle(self) -> int:
        """A handle that no request has had."""
        self.handles += 1
        return self.handles

    def take(self, process: int, step: MemberStep) -> None:
        """Let a process take a step."""
        before = self.processes[process]
        self.rules[step.rule] += 1
        self.processes[process] = step.member
        self.shadow = moved(self.shadow, before, step.member, step.sent)
        for sent in step.sent:
            if sent.when:
                request = sent.request
                number = request.request.handle if isinstance(request, PartitionCommit) else request.handle
                self.requests[number] = (process, request)

    def act(self, process: int, name: str) -> None:
        """A process does something of its own accord."""
        member = self.processes[process]
        wanted = tuple(self.random.random() < 0.7 for _ in range(PARTITIONS))
        acts: dict[str, Callable[[], MemberStep]] = {
            "poll": lambda: members.join(member, self.handle()),
            "ask": lambda: members.ask_rejoin(member),
            "restart": lambda: members.restart(member),
            "disconnect": lambda: members.disconnect(member),
            "leave": lambda: members.leave(member, self.handle()),
            "heartbeat": lambda: members.heartbeat(member, self.handle()),
            "commit": lambda: members.commit(member, self.handle(), wanted),
        }
        self.take(process, acts[name]())

    def answered(self, index: int) -> None:
        """An answer arrives, for the first time or again."""
        arrival = self.answers[index]
        member, request = self.processes[arrival.process], arrival.request
        match request, arrival.answer:
            case JoinRequest(), JoinAnswer() as answer:
                present = [view.id for view in answer.members if view.id is not None]
                plan = tuple(self.random.choice([*present, None]) for _ in range(PARTITIONS))
                step = members.on_join_answer(member, request.handle, answer, self.handle(), plan)
            case SyncRequest(), SyncAnswer() as given:
                step = members.on_sync_answer(member, request.handle, given, self.random.choice([0, self.handle()]))
            case HeartbeatRequest(), HeartbeatAnswer() as alive:
                step = members.on_heartbeat_answer(member, request, alive)
            case PartitionCommit(), CommitAnswer() as stored:
                step = members.on_commit_answer(member, request.request, stored)
            case _:
                return
        self.take(arrival.process, step)

    # --- the coordinator

    def context(self) -> Context:
        """The present moment, with random choices."""
        held = [slot.id for slot in self.group.slots if slot.id is not None]
        choices = Choices(f"id{self.handle()}", self.random.choice([None, *held]))
        return Context(self.now, choices, self.dialect, self.max_group_size)

    def delivered(self, number: int) -> None:
        """A request arrives, for the first time or again."""
        _, request = self.requests[number]
        context, group = self.context(), with_room(self.group)
        match request:
            case JoinRequest():
                step = join(group, request, context)
            case SyncRequest():
                step = sync(group, request, context)
            case HeartbeatRequest():
                step = heartbeat(group, request, context)
            case LeaveRequest():
                step = leave(group, request, context)
            case PartitionCommit():
                step = commit(group, request.request, context)
        sender = request.member if isinstance(request, SyncRequest) else None
        self.absorb(step, sender)
        if isinstance(request, PartitionCommit):
            answer = step.outputs[0].answer
            assert isinstance(answer, CommitAnswer)
            owned = [part for part, held in enumerate(request.partitions) if held]
            self.shadow = judged(self.shadow, request.request, answer, owned)

    def absorb(self, step: Step, sender: str | None = None) -> None:
        """Take a step of the coordinator and send its answers."""
        outputs = [output for output in step.outputs if output.when]
        before, self.group = self.group, step.group
        self.rules[step.rule] += 1
        self.shadow = coordinated(self.shadow, before, step.group, [each.answer for each in outputs], sender)
        for output in outputs:
            process, request = self.requests[output.handle]
            self.answers.append(Answered(process, request, output.answer))

    def expire(self, due: Due) -> None:
        """Time passes until a timer fires."""
        self.now = max(self.now, due.deadline)
        context = self.context()
        if due.timer is Timer.MEMBER:
            self.absorb(expire_member(self.group, due.slot, context))
        else:
            self.absorb((expire_join if due.timer is Timer.JOIN else expire_sync)(self.group, context))

    def due(self) -> tuple[Due, ...]:
        """What may fire."""
        return timers(World(self.group))

    # --- events

    def step(self) -> None:
        """One random event: mostly what is next, sometimes something old once more, or a timer."""
        kind = self.random.random()
        if kind < 0.08:
            self.settle(self.random.choice([1, 1, 2, 3, 12]))
        elif kind < 0.14 and self.due():
            self.expire(min(self.due(), key=lambda due: (due.deadline, due.timer.value)))
        elif kind < 0.35:
            self.deliver_new()
        elif kind < 0.38 and self.requests:
            self.delivered(self.random.choice(list(self.requests)[-8:]))
        elif kind < 0.45 and self.answers:
            self.answered(self.random.choice(range(max(0, len(self.answers) - 8), len(self.answers))))
        else:
            weights = {"poll": 40, "commit": 25, "heartbeat": 12, "ask": 12, "disconnect": 3, "restart": 3, "leave": 1}
            process = self.random.randrange(len(self.processes))
            self.act(process, self.random.choices(list(weights), list(weights.values()))[0])

    def deliver_new(self) -> None:
        """The oldest request that has not arrived, or else the oldest answer."""
        number = next((each for each in self.requests if each > self.seen), None)
        if number is not None:
            self.seen = number
            self.delivered(number)
        elif self.read < len(self.answers):
            self.read += 1
            self.answered(self.read - 1)

    def settle(self, limit: int = 12) -> None:
        """Members poll and everything new is delivered, in order, until nothing is under way."""
        for _ in range(limit):
            known = (len(self.requests), len(self.answers))
            for process, member in enumerate(self.processes):
                if member.rejoins and not member.waiting:
                    self.act(process, "poll")
            for number in [each for each in self.requests if each > self.seen]:
                self.seen = number
                self.delivered(number)
            while self.read < len(self.answers):
                self.read += 1
                self.answered(self.read - 1)
            if known == (len(self.requests), len(self.answers)):
                delays = [due for due in self.due() if due.timer is Timer.JOIN and self.group.initial]
                if not delays:
                    return
                self.expire(delays[0])


def settings(index: int, *, static: bool) -> MemberSettings:
    """Every second process is cooperative; a static one has an instance id."""
    return MemberSettings(
        ("sticky",), cooperative=index % 2 == 0, instance=f"i{index}" if static else None, requires_id=index == 0
    )


def walk(seed: int, count: int = 3, *, dialect: Dialect = NEWER) -> Walk:
    """A walk at its beginning, some of its processes static."""
    random = Random(seed)
    processes = [members.started(settings(index, static=random.random() < 0.3), PARTITIONS) for index in range(count)]
    return Walk(random, processes, dialect, max_group_size=random.choice([3, 8, 8]))
