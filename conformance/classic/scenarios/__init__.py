"""The scenarios for the classic protocol: short schedules that check requirements of the catalogue on any target.

A scenario sends requests and checks responses; the judge weighs them after it. A new one goes into the module of its
requests, a new module into `ALL`.
"""

from fencepost.conformance.classic.scenarios.administration import administration
from fencepost.conformance.classic.scenarios.admission import admission
from fencepost.conformance.classic.scenarios.commits import commits
from fencepost.conformance.classic.scenarios.failovers import failovers
from fencepost.conformance.classic.scenarios.fetches import fetches
from fencepost.conformance.classic.scenarios.generations import generations
from fencepost.conformance.classic.scenarios.leaves import leaves
from fencepost.conformance.classic.scenarios.lookups import lookups, versions
from fencepost.conformance.classic.scenarios.rejoining import rejoining
from fencepost.conformance.classic.scenarios.statics import statics
from fencepost.conformance.classic.scenarios.syncing import syncing
from fencepost.conformance.classic.scenarios.timers import timers
from fencepost.conformance.subject import Scenario

ALL: tuple[Scenario, ...] = (
    *lookups.scenarios,
    *versions.scenarios,
    *admission.scenarios,
    *rejoining.scenarios,
    *syncing.scenarios,
    *generations.scenarios,
    *leaves.scenarios,
    *commits.scenarios,
    *fetches.scenarios,
    *administration.scenarios,
    *timers.scenarios,
    *statics.scenarios,
    *failovers.scenarios,
)
"""All scenarios."""
