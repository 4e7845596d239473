"""A target that goes down is no reason to play everything in ever smaller groups."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from fencepost.adapters.address import TargetError
from fencepost.adapters.target import Description
from fencepost.conformance.run.crashes import CrashMonitor
from fencepost.conformance.run.play import LoopLagMonitor
from fencepost.conformance.run.pool import (
    ScenarioPool,
    Suspect,
    find_crashing_scenario,
    order_suspects,
    separate_moments,
)
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.verdict import TraceVerdict

DESCRIPTION = Description("target", Order.INTERVALS, "monotonic", {}, Settings(), "topic")
LONG_SECONDS = 40.0
"""How long a scenario takes that does not bring the target down."""


def scenario(name: str) -> Scenario:
    return Scenario(name, (), AsyncMock())


def suspects(count: int) -> list[Suspect]:
    """So many suspects, some of which were begun at the same time."""
    return [Suspect(scenario(str(each)), seconds=0.5 + each // 3 / 10) for each in range(count)]


@dataclass
class Trials:
    """Trials of suspects, some of which bring the target down; keeps who was tried."""

    crashing: Sequence[str]
    made: list[list[str]] = field(default_factory=list)

    async def try_out(self, some: Sequence[Suspect]) -> bool:
        self.made.append([each.scenario.name for each in some])
        return not set(self.made[-1]).isdisjoint(self.crashing)


@pytest.mark.parametrize("late", [0.0, -0.15, 0.15, 0.4, 2.0])
@pytest.mark.parametrize("crashing", range(0, 100, 9))
async def test_the_moment_tells_who_it_was(crashing: int, late: float) -> None:
    trials, some = Trials([str(crashing)]), suspects(100)
    moments = separate_moments(some)
    ordered = order_suspects(some, moments, moments[some[crashing].scenario] + late)
    found = await find_crashing_scenario(ordered, trials.try_out)
    assert found is some[crashing].scenario
    assert len(trials.made) <= (1 if not late else 12)


async def test_one_that_was_not_played_before_is_tried_last() -> None:
    some = suspects(5)
    moments = separate_moments(some[1:])
    assert order_suspects(some, moments, 0.0)[-1] is some[0]


async def test_a_crash_that_does_not_come_again_is_nobodys() -> None:
    trials = Trials([])
    assert await find_crashing_scenario(suspects(7), trials.try_out) is None
    assert [len(each) for each in trials.made] == [1, 2, 4]


def test_moments_are_apart_and_as_early_as_can_be() -> None:
    some = [Suspect(scenario("old"), 30.0), *suspects(5)]
    moments = separate_moments(some)
    assert [round(each, 3) for each in moments.values()] == [0.5, 0.6, 0.7, 0.8, 0.9, 30.0]
    assert list(moments)[-1].name == "old"


# --- the pool


class FragilePool(ScenarioPool):
    """Plays scenarios named "crash..." for 0.6 s, until they bring the target down, and all others for a long time."""

    async def record(self, scenario: Scenario, attempt: str, restart: Any = None) -> tuple[ScenarioRun, float]:
        loop = asyncio.get_running_loop()
        begun, crashes = loop.time(), scenario.name.startswith("crash")
        PLAYED.append((scenario.name, attempt))
        events = [Event(0, 0, 0, "", Kind.REQUEST, "JoinGroup", 5, {})]
        for _ in range(6 if crashes else int(LONG_SECONDS * 10)):
            await asyncio.sleep(0.1)
            if DOWN.is_set():
                break
        if crashes and not DOWN.is_set():
            DOWN.set()
        if DOWN.is_set():
            time = int((loop.time() - begun) * 1000)
            events.append(Event(1, time, 0, "", Kind.FAULT, "closed", 0, {}, of=0))
        header = Header("", Order.INTERVALS, "monotonic", Settings(), 0)
        return ScenarioRun(scenario, header, tuple(events), TraceVerdict((), (), {})), begun


DOWN = asyncio.Event()
"""Whether the target is down."""
PLAYED: list[tuple[str, str]] = []
"""The scenarios that were played, each with the name of the attempt."""


@pytest.fixture
def pool() -> Iterator[FragilePool]:
    target = AsyncMock()
    target.channel = Mock(return_value=Mock(send=Mock(side_effect=TargetError("no more")), close=AsyncMock()))
    target.is_alive.side_effect = lambda: not DOWN.is_set()
    target.restart.side_effect = DOWN.clear
    monitor = CrashMonitor(target, can_restart=True)
    yield FragilePool(target, DESCRIPTION, monitor, LoopLagMonitor(), None, "token", 0)
    PLAYED.clear()
    DOWN.clear()


async def test_what_does_not_bring_the_target_down_is_played_once_more_at_most(pool: FragilePool) -> None:
    calm = [f"calm-{each}" for each in range(100)]
    runs: list[ScenarioRun] = []
    begun = asyncio.get_running_loop().time()
    await pool.play_all([scenario(each) for each in [*calm[:60], "crash-1", *calm[60:], "crash-2"]], "run", runs.append)
    assert sorted(run.scenario.name for run in runs) == sorted([*calm, "crash-1", "crash-2"])
    assert sorted(run.scenario.name for run in runs if run.crashed) == ["crash-1", "crash-2"]
    # No group is met a second time, for the target may remember it.
    assert len(set(PLAYED)) == len(PLAYED)
    assert asyncio.get_running_loop().time() - begun < 2 * LONG_SECONDS


async def test_without_a_trial_that_shows_it_they_are_played_in_smaller_groups(
    pool: FragilePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScenarioPool, "try_out", AsyncMock(return_value=False))
    runs: list[ScenarioRun] = []
    await pool.play_all([scenario(each) for each in ("a", "b", "crash", "c")], "run", runs.append)
    assert sorted(run.scenario.name for run in runs) == ["a", "b", "c", "crash"]
    assert [run.scenario.name for run in runs if run.crashed] == ["crash"]
