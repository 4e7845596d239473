"""Scenarios: short schedules that bring a target into the situations that requirements are about."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

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


class ScenarioFamily:
    """The scenarios of one module, in their order in the file."""

    def __init__(self) -> None:
        self._scenarios: list[Scenario] = []

    def add(
        self, *requirements: str, needs: tuple[str, ...] = (), smoke: bool = False
    ) -> Callable[[ScenarioFunction], ScenarioFunction]:
        """Register a function as a scenario that checks the requirements; the scenario has the name of the function."""

        def register(play: ScenarioFunction) -> ScenarioFunction:
            name = play.__name__.replace("_", "-")
            self._scenarios.append(Scenario(name, requirements, play, needs, smoke))
            return play

        return register

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The registered scenarios."""
        return tuple(self._scenarios)
