"""Planted faults are faults: each is found by one of the schedules of a seed. The shipped coordinator is not blamed."""

from functools import cache, partial

import pytest

from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.schedules.bench import Bench
from fencepost.conformance.schedules.classic.generation import generate_schedules
from fencepost.conformance.schedules.classic.protocol import ClassicSchedules
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.zoo.mutation.patching import Patch
from tests.conformance.schedules.planted_faults import FAULTS
from tests.conformance.schedules.state_machine import SCOPE

SEED, BATCHES, BATCH_SIZE = 11, 15, 20
BENCH = Bench(ClassicSchedules(SCOPE), partial(InProcessTarget, BUNDLED_SETTINGS))


@cache
def generate_batch(batch: int) -> tuple[Schedule, ...]:
    return tuple(each.schedule for each in generate_schedules(SCOPE, SEED, batch, BATCH_SIZE))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FAULTS))
def test_random_schedules_find_a_planted_fault(name: str) -> None:
    with Patch() as patch:
        FAULTS[name](patch)
        found = (
            schedule for batch in range(BATCHES) for schedule in generate_batch(batch) if BENCH.violated_by(schedule)
        )
        schedule = next(found, None)
    assert schedule is not None
    assert not BENCH.violated_by(schedule)
