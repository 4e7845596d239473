"""Timers of the bundled coordinator: sessions, new members, pending ids, the sync timer, the clean-up pass."""

import asyncio

from fencepost.model.settings import Settings
from tests.support.group_driver import Cluster, D, answered, now, parked, reply, run


async def at(time: int) -> None:
    """Wait until a time in milliseconds."""
    await asyncio.sleep((time - now()) / 1000)


def test_a_silent_member_goes_at_its_session_timeout_and_not_before() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(session=30_000), cluster.party(session=6_000)
        await cluster.stable(a, b)
        start = now()
        await at(start + 5_999)
        assert [a.beat(), b.beat()] == [0, 0]
        await at(start + 11_998)
        assert a.beat() == 0
        await at(start + 11_999)
        assert [a.beat(), b.beat()] == [27, 25]

    run(walk)


def test_the_last_member_expires_into_an_empty_group() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(), cluster.party()
        await cluster.stable(a)
        await at(now() + 10_000)
        assert await cluster.state() == "Empty"
        await cluster.stable(b)
        assert b.generation == 3

    run(walk)


def test_only_a_good_heartbeat_or_commit_extends_a_session() -> None:
    async def walk(cluster: Cluster) -> None:
        parties = [cluster.party(group=f"g{number}") for number in range(6)]
        for party in parties:
            await cluster.stable(party)
        start = now()
        for step in range(1, 4):
            await at(start + step * 5_000)
            parties[0].beat()
            parties[1].commit()
            parties[2].beat(generation_id=9)
            parties[3].commit(generation_id_or_member_epoch=9)
            parties[4].fetch()
            answered(parties[5].sync())
        assert [party.beat() for party in parties] == [0, 0, 25, 25, 25, 25]

    run(walk, Settings(initial_rebalance_delay=0))


def test_parked_requests_hold_a_session_open() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(session=60_000), cluster.party(session=6_000)
        await cluster.stable(a, b)
        join = b.join(protocols=[{"name": "p", "metadata": b"new"}])
        await at(now() + 20_000)
        assert parked(join)
        a.joined(answered(a.join()))
        b.joined(answered(join))
        sync = b.sync()
        await at(now() + 20_000)
        assert answered(a.sync({b.id: b"x"}))["error_code"] == 0
        assert answered(sync)["assignment"] == b"x"
        await at(now() + 5_999)
        assert b.beat() == 0

    run(walk)


def test_a_first_join_is_parked_for_300_seconds_at_most() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(rebalance=900_000, session=900_000), cluster.party(session=6_000)
        await cluster.stable(a)
        await b.get_id()
        start, join = now(), b.join()
        told = await reply(join)
        assert (told["error_code"], told["member_id"], now() - start) == (25, "", 300_000)
        assert a.beat() == 27

    run(walk)


def test_a_heartbeat_of_a_new_member_ends_its_grace() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(rebalance=900_000, session=900_000), cluster.party(session=6_000)
        await cluster.stable(a)
        await b.get_id()
        start, join = now(), b.join()
        assert b.beat(generation_id=1) == 27
        assert (await reply(join))["error_code"] == 25
        assert now() - start == 6_000

    run(walk)


def test_the_session_of_a_newcomer_does_not_run_during_the_initial_delay() -> None:
    async def walk(cluster: Cluster) -> None:
        a = cluster.party(session=6_000)
        await a.get_id()
        assert (await reply(a.join()))["error_code"] == 0
        assert now() == 10_000

    run(walk, Settings(initial_rebalance_delay=10_000))


def test_leaving_does_not_cut_the_initial_delay_short_but_an_expiry_does() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(), cluster.party()
        await a.get_id()
        await b.get_id()
        joins = [a.join(), b.join()]
        await at(1_000)
        assert b.leave() == 0
        assert answered(joins[1])["error_code"] == 25
        assert parked(joins[0])
        await reply(joins[0])
        assert now() == 2 * D
        c = cluster.party(group="other", session=6_000)
        d = cluster.party(group="other")
        await c.get_id()
        start = now()
        await at(start + 4_000)
        await d.get_id()
        assert (await reply(d.join()))["generation_id"] == 1
        assert now() - start == 6_000

    run(walk)


def test_members_that_do_not_sync_are_removed_even_if_they_heartbeat() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(rebalance=20_000), cluster.party(rebalance=20_000)
        await a.get_id()
        await b.get_id()
        joins = [a.join(), b.join()]
        a.joined(await reply(joins[0]))
        b.joined(await reply(joins[1]))
        start = now()
        assert answered(a.sync())["error_code"] == 0
        told = await asyncio.gather(a.beat_until(start + 19_000), b.beat_until(start + 19_000))
        assert set(told[0] + told[1]) == {0}
        await at(start + 20_000)
        assert [a.beat(), b.beat()] == [27, 25]

    run(walk)


def test_without_the_leaders_sync_the_others_are_told_to_rejoin() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(session=60_000, rebalance=20_000), cluster.party(session=60_000, rebalance=20_000)
        await a.get_id()
        await b.get_id()
        joins = [a.join(), b.join()]
        a.joined(await reply(joins[0]))
        b.joined(await reply(joins[1]))
        start, sync = now(), b.sync()
        assert (await reply(sync))["error_code"] == 27
        assert now() - start == 20_000
        assert [a.beat(), b.beat()] == [25, 27]
        b.joined(answered(b.join()))
        await at(now() + 20_000)
        assert await cluster.state() == "Empty"

    run(walk)


def test_the_silent_member_of_a_round_goes_at_its_session_timeout() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(), cluster.party(session=6_000)
        await cluster.stable(a, b)
        start = now()
        a.joined(await reply(a.join()))
        assert now() - start == 6_000

    run(walk)


def test_clean_up_removes_groups_without_offsets_and_expired_offsets() -> None:
    settings = Settings(offsets_retention=1_000_000, retention_check_interval=600_000)

    async def walk(cluster: Cluster) -> None:
        simple, bare, kept = (cluster.party(group=name) for name in ("simple", "bare", "kept"))
        await bare.get_id()
        assert simple.commit() == 0
        await cluster.stable(kept)
        assert kept.commit() == 0
        await at(500_000)
        assert simple.commit(generation_id_or_member_epoch=-1, retention_time_ms=50_000, version=4) == 0
        await at(599_999)
        assert [await cluster.state(name) for name in ("simple", "bare", "kept")] == ["Empty"] * 3
        await at(600_000)
        assert [await cluster.state(name) for name in ("simple", "bare", "kept")] == ["Dead", "Dead", "Empty"]
        await at(1_199_999)
        assert kept.fetch()["committed_offset"] == 7
        await at(1_200_000)
        assert await cluster.state("kept") == "Dead"

    run(walk, settings)


def test_offsets_of_subscribed_topics_and_open_transactions_do_not_expire() -> None:
    settings = Settings(offsets_retention=1_000, retention_check_interval=5_000)
    subscription = b"\x00\x01\x00\x00\x00\x01\x00\x03one\xff\xff\xff\xff"

    async def walk(cluster: Cluster) -> None:
        a = cluster.party(type="consumer", session=600_000, protocols=(("range", subscription),))
        await cluster.stable(a)
        assert [a.commit(topic="one"), a.commit(topic="two"), a.commit(topic="three")] == [0, 0, 0]
        partition = {"partition_index": 0, "committed_offset": 8, "committed_metadata": ""}
        body = {"group_id": "g", "producer_id": 1, "topics": [{"name": "three", "partitions": [partition]}]}
        await cluster.ask("TxnOffsetCommit", 2, **body)
        await at(10_000)
        assert [a.fetch(topic=topic)["committed_offset"] for topic in ("one", "two", "three")] == [7, -1, 7]

    run(walk, settings, topics={"one": 1, "two": 1, "three": 1})
