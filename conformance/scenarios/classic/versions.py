"""Every version that a target advertises has to work (LAT-22): one harmless request in each of them."""

from contextlib import suppress
from typing import Any

from fencepost.conformance.scenario.context import Blocked, Call, Stage
from fencepost.conformance.scenario.scenario import Collection
from fencepost.traces.events import Body

versions = Collection()

SHOWS = {
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
FIELDS = {
    "OffsetFetch": ("error", "offset", "partitions", "groups"),
    "DescribeGroups": ("error", "state", "members", "groups", "message"),
}
"""Where the requirement speaks of some fields only."""
KNOWN_FROM = {"OffsetCommit": 1, "OffsetFetch": 1}
"""Versions below these went to ZooKeeper."""


@versions.add(*SHOWS.values())
async def every_advertised_version(stage: Stage) -> None:
    """A request about a group that does not exist, in each version of each API."""
    calls: list[tuple[str, Call]] = []
    for api, requirement in SHOWS.items():
        lowest, highest = stage.description.versions.get(api, (0, -1))
        for version in range(max(lowest, KNOWN_FROM.get(api, 0)), highest + 1):
            calls.append((requirement, ask(stage, api, version)))
    for requirement, call in calls:
        with suppress(Blocked):
            await call
        stage.shows(requirement, call, *FIELDS.get(call.api, ()))


def ask(stage: Stage, api: str, version: int) -> Call:
    """A request about a group of its own that nobody made."""
    stranger = stage.member("A")
    stranger.id, stranger.generation, stranger.protocol = "stranger", 1, "range"
    group = f"{stage.group}-{api}-{version}"
    changes: Body = {"group_id": group}
    calls: dict[str, Any] = {
        "JoinGroup": lambda: stage.join(stranger, version=version, **changes),
        "SyncGroup": lambda: stage.sync(stranger, version=version, **changes),
        "Heartbeat": lambda: stage.heartbeat(stranger, version=version, **changes),
        "LeaveGroup": lambda: stage.leave(stranger, version=version, **changes),
        "OffsetCommit": lambda: stage.commit(stranger, {0: 5}, version=version, **changes),
        "OffsetFetch": lambda: stage.fetch(groups=[group], version=version),
        "DescribeGroups": lambda: stage.describe(group, version=version),
        "ListGroups": lambda: stage.list_groups(version=version),
        "DeleteGroups": lambda: stage.delete(group, version=version),
        "OffsetDelete": lambda: stage.delete_offsets([0], **changes),
    }
    call: Call = calls[api]()
    return call
