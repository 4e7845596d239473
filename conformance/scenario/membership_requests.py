"""The requests of membership: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.conformance.scenario.actors import (
    RESPONSE_TIMEOUT_MS,
    Blocked,
    Call,
    Member,
    subscription,
)
from fencepost.conformance.scenario.requests import RequestSender
from fencepost.model.errors import Error, error_name
from fencepost.traces.events import Body

STATIC_VERSION = 5
"""The first version of JoinGroup with an instance id (KIP-345)."""


class MembershipRequests(RequestSender):
    """Sends the requests by which clients join, keep and leave the group under test."""

    def metadata(self, label: str, *topics: str) -> bytes:
        """Consumer metadata with the label as user data, which tells members apart (no topics: the kit's topic)."""
        return subscription(*(topics or (self.topic,)))[:-4] + len(label).to_bytes(4, "big") + label.encode()

    def join(self, member: Member, *, version: int | None = None, **changes: Any) -> Call:
        """Send JoinGroup for a member; `changes` override fields of the body. The response updates the member."""
        least = STATIC_VERSION if member.instance is not None else 0
        number = self.highest_version("JoinGroup", least) if version is None else version
        body = {
            "group_id": self.group_id,
            "session_timeout_ms": member.session_timeout,
            "rebalance_timeout_ms": member.rebalance_timeout,
            "member_id": member.id,
            "group_instance_id": member.instance,
            "protocol_type": member.protocol_type,
            "protocols": [{"name": name, "metadata": metadata} for name, metadata in member.protocols],
            "reason": None,
        }
        timeout = RESPONSE_TIMEOUT_MS + member.rebalance_timeout + self.initial_delay
        call = self.send("JoinGroup", body | changes, version=number, member=member.label, timeout=timeout)
        call.exchange.response.add_done_callback(lambda response: self.learn_from_join(member, response))
        return call

    def join_with_new_metadata(self, member: Member, label: str = "changed") -> Call:
        """Change the metadata of a member and send its JoinGroup, which begins a rebalance (JOIN-30, JOIN-33)."""
        member.protocols = tuple((name, self.metadata(label)) for name, _ in member.protocols)
        return self.join(member)

    @staticmethod
    def learn_from_join(member: Member, response: "asyncio.Future[Body | None]") -> None:
        """Update a member by its JoinGroup response: the id by MEMBER_ID_REQUIRED, all of it by a success."""
        body = None if response.cancelled() else response.result()
        if body is None:
            return
        if body.get("error_code") == Error.MEMBER_ID_REQUIRED:
            member.id = body.get("member_id") or ""
        elif body.get("error_code") == 0:
            member.id = body.get("member_id") or member.id
            member.generation = body.get("generation_id", -1)
            member.protocol = body.get("protocol_name")
            member.leader = body.get("leader")
            member.members = tuple(body.get("members") or ())

    async def join_new(self, member: Member, *, version: int | None = None) -> Call:
        """Join as a new member, in two steps if the version requires a member id; returns the last call, to await."""
        least = STATIC_VERSION if member.instance is not None else 0
        number = self.highest_version("JoinGroup", least) if version is None else version
        member.id = ""
        first = self.join(member, version=number)
        if number < 4 or member.instance is not None:
            return first
        body = await first
        if body["error_code"] != Error.MEMBER_ID_REQUIRED:
            if body["error_code"] == 0:
                return first
            raise Blocked(f"JoinGroup got {error_name(body['error_code'])} instead of MEMBER_ID_REQUIRED")
        return self.join(member, version=number)

    def sync(
        self,
        member: Member,
        assignments: Mapping[str, bytes] | Sequence[tuple[str, bytes]] = (),
        *,
        version: int | None = None,
        **changes: Any,
    ) -> Call:
        """Send SyncGroup for a member, with assignments by member id."""
        pairs = assignments.items() if isinstance(assignments, Mapping) else assignments
        body = {
            "group_id": self.group_id,
            "generation_id": member.generation,
            "member_id": member.id,
            "group_instance_id": member.instance,
            "protocol_type": member.protocol_type,
            "protocol_name": member.protocol,
            "assignments": [{"member_id": member_id, "assignment": assignment} for member_id, assignment in pairs],
        }
        timeout = RESPONSE_TIMEOUT_MS + member.rebalance_timeout
        return self.send("SyncGroup", body | changes, version=version, member=member.label, timeout=timeout)

    def sync_leader(self, leader: Member, *followers: Member) -> Call:
        """Send SyncGroup for the leader; each member is assigned its label."""
        return self.sync(leader, {member.id: member.label.encode() for member in (leader, *followers)})

    def heartbeat(self, member: Member, *, version: int | None = None, **changes: Any) -> Call:
        """Send Heartbeat for a member."""
        body = {
            "group_id": self.group_id,
            "generation_id": member.generation,
            "member_id": member.id,
            "group_instance_id": member.instance,
        }
        return self.send("Heartbeat", body | changes, version=version, member=member.label)

    def leave(self, *members: Member | Body, version: int | None = None, **changes: Any) -> Call:
        """Send LeaveGroup for members, or for entries of its body; versions before 3 carry the first alone."""
        number = self.highest_version("LeaveGroup") if version is None else version
        entries = [
            {"member_id": one.id, "group_instance_id": one.instance, "reason": None} if isinstance(one, Member) else one
            for one in members
        ]
        single = entries[0]["member_id"] if entries else ""
        body = {"group_id": self.group_id, "member_id": single, "members": entries} | changes
        label = members[0].label if members and isinstance(members[0], Member) else ""
        return self.send(
            "LeaveGroup", without_field(body, "member_id" if number >= 3 else "members"), version=number, member=label
        )


def without_field(body: Body, name: str) -> dict[str, Any]:
    """A copy of the body without the field."""
    return {key: value for key, value in body.items() if key != name}
