"""The fairness of polls as it is measured on traces of clients."""

import pytest

from tests.benchmarks.poll_fairness import SCENARIOS, Fairness, measure
from tests.support.client_scenarios import EAGER, play_scenario
from tests.support.wire_client import tell_as_it_is


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_the_reference_client_keeps_a_bound(scenario: str) -> None:
    run = await play_scenario(scenario, EAGER, tell=tell_as_it_is)
    found = measure(run.events)
    assert found.limit and found.polls and found.partitions > 1
    assert 1 <= found.served <= max(found.partitions, found.by_age)


def test_a_partition_that_is_passed_over_waits() -> None:
    first, second = ("t", 0), ("t", 1)
    fairness = Fairness(limit=10)
    fairness.deliver({first: 30, second: 5}, 0)
    for number in range(1, 4):
        fairness.begun = 1_000 * number
        fairness.returned[first] = 10 * number
        fairness.end_poll()
    fairness.returned[second] = 5
    fairness.end_poll()
    assert (fairness.served, fairness.by_age, fairness.polls) == (4, 4, 4)
