"""Scenarios: short schedules that bring what is tested into the situations that requirements are about."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.traces.events import Event, Header
from fencepost.traces.verdict import TraceVerdict

ScenarioFunction = Callable[[ScenarioContext], Coroutine[Any, Any, None]]


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


ScenarioFamily: TypeAlias = CheckedScenarios[ScenarioFunction]
"""The scenarios of one module that test a coordinator."""
