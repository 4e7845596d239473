"""Groups that live on the same node as the stage's, for requests that name several groups or none."""

from fencepost.conformance.scenario.context import Stage
from fencepost.traces.events import Body

TRIES = 200
"""How many names are looked up for a neighbour; on a cluster of ten nodes a tenth of them will do."""


async def home(stage: Stage) -> int | None:
    """The node that coordinates the stage's group; None where there is just one."""
    return await node_of(stage, stage.group) if len(stage.description.brokers) > 1 else None


async def neighbours(stage: Stage, count: int) -> list[str]:
    """Unused group ids that are coordinated where the stage's group is."""
    here = await home(stage)
    found: list[str] = []
    for number in range(TRIES):
        name = f"{stage.group}-{number}"
        if here is None or await node_of(stage, name) == here:
            found.append(name)
        if len(found) == count:
            break
    stage.need(len(found) == count, "no other groups were found on the node of this one")
    return found


async def node_of(stage: Stage, group: str) -> int:
    """The node that coordinates a group."""
    row = named(await stage.send("FindCoordinator", lookup(group)))
    stage.need(row["error_code"] == 0, "no coordinator was named")
    return int(row["node_id"])


def lookup(*groups: str, key_type: int = 0) -> Body:
    """The body of a FindCoordinator, for every version."""
    return {"key": groups[0] if groups else "", "key_type": key_type, "coordinator_keys": list(groups)}


def named(body: Body) -> Body:
    """The first node named in an answer, of whatever version."""
    rows = body.get("coordinators")
    return rows[0] if rows else body
