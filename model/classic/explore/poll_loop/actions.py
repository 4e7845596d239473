"""The actions in a system of poll loops: processes start and poll, requests are handled, and time goes by."""

from collections.abc import Iterator, Sequence

from fencepost.model.assignors.group import Assign, Assignment, ClusterTopics, GroupMember
from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.internal_actions import armed_timers, fire_timer
from fencepost.model.classic.coordinator.state import Reply
from fencepost.model.classic.core.state import Choices, Context, HeartbeatResponse
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.explore.poll_loop.world import (
    CLUSTER,
    FAR,
    PARTITION,
    TICK_MS,
    Application,
    PollLoop,
    PollLoops,
    PollLoopSetting,
    is_processing,
    normalize,
    unused_id,
)
from fencepost.model.classic.member.client import (
    ClientContext,
    ClientResponse,
    FindCoordinator,
    FindCoordinatorResponse,
    ListOffsets,
    ListOffsetsResponse,
    is_returnable,
    position_of,
)
from fencepost.model.classic.member.dispatch import handle_input
from fencepost.model.classic.member.step import (
    AskHeartbeat,
    CallListener,
    ClientInput,
    CommitOffsets,
    ListenerReturned,
    MetadataArrived,
    Poll,
    ResponseArrived,
    ReturnRecords,
    SendRequest,
    Subscribe,
    TimePassed,
)
from fencepost.model.classic.messages import Request
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.logic import Time
from fencepost.model.sorts import HandleNumber, MemberId


def assign_to_first(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """The partition goes to the first member; nobody else can have it."""
    first, *others = sorted(member.id for member in members)
    return {first: (PARTITION,), **dict.fromkeys(others, ())}


ASSIGNORS: dict[str, Assign] = {"range": assign_to_first}


class PollLoopRun:
    """One move under way: the state that it builds up, at a moment that the state calls 0."""

    def __init__(self, setting: PollLoopSetting, world: PollLoops, now: Time = 0) -> None:
        self.setting = setting
        self.world = world
        self.now = now

    def result(self) -> PollLoops:
        """The state after the move."""
        return normalize(self.world, self.now)

    def loop(self, index: int) -> PollLoop:
        """A process."""
        return self.world.loops[index]

    def change(self, index: int, **changes: object) -> None:
        """A process changes."""
        loops = list(self.world.loops)
        loops[index] = evolve(loops[index], **changes)
        self.world = evolve(self.world, loops=tuple(loops))

    def context(self, index: int = 0) -> Context:
        """What the coordinator takes a step in."""
        choices = Choices(member_id=MemberId(unused_id(self.world, index)))
        return Context(self.now, choices, Dialect(), initial_rebalance_delay=0, new_member_timeout=FAR)

    # --- clients and coordinator --------------------------------------------------------------------------------

    def give(self, index: int, given: ClientInput) -> None:
        """A client gets an input; what it sends is handled at once, and its listener returns at once."""
        step = handle_input(self.loop(index).client, given, ClientContext(self.now, ASSIGNORS))
        self.change(index, client=step.client)
        for output in step.outputs:
            if isinstance(output, SendRequest):
                self.send(index, output)
            elif isinstance(output, CallListener):
                self.give(index, ListenerReturned())

    def send(self, index: int, sent: SendRequest) -> None:
        """A request reaches the coordinator; the responses go to the inboxes."""
        match sent.request:
            case FindCoordinator():
                self.deliver(index, sent.handle, FindCoordinatorResponse(Error.NONE, 1))
            case ListOffsets(_, partitions, _):
                self.deliver(index, sent.handle, ListOffsetsResponse(tuple((one, 0) for one in partitions)))
            case request:
                numbered = with_handle(request, sent.handle * self.setting.consumers + index)
                result = handle_request(self.world.coordinator, numbered, self.context(index), CLUSTER)
                self.world = evolve(self.world, coordinator=result.state)
                self.reply(result.replies)
                self.fire_timers()

    def reply(self, replies: tuple[Reply, ...]) -> None:
        """Responses go to the inboxes of those who asked."""
        for reply in replies:
            handle, index = divmod(reply.handle, self.setting.consumers)
            self.deliver(index, handle, reply.response)

    def deliver(self, index: int, handle: int, response: ClientResponse) -> None:
        """A response waits for its client to read it, which an idle process then does."""
        self.change(index, inbox=(*self.loop(index).inbox, (handle, response)), is_idle=False)

    def read_inbox(self, index: int) -> None:
        """The client reads what has arrived."""
        while self.loop(index).inbox:
            (handle, response), *rest = self.loop(index).inbox
            self.change(index, inbox=tuple(rest))
            self.give(index, ResponseArrived(handle, response))

    # --- the application ----------------------------------------------------------------------------------------

    def start(self, index: int) -> None:
        """The process starts."""
        self.give(index, MetadataArrived(((PARTITION[0], 1),)))
        self.give(index, Subscribe(frozenset({PARTITION[0]})))
        self.change(index, has_started=True)

    def commit(self, index: int) -> None:
        """The application commits and waits for the result."""
        self.read_inbox(index)
        self.give(index, CommitOffsets())
        self.read_inbox(index)
        self.change(index, must_commit=False)

    def poll(self, index: int) -> None:
        """The application polls until nothing more happens, and takes what the poll returns."""
        before = None
        while before != self.loop(index).client or self.loop(index).inbox:
            before = self.loop(index).client
            self.read_inbox(index)
            self.give(index, Poll())
        self.take_records(index)

    def take_records(self, index: int) -> None:
        """The poll returns up to `max.poll.records` records."""
        client = self.loop(index).client
        position = position_of(client, PARTITION)
        first = None if position is None or not is_returnable(client, PARTITION) else position.offset
        if first is None or first >= self.setting.records or client.member.rejoins:
            self.change(index, is_idle=True)
            return
        end = min(first + self.setting.max_poll_records, self.setting.records)
        self.give(index, ReturnRecords(PARTITION, first, end))
        self.change(index, record=first, end=end, ticks_left=self.setting.ticks_per_record)
        self.ask_heartbeat(index)

    def ask_heartbeat(self, index: int) -> None:
        """The application asks for a heartbeat before a record, if it is of that kind, and may leave its batch."""
        if self.setting.application is not Application.HEARTBEATS:
            return
        self.give(index, AskHeartbeat())
        self.read_inbox(index)
        if self.loop(index).client.member.rejoins:
            self.change(index, record=0, end=0, ticks_left=0, must_commit=True)

    def process(self, index: int) -> None:
        """A tick of work on a record."""
        loop = self.loop(index)
        if loop.ticks_left > 1:
            self.change(index, ticks_left=loop.ticks_left - 1)
            return
        done = list(self.world.processors)
        repeated = self.world.is_repeated or done[loop.record] != 0
        done[loop.record] |= 1 << index
        self.world = evolve(self.world, processors=tuple(done), is_repeated=repeated)
        if loop.record + 1 < loop.end:
            self.change(index, record=loop.record + 1, ticks_left=self.setting.ticks_per_record)
            self.ask_heartbeat(index)
        else:
            self.change(index, record=0, end=0, ticks_left=0, must_commit=True)

    # --- time ---------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """A tick goes by: what is due at the coordinator fires first, then work and background heartbeats go on."""
        self.now += TICK_MS
        self.fire_timers()
        for index, loop in enumerate(self.world.loops):
            if not self.setting.heartbeats_in_poll and loop.has_started:
                self.give(index, TimePassed())
                self.read_heartbeats(index)
            if is_processing(self.loop(index)):
                self.process(index)
            self.change(index, is_idle=False)
        group = self.world.coordinator.group
        parked = group is not None and any(slot.join for slot in group.slots)
        ticks = min(self.world.parked_ticks + 1, 99) if parked else 0
        self.world = evolve(self.world, parked_ticks=ticks)

    def fire_timers(self) -> None:
        """Every timer of the coordinator that is due."""
        while dues := [one for one in armed_timers(self.world.coordinator) if one.deadline <= self.now]:
            timer = min(dues, key=lambda one: one.deadline)
            result = fire_timer(self.world.coordinator, timer, self.context())
            self.world = evolve(self.world, coordinator=result.state)
            self.reply(result.replies)

    def read_heartbeats(self, index: int) -> None:
        """The background worker reads the responses to its heartbeats."""
        inbox = self.loop(index).inbox
        beats = [row for row in inbox if isinstance(row[1], HeartbeatResponse)]
        self.change(index, inbox=tuple(row for row in inbox if row not in beats))
        for handle, response in beats:
            self.give(index, ResponseArrived(handle, response))


def with_handle(request: Request, handle: int) -> Request:
    """The request under a handle that says whose it is."""
    core = getattr(request, "core", None)
    if core is None:
        return evolve(request, handle=handle)
    return evolve(request, core=evolve(core, handle=HandleNumber(handle)))


def moves_from(setting: PollLoopSetting, world: PollLoops) -> Iterator[tuple[str, PollLoops]]:
    """Every move from a state, in words, with the state after it.

    A process that can act does so before time goes by; when a process starts is open.
    """
    names = "ABCDEF"
    is_urgent = False
    for index, loop in enumerate(world.loops):
        run = PollLoopRun(setting, world)
        if not loop.has_started:
            # Processes are alike, so that they start in their order.
            if index == 0 or world.loops[index - 1].has_started:
                run.start(index)
                yield f"{names[index]} starts", run.result()
        elif loop.must_commit:
            is_urgent = True
            run.commit(index)
            yield f"{names[index]} commits", run.result()
        elif not is_processing(loop) and not loop.is_idle:
            is_urgent = True
            run.poll(index)
            taken = run.loop(index)
            what = f" and gets records {taken.record} to {taken.end - 1}" if is_processing(taken) else ""
            yield f"{names[index]} polls{what}", run.result()
    if not is_urgent and any(loop.has_started for loop in world.loops):
        run = PollLoopRun(setting, world)
        run.tick()
        yield "a tick goes by", run.result()
