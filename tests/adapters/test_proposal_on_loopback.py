"""The proposal of client-side assignment, running: the member core against the bundled coordinator, in the draft's
messages. Its four failure points, beside what Kafka's dialect does there; then what Kafka never had."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from fencepost.model.classic.member.member import MemberState
from fencepost.model.errors import Error
from tests.support.proposed_member import ProposedMember
from tests.support.tcp_peer import RunningServer, running_server

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
