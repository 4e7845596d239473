"""A group, its members and a network that delays, duplicates, reorders and loses, one event at a time."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from fencepost.model.classic.coordinator.dispatch import takes_slot, with_free_slot
from fencepost.model.classic.coordinator.internal_actions import ArmedTimer, Timer, armed_timers
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import commit, heartbeat, leave
from fencepost.model.classic.core.state import (
    Choices,
    CommitResponse,
    Context,
    CoreResponse,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    Step,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberRequest, MemberSettings, MemberStep, PartitionCommit
from fencepost.model.sorts import Handle, HandleNumber
from tests.support.plain_values import build
from tests.support.refinement import KernelRun, follow_commit, follow_coordinator, follow_member

PARTITIONS = 2
NO_HANDLE: Handle = 0
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
class ResponseInTransit:
    """An answer on its way to a process."""

    process: int
    request: MemberRequest
    response: CoreResponse


@dataclass(slots=True)
class RandomRun:
    """A run of the coordinator core and some member cores, and its shadow in the kernel."""

    random: Random
    processes: list[Member]
    dialect: Dialect = NEWER
    max_group_size: int = 6
    group: Group = field(default_factory=Group)
    kernel_run: KernelRun = field(default_factory=KernelRun)
    now: int = 0
    handles: int = 0
    requests: dict[int, tuple[int, MemberRequest]] = field(default_factory=dict)
    responses: list[ResponseInTransit] = field(default_factory=list)
    rules: Counter[str] = field(default_factory=Counter)
    last_delivered: int = 0
    """The last request that was delivered in order."""
    responses_delivered: int = 0
    """How many answers were delivered in order."""

    # --- members

    def next_handle(self) -> HandleNumber:
        """A handle that no request has had."""
        self.handles += 1
        return HandleNumber(self.handles)

    def take_step(self, process: int, step: MemberStep) -> None:
        """Let a process take a step."""
        before = self.processes[process]
        self.rules[step.rule] += 1
        self.processes[process] = step.member
        self.kernel_run = follow_member(self.kernel_run, before, step.member, step.sent_requests)
        for sent in step.sent_requests:
            if sent.when:
                request = sent.request
                number = request.request.handle if isinstance(request, PartitionCommit) else request.handle
                self.requests[number] = (process, request)

    def act(self, process: int, name: str) -> None:
        """A process does something of its own accord."""
        member = self.processes[process]
        wanted = tuple(self.random.random() < 0.7 for _ in range(PARTITIONS))
        acts: dict[str, Callable[[], MemberStep]] = {
            "poll": lambda: members.join(member, self.next_handle()),
            "ask": lambda: members.ask_rejoin(member),
            "restart": lambda: members.restart(member),
            "disconnect": lambda: members.disconnect(member),
            "leave": lambda: members.leave(member, self.next_handle()),
            "heartbeat": lambda: members.heartbeat(member, self.next_handle()),
            "commit": lambda: members.commit(member, self.next_handle(), wanted),
        }
        self.take_step(process, acts[name]())

    def deliver_response(self, index: int) -> None:
        """An answer arrives, for the first time or again."""
        arrival = self.responses[index]
        member, request = self.processes[arrival.process], arrival.request
        match request, arrival.response:
            case JoinRequest(), JoinResponse() as response:
                present = [view.id for view in response.members if view.id is not None]
                plan = tuple(self.random.choice([*present, None]) for _ in range(PARTITIONS))
                step = members.on_join_response(member, request.handle, response, self.next_handle(), plan)
            case SyncRequest(), SyncResponse() as given:
                step = members.on_sync_response(
                    member, request.handle, given, self.random.choice([NO_HANDLE, self.next_handle()])
                )
            case HeartbeatRequest(), HeartbeatResponse() as alive:
                step = members.on_heartbeat_response(member, request, alive)
            case PartitionCommit(), CommitResponse() as stored:
                step = members.on_commit_response(member, request.request, stored)
            case _:
                return
        self.take_step(arrival.process, step)

    # --- the coordinator

    def context(self) -> Context:
        """The present moment, with random choices."""
        held = [slot.id for slot in self.group.slots if slot.id is not None]
        choices = build(Choices, f"id{self.next_handle()}", self.random.choice([None, *held]))
        return Context(self.now, choices, self.dialect, self.max_group_size)

    def deliver_request(self, number: int) -> None:
        """A request arrives, for the first time or again."""
        _, request = self.requests[number]
        context, group = self.context(), with_free_slot(self.group) if takes_slot(request) else self.group
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
        self.apply_step(step, sender)
        if isinstance(request, PartitionCommit):
            response = step.outputs[0].response
            assert isinstance(response, CommitResponse)
            owned = [part for part, held in enumerate(request.partitions) if held]
            self.kernel_run = follow_commit(self.kernel_run, request.request, response, owned)

    def apply_step(self, step: Step, sender: str | None = None) -> None:
        """Take a step of the coordinator and send its answers."""
        outputs = [output for output in step.outputs if output.when]
        before, self.group = self.group, step.group
        self.rules[step.rule] += 1
        self.kernel_run = follow_coordinator(
            self.kernel_run, before, step.group, [each.response for each in outputs], sender
        )
        for output in outputs:
            process, request = self.requests[output.handle]
            self.responses.append(ResponseInTransit(process, request, output.response))

    def expire(self, timer: ArmedTimer) -> None:
        """Time passes until a timer fires."""
        self.now = max(self.now, timer.deadline)
        context = self.context()
        if timer.kind is Timer.MEMBER:
            self.apply_step(expire_member(self.group, timer.slot, context))
        else:
            self.apply_step((expire_join if timer.kind is Timer.JOIN else expire_sync)(self.group, context))

    def armed_timers(self) -> tuple[ArmedTimer, ...]:
        """What may fire."""
        return armed_timers(GroupState(self.group))

    # --- events

    def random_event(self) -> None:
        """One random event: mostly what is next, sometimes something old once more, or a timer."""
        kind = self.random.random()
        if kind < 0.08:
            self.settle(self.random.choice([1, 1, 2, 3, 12]))
        elif kind < 0.14 and self.armed_timers():
            self.expire(min(self.armed_timers(), key=lambda due: (due.deadline, due.kind.value)))
        elif kind < 0.35:
            self.deliver_new()
        elif kind < 0.38 and self.requests:
            self.deliver_request(self.random.choice(list(self.requests)[-8:]))
        elif kind < 0.45 and self.responses:
            self.deliver_response(self.random.choice(range(max(0, len(self.responses) - 8), len(self.responses))))
        else:
            weights = {"poll": 40, "commit": 25, "heartbeat": 12, "ask": 12, "disconnect": 3, "restart": 3, "leave": 1}
            process = self.random.randrange(len(self.processes))
            self.act(process, self.random.choices(list(weights), list(weights.values()))[0])

    def deliver_new(self) -> None:
        """The oldest request that has not arrived, or else the oldest answer."""
        number = next((each for each in self.requests if each > self.last_delivered), None)
        if number is not None:
            self.last_delivered = number
            self.deliver_request(number)
        elif self.responses_delivered < len(self.responses):
            self.responses_delivered += 1
            self.deliver_response(self.responses_delivered - 1)

    def settle(self, limit: int = 12) -> None:
        """Members poll and everything new is delivered, in order, until nothing is under way."""
        for _ in range(limit):
            known = (len(self.requests), len(self.responses))
            for process, member in enumerate(self.processes):
                if member.rejoins and not member.waiting:
                    self.act(process, "poll")
            for number in [each for each in self.requests if each > self.last_delivered]:
                self.last_delivered = number
                self.deliver_request(number)
            while self.responses_delivered < len(self.responses):
                self.responses_delivered += 1
                self.deliver_response(self.responses_delivered - 1)
            if known == (len(self.requests), len(self.responses)):
                delays = [due for due in self.armed_timers() if due.kind is Timer.JOIN and self.group.initial]
                if not delays:
                    return
                self.expire(delays[0])


def member_settings(index: int, *, static: bool) -> MemberSettings:
    """Every second process is cooperative; a static one has an instance id."""
    return build(
        MemberSettings,
        ("sticky",),
        cooperative=index % 2 == 0,
        instance=f"i{index}" if static else None,
        requires_id=index == 0,
    )


def walk(seed: int, count: int = 3, *, dialect: Dialect = NEWER) -> RandomRun:
    """A walk at its beginning, some of its processes static."""
    random = Random(seed)
    processes = [
        members.new_member(member_settings(index, static=random.random() < 0.3), PARTITIONS) for index in range(count)
    ]
    return RandomRun(random, processes, dialect, max_group_size=random.choice([3, 8, 8]))
