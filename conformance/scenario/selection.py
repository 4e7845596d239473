"""Selects the scenarios of a run, and explains why requirements are left out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fencepost.conformance.capabilities import REMEDIES
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.specification import DEFAULT_SPECIFICATION, needs_of
from fencepost.model.catalogue import selection
from fencepost.model.catalogue.requirement import CAPABILITIES, Requirement, Verifiability
from fencepost.model.catalogue.specification import Specification


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected requirements, the scenarios to play, and why requirements have no scenario, by their ids.

    `not_told` are the ids of those that depend on a setting that is not known: what is seen of them means nothing.
    """

    requirements: tuple[Requirement, ...]
    scenarios: tuple[Scenario, ...]
    left_out: Mapping[str, str]
    not_told: frozenset[str] = frozenset()
    left_scenarios: tuple[Scenario, ...] = ()
    """Scenarios that could be played too, but are not among the shortest."""

    def with_scenarios(self, scenarios: Iterable[Scenario]) -> "Selection":
        """A copy of the selection with more scenarios to play."""
        return replace(self, scenarios=(*self.scenarios, *scenarios))


def select_requirements(
    patterns: Sequence[str], excluded: Sequence[str] = (), specification: Specification = DEFAULT_SPECIFICATION
) -> tuple[Requirement, ...]:
    """The requirements of the specification whose ids match a pattern and no excluded one; without patterns all but
    those. Raises `UnknownRequirement` for a pattern that no id matches, and if nothing is left."""
    return selection.select_requirements(specification.requirements.values(), patterns, excluded)


def select_scenarios(
    scenarios: Sequence[Scenario], requirements: Sequence[Requirement], offered: frozenset[str], *, smoke: bool
) -> Selection:
    """The scenarios that check one of the requirements and need only the offered capabilities."""
    ids = {requirement.id for requirement in requirements}
    relevant = [scenario for scenario in scenarios if ids & set(scenario.requirements)]
    playable = tuple(one for one in relevant if required_capabilities(one) <= offered and (one.smoke or not smoke))
    left = tuple(one for one in relevant if required_capabilities(one) <= offered and one not in playable)
    shown = {requirement for scenario in playable for requirement in scenario.requirements}
    left_out = {
        requirement.id: reason_left_out(requirement, relevant, offered)
        for requirement in requirements
        if requirement.id not in shown
    }
    return Selection(tuple(requirements), playable, left_out, left_scenarios=left)


def required_capabilities(scenario: Scenario) -> set[str]:
    """The capabilities that a scenario needs: its own, and those of its requirements."""
    return set(scenario.needs).union(*map(needs_of, scenario.requirements))


def reason_left_out(requirement: Requirement, relevant: Sequence[Scenario], offered: frozenset[str]) -> str:
    """Why no scenario of the run checks the requirement; empty if one does but was not selected."""
    if requirement.testability is Verifiability.UNTESTABLE:
        return requirement.why
    own = [scenario for scenario in relevant if requirement.id in scenario.requirements]
    missing = set(requirement.needs) - offered
    for scenario in own:
        missing |= required_capabilities(scenario) - offered
    if missing:
        names = sorted(missing)
        remedies = "; ".join(REMEDIES[name] for name in names)
        return f"needs {', '.join(CAPABILITIES[name] for name in names)} (switched on by {remedies})"
    return "" if own else "no scenario shows it"
