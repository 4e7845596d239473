"""The inputs and outputs of a client, and the result of a step with the rules that applied."""

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.model.classic.member.client import (
    Callback,
    Client,
    ClientContext,
    ClientResponse,
    CommitReport,
    Failure,
    FindCoordinator,
    ListOffsets,
    TopicCounts,
)
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.model.classic.messages import Request
from fencepost.model.groups.messages import Partition
from fencepost.model.sorts import Millis


@dataclass(frozen=True, slots=True)
class Poll:
    """The application polls; the poll returns after the timeout in milliseconds at the latest."""

    timeout: Millis = 0


@dataclass(frozen=True, slots=True)
class ListenerReturned:
    """The callback that runs returns, or raises."""

    raised: bool = False


@dataclass(frozen=True, slots=True)
class ResponseArrived:
    """A response to the request of this handle."""

    handle: int
    response: ClientResponse


@dataclass(frozen=True, slots=True)
class CoordinatorDisconnected:
    """The connection to the coordinator is lost."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The background worker looks at its clocks."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """The application subscribes to topics, or to those that match a pattern."""

    topics: frozenset[str] = frozenset()
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class AssignManually:
    """The application assigns the partitions itself."""

    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class MetadataArrived:
    """The topics of the cluster with their numbers of partitions."""

    topics: TopicCounts


@dataclass(frozen=True, slots=True)
class EnforceRebalance:
    """The application asks for a rebalance (KIP-568)."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """The application commits positions, of all partitions if `partitions` is None; it waits if `is_sync`."""

    is_sync: bool = True
    partitions: tuple[Partition, ...] | None = None


@dataclass(frozen=True, slots=True)
class ReturnRecords:
    """The poll returns records of a partition: from offset `first` on; the next one to return is `following`."""

    partition: Partition
    first: int
    following: int


@dataclass(frozen=True, slots=True)
class Seek:
    """The application sets the position of a partition."""

    partition: Partition
    offset: int


@dataclass(frozen=True, slots=True)
class PausePartition:
    """The application pauses a partition, or resumes it."""

    partition: Partition
    is_paused: bool = True


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The application unsubscribes."""


@dataclass(frozen=True, slots=True)
class Close:
    """The application closes the client."""


@dataclass(frozen=True, slots=True)
class Restart:
    """The process ends without a word and starts again, with other settings if they are given."""

    settings: ClientSettings | None = None


@dataclass(frozen=True, slots=True)
class AskHeartbeat:
    """The application asks for a heartbeat by itself: the method that KIP-41 rejected."""


ClientInput = (
    Poll
    | ListenerReturned
    | ResponseArrived
    | CoordinatorDisconnected
    | TimePassed
    | Subscribe
    | AssignManually
    | MetadataArrived
    | EnforceRebalance
    | CommitOffsets
    | ReturnRecords
    | Seek
    | PausePartition
    | Unsubscribe
    | Close
    | Restart
    | AskHeartbeat
)


@dataclass(frozen=True, slots=True)
class SendRequest:
    """The client sends a request; its reason goes along in JoinGroup v8 and LeaveGroup v5 (KIP-800)."""

    handle: int
    request: Request | FindCoordinator | ListOffsets
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CallListener:
    """The listener is called."""

    callback: Callback


@dataclass(frozen=True, slots=True)
class RaiseFailure:
    """A poll or a commit raises."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class ReportCommit:
    """A commit is finished: the callback of an asynchronous one, the end of a synchronous one."""

    report: CommitReport


ClientOutput = SendRequest | CallListener | RaiseFailure | ReportCommit


@dataclass(frozen=True, slots=True)
class ClientStep:
    """The client after an input, what it does, and the rules that applied, in order."""

    client: Client
    outputs: tuple[ClientOutput, ...] = ()
    rules: tuple[str, ...] = ()


Follow = Callable[[Client, ClientContext], ClientStep]


def join_steps(step: ClientStep, following: ClientStep) -> ClientStep:
    """Two steps as one: the client after the second, the outputs and rules of both."""
    return ClientStep(following.client, (*step.outputs, *following.outputs), (*step.rules, *following.rules))


def then(step: ClientStep, context: ClientContext, *follows: Follow) -> ClientStep:
    """The step, and after it each of those that follow."""
    for follow in follows:
        step = join_steps(step, follow(step.client, context))
    return step
