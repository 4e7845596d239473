"""Scenarios for operators of a consistent region: one job each, taken step by step through the line protocol."""

from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenarios.region.callbacks import callbacks
from fencepost.conformance.scenarios.region.checkpoints import checkpoints
from fencepost.conformance.scenarios.region.launches import launches
from fencepost.conformance.scenarios.region.resets import resets
from fencepost.conformance.scenarios.region.submissions import submissions

ALL: tuple[Scenario, ...] = tuple(
    scenario for family in (launches, callbacks, submissions, checkpoints, resets) for scenario in family.scenarios
)
"""Every scenario, in the order of the page."""
