"""The plain wordings are false, and true within their scope."""

import pytest

from fencepost.model.classic.theorems.lemmas import STRENGTHENING
from fencepost.model.classic.theorems.non_theorems import (
    FALSE_THEOREMS,
    FalseTheorem,
    deleted,
    leader_renamed,
    written_twice,
)
from fencepost.model.classic.theorems.ownership_lemmas import CLAIMING
from fencepost.model.classic.theorems.scripted_run import Story
from fencepost.model.classic.theorems.statements import THEOREMS


@pytest.mark.parametrize("false", FALSE_THEOREMS, ids=lambda false: f"{false.statement.id}-{false.story.__name__}")
def test_the_story_breaks_it(false: FalseTheorem) -> None:
    assert false.story().breaches(false.statement)


@pytest.mark.parametrize("story", [written_twice, leader_renamed], ids=lambda story: story.__name__)
def test_within_one_tenure_and_life_everything_proved_holds(story: object) -> None:
    assert callable(story)
    told: Story = story()
    assert [one.id for one in (*THEOREMS, *STRENGTHENING, *CLAIMING) if told.breaches(one)] == []


def test_the_story_of_t5_is_short() -> None:
    assert len(written_twice().lines) < 50
    assert any(line.startswith("deletion") for line in deleted().lines)
