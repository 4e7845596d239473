"""The plain wordings are false, and true within their scope."""

import pytest

from fencepost.model.claiming import CLAIMING
from fencepost.model.false_theorems import FALSE_THEOREMS, FalseTheorem, deleted, leader_renamed, written_twice
from fencepost.model.invariants import THEOREMS
from fencepost.model.story import Story
from fencepost.model.strengthening import STRENGTHENING


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
