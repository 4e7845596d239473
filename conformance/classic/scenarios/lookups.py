"""FindCoordinator: which node it returns, how that node and others respond, and in which versions."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fencepost.conformance.classic.scenarios.administration import list_groups_nearby
from fencepost.conformance.classic.scenarios.commits import is_commit_accepted
from fencepost.conformance.classic.scenarios.neighbours import (
    NO_BROKER,
    coordinator_of,
    find_coordinator_body,
    first_coordinator,
)
from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Blocked, Call
from fencepost.model.errors import Error
from fencepost.traces.classic.failover import FIRST_BATCHED_VERSION, OFFSETS_TOPIC
from fencepost.traces.events import Body

lookups = ScenarioFamily()

UNKNOWN_KEY_TYPE = 9


def find_coordinator(
    group: ScenarioContext, *groups: str, version: int | None = None, key_type: int = 0, broker: int | None = None
) -> Call:
    """Send FindCoordinator for keys: ids of groups, unless `key_type` is another."""
    return group.send(
        "FindCoordinator", find_coordinator_body(*groups, key_type=key_type), version=version, broker=broker
    )


async def is_offsets_topic_known(group: ScenarioContext) -> bool:
    """Whether Metadata tells who leads the partitions of the offsets topic."""
    version = group.highest_version("Metadata", at_least=4, at_most=9)
    asked = {"include_cluster_authorized_operations": False, "include_topic_authorized_operations": False}
    body = {"topics": [{"name": OFFSETS_TOPIC}], "allow_auto_topic_creation": False, **asked}
    topics = (await group.send("Metadata", body, version=version))["topics"]
    return any(topic["error_code"] == 0 for topic in topics)


@lookups.add("FIND-01", smoke=True)
async def lookup_names_a_usable_node(group: ScenarioContext) -> None:
    """The node that FindCoordinator returns accepts requests of the group."""
    call = find_coordinator(group, group.group_id)
    row = first_coordinator(await call)
    await group.check("FIND-01", call, fields="error")
    group.require(row["node_id"] in group.description.brokers, NO_BROKER)
    body = {"group_id": group.group_id, "generation_id": 1, "member_id": "nobody", "group_instance_id": None}
    await group.check("FIND-01", group.send("Heartbeat", body, broker=row["node_id"]), fields="place")


@lookups.add("FIND-01")
async def lookup_of_any_string(group: ScenarioContext) -> None:
    """Group ids of spaces, of other scripts, of symbols beyond 16 bits and of great length are accepted."""
    for name in (" ", "группа", "\U0001f986 & \U0001f43b", "long-" * 200):
        await group.check_versions("FIND-01", find_coordinator(group, name), fields="error")


@lookups.add("FIND-02")
async def lookup_creates_nothing(group: ScenarioContext) -> None:
    """FindCoordinator creates no group."""
    await find_coordinator(group, group.group_id)
    await group.check("FIND-02", group.describe_groups(), fields="state")
    await group.check("FIND-02", await list_groups_nearby(group), fields="listed")


@lookups.add("FIND-02")
async def lookup_of_an_existing_group(group: ScenarioContext) -> None:
    """The coordinator of a group is the same before and after its creation."""
    await find_coordinator(group, group.group_id)
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check("FIND-02", find_coordinator(group, group.group_id), fields="node", reached=stored)


@lookups.add("FIND-03")
async def lookups_agree(group: ScenarioContext) -> None:
    """Repeated lookups, and lookups on other nodes, return the same coordinator."""
    await find_coordinator(group, group.group_id)
    for broker in (None, *group.description.brokers):
        await group.check("FIND-03", find_coordinator(group, group.group_id, broker=broker), fields="node")


@lookups.add("FIND-04", needs=("second-node",))
async def lookup_follows_from_the_group_id(group: ScenarioContext) -> None:
    """The coordinator leads the partition of the offsets topic by the hash of the id, also the hash -2^31."""
    known = await is_offsets_topic_known(group)
    for name in (group.group_id, f"{group.group_id}-other", "polygenelubricants"):
        await group.check("FIND-04", find_coordinator(group, name), fields="home", reached=known)


@lookups.add("FIND-05", "FIND-06")
async def lookup_of_several_groups(group: ScenarioContext) -> None:
    """The response has one entry for each key."""
    version = group.highest_version("FindCoordinator", at_least=FIRST_BATCHED_VERSION)
    call = find_coordinator(group, group.group_id, f"{group.group_id}-b", f"{group.group_id}-c", version=version)
    await group.check_versions("FIND-05", call, fields=("keys", "error"), since=FIRST_BATCHED_VERSION)
    await group.check("FIND-06", call, fields=("layout", "wire"))


@lookups.add("FIND-06")
async def lookup_in_an_old_version(group: ScenarioContext) -> None:
    """Before version 4, the coordinator is at top level."""
    await group.check(
        "FIND-06",
        find_coordinator(
            group, group.group_id, version=group.highest_version("FindCoordinator", at_most=FIRST_BATCHED_VERSION - 1)
        ),
        fields=("layout", "wire"),
    )


@lookups.add("FIND-07")
async def lookup_of_an_unknown_kind(group: ScenarioContext) -> None:
    """An unknown type of key is refused."""
    version = group.highest_version("FindCoordinator", at_least=1)
    await group.check_versions(
        "FIND-07", find_coordinator(group, group.group_id, version=version, key_type=UNKNOWN_KEY_TYPE), since=1
    )


@lookups.add("FIND-08")
async def lookup_while_no_node_can_be_named(group: ScenarioContext) -> None:
    """COORDINATOR_NOT_AVAILABLE, which only a cluster that is just starting returns, comes without a node."""
    call = find_coordinator(group, group.group_id)
    unavailable = first_coordinator(await call)["error_code"] == Error.COORDINATOR_NOT_AVAILABLE
    await group.check("FIND-08", call, fields="node", reached=unavailable, note="a node could be named all the time")


@lookups.add("FIND-09")
async def lookup_of_the_empty_group_id(group: ScenarioContext) -> None:
    """The empty group id has a coordinator."""
    await find_coordinator(group, group.group_id)
    await group.check("FIND-09", find_coordinator(group, ""), fields="error")


@lookups.add("FIND-10", needs=("second-node",))
async def request_to_the_wrong_node(group: ScenarioContext) -> None:
    """Another node refuses JoinGroup with NOT_COORDINATOR, and the coordinator does not know the group."""
    home = await coordinator_of(group, group.group_id)
    others = [broker for broker in group.description.brokers if broker != home]
    group.require(bool(others), "there is no other node")
    body = {
        "group_id": group.group_id,
        "session_timeout_ms": group.long_session_timeout,
        "rebalance_timeout_ms": group.rebalance_timeout,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": group.metadata("A")}],
        "reason": None,
    }

    await group.check("FIND-10", group.send("JoinGroup", body, broker=others[0]))
    await group.check("FIND-10", group.describe_groups(), fields="state")


# --- One harmless request in each version that a target advertises, all of which have to work (LAT-22).

versions = ScenarioFamily()

REQUIREMENT_BY_API = {
    "JoinGroup": "JOIN-05",
    "SyncGroup": "SYNC-02",
    "Heartbeat": "HB-02",
    "LeaveGroup": "LEAVE-02",
    "OffsetCommit": "COMMIT-11",
    "OffsetFetch": "FETCH-03",
    "DescribeGroups": "ADMIN-01",
    "ListGroups": "ADMIN-15",
    "DeleteGroups": "ADMIN-16",
    "OffsetDelete": "ADMIN-23",
}
"""The requirement that a response about an unknown group is evidence of, by API."""
CHECKED_FIELDS = {
    "OffsetFetch": ("error", "offset", "partitions", "groups"),
    "DescribeGroups": ("error", "state", "members", "groups", "message"),
    "ListGroups": ("error",),
}
"""The fields that the requirement is about, by API; others: all of them."""


@versions.add(*REQUIREMENT_BY_API.values())
async def every_advertised_version(group: ScenarioContext) -> None:
    """Each version of each API responds to a request about an unknown group."""
    calls: list[tuple[str, Call]] = []
    for api, requirement in REQUIREMENT_BY_API.items():
        for version in group.offered_versions(api):
            calls.append((requirement, send_minimal(group, api, version)))
    for requirement, call in calls:
        with suppress(Blocked):
            await call
        group.add_check(requirement, call, fields=CHECKED_FIELDS.get(call.api, ()))


@versions.add("JOIN-06", "SYNC-11", "HB-05", "COMMIT-01", "LEAVE-04")
async def member_in_every_version(group: ScenarioContext) -> None:
    """In each version, a lone member joins, syncs, heartbeats, commits and leaves."""
    offered = {api: group.offered_versions(api) for api in REQUIREMENT_BY_API}
    lives = [
        live_in_versions(
            group.for_group(number), {api: each[min(number, len(each) - 1)] for api, each in offered.items() if each}
        )
        for number in range(max(map(len, offered.values())))
    ]
    for outcome in await asyncio.gather(*lives, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


async def live_in_versions(group: ScenarioContext, version: Mapping[str, int]) -> None:
    """Check the requests of a lone member in these versions, by API."""
    a = group.member("A")
    await group.check("JOIN-06", await group.join_new(a, version=version.get("JoinGroup")), fields="error")
    await group.check("SYNC-11", group.sync(a, {a.id: b"plan"}, version=version.get("SyncGroup")))
    await group.check("HB-05", group.heartbeat(a, version=version.get("Heartbeat")))
    await group.check("COMMIT-01", group.commit(a, {0: 7}, version=version.get("OffsetCommit")))
    await group.check("LEAVE-04", group.leave(a, version=version.get("LeaveGroup")))


def send_minimal(group: ScenarioContext, api: str, version: int) -> Call:
    """Send a request about an unknown group of its own."""
    unknown = group.member("A")
    unknown.id, unknown.generation, unknown.protocol = "stranger", 1, "range"
    group_id = f"{group.group_id}-{api}-{version}"
    changes: Body = {"group_id": group_id}
    calls: dict[str, Any] = {
        "JoinGroup": lambda: group.join(unknown, version=version, **changes),
        "SyncGroup": lambda: group.sync(unknown, version=version, **changes),
        "Heartbeat": lambda: group.heartbeat(unknown, version=version, **changes),
        "LeaveGroup": lambda: group.leave(unknown, version=version, **changes),
        "OffsetCommit": lambda: group.commit(unknown, {0: 5}, version=version, **changes),
        "OffsetFetch": lambda: group.fetch(groups=[group_id], version=version),
        "DescribeGroups": lambda: group.describe_groups(group_id, version=version),
        "ListGroups": lambda: group.list_groups(version=version),
        "DeleteGroups": lambda: group.delete_groups(group_id, version=version),
        "OffsetDelete": lambda: group.delete_offsets([0], **changes),
    }
    call: Call = calls[api]()
    return call
