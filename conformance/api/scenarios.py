"""Scenarios of your own, played and judged beside those of the kit."""

from collections.abc import Callable

from fencepost.conformance.run.context import ScenarioFunction
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.subject import Scenario
from fencepost.model.catalogue.selection import matching_ids


def scenario(*requirements: str, needs: tuple[str, ...] = ()) -> Callable[[ScenarioFunction], Scenario]:
    """Turn an async function of a `ScenarioContext` into a scenario that `run` takes in `scenarios`.

        @scenario("HB-05")
        async def heartbeat_of_a_lone_member(context): ...

    `requirements` are the ids that its checks are about: it is played if one of them is asked for. `needs` are the
    capabilities without which it cannot be played, such as "restart". It is named after the function. Raises
    `UnknownRequirement` for an id that the catalogue does not have, and `ValueError` without any.
    """
    if not requirements:
        raise ValueError("a scenario needs the id of a requirement, such as HB-05")
    matching_ids(DEFAULT_SPECIFICATION.requirements.values(), requirements)

    def make_scenario(play: ScenarioFunction) -> Scenario:
        return Scenario(play.__name__.replace("_", "-"), requirements, play, needs)

    return make_scenario
