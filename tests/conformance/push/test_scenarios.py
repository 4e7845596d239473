"""Scenarios of push on the bundled coordinator: each shows what it is for, and none complains."""

import pytest

from fencepost.adapters.push.broker import BrokerSettings
from fencepost.adapters.push.target import BundledPushTarget
from fencepost.conformance.push.context import PushContext
from fencepost.conformance.push.scenarios import ALL, playable
from fencepost.conformance.push.schedules import BundledPushSchedules
from fencepost.conformance.run.play import target_bench
from fencepost.conformance.subject import Scenario
from fencepost.conformance.zoo.fault import Fault
from fencepost.model.push.specification import PUSH_CATALOGUE
from fencepost.traces.verdict import CheckStatus
from tests.support.push.faults import FAULTS
from tests.support.push.requirements import NOT_ON_THE_WIRE
from tests.support.system_traces import BATCH_SIZE, first_telling_schedule, play_on

MOST_BATCHES = 60
"""No fault of the push coordinator takes more schedules."""


@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
def test_scenario_shows_its_requirements(scenario: Scenario) -> None:
    run = play_on(scenario, BundledPushTarget())
    assert (run.verdict.violations, run.verdict.inconclusive, run.blocked, run.unsupported) == ((), (), "", "")
    shown = {check.requirement for check in run.verdict.check_results if check.status is CheckStatus.PASS}
    assert set(scenario.requirements) <= shown


def test_every_requirement_has_a_scenario_or_is_not_on_the_wire() -> None:
    shown = {id for scenario in ALL for id in scenario.requirements}
    assert shown & NOT_ON_THE_WIRE == frozenset()
    assert shown | NOT_ON_THE_WIRE == set(PUSH_CATALOGUE)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.id)
def test_fault_is_found_by_scenarios(fault: Fault[None]) -> None:
    with fault.activate():
        assert any(play_on(each, BundledPushTarget()).verdict.violated & set(fault.breaks) for each in ALL)


def test_batched_offsets_reach_the_next_owner_and_may_be_lost_with_the_coordinator() -> None:
    """The next owner begins where the last one stopped; after a failover it may begin earlier, never later."""

    async def play(context: PushContext) -> None:
        committing = await context.consumer("a", auto_commit=True).join()
        await committing.await_start()
        committing.consume(5)
        await committing.await_requests("Ping")
        await context.settle()
        (other,) = await context.group_of("b")
        starts.append(min(other.positions.values()))
        await context.hooks.kill_coordinator()
        (last,) = await context.group_of("c")
        starts.append(min(last.positions.values()))
        await context.settle()

    starts: list[int] = []
    target = BundledPushTarget(BrokerSettings(offset_interval_ms=60_000))
    run = play_on(Scenario("batched", (), playable(play)), target)
    assert (run.verdict.violations, run.blocked, starts) == ((), "", [5, 0])


@pytest.mark.acceptance
@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.id)
def test_fault_is_found_by_random_schedules(fault: Fault[None]) -> None:
    with fault.activate():
        assert first_telling_schedule(
            target_bench(BundledPushSchedules(), BundledPushTarget), fault.breaks, MOST_BATCHES
        )


@pytest.mark.acceptance
def test_no_random_schedule_complains_of_the_bundled_coordinator() -> None:
    schedules = BundledPushSchedules()
    bench = target_bench(schedules, BundledPushTarget)
    for batch in range(MOST_BATCHES):
        for each in schedules.generate(12, batch, BATCH_SIZE):
            run = bench.play(each.schedule)
            assert (run.verdict.violations, run.verdict.inconclusive) == ((), ())
