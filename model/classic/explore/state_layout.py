"""The columns of the group's world, and the processes and settings that it is made of."""

from dataclasses import dataclass, field

from fencepost.model.classic.core.state import (
    CoreDialect,
    CoreResponse,
    Group,
    HeartbeatRequest,
    Holder,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.member.member import NO_GENERATION, Member, MemberSettings, MemberState, PartitionCommit
from fencepost.model.errors import Error
from fencepost.model.explore.transition_system import Value
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


# --- Values of the group model's columns in words.


def render_value(value: Value) -> str:
    """What a column holds."""
    match value:
        case None:
            return "nothing"
        case CoordinatorState():
            return render_group(value)
        case ProcessState():
            return render_process(value)
        case IncomingResponse():
            return render_response(value)
        case _:
            return render_request(value)


def render_group(coordinator: CoordinatorState) -> str:
    """The group: its phase, its generation, its members; a star marks the leader."""
    group = coordinator.group
    told = [f"{group.phase.name.title()}, generation {group.generation}"]
    for slot in group.slots:
        if slot.holder == Holder.NOBODY:
            continue
        marks = ["pending" if slot.holder == Holder.PENDING else "", "joined" if slot.join else ""]
        marks += [
            "synced" if slot.sync else "",
            "owns " + render_partitions(slot.assignment) if slot.assignment else "",
        ]
        star = "*" if slot.id == group.leader else ""
        told.append(" ".join([f"m{slot.id}{star}", *filter(None, marks)]))
    return ", ".join(told)


def render_process(process: ProcessState) -> str:
    """A process: its state, its id and generation, what it believes it owns."""
    member = process.member
    told = [MemberState(member.state).name.lower().replace("_", " ")]
    told += [] if member.id is None else [f"m{member.id}"]
    told += [] if member.generation == NO_GENERATION else [f"generation {member.generation}"]
    told += [f"owns {render_partitions(member.owned)}"] if any(member.owned) else []
    told += [f"waits for answer {member.waiting}"] if member.waiting else []
    return ", ".join(told)


def render_request(request: Value) -> str:
    """A request under way."""
    match request:
        case JoinRequest(handle=number, member=member):
            return f"{number}. JoinGroup of {member_name(member)}"
        case SyncRequest(handle=number, member=member, generation=generation):
            return f"{number}. SyncGroup of {member_name(member)} in generation {generation}"
        case HeartbeatRequest(member=member, generation=generation):
            return f"Heartbeat of {member_name(member)} in generation {generation}"
        case LeaveRequest(entries=entries):
            return f"LeaveGroup of {', '.join(member_name(member) for member, _ in entries)}"
        case PartitionCommit(request=commit, partitions=partitions):
            who = member_name(commit.member)
            return f"commit of {render_partitions(partitions)} by {who} in generation {commit.generation}"
    return str(request)


def render_response(incoming: IncomingResponse) -> str:
    """An answer under way."""
    response = incoming.response
    number = f"{incoming.number}. " if incoming.number else ""
    error = getattr(response, "error", Error.NONE)
    if error != Error.NONE:
        asked = "" if incoming.request is None else f" to {type(incoming.request).__name__.removesuffix('Request')}"
        return f"{number}{error.name}{asked}"
    match response:
        case JoinResponse(generation=generation, leader=leader, member=member):
            return f"{number}{member_name(member)} is in generation {generation}, led by {member_name(leader)}"
        case SyncResponse(assignment=assignment):
            return f"{number}assigned {render_partitions(assignment)}"
    return f"{number}granted"


def member_name(member: Value) -> str:
    """A member id; a process without one is a newcomer."""
    return "a newcomer" if member is None else f"m{member}"


def render_partitions(owned: Value) -> str:
    """The numbered partitions that the flags in `owned` are set for, as "p0 p2"; "nothing" if there are none."""
    held = [f"p{index}" for index, mine in enumerate(owned or ()) if mine]
    return " ".join(held) or "nothing"
