"""Tours played on the bundled coordinator: every state of a small one under every input, and nothing to object to."""

from collections import Counter

import pytest

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.virtual import run_virtual
from fencepost.conformance.bundled_run import BUNDLED_SETTINGS
from fencepost.conformance.execution import Played, play
from fencepost.conformance.touring import coordinator_tours, scenarios, timed
from fencepost.model.explore.coordinator_tour import Universe


def played(universe: Universe) -> list[Played]:
    """All tours over the universe, each in a group of its own on one coordinator."""
    tours = coordinator_tours(BUNDLED_SETTINGS, universe)

    async def tour() -> list[Played]:
        target = InProcessTarget(BUNDLED_SETTINGS)
        description = await target.open()
        plays = scenarios(tours, timed(BUNDLED_SETTINGS, universe))
        found = [await play(one, target, description, one.name, grace=0) for one in plays]
        await target.close()
        return found

    return run_virtual(tour())


@pytest.mark.parametrize("universe", [Universe(1, 2, 2), Universe(2, 1, 1)], ids=["one member", "two members"])
def test_the_bundled_coordinator_on_tour(universe: Universe) -> None:
    runs = played(universe)
    assert [fault for run in runs for fault in run.verdict.faults] == []
    assert {(run.blocked, run.unsupported, run.verdict.inconclusive) for run in runs} == {("", "", ())}
    rules = sum((Counter(run.verdict.rules) for run in runs), Counter[str]())
    assert {"join.stable.leader", "commit.completing", "sync.other-generation", "timer.session"} <= set(rules)
