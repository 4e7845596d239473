"""The scenarios by family: short schedules that show requirements of the catalogue on any target.

A scenario sends requests and marks answers as evidence; what an answer is worth is the judge's business.
"""

from fencepost.conformance.scenario import Scenario
from fencepost.conformance.scenarios.heartbeats import heartbeats
from fencepost.conformance.scenarios.versions import versions

ALL: tuple[Scenario, ...] = (
    *versions.scenarios,
    *heartbeats.scenarios,
)
"""Every scenario of the kit."""
