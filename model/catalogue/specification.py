"""A specification: the requirements and rules of one protocol, as one value for judges and reports."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from fencepost.model.catalogue.requirement import Level, Requirement
from fencepost.model.catalogue.sources import links_for

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Hole:
    """A hole in a text: what is wrong, where, the weakest repair, and the requirements that it breaks."""

    id: str
    title: str
    sentence: str
    source: str
    repair: str
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """One branch of a handler. `api` is empty for actions without a request; `error` is the error of the response,
    None if it parks the request or answers per entry. `guard` is the condition of the rule in words, `requirements` are
    those that it satisfies, and `fields` those about one field of the response."""

    name: str
    api: str
    error: int | None
    guard: str
    requirements: tuple[str, ...]
    fields: Mapping[str, str] = field(default_factory=lambda: NOTHING)

    def requirements_for(self, fields: frozenset[str]) -> tuple[str, ...]:
        """The requirements that a difference in these fields breaks."""
        named = tuple(dict.fromkeys(self.fields[name] for name in sorted(fields) if name in self.fields))
        return named or self.requirements[:1]


class SpecifiedDifference(Protocol):
    """A difference of the reference implementations: its id, and the requirement that it leaves open."""

    @property
    def id(self) -> str: ...

    @property
    def requirement(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Specification:
    """The requirements of a protocol by id and its rules by name, both in the order of reports.

    `prerequisites` are the requirements that others refine, by the id of the finer one. `differences` are those of the
    reference implementations, by the name that the judge has for them; `describe_side` puts a side of one into words.
    `subject` is what the requirements are about, `badge` what badges call it, and `shelf` the folder of a registry that
    has the reports on its implementations. `pushed` are the APIs of requests that the coordinator sends.
    """

    requirements: Mapping[str, Requirement] = field(default_factory=lambda: NOTHING)
    rules: Mapping[str, Rule] = field(default_factory=lambda: NOTHING)
    prerequisites: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: NOTHING)
    differences: Mapping[str, SpecifiedDifference] = field(default_factory=lambda: NOTHING)
    describe_side: Callable[[str, bool], str] = lambda name, side: name
    subject: str = "coordinator"
    badge: str = "kafka group protocol"
    shelf: str = "coordinators"
    pushed: frozenset[str] = frozenset()

    def is_recommendation(self, id: str) -> bool:
        """Whether the requirement only says what should be: to do otherwise is unusual, and violates nothing."""
        return id in self.requirements and self.requirements[id].level is Level.SHOULD

    def links_of(self, id: str) -> tuple[tuple[str, str | None], ...]:
        """The sources of a requirement, each with the address where it can be read; None where none is known."""
        rules = (rule for rule in self.rules.values() if id in (*rule.requirements, *rule.fields.values()))
        return links_for(self.requirements[id].source, dict.fromkeys(rule.api for rule in rules if rule.api), id)
