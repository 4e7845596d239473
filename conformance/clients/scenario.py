"""Scenarios for clients: what the cluster does to a client, and which requirements that shows."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from fencepost.conformance.clients.stage import ClientStage

PlayClient = Callable[[ClientStage], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class ClientScenario:
    """What the cluster does, and the requirements that it is for."""

    name: str
    requirements: tuple[str, ...]
    play: PlayClient


class ClientScenarios:
    """The scenarios of one module, in their order in the file."""

    def __init__(self) -> None:
        self._scenarios: list[ClientScenario] = []

    def add(self, *requirements: str) -> Callable[[PlayClient], PlayClient]:
        """Register a function as a scenario for the requirements; the scenario has the name of the function."""

        def register(play: PlayClient) -> PlayClient:
            self._scenarios.append(ClientScenario(play.__name__.replace("_", "-"), requirements, play))
            return play

        return register

    @property
    def scenarios(self) -> tuple[ClientScenario, ...]:
        """The registered scenarios."""
        return tuple(self._scenarios)
