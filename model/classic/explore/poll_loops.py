"""Poll loops as a system to explore: reference clients whose applications take time for each record (KIP-41).

The coordinator and the clients are the functions of `model/classic`; here are only the applications, the clock and a
network that loses nothing. Time goes by in ticks, and a state holds times relative to the present, so that a search
ends and its answers are about runs of any length. It looks for each phenomenon of KIP-41's opening:

- `EVICTED`: the group removes a process while it works on a batch.
- `REPEATED`, `REPEATED_ELSEWHERE`: a record is processed again, or by another process as well.
- `LOST`: the committed offset passes a record that nobody processed.
- a stall: a run without end in which records are processed and nothing is ever committed.
- slow rebalances: how long a JoinGroup waits for the processes that are at work.

The bound that removes the first four is `worst_heartbeat_gap(setting) < session_ticks`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import pairwise

import networkx as nx

from fencepost.model.assignors.group import Assign, Assignment, ClusterTopics, GroupMember
from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.internal_actions import armed_timers, fire_timer
from fencepost.model.classic.coordinator.state import GroupState, Reply
from fencepost.model.classic.core.state import Choices, Context, Group, HeartbeatResponse, Holder, Slot
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.member.client import (
    Client,
    ClientContext,
    ClientResponse,
    FindCoordinator,
    FindCoordinatorResponse,
    ListOffsets,
    ListOffsetsResponse,
    is_returnable,
    new_client,
    position_of,
)
from fencepost.model.classic.member.dispatch import handle_input
from fencepost.model.classic.member.settings import RANGE, ClientDialect, ClientSettings, ResetPolicy
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
from fencepost.model.explore.engine import find_run, search_until_found
from fencepost.model.explore.fair_runs import RowNumbers, RunGraph, State, end_components
from fencepost.model.explore.rows import value_system
from fencepost.model.explore.search import PlainSearch
from fencepost.model.explore.transition_system import PropertyKind, TransitionSystem
from fencepost.model.explore.transition_tables import TransitionTables
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import Partition
from fencepost.model.groups.protocol import Cluster
from fencepost.model.logic import Time
from fencepost.model.settings import Settings
from fencepost.model.sorts import HandleNumber, MemberId

# --- The state of a system of poll loops, and the form in which equal situations are equal states.

TICK_MS = 1_000
PARTITION: Partition = ("t", 0)
FAR: Time = 1 << 40
"""A moment that no run comes to: the network answers before any request takes too long."""
MAX_GENERATION = 2
"""All that matters of a generation is whether it is the current one, which is written as this one at most; those that
are over are all alike."""


class Application(Enum):
    """What the application does between polls."""

    BATCHES = "batches"
    """Processes every record that a poll returned, and then commits."""
    HEARTBEATS = "heartbeats"
    """Asks for a heartbeat before each record, leaves the batch where a rebalance is due, and commits: the method that
    KIP-41 rejected."""


@dataclass(frozen=True, slots=True)
class PollLoopSetting:
    """The sizes of a system. Times are in ticks."""

    consumers: int = 2
    max_poll_records: int = 4
    ticks_per_record: int = 1
    records: int = 4
    session_ticks: int = 3
    heartbeat_ticks: int = 1
    max_poll_ticks: int = 1_000
    heartbeats_in_poll: bool = True
    application: Application = Application.BATCHES

    def client_settings(self) -> ClientSettings:
        """The configuration of each client."""
        return ClientSettings(
            strategies=(RANGE,),
            session_timeout=self.session_ticks * TICK_MS,
            heartbeat_interval=self.heartbeat_ticks * TICK_MS,
            max_poll_interval=self.max_poll_ticks * TICK_MS,
            auto_commit=False,
            reset_policy=ResetPolicy.EARLIEST,
            dialect=ClientDialect(heartbeats_in_poll=self.heartbeats_in_poll),
        )


CLUSTER = Cluster(Settings(min_session_timeout=0, initial_rebalance_delay=0), {PARTITION[0]: 1})


@dataclass(frozen=True, slots=True)
class PollLoop:
    """A process: its client, the records that its last poll returned and it has not processed, from `record` on up to
    `end`, and the responses that its client has not read."""

    client: Client
    has_started: bool = False
    record: int = 0
    end: int = 0
    ticks_left: int = 0
    """Until the present record is processed."""
    is_idle: bool = False
    """The last poll returned nothing, and nothing has happened since."""
    must_commit: bool = False
    """The application has done with its batch."""
    inbox: tuple[tuple[int, ClientResponse], ...] = ()


@dataclass(frozen=True, slots=True)
class PollLoops:
    """The coordinator, the processes, and what verification remembers: by whom each record was processed (one bit
    each), whether one was processed again, and for how many ticks a JoinGroup has been parked."""

    coordinator: GroupState
    loops: tuple[PollLoop, ...]
    processors: tuple[int, ...]
    is_repeated: bool = False
    parked_ticks: int = 0


def initial_loops(setting: PollLoopSetting) -> PollLoops:
    """Nothing has started."""
    loop = PollLoop(new_client(setting.client_settings()))
    return PollLoops(GroupState(), (loop,) * setting.consumers, (0,) * setting.records)


def committed_offset(world: PollLoops) -> int:
    """The committed offset of the partition, 0 if there is none."""
    offset = world.coordinator.offsets.get(PARTITION)
    return 0 if offset is None else offset.offset


def is_processing(loop: PollLoop) -> bool:
    """Whether the application is at work on a record."""
    return loop.record < loop.end


def is_in_group(world: PollLoops, loop: PollLoop) -> bool:
    """Whether the coordinator has the client's member id as that of a member."""
    group = world.coordinator.group
    return group is not None and any(
        slot.holder is Holder.MEMBER and slot.id == loop.client.member.id for slot in group.slots
    )


def unused_id(world: PollLoops, index: int) -> str:
    """A member id for a process that nothing in this state knows."""
    group = world.coordinator.group
    used = {loop.client.member.id for loop in world.loops} | {slot.id for slot in (group.slots if group else ())}
    return next(name for number in range(99) if (name := f"{'ABCDEF'[index]}{number}") not in used)


def normalize(world: PollLoops, now: Time) -> PollLoops:
    """The state at moment 0 instead of `now`: times are relative, generations and handles as small as can be."""
    generation = 0 if world.coordinator.group is None else world.coordinator.group.generation
    shift = max(0, generation - MAX_GENERATION)
    group = None if world.coordinator.group is None else normalize_group(world.coordinator.group, now, shift)
    offsets = {where: evolve(offset, committed=0) for where, offset in world.coordinator.offsets.items()}
    coordinator = GroupState(group, world.coordinator.subscribed, offsets)
    loops = tuple(evolve(loop, client=normalize_client(loop, now, shift)) for loop in world.loops)
    return evolve(world, coordinator=coordinator, loops=loops)


def normalize_group(group: Group, now: Time, shift: int) -> Group:
    """The group without free slots and with relative times."""
    slots = tuple(normalize_slot(slot, now) for slot in group.slots if slot.holder is not Holder.NOBODY)
    return evolve(
        group,
        generation=older(group.generation, shift),
        slots=slots,
        join_deadline=max(0, group.join_deadline - now) if group.join_armed else 0,
        sync_deadline=max(0, group.sync_deadline - now) if group.sync_armed else 0,
    )


def normalize_slot(slot: Slot, now: Time) -> Slot:
    """The slot with a relative deadline."""
    return evolve(slot, deadline=max(0, slot.deadline - now) if slot.armed else 0)


def older(generation: int, shift: int) -> int:
    """The generation, less by the shift."""
    return generation if generation <= 0 else max(1, generation - shift)


def normalize_client(loop: PollLoop, now: Time, shift: int) -> Client:
    """The client with relative times, and with the smallest handles that it can go on with."""
    client = loop.client
    clocks = client.clocks
    relative = {name: max(0, getattr(clocks, name) - now) for name in ("heartbeat", "session", "poll", "join_retry")}
    member = evolve(
        client.member,
        generation=older(client.member.generation, shift),
        owned_in=older(client.member.owned_in, shift),
    )
    # A heartbeat is answered in the same move; only JoinGroup and SyncGroup stay unanswered, without a generation here.
    live = [client.member.waiting, *(one.handle for one in client.unanswered), *(handle for handle, _ in loop.inbox)]
    unanswered = tuple(evolve(one, deadline=FAR) for one in client.unanswered)
    return evolve(
        client,
        clocks=evolve(clocks, auto_commit=0, lookup_retry=0, offsets_retry=0, **relative),
        member=member,
        unanswered=unanswered,
        last_handle=HandleNumber(max(live)),
        remembered=(),
        reason="",
    )


# --- The actions in a system of poll loops: processes start and poll, requests are handled, and time goes by.


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


# --- The findings of a search of poll loops: each phenomenon of KIP-41's opening as a shortest run, or that there is
# none.

EVICTED = "evicted-at-work"
REPEATED = "record-processed-again"
REPEATED_ELSEWHERE = "record-processed-elsewhere"
LOST = "record-lost"


@dataclass(frozen=True, slots=True)
class EndlessRun:
    """A run without end in which nothing is ever committed: the moves that lead in, and those that repeat."""

    path: tuple[str, ...]
    cycle: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PollLoopFindings:
    """The result of a search: a shortest run to each phenomenon that there is, and the longest wait of a JoinGroup."""

    states: int
    is_finished: bool
    runs: dict[str, tuple[str, ...]]
    longest_wait: int
    """Ticks for which a JoinGroup was parked."""
    stall: EndlessRun | None


def is_at_work(loop: PollLoop) -> bool:
    """Whether the application has a batch, or has not committed it."""
    return is_processing(loop) or loop.must_commit


def is_evicted_at_work(world: PollLoops) -> bool:
    """Whether a process works on records of a group that has removed it, and does not know that."""
    return any(is_at_work(loop) and not is_in_group(world, loop) for loop in world.loops)


def is_repeated_elsewhere(world: PollLoops) -> bool:
    """Whether two processes processed one record."""
    return any(processors & (processors - 1) for processors in world.processors)


def has_lost_record(world: PollLoops) -> bool:
    """Whether the committed offset passes a record that nobody processed."""
    return not all(world.processors[: committed_offset(world)])


PHENOMENA: dict[str, Callable[[PollLoops], bool]] = {
    EVICTED: is_evicted_at_work,
    REPEATED: lambda world: world.is_repeated,
    REPEATED_ELSEWHERE: is_repeated_elsewhere,
    LOST: has_lost_record,
}


def poll_loop_system(setting: PollLoopSetting, **more: Callable[[PollLoops], bool]) -> TransitionSystem:
    """The system of a setting, with a witness of each phenomenon and of what `more` names."""
    witnesses = {**PHENOMENA, **more}
    return value_system(
        "poll loops", initial_loops(setting), partial(moves_from, setting), witnesses, PropertyKind.SOMETIMES
    )


def explore_poll_loops(setting: PollLoopSetting) -> PollLoopFindings:
    """Search every state of the setting."""
    result = PlainSearch(TransitionTables(poll_loop_system(setting))).run()
    runs = {name: run for name in PHENOMENA if (run := find_run(result, name)) is not None}
    waits = (result.tables.values(state)[0].parked_ticks for state in result.reached_states())
    return PollLoopFindings(result.states, result.finished, runs, max(waits), find_stall(setting))


def slow_rebalance(setting: PollLoopSetting, ticks: int) -> tuple[str, ...] | None:
    """A shortest run in which a JoinGroup is parked for so many ticks, None if there is none."""
    system = poll_loop_system(setting, parked=lambda world: world.parked_ticks >= ticks)
    return find_run(search_until_found(system, ("parked",)), "parked")


def find_stall(setting: PollLoopSetting) -> EndlessRun | None:
    """A run without end, in which records are processed again and again and none is committed, if there is one."""
    runs = RunGraph(poll_loop_system(setting), RowNumbers(lambda row: row))
    runs.explore([(initial_loops(setting),)])
    found = list(endless_runs(runs, setting))
    return min(found, key=lambda run: len(run.path) + len(run.cycle), default=None)


def endless_runs(runs: RunGraph, setting: PollLoopSetting) -> Iterator[EndlessRun]:
    """From each set of states among which a run can stay, one run that works and does not get on."""
    for component, _ in end_components(runs):
        worlds: dict[State, PollLoops] = {state: runs.row(state)[0] for state in component}
        if all(committed_offset(world) < setting.records for world in worlds.values()):
            at_work = [state for state, world in worlds.items() if any(map(is_at_work, world.loops))]
            entry = min(at_work, key=lambda state: len(runs.path_to(state)), default=None)
            if entry is not None:
                yield EndlessRun(tuple(runs.path_to(entry)), shortest_cycle(runs, component, entry))


def shortest_cycle(runs: RunGraph, component: frozenset[State], state: State) -> tuple[str, ...]:
    """The labels of a shortest way from the state back to it."""
    inside = runs.graph.subgraph(component)
    ways = [[state, *nx.shortest_path(inside, following, state)] for following in inside.successors(state)]
    way = min(ways, key=len)
    return tuple(next(iter(inside[here][there].values()))["label"] for here, there in pairwise(way))


def worst_heartbeat_gap(setting: PollLoopSetting) -> int:
    """The most ticks between two heartbeats of a process that never stops polling: the first multiple of a batch's
    time that is no shorter than the interval."""
    batch = setting.max_poll_records * setting.ticks_per_record
    return -(-setting.heartbeat_ticks // batch) * batch


def largest_safe_limit(setting: PollLoopSetting, most: int) -> int:
    """The largest `max.poll.records` up to `most` under which a search finds neither eviction nor repetition nor a
    stall, 0 if there is none."""
    safe = 0
    for limit in range(1, most + 1):
        found = explore_poll_loops(replace(setting, max_poll_records=limit))
        if {EVICTED, REPEATED} & found.runs.keys() or found.stall is not None:
            break
        safe = limit
    return safe
