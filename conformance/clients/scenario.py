"""Scenarios for clients: schedules of the cluster, with the requirements that each of them shows."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from fencepost.conformance.clients.stage import ClientStage
from fencepost.conformance.scenario.scenario import ScenarioRegistry

PlayClient = Callable[[ClientStage], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class ClientScenario:
    """A schedule of the cluster, the requirements that it shows, and the capabilities of a client that it takes."""

    name: str
    requirements: tuple[str, ...]
    play: PlayClient
    needs: tuple[str, ...] = ()


class ClientScenarioFamily(ScenarioRegistry[PlayClient, ClientScenario]):
    """The scenarios of one module that test a client."""

    def add(self, *requirements: str, needs: tuple[str, ...] = ()) -> Callable[[PlayClient], PlayClient]:
        """Register a function as a scenario for the requirements."""
        return self.register(lambda name, play: ClientScenario(name, requirements, play, needs))
