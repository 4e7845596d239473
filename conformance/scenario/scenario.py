"""What a scenario is: a short schedule that brings a target to the point where requirements can be seen to hold."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fencepost.conformance.scenario.context import ScenarioContext

ScenarioFunction = Callable[["ScenarioContext"], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A schedule and the requirements it gives evidence of.

    `needs` are the capabilities of the catalogue without which the schedule cannot be played; `smoke` scenarios make
    up the shortest run that means something.
    """

    name: str
    requirements: tuple[str, ...]
    play: ScenarioFunction
    needs: tuple[str, ...] = ()
    smoke: bool = False


class ScenarioFamily:
    """The scenarios of one family, in the order they are written."""

    def __init__(self) -> None:
        self._scenarios: list[Scenario] = []

    def add(
        self, *requirements: str, needs: tuple[str, ...] = (), smoke: bool = False
    ) -> Callable[[ScenarioFunction], ScenarioFunction]:
        """Decorate a schedule with the requirements it shows; its name is the function's."""

        def register(play: ScenarioFunction) -> ScenarioFunction:
            name = play.__name__.replace("_", "-")
            self._scenarios.append(Scenario(name, requirements, play, needs, smoke))
            return play

        return register

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """Everything collected."""
        return tuple(self._scenarios)
