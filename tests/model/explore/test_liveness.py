"""Once nothing changes any more, every fair run settles; and the check knows groups that do not."""

from dataclasses import replace

import pytest

from fencepost.model.classic.core.state import Context, Group, Step
from fencepost.model.classic.explore import coordinator_steps
from fencepost.model.classic.explore.liveness import check_liveness
from fencepost.model.classic.explore.state_layout import Bounds, ModelConfig, untimed_member

ONE = ModelConfig((untimed_member(),))
TWO = ModelConfig((untimed_member(), untimed_member()), heartbeats=False)
STATIC = ModelConfig((untimed_member(), untimed_member(instance="one")), heartbeats=False)
ONE_ROUND = Bounds(1, 1, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "bounds", "starts", "states", "cycles"),
    [
        (ONE, Bounds(1, 1, 3, 1), 172, 494, 0),
        (replace(ONE, members=(untimed_member(instance="one"),)), Bounds(2, 1, 3, 2), 361, 394, 0),
        (TWO, ONE_ROUND, 58, 6078, 0),
    ],
    ids=["one", "one static", "two"],
)
def test_every_fair_run_settles(config: ModelConfig, bounds: Bounds, starts: int, states: int, cycles: int) -> None:
    found = check_liveness(config, bounds)
    assert found.stalls == () and found.cut == 0 and found.finals > 0
    assert (found.starts, found.states, found.cycles) == (starts, states, cycles)


@pytest.mark.slow
def test_leaders_that_cannot_make_up_their_mind_keep_a_cooperative_group_busy() -> None:
    """A partition that changes hands in every round is given up in every round, and whoever gives up joins again."""
    fickle = check_liveness(TWO, ONE_ROUND, steady=False, only=(0, 1))
    assert fickle.stalls
    stall = fickle.stalls[0]
    assert stall.alive == ("A", "B") and len(stall.cycle) > 1


def test_a_sync_timer_that_does_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that dies before it syncs is waited for in vain (KAFKA-12890)."""

    def idle(group: Group, context: Context) -> Step:
        return Step(group, (), "timer.not-due")

    monkeypatch.setattr(coordinator_steps, "expire_sync", idle)
    monkeypatch.setattr(coordinator_steps, "expire_member", lambda group, index, context: idle(group, context))
    found = check_liveness(ONE, Bounds(1, 1, 2, 1))
    assert any(stall.alive == () for stall in found.stalls)
