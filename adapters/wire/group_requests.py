"""The kit's own requests about its own groups, and the removal of groups that it no longer needs."""

import asyncio
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from fencepost.adapters.address import TargetError
from fencepost.adapters.wire.cluster import GROUP_KEY, AdminClient, Cluster
from fencepost.adapters.wire.connection import ConnectionLossError
from fencepost.model.errors import Error
from fencepost.model.wire.codec import fit_body
from fencepost.traces.events import Body

MAX_CONCURRENT_REMOVALS = 16
REMOVAL_PATIENCE_S = 8.0
RETRY_DELAY_S = 0.25
GROUP_OF_A_RUN = re.compile(r"-([0-9a-f]{6})(?:-[a-z-]+)?$")
"""Ends the name of a group that a run has created, with the run's token."""
GONE = frozenset({Error.NONE, Error.GROUP_ID_NOT_FOUND})
"""Results of a deletion after which the group does not exist."""
REBALANCING_STATES = ("PreparingRebalance", "CompletingRebalance")


class GroupRequests:
    """Sends requests to the coordinators of groups, outside of every trace."""

    def __init__(self, client: AdminClient, cluster: Cluster) -> None:
        self._client = client
        self._cluster = cluster

    def offers(self, api: str) -> bool:
        """Whether the target has the API."""
        return api in self._client.versions

    def version_of(self, api: str, preferred: int) -> int:
        """The version in which `send` sends a request."""
        return self._client.nearest_version(api, preferred)

    async def send(self, api: str, group: str, body: Body, preferred: int = 99) -> Body:
        """Send a request to the coordinator of a group, in the version nearest to `preferred`, and return the body of
        the response. Raises `ConnectionLossError` and `TargetError`."""
        version = self.version_of(api, preferred)
        address = await self._cluster.locate((GROUP_KEY, group), None)
        fitting = fit_body(f"{api}Request", version, body)
        return (await self._client.request(address, api, version, fitting)).body

    async def leave(self, group: str, members: Iterable[str]) -> None:
        """Have members leave a group, whether they are in it or not. Raises as `send`."""
        for member in members:
            entry = {"member_id": member, "group_instance_id": None, "reason": None}
            await self.send("LeaveGroup", group, {"group_id": group, "member_id": member, "members": [entry]}, 5)

    async def mark_run(self, token: str, topic: Body) -> None:
        """Create a group that shows other runs that this one is under way: an offset of `topic`, by name and id."""
        if not self.offers("OffsetCommit"):
            return
        group = f"fencepost-{token}-presence"
        partition = {"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}
        body: Body = {"group_id": group, "member_id": "", "topics": [{**topic, "partitions": [partition]}]}
        self._cluster.groups.add(group)
        with suppress(ConnectionLossError, TargetError):
            await self.send("OffsetCommit", group, body, 8)

    async def find_other_run(self, token: str) -> str:
        """The name of a group that another run has created, "" if there is none."""
        for address in self._cluster.brokers.values():
            if not self.offers("ListGroups"):
                break
            try:
                version = self.version_of("ListGroups", 4)
                body = (await self._client.request(address, "ListGroups", version, {})).body
            except ConnectionLossError:
                continue
            for row in body.get("groups") or ():
                found = GROUP_OF_A_RUN.search(row.get("group_id") or "")
                if found is not None and found[1] != token:
                    return str(row["group_id"])
        return ""

    async def find_rebalancing(self) -> list[str]:
        """The groups of this run that are in a join or sync phase; none are found where ListGroups tells no states."""
        found: list[str] = []
        for address in self._cluster.brokers.values() if self.offers("ListGroups") else ():
            with suppress(ConnectionLossError, TargetError):
                version = self.version_of("ListGroups", 4)
                body = (await self._client.request(address, "ListGroups", version, {})).body
                rows = [row for row in body.get("groups") or () if row.get("group_state") in REBALANCING_STATES]
                found += (row["group_id"] for row in rows if row["group_id"] in self._cluster.groups)
        return sorted(found)

    async def remove_groups(self, groups: Collection[str], patience_s: float = REMOVAL_PATIENCE_S) -> list[str]:
        """Delete groups, those with members after these have left, and those that ids are reserved for; returns the
        groups that remain. An empty group may still be in the join phase of members that are gone, so that it is tried
        again for `patience_s` seconds."""
        if not self.offers("DeleteGroups"):
            return sorted(groups)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience_s
        left = sorted(groups)
        while True:
            left = await self._remove_once(left)
            if not left or loop.time() + RETRY_DELAY_S > deadline:
                return left
            await asyncio.sleep(RETRY_DELAY_S)

    async def _remove_once(self, groups: Sequence[str]) -> list[str]:
        """Try to remove each of the groups; returns those that remain."""
        places = asyncio.Semaphore(MAX_CONCURRENT_REMOVALS)

        async def is_left(group: str) -> bool:
            async with places:
                try:
                    return not await self._remove_group(group)
                except (ConnectionLossError, TargetError):
                    return True

        left = await asyncio.gather(*(is_left(group) for group in groups))
        return [group for group, is_there in zip(groups, left, strict=True) if is_there]

    async def _remove_group(self, group: str) -> bool:
        """Delete a group; returns whether it is gone."""
        if await self._delete_group(group):
            return True
        if not self.offers("DescribeGroups"):
            return False
        described = await self.send("DescribeGroups", group, {"groups": [group]}, 4)
        rows: list[Body] = described.get("groups") or []
        members = [member.get("member_id") for row in rows for member in row.get("members") or ()]
        reserved = sorted(self._cluster.reserved_ids.get(group, ()))
        await self.leave(group, [member for member in (*members, *reserved) if member])
        return await self._delete_group(group)

    async def _delete_group(self, group: str) -> bool:
        results = (await self.send("DeleteGroups", group, {"groups_names": [group]}, 1)).get("results") or ()
        return bool(results) and all(result.get("error_code") in GONE for result in results)
