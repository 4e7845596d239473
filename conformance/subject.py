"""Who is tested, scenarios and runs of them, and which scenarios a run plays."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from fencepost.conformance.capabilities import REMEDIES
from fencepost.conformance.specification import DEFAULT_SPECIFICATION, needs_of
from fencepost.model.catalogue import requirement
from fencepost.model.catalogue.requirement import CAPABILITIES, Requirement, Verifiability
from fencepost.model.catalogue.specification import Specification
from fencepost.traces.events import Event, Header
from fencepost.traces.verdict import TraceVerdict, Transition

# -- who is tested ----------------------------------------------------------------------------------------------------

TraceJudge = Callable[[Header, tuple[Event, ...], Mapping[str, bool]], TraceVerdict]
"""Judges a trace, given the reference differences (DIV-nn) that are settled for the target."""
NO_DECISIONS: Mapping[str, bool] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Subject:
    """Who is tested, as runs, replays and reports see it: the requirements, and who judges a trace.

    A coordinator is asked, and what it answers wrong may follow from something else that is wrong with it. A client
    `is_watched`: what it does it does by itself, so that each violation stands alone, and what it does not come to is
    not observed.
    """

    specification: Specification
    judge: TraceJudge
    is_watched: bool = False
    known_transitions: Callable[[], frozenset[Transition]] | None = None
    """The transitions of the model that the coverage by random schedules is measured against, if it is."""


# -- scenarios --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scenario:
    """A schedule and the requirements that it checks.

    `play` takes what its subject is played with: a `ScenarioContext` for a coordinator, a `ClientStage` for a client.
    `needs` are the capabilities of the catalogue that the schedule takes beyond those of its requirements; `smoke`
    scenarios make up the shortest run.
    """

    name: str
    requirements: tuple[str, ...]
    play: Callable[[Any], Coroutine[Any, Any, None]]
    needs: tuple[str, ...] = ()
    smoke: bool = False


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """A scenario that was played: its trace, the judge's verdict, and why it ended early if it did.

    `unsupported` names what the target does not offer, and `not_shown` what a client did not do that the scenario is
    about; `blocked` is the reason why the scenario could not go on; `crashed` is true if the target was gone
    afterwards; `misconduct` is what no client should do, whatever it sends: to end by itself, or to flood the cluster.
    `loop_lag` is the kit's own worst delay in milliseconds.
    """

    scenario: Scenario
    header: Header
    events: tuple[Event, ...]
    verdict: TraceVerdict
    unsupported: str = ""
    blocked: str = ""
    crashed: bool = False
    loop_lag: int = 0
    not_shown: str = ""
    misconduct: str = ""


Play = TypeVar("Play", bound=Callable[..., Any])


class ScenarioRegistry(Generic[Play]):
    """The scenarios of one module, in their order in the file."""

    def __init__(self) -> None:
        self._scenarios: list[Scenario] = []

    def register(self, make: Callable[[str, Play], Scenario]) -> Callable[[Play], Play]:
        """A decorator that makes a scenario of a function; the scenario has the name of the function."""

        def decorate(play: Play) -> Play:
            self._scenarios.append(make(play.__name__.replace("_", "-"), play))
            return play

        return decorate

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The registered scenarios."""
        return tuple(self._scenarios)


class CheckedScenarios(ScenarioRegistry[Play]):
    """The scenarios of one module, each with the requirements that it checks."""

    def add(self, *requirements: str, needs: tuple[str, ...] = (), smoke: bool = False) -> Callable[[Play], Play]:
        """Register a function as a scenario that checks the requirements."""
        return self.register(lambda name, play: Scenario(name, requirements, play, needs, smoke))


# -- the scenarios of a run -------------------------------------------------------------------------------------------


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
    return requirement.select_requirements(specification.requirements.values(), patterns, excluded)


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
