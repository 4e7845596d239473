"""Over the network, scenarios that wait for clean-up passes and random schedules go on side by side."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.target import Description
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.play import LoopLagMonitor
from fencepost.conformance.run.pool import CrashMonitor, RunCallback, ScenarioPool, TargetGone
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.run_state import RunState
from fencepost.conformance.subject import Scenario, ScenarioRun, select_scenarios
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.traces.events import Header, Order
from fencepost.traces.verdict import CheckResult, CheckStatus, TraceVerdict

DESCRIPTION = Description("target", Order.INTERVALS, "monotonic", {}, BUNDLED_SETTINGS, "topic")
WAITING = next(one for one in ALL if one.name == "explicit-retention-expires")
"""A scenario that waits for a clean-up pass, here for 25 s; any other takes 1 s."""
BRIEF = next(one for one in ALL if one.name == "heartbeat-in-stable")
REQUIREMENTS = [CATALOGUE[each] for each in (*WAITING.requirements, *BRIEF.requirements)]
HEADER = Header("target", Order.INTERVALS, "monotonic", BUNDLED_SETTINGS, 2_000)


class SlowPool(ScenarioPool):
    """A pool whose scenarios pass after their time, or end with the target."""

    crashes = False

    async def play_all(self, scenarios: Sequence[Scenario], attempt: str, on_run: RunCallback) -> None:
        for scenario in scenarios:
            await asyncio.sleep(25 if scenario is WAITING else 1)
            if self.crashes and scenario is WAITING:
                raise TargetGone("the target stopped answering")
            checks = tuple(CheckResult(each, 1, CheckStatus.PASS) for each in scenario.requirements)
            on_run(ScenarioRun(scenario, HEADER, (), TraceVerdict((), checks, {}, events=3)))


class CrashingPool(SlowPool):
    """A pool whose target goes down while a clean-up pass is waited for."""

    crashes = True


class QuickRun(RemoteRun):
    """A run whose random schedules take 30 s; `times` has the second in which each part ended."""

    def __init__(self) -> None:
        super().__init__(Plan("kafka://127.0.0.1:1", schedules=20), Profile())
        self.times: dict[str, float] = {}

    async def play_schedules(self, state: RunState, *others: Any) -> None:
        await asyncio.sleep(30)
        self.times["schedules"] = asyncio.get_running_loop().time()
        await others[-1]()
        assert {each.scenario.name for each in state.runs} == {WAITING.name, BRIEF.name}


def play(pool_type: type[SlowPool], offered: frozenset[str]) -> dict[str, float]:
    """Play both scenarios and the schedules; when each part ended, in seconds of virtual time."""

    async def story() -> dict[str, float]:
        run = QuickRun()
        selection = select_scenarios(ALL, REQUIREMENTS, offered, smoke=False)
        selection = replace(selection, scenarios=(WAITING, BRIEF))
        state = RunState(run.plan, selection, lambda _: None)
        monitor = CrashMonitor(run.target, can_restart=False)
        pool = pool_type(run.target, DESCRIPTION, monitor, LoopLagMonitor(), None, "token", 2_000)
        other = ScenarioRun(Scenario("other", (), BRIEF.play), HEADER, (), TraceVerdict((), (), {}, events=3))
        try:
            await run.play_all(state, pool, other, offered)
        finally:
            run.times["all"] = asyncio.get_running_loop().time()
            run.judges.close()
        return run.times

    return run_virtual(story())


def test_random_schedules_begin_while_a_scenario_waits_for_a_cleanup_pass() -> None:
    assert play(SlowPool, frozenset({"retention"})) == {"schedules": 31, "all": 31}


def test_nothing_is_restarted_while_a_scenario_waits() -> None:
    assert play(SlowPool, frozenset({"retention", "restart"})) == {"schedules": 56, "all": 56}


def test_a_target_that_goes_down_ends_both() -> None:
    with pytest.raises(TargetGone, match="stopped answering"):
        play(CrashingPool, frozenset({"retention"}))
