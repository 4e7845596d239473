"""The scenarios by family: short schedules that show requirements of the catalogue on any target.

A scenario sends requests and marks answers as evidence; what an answer is worth is the judge's business.
"""

from fencepost.conformance.scenario import Scenario
from fencepost.conformance.scenarios.admission import admission
from fencepost.conformance.scenarios.assignments import assignments
from fencepost.conformance.scenarios.capacity import capacity
from fencepost.conformance.scenarios.commits import commits
from fencepost.conformance.scenarios.deletions import deletions
from fencepost.conformance.scenarios.descriptions import descriptions
from fencepost.conformance.scenarios.failovers import failovers
from fencepost.conformance.scenarios.fetches import fetches
from fencepost.conformance.scenarios.generations import generations
from fencepost.conformance.scenarios.heartbeats import heartbeats
from fencepost.conformance.scenarios.leaves import leaves
from fencepost.conformance.scenarios.lookups import lookups
from fencepost.conformance.scenarios.member_ids import member_ids
from fencepost.conformance.scenarios.partitions import partitions
from fencepost.conformance.scenarios.rejoining import rejoining
from fencepost.conformance.scenarios.replacements import replacements
from fencepost.conformance.scenarios.rosters import rosters
from fencepost.conformance.scenarios.sessions import sessions
from fencepost.conformance.scenarios.statics import statics
from fencepost.conformance.scenarios.syncing import syncing
from fencepost.conformance.scenarios.takeovers import takeovers
from fencepost.conformance.scenarios.timeouts import timeouts
from fencepost.conformance.scenarios.transactions import transactions
from fencepost.conformance.scenarios.versions import versions
from fencepost.conformance.scenarios.votes import votes

ALL: tuple[Scenario, ...] = (
    *lookups.scenarios,
    *versions.scenarios,
    *admission.scenarios,
    *member_ids.scenarios,
    *rejoining.scenarios,
    *rosters.scenarios,
    *capacity.scenarios,
    *syncing.scenarios,
    *assignments.scenarios,
    *heartbeats.scenarios,
    *generations.scenarios,
    *votes.scenarios,
    *leaves.scenarios,
    *commits.scenarios,
    *partitions.scenarios,
    *fetches.scenarios,
    *transactions.scenarios,
    *descriptions.scenarios,
    *deletions.scenarios,
    *sessions.scenarios,
    *timeouts.scenarios,
    *statics.scenarios,
    *replacements.scenarios,
    *failovers.scenarios,
    *takeovers.scenarios,
)
"""Every scenario of the kit."""
