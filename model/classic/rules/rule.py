"""The rows of the rule table."""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.specification import Rule
from fencepost.model.errors import Error

UNKNOWN, ILLEGAL, REBALANCE, FENCED = (
    Error.UNKNOWN_MEMBER_ID,
    Error.ILLEGAL_GENERATION,
    Error.REBALANCE_IN_PROGRESS,
    Error.FENCED_INSTANCE_ID,
)
NO_FIELDS: Mapping[str, str] = MappingProxyType({})


def rule(
    name: str, api: str, error: Error | None, guard: str, requirements: str, fields: Mapping[str, str] = NO_FIELDS
) -> Rule:
    """A row of the table; requirements are given as one string."""
    return Rule(name, api, error, guard, tuple(requirements.split()), fields)
