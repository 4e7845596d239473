"""A group at its coordinator: the members, the rebalance bit, and the rebalance under way (draft, 5 to 7)."""

from dataclasses import dataclass
from enum import StrEnum

from fencepost.model.frozen import fast_frozen
from fencepost.model.logic import Token
from fencepost.model.push.assignment import Share
from fencepost.model.push.interest import NO_INTEREST, Interest
from fencepost.model.push.messages import CoordinatorRequest

Registration = tuple[Token, int]
"""A consumer id, and the number of its registration."""


class RebalancePhase(StrEnum):
    """What a handler thread does next for the group."""

    COMPUTE = "compute"
    CHECK = "check"
    STOP = "stop"
    WAIT_STOP = "wait for stop"
    START = "start"
    WAIT_START = "wait for start"
    WRITE = "write"
    RESET = "reset"


@fast_frozen
@dataclass(frozen=True, slots=True)
class PushMember:
    """A registration as the coordinator keeps it in memory."""

    consumer: Token
    number: int = 0
    interest: Interest = NO_INTEREST
    session_timeout_ms: int = 6000
    auto_commit: bool = False

    @property
    def registration(self) -> Registration:
        """Its id and number."""
        return self.consumer, self.number


@fast_frozen
@dataclass(frozen=True, slots=True)
class PushRebalance:
    """A rebalance under way: `retries` made so far, the number of the attempt, the shares, and who is awaited."""

    phase: RebalancePhase
    retries: int = 0
    attempt: int = 0
    shares: tuple[Share, ...] = ()
    owners: tuple[Token, ...] = ()
    """The owner of each partition of the snapshot, in its order."""
    pending: frozenset[Registration] = frozenset()


@fast_frozen
@dataclass(frozen=True, slots=True)
class PushGroup:
    """A group in the coordinator's memory."""

    members: tuple[PushMember, ...] = ()
    """Sorted by consumer id."""
    rebalancing: bool = False
    """The bit of the draft's item 2."""
    changed: bool = False
    """PUSH-H02 repaired: a change met the set bit."""
    run: PushRebalance | None = None
    completed: tuple[Share, ...] | None = None
    """The map that this coordinator completed last, as long as it may be believed."""
    read_clear: bool = False
    """PUSH-H18 as drafted: a listener has read the bit as clear, and is about to set it."""

    def member(self, consumer: Token) -> PushMember | None:
        """The member with this id."""
        return next((one for one in self.members if one.consumer == consumer), None)

    def has(self, consumer: Token, number: int) -> bool:
        """Whether this very registration is a member."""
        return any(one.consumer == consumer and one.number == number for one in self.members)


@fast_frozen
@dataclass(frozen=True, slots=True)
class Sending:
    """A request for the channel of a registration."""

    consumer: Token
    number: int
    message: CoordinatorRequest


@fast_frozen
@dataclass(frozen=True, slots=True)
class GroupStep:
    """What comes of a step of a group: the group, the rule, and what others have to do.

    `requests` are new entries in the queue of the group, `owners` is what goes to ZooKeeper.
    """

    group: PushGroup
    rule: str
    sendings: tuple[Sending, ...] = ()
    requests: int = 0
    owners: tuple[Token, ...] | None = None
    error: int = 0
    """Of a RegisterResponse."""
    ends_thread: bool = False
    """PUSH-H05 as drafted: the exception ends the handler thread."""
