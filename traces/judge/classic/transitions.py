"""Transitions of the classic coordinator.

The state before is the phase, with three facts: the initial delay is running, the group has one or several members,
member ids were issued that have not joined yet. The event is a request and the role of its sender in the group, or a
timer. The state afterwards is the phase alone.
"""

from functools import cache
from typing import Any

from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core.state import Group, Holder, Phase
from fencepost.model.classic.messages.requests import Request
from fencepost.traces.model_transitions import Transition, TransitionFields

PHASE_LABELS = {each: each.name.lower() for each in Phase}


def transition_of(before: GroupState, request: Request | None, outcome: StepResult) -> Transition:
    """The transition of a step; `request` is None for a step of the coordinator itself."""
    return Transition(*transition_fields(before, request, outcome))


def transition_fields(before: GroupState, request: Request | None, outcome: StepResult) -> TransitionFields:
    """The fields of the transition of a step."""
    happened = "by itself" if request is None else event_label(before, request)
    return state_label(before), happened, outcome.rule, phase_label(outcome.state)


def phase_label(world: GroupState) -> str:
    """The phase of the group as text."""
    return "no group" if world.group is None else PHASE_LABELS[world.group.phase]


def state_label(world: GroupState) -> str:
    """The state of the group as text."""
    group = world.group
    if group is None:
        return "no group"
    holders = [slot.holder for slot in group.slots]
    delayed = group.phase is Phase.PREPARING and group.initial
    return format_state_label(group.phase, delayed, min(holders.count(Holder.MEMBER), 2), Holder.PENDING in holders)


@cache
def format_state_label(phase: Phase, delayed: bool, members: int, handed_out: bool) -> str:
    """The text for a state; `members` is 0, 1 or 2, where 2 stands for several."""
    words = [PHASE_LABELS[phase]]
    if delayed:
        words.append("in its initial delay")
    if members:
        words.append("with one member" if members == 1 else "with several members")
    if handed_out:
        words.append("and ids handed out" if members else "with ids handed out")
    return " ".join(words)


def event_label(world: GroupState, request: Request) -> str:
    """The request and the role of its sender as text."""
    name = type(request).__name__
    core: Any = getattr(request, "core", None)
    if core is None or not hasattr(core, "member"):
        return name
    static = " static" if core.instance is not None else ""
    return f"{name} by{static} {role_of(world.group, core.member)}"


def role_of(group: Group | None, member: object) -> str:
    """The role of a member id in the group, as text."""
    if member is None:
        return "nobody"
    if group is None:
        return "stranger"
    for slot in group.slots:
        if slot.id == member and slot.holder is Holder.MEMBER:
            return "leader" if member == group.leader else "member"
        if slot.id == member and slot.holder is Holder.PENDING:
            return "newcomer"
    return "stranger"
