"""Fail-overs in the explored world: with Kafka a generation may have two leaders, if it is stored early it has one."""

from dataclasses import replace

import pytest

from fencepost.model.classic.coordinator import group_log
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.explore.group_system import FailoverModel, group_system
from fencepost.model.classic.explore.properties import ONE_LEADER_EVER, PROPERTIES
from fencepost.model.classic.explore.state_layout import Bounds, ModelConfig, untimed_member
from fencepost.model.explore.engine import replay_path
from fencepost.model.explore.search import Exploration, PlainSearch
from fencepost.model.explore.transition_system import PropertyKind
from fencepost.model.explore.transition_tables import TransitionTables
from tests.model.proofs.mutation import mutant

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
