"""Planted faults are faults of behavior: random schedules of one seed show each of them."""

import pytest

from fencepost.conformance.classic.zoo.coordinator_stand import COORDINATORS, CoordinatorFault
from fencepost.conformance.zoo.hunt import HuntTask, hunt_fault
from fencepost.conformance.zoo.strategies import SCHEDULES
from tests.conformance.schedules.planted_faults import FAULTS

SEED, SECONDS = 11, 60.0


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.id)
def test_random_schedules_show_a_planted_fault(fault: CoordinatorFault) -> None:
    assert hunt_fault(COORDINATORS, HuntTask(fault.id, SCHEDULES, SEED, SECONDS, shrink=0), fault).is_found
