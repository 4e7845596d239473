"""The rules by which the reference coordinator acts: one row for each branch of its handlers.

The handlers name a rule with every step; no code interprets the table to run the protocol. Diagnosis, coverage and
documents read it. `guard` is the condition of the rule in words; `requirements` are those that it satisfies, and
`fields` those about one field of the response.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.specification import Rule
from fencepost.model.classic.rules.admin import ADMIN
from fencepost.model.classic.rules.internal import FAILURE, GATE, INTERNAL
from fencepost.model.classic.rules.joining import JOIN
from fencepost.model.classic.rules.members import HEARTBEAT, LEAVE, SYNC
from fencepost.model.classic.rules.offsets import COMMIT, FETCH

__all__ = ["RULES", "Rule"]

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        row.name: row
        for table in (JOIN, SYNC, HEARTBEAT, LEAVE, COMMIT, FETCH, ADMIN, INTERNAL, GATE, FAILURE)
        for row in table
    }
)
"""Every rule by name."""
