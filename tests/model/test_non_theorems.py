"""The plain wordings are false, and true within their scope."""

import pytest

from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.theorems.lemmas import LEMMAS
from fencepost.model.classic.theorems.non_theorems import (
    FALSE_THEOREMS,
    FalseTheorem,
    coordinator_failover,
    double_commit,
    group_deletion,
    leader_id_change,
)
from fencepost.model.classic.theorems.ownership_lemmas import OWNERSHIP_LEMMAS
from fencepost.model.classic.theorems.scripted_run import ScriptedRun
from fencepost.model.classic.theorems.statements import THEOREMS, one_leader


@pytest.mark.parametrize("false", FALSE_THEOREMS, ids=lambda false: f"{false.statement.id}-{false.script.__name__}")
def test_the_story_breaks_it(false: FalseTheorem) -> None:
    assert false.script().violations_of(false.statement)


@pytest.mark.parametrize("story", [double_commit, leader_id_change], ids=lambda story: story.__name__)
def test_within_one_tenure_and_life_everything_proved_holds(story: object) -> None:
    assert callable(story)
    told: ScriptedRun = story()
    assert [one.id for one in (*THEOREMS, *LEMMAS, *OWNERSHIP_LEMMAS) if told.violations_of(one)] == []


def test_kafka_tells_of_two_leaders_within_twelve_steps() -> None:
    run = coordinator_failover()
    assert len(run.log) <= 12
    assert run.violations_of(one_leader)


def test_a_generation_that_is_stored_early_is_not_given_again() -> None:
    """The same run in the dialect of which T1 is proved across fail-overs."""
    run = coordinator_failover(Dialect(generation_waits_for_assignment=False))
    assert run.violations_of(one_leader) == []
    assert run.log[-1] == "coordinator: timer.rebalance, generation 2"


def test_the_story_of_t5_is_short() -> None:
    assert len(double_commit().log) < 50
    assert any(line.startswith("deletion") for line in group_deletion().log)
