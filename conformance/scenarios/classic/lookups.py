"""FindCoordinator: which node is named, and what it and the other nodes then do."""

from fencepost.conformance.scenario.context import Call, Stage
from fencepost.conformance.scenario.scenario import Collection
from fencepost.conformance.scenarios.classic.commits import accepted
from fencepost.conformance.scenarios.classic.descriptions import listed
from fencepost.conformance.scenarios.classic.neighbours import lookup, named
from fencepost.model.errors import Error
from fencepost.traces.judge.observe.coordinator_lookup import BATCHED, OFFSETS_TOPIC

lookups = Collection()

UNKNOWN_KEY_TYPE = 9


def find(stage: Stage, *groups: str, version: int | None = None, key_type: int = 0, broker: int | None = None) -> Call:
    """Send FindCoordinator for groups."""
    return stage.send("FindCoordinator", lookup(*groups, key_type=key_type), version=version, broker=broker)


async def found(stage: Stage, group: str) -> int:
    """The node that is named for a group."""
    row = named(await find(stage, group))
    stage.need(row["error_code"] == 0, "no coordinator was named")
    return int(row["node_id"])


@lookups.add("FIND-01", smoke=True)
async def lookup_names_a_usable_node(stage: Stage) -> None:
    """The node that is named takes the group's requests."""
    call = find(stage, stage.group)
    row = named(await call)
    stage.shows("FIND-01", call, "error")
    stage.need(row["node_id"] in stage.description.brokers, "the node that was named is not among the brokers")
    body = {"group_id": stage.group, "generation_id": 1, "member_id": "nobody", "group_instance_id": None}
    taken = stage.send("Heartbeat", body, broker=row["node_id"])
    await taken
    stage.shows("FIND-01", taken, "place")


@lookups.add("FIND-01")
async def lookup_of_any_string(stage: Stage) -> None:
    """Spaces, other scripts, symbols beyond 16 bits, a long name."""
    for name in (" ", "группа", "\U0001f986 & \U0001f43b", "long-" * 200):
        call = find(stage, name)
        await call
        stage.shows("FIND-01", call, "error")


@lookups.add("FIND-02")
async def lookup_creates_nothing(stage: Stage) -> None:
    """A group that was only looked for does not exist."""
    await find(stage, stage.group)
    described = stage.describe()
    await described
    stage.shows("FIND-02", described, "state")
    stage.shows("FIND-02", await listed(stage), "listed")


@lookups.add("FIND-02")
async def lookup_of_an_existing_group(stage: Stage) -> None:
    """It is where it was looked for before it existed."""
    await find(stage, stage.group)
    stored = await accepted(stage.commit(None, {0: 7}))
    call = find(stage, stage.group)
    await call
    stage.shows("FIND-02", call, "node", met=stored)


@lookups.add("FIND-03")
async def lookups_agree(stage: Stage) -> None:
    """Asked again, and asked elsewhere."""
    await find(stage, stage.group)
    for broker in (None, *stage.description.brokers):
        call = find(stage, stage.group, broker=broker)
        await call
        stage.shows("FIND-03", call, "node")


@lookups.add("FIND-04", needs=("second-node",))
async def lookup_follows_from_the_group_id(stage: Stage) -> None:
    """The node leads the partition of the offsets topic that the id hashes to; one id has no absolute value."""
    version = stage.version("Metadata", at_least=4, at_most=9)
    body = {"topics": [{"name": OFFSETS_TOPIC}], "allow_auto_topic_creation": False}
    topics = (await stage.send("Metadata", body, version=version))["topics"]
    known = any(topic["error_code"] == 0 for topic in topics)
    for name in (stage.group, f"{stage.group}-other", "polygenelubricants"):
        call = find(stage, name)
        await call
        stage.shows("FIND-04", call, "home", met=known)


@lookups.add("FIND-05", "FIND-06")
async def lookup_of_several_groups(stage: Stage) -> None:
    """An entry for each key, in a list."""
    version = stage.version("FindCoordinator", at_least=BATCHED)
    call = find(stage, stage.group, f"{stage.group}-b", f"{stage.group}-c", version=version)
    await call
    stage.shows("FIND-05", call, "keys", "error")
    stage.shows("FIND-06", call, "layout", "wire")


@lookups.add("FIND-06")
async def lookup_in_an_old_version(stage: Stage) -> None:
    """The node at top level."""
    call = find(stage, stage.group, version=stage.version("FindCoordinator", at_most=BATCHED - 1))
    await call
    stage.shows("FIND-06", call, "layout", "wire")


@lookups.add("FIND-07")
async def lookup_of_an_unknown_kind(stage: Stage) -> None:
    """There is no coordinator of such a thing."""
    version = stage.version("FindCoordinator", at_least=1)
    call = find(stage, stage.group, version=version, key_type=UNKNOWN_KEY_TYPE)
    await call
    stage.shows("FIND-07", call)


@lookups.add("FIND-08")
async def lookup_while_no_node_can_be_named(stage: Stage) -> None:
    """Seen only on a cluster that is just starting."""
    call = find(stage, stage.group)
    unavailable = named(await call)["error_code"] == Error.COORDINATOR_NOT_AVAILABLE
    stage.shows("FIND-08", call, "node", met=unavailable, note="a node could be named all the time")


@lookups.add("FIND-09")
async def lookup_of_the_empty_group_id(stage: Stage) -> None:
    """The empty id is an id like any other."""
    await found(stage, stage.group)
    call = find(stage, "")
    await call
    stage.shows("FIND-09", call, "error")


@lookups.add("FIND-10", needs=("second-node",))
async def request_to_the_wrong_node(stage: Stage) -> None:
    """Another node sends the member away, and the right one has not heard of it."""
    home = await found(stage, stage.group)
    others = [broker for broker in stage.description.brokers if broker != home]
    stage.need(bool(others), "there is no other node")
    body = {
        "group_id": stage.group,
        "session_timeout_ms": stage.session,
        "rebalance_timeout_ms": 2 * stage.session,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": stage.metadata("A")}],
        "reason": None,
    }
    call = stage.send("JoinGroup", body, broker=others[0])
    await call
    stage.shows("FIND-10", call)
    described = stage.describe()
    await described
    stage.shows("FIND-10", described, "state")
