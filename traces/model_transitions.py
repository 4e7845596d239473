"""Transitions of the model: what a step does, as far as it matters to know whether a target was seen to do it.

A transition is the state of the group, what happened, the rule that applied and the phase after it. The state is the
phase, whether its initial delay runs, whether the group has one member or several, whether ids are handed out whose
owners are yet to come; what happened is a request, by whom in the eyes of the group, or a timer.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core.state import Group, Holder, Phase
from fencepost.model.classic.messages.requests import Request


@dataclass(frozen=True, slots=True, order=True)
class Transition:
    """One kind of step, in words."""

    state: str
    event: str
    rule: str
    after: str

    def __str__(self) -> str:
        return f"{self.state} / {self.event} / {self.rule} / {self.after}"

    @classmethod
    def parse(cls, text: str) -> "Transition":
        """The transition that was written so. Raises ValueError."""
        state, event, rule, after = text.split(" / ")
        return cls(state, event, rule, after)


PHASE_LABELS = {each: each.name.lower() for each in Phase}
TransitionFields = tuple[str, str, str, str]
"""The fields of a transition: quicker to make and to count, one for each step of a trace."""


def transition_of(before: GroupState, request: Request | None, outcome: StepResult) -> Transition:
    """What kind of step this is; without a request it is the coordinator's own."""
    return Transition(*transition_fields(before, request, outcome))


def transition_fields(before: GroupState, request: Request | None, outcome: StepResult) -> TransitionFields:
    """The fields of the transition."""
    happened = "by itself" if request is None else event_label(before, request)
    return state_label(before), happened, outcome.rule, phase_label(outcome.state)


def phase_label(world: GroupState) -> str:
    """The phase of the group."""
    return "no group" if world.group is None else PHASE_LABELS[world.group.phase]


def state_label(world: GroupState) -> str:
    """The state of the group."""
    group = world.group
    if group is None:
        return "no group"
    holders = [slot.holder for slot in group.slots]
    delayed = group.phase is Phase.PREPARING and group.initial
    return format_state_label(group.phase, delayed, min(holders.count(Holder.MEMBER), 2), Holder.PENDING in holders)


@cache
def format_state_label(phase: Phase, delayed: bool, members: int, handed_out: bool) -> str:
    """The state of a group with so many members, two standing for several."""
    words = [PHASE_LABELS[phase]]
    if delayed:
        words.append("in its initial delay")
    if members:
        words.append("with one member" if members == 1 else "with several members")
    if handed_out:
        words.append("and ids handed out" if members else "with ids handed out")
    return " ".join(words)


def event_label(world: GroupState, request: Request) -> str:
    """The request, and who sends it."""
    name = type(request).__name__
    core: Any = getattr(request, "core", None)
    if core is None or not hasattr(core, "member"):
        return name
    static = " static" if core.instance is not None else ""
    return f"{name} by{static} {role_of(world.group, core.member)}"


def role_of(group: Group | None, member: object) -> str:
    """What an id is to the group."""
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
