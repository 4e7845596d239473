"""How scenarios of push are registered."""

from collections.abc import Callable, Coroutine
from typing import Any

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import Scenario, ScenarioRegistry
from fencepost.conformance.scenarios.push.context import PushContext

PushPlay = Callable[[PushContext], Coroutine[Any, Any, None]]


class PushScenarios(ScenarioRegistry[PushPlay, Scenario]):
    """The scenarios of one module."""

    def add(self, *requirements: str, smoke: bool = False) -> Callable[[PushPlay], PushPlay]:
        """Register a function as a scenario that shows the requirements, given by their numbers."""
        ids = tuple(f"PUSH-{number}" for number in requirements)
        return self.register(lambda name, play: Scenario(name, ids, playable(play), (), smoke))


def playable(play: PushPlay) -> Callable[[ScenarioContext], Coroutine[Any, Any, None]]:
    """The scenario as a run plays it."""

    async def play_here(context: ScenarioContext) -> None:
        push = PushContext(context)
        try:
            await play(push)
        finally:
            push.close()

    return play_here
