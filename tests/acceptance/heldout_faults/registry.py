"""All held-out faults, kind by kind."""

from tests.acceptance.heldout_faults import (
    client_upgrades,
    fenced_producers,
    full_groups,
    idle_groups,
    incomplete_plans,
    leader_failovers,
    open_transactions,
    retention,
    shared_state,
    stable_fetches,
    static_rebalances,
    subscriptions,
)
from tests.acceptance.heldout_faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *open_transactions.FAMILY.faults,
    *shared_state.FAMILY.faults,
    *leader_failovers.FAMILY.faults,
    *incomplete_plans.FAMILY.faults,
    *subscriptions.FAMILY.faults,
    *retention.FAMILY.faults,
    *idle_groups.FAMILY.faults,
    *stable_fetches.FAMILY.faults,
    *fenced_producers.FAMILY.faults,
    *static_rebalances.FAMILY.faults,
    *full_groups.FAMILY.faults,
    *client_upgrades.FAMILY.faults,
)
