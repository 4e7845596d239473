"""The steps of accepted traces refine the kernel: random schedules, and every scenario of the kit."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BundledRun
from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core.state import FREE, Group, Holder, Phase, Slot
from fencepost.model.classic.kernel.invariants import RefinementError
from fencepost.model.groups.messages import CommitRequest, OffsetCommit
from fencepost.traces.classic.log_steps import KernelCheck
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.search.configuration import FreshId, Path
from tests.support.plain_values import build
from tests.support.random_client import random_trace

STEPS = 80


def check_against_kernel(header: Header, events: Iterable[Event]) -> KernelCheck:
    """The kernel runs of a trace, as far as the judge could follow it. Raises RefinementError."""
    check = KernelCheck()
    Judge(header, on_step=check).judge_events(events)
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
