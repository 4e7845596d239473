"""The plain wordings are false, and true within their scope."""

import pytest

from fencepost.model.classic.theorems.lemmas import LEMMAS
from fencepost.model.classic.theorems.non_theorems import (
    FALSE_THEOREMS,
    FalseTheorem,
    double_commit,
    group_deletion,
    leader_id_change,
)
from fencepost.model.classic.theorems.ownership_lemmas import OWNERSHIP_LEMMAS
from fencepost.model.classic.theorems.scripted_run import ScriptedRun
from fencepost.model.classic.theorems.statements import THEOREMS


@pytest.mark.parametrize("false", FALSE_THEOREMS, ids=lambda false: f"{false.statement.id}-{false.script.__name__}")
def test_the_story_breaks_it(false: FalseTheorem) -> None:
    assert false.script().violations_of(false.statement)


@pytest.mark.parametrize("story", [double_commit, leader_id_change], ids=lambda story: story.__name__)
def test_within_one_tenure_and_life_everything_proved_holds(story: object) -> None:
    assert callable(story)
    told: ScriptedRun = story()
    assert [one.id for one in (*THEOREMS, *LEMMAS, *OWNERSHIP_LEMMAS) if told.violations_of(one)] == []


def test_the_story_of_t5_is_short() -> None:
    assert len(double_commit().log) < 50
    assert any(line.startswith("deletion") for line in group_deletion().log)
