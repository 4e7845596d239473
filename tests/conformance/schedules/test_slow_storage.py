"""Slow storage: answers come later and in no other order, and a target is blamed only for more than its grace."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from fencepost.adapters.classic.log import MemoryLog, SlowLog
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.virtual_clock import VirtualClock
from fencepost.conformance.classic.protocol import CLASSIC
from fencepost.conformance.classic.schedules.protocol import ClassicSchedules
from fencepost.conformance.cli import main
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.play import target_bench
from fencepost.conformance.run.schedule import ScheduleScope
from fencepost.conformance.subject import ScenarioRun
from fencepost.model.settings import Settings
from fencepost.traces.verdict import violations_in
from tests.support.served_coordinator import serve_in_thread

SLOW_MS, GRACE_MS = 40, 2_000
SETTINGS = Settings(min_session_timeout=300, initial_rebalance_delay=100, offsets_partitions=2)


def jump_clock() -> None:
    """Time passes while the coordinator waits for its log."""
    clock = asyncio.get_running_loop()
    assert isinstance(clock, VirtualClock)
    clock.jump(SLOW_MS / 1000)


def slow_target() -> InProcessTarget:
    """The bundled coordinator on virtual storage that is slow."""
    return InProcessTarget(BUNDLED_SETTINGS, log=SlowLog(MemoryLog(), jump_clock))


def play_schedules(make_target: Callable[[], InProcessTarget], grace: int) -> list[ScenarioRun]:
    """Some schedules on it."""
    protocol = ClassicSchedules(ScheduleScope(BUNDLED_SETTINGS))
    return [target_bench(protocol, make_target, grace).play(each.schedule) for each in protocol.generate(3, 0, 15)]


def test_slow_storage_is_no_fault_within_the_grace() -> None:
    for one in play_schedules(slow_target, GRACE_MS):
        assert (one.verdict.violated, one.verdict.inconclusive, one.blocked) == (frozenset(), (), "")


def test_without_grace_the_late_answers_are_seen_and_nothing_else() -> None:
    found = [each for one in play_schedules(slow_target, 0) for each in violations_in(one.verdict)]
    assert found
    assert {name for each in found if each.violation for name in each.violation.fields} == {"time"}


@pytest.mark.acceptance
def test_a_server_on_slow_storage_keeps_the_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.conformance.run.registry.DEFAULT_PROTOCOL", replace(CLASSIC, scenarios=()))
    with serve_in_thread(SETTINGS, storage_delay_ms=SLOW_MS) as bootstrap:
        assert main(["test", f"kafka://{bootstrap}", "--schedules", "2", "--seed", "2"]) == 3
