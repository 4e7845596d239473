"""The statements that the coordinator keeps by itself: they assume nothing of the requests of clients."""

from fencepost.model.classic.theorems.lemmas import (
    group_empty,
    group_generation,
    group_ids,
    group_instances,
    group_leader,
    group_parked,
    group_synced,
    join_response,
    sync_timer,
)
from fencepost.model.classic.theorems.ownership_lemmas import shared_protocol
from fencepost.model.classic.theorems.request_statements import STEP_THEOREMS
from fencepost.model.classic.theorems.statements import no_stale_commit, one_leader

UNCONDITIONAL_THEOREMS = (one_leader, no_stale_commit, *STEP_THEOREMS)
"""The theorems among them."""
WHATEVER_CLIENTS_SEND = (
    *UNCONDITIONAL_THEOREMS,
    group_ids,
    group_instances,
    group_empty,
    group_generation,
    group_leader,
    group_parked,
    group_synced,
    join_response,
    sync_timer,
    shared_protocol,
)
"""All of them. None is about a request, or about a member but for a single step of one."""
