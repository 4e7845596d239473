"""FindCoordinator: which node is named, and what it and the other nodes then do."""

from fencepost.conformance.scenario.context import Call, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenarios.classic.commits import is_commit_accepted
from fencepost.conformance.scenarios.classic.descriptions import list_groups_nearby
from fencepost.conformance.scenarios.classic.neighbours import find_coordinator_body, first_coordinator
from fencepost.model.errors import Error
from fencepost.traces.judge.classic.coordinator_lookup import FIRST_BATCHED_VERSION, OFFSETS_TOPIC

lookups = ScenarioFamily()

UNKNOWN_KEY_TYPE = 9


def find_coordinator(
    context: ScenarioContext, *groups: str, version: int | None = None, key_type: int = 0, broker: int | None = None
) -> Call:
    """Send FindCoordinator for groups."""
    return context.send(
        "FindCoordinator", find_coordinator_body(*groups, key_type=key_type), version=version, broker=broker
    )


async def coordinator_node(context: ScenarioContext, group: str) -> int:
    """The node that is named for a group."""
    row = first_coordinator(await find_coordinator(context, group))
    context.require(row["error_code"] == 0, "no coordinator was named")
    return int(row["node_id"])


@lookups.add("FIND-01", smoke=True)
async def lookup_names_a_usable_node(context: ScenarioContext) -> None:
    """The node that is named takes the group's requests."""
    call = find_coordinator(context, context.group)
    row = first_coordinator(await call)
    context.check("FIND-01", call, "error")
    context.require(row["node_id"] in context.description.brokers, "the node that was named is not among the brokers")
    body = {"group_id": context.group, "generation_id": 1, "member_id": "nobody", "group_instance_id": None}
    taken = context.send("Heartbeat", body, broker=row["node_id"])
    await taken
    context.check("FIND-01", taken, "place")


@lookups.add("FIND-01")
async def lookup_of_any_string(context: ScenarioContext) -> None:
    """Spaces, other scripts, symbols beyond 16 bits, a long name."""
    for name in (" ", "группа", "\U0001f986 & \U0001f43b", "long-" * 200):
        call = find_coordinator(context, name)
        await call
        context.check("FIND-01", call, "error")


@lookups.add("FIND-02")
async def lookup_creates_nothing(context: ScenarioContext) -> None:
    """A group that was only looked for does not exist."""
    await find_coordinator(context, context.group)
    described = context.describe_groups()
    await described
    context.check("FIND-02", described, "state")
    context.check("FIND-02", await list_groups_nearby(context), "listed")


@lookups.add("FIND-02")
async def lookup_of_an_existing_group(context: ScenarioContext) -> None:
    """It is where it was looked for before it existed."""
    await find_coordinator(context, context.group)
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    call = find_coordinator(context, context.group)
    await call
    context.check("FIND-02", call, "node", reached=stored)


@lookups.add("FIND-03")
async def lookups_agree(context: ScenarioContext) -> None:
    """Asked again, and asked elsewhere."""
    await find_coordinator(context, context.group)
    for broker in (None, *context.description.brokers):
        call = find_coordinator(context, context.group, broker=broker)
        await call
        context.check("FIND-03", call, "node")


@lookups.add("FIND-04", needs=("second-node",))
async def lookup_follows_from_the_group_id(context: ScenarioContext) -> None:
    """The node leads the partition of the offsets topic that the id hashes to; one id has no absolute value."""
    version = context.highest_version("Metadata", at_least=4, at_most=9)
    body = {"topics": [{"name": OFFSETS_TOPIC}], "allow_auto_topic_creation": False}
    topics = (await context.send("Metadata", body, version=version))["topics"]
    known = any(topic["error_code"] == 0 for topic in topics)
    for name in (context.group, f"{context.group}-other", "polygenelubricants"):
        call = find_coordinator(context, name)
        await call
        context.check("FIND-04", call, "home", reached=known)


@lookups.add("FIND-05", "FIND-06")
async def lookup_of_several_groups(context: ScenarioContext) -> None:
    """An entry for each key, in a list."""
    version = context.highest_version("FindCoordinator", at_least=FIRST_BATCHED_VERSION)
    call = find_coordinator(context, context.group, f"{context.group}-b", f"{context.group}-c", version=version)
    await call
    context.check("FIND-05", call, "keys", "error")
    context.check("FIND-06", call, "layout", "wire")


@lookups.add("FIND-06")
async def lookup_in_an_old_version(context: ScenarioContext) -> None:
    """The node at top level."""
    call = find_coordinator(
        context, context.group, version=context.highest_version("FindCoordinator", at_most=FIRST_BATCHED_VERSION - 1)
    )
    await call
    context.check("FIND-06", call, "layout", "wire")


@lookups.add("FIND-07")
async def lookup_of_an_unknown_kind(context: ScenarioContext) -> None:
    """There is no coordinator of such a thing."""
    version = context.highest_version("FindCoordinator", at_least=1)
    call = find_coordinator(context, context.group, version=version, key_type=UNKNOWN_KEY_TYPE)
    await call
    context.check("FIND-07", call)


@lookups.add("FIND-08")
async def lookup_while_no_node_can_be_named(context: ScenarioContext) -> None:
    """Seen only on a cluster that is just starting."""
    call = find_coordinator(context, context.group)
    unavailable = first_coordinator(await call)["error_code"] == Error.COORDINATOR_NOT_AVAILABLE
    context.check("FIND-08", call, "node", reached=unavailable, note="a node could be named all the time")


@lookups.add("FIND-09")
async def lookup_of_the_empty_group_id(context: ScenarioContext) -> None:
    """The empty id is an id like any other."""
    await coordinator_node(context, context.group)
    call = find_coordinator(context, "")
    await call
    context.check("FIND-09", call, "error")


@lookups.add("FIND-10", needs=("second-node",))
async def request_to_the_wrong_node(context: ScenarioContext) -> None:
    """Another node sends the member away, and the right one has not heard of it."""
    home = await coordinator_node(context, context.group)
    others = [broker for broker in context.description.brokers if broker != home]
    context.require(bool(others), "there is no other node")
    body = {
        "group_id": context.group,
        "session_timeout_ms": context.session_timeout,
        "rebalance_timeout_ms": 2 * context.session_timeout,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": context.metadata("A")}],
        "reason": None,
    }
    call = context.send("JoinGroup", body, broker=others[0])
    await call
    context.check("FIND-10", call)
    described = context.describe_groups()
    await described
    context.check("FIND-10", described, "state")
