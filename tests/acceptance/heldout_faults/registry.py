"""All held-out faults, kind by kind, and their witnesses."""

from tests.acceptance.heldout_faults.member_faults import (
    CLIENT_UPGRADES,
    FULL_GROUPS,
    INCOMPLETE_PLANS,
    LEADER_FAILOVERS,
    STATIC_REBALANCES,
    SUBSCRIPTIONS,
)
from tests.acceptance.heldout_faults.offset_faults import (
    FENCED_PRODUCERS,
    IDLE_GROUPS,
    OPEN_TRANSACTIONS,
    RETENTION,
    SHARED_STATE,
    STABLE_FETCHES,
)

FAMILIES = (
    OPEN_TRANSACTIONS,
    SHARED_STATE,
    LEADER_FAILOVERS,
    INCOMPLETE_PLANS,
    SUBSCRIPTIONS,
    RETENTION,
    IDLE_GROUPS,
    STABLE_FETCHES,
    FENCED_PRODUCERS,
    STATIC_REBALANCES,
    FULL_GROUPS,
    CLIENT_UPGRADES,
)
FAULTS = tuple(fault for family in FAMILIES for fault in family.faults)
WITNESSES = {id: witness for family in FAMILIES for id, witness in family.witnesses.items()}
