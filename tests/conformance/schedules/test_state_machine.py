"""Hypothesis draws interactions, too: the bundled coordinator conforms, and a fault is found and shrunk."""

from functools import partial

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.classic.schedules.protocol import ClassicSchedules
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.play import target_bench
from tests.conformance.schedules.planted_faults import FAULTS
from tests.conformance.schedules.state_machine import SCOPE, InteractionMachine

OPTIONS = settings(
    max_examples=15,
    stateful_step_count=10,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class BundledMachine(InteractionMachine):
    """Plays on the bundled coordinator."""

    bench = target_bench(ClassicSchedules(SCOPE), partial(InProcessTarget, BUNDLED_SETTINGS))


@pytest.mark.slow
def test_bundled_coordinator_conforms_whatever_hypothesis_draws() -> None:
    run_state_machine_as_test(BundledMachine, settings=OPTIONS)


@pytest.mark.slow
def test_hypothesis_finds_a_fault_too() -> None:
    with FAULTS["incomplete_plan_keeps_assignments"].activate(), pytest.raises(AssertionError):
        run_state_machine_as_test(BundledMachine, settings=settings(OPTIONS, max_examples=200))
