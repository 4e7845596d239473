"""The scenarios for the classic protocol: short schedules that check requirements of the catalogue on any target.

A scenario sends requests and checks responses; the judge weighs them after it. A new one goes into the module of its
requests, a new module into `ALL`.
"""

from fencepost.conformance.scenarios.classic.admission import admission
from fencepost.conformance.scenarios.classic.assignments import assignments
from fencepost.conformance.scenarios.classic.capacity import capacity
from fencepost.conformance.scenarios.classic.commits import commits
from fencepost.conformance.scenarios.classic.deletions import deletions
from fencepost.conformance.scenarios.classic.descriptions import descriptions
from fencepost.conformance.scenarios.classic.failovers import failovers
from fencepost.conformance.scenarios.classic.fetches import fetches
from fencepost.conformance.scenarios.classic.generations import generations
from fencepost.conformance.scenarios.classic.heartbeats import heartbeats
from fencepost.conformance.scenarios.classic.leaves import leaves
from fencepost.conformance.scenarios.classic.lookups import lookups
from fencepost.conformance.scenarios.classic.member_ids import member_ids
from fencepost.conformance.scenarios.classic.moves import moves
from fencepost.conformance.scenarios.classic.partitions import partitions
from fencepost.conformance.scenarios.classic.rejoining import rejoining
from fencepost.conformance.scenarios.classic.replacements import replacements
from fencepost.conformance.scenarios.classic.rosters import rosters
from fencepost.conformance.scenarios.classic.sessions import sessions
from fencepost.conformance.scenarios.classic.statics import statics
from fencepost.conformance.scenarios.classic.syncing import syncing
from fencepost.conformance.scenarios.classic.takeovers import takeovers
from fencepost.conformance.scenarios.classic.timeouts import timeouts
from fencepost.conformance.scenarios.classic.transactions import transactions
from fencepost.conformance.scenarios.classic.versions import versions
from fencepost.conformance.scenarios.classic.votes import votes
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
