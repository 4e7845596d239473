"""Each step of coordinator and member is some actions of the kernel, and the steps of broken ones are not."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from fencepost.model.classic.core import join_phase
from fencepost.model.classic.core.membership import commit
from fencepost.model.classic.core.state import (
    FREE,
    CommitResponse,
    Context,
    Group,
    Holder,
    JoinResponse,
    Phase,
    Slot,
    Step,
    SyncRequest,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.explore.group_system import group_system
from fencepost.model.classic.explore.state_layout import (
    Bounds,
    CoordinatorState,
    IncomingResponse,
    ModelConfig,
    ProcessState,
    untimed_member,
)
from fencepost.model.classic.kernel.actions import ACTIONS
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberStep, PartitionCommit, SentRequest
from fencepost.model.errors import Error
from fencepost.model.explore.engine import apply_transition
from fencepost.model.explore.search import Row
from fencepost.model.explore.transition_system import Action, Transition
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.sorts import MemberId
from tests.support import random_run
from tests.support import refinement as invariants
from tests.support.plain_values import build
from tests.support.random_run import OLDER, walk
from tests.support.refinement import (
    KernelAction,
    KernelRun,
    RefinementError,
    begin_kernel_run,
    follow_commit,
    follow_coordinator,
    follow_member,
    violated_invariants,
)

STEPS = 250


@pytest.mark.slow
@pytest.mark.parametrize("dialect", [Dialect(), OLDER], ids=["newer", "older"])
def test_random_walks_refine_and_take_every_action(monkeypatch: pytest.MonkeyPatch, dialect: Dialect) -> None:
    seen: Counter[str] = Counter()
    take = invariants.take_actions

    def counting(run: KernelRun, actions: Iterable[KernelAction]) -> KernelRun:
        listed = list(actions)
        seen.update(name for name, _ in listed)
        return take(run, listed)

    monkeypatch.setattr(invariants, "take_actions", counting)
    for seed in range(40):
        run = walk(seed, dialect=dialect)
        for _ in range(STEPS):
            run.random_event()
        assert violated_invariants(run.kernel_run.kernel) == []
    assert set(seen) == set(ACTIONS)


class Groups(RuleBasedStateMachine):
    """A group under rules that each do a good deal at once."""

    @initialize(seed=st.integers(0, 2**32), older=st.booleans())
    def begin(self, seed: int, older: bool) -> None:
        self.run = walk(seed, dialect=OLDER if older else Dialect())

    @rule()
    def settle(self) -> None:
        self.run.settle()

    @rule(process=st.integers(0, 2), act=st.sampled_from(["ask", "poll", "restart", "leave", "disconnect", "commit"]))
    def act(self, process: int, act: str) -> None:
        self.run.act(process, act)

    @rule(process=st.integers(0, 2), act=st.sampled_from(["ask", "restart", "leave"]))
    def change(self, process: int, act: str) -> None:
        self.run.act(process, act)
        self.run.settle()

    @precondition(lambda self: self.run.requests)
    @rule(data=st.data())
    def repeat_a_request(self, data: st.DataObject) -> None:
        self.run.deliver_request(data.draw(st.sampled_from(list(self.run.requests))))

    @precondition(lambda self: self.run.responses)
    @rule(data=st.data())
    def repeat_an_answer(self, data: st.DataObject) -> None:
        self.run.deliver_response(data.draw(st.integers(0, len(self.run.responses) - 1)))

    @precondition(lambda self: self.run.armed_timers())
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        self.run.expire(data.draw(st.sampled_from(self.run.armed_timers())))


TestGroups = Groups.TestCase
TestGroups.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


# --- what is not refined


def stale_commit(group: Group, request: object, context: Context) -> Step:
    """OffsetCommit without the check of the generation."""
    assert isinstance(request, CommitRequest)
    return commit(group, replace(request, generation=group.generation), context)


def anyones_sync(group: Group, request: SyncRequest, context: Context) -> Step:
    """SyncGroup that takes the assignment of any member."""
    if group.phase != Phase.COMPLETING:
        return sync(group, request, context)
    return replace(sync(replace(group, leader=request.member), request, context))


def take_any_response(name: str) -> Callable[..., MemberStep]:
    """A member that takes any answer of the right kind for the one that it waits for."""
    real: Callable[..., MemberStep] = getattr(members, name)

    def take(member: Member, handle: int, *rest: object) -> MemberStep:
        return real(member, member.waiting, *rest)

    return take


def ignore_claims(claimed: object, view: object, plan: tuple[object, ...], partition: int) -> bool:
    """An assignor that pays no heed to claims."""
    return bool(plan[partition] == view.id is not None)  # type: ignore[attr-defined]


def assign_everything(claimed: object, view: object, plan: object, partition: int) -> bool:
    """An assignor that gives everything to everyone."""
    return getattr(view, "id", None) is not None


def complete_without_generation(group: Group, context: Context) -> join_phase.Progress:
    """The end of the join phase without a new generation."""
    after, outputs = COMPLETE_JOIN(group, context)
    return replace(after, generation=group.generation), outputs


COMPLETE_JOIN = join_phase.complete_join


@pytest.mark.parametrize(
    ("module", "name", "mutant", "reason"),
    [
        (random_run, "commit", stale_commit, "its generation is current"),
        (random_run, "sync", anyones_sync, "the leader hands it in"),
        (members, "on_join_response", take_any_response("on_join_response"), "it claimed what it owns"),
        (members, "on_sync_response", take_any_response("on_sync_response"), "the assignment is known"),
        (members, "gets_partition", ignore_claims, "claims are respected"),
        (members, "gets_partition", assign_everything, "no partition goes to two"),
        (join_phase, "complete_join", complete_without_generation, "open"),
    ],
)
def test_broken_cores_do_not_refine(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, mutant: object, reason: str
) -> None:
    monkeypatch.setattr(module, name, mutant)
    found = []
    for seed in range(60):
        run = walk(seed)
        try:
            for _ in range(STEPS):
                run.random_event()
        except RefinementError as mismatch:
            found.append(str(mismatch))
    assert any(reason in each for each in found), found


def member(index: int, *, instance: str | None = None, assignment: tuple[bool, ...] | None = None) -> Slot:
    """A member of a group."""
    return build(Slot, Holder.MEMBER, f"m{index}", instance, assignment=assignment)


SLOTS = (member(0, assignment=(True, False)), member(1, instance="i"), FREE)
STABLE = build(Group, Phase.STABLE, 4, leader="m0", slots=SLOTS)


def test_a_group_that_was_loaded_goes_on() -> None:
    shadow = begin_kernel_run(STABLE)
    assert shadow.kernel.assigned.has(4, "m0", 0) and not shadow.kernel.open
    preparing = replace(STABLE, phase=Phase.PREPARING)
    assert follow_coordinator(shadow, STABLE, preparing).kernel.current == 4
    assert begin_kernel_run(replace(STABLE, phase=Phase.COMPLETING)).kernel.open
    with pytest.raises(RefinementError, match="no partition goes to two"):
        begin_kernel_run(replace(STABLE, slots=(STABLE.slots[0], member(1, assignment=(True, True)))))


def test_a_replaced_member_is_the_same_person_and_its_old_id_nobody() -> None:
    heir = replace(STABLE, slots=(STABLE.slots[0], replace(STABLE.slots[1], id=MemberId("m9")), FREE))
    shadow = follow_coordinator(begin_kernel_run(STABLE), STABLE, heir)
    assert (shadow.identity_of("m1"), shadow.identity_of("m9")) == (None, "m1")
    assert shadow.kernel.registered.has("m1")


@pytest.mark.parametrize(
    "after",
    [
        replace(STABLE, generation=3),
        replace(STABLE, phase=Phase.COMPLETING),
        replace(STABLE, phase=Phase.COMPLETING, generation=5, leader=MemberId("m7")),
    ],
    ids=["back", "open again", "a stranger leads"],
)
def test_steps_that_no_coordinator_takes(after: Group) -> None:
    with pytest.raises(RefinementError):
        follow_coordinator(begin_kernel_run(STABLE), STABLE, after)


# --- Each step of a bounded search is some actions of the kernel, from every state, with the past of one way there.

ACCEPTED = {"commit.stable", "commit.preparing"}


def follow_transition(run: KernelRun, row: Row, action: Action, transition: Transition) -> KernelRun:
    """The shadow after a move; raises RefinementError if no action of the kernel explains it."""
    writes = dict(transition.writes)
    for column, written in writes.items():
        before = row[column]
        if isinstance(before, ProcessState):
            sent = [SentRequest(each) for key, each in writes.items() if key != column and each is not None]
            run = follow_member(run, before.member, written.member, sent)
        elif isinstance(before, CoordinatorState):
            request = row[action.columns[1]] if len(action.columns) > 1 else None
            heard = [each.response for each in writes.values() if isinstance(each, IncomingResponse)]
            responses = [response for response in heard if isinstance(response, JoinResponse)]
            sender = request.member if isinstance(request, SyncRequest) else None
            run = follow_coordinator(run, before.group, written.group, responses, sender)
            if isinstance(request, PartitionCommit) and transition.rule in ACCEPTED:
                parts = [part for part, held in enumerate(request.partitions) if held]
                run = follow_commit(run, request.request, CommitResponse(Error.NONE), parts)
    return run


TWO = (untimed_member(), untimed_member(cooperative=False))
STATIC = untimed_member(instance="i")


@pytest.mark.parametrize(
    ("config", "bounds", "states"),
    [
        (ModelConfig((untimed_member(),), heartbeats=False), Bounds(ids=2, generations=3, requests=4), None),
        (ModelConfig((STATIC,), heartbeats=False), Bounds(ids=2, generations=3, requests=4), None),
        (ModelConfig(TWO, heartbeats=False), Bounds(ids=2, generations=3, requests=4), 12_000),
        (ModelConfig((STATIC, untimed_member()), partitions=2, heartbeats=False), Bounds(ids=3, generations=3), 12_000),
    ],
    ids=["one", "one static", "two", "two, one static"],
)
def test_every_step_of_a_bounded_search_refines(config: ModelConfig, bounds: Bounds, states: int | None) -> None:
    """All states of one process, some of two."""
    system = group_system(config, bounds)
    known: dict[tuple[str, Row], tuple[Transition, ...]] = {}
    shadows: dict[Row, KernelRun] = {system.initial: KernelRun()}
    waiting, rules, random = [system.initial], Counter[str](), Random(0)
    while waiting and (states is None or len(shadows) < states):
        # In any order where not all is seen, so that deep states are reached too.
        row = waiting.pop(random.randrange(len(waiting)) if random.random() < 0.2 else -1)
        for site in system.actions:
            read = tuple(row[column] for column in site.columns)
            if (site.name, read) not in known:
                known[site.name, read] = tuple(move for move in site.transitions(*read) if not move.cut)
            for move in known[site.name, read]:
                rules[move.rule] += 1
                shadow = follow_transition(shadows[row], row, site, move)
                target = apply_transition(row, move)
                if target not in shadows:
                    shadows[target] = shadow
                    waiting.append(target)
    assert {"sync.leader", "member.sync.answered"} <= set(rules)
    assert rules["commit.stable"] or states is not None
