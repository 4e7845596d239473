"""The requests of members: joining, syncing, heartbeats, leaving."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fencepost.conformance.scenario.actors import (
    CONSUMER,
    RANGE,
    RESPONSE_TIMEOUT_MS,
    Blocked,
    Call,
    Member,
    subscription,
)
from fencepost.conformance.scenario.requests import RequestSender
from fencepost.model.errors import error_name
from fencepost.traces.events import Body


class MemberRequests(RequestSender):
    """What members of the scenario's group send."""

    def member(
        self,
        label: str,
        *protocols: tuple[str, bytes] | str,
        session_timeout: int | None = None,
        rebalance_timeout: int | None = None,
        instance: str | None = None,
        protocol_type: str = CONSUMER,
    ) -> Member:
        """A new actor; it offers `range` with a subscription to the kit's topic unless protocols are given."""
        offered = tuple(
            (each, self.metadata(label)) if isinstance(each, str) else each for each in protocols or (RANGE,)
        )
        length = self.session_timeout if session_timeout is None else session_timeout
        wait = max(2 * length, self.rebalance_timeout) if rebalance_timeout is None else rebalance_timeout
        name = f"{instance}-{self.group}" if instance else None
        return Member(label, offered, length, wait, name, protocol_type)

    def member_without_heartbeats(
        self,
        label: str,
        *protocols: tuple[str, bytes] | str,
        instance: str | None = None,
        protocol_type: str = CONSUMER,
    ) -> Member:
        """A new actor that need not heartbeat, in rounds that wait no longer for it than for others."""
        return self.member(
            label,
            *protocols,
            session_timeout=self.long_session_timeout,
            rebalance_timeout=self.rebalance_timeout,
            instance=instance,
            protocol_type=protocol_type,
        )

    def metadata(self, label: str, *topics: str) -> bytes:
        """A subscription that tells the members apart by their user data."""
        return subscription(*(topics or (self.topic,)))[:-4] + len(label).to_bytes(4, "big") + label.encode()

    def join(self, member: Member, *, version: int | None = None, **changes: Any) -> Call:
        """Send JoinGroup for a member; `changes` override fields of the body. The member learns from a success."""
        number = self.highest_version("JoinGroup") if version is None else version
        body = {
            "group_id": self.group,
            "session_timeout_ms": member.session_timeout,
            "rebalance_timeout_ms": member.rebalance_timeout,
            "member_id": member.id,
            "group_instance_id": member.instance,
            "protocol_type": member.protocol_type,
            "protocols": [{"name": name, "metadata": metadata} for name, metadata in member.protocols],
            "reason": None,
        }
        patience = RESPONSE_TIMEOUT_MS + member.rebalance_timeout + self.initial_delay
        call = self.send("JoinGroup", body | changes, version=number, member=member.label, timeout=patience)
        call.exchange.response.add_done_callback(lambda response: self.learn_from_join(member, response))
        return call

    def join_with_new_metadata(self, member: Member, label: str = "changed") -> Call:
        """Send JoinGroup with metadata changed for good: it begins a rebalance, whoever sends it (JOIN-30, JOIN-33)."""
        member.protocols = tuple((name, self.metadata(label)) for name, _ in member.protocols)
        return self.join(member)

    @staticmethod
    def learn_from_join(member: Member, response: "asyncio.Future[Body | None]") -> None:
        """Learn from a JoinGroup answer: the id from a 79, the rest from a success."""
        body = None if response.cancelled() else response.result()
        if body is None:
            return
        if body.get("error_code") == 79:
            member.id = body.get("member_id") or ""
        elif body.get("error_code") == 0:
            member.id = body.get("member_id") or member.id
            member.generation = body.get("generation_id", -1)
            member.protocol = body.get("protocol_name")
            member.leader = body.get("leader")
            member.members = tuple(body.get("members") or ())

    def replacement_of(self, member: Member) -> Member:
        """Another actor that claims the instance id of a static member, as its process does after a crash."""
        return replace(member, label=f"{member.label}'", id="", generation=-1, protocol=None, leader=None, members=())

    async def join_new(self, member: Member, *, version: int | None = None) -> Call:
        """Join as a new member, asking for an id first where the version needs it; returns the JoinGroup to await."""
        number = self.highest_version("JoinGroup") if version is None else version
        member.id = ""
        first = self.join(member, version=number)
        if number < 4 or member.instance is not None:
            return first
        body = await first
        if body["error_code"] != 79:
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
            "group_id": self.group,
            "generation_id": member.generation,
            "member_id": member.id,
            "group_instance_id": member.instance,
            "protocol_type": member.protocol_type,
            "protocol_name": member.protocol,
            "assignments": [{"member_id": each, "assignment": given} for each, given in pairs],
        }
        patience = RESPONSE_TIMEOUT_MS + member.rebalance_timeout
        return self.send("SyncGroup", body | changes, version=version, member=member.label, timeout=patience)

    def sync_leader(self, leader: Member, *followers: Member) -> Call:
        """Send SyncGroup for the leader, with an assignment for everyone: the labels."""
        return self.sync(leader, {one.id: one.label.encode() for one in (leader, *followers)})

    def heartbeat(self, member: Member, *, version: int | None = None, **changes: Any) -> Call:
        """Send Heartbeat for a member."""
        body = {
            "group_id": self.group,
            "generation_id": member.generation,
            "member_id": member.id,
            "group_instance_id": member.instance,
        }
        return self.send("Heartbeat", body | changes, version=version, member=member.label)

    def leave(self, *members: Member | Body, version: int | None = None, **changes: Any) -> Call:
        """Send LeaveGroup for members, or for entries given as bodies."""
        number = self.highest_version("LeaveGroup") if version is None else version
        entries = [
            {"member_id": one.id, "group_instance_id": one.instance, "reason": None} if isinstance(one, Member) else one
            for one in members
        ]
        single = entries[0]["member_id"] if entries else ""
        body = {"group_id": self.group, "member_id": single, "members": entries} | changes
        label = members[0].label if members and isinstance(members[0], Member) else ""
        return self.send(
            "LeaveGroup", without_field(body, "member_id" if number >= 3 else "members"), version=number, member=label
        )


def without_field(body: Body, name: str) -> dict[str, Any]:
    """A body without one field."""
    return {key: value for key, value in body.items() if key != name}
