"""States of the group's world in words: for counterexamples and for the nodes of exported graphs."""

from fencepost.model.classic.core.state import (
    HeartbeatRequest,
    Holder,
    JoinAnswer,
    JoinRequest,
    LeaveRequest,
    SyncAnswer,
    SyncRequest,
)
from fencepost.model.classic.member.member import NO_GENERATION, MemberState, PartitionCommit
from fencepost.model.errors import Error
from fencepost.model.explore.classic.state_layout import Coordinator, Heard, Process
from fencepost.model.explore.search import Row
from fencepost.model.explore.transition_system import System, Value


def in_words(system: System, row: Row, only: frozenset[int] | None = None) -> str:
    """The columns of a row that hold something, by default all of them, each with its name."""
    told = [
        f"{column.name}: {value_in_words(value)}"
        for index, (column, value) in enumerate(zip(system.columns, row, strict=True))
        if (only is None and value is not None) or (only is not None and index in only)
    ]
    return "; ".join(told)


def changed(before: Row, after: Row) -> frozenset[int]:
    """The columns that differ."""
    return frozenset(index for index, (one, other) in enumerate(zip(before, after, strict=True)) if one != other)


def value_in_words(value: Value) -> str:
    """What a column holds."""
    match value:
        case None:
            return "nothing"
        case Coordinator():
            return group_in_words(value)
        case Process():
            return process_in_words(value)
        case Heard():
            return heard_in_words(value)
        case _:
            return request_in_words(value)


def group_in_words(coordinator: Coordinator) -> str:
    """The group: its phase, its generation, its members; a star marks the leader."""
    group = coordinator.group
    told = [f"{group.phase.name.title()}, generation {group.generation}"]
    for slot in group.slots:
        if slot.holder == Holder.NOBODY:
            continue
        marks = ["pending" if slot.holder == Holder.PENDING else "", "joined" if slot.join else ""]
        marks += ["synced" if slot.sync else "", "owns " + parts(slot.assignment) if slot.assignment else ""]
        star = "*" if slot.id == group.leader else ""
        told.append(" ".join([f"m{slot.id}{star}", *filter(None, marks)]))
    return ", ".join(told)


def process_in_words(process: Process) -> str:
    """A process: its state, its id and generation, what it believes it owns."""
    member = process.member
    told = [MemberState(member.state).name.lower().replace("_", " ")]
    told += [] if member.id is None else [f"m{member.id}"]
    told += [] if member.generation == NO_GENERATION else [f"generation {member.generation}"]
    told += [f"owns {parts(member.owned)}"] if any(member.owned) else []
    told += [f"waits for answer {member.waiting}"] if member.waiting else []
    return ", ".join(told)


def request_in_words(request: Value) -> str:
    """A request under way."""
    match request:
        case JoinRequest(handle=number, member=member):
            return f"{number}. JoinGroup of {named(member)}"
        case SyncRequest(handle=number, member=member, generation=generation):
            return f"{number}. SyncGroup of {named(member)} in generation {generation}"
        case HeartbeatRequest(member=member, generation=generation):
            return f"Heartbeat of {named(member)} in generation {generation}"
        case LeaveRequest(entries=entries):
            return f"LeaveGroup of {', '.join(named(member) for member, _ in entries)}"
        case PartitionCommit(request=commit, partitions=partitions):
            return f"commit of {parts(partitions)} by {named(commit.member)} in generation {commit.generation}"
    return str(request)


def heard_in_words(heard: Heard) -> str:
    """An answer under way."""
    answer = heard.answer
    number = f"{heard.number}. " if heard.number else ""
    error = getattr(answer, "error", Error.NONE)
    if error != Error.NONE:
        asked = "" if heard.request is None else f" to {type(heard.request).__name__.removesuffix('Request')}"
        return f"{number}{error.name}{asked}"
    match answer:
        case JoinAnswer(generation=generation, leader=leader, member=member):
            return f"{number}{named(member)} is in generation {generation}, led by {named(leader)}"
        case SyncAnswer(assignment=assignment):
            return f"{number}assigned {parts(assignment)}"
    return f"{number}granted"


def named(member: Value) -> str:
    """A member id; a process without one is a newcomer."""
    return "a newcomer" if member is None else f"m{member}"


def parts(owned: Value) -> str:
    """Partitions."""
    held = [f"p{index}" for index, mine in enumerate(owned or ()) if mine]
    return " ".join(held) or "nothing"
