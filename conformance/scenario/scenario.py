"""Scenarios: short schedules that bring a target into the situations that requirements are about."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fencepost.conformance.scenario.context import ScenarioContext

ScenarioFunction = Callable[[ScenarioContext], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A schedule and the requirements that it checks.

    `needs` are the capabilities of the catalogue that the schedule takes beyond those of its requirements; `smoke`
    scenarios make up the shortest run.
    """

    name: str
    requirements: tuple[str, ...]
    play: ScenarioFunction
    needs: tuple[str, ...] = ()
    smoke: bool = False


Play = TypeVar("Play", bound=Callable[..., Any])
Registered = TypeVar("Registered")


class ScenarioRegistry(Generic[Play, Registered]):
    """The scenarios of one module, in their order in the file."""

    def __init__(self) -> None:
        self._scenarios: list[Registered] = []

    def register(self, make: Callable[[str, Play], Registered]) -> Callable[[Play], Play]:
        """A decorator that makes a scenario of a function; the scenario has the name of the function."""

        def decorate(play: Play) -> Play:
            self._scenarios.append(make(play.__name__.replace("_", "-"), play))
            return play

        return decorate

    @property
    def scenarios(self) -> tuple[Registered, ...]:
        """The registered scenarios."""
        return tuple(self._scenarios)


class ScenarioFamily(ScenarioRegistry[ScenarioFunction, Scenario]):
    """The scenarios of one module that test a coordinator."""

    def add(
        self, *requirements: str, needs: tuple[str, ...] = (), smoke: bool = False
    ) -> Callable[[ScenarioFunction], ScenarioFunction]:
        """Register a function as a scenario that checks the requirements."""
        return self.register(lambda name, play: Scenario(name, requirements, play, needs, smoke))
