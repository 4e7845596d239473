"""A target that goes down is no reason to play everything in ever smaller groups."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import AsyncMock

import pytest

from fencepost.adapters.target import Description
from fencepost.conformance.execution.crash_monitor import CrashMonitor
from fencepost.conformance.execution.crash_search import Suspect, find_crashing_scenario, separate_moments
from fencepost.conformance.execution.loop_lag import LoopLagMonitor
from fencepost.conformance.execution.pool import RunInterrupted, ScenarioPool
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.scenario_run import ScenarioRun
from fencepost.model.settings import Settings
from fencepost.traces.events import Header, Order
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
    """Trials of suspects, of which some bring the target down, a little later than they should; keeps who was tried."""

    crashing: Mapping[str, float]
    made: list[list[str]] = field(default_factory=list)

    async def try_out(self, delays: Mapping[Suspect, float]) -> float | None:
        assert all(delay >= 0 for delay in delays.values())
        self.made.append([each.scenario.name for each in delays])
        ends = (
            delay + each.seconds + self.crashing[each.scenario.name]
            for each, delay in delays.items()
            if each.scenario.name in self.crashing
        )
        return min(ends, default=None)


async def found_in(trials: Trials, some: Sequence[Suspect]) -> str | None:
    found = await find_crashing_scenario(some, trials.try_out)
    return found.name if found is not None else None


@pytest.mark.parametrize("crashing", range(0, 100, 9))
async def test_the_moment_tells_who_it_was(crashing: int) -> None:
    trials = Trials({str(crashing): 0.0})
    assert await found_in(trials, suspects(100)[::-1]) == str(crashing)
    assert [len(each) for each in trials.made] == [100, 1]


@pytest.mark.parametrize("late", [-0.15, 0.15, 0.4, 2.0])
async def test_jitter_takes_a_few_trials_more(late: float) -> None:
    trials = Trials({"50": late})
    assert await found_in(trials, suspects(100)) == "50"
    assert len(trials.made) <= 16


async def test_another_may_be_found_first() -> None:
    trials = Trials({"10": 0.0, "30": 0.4, "31": 0.3})
    assert await found_in(trials, suspects(100)) == "10"


async def test_a_crash_that_does_not_come_again_is_nobodys() -> None:
    trials = Trials({})
    assert await found_in(trials, suspects(7)) is None
    assert [len(each) for each in trials.made] == [7]


async def test_a_single_suspect_needs_no_trial() -> None:
    trials = Trials({})
    assert await found_in(trials, suspects(1)) == "0"
    assert not trials.made


def test_moments_are_apart_and_as_early_as_can_be() -> None:
    some = [Suspect(scenario("old"), 30.0), *suspects(5)]
    moments = separate_moments(some)
    assert [round(each, 3) for each in moments.values()] == [0.5, 0.6, 0.7, 0.8, 0.9, 30.0]
    assert list(moments)[-1].scenario.name == "old"


# --- the pool


class FragilePool(ScenarioPool):
    """Plays scenarios named "crash..." for 0.6 s, until they bring the target down, and all others for a long time."""

    async def play(self, scenario: Scenario, attempt: str, restart: Any = None, *, alone: bool = True) -> ScenarioRun:
        loop = asyncio.get_running_loop()
        begun, crashes = loop.time(), scenario.name.startswith("crash")
        PLAYED.append((scenario.name, attempt))
        for _ in range(6 if crashes else int(LONG_SECONDS * 10)):
            await asyncio.sleep(0.1)
            if self.crash_monitor.is_down:
                raise RunInterrupted(Suspect(scenario, loop.time() - begun))
        self.crash_monitor.is_down = self.crash_monitor.is_down or crashes
        if crashes and not alone:
            raise RunInterrupted(Suspect(scenario, loop.time() - begun))
        header = Header("", Order.INTERVALS, "monotonic", Settings(), 0)
        return ScenarioRun(scenario, header, (), TraceVerdict((), (), {}), crashed=crashes)


PLAYED: list[tuple[str, str]] = []
"""The scenarios that were played, each with the name of the attempt."""


@pytest.fixture
def pool() -> Iterator[FragilePool]:
    target = AsyncMock()
    yield FragilePool(target, DESCRIPTION, CrashMonitor(target, can_restart=True), LoopLagMonitor(), None, "token", 0)
    PLAYED.clear()


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
    monkeypatch.setattr(ScenarioPool, "try_out", AsyncMock(return_value=None))
    runs: list[ScenarioRun] = []
    await pool.play_all([scenario(each) for each in ("a", "b", "crash", "c")], "run", runs.append)
    assert sorted(run.scenario.name for run in runs) == ["a", "b", "c", "crash"]
    assert [run.scenario.name for run in runs if run.crashed] == ["crash"]
