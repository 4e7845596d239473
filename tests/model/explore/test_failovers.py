"""Fail-overs in the explored world: with Kafka a generation may have two leaders, if it is stored early it has one."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from fencepost.model.classic.coordinator import group_log
from fencepost.model.classic.core import join_phase, membership
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.explore.group_system import FailoverModel, group_system
from fencepost.model.classic.explore.history import (
    INSTANCES,
    ViolationPath,
    find_violations,
    search_instance,
    system_with_history,
)
from fencepost.model.classic.explore.properties import ONE_LEADER_EVER, PROPERTIES
from fencepost.model.classic.explore.state_layout import Bounds, ModelConfig, untimed_member
from fencepost.model.classic.member import member as members
from fencepost.model.classic.proofs.induction import STATEMENTS
from fencepost.model.explore.engine import apply_transition, replay_path, transitions_from
from fencepost.model.explore.search import Exploration, PlainSearch, Row
from fencepost.model.explore.transition_system import PropertyKind
from fencepost.model.explore.transition_tables import TransitionTables
from fencepost.model.statement import Statement
from tests.support.edits import mutant

ONE = ModelConfig((replace(untimed_member(), requires_id=False),), heartbeats=False)
TWO = ModelConfig((ONE.members[0], untimed_member()), heartbeats=False)
SMALL = Bounds(ids=2, generations=2, requests=2, slots=1, failovers=1)
LARGER = Bounds(ids=2, generations=2, requests=2, slots=2, failovers=1)
ALWAYS = {one.name for one in PROPERTIES if one.kind is PropertyKind.ALWAYS}


def search(config: ModelConfig, bounds: Bounds, *, stores_early: bool) -> Exploration:
    return PlainSearch(TransitionTables(group_system(config, bounds, stores_early=stores_early))).run()


def violated_properties(found: Exploration) -> set[str]:
    return {finding.name for finding in found.discoveries} & ALWAYS


def test_the_shortest_run_in_which_kafka_tells_of_two_leaders() -> None:
    found = search(ONE, SMALL, stores_early=False)
    assert violated_properties(found) == {ONE_LEADER_EVER.name}
    (finding,) = (one for one in found.discoveries if one.name == ONE_LEADER_EVER.name)
    assert [step.label for step in replay_path(found.tables, finding)] == [
        "A joins",
        "A gets join.new",
        "timer.initial-delay",
        "the coordinator fails over",
        "A gets join.new",
        "timer.initial-delay",
    ]


def test_a_generation_that_is_stored_early_has_one_leader_for_ever() -> None:
    found = search(ONE, SMALL, stores_early=True)
    assert violated_properties(found) == set() and found.finished
    assert ONE_LEADER_EVER.premise in {finding.name for finding in found.discoveries}


@pytest.mark.slow
@pytest.mark.parametrize(("stores_early", "broken"), [(False, {ONE_LEADER_EVER.name}), (True, set[str]())])
def test_with_two_members(stores_early: bool, broken: set[str]) -> None:
    found = search(TWO, LARGER, stores_early=stores_early)
    assert found.finished and found.states > 300_000
    assert violated_properties(found) == broken


def test_a_record_that_forgets_the_generation_is_found() -> None:
    with mutant(group_log.group_record, "generation=group.generation", "generation=0"):
        assert ONE_LEADER_EVER.name in violated_properties(search(ONE, SMALL, stores_early=True))


def test_no_coordinator_is_lost_more_often_than_the_bounds_say() -> None:
    system = group_system(ONE, SMALL)
    world = FailoverModel(ONE, SMALL, Dialect())
    (first,) = world.failover_transitions(system.initial[0])
    assert world.failover_transitions(dict(first.writes)[0]) == ()


# --- Real breaches of the proof's statements: found in broken cores, replayed step by step; none in the shipped one.

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
