"""The columns of the group's world, and the processes and settings that it is made of."""

from dataclasses import dataclass, field

from fencepost.model.classic.core.state import CoreDialect, CoreResponse, Group, HeartbeatRequest
from fencepost.model.classic.member.member import Member, MemberSettings
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.logic import Token
from fencepost.model.sorts import MemberId, ProtocolName

NEWER = CoreDialect()


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far the search goes. What would need more is cut off there, and counted.

    `ids`: member ids given out; `generations`: the group's; `requests`: JoinGroup and SyncGroup of one process;
    `failovers`: how often a coordinator is lost.
    """

    ids: int = 2
    generations: int = 2
    requests: int = 3
    slots: int = 2
    failovers: int = 0


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Who is there: one entry for each process, how many partitions, how the coordinator is set."""

    members: tuple[MemberSettings, ...]
    partitions: int = 1
    dialect: CoreDialect = NEWER
    max_group_size: int = 2_147_483_647
    heartbeats: bool = True
    by_id: bool = False
    """Also look for the plain wording of the first property, which is false."""


def untimed_member(
    cooperative: bool = True, instance: Token = None, names: tuple[str, ...] = ("range",)
) -> MemberSettings:
    """A member whose timeouts do not matter."""
    offered = tuple(map(ProtocolName, names))
    return MemberSettings(offered, cooperative, instance, session_timeout=0, rebalance_timeout=0)


@dataclass(frozen=True, slots=True)
class CoordinatorLog:
    """The record of the group, the number of coordinators that were lost, and the leaders that members were told of, as
    pairs of a generation and its leader."""

    record: Group = field(default_factory=Group)
    failovers: int = 0
    told: tuple[tuple[int, MemberId | None], ...] = ()


@dataclass(frozen=True, slots=True)
class CoordinatorState:
    """The coordinator's column: the group, and the last member id given out; with a log where coordinators fail."""

    group: Group
    last_id: int = 0
    log: CoordinatorLog | None = None


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process's column: the member, and the number of its last JoinGroup or SyncGroup."""

    member: Member
    last: int = 0


@dataclass(frozen=True, slots=True)
class IncomingResponse:
    """The answer column: to which JoinGroup or SyncGroup of the process, or else to which other request."""

    response: CoreResponse
    number: int = 0
    request: HeartbeatRequest | CommitRequest | None = None


COORDINATOR = 0
COLUMNS_PER_PROCESS = 4
"""How many columns a process has."""


def column_of(process: int, which: int) -> int:
    """The column of a process: 0 itself, 1 its request, 2 its answer, 3 its commit."""
    return 1 + COLUMNS_PER_PROCESS * process + which


PROCESS, REQUEST, RESPONSE, COMMIT = range(COLUMNS_PER_PROCESS)
