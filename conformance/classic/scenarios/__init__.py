"""The scenarios for the classic protocol: short schedules that check requirements of the catalogue on any target.

A scenario sends requests and checks responses; the judge weighs them after it. A new one goes into the module of its
requests, a new module into `ALL`.
"""

from fencepost.conformance.classic.scenarios.admission import admission
from fencepost.conformance.classic.scenarios.assignments import assignments
from fencepost.conformance.classic.scenarios.capacity import capacity
from fencepost.conformance.classic.scenarios.commits import commits
from fencepost.conformance.classic.scenarios.deletions import deletions
from fencepost.conformance.classic.scenarios.descriptions import descriptions
from fencepost.conformance.classic.scenarios.failovers import failovers
from fencepost.conformance.classic.scenarios.fetches import fetches
from fencepost.conformance.classic.scenarios.generations import generations
from fencepost.conformance.classic.scenarios.heartbeats import heartbeats
from fencepost.conformance.classic.scenarios.leaves import leaves
from fencepost.conformance.classic.scenarios.lookups import lookups
from fencepost.conformance.classic.scenarios.member_ids import member_ids
from fencepost.conformance.classic.scenarios.moves import moves
from fencepost.conformance.classic.scenarios.partitions import partitions
from fencepost.conformance.classic.scenarios.rejoining import rejoining
from fencepost.conformance.classic.scenarios.replacements import replacements
from fencepost.conformance.classic.scenarios.rosters import rosters
from fencepost.conformance.classic.scenarios.sessions import sessions
from fencepost.conformance.classic.scenarios.statics import statics
from fencepost.conformance.classic.scenarios.syncing import syncing
from fencepost.conformance.classic.scenarios.takeovers import takeovers
from fencepost.conformance.classic.scenarios.timeouts import timeouts
from fencepost.conformance.classic.scenarios.transactions import transactions
from fencepost.conformance.classic.scenarios.versions import versions
from fencepost.conformance.classic.scenarios.votes import votes
from fencepost.conformance.subject import Scenario

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
    *moves.scenarios,
)
"""All scenarios."""
