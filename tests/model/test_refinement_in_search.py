"""Each step of a bounded search is some actions of the kernel, from every state, with the past of one way there."""

from collections import Counter
from random import Random

import pytest

from fencepost.model.classic.core.state import CommitResponse, JoinResponse, SyncRequest
from fencepost.model.classic.explore.group_system import group_system
from fencepost.model.classic.explore.state_layout import (
    Bounds,
    CoordinatorState,
    IncomingResponse,
    ModelConfig,
    ProcessState,
    untimed_member,
)
from fencepost.model.classic.kernel.refinement import KernelRun, follow_commit, follow_coordinator, follow_member
from fencepost.model.classic.member.member import PartitionCommit, SentRequest
from fencepost.model.errors import Error
from fencepost.model.explore.engine import apply_transition
from fencepost.model.explore.search import Row
from fencepost.model.explore.transition_system import Action, Transition

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
