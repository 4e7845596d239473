"""Rounds of the bundled coordinator: joining, the initial delay, completing, syncing."""

import asyncio

from fencepost.model.settings import Settings
from tests.support.group_driver import PQ, QP, Cluster, D, P, Q, answered, now, parked, reply, run


def test_a_lone_member_walks_through_a_round() -> None:
    async def walk(cluster: Cluster) -> None:
        a = cluster.party()
        await a.get_id()
        assert await cluster.state() == "Empty"
        join = a.join()
        assert await cluster.state() == "PreparingRebalance"
        told = await reply(join)
        assert now() == D
        assert told == {
            "throttle_time_ms": 0,
            "error_code": 0,
            "generation_id": 1,
            "protocol_type": "test",
            "protocol_name": "p",
            "leader": a.id,
            "skip_assignment": False,
            "member_id": a.id,
            "members": [{"member_id": a.id, "group_instance_id": None, "metadata": b"mp"}],
        }
        a.joined(told)
        assert await cluster.state() == "CompletingRebalance"
        assert a.beat() == 0
        assert answered(a.sync({a.id: b"mine"})) == {
            "throttle_time_ms": 0,
            "error_code": 0,
            "protocol_type": "test",
            "protocol_name": "p",
            "assignment": b"mine",
        }
        assert await cluster.state() == "Stable"
        assert a.beat() == 0

    run(walk)


def test_only_the_leader_is_told_the_members_and_each_gets_its_own_assignment() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(), cluster.party(protocols=(("p", b"b's"),))
        await a.get_id()
        await b.get_id()
        first, second = a.join(), b.join()
        told_a, told_b = await reply(first), await reply(second)
        assert {m["member_id"]: m["metadata"] for m in told_a["members"]} == {a.id: b"mp", b.id: b"b's"}
        assert told_b["members"] == [] and told_b["leader"] == a.id
        a.joined(told_a)
        b.joined(told_b)
        sync = b.sync({b.id: b"ignored"})
        assert parked(sync)
        assert answered(a.sync({a.id: b"1", "ghost": b"3"}))["assignment"] == b"1"
        assert answered(sync)["assignment"] == b""
        assert answered(a.sync({a.id: b"other"}))["assignment"] == b"1"

    run(walk)


def test_refused_requests_change_nothing() -> None:
    async def walk(cluster: Cluster) -> None:
        a, other = cluster.party(protocols=PQ), cluster.party()
        await cluster.stable(a)
        cases = [
            (other.join(group_id=""), 24),
            (other.join(session_timeout_ms=5_999), 26),
            (other.join(session_timeout_ms=1_800_001), 26),
            (other.join(member_id="x"), 25),
            (other.join(member_id="x", protocol_type="connect"), 23),
            (other.join(protocols=[{"name": "r", "metadata": b""}]), 23),
            (a.join(protocols=[{"name": "r", "metadata": b""}]), 23),
            (other.join(group_id="new", protocol_type=""), 23),
            (other.join(group_id="other", member_id="x"), 25),
            (a.sync(generation_id=0), 22),
            (a.sync(generation_id=2, protocol_name="x"), 22),
            (a.sync(protocol_name="x"), 23),
            (a.sync(protocol_name=None), 23),
            (a.sync(member_id="x", generation_id=9), 25),
            (a.sync(group_id=""), 24),
        ]
        for exchange, error in cases:
            assert answered(exchange)["error_code"] == error
        assert [a.beat(generation_id=0), a.beat(generation_id=2), a.beat(member_id="x"), a.beat()] == [22, 22, 25, 0]
        assert await cluster.state("new") == "Empty"
        assert await cluster.state("other") == "Dead"

    run(walk)


def test_session_bounds_are_inclusive_and_old_versions_skip_the_detour() -> None:
    async def walk(cluster: Cluster) -> None:
        low, high = cluster.party(session=6_000), cluster.party(session=1_800_000)
        assert answered(low.join())["error_code"] == 79
        assert answered(high.join())["error_code"] == 79
        old = cluster.party(group="old")
        assert (await reply(old.join(version=3)))["error_code"] == 0
        refused = answered(old.join(version=6, session_timeout_ms=1))
        assert (refused["protocol_name"], refused["generation_id"]) == ("", -1)
        assert "protocol_type" not in refused and "throttle_time_ms" in refused

    run(walk)


def test_rejoining_while_completing() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(), cluster.party()
        await a.get_id()
        await b.get_id()
        joins = [a.join(), b.join()]
        a.joined(await reply(joins[0]))
        b.joined(await reply(joins[1]))
        again = answered(a.join())
        assert again["generation_id"] == 1 and len(again["members"]) == 2
        sync = b.sync()
        b.protocols = (("p", b"changed"),)
        changed = b.join()
        assert parked(changed) and answered(sync)["error_code"] == 27
        assert [a.beat(), answered(a.sync())["error_code"]] == [27, 27]
        assert answered(a.join())["generation_id"] == 2
        assert answered(changed)["generation_id"] == 2

    run(walk)


def test_rejoining_in_stable() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(protocols=PQ), cluster.party(protocols=PQ)
        await cluster.stable(a, b)
        same = answered(b.join(session_timeout_ms=20_000))
        assert (same["generation_id"], same["leader"], same["members"]) == (1, a.id, [])
        assert a.beat() == 0
        b.protocols = QP
        join = b.join()
        assert parked(join) and a.beat() == 27
        assert answered(a.join())["generation_id"] == 2
        b.joined(answered(join))
        assert answered(a.sync(generation_id=2))["error_code"] == 0
        leader = a.join()
        assert parked(leader) and b.beat() == 27

    run(walk)


def test_a_pending_id_blocks_a_round_until_it_leaves_or_expires() -> None:
    async def walk(cluster: Cluster) -> None:
        a, c = cluster.party(), cluster.party(session=7_000)
        await cluster.stable(a)
        await c.get_id()
        assert a.beat() == 0 and c.beat(generation_id=1) == 25
        join = a.join()
        assert parked(join)
        assert c.leave() == 0
        a.joined(answered(join))
        assert answered(a.sync())["error_code"] == 0
        assert answered(c.join())["error_code"] == 25
        c.id = ""
        await c.get_id()
        join, start = a.join(), now()
        assert (await reply(join))["generation_id"] == 3
        assert now() - start == 7_000

    run(walk)


def test_the_rebalance_timeout_drops_whoever_did_not_rejoin() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(rebalance=10_000), cluster.party(rebalance=20_000)
        await cluster.stable(a, b)
        start, join = now(), a.join()
        told = await b.beat_until(start + 18_000)
        assert set(told) == {27}
        assert b.commit() == 0
        a.joined(await reply(join))
        assert now() == start + 20_000
        assert b.beat() == 25
        assert [m["member_id"] for m in answered(a.join())["members"]] == [a.id]

    run(walk)


def test_the_vote() -> None:
    async def walk(cluster: Cluster) -> None:
        for number, (lists, selected) in enumerate(
            [((PQ,), "p"), ((QP,), "q"), ((PQ, QP, QP), "q"), ((QP, P), "p"), ((Q, PQ), "q")]
        ):
            parties = [cluster.party(group=f"g{number}", protocols=offered) for offered in lists]
            await cluster.stable(*parties)
            assert {party.protocol for party in parties} == {selected}

    run(walk)


def test_the_initial_delay_is_extended_by_newcomers_up_to_the_rebalance_timeout() -> None:
    async def walk(cluster: Cluster) -> None:
        a = cluster.party(group="one", rebalance=5_000)
        joins = [a.join(version=3)]
        for _ in range(2):
            await asyncio.sleep(2)
            joins.append(cluster.party(group="one").join(version=3))
        assert parked(*joins)
        await reply(joins[0])
        assert now() == 5_000 and not parked(*joins)
        b, c = cluster.party(group="two"), cluster.party(group="two")
        start, first = now(), b.join(version=3)
        await asyncio.sleep(2.999)
        second = c.join(version=3)
        await reply(second)
        assert now() - start == 2 * D and not parked(first)

    run(walk)


def test_without_a_delay_a_lone_member_is_answered_at_once() -> None:
    async def walk(cluster: Cluster) -> None:
        a = cluster.party()
        await a.get_id()
        a.joined(await reply(a.join()))
        assert now() == 0

    run(walk, Settings(initial_rebalance_delay=0))


def test_generations_go_on_when_a_group_empties() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(), cluster.party()
        await cluster.stable(a)
        assert a.leave() == 0
        assert await cluster.state() == "Empty"
        assert answered(a.join())["error_code"] == 25
        b.type = "other"
        await cluster.stable(b)
        assert b.generation == 3

    run(walk)
