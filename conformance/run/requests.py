"""Bodies of requests, as scenarios and schedules send them: of members, for offsets, by administrators."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

from fencepost.adapters.target import Channel, Description, Exchange, SendOptions, TraceBuilder
from fencepost.model.errors import TRANSIENT_ERRORS, Error, error_name
from fencepost.model.wire.codec import fit_body
from fencepost.traces.events import Body, Kind

# -- the plain data of a scenario -------------------------------------------------------------------------------------

CONSUMER, RANGE = "consumer", "range"
FIRST_VERSIONS = {"OffsetCommit": 1, "OffsetFetch": 1}
"""The lowest versions that store offsets in the group, by API; lower ones used ZooKeeper."""
CLIENT_ID = "fencepost"
"""The client id of every request."""
RESPONSE_TIMEOUT_MS = 10_000
"""How long a scenario waits for an immediate response."""


class Blocked(Exception):
    """Ends a scenario that cannot go on; the requirements it has not checked stay inconclusive."""


class Unanswered(Blocked):
    """Ends a scenario that waits for a response in vain."""


class Unsupported(Exception):
    """Ends a scenario that needs a feature which the target lacks."""


def subscription(*topics: str) -> bytes:
    """Consumer metadata, version 0, that subscribe to the topics, without user data."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


@dataclass(slots=True)
class Member:
    """A client of the group: the protocols it offers, and its state by the last JoinGroup response. Milliseconds."""

    label: str
    protocols: tuple[tuple[str, bytes], ...]
    session_timeout: int
    rebalance_timeout: int
    instance: str | None = None
    protocol_type: str | None = CONSUMER
    id: str = ""
    generation: int = -1
    protocol: str | None = None
    leader: str | None = None
    members: tuple[Body, ...] = ()

    @property
    def is_leader(self) -> bool:
        """Whether its last JoinGroup response named it the leader, or named nobody and listed the members to it."""
        return self.leader == self.id if self.leader else bool(self.members)


def send_nothing(version: int) -> "Call":
    """Raise `Unsupported`: the request has one version."""
    raise Unsupported(f"version {version}")


@dataclass(slots=True)
class Call:
    """A request that was sent. Awaiting it gives the body of the response, or raises `Blocked` after `timeout` ms."""

    api: str
    version: int
    exchange: Exchange
    timeout: int
    send_in: Callable[[int], "Call"] = send_nothing
    """Sends the same request in another version."""

    def __await__(self) -> Generator[Any, None, Body]:
        return self._await_response().__await__()

    async def _await_response(self) -> Body:
        # A response may be here already. `wait` resumes its caller behind the callbacks that were added at sending, by
        # which members learn, since callbacks run in the order in which they were added; `wait_for` need not.
        await asyncio.wait([self.exchange.response], timeout=self.timeout / 1000)
        if not self.done:
            raise Unanswered(f"no answer to {self.api} within {self.timeout} ms")
        body = self.exchange.response.result()
        if body is None:
            raise Blocked(f"the connection ended without an answer to {self.api}")
        return body

    @property
    def done(self) -> bool:
        """Whether the response is here or can no longer come."""
        return self.exchange.response.done()

    @property
    def body(self) -> Body:
        """The body of the response. Raises `Blocked` if there is none yet."""
        body = self.exchange.response.result() if self.done else None
        if body is None:
            raise Blocked(f"no answer to {self.api} yet")
        return body

    @property
    def error(self) -> int:
        """The error code of the response."""
        return int(self.body.get("error_code", 0))

    def drop_connection(self) -> None:
        """Close the connection that carries this request."""
        self.exchange.drop()


@dataclass(frozen=True, slots=True)
class Check:
    """The response of a call is evidence of a requirement; see `ScenarioContext.add_check`."""

    requirement: str
    call: Call
    fields: tuple[str, ...]
    reached: bool
    note: str
    unusual: str = ""
    may_close: bool = False


# -- any request for one group under test -----------------------------------------------------------------------------


class RequestSender:
    """The group id of one scenario, its clock and its channel to the target.

    `grace` is the judge's, in milliseconds; `restart` kills and restarts the target, and `move` has another node
    coordinate a group, where that is possible.
    """

    def __init__(
        self,
        description: Description,
        channel: Channel,
        recorder: TraceBuilder,
        group_id: str,
        *,
        grace: int = 0,
        restart: Callable[..., Awaitable[None]] | None = None,
        move: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self.grace = grace
        self.description = description
        self.settings = description.settings
        self.topic = description.topic
        self.group_id = group_id
        self.channel = channel
        self.recorder = recorder
        self.checks: list[Check] = []
        self.asked_in_versions: set[tuple[object, str]] = set()
        """The requirements and APIs whose versions were asked."""
        self.share: int | None = None
        """How much of each request is sent before its connection is cut, in percent; None: requests are sent whole."""
        self.broker: int | None = None
        """The node that gets the requests; None: the coordinator of their group."""
        self.restart_hook = restart
        self.move_hook = move
        topics: dict[str, Any] = {"topics": {description.topic: 4}, "client_id": CLIENT_ID}
        if description.topic_id is not None:
            topics["ids"] = {description.topic: description.topic_id}
        recorder.record(Kind.INTERNAL, "topics", 0, topics)

    def for_group(self, number: int) -> Self:
        """A sender beside this one for another group, whose id ends in the number; it shares all else."""
        other = copy(self)
        other.group_id = f"{self.group_id}-{number}"
        return other

    # --- time ---------------------------------------------------------------------------------------------------

    @property
    def initial_delay(self) -> int:
        """The initial rebalance delay of the target, in milliseconds."""
        return self.settings.initial_rebalance_delay

    @property
    def session_timeout(self) -> int:
        """A short session timeout that the target allows and that outlasts a rebalance, in milliseconds."""
        return max(self.settings.min_session_timeout, 1_500)

    @property
    def long_session_timeout(self) -> int:
        """A session timeout, in milliseconds, that outlasts a scenario: its member need not heartbeat."""
        return min(max(5 * self.session_timeout, 30_000), self.settings.max_session_timeout)

    @property
    def rebalance_timeout(self) -> int:
        """A short rebalance timeout, in milliseconds, that leaves members enough time to rejoin."""
        return max(2 * self.session_timeout, 4_000)

    @property
    def short_pause(self) -> int:
        """A pause, in milliseconds, in which immediate effects have taken place."""
        return 150

    @property
    def now_ms(self) -> int:
        """Milliseconds since the trace began."""
        return self.recorder.now()

    async def sleep(self, milliseconds: int) -> None:
        """Wait for that long on the clock of the target."""
        await asyncio.sleep(milliseconds / 1000)

    async def sleep_past(self, milliseconds: int) -> None:
        """Wait until a deadline that is `milliseconds` ahead has certainly passed: twice the judge's grace longer."""
        await self.sleep(milliseconds + 2 * self.grace + self.short_pause)

    # --- what the target offers ---------------------------------------------------------------------------------

    def highest_version(self, api: str, at_least: int = 0, at_most: int = 99) -> int:
        """The highest version within the bounds that target and kit support. Raises `Unsupported` if there is none."""
        lowest, highest = self.description.versions.get(api, (0, -1))
        best = min(highest, at_most)
        if best < max(lowest, at_least):
            wanted = f"{at_least} to {at_most}" if at_most < 99 else f"{at_least} or later"
            raise Unsupported(f"{api} version {wanted}" if highest >= 0 else api)
        return best

    def require(self, condition: bool, reason: str) -> None:
        """Raise `Blocked` with the reason unless the condition holds."""
        if not condition:
            raise Blocked(reason)

    # --- sending ------------------------------------------------------------------------------------------------

    @contextmanager
    def sending_to(self, broker: int) -> Iterator[None]:
        """Send the requests of the block to this node, whoever coordinates their group."""
        self.broker = broker
        try:
            yield
        finally:
            self.broker = None

    def send(
        self,
        api: str,
        body: Body,
        *,
        version: int | None = None,
        member: str = "",
        broker: int | None = None,
        timeout: int = RESPONSE_TIMEOUT_MS,
    ) -> Call:
        """Send a request in a version (None: the highest), without the fields that this version lacks.

        `timeout`, in milliseconds, limits how long the returned call can be awaited. Raises `Unsupported`.
        """
        number = self.highest_version(api) if version is None else self.highest_version(api, version, version)
        carried = fit_body(f"{api}Request", number, body)
        node = self.broker if broker is None else broker
        exchange = self.channel.send(api, number, carried, SendOptions(member, CLIENT_ID, node, self.share))

        def send_in(another: int) -> Call:
            return self.send(api, body, version=another, member=member, broker=broker, timeout=timeout)

        return Call(api, number, exchange, timeout, send_in)

    def offered_versions(self, api: str, since: int = 0, until: int = 99) -> range:
        """The versions within the bounds that the target offers, without those that keep offsets in ZooKeeper."""
        lowest, highest = self.description.versions.get(api, (0, -1))
        return range(max(lowest, since, FIRST_VERSIONS.get(api, 0)), min(highest, until) + 1)


# -- the requests of membership ---------------------------------------------------------------------------------------

STATIC_VERSION = 5
"""The first version of JoinGroup with an instance id (KIP-345)."""


def needs_id(body: Body) -> bool:
    """Whether a response to JoinGroup asks its sender to come again with the id that it has."""
    return body.get("error_code") == Error.MEMBER_ID_REQUIRED


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
        """Update a member by its JoinGroup response: the id by MEMBER_ID_REQUIRED, all of it by a success.

        It can speak no protocol that it has not offered: told another, it goes on with its first one.
        """
        body = None if response.cancelled() else response.result()
        if body is None:
            return
        if needs_id(body):
            member.id = body.get("member_id") or ""
        elif body.get("error_code") == 0:
            member.id = body.get("member_id") or member.id
            member.generation = body.get("generation_id", -1)
            told, offered = body.get("protocol_name"), [name for name, _ in member.protocols]
            member.protocol = offered[0] if offered and told not in offered else told
            member.leader = body.get("leader")
            member.members = tuple(body.get("members") or ())

    async def join_new(self, member: Member, *, version: int | None = None) -> Call:
        """Join as a new member, in two steps if a member id is required; returns the last call, to await.

        A static member needs no id. Where it gets one all the same, it goes on with that, as any client does.
        """
        least = STATIC_VERSION if member.instance is not None else 0
        number = self.highest_version("JoinGroup", least) if version is None else version
        member.id = ""
        first = self.join(member, version=number)
        if number < 4:
            return first
        if member.instance is not None:
            await asyncio.wait([first.exchange.response], timeout=self.short_pause / 1000)
            return self.join(member, version=number) if first.done and needs_id(await first) else first
        body = await first
        if needs_id(body):
            return self.join(member, version=number)
        if body["error_code"] != 0:
            raise Blocked(f"JoinGroup got {error_name(body['error_code'])} instead of MEMBER_ID_REQUIRED")
        return first

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
        entries = [
            {"member_id": one.id, "group_instance_id": one.instance, "reason": None} if isinstance(one, Member) else one
            for one in members
        ]
        single = entries[0]["member_id"] if entries else ""
        body = {"group_id": self.group_id, "member_id": single, "members": entries} | changes
        label = members[0].label if members and isinstance(members[0], Member) else ""
        return self.send("LeaveGroup", body, version=version, member=label)


# -- the requests about committed offsets -----------------------------------------------------------------------------


class OffsetRequests(RequestSender):
    """Sends requests about the offsets of the group under test."""

    def commit(
        self,
        member: Member | None,
        offsets: Mapping[tuple[str, int] | int, int | Body],
        *,
        version: int | None = None,
        **changes: Any,
    ) -> Call:
        """Send OffsetCommit as a member (None: without one).

        Keys are partitions of the kit's topic, or pairs of topic and partition; values are offsets, or fields of the
        partition.
        """
        number = self.highest_version("OffsetCommit") if version is None else version
        body = {
            "group_id": self.group_id,
            "generation_id_or_member_epoch": member.generation if member else -1,
            "member_id": member.id if member else "",
            "group_instance_id": member.instance if member else None,
            "retention_time_ms": -1,
            "topics": self.partitions_by_topic(
                {
                    where: value if isinstance(value, Mapping) else {"committed_offset": value}
                    for where, value in offsets.items()
                },
                {"committed_leader_epoch": -1, "committed_metadata": ""},
            ),
        }
        return self.send("OffsetCommit", body | changes, version=number, member=member.label if member else "")

    def partitions_by_topic(self, rows: Mapping[tuple[str, int] | int, Body], defaults: Body) -> list[Body]:
        """The rows, each with the defaults, as the list of topics of a request."""
        topics: dict[str, list[Body]] = {}
        for where, row in rows.items():
            topic, index = (self.topic, where) if isinstance(where, int) else where
            topics.setdefault(topic, []).append({"partition_index": index, **defaults, **row})
        return [{**self.topic_entry(topic), "partitions": found} for topic, found in topics.items()]

    def topic_entry(self, topic: str) -> dict[str, Any]:
        """The name and the id of a topic; the id of a topic that is not the kit's is made up, as it does not exist."""
        topic_id = self.description.topic_id if topic == self.topic else None
        return {"name": topic, "topic_id": topic_id or str(uuid.uuid5(uuid.NAMESPACE_URL, topic))}

    def fetch(
        self,
        partitions: Iterable[tuple[str, int] | int] | None = (0,),
        *,
        groups: Sequence[str] | None = None,
        stable: bool = False,
        version: int | None = None,
        **changes: Any,
    ) -> Call:
        """Send OffsetFetch for partitions (None: all) of the groups (None: the group under test; several: v8)."""
        topics: list[Body] | None = None
        if partitions is not None:
            indexes: dict[str, list[int]] = {}
            for partition in partitions:
                topic, index = (self.topic, partition) if isinstance(partition, int) else partition
                indexes.setdefault(topic, []).append(index)
            topics = [{**self.topic_entry(topic), "partition_indexes": found} for topic, found in indexes.items()]
        group_ids = groups if groups is not None else [self.group_id]
        body = {
            "group_id": group_ids[0] if group_ids else "",
            "topics": topics,
            "groups": [{"group_id": group, "topics": topics} for group in group_ids],
            "require_stable": stable,
        }
        return self.send("OffsetFetch", body | changes, version=version)

    def delete_offsets(self, partitions: Iterable[tuple[str, int] | int], **changes: Any) -> Call:
        """Send OffsetDelete for partitions: of the kit's topic, or pairs of topic and partition."""
        topics = self.partitions_by_topic({where: {} for where in partitions}, {})
        return self.send("OffsetDelete", {"group_id": self.group_id, "topics": topics} | changes)


# -- the requests of administrators -----------------------------------------------------------------------------------


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


# -- a transactional producer -----------------------------------------------------------------------------------------

MAX_ATTEMPTS = 40
TRANSACTION_TIMEOUT_MS = 30_000
LAST_EXPLICIT_VERSION = 4
"""The last version in which a producer adds the group to the transaction by a request of its own (KIP-890)."""


@dataclass(slots=True)
class TransactionalProducer:
    """A transactional producer and its one transaction, which commits offsets of a group."""

    sender: RequestSender
    group_id: str
    name: str = ""
    """The transactional id; one by the group if none is given."""
    id: int = -1
    epoch: int = -1

    def __post_init__(self) -> None:
        self.name = self.name or f"{self.group_id}-producer"

    async def begin(self, timeout: int = TRANSACTION_TIMEOUT_MS) -> None:
        """Get a producer id, and add the group to the transaction, which may stay open for `timeout` milliseconds."""
        await self.begin_epoch(timeout)
        await self.add_group(self.group_id)

    async def begin_epoch(self, timeout: int = TRANSACTION_TIMEOUT_MS) -> None:
        """Get a producer id and an epoch. That ends a transaction of an older epoch."""
        body = await self.send_when_ready(
            "InitProducerId", {"transactional_id": self.name, "transaction_timeout_ms": timeout}
        )
        self.id, self.epoch = body["producer_id"], body["producer_epoch"]

    async def add_group(self, group_id: str) -> None:
        """Add a group to the transaction, which begins if none is open."""
        await self.send_when_ready("AddOffsetsToTxn", {**self.producer_fields(), "group_id": group_id})

    def producer_fields(self) -> Body:
        """The fields by which a request names the producer."""
        return {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch}

    async def send_when_ready(self, api: str, body: Body) -> Body:
        """Send a request to the transaction coordinator until it is ready. Raises `Blocked` if it refuses."""
        version = self.sender.highest_version(api, at_most=LAST_EXPLICIT_VERSION)
        response: Body = {}
        for _ in range(MAX_ATTEMPTS):
            response = await self.sender.send(api, body, version=version)
            if response["error_code"] not in TRANSIENT_ERRORS:
                break
            await self.sender.sleep(self.sender.short_pause)
        self.sender.require(response["error_code"] == 0, f"{api} got {error_name(response['error_code'])}")
        return response

    def send_commit(self, topics: list[Body], **changes: object) -> Call:
        """Send TxnOffsetCommit, for no member unless `changes` have the fields of one. Raises `Unsupported` if the
        target has none of the versions with members."""
        version = self.sender.highest_version("TxnOffsetCommit", at_least=3, at_most=LAST_EXPLICIT_VERSION)
        body = {"group_id": self.group_id, "generation_id": -1, "member_id": "", "group_instance_id": None, **changes}
        return self.sender.send(
            "TxnOffsetCommit", {**self.producer_fields(), "topics": topics, **body}, version=version
        )

    async def end(self, *, committed: bool) -> None:
        """Commit or abort the transaction."""
        await self.send_when_ready("EndTxn", {**self.producer_fields(), "committed": committed})
