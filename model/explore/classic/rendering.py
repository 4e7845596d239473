"""Values of the group model's columns in words."""

from fencepost.model.classic.core.state import (
    HeartbeatRequest,
    Holder,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.member.member import NO_GENERATION, MemberState, PartitionCommit
from fencepost.model.errors import Error
from fencepost.model.explore.classic.state_layout import CoordinatorState, IncomingResponse, ProcessState
from fencepost.model.explore.transition_system import Value


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
