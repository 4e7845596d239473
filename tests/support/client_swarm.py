"""Several reference clients against the model's coordinator on virtual time, and the properties of their runs.

Every client has a connection of its own that keeps the order of messages. A schedule is a list of `SwarmEvent`s. After
it comes a fair time: messages arrive, applications poll, listeners return, and nothing else happens.
"""

from collections import deque
from dataclasses import dataclass, field

from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.internal_actions import armed_timers, fire_timer
from fencepost.model.classic.coordinator.state import GroupState, Reply
from fencepost.model.classic.core.state import Choices, Context, Holder, Phase
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.member.client import (
    CallbackKind,
    Client,
    ClientContext,
    ClientResponse,
    Closing,
    FindCoordinator,
    FindCoordinatorResponse,
    ListOffsets,
    ListOffsetsResponse,
    assigned_partitions,
    is_returnable,
    new_client,
    partitions_of,
)
from fencepost.model.classic.member.dispatch import handle_input
from fencepost.model.classic.member.member import MemberState
from fencepost.model.classic.member.settings import Strategy
from fencepost.model.classic.member.step import (
    CallListener,
    ClientInput,
    Close,
    CommitOffsets,
    CoordinatorDisconnected,
    ListenerReturned,
    MetadataArrived,
    Poll,
    ResponseArrived,
    Restart,
    ReturnRecords,
    SendRequest,
    Subscribe,
    TimePassed,
)
from fencepost.model.classic.messages import Request
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import OffsetCommit, Partition, PartitionErrors
from fencepost.model.groups.protocol import Cluster
from fencepost.model.settings import Settings
from fencepost.model.sorts import HandleNumber, MemberId
from tests.support.client_driver import ASSIGNORS
from tests.support.swarm_events import SwarmEvent
from tests.support.swarm_settings import BOTH, ONLY_COOPERATIVE, ONLY_RANGE, settings_of

RECORDS_PER_POLL, FAIR_ROUNDS, FAIR_STEP_MS = 3, 400, 500
SETTINGS = Settings(min_session_timeout=0, initial_rebalance_delay=500)


class SwarmViolation(AssertionError):
    """A property does not hold; the message begins with its name."""


@dataclass
class Process:
    """A process with its connection: requests on their way, responses on theirs."""

    client: Client
    is_running: bool = False
    requests: deque[SendRequest] = field(default_factory=deque)
    responses: deque[tuple[int, ClientResponse]] = field(default_factory=deque)
    epoch: int = 0
    """How often the connection was made."""


class ClientSwarm:
    """The group under way."""

    def __init__(self, strategies: list[tuple[Strategy, ...]], static: int = 0, auto_commit: bool = True) -> None:
        self.now = 0
        self.topics = {"t": 3, "u": 1}
        self.ends: dict[Partition, int] = {}
        self.returned: dict[Partition, set[int]] = {}
        self.state = GroupState()
        self.waiting: dict[int, tuple[int, int, int]] = {}
        self.handles = self.ids = 0
        self.accepted_commits = 0
        self.max_generation = 0
        self.hand_over: str | None = None
        self.processes = [
            Process(new_client(settings_of(list_of, f"i{index}" if index < static else None, auto_commit)))
            for index, list_of in enumerate(strategies)
        ]

    @property
    def cluster(self) -> Cluster:
        return Cluster(SETTINGS, dict(self.topics))

    def context(self) -> Context:
        self.ids += 1
        return Context(self.now, Choices(member_id=MemberId(f"m{self.ids:04}")), Dialect(), initial_rebalance_delay=500)

    # --- what happens -------------------------------------------------------------------------------------------

    def play(self, event: SwarmEvent) -> None:
        """One event; it says nothing to a process that is not running but "start"."""
        index = event.client % len(self.processes)
        process = self.processes[index]
        match event.kind:
            case "wait":
                self.wait(event.amount * 250)
            case "produce":
                self.produce(event.amount)
            case "grow":
                self.topics["t"] = min(self.topics["t"] + 1, 5)
                self.tell_metadata()
            case "start" if not process.is_running:
                self.start(index)
            case _ if process.is_running:
                self.play_with(index, event)
        self.check()

    def play_with(self, index: int, event: SwarmEvent) -> None:
        """An event of a process that is running."""
        process = self.processes[index]
        match event.kind:
            case "poll":
                self.poll(index)
            case "send":
                self.transmit(index, event.amount)
            case "receive":
                self.receive(index, event.amount)
            case "listener" if process.client.callback is not None:
                self.give(index, ListenerReturned())
            case "commit":
                self.give(index, CommitOffsets(is_sync=event.amount % 2 == 0))
            case "crash":
                self.hang_up(index)
                process.is_running = False
            case "close":
                self.give(index, Close())
            case "disconnect":
                self.hang_up(index)
                self.give(index, CoordinatorDisconnected())
            case "upgrade":
                self.hang_up(index)
                self.upgrade(index)

    def start(self, index: int, strategies: tuple[Strategy, ...] | None = None) -> None:
        """The process starts, or starts again."""
        process = self.processes[index]
        settings = process.client.settings
        self.give(index, Restart(evolve(settings, strategies=strategies or settings.strategies)))
        process.is_running = True
        self.give(index, MetadataArrived(tuple(self.topics.items())))
        self.give(index, Subscribe(frozenset({"t", "u"})))

    def upgrade(self, index: int) -> None:
        """The process starts again with the next step of an upgrade."""
        steps = {ONLY_RANGE: BOTH, BOTH: ONLY_COOPERATIVE}
        strategies = self.processes[index].client.settings.strategies
        self.start(index, steps.get(strategies, strategies))

    def hang_up(self, index: int) -> None:
        """The connection ends; what is on its way is lost."""
        process = self.processes[index]
        process.requests.clear()
        process.responses.clear()
        process.epoch += 1

    def produce(self, amount: int) -> None:
        for topic, count in self.topics.items():
            for number in range(count):
                self.ends[topic, number] = self.ends.get((topic, number), 0) + amount

    def tell_metadata(self) -> None:
        for index, process in enumerate(self.processes):
            if process.is_running:
                self.give(index, MetadataArrived(tuple(self.topics.items())))

    def give(self, index: int, given: ClientInput) -> None:
        process = self.processes[index]
        step = handle_input(process.client, given, ClientContext(self.now, ASSIGNORS))
        process.client = step.client
        for output in step.outputs:
            if isinstance(output, SendRequest):
                process.requests.append(output)
            elif isinstance(output, CallListener) and output.callback.kind is CallbackKind.ASSIGNED:
                self.check_hand_over(index, output.callback.partitions)

    def poll(self, index: int) -> None:
        """The application polls, and gets what the poll may return."""
        self.give(index, Poll())
        client = self.processes[index].client
        if client.callback is not None:
            return
        for position in client.positions:
            first, end = position.offset, self.ends.get(position.partition, 0)
            if first is not None and first < end and is_returnable(client, position.partition):
                following = min(end, first + RECORDS_PER_POLL)
                self.returned.setdefault(position.partition, set()).update(range(first, following))
                self.give(index, ReturnRecords(position.partition, first, following))

    def wait(self, milliseconds: int) -> None:
        """Time passes: timers of the coordinator fire, and the workers of the clients look at their clocks."""
        end = self.now + milliseconds
        while self.now < end:
            self.now = min(end, self.now + 250)
            while dues := [one for one in armed_timers(self.state) if one.deadline <= self.now]:
                result = fire_timer(self.state, min(dues, key=lambda one: one.deadline), self.context())
                self.state = result.state
                self.reply(result.replies)
            for index, process in enumerate(self.processes):
                if process.is_running:
                    self.give(index, TimePassed())

    def transmit(self, index: int, amount: int) -> None:
        """The coordinator gets the oldest requests of a client."""
        process = self.processes[index]
        for _ in range(min(amount, len(process.requests))):
            sent = process.requests.popleft()
            match sent.request:
                case FindCoordinator():
                    process.responses.append((sent.handle, FindCoordinatorResponse(Error.NONE, 1)))
                case ListOffsets(_, partitions, _):
                    process.responses.append((sent.handle, ListOffsetsResponse(tuple((one, 0) for one in partitions))))
                case request:
                    self.handle(index, sent.handle, request)

    def handle(self, index: int, handle: int, request: Request) -> None:
        """The coordinator handles a request."""
        self.handles += 1
        self.waiting[self.handles] = (index, self.processes[index].epoch, handle)
        before = self.state
        result = handle_request(self.state, with_handle(request, self.handles), self.context(), self.cluster)
        self.state = result.state
        if isinstance(request, OffsetCommit):
            self.check_commit(before, request, result.replies)
        self.reply(result.replies)

    def reply(self, replies: tuple[Reply, ...]) -> None:
        for reply in replies:
            index, epoch, handle = self.waiting.pop(reply.handle)
            if self.processes[index].epoch == epoch:
                self.processes[index].responses.append((handle, reply.response))

    def receive(self, index: int, amount: int) -> None:
        """The client gets the oldest responses."""
        process = self.processes[index]
        for _ in range(min(amount, len(process.responses))):
            handle, response = process.responses.popleft()
            self.give(index, ResponseArrived(handle, response))

    # --- what has to hold ---------------------------------------------------------------------------------------

    def check(self) -> None:
        """No partition has two owners in the current generation, and none was assigned before it was revoked."""
        owners: dict[Partition, int] = {}
        group = self.state.group
        if group is None:
            return
        self.max_generation = max(self.max_generation, group.generation)
        for index, process in enumerate(self.processes):
            member = process.client.member
            is_current = member.state == MemberState.STABLE and member.generation == group.generation == member.owned_in
            if process.is_running and is_current:
                for partition in partitions_of(process.client, member.owned):
                    if partition in owners:
                        raise SwarmViolation(f"one owner: {partition} has {owners[partition]} and {index}")
                    owners[partition] = index
        if self.hand_over is not None:
            raise SwarmViolation(self.hand_over)

    def check_hand_over(self, index: int, partitions: tuple[Partition, ...]) -> None:
        """Of two members of the current generation none has what the other one is assigned (CALLBACK-14)."""
        group = self.state.group
        if group is None or self.processes[index].client.member.generation != group.generation:
            return
        for other, process in enumerate(self.processes):
            member = process.client.member
            is_normal = member.generation == group.generation and process.is_running
            kept = set(partitions).intersection(assigned_partitions(process.client))
            if other != index and is_normal and kept and self.hand_over is None:
                self.hand_over = f"revoked before assigned: {min(kept)} at {index} while {other} has it"

    def check_commit(self, before: GroupState, request: OffsetCommit, replies: tuple[Reply, ...]) -> None:
        """An accepted commit is of a member in the current generation, and passes no record that nobody returned."""
        accepted = [
            partition
            for reply in replies
            if isinstance(reply.response, PartitionErrors)
            for partition, error in reply.response.errors.items()
            if error == Error.NONE
        ]
        if not accepted:
            return
        self.accepted_commits += 1
        group, core = before.group, request.core
        ids = set() if group is None else {slot.id for slot in group.slots if slot.holder is Holder.MEMBER}
        if group is None or core.generation != group.generation or core.member not in ids:
            raise SwarmViolation(f"no commit of a fenced member: {core}")
        for partition, offset in request.offsets:
            missing = set(range(offset.offset)) - self.returned.get(partition, set())
            if missing:
                raise SwarmViolation(f"commits follow records: {partition} at {offset.offset} without {min(missing)}")

    # --- fairness -----------------------------------------------------------------------------------------------

    def settle(self) -> int:
        """A fair time, until the group has settled and every record is committed; how many rounds it took."""
        for round in range(FAIR_ROUNDS):
            for index, process in enumerate(self.processes):
                if process.is_running:
                    self.serve(index)
            self.check()
            if self.has_settled():
                return round
            self.wait(FAIR_STEP_MS)
        raise SwarmViolation(f"the group settles: not after {FAIR_ROUNDS} rounds: {self.describe()}")

    def serve(self, index: int) -> None:
        """A process does all that it can at this moment."""
        process = self.processes[index]
        for _ in range(12):
            self.transmit(index, len(process.requests))
            self.receive(index, len(process.responses))
            if process.client.callback is not None:
                self.give(index, ListenerReturned())
            elif process.client.closing is Closing.CLOSED:
                self.transmit(index, len(process.requests))
                process.is_running = False
                return
            else:
                self.poll(index)
            self.check()

    def running(self) -> list[Client]:
        return [process.client for process in self.processes if process.is_running]

    def has_settled(self) -> bool:
        """Whether the group is stable with just the clients that run, every partition has an owner, and every record
        was returned and its offset committed."""
        clients, group = self.running(), self.state.group
        if not clients:
            return group is None or group.phase in (Phase.EMPTY, Phase.STABLE)
        if group is None or group.phase is not Phase.STABLE:
            return False
        ids = {slot.id for slot in group.slots if slot.holder is Holder.MEMBER}
        if ids != {client.member.id for client in clients}:
            return False
        for client in clients:
            member = client.member
            if member.state != MemberState.STABLE or member.rejoins or member.generation != group.generation:
                return False
        owned = sorted(one for client in clients for one in partitions_of(client, client.member.owned))
        wanted = sorted((topic, number) for topic, count in self.topics.items() for number in range(count))
        if owned != wanted:
            return False
        return all(self.is_consumed(partition, end) for partition, end in self.ends.items())

    def is_consumed(self, partition: Partition, end: int) -> bool:
        """Whether every record of the partition was returned, and the end is committed."""
        committed = self.state.offsets.get(partition)
        is_returned = self.returned.get(partition, set()) >= set(range(end))
        return is_returned and committed is not None and committed.offset == end

    def describe(self) -> str:
        """The group and its clients in a line."""
        group = self.state.group
        clients = [
            f"{client.member.state.name} {client.member.id} {client.member.generation} "
            f"{partitions_of(client, client.member.owned)} {client.failure}"
            for client in self.running()
        ]
        offsets = {one: offset.offset for one, offset in self.state.offsets.items()}
        return f"{None if group is None else (group.phase.name, group.generation)}; {clients}; {offsets} of {self.ends}"


def with_handle(request: Request, handle: int) -> Request:
    """The request under a handle that says whose it is."""
    core = getattr(request, "core", None)
    if core is None:
        return evolve(request, handle=handle)
    return evolve(request, core=evolve(core, handle=HandleNumber(handle)))
