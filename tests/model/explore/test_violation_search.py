"""Real breaches of the proof's statements: found in broken cores, replayed step by step; none in the shipped one."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from fencepost.model.classic.core import join_phase, membership
from fencepost.model.classic.explore.history import (
    INSTANCES,
    ViolationPath,
    find_violations,
    search_instance,
    system_with_history,
)
from fencepost.model.classic.member import member as members
from fencepost.model.classic.proofs.induction import STATEMENTS
from fencepost.model.explore.engine import apply_transition, transitions_from
from fencepost.model.explore.search import Row
from fencepost.model.statement import Statement
from tests.model.proofs.mutation import mutant

BY_ID = {statement.id: statement for statement in STATEMENTS}
BROKEN_HANDLERS: list[tuple[Callable[..., Any], str, str, str, str, int]] = [
    (membership.commit, "request.generation != group.generation", "False", "T2", "one member", 15),
    (join_phase.complete_join, "join=0, is_new", "is_new", "group-parked", "one member", 6),
    (join_phase.complete_join, "group.generation + 1", "group.generation", "join-response", "one member", 6),
    (members.lose_membership, "id=None", "id=member.settings.instance", "member-id", "one static member", 1),
]


def replay_steps(breach: ViolationPath, statement: Statement) -> list[bool]:
    """Take the steps again, one by one; whether the statement holds at the start and after each."""
    system = system_with_history(breach.instance.config, breach.instance.bounds, [statement])
    (check,) = system.checks
    rows: list[Row] = [system.initial, *(step.row for step in breach.steps)]
    for (before, row), step in zip(pairwise(rows), breach.steps, strict=True):
        assert row in [
            apply_transition(before, move) for move in transitions_from(system, before) if move.label == step.label
        ]
    return [check.holds(*(row[column] for column in check.columns)) for row in rows]


@pytest.mark.parametrize(("function", "before", "after", "broken", "instance", "steps"), BROKEN_HANDLERS)
def test_the_shortest_breach_replays(
    function: Callable[..., Any], before: str, after: str, broken: str, instance: str, steps: int
) -> None:
    statement = BY_ID[broken]
    with mutant(function, before, after):
        found = find_violations([statement])
        (breach,) = found.violations
        assert (breach.statement, breach.instance.name, len(breach.steps)) == (broken, instance, steps)
        assert replay_steps(breach, statement) == [True] * steps + [False]
    with pytest.raises(AssertionError):
        replay_steps(breach, statement)


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: instance.name)
def test_every_statement_holds_wherever_the_shipped_core_gets(instance: Any) -> None:
    found, states = search_instance(STATEMENTS, instance, 1_500)
    assert found == []
    assert states > 1_500


def test_the_bound_is_kept_and_told() -> None:
    """The instances are searched level by level: a level may go beyond the bound, and no further one is begun."""
    with mutant(membership.commit, "request.generation != group.generation", "False"):
        found = find_violations([BY_ID["T2"]], limit=100)
    assert found.violation_of("T2") is None
    assert 4 * 100 < found.states < 4 * 1_000
