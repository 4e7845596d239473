"""The proposal of client-side assignment, running: the member core against the bundled coordinator, in the draft's
messages. Its four failure points, beside what Kafka's dialect does there; then what Kafka never had."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fencepost.model.classic.core.state import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    MemberView,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import MemberSettings, MemberState, MemberStep
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.proposal import member as resync
from fencepost.model.sorts import MemberId, ProtocolName
from fencepost.model.wire.codec import Body, decode_body, decode_response, encode_body, encode_request
from tests.support.plain_values import build
from tests.support.tcp_peer import RawClient, RunningServer, running_server

GROUP, TOPIC, PROTOCOL = "g", "t", "range"
SESSION_TIMEOUT_MS = 120_000
"""So long that no session ends on a machine that is busy."""
SETTINGS = MemberSettings(
    names=(ProtocolName(PROTOCOL),), session_timeout=SESSION_TIMEOUT_MS, requires_id=False, can_skip=False
)
CORRELATION_ID = 5


class ProposedMember:
    """A member process with a connection to a server; in Kafka's dialect its SyncGroup has Kafka's layout."""

    def __init__(self, partitions: int = 2, dialect: str = "proposal") -> None:
        self.member = members.new_member(SETTINGS, partitions)
        self.dialect = dialect
        self.leadership: resync.Leadership | None = None
        self.handle = 0
        self._connection: RawClient | None = None

    async def connect(self, place: RunningServer) -> None:
        """Connect to the server, a next one perhaps; what was not answered is given up."""
        self.take(members.disconnect(self.member))
        self._connection = await place.connect()

    def take(self, step: MemberStep) -> list[Any]:
        """Go on as the core says; what it sends."""
        self.member = step.member
        return [sent.request for sent in step.sent_requests if sent.when]

    def next_handle(self) -> Any:
        self.handle += 1
        return self.handle

    # -- what it sends ------------------------------------------------------------------------------------------

    def send_join(self, *, asked: bool = False) -> None:
        """Send JoinGroup, if the member has to; `asked`: the application wants it to."""
        if asked:
            self.take(members.ask_rejoin(self.member))
        (request,) = self.take(members.join(self.member, self.next_handle()))
        self.write("JoinGroup", encode_body("ProposedJoinGroupRequest", 0, draft_join(request)))

    def send_sync(self, request: SyncRequest, failure: Error = Error.NONE) -> None:
        """Send SyncGroup, perhaps with the error of an assignment that failed."""
        if self.dialect == "proposal":
            self.write("SyncGroup", encode_body("ProposedSyncGroupRequest", 0, draft_sync(request, failure)))
        else:
            self.write("SyncGroup", encode_body("SyncGroupRequest", 0, kafka_sync(request)))

    def write(self, api: str, body: bytes) -> None:
        """Send a body of version 0 in a frame of the API."""
        assert self._connection is not None
        empty = {"JoinGroup": EMPTY_JOIN, "SyncGroup": EMPTY_SYNC}[api]
        head = encode_request(api, 0, CORRELATION_ID, "m", empty)
        self._connection.write_frame(head[: len(head) - len(encode_body(f"{api}Request", 0, empty))] + body)

    # -- what it hears ------------------------------------------------------------------------------------------

    async def hear(self, name: str, api: str) -> Body:
        """The next response, read as the draft has it."""
        assert self._connection is not None
        frame = await self._connection.read_frame()
        assert decode_response(api, 0, frame).correlation_id == CORRELATION_ID
        decoded = decode_body(name, 0, frame[4:])
        assert not decoded.findings
        return decoded.body

    async def hear_join(self, plan: tuple[str | None, ...] | None = None) -> SyncRequest | None:
        """The response to JoinGroup; the SyncGroup that follows. A leader without a plan gives itself everything."""
        body = await self.hear("ProposedJoinGroupResponse", "JoinGroup")
        response = join_response(body, len(self.member.owned))
        wish: Any = plan or (response.member,) * len(self.member.owned)
        step = members.on_join_response(self.member, self.member.waiting, response, self.next_handle(), wish)
        requests = self.take(step)
        if requests and response.leader == response.member:
            self.leadership = resync.lead(response, wish)
        return requests[0] if requests else None

    async def hear_sync(self) -> Error:
        """The response to SyncGroup."""
        body = await self.hear("ProposedSyncGroupResponse", "SyncGroup")
        error = Error(body["error_code"])
        given = read_state(body["state"], len(self.member.owned)) if error is Error.NONE else None
        self.learn_partitions(len(given or ()))
        self.take(members.on_sync_response(self.member, self.member.waiting, SyncResponse(error, assignment=given)))
        if self.leadership is not None and error is Error.NONE:
            self.leadership = resync.confirm(self.leadership)
        return error

    def take_up(self, request: SyncRequest) -> None:
        """Wait again for the response to a SyncGroup that was lost with its coordinator, as the draft has it."""
        self.member = resync.synchronizing(self.member, request.handle)

    def learn_partitions(self, count: int) -> None:
        """The topic has so many partitions, or more."""
        added = (False,) * (count - len(self.member.owned))
        self.member = evolve(self.member, owned=(*self.member.owned, *added))

    async def heartbeat_error(self) -> Error:
        """The error of a Heartbeat that the member does not hear of."""
        assert self._connection is not None
        body = {"group_id": GROUP, "generation_id": self.member.generation, "member_id": self.member.id}
        return Error((await self._connection.request("Heartbeat", 0, body))["error_code"])

    async def heartbeat(self) -> SyncRequest | None:
        """A Heartbeat and its response; the SyncGroup that it leads to, if it tells of another assignment."""
        assert self._connection is not None
        (request,) = self.take(members.heartbeat(self.member, self.next_handle()))
        assert isinstance(request, HeartbeatRequest)
        body = {"group_id": GROUP, "generation_id": request.generation, "member_id": request.member}
        told = HeartbeatResponse(Error((await self._connection.request("Heartbeat", 0, body))["error_code"]))
        if self.dialect != "proposal":
            self.take(members.on_heartbeat_response(self.member, request, told))
            return None
        sent = self.take(resync.on_heartbeat_told(self.member, request, told, self.next_handle()))
        return sent[0] if sent else None

    def resync(self, plan: tuple[str | None, ...]) -> SyncRequest:
        """The leader's SyncGroup with another assignment; new partitions may have come."""
        assert self.leadership is not None
        self.learn_partitions(len(plan))
        wish: Any = plan
        step, self.leadership = resync.resync(self.member, self.leadership, self.next_handle(), wish)
        (request,) = self.take(step)
        assert isinstance(request, SyncRequest)
        return request


EMPTY_JOIN: Body = {
    "group_id": "",
    "session_timeout_ms": 0,
    "member_id": "",
    "protocol_type": "",
    "protocols": [],
}
EMPTY_SYNC: Body = {"group_id": "", "generation_id": 0, "member_id": "", "assignments": []}


def draft_join(request: JoinRequest) -> Body:
    """JoinGroup as the draft has it: the metadata are topics, and the claims as user data."""
    claims = request.protocols[0].metadata or ()
    metadata = encode_body(
        "ProposedMemberMetadata",
        0,
        {"version": 0, "topics": [TOPIC], "user_data": bytes(map(int, claims)), "assignment_strategies": [PROTOCOL]},
    )
    return {
        "group_id": GROUP,
        "session_timeout": request.session_timeout,
        "member_id": request.member or "",
        "protocol_type": request.protocol_type,
        "group_protocols": [{"protocol": PROTOCOL, "metadata": metadata}],
    }


def draft_sync(request: SyncRequest, failure: Error) -> Body:
    """SyncGroup as the draft has it."""
    return {
        "group_id": GROUP,
        "group_generation": request.generation,
        "member_id": request.member,
        "sync_error_code": int(failure),
        "group_state": [{"member_id": id, "state": state_of(given)} for id, given in request.assignments if id],
    }


def kafka_sync(request: SyncRequest) -> Body:
    """The same as Kafka's version 0 has it."""
    rows = [{"member_id": id, "assignment": state_of(given)} for id, given in request.assignments if id]
    return {
        "group_id": GROUP,
        "generation_id": request.generation,
        "member_id": request.member,
        "assignments": rows,
    }


def state_of(given: Any) -> bytes:
    """The partitions of an assignment as the draft's member state."""
    partitions = [index for index, has in enumerate(given) if has]
    body = {"version": 0, "topic_partitions": [{"topic": TOPIC, "partitions": partitions}], "user_data": b""}
    return encode_body("ProposedMemberState", 0, body)


def read_state(state: bytes, partitions: int) -> Any:
    """Inverse of `state_of`; no bytes are no partitions."""
    rows = decode_body("ProposedMemberState", 0, state).body["topic_partitions"] if state else []
    has = {index for row in rows for index in row["partitions"]}
    return tuple(index in has for index in range(max(partitions, 1 + max(has, default=-1))))


def join_response(body: Body, partitions: int) -> JoinResponse:
    """The response as the core knows it; the views have the claims of the members."""
    views = tuple(
        build(MemberView, row["member_id"], None, claims_in(row["metadata"], partitions)) for row in body["members"]
    )
    return JoinResponse(
        Error(body["error_code"]),
        body["group_generation"],
        None,
        build(ProtocolName, body["group_protocol"]),
        build(MemberId, body["group_leader_id"]),
        build(MemberId, body["member_id"]),
        views,
    )


def claims_in(metadata: bytes, partitions: int) -> Any:
    """The claims in a member's metadata."""
    data = decode_body("ProposedMemberMetadata", 0, metadata).body["user_data"]
    return tuple(map(bool, data.ljust(partitions, b"\0")))


pytestmark = pytest.mark.real_time
DIALECTS = ("proposal", "kafka")
MAX_POLLS = 20
MAX_HEARTBEATS = 10_000


class Cluster:
    """A server that can be lost, and members that find the next one."""

    def __init__(self, storage: Path, dialect: str) -> None:
        self._storage, self.dialect = storage, dialect
        self._running = AsyncExitStack()
        self.place: RunningServer
        self.members = [ProposedMember(dialect=dialect) for _ in range(2)]

    async def start(self) -> None:
        self.place = await self._running.enter_async_context(running_server(self._storage, dialect=self.dialect))
        for member in self.members:
            await member.connect(self.place)

    async def lose(self) -> None:
        """The coordinator is lost: parked requests stay unanswered, the log is what there is."""
        await self._running.aclose()

    async def restart(self) -> None:
        await self.lose()
        await self.start()

    async def wait_until_taken(self) -> None:
        """Let the server take what members sent: it serves connections in turn, and another one asks many times."""
        peer = await self.place.connect()
        for _ in range(MAX_POLLS):
            await peer.request("Heartbeat", 0, {"group_id": "g", "generation_id": 0, "member_id": "nobody"})

    async def form_group(self) -> None:
        """The first member is stable alone, in generation 1; then the second one joins it, in generation 2."""
        leader, follower = self.members
        leader.send_join()
        request = await leader.hear_join()
        assert request is not None
        leader.send_sync(request)
        assert await leader.hear_sync() is Error.NONE
        follower.send_join()
        await self.wait_until_told(leader)
        leader.send_join(asked=True)
        self.syncs = [await leader.hear_join(), await follower.hear_join()]

    async def form_generation(self) -> None:
        """The members of a stable group rejoin, and hear of the generation; their SyncGroups are not sent."""
        leader, follower = self.members
        await self.rejoin()
        self.syncs = [await leader.hear_join(), await follower.hear_join()]

    async def rejoin(self) -> None:
        """The leader of a stable group has all rejoin."""
        leader, follower = self.members
        leader.send_join(asked=True)
        await self.wait_until_told(follower)
        follower.send_join(asked=True)

    async def wait_until_told(self, member: ProposedMember) -> None:
        """A member's Heartbeats say at last that it has to rejoin."""
        for _ in range(MAX_HEARTBEATS):
            if error := await member.heartbeat_error():
                assert error is Error.REBALANCE_IN_PROGRESS
                return
        raise AssertionError("no rebalance was told of")

    async def synchronize(self) -> None:
        """The leader gives a partition to each; all hear."""
        for member, request in zip(self.members, self.syncs, strict=True):
            assert request is not None
            member.send_sync(request)
        for member in self.members:
            assert await member.hear_sync() is Error.NONE


@asynccontextmanager
async def start_cluster(folder: Path, dialect: str) -> AsyncIterator[Cluster]:
    """A cluster that runs until the end of the block."""
    cluster = Cluster(folder, dialect)
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.lose()


@asynccontextmanager
async def stable(folder: Path, dialect: str) -> AsyncIterator[Cluster]:
    """A stable group of two, in generation 2; the leader comes first."""
    async with start_cluster(folder, dialect) as cluster:
        await cluster.form_group()
        await cluster.synchronize()
        yield cluster


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_lost_before_all_have_joined(tmp_path: Path, dialect: str) -> None:
    """All send JoinGroup again."""
    async with stable(tmp_path, dialect) as cluster:
        leader, _ = cluster.members
        leader.send_join(asked=True)
        await cluster.wait_until_taken()
        await cluster.restart()
        await cluster.form_generation()
        assert [member.member.generation for member in cluster.members] == [3, 3]
        await cluster.synchronize()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_lost_before_all_have_heard_of_the_generation(tmp_path: Path, dialect: str) -> None:
    """One heard of generation 3, the other sends JoinGroup again: the synchronization is aborted, and all rejoin. Kafka
    forgot the generation, and gives its number again."""
    async with stable(tmp_path, dialect) as cluster:
        leader, follower = cluster.members
        await cluster.rejoin()
        request = await leader.hear_join()
        assert request is not None and request.generation == 3
        await cluster.restart()
        follower.send_join()
        leader.take_up(request)
        if dialect == "proposal":
            await cluster.wait_until_told(leader)
            leader.send_sync(request)
            assert await leader.hear_sync() is Error.REBALANCE_IN_PROGRESS
            leader.send_join()
        else:
            leader.send_sync(request)
            assert await leader.hear_sync() is Error.ILLEGAL_GENERATION
            older = await follower.hear_join()
            assert older is not None and older.generation == 2
            leader.send_join()
            await cluster.wait_until_told(follower)
            follower.send_sync(older)
            assert await follower.hear_sync() is Error.REBALANCE_IN_PROGRESS
            follower.send_join()
        syncs = [await leader.hear_join(), await follower.hear_join()]
        told = [sync.generation for sync in syncs if sync is not None]
        assert told == ([4, 4] if dialect == "proposal" else [3, 3])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_lost_before_the_assignment_is_stored(tmp_path: Path, dialect: str) -> None:
    """All send SyncGroup again, and nobody rejoins. In Kafka's dialect everybody has to."""
    async with stable(tmp_path, dialect) as cluster:
        await cluster.form_generation()
        leader, follower = cluster.members
        leader_sync, follower_sync = cluster.syncs
        assert leader_sync is not None and follower_sync is not None
        follower.send_sync(follower_sync)
        await cluster.restart()
        follower.take_up(follower_sync)
        leader.take_up(leader_sync)
        follower.send_sync(follower_sync)
        leader.send_sync(leader_sync)
        errors = [await leader.hear_sync(), await follower.hear_sync()]
        if dialect == "proposal":
            assert errors == [Error.NONE] * 2
            assert [each.member.generation for each in cluster.members] == [3, 3]
        else:
            assert errors == [Error.ILLEGAL_GENERATION] * 2
            assert all(each.member.rejoins and each.member.state is MemberState.UNJOINED for each in cluster.members)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_lost_before_all_have_heard_of_their_assignment(tmp_path: Path, dialect: str) -> None:
    """The stored assignment is told at once, to whom asks; nobody else notices."""
    async with stable(tmp_path, dialect) as cluster:
        await cluster.form_generation()
        leader, follower = cluster.members
        leader_sync, follower_sync = cluster.syncs
        assert leader_sync is not None and follower_sync is not None
        leader.send_sync(leader_sync)
        assert await leader.hear_sync() is Error.NONE
        await cluster.restart()
        follower.take_up(follower_sync)
        follower.send_sync(follower_sync)
        assert await follower.hear_sync() is Error.NONE
        assert await leader.heartbeat() is None and not leader.member.rejoins
        assert {leader.member.generation, follower.member.generation} == {3}


async def reassign_one_more(cluster: Cluster) -> None:
    """The topic gets a third partition, and the leader gives it to the follower."""
    leader, follower = cluster.members
    leader.send_sync(leader.resync((leader.member.id, leader.member.id, follower.member.id)))
    assert await leader.hear_sync() is Error.NONE


async def hear_of_it_after_a_restart(cluster: Cluster) -> None:
    """The same, and the coordinator is lost before the follower knows."""
    await reassign_one_more(cluster)
    await cluster.restart()


@pytest.mark.parametrize("change", [reassign_one_more, hear_of_it_after_a_restart])
async def test_a_leader_assigns_new_partitions_without_a_rejoin(
    tmp_path: Path, change: Callable[[Cluster], Awaitable[None]]
) -> None:
    async with stable(tmp_path, "proposal") as cluster:
        leader, follower = cluster.members
        before = leader.member.owned
        await change(cluster)
        request = await follower.heartbeat()
        assert request is not None
        follower.send_sync(request)
        assert await follower.hear_sync() is Error.NONE
        assert leader.member.owned[:2] == before
        assert follower.member.owned == (False, False, True)
        assert {leader.member.generation, follower.member.generation} == {2}
        assert not leader.member.rejoins and not follower.member.rejoins
        assert await follower.heartbeat() is None


async def test_the_leaders_failure_reaches_those_who_wait(tmp_path: Path) -> None:
    async with stable(tmp_path, "proposal") as cluster:
        await cluster.form_generation()
        leader, follower = cluster.members
        leader_sync, follower_sync = cluster.syncs
        assert leader_sync is not None and follower_sync is not None
        follower.send_sync(follower_sync)
        await cluster.wait_until_taken()
        leader.send_sync(leader_sync, Error.INCONSISTENT_GROUP_PROTOCOL)
        errors = [await leader.hear_sync(), await follower.hear_sync()]
        assert errors == [Error.INCONSISTENT_GROUP_PROTOCOL] * 2
        follower.send_join()
        leader.send_join()
        syncs = [await leader.hear_join(), await follower.hear_join()]
        assert [sync.generation for sync in syncs if sync is not None] == [4, 4]
