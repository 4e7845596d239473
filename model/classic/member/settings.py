"""The configuration of a client: assignors and the rebalance protocol that they allow, timeouts, and its dialect."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum

from fencepost.model.classic.member.member import MemberSettings
from fencepost.model.errors import FencepostError
from fencepost.model.sorts import InstanceId, Millis, ProtocolName

JOIN_SLACK_MS = 5_000
"""How much longer than the poll interval a client waits for the response to its JoinGroup (MEMBER-32)."""
MAX_REASON_LENGTH = 255
"""Characters of a reason that go over the wire (KIP-800)."""


class RebalanceProtocol(IntEnum):
    """How a member gives partitions up; the higher one is preferred (KIP-429)."""

    EAGER = 0
    COOPERATIVE = 1


class UserData(Enum):
    """What an assignor adds to a subscription (member.md, appendix C)."""

    NONE = "none"
    CLAIMS = "claims"
    """The last assignment with its generation (`sticky`)."""
    GENERATION = "generation"
    """The generation of the last assignment (`cooperative-sticky`)."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """An entry of `partition.assignment.strategy`: the name of an assignor and what it supports."""

    name: str
    protocols: frozenset[RebalanceProtocol] = frozenset({RebalanceProtocol.EAGER})
    user_data: UserData = UserData.NONE


RANGE = Strategy("range")
ROUND_ROBIN = Strategy("roundrobin")
STICKY = Strategy("sticky", user_data=UserData.CLAIMS)
COOPERATIVE_STICKY = Strategy("cooperative-sticky", frozenset(RebalanceProtocol), UserData.GENERATION)


class UnusableClientSettings(FencepostError):
    """A client cannot work with these settings; the message is one clear line."""


class ResetPolicy(Enum):
    """Where a partition starts that has no committed offset (`auto.offset.reset`)."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ClientDialect:
    """What clients do differently, and may (member.md 8)."""

    heartbeats_in_poll: bool = False
    """As before KIP-62: nothing but a poll sends heartbeats, and the session timeout is the rebalance timeout."""
    commits_given_up: bool = True
    """With auto-commit, commits what a cooperative rebalance takes away before it is revoked; the Java client does
    not."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The configuration of a client, with the defaults of the Java client (member.md, appendix D). Times in
    milliseconds."""

    group: str = "group"
    strategies: tuple[Strategy, ...] = (RANGE, COOPERATIVE_STICKY)
    instance: InstanceId | None = None
    session_timeout: Millis = 45_000
    heartbeat_interval: Millis = 3_000
    max_poll_interval: Millis = 300_000
    auto_commit: bool = True
    auto_commit_interval: Millis = 5_000
    retry_backoff: Millis = 100
    max_retry_backoff: Millis = 1_000
    request_timeout: Millis = 30_000
    api_timeout: Millis = 60_000
    reset_policy: ResetPolicy = ResetPolicy.LATEST
    leaves_on_close: bool = True
    hears_lost: bool = True
    """The application's listener tells lost partitions from revoked ones (CALLBACK-15)."""
    rack: str | None = None
    dialect: ClientDialect = ClientDialect()

    def __post_init__(self) -> None:
        """Refuse settings that no client takes (HBT-13, MEMBER-35)."""
        if self.heartbeat_interval >= self.session_timeout:
            raise UnusableClientSettings(
                f"heartbeat.interval.ms is {self.heartbeat_interval} and session.timeout.ms is {self.session_timeout}: "
                "the interval has to be shorter"
            )
        select_rebalance_protocol(self.strategies)

    @property
    def rebalance_protocol(self) -> RebalanceProtocol:
        """The rebalance protocol, which stays the same as long as the client lives."""
        return select_rebalance_protocol(self.strategies)

    @property
    def is_cooperative(self) -> bool:
        """Whether the client keeps its partitions while it rejoins."""
        return self.rebalance_protocol is RebalanceProtocol.COOPERATIVE

    @property
    def rebalance_timeout(self) -> Millis:
        """How long the coordinator waits for the client to rejoin (MEMBER-03)."""
        return self.session_timeout if self.dialect.heartbeats_in_poll else self.max_poll_interval

    @property
    def join_timeout(self) -> Millis:
        """How long the client waits for the response to a JoinGroup (MEMBER-32)."""
        return max(self.request_timeout, self.rebalance_timeout + JOIN_SLACK_MS)

    def member_settings(self) -> MemberSettings:
        """The part of the settings that the proved member has."""
        return MemberSettings(
            names=tuple(ProtocolName(strategy.name) for strategy in self.strategies),
            cooperative=self.is_cooperative,
            instance=self.instance,
            session_timeout=self.session_timeout,
            rebalance_timeout=self.rebalance_timeout,
        )


def select_rebalance_protocol(strategies: Iterable[Strategy]) -> RebalanceProtocol:
    """The highest rebalance protocol that all strategies support (MEMBER-35).

    Raises `UnusableClientSettings` where they have none in common, or where there is no strategy.
    """
    supported = [strategy.protocols for strategy in strategies]
    common = frozenset.intersection(*supported) if supported else frozenset()
    if not common:
        raise UnusableClientSettings(
            "partition.assignment.strategy: the assignors support no common rebalance protocol; list assignors that do"
        )
    return max(common)
