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
async def every_advertised_version(context: ScenarioContext) -> None:
    """A request about a group that does not exist, in each version of each API."""
    calls: list[tuple[str, Call]] = []
    for api, requirement in REQUIREMENT_BY_API.items():
        lowest, highest = context.description.versions.get(api, (0, -1))
        for version in range(max(lowest, FIRST_VERSIONS.get(api, 0)), highest + 1):
            calls.append((requirement, send_minimal(context, api, version)))
    for requirement, call in calls:
        with suppress(Blocked):
            await call
        context.check(requirement, call, *CHECKED_FIELDS.get(call.api, ()))


def send_minimal(context: ScenarioContext, api: str, version: int) -> Call:
    """A request about a group of its own that nobody made."""
    stranger = context.member("A")
    stranger.id, stranger.generation, stranger.protocol = "stranger", 1, "range"
    group = f"{context.group}-{api}-{version}"
    changes: Body = {"group_id": group}
    calls: dict[str, Any] = {
        "JoinGroup": lambda: context.join(stranger, version=version, **changes),
        "SyncGroup": lambda: context.sync(stranger, version=version, **changes),
        "Heartbeat": lambda: context.heartbeat(stranger, version=version, **changes),
        "LeaveGroup": lambda: context.leave(stranger, version=version, **changes),
        "OffsetCommit": lambda: context.commit(stranger, {0: 5}, version=version, **changes),
        "OffsetFetch": lambda: context.fetch(groups=[group], version=version),
        "DescribeGroups": lambda: context.describe_groups(group, version=version),
        "ListGroups": lambda: context.list_groups(version=version),
        "DeleteGroups": lambda: context.delete_groups(group, version=version),
        "OffsetDelete": lambda: context.delete_offsets([0], **changes),
    }
    call: Call = calls[api]()
    return call
