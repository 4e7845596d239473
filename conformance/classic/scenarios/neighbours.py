"""Groups with the same coordinator as the group under test, for requests about several groups."""

from fencepost.conformance.run.context import ScenarioContext
from fencepost.traces.events import Body

MAX_LOOKUPS = 200
"""The most names that are looked up; on a cluster of ten nodes, every tenth fits."""
NO_BROKER = "the node that was named is not among the brokers"


async def own_node(group: ScenarioContext) -> int | None:
    """The coordinator of the group under test; None if the target has one node."""
    return await coordinator_of(group, group.group_id) if len(group.description.brokers) > 1 else None


async def find_neighbours(group: ScenarioContext, count: int) -> list[str]:
    """Unused group ids with the same coordinator as the group under test. Raises `Blocked` if too few are found."""
    here = await own_node(group)
    found: list[str] = []
    for number in range(MAX_LOOKUPS):
        name = f"{group.group_id}-{number}"
        if here is None or await coordinator_of(group, name) == here:
            found.append(name)
        if len(found) == count:
            break
    group.require(len(found) == count, "no other groups were found on the node of this one")
    return found


async def coordinator_of(group: ScenarioContext, group_id: str) -> int:
    """The node id of the coordinator of a group, by FindCoordinator. Raises `Blocked` if it is that of no broker."""
    row = first_coordinator(await group.send("FindCoordinator", find_coordinator_body(group_id)))
    group.require(row["error_code"] == 0, "no coordinator was named")
    group.require(row["node_id"] in group.description.brokers, NO_BROKER)
    return int(row["node_id"])


def find_coordinator_body(*groups: str, key_type: int = 0) -> Body:
    """The body of a FindCoordinator, for every version."""
    return {"key": groups[0] if groups else "", "key_type": key_type, "coordinator_keys": list(groups)}


def first_coordinator(body: Body) -> Body:
    """The first coordinator in a response of any version."""
    rows = body.get("coordinators")
    return rows[0] if rows else body


async def commit_in_bystander(group: ScenarioContext) -> tuple[str, bool]:
    """Commit an offset in a group that the scenario does not touch again; returns its id and whether it is stored."""
    (bystander,) = await find_neighbours(group, 1)
    body = await group.commit(None, {0: 7}, group_id=bystander)
    return bystander, all(row["error_code"] == 0 for topic in body["topics"] for row in topic["partitions"])


async def check_bystander(group: ScenarioContext, bystander: str, stored: bool) -> None:
    """Check that the offset of a bystander is still there (ADMIN-32)."""
    fetched = group.fetch(groups=[bystander])
    await group.check("ADMIN-32", fetched, fields=("error", "offset"), reached=stored)
