"""Transitions of the model: what a step does, as far as it matters to know whether a target was seen to do it.

A transition is the state of the group, what happened, the rule that applied and the phase after it. The state is the
phase, whether its initial delay runs, whether the group has one member or several, whether ids are handed out whose
owners are yet to come; what happened is a request, by whom in the eyes of the group, or a timer.
"""

from dataclasses import dataclass
from typing import Any

from fencepost.model.core.members import NOWHERE, find
from fencepost.model.core.values import Group, Holder, Phase
from fencepost.model.requests import Request
from fencepost.model.world import Outcome, World


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


PHASES = {each: each.name.lower() for each in Phase}
Parts = tuple[str, str, str, str]
"""The fields of a transition: quicker to make and to count, one for each step of a trace."""


def transition(before: World, request: Request | None, outcome: Outcome) -> Transition:
    """What kind of step this is; without a request it is the coordinator's own."""
    return Transition(*parts(before, request, outcome))


def parts(before: World, request: Request | None, outcome: Outcome) -> Parts:
    """The fields of the transition."""
    happened = "by itself" if request is None else event(before, request)
    return state(before), happened, outcome.rule, phase(outcome.world)


def phase(world: World) -> str:
    """The phase of the group."""
    return "no group" if world.group is None else PHASES[world.group.phase]


def state(world: World) -> str:
    """The state of the group."""
    group = world.group
    if group is None:
        return "no group"
    holders = [slot.holder for slot in group.slots]
    members = holders.count(Holder.MEMBER)
    words = [phase(world)]
    if group.phase is Phase.PREPARING and group.initial:
        words.append("in its initial delay")
    if members:
        words.append("with one member" if members == 1 else "with several members")
    if Holder.PENDING in holders:
        words.append("and ids handed out" if members else "with ids handed out")
    return " ".join(words)


def event(world: World, request: Request) -> str:
    """The request, and who sends it."""
    name = type(request).__name__
    core: Any = getattr(request, "core", None)
    if core is None or not hasattr(core, "member"):
        return name
    static = " static" if core.instance is not None else ""
    return f"{name} by{static} {role(world.group, core.member)}"


def role(group: Group | None, member: object) -> str:
    """What an id is to the group."""
    if member is None:
        return "nobody"
    if group is None:
        return "stranger"
    if find(group, member, Holder.MEMBER) != NOWHERE:
        return "leader" if member == group.leader else "member"
    return "newcomer" if find(group, member, Holder.PENDING) != NOWHERE else "stranger"
