"""A reference client with a test in the place of application, network and clock."""

from collections.abc import Callable, Sequence
from typing import Any

from fencepost.model.assignors.consumer_protocol import decode_subscription, encode_assignment, encode_subscription
from fencepost.model.assignors.group import Assign, Assignment, ClusterTopics, GroupMember, Subscription
from fencepost.model.classic.core.state import (
    HeartbeatResponse,
    JoinResponse,
    LeaveResponse,
    MemberView,
    SyncResponse,
)
from fencepost.model.classic.member.client import (
    Callback,
    Client,
    ClientContext,
    ClientResponse,
    CommitReport,
    Failure,
    FindCoordinator,
    FindCoordinatorResponse,
    assigned_partitions,
    new_client,
)
from fencepost.model.classic.member.dispatch import handle_input
from fencepost.model.classic.member.settings import COOPERATIVE_STICKY, ClientSettings
from fencepost.model.classic.member.step import (
    CallListener,
    ClientInput,
    ClientStep,
    ListenerReturned,
    MetadataArrived,
    Poll,
    RaiseFailure,
    ReportCommit,
    ResponseArrived,
    SendRequest,
    Subscribe,
    TimePassed,
)
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from fencepost.model.errors import Error
from fencepost.model.groups.messages import (
    Offset,
    OffsetCommit,
    OffsetFetch,
    OffsetFetchResponse,
    Partition,
    PartitionErrors,
)
from fencepost.model.sorts import AssignmentBytes, InstanceId
from tests.support.plain_values import build

NONE = Error.NONE
P0, P1, P2 = ("t", 0), ("t", 1), ("t", 2)


def assign_in_turn(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """A plain assignor: the partitions of each topic go to its subscribers in turn, by member id."""
    plan: dict[str, list[Partition]] = {member.id: [] for member in members}
    for topic, count in cluster.partitions.items():
        subscribers = sorted(member.id for member in members if topic in member.subscription.topics)
        for number in range(count):
            plan[subscribers[number % len(subscribers)]].append((topic, number))
    return {id: tuple(partitions) for id, partitions in plan.items()}


ASSIGNORS: dict[str, Assign] = dict.fromkeys(("range", "roundrobin", "sticky", "cooperative-sticky"), assign_in_turn)


class ClientDriver:
    """A client and all that it did: requests by handle, callbacks, failures, reports and rules."""

    def __init__(self, settings: ClientSettings | None = None, topics: dict[str, int] | None = None) -> None:
        self.client: Client = new_client(settings or ClientSettings())
        self.now = 0
        self.sent: list[SendRequest] = []
        self.callbacks: list[Callback] = []
        self.raised: list[Failure] = []
        self.reports: list[CommitReport] = []
        self.rules: list[str] = []
        self.give(MetadataArrived(tuple((topics or {"t": 2}).items())))

    # --- what happens -------------------------------------------------------------------------------------------

    def give(self, given: ClientInput) -> ClientStep:
        step = handle_input(self.client, given, ClientContext(self.now, ASSIGNORS))
        self.client = step.client
        self.rules += step.rules
        for output in step.outputs:
            match output:
                case SendRequest():
                    self.sent.append(output)
                case CallListener(callback):
                    self.callbacks.append(callback)
                case RaiseFailure(failure):
                    self.raised.append(failure)
                case ReportCommit(report):
                    self.reports.append(report)
        return step

    def poll(self, timeout: int = 0) -> ClientStep:
        return self.give(Poll(timeout))

    def wait(self, milliseconds: int, cycle: int = 100) -> None:
        """Time passes; the worker does a cycle every so often."""
        end = self.now + milliseconds
        while self.now < end:
            self.now = min(end, self.now + cycle)
            self.give(TimePassed())

    def returns(self, raised: bool = False) -> ClientStep:
        return self.give(ListenerReturned(raised))

    def answer(self, response: ClientResponse, kind: type | None = None) -> ClientStep:
        """Answer the last request, or the last one of this kind."""
        return self.give(ResponseArrived(self.last(kind).handle, response))

    # --- short forms --------------------------------------------------------------------------------------------

    def last(self, kind: type | None = None) -> SendRequest:
        return next(one for one in reversed(self.sent) if kind is None or isinstance(one.request, kind))

    def count(self, kind: type) -> int:
        return sum(isinstance(one.request, kind) for one in self.sent)

    def request(self, kind: type) -> Any:
        return self.last(kind).request

    def subscribe(self, *topics: str) -> None:
        self.give(Subscribe(frozenset(topics or ("t",))))

    def find(self, node: int = 1) -> None:
        self.poll()
        self.answer(FindCoordinatorResponse(NONE, node), FindCoordinator)

    def start_joining(self) -> None:
        """Subscribe, find the coordinator, send JoinGroup."""
        self.subscribe()
        self.find()
        self.poll()

    def succeed_join(
        self, generation: int = 1, member: str = "a", leader: str = "other", views: tuple[MemberView, ...] = ()
    ) -> None:
        """JoinGroup succeeds."""
        name = self.client.settings.strategies[0].name
        self.answer(build(JoinResponse, NONE, generation, "consumer", name, leader, member, views), JoinGroup)

    def succeed_sync(self, *partitions: Partition) -> None:
        """SyncGroup succeeds."""
        self.answer(SyncResponse(NONE, assignment=AssignmentBytes(encode_assignment(partitions))), SyncGroup)

    def complete(self, *partitions: Partition, generation: int = 1, member: str = "a") -> None:
        """JoinGroup was sent: both exchanges succeed, and the callbacks return."""
        self.succeed_join(generation, member)
        self.succeed_sync(*partitions)
        self.poll()
        while self.client.callback is not None:
            self.returns()

    def become_stable(self, *partitions: Partition) -> None:
        """A stable member that owns these partitions; no position is known yet."""
        self.start_joining()
        self.complete(*partitions)

    def become_consumer(self, *partitions: Partition, offset: int = 0) -> None:
        """A stable member with positions."""
        self.become_stable(*partitions)
        self.poll()
        self.answer(OffsetFetchResponse({one: Offset(offset) for one in partitions}), OffsetFetch)

    def heartbeat(self, error: Error = NONE) -> None:
        """The next heartbeat is due, sent and answered."""
        count = self.count(Heartbeat)
        while self.count(Heartbeat) == count:
            self.wait(100)
        self.answer(HeartbeatResponse(error), Heartbeat)

    def answer_commit(self, error: Error = NONE) -> None:
        request = self.request(OffsetCommit)
        self.answer(PartitionErrors({partition: error for partition, _ in request.offsets}), OffsetCommit)

    def answer_join(self, error: Error, member: str | None = None) -> None:
        self.answer(build(JoinResponse, error, member=member), JoinGroup)

    def answer_sync(self, error: Error) -> None:
        self.answer(SyncResponse(error), SyncGroup)

    def answer_leave(self, error: Error = NONE) -> None:
        self.answer(LeaveResponse(error), LeaveGroup)

    # --- what there is ------------------------------------------------------------------------------------------

    def assignment(self) -> tuple[Partition, ...]:
        return assigned_partitions(self.client)

    def calls(self) -> list[tuple[str, tuple[Partition, ...]]]:
        return [(callback.kind.value, callback.partitions) for callback in self.callbacks]

    def subscription(self) -> Subscription:
        """What the last JoinGroup says under its first protocol."""
        return decode_subscription(self.request(JoinGroup).core.protocols[0].metadata)


def view(member: str, *owned: Partition, topics: tuple[str, ...] = ("t",), generation: int = -1) -> MemberView:
    """A member as the leader is told of it."""
    metadata = encode_subscription(Subscription(topics, owned=owned, generation=generation))
    return build(MemberView, member, None, metadata)


EAGER = ClientSettings()
COOPERATIVE = ClientSettings(strategies=(COOPERATIVE_STICKY,))
STATIC = ClientSettings(instance=InstanceId("i"))
BY_HAND = ClientSettings(auto_commit=False)
"""An eager client whose application commits."""
COOPERATIVE_BY_HAND = ClientSettings(strategies=(COOPERATIVE_STICKY,), auto_commit=False)


def reaches(*rules: str, settings: ClientSettings = EAGER) -> Callable[[Callable[[ClientDriver], None]], Any]:
    """Make a test of a function that drives a client with these settings; the rules have to apply on the way."""

    def decorate(test: Callable[[ClientDriver], None]) -> Callable[[], None]:
        def run() -> None:
            driver = ClientDriver(settings)
            test(driver)
            assert set(rules) <= set(driver.rules), set(rules).difference(driver.rules)

        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        return run

    return decorate
