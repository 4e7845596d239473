"""The rules by which the reference coordinator acts: one row for each branch of its handlers.

The handlers name a rule with every step; nobody runs the protocol from this table. Explanations, coverage and
documents read it. `guard` says when the rule applies; `requirements` are those it answers to, and `fields` those that
speak of one field of the answer.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.classic.rules.admin import ADMIN
from fencepost.model.classic.rules.internal import FAILURE, GATE, INTERNAL
from fencepost.model.classic.rules.joining import JOIN
from fencepost.model.classic.rules.members import HEARTBEAT, LEAVE, SYNC
from fencepost.model.classic.rules.offsets import COMMIT, FETCH
from fencepost.model.classic.rules.rule import Rule

__all__ = ["RULES", "Rule"]

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        row.name: row
        for table in (JOIN, SYNC, HEARTBEAT, LEAVE, COMMIT, FETCH, ADMIN, INTERNAL, GATE, FAILURE)
        for row in table
    }
)
"""Every rule by name."""
