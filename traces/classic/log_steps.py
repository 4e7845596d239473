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
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.model.classic.core.state import CommitResponse, Group, JoinResponse
from fencepost.model.classic.kernel.actions import (
    FiniteRelation,
    Kernel,
    KernelStep,
    complete,
    complete_empty,
    finite_relation,
    prepare,
    publish,
)
from fencepost.model.classic.kernel.invariants import (
    OPAQUE_READER,
    KernelRun,
    begin_kernel_run,
    follow_commit,
    follow_coordinator,
)
from fencepost.model.classic.messages import SyncGroup
from fencepost.model.errors import Error
from fencepost.model.groups.messages import OffsetCommit
from fencepost.traces.events import Body, Event
from fencepost.traces.judge.search.configuration import FreshId, Path
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


# --- The steps of an accepted trace, checked against the kernel of the protocol (`model.classic.kernel.refinement`).
#
# The judge reports every step that it settled on. What the members of a trace do is their own affair: their commits are
# taken as sent, and bytes as shares that no other member has. So this is about the coordinator alone. Commits within a
# transaction are left out, since no barrier holds them back while an assignment is awaited (coordinator.md 2.12).

ACCEPTED = frozenset({"commit.stable", "commit.preparing"})
"""The rules by which a commit with a generation is accepted."""


@dataclass(slots=True)
class KernelCheck:
    """The shadows of the groups in a trace. Raises RefinementError at a step that no action of the kernel explains."""

    runs: dict[str, KernelRun] = field(default_factory=dict)
    groups: dict[str, Group | None] = field(default_factory=dict)
    steps: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    fresh_starts: int = 0
    """How often a shadow had to begin with a group that had a past: after a restart, or at a gap."""

    def __call__(self, group: str, step: Path) -> None:
        """Take one step."""
        if step.start is None or step.outcome is None:
            return
        start, end = step.start.group, step.outcome.state.group
        shadow = self.run_of(group, start)
        self.groups[group] = end
        if step.rule.startswith("load.") or end is None:
            self.runs.pop(group, None)
            return
        self.steps += 1
        self.rules[step.rule] += 1
        responses = [reply.response for reply in step.outcome.replies if isinstance(reply.response, JoinResponse)]
        sender = step.request.core.member if isinstance(step.request, SyncGroup) else None
        shadow = follow_coordinator(shadow, start or Group(), end, responses, sender, OPAQUE_READER)
        if isinstance(step.request, OffsetCommit) and step.rule in ACCEPTED:
            shadow = apply_commit(shadow, step.request)
        self.runs[group] = shadow

    def run_of(self, group: str, start: Group | None) -> KernelRun:
        """The shadow of a group that is like this now."""
        known = self.runs.get(group)
        last = self.groups.get(group)
        if known is not None and last is not None and start is not None:
            known = with_resolved_ids(known, last, start)
            if known is not None:
                return known
        self.fresh_starts += start is not None and start.generation > 0
        return begin_kernel_run(start or Group(), OPAQUE_READER)


def with_resolved_ids(shadow: KernelRun, last: Group, start: Group) -> KernelRun | None:
    """The shadow with ids that have come to light; None if the group is another one."""
    persons = dict(shadow.identities)
    if (last.generation, last.phase) != (start.generation, start.phase):
        return None
    if {slot.id for slot in last.slots} == {slot.id for slot in start.slots}:
        return shadow
    for slot, now in zip(last.slots, start.slots, strict=False):
        if slot.id != now.id:
            if not isinstance(slot.id, FreshId):
                return None
            persons[now.id] = shadow.identity_of(slot.id)
    return replace(shadow, identities=persons)


def apply_commit(shadow: KernelRun, request: OffsetCommit) -> KernelRun:
    """The shadow after a commit was accepted that its sender was free to send."""
    sender, generation = shadow.identity_of(request.core.member), request.core.generation
    sent = replace(shadow, kernel=replace(shadow.kernel, sent=shadow.kernel.sent.plus(sender, generation, sender)))
    return follow_commit(sent, request.core, CommitResponse(Error.NONE), (sender,))
