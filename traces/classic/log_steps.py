"""Steps that a coordinator logs, compared with the kernel of the protocol (`model.classic.kernel.actions`).

A log shows rebalances, leaders and members only. So each step is an action of the kernel whose arguments are known in
part: the leader of a rebalance is `UNKNOWN_MEMBER` until it is logged. Beyond the guards of the kernel, generations
have to count one by one, and a rebalance has to keep its members.

Logs lack lines: they are searched, cut, rotated, and dropped by collectors. A generation that lines which are missing
explain accuses nobody: a later one than expected, or the first one again, since the group may have been deleted.
Neither does an assignment that comes twice: a coordinator logs each SyncGroup of the leader until it has stored the
first one.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.classic.kernel.actions import Kernel, KernelStep, complete, complete_empty, prepare, publish
from fencepost.model.relations import FiniteRelation, finite_relation
from fencepost.traces.events import Body, Event
from fencepost.traces.verdict import CheckResult, CheckStatus, Violation

UNKNOWN_MEMBER = None
"""A member that is not known yet."""
NO_MEMBERS = FiniteRelation()
REQUIREMENT_BY_GUARD: Mapping[str, str] = {
    "each completed join phase counts one": "GEN-02",
    "nothing else counts": "GEN-03",
    "the assignment is of the current generation": "SYNC-04",
    "the leader hands it in": "GEN-05",
    "the leader is a member": "GEN-06",
    "the round keeps its members": "GEN-20",
}
"""What a guard that is false breaks."""
REMOVAL_REASON = re.compile(
    r"(?:Removing|removing) member (?P<one>\S+?) on .*"
    r"|(?:Removing) (?:Set\(|\[)(?P<some>[^\])]*)[\])] on pending sync.*"
    r"|explicit `LeaveGroup` request for \((?P<left>[^)]*)\) members.*"
)
"""Reasons for a rebalance that name who is gone."""


@dataclass(slots=True)
class LoggedGroup:
    """A group as its coordinator's steps show it. Without a kernel its generation is not known."""

    kernel: Kernel | None = None
    member_count: int | None = None
    """How many members the present round has."""
    departed: set[str] = field(default_factory=set)
    """Who has left since the present round began."""


class LogStepCheck:
    """The groups of one trace."""

    def __init__(self, is_doubtful: bool = False) -> None:
        self.is_doubtful = is_doubtful
        """Whether too much of the log was not understood to check anything."""
        self.groups: dict[str, LoggedGroup] = {}
        self.first_passes: dict[str, int] = {}
        """By requirement, the first step that put it to the test and kept it."""

    def reset(self) -> None:
        """Forget the state of all groups."""
        self.groups.clear()

    def check_results(self) -> tuple[CheckResult, ...]:
        """What the steps say of requirements."""
        return tuple(CheckResult(each, sequence, CheckStatus.PASS) for each, sequence in self.first_passes.items())

    def check_step(self, event: Event) -> Iterator[Violation]:
        """What is wrong with a step."""
        body = event.body
        step, name = body.get("step"), body.get("group")
        if step == "sweep":  # some groups that were empty may be no more
            self.groups = {name: group for name, group in self.groups.items() if group.member_count != 0}
        elif step == "delete":
            for gone in str(body.get("groups")).split(", "):
                self.groups.pop(gone, None)
        elif step == "lose" and isinstance(name, str):
            self.groups.pop(name, None)
        handle = STEP_HANDLERS.get(step) if isinstance(step, str) and not self.is_doubtful else None
        if handle is None or not isinstance(name, str):
            return
        group = self.groups.setdefault(name, LoggedGroup())
        known = group.kernel
        guards = handle(group, body)
        if step == "forget":
            del self.groups[name]
        for guard, holds in guards.items():
            requirement = REQUIREMENT_BY_GUARD[guard]
            if holds:
                self.first_passes.setdefault(requirement, event.sequence)
            else:
                yield step_violation(event, name, guard, requirement, known)


def step_violation(event: Event, group: str, guard: str, requirement: str, known: Kernel | None) -> Violation:
    """A guard that is false, in words."""
    body = event.body
    place = f" (line {body['line']})" if "line" in body else ""
    told = ", ".join(f"{name}={body[name]}" for name in ("generation", "member", "count") if name in body)
    leaders = sorted(str(each) for (each,) in known.led.suffixes(known.current) if each) if known is not None else []  # type: ignore[attr-defined]
    state = f"generation={known.current}, led by {leaders[0] if leaders else 'a member'}" if known is not None else ""
    return Violation(
        sequence=event.sequence,
        group=group,
        api=str(body["step"]),
        fields=(str(body["step"]),),
        observed=f"{body['step']} {told}{place}",
        allowed=(f"a step after {state}",),
        rule="",
        guard=guard,
        requirements=(requirement,),
        kind=f"{body['step']} {guard}",
    )


def on_prepare(group: LoggedGroup, body: Body) -> dict[str, Any]:
    """A rebalance begins. Its reason may name members that are gone."""
    guards, generation = {}, body["generation"]
    if group.kernel is not None and 0 < generation <= group.kernel.current:
        guards["nothing else counts"] = group.kernel.current == generation
    group.kernel = prepare(kernel_at_generation(group, generation)).after
    found = REMOVAL_REASON.match(body.get("reason") or "")
    for names in found.groupdict().values() if found is not None else ():
        group.departed |= set(names.split(", ")) if names else set()
    return guards


def on_complete(group: LoggedGroup, body: Body) -> dict[str, Any]:
    """The join phase completes: a new generation with so many members, one of which leads it."""
    generation = body["generation"]
    guards = check_generation(group, generation)
    apply_move(
        group,
        complete(
            kernel_at_generation(group, generation - 1),
            generation,
            UNKNOWN_MEMBER,
            finite_relation((UNKNOWN_MEMBER,)),
            NO_MEMBERS,
        ),
    )
    group.member_count, group.departed = body.get("count"), set()
    return guards


def on_empty(group: LoggedGroup, body: Body) -> dict[str, Any]:
    """The join phase ends without members."""
    generation = body["generation"]
    guards = check_generation(group, generation)
    apply_move(group, complete_empty(kernel_at_generation(group, generation - 1), generation))
    group.member_count = 0
    return guards


def on_publish(group: LoggedGroup, body: Body) -> dict[str, Any]:
    """The leader hands in the assignment."""
    generation, leader = body["generation"], body.get("member", UNKNOWN_MEMBER)
    kernel, guards = group.kernel, {}
    if kernel is not None and generation <= kernel.current and not (generation == 1 < kernel.current):
        guards["the assignment is of the current generation"] = kernel.current == generation
        guards["the leader is a member"] = leader not in group.departed
        if kernel.current == generation and group.member_count is not None and body.get("count") is not None:
            guards["the round keeps its members"] = group.member_count == body["count"]
    if kernel is None or kernel.current != generation:
        group.kernel = Kernel(
            current=generation, led=finite_relation((generation, leader)), published=finite_relation((generation,))
        )
        return guards
    if leader is UNKNOWN_MEMBER or kernel.led.has(generation, UNKNOWN_MEMBER):
        kernel = with_leader(kernel, leader)
    move = publish(kernel, leader, NO_MEMBERS)
    guards["the leader hands it in"] = move.guards["the leader hands it in"]
    group.kernel = move.after
    return guards


def on_unregister(group: LoggedGroup, body: Body) -> dict[str, Any]:
    """A member is gone; the lines around that come in any order."""
    group.departed.add(body["member"])
    return {}


def on_replace(group: LoggedGroup, body: Body) -> dict[str, Any]:
    """A static member has another id now, which the line does not show: if it led, the leader is not known."""
    kernel = group.kernel
    if kernel is not None and kernel.led.has(kernel.current, body["member"]):
        group.kernel = with_leader(kernel, UNKNOWN_MEMBER)
    return {}


def on_unchecked_step(group: LoggedGroup, body: Body) -> dict[str, Any]:
    """Nothing that can be checked."""
    return {}


STEP_HANDLERS = {
    "prepare": on_prepare,
    "complete": on_complete,
    "empty": on_empty,
    "publish": on_publish,
    "unregister": on_unregister,
    "replace": on_replace,
    "forget": on_unchecked_step,
    "expel": on_unchecked_step,
    "expel-unsynced": on_unchecked_step,
}


def kernel_at_generation(group: LoggedGroup, generation: int) -> Kernel:
    """The kernel in this generation: the one that is known, or one of which nothing else is."""
    known = group.kernel
    return known if known is not None and known.current == generation else Kernel(current=generation)


def check_generation(group: LoggedGroup, generation: int) -> dict[str, Any]:
    """The generation is the next one, where the last is known and no missing lines explain another one."""
    if group.kernel is None or generation == 1 or generation > group.kernel.current + 1:
        return {}
    return {"each completed join phase counts one": group.kernel.current + 1 == generation}


def apply_move(group: LoggedGroup, move: KernelStep) -> None:
    """Go on after a move; of the kernel's past only the present generation is kept."""
    after = move.after
    current = after.current
    led = finite_relation(*((current, *each) for each in after.led.suffixes(current)))  # type: ignore[attr-defined]
    group.kernel = Kernel(current=current, open=after.open, led=led, published=NO_MEMBERS)


def with_leader(kernel: Kernel, leader: str | None) -> Kernel:
    """The kernel once it is known, or not known any more, who leads the present generation."""
    return Kernel(
        kernel.current, kernel.open, led=finite_relation((kernel.current, leader)), published=kernel.published
    )
