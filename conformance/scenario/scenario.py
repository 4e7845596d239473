"""What a scenario is: a short schedule that brings a target to the point where requirements can be seen to hold."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fencepost.conformance.scenario.context import Stage

Play = Callable[["Stage"], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A schedule and the requirements it gives evidence of.

    `needs` are the capabilities of the catalogue without which the schedule cannot be played; `smoke` scenarios make
    up the shortest run that means something.
    """

    name: str
    requirements: tuple[str, ...]
    play: Play
    needs: tuple[str, ...] = ()
    smoke: bool = False


class Collection:
    """The scenarios of one family, in the order they are written."""

    def __init__(self) -> None:
        self._scenarios: list[Scenario] = []

    def add(self, *requirements: str, needs: tuple[str, ...] = (), smoke: bool = False) -> Callable[[Play], Play]:
        """Decorate a schedule with the requirements it shows; its name is the function's."""

        def keep(play: Play) -> Play:
            name = play.__name__.replace("_", "-")
            self._scenarios.append(Scenario(name, requirements, play, needs, smoke))
            return play

        return keep

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """Everything collected."""
        return tuple(self._scenarios)
