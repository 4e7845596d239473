"""The requests of administrators: DescribeGroups, ListGroups, DeleteGroups."""

from collections.abc import Sequence
from typing import Any

from fencepost.conformance.scenario.actors import Call
from fencepost.conformance.scenario.requests import RequestSender


class AdminRequests(RequestSender):
    """Sends requests about whole groups: the group under test or others."""

    def describe_groups(self, *groups: str, version: int | None = None, **changes: Any) -> Call:
        """Send DescribeGroups for the groups (none: the group under test)."""
        body = {"groups": list(groups) or [self.group_id], "include_authorized_operations": False}
        return self.send("DescribeGroups", body | changes, version=version)

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = (), *, version: int | None = None) -> Call:
        """Send ListGroups; empty filters let every group pass."""
        body = {"states_filter": list(states), "types_filter": list(types)}
        return self.send("ListGroups", body, version=version)

    def delete_groups(self, *groups: str, version: int | None = None) -> Call:
        """Send DeleteGroups for the groups (none: the group under test)."""
        return self.send("DeleteGroups", {"groups_names": list(groups) or [self.group_id]}, version=version)
