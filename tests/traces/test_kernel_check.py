"""The steps of accepted traces refine the kernel: random schedules, and every scenario of the kit."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BundledRun
from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core.state import FREE, CommitResponse, Group, Holder, JoinResponse, Phase, Slot
from fencepost.model.classic.messages import SyncGroup
from fencepost.model.errors import Error
from fencepost.model.groups.messages import CommitRequest, OffsetCommit
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.search.configuration import FreshId, Path
from tests.support.plain_values import build
from tests.support.random_client import random_trace
from tests.support.refinement import (
    OPAQUE_READER,
    KernelRun,
    RefinementError,
    begin_kernel_run,
    follow_commit,
    follow_coordinator,
)

# --- The steps of an accepted trace, checked against the kernel of the protocol (`tests.support.refinement`).
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


STEPS = 80


def check_against_kernel(header: Header, events: Iterable[Event]) -> KernelCheck:
    """The kernel runs of a trace, as far as the judge could follow it. Raises RefinementError."""
    check = KernelCheck()
    Judge(header, on_step=check, check_repetitions=True).judge_events(events)
    return check


@pytest.mark.slow
def test_random_schedules_refine() -> None:
    rules: Counter[str] = Counter()
    for seed in range(40):
        rules += check_against_kernel(*random_trace(random.Random(seed), STEPS)).rules
    assert rules.total() > 2_000
    assert {"sync.leader", "join.replace.completing", "timer.rebalance", "commit.stable"} <= set(rules)


@pytest.mark.slow
def test_every_scenario_refines() -> None:
    run = BundledRun(Plan(BUNDLED), Profile())
    rules: Counter[str] = Counter()
    for scenario in ALL:
        played = run_virtual(run.play(scenario, "run"))
        rules += check_against_kernel(played.header, played.events).rules
    assert rules.total() > 2_000
    assert {"join.replace.stable", "leave.member", "timer.sync", "commit.preparing", "join.evicted"} <= set(rules)


STABLE = build(Group, Phase.STABLE, 4, leader="a", slots=(build(Slot, Holder.MEMBER, "a"), FREE))


def step(before: Group, after: Group, rule: str, request: OffsetCommit | None = None) -> Path:
    """A step of the model as the judge tells of it."""
    return Path(rule, 1, None, GroupState(before), StepResult(GroupState(after), (), rule), request)


def commit(generation: int, member: str = "a") -> OffsetCommit:
    """OffsetCommit."""
    return OffsetCommit("g", build(CommitRequest, 1, member, None, generation), 8, ())


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (step(STABLE, STABLE, "commit.stable", commit(3)), "its generation is current"),
        (step(STABLE, STABLE, "commit.stable", commit(4, "b")), "its sender is a member"),
        (step(STABLE, replace(STABLE, generation=3), "sync.leader"), "current"),
        (step(STABLE, replace(STABLE, phase=Phase.COMPLETING), "sync.leader"), "open"),
    ],
)
def test_steps_that_no_action_explains_are_told(told: Path, reason: str) -> None:
    with pytest.raises(RefinementError, match=reason):
        KernelCheck()("g", told)


def test_an_id_that_comes_to_light_is_the_member_it_was() -> None:
    shadowed = KernelCheck()
    unseen = replace(STABLE, slots=(STABLE.slots[0], build(Slot, Holder.MEMBER, FreshId(7))))
    known = replace(STABLE, slots=(STABLE.slots[0], build(Slot, Holder.MEMBER, "b")))
    shadowed("g", step(STABLE, unseen, "join.new"))
    shadowed("g", step(known, known, "commit.stable", commit(4, "b")))
    assert shadowed.fresh_starts == 1
    shadowed("g", step(STABLE, STABLE, "commit.stable", commit(4)))
    assert shadowed.fresh_starts == 2
