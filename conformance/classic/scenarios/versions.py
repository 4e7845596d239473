"""One harmless request in each version that a target advertises, all of which have to work (LAT-22)."""

from contextlib import suppress
from typing import Any

from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Blocked, Call
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
"""The requirement that a response about an unknown group is evidence of, by API."""
CHECKED_FIELDS = {
    "OffsetFetch": ("error", "offset", "partitions", "groups"),
    "DescribeGroups": ("error", "state", "members", "groups", "message"),
}
"""The fields that the requirement is about, by API; others: all of them."""
FIRST_VERSIONS = {"OffsetCommit": 1, "OffsetFetch": 1}
"""The lowest versions that store offsets in the group, by API; lower ones used ZooKeeper."""


@versions.add(*REQUIREMENT_BY_API.values())
async def every_advertised_version(group: ScenarioContext) -> None:
    """Each version of each API responds to a request about an unknown group."""
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
