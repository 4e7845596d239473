"""Every version that a target advertises has to work (LAT-22): one harmless request in each of them."""

from contextlib import suppress
from typing import Any

from fencepost.conformance.scenario.context import Blocked, Call, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.traces.events import Body

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
"""What the answer about a group that does not exist is evidence of."""
CHECKED_FIELDS = {
    "OffsetFetch": ("error", "offset", "partitions", "groups"),
    "DescribeGroups": ("error", "state", "members", "groups", "message"),
}
"""Where the requirement speaks of some fields only."""
FIRST_VERSIONS = {"OffsetCommit": 1, "OffsetFetch": 1}
"""Versions below these went to ZooKeeper."""


@versions.add(*REQUIREMENT_BY_API.values())
async def every_advertised_version(group: ScenarioContext) -> None:
    """A request about a group that does not exist, in each version of each API."""
    calls: list[tuple[str, Call]] = []
    for api, requirement in REQUIREMENT_BY_API.items():
        lowest, highest = group.description.versions.get(api, (0, -1))
        for version in range(max(lowest, FIRST_VERSIONS.get(api, 0)), highest + 1):
            calls.append((requirement, send_minimal(group, api, version)))
    for requirement, call in calls:
        with suppress(Blocked):
            await call
        group.add_check(requirement, call, fields=CHECKED_FIELDS.get(call.api, ()))


def send_minimal(group: ScenarioContext, api: str, version: int) -> Call:
    """A request about a group of its own that nobody made."""
    stranger = group.member("A")
    stranger.id, stranger.generation, stranger.protocol = "stranger", 1, "range"
    group_id = f"{group.group_id}-{api}-{version}"
    changes: Body = {"group_id": group_id}
    calls: dict[str, Any] = {
        "JoinGroup": lambda: group.join(stranger, version=version, **changes),
        "SyncGroup": lambda: group.sync(stranger, version=version, **changes),
        "Heartbeat": lambda: group.heartbeat(stranger, version=version, **changes),
        "LeaveGroup": lambda: group.leave(stranger, version=version, **changes),
        "OffsetCommit": lambda: group.commit(stranger, {0: 5}, version=version, **changes),
        "OffsetFetch": lambda: group.fetch(groups=[group_id], version=version),
        "DescribeGroups": lambda: group.describe_groups(group_id, version=version),
        "ListGroups": lambda: group.list_groups(version=version),
        "DeleteGroups": lambda: group.delete_groups(group_id, version=version),
        "OffsetDelete": lambda: group.delete_offsets([0], **changes),
    }
    call: Call = calls[api]()
    return call
