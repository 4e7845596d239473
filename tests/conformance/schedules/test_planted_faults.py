"""Planted faults are faults of behavior: random schedules of one seed show each of them."""

from functools import cache

import pytest

from fencepost.conformance.run.schedule import Schedule
from fencepost.traces.events import Event
from tests.benchmarks.planted_faults import BATCH_SIZE, PROTOCOL, is_violated, play
from tests.conformance.schedules.planted_faults import FAULTS

SEED, BATCHES = 11, 20


@cache
def play_batch(batch: int) -> tuple[tuple[Schedule, tuple[Event, ...]], ...]:
    """The schedules of a batch, each with its trace on the shipped coordinator."""
    schedules = [generated.schedule for generated in PROTOCOL.generate(SEED, batch, BATCH_SIZE)]
    return tuple((schedule, play(schedule).events) for schedule in schedules)


def shows_fault(name: str, batch: int) -> bool:
    """Whether a schedule of the batch violates something with the fault."""
    played = play_batch(batch)
    with FAULTS[name].activate():
        return any(is_violated(schedule, events) for schedule, events in played)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FAULTS))
def test_random_schedules_show_a_planted_fault(name: str) -> None:
    assert any(shows_fault(name, batch) for batch in range(BATCHES))
