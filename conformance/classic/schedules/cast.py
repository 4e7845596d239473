"""The cast of a schedule at play: the knowledge of each actor, and its requests in flight."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.target import SettingOrigin
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.requests import RANGE, Call, Member, TransactionalProducer
from fencepost.conformance.run.schedule import Move, actor_label
from fencepost.model.settings import NEW_MEMBER_TIMEOUT_MS
from fencepost.traces.events import Body

SHORT, LONG = "short", "long"
PROTOCOLS: Mapping[str, str] = {"a": RANGE, "b": "roundrobin", "c": "sticky"}
"""The protocol behind each letter of an offer."""
UNKNOWN_ID = "nobody"
"""A member id that no coordinator hands out."""
MAX_WAIT_MS = 25_000
"""How long a schedule waits in all for deadlines and responses of a target on real time."""
ABSENT_TOPIC = "absent"
"""A topic that does not exist."""
NEWEST = ""
"""The client with the highest version of each request."""
CLIENTS: Mapping[str, Mapping[str, int]] = {
    "0.9": {"JoinGroup": 0, "SyncGroup": 0, "Heartbeat": 0, "LeaveGroup": 0, "OffsetCommit": 2},
    "1.0": {"JoinGroup": 2, "SyncGroup": 1, "Heartbeat": 1, "LeaveGroup": 1, "OffsetCommit": 3},
    "2.0": {"JoinGroup": 3, "SyncGroup": 2, "Heartbeat": 2, "LeaveGroup": 2, "OffsetCommit": 4},
    "2.4": {"JoinGroup": 6, "SyncGroup": 4, "Heartbeat": 4, "LeaveGroup": 4, "OffsetCommit": 7},
}
"""The versions of requests that older clients of Apache Kafka send at most, by release."""


@dataclass(frozen=True, slots=True)
class MemberRole:
    """The offer of a member when it begins. Timeouts are "short" or "long", as the target's bounds have it; `offer` has
    a letter for each protocol; actors of one `instance` other than 0 claim the same static member of their `group`,
    which is a number. `client` is a release in `CLIENTS`, `subscription` a number that `Cast.metadata_of` explains."""

    session: str = LONG
    rebalance: str = SHORT
    offer: str = "a"
    instance: int = 0
    group: int = 0
    client: str = NEWEST
    subscription: int = 0


@dataclass(slots=True)
class Actor:
    """A member of the cast: its offer, its knowledge of the group, and its requests so far."""

    member: Member
    context: ScenarioContext
    """Of its group."""
    group: int = 0
    metadata: int = 0
    offer: str = "a"
    client: str = NEWEST
    previous_id: str = ""
    last_contact: int = 0
    """When it last sent a request or got a response, in milliseconds."""
    pending_calls: list[Call] = field(default_factory=list)
    """Requests without a response so far."""
    sent_requests: dict[str, list[tuple[int, Body]]] = field(default_factory=dict)
    """Version and body of every request so far, by API."""


@dataclass(slots=True)
class Transaction:
    """A transactional producer, and the groups that its open transaction commits offsets of; none: it has none open."""

    producer: TransactionalProducer
    groups: set[int] = field(default_factory=set)


class Cast:
    """The actors of a schedule, in groups of their own, in the context of a scenario."""

    def __init__(self, context: ScenarioContext, roles: tuple[MemberRole, ...]) -> None:
        self.context = context
        groups = sorted({0, *(role.group for role in roles)})
        self.contexts = {number: context.for_group(number) if number else context for number in groups}
        self.actors = [self.create_actor(number, role) for number, role in enumerate(roles)]
        self.wait_budget = MAX_WAIT_MS
        self.transactions: dict[int, Transaction] = {}
        """Of each producer that was initialized, by number."""
        self.joining_since: dict[int, int] = {}
        """The time at which each actor sent the JoinGroup that is in flight."""
        self.last_join_response: dict[int, int] = {}
        """The time of the last response to JoinGroup, by group."""

    def create_actor(self, number: int, role: MemberRole) -> Actor:
        """An actor with nothing but its role."""
        context = self.contexts[role.group]
        member = context.member(
            actor_label(number),
            session_timeout=self.session_timeout(role.session),
            rebalance_timeout=self.rebalance_timeout(role.rebalance),
            instance=f"i{role.instance}" if role.instance else None,
        )
        actor = Actor(member, context, role.group, role.subscription, role.offer, role.client)
        self.update_protocols(actor)
        return actor

    def actor_at(self, number: object) -> Actor:
        """The actor with this number, modulo the size of the cast."""
        return self.actors[number % len(self.actors) if isinstance(number, int) else 0]

    def joining_in(self, group: int) -> list[int]:
        """The actors of a group that wait for a response to JoinGroup."""
        return [number for number in self.joining_since if self.actors[number].group == group]

    def send_partly(self, share: int | None) -> None:
        """Send `share` percent of each request before its connection is cut (None: requests are sent whole)."""
        for context in self.contexts.values():
            context.share = share

    # --- names of values ----------------------------------------------------------------------------------------

    def session_timeout(self, name: str) -> int:
        """The session timeout of this name, in milliseconds; a bound that is not told is not crossed."""
        crossed = {"too-short": "min_session_timeout", "too-long": "max_session_timeout"}.get(name)
        if crossed is not None and self.context.description.origin_of(crossed) is SettingOrigin.NOT_TOLD:
            name = SHORT
        return timeout_named(name, self.context.session_timeout, self.context.long_session_timeout)

    def rebalance_timeout(self, name: str) -> int:
        """The rebalance timeout of this name, in milliseconds."""
        return timeout_named(name, self.context.rebalance_timeout, 3 * self.context.rebalance_timeout)

    def update_protocols(self, actor: Actor) -> None:
        """Set the protocols of the actor's member by its offer and metadata."""
        metadata = self.metadata_of(actor)
        actor.member.protocols = tuple((PROTOCOLS[letter], metadata) for letter in actor.offer)

    def metadata_of(self, actor: Actor) -> bytes:
        """The actor's subscription by its number: 3 is to a topic that does not exist, 4 is malformed, 5 is to that
        topic and the kit's, all others are to the kit's with different user data."""
        name = actor.member.label
        match actor.metadata:
            case 0:
                return self.context.metadata(name)
            case 3:
                return self.context.metadata(name, ABSENT_TOPIC)
            case 4:
                return b""
            case 5:
                return self.context.metadata(name, self.context.topic, ABSENT_TOPIC)
            case variant:
                return self.context.metadata(f"{name} {variant}")

    def identity_fields(self, actor: Actor, move: Move, generation_field: str = "") -> dict[str, Any]:
        """The request fields that name the sender, as far as the move's options make them other than the actor's."""
        changes: dict[str, Any] = {}
        match move.get("as"):
            case "":
                pass
            case "nobody":
                changes["member_id"] = ""
            case "stranger":
                changes["member_id"] = UNKNOWN_ID
            case "former":
                changes["member_id"] = actor.previous_id
            case other:
                changes["member_id"] = self.actor_at(other).member.id
        match move.get("instance"):
            case "":
                pass
            case "none":
                changes["group_instance_id"] = None
            case "stranger":
                changes["group_instance_id"] = f"{UNKNOWN_ID}-{actor.context.group_id}"
            case other:
                changes["group_instance_id"] = self.actor_at(other).member.instance
        offset = move.get("generation")
        if generation_field and offset == "none":
            changes[generation_field] = -1
        elif generation_field and isinstance(offset, int):
            changes[generation_field] = actor.member.generation + offset
        return changes

    def version_for(self, api: str, move: Move, actor: Actor | None = None) -> int:
        """The version that the move asks for, else that of the actor's client, or the nearest that the target has; the
        highest if neither says one."""
        asked = move.number("version", -1)
        if asked < 0 and actor is not None:
            asked = CLIENTS.get(actor.client, {}).get(api, -1)
        if asked < 0:
            return self.context.highest_version(api)
        lowest, highest = self.context.description.versions.get(api, (0, -1))
        return self.context.highest_version(api, at_most=max(lowest, min(asked, highest)))

    # --- requests in flight -------------------------------------------------------------------------------------

    async def track_request(self, call: Call, actor: Actor | None, body: Body) -> None:
        """Remember a request that was sent, and give the target a moment to respond."""
        if call.exchange.request is None and call.done:
            return  # only a part of it was sent
        if actor is not None:
            actor.last_contact = self.context.now_ms
            actor.pending_calls.append(call)
            actor.sent_requests.setdefault(call.api, []).append((call.version, body))
            call.exchange.response.add_done_callback(lambda _: self.on_response(actor, call))
        if call.done:
            await asyncio.sleep(0)  # for the actor to learn from the response
        else:
            await asyncio.wait([call.exchange.response], timeout=self.context.short_pause / 1000)

    def on_response(self, actor: Actor, call: Call) -> None:
        """Remember that a request got its response, or that its connection ended."""
        actor.last_contact = self.context.now_ms
        actor.pending_calls = [each for each in actor.pending_calls if each is not call]


def timeout_named(name: str, short: int, long: int) -> int:
    """The timeout of this name, in milliseconds."""
    return {
        SHORT: short,
        LONG: long,
        "endless": 2 * NEW_MEMBER_TIMEOUT_MS,
        "zero": 0,
        "too-short": 1,
        "too-long": 2_147_483_647,
    }[name]


def sent_body(call: Call) -> Body:
    """The body of a request; empty while its connection is being made."""
    return call.exchange.request.body if call.exchange.request is not None else {}
