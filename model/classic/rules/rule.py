"""The rows of the rule table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fencepost.model.errors import Error

UNKNOWN, ILLEGAL, REBALANCE, FENCED = (
    Error.UNKNOWN_MEMBER_ID,
    Error.ILLEGAL_GENERATION,
    Error.REBALANCE_IN_PROGRESS,
    Error.FENCED_INSTANCE_ID,
)
NO_FIELDS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Rule:
    """One branch of a handler. `api` is empty for actions without a request; `error` is the error of the response,
    None if it parks the request or answers per entry."""

    name: str
    api: str
    error: Error | None
    guard: str
    requirements: tuple[str, ...]
    fields: Mapping[str, str] = field(default_factory=lambda: NO_FIELDS)

    def requirements_for(self, fields: frozenset[str]) -> tuple[str, ...]:
        """The requirements that a difference in these fields breaks."""
        named = tuple(dict.fromkeys(self.fields[name] for name in sorted(fields) if name in self.fields))
        return named or self.requirements[:1]


def rule(
    name: str, api: str, error: Error | None, guard: str, requirements: str, fields: Mapping[str, str] = NO_FIELDS
) -> Rule:
    """A row of the table; requirements are given as one string."""
    return Rule(name, api, error, guard, tuple(requirements.split()), fields)
