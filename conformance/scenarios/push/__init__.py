"""The scenarios for the push coordinator: they bring it into the situations that requirements are about.

They check nothing themselves: the judge says what a trace shows.
"""

from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenarios.push.failovers import failovers
from fencepost.conformance.scenarios.push.pings import pings
from fencepost.conformance.scenarios.push.rebalances import rebalances
from fencepost.conformance.scenarios.push.registrations import registrations

ALL: tuple[Scenario, ...] = (
    *registrations.scenarios,
    *pings.scenarios,
    *rebalances.scenarios,
    *failovers.scenarios,
)
