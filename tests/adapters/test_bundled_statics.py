"""Static members of the bundled coordinator (KIP-345), leaving, and the size limit."""

import asyncio

import pytest

from fencepost.model.settings import Settings
from tests.support.group_driver import PQ, Cluster, P, Party, Q, answered, now, parked, reply, run


def restarted(party: Party) -> Party:
    """The same instance, which remembers nothing."""
    return Party(party.cluster, instance=party.instance, protocols=party.protocols, session=party.session)


def test_a_follower_is_replaced_without_a_rebalance() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(), cluster.party(instance="i")
        await cluster.stable(a, b)
        new = restarted(b)
        new.protocols = (("p", b"changed"),)
        told = answered(new.join())
        assert (told["generation_id"], told["leader"], told["members"]) == (1, a.id, [])
        assert told["skip_assignment"] is False and told["member_id"] != b.id
        new.joined(told)
        assert a.beat() == 0
        assert answered(new.sync())["assignment"] == b"for 1"
        assert [b.beat(), b.beat(generation_id=9), b.beat(group_instance_id=None)] == [82, 82, 25]
        assert [answered(b.join())["error_code"], b.commit(), b.leave()] == [82, 82, 82]
        assert answered(b.sync())["error_code"] == 82
        join = a.join()
        new.joined(answered(new.join()))
        members = {m["member_id"]: m["metadata"] for m in answered(join)["members"]}
        assert members == {a.id: b"mp", new.id: b"changed"}

    run(walk)


@pytest.mark.parametrize("version", [9, 8])
def test_a_leader_is_replaced_without_a_rebalance(version: int) -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(instance="i"), cluster.party()
        await cluster.stable(a, b)
        told = answered(restarted(a).join(version))
        if version == 9:
            assert told["leader"] == told["member_id"] and told["skip_assignment"] is True
            assert {m["member_id"] for m in told["members"]} == {told["member_id"], b.id}
        else:
            assert told["leader"] == a.id and told["members"] == [] and "skip_assignment" not in told
        assert b.beat() == 0

    run(walk)


def test_a_replacement_that_changes_the_vote_starts_a_round() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(protocols=PQ), cluster.party(protocols=PQ, instance="i")
        await cluster.stable(a, b)
        assert b.protocol == "p"
        new = restarted(b)
        new.protocols = Q
        join = new.join()
        assert parked(join) and a.beat() == 27
        a.joined(answered(a.join()))
        assert (a.protocol, answered(join)["generation_id"]) == ("q", 2)

    run(walk)


def test_a_replacement_while_completing_or_preparing() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(), cluster.party(instance="i")
        await cluster.stable(a, b)
        join = b.join(protocols=[{"name": "p", "metadata": b"x"}])
        new = restarted(b)
        second = new.join()
        assert (answered(join)["error_code"], answered(join)["member_id"]) == (82, b.id)
        a.joined(answered(a.join()))
        new.joined(answered(second))
        syncs = [new.sync(), restarted(b).join()]
        assert answered(syncs[0])["error_code"] == 82
        assert parked(syncs[1]) and a.beat() == 27
        assert answered(a.join())["generation_id"] == answered(syncs[1])["generation_id"] == 3

    run(walk)


def test_identity_checks_and_an_unmapped_instance() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(), cluster.party(instance="i")
        await cluster.stable(a, b)
        assert answered(a.join(group_instance_id="i"))["error_code"] == 82
        assert answered(a.join(group_instance_id="x"))["error_code"] == 25
        assert b.beat(group_instance_id=None) == 0
        pending = cluster.party()
        await pending.get_id()
        assert answered(pending.join(group_instance_id="x"))["error_code"] == -1

    run(walk)


def test_an_absent_static_member_stays_and_loses_the_lead() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(instance="i", rebalance=20_000, session=15_000), cluster.party(rebalance=20_000)
        await cluster.stable(a, b)
        start, join = now(), b.join(protocols=[{"name": "p", "metadata": b"x"}])
        await a.beat_until(start + 18_000)
        told = await reply(join)
        assert now() - start == 20_000
        assert told["leader"] == b.id and {m["member_id"] for m in told["members"]} == {a.id, b.id}
        b.joined(told)
        assert a.beat() == 22
        assert answered(b.sync())["error_code"] == 0
        a.generation = 2
        await asyncio.gather(a.beat_until(now() + 18_000), b.beat_until(now() + 18_000))
        await asyncio.sleep(2)
        assert [a.beat(), b.beat()] == [25, 27]

    run(walk)


def test_no_generation_without_anybody_there() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b, c = (
            cluster.party(instance="i", rebalance=10_000, session=25_000),
            cluster.party(instance="j", rebalance=10_000, session=25_000),
            cluster.party(),
        )
        await cluster.stable(a, b, c)
        assert c.leave() == 0
        await asyncio.sleep(24)
        assert await cluster.state() == "PreparingRebalance"
        a.joined(await reply(a.join()))
        assert a.generation == 2 and await cluster.state() == "CompletingRebalance"

    run(walk)


def test_leaving_in_a_batch() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b, c = cluster.party(), cluster.party(instance="i"), cluster.party()
        await cluster.stable(a, b, c)
        entries = [
            {"member_id": "", "group_instance_id": "i"},
            {"member_id": "x"},
            {"member_id": c.id},
            {"member_id": c.id},
            {"member_id": ""},
            {"member_id": a.id, "group_instance_id": "i"},
        ]
        told = await cluster.ask("LeaveGroup", 5, group_id="g", members=entries)
        assert [m["error_code"] for m in told["members"]] == [0, 25, 0, 25, 25, 25]
        assert [m["member_id"] for m in told["members"]] == ["", "x", c.id, c.id, "", a.id]
        assert a.beat() == 27
        assert [m["member_id"] for m in answered(a.join())["members"]] == [a.id]
        assert await cluster.ask("LeaveGroup", 2, group_id="g", member_id=a.id) == {
            "throttle_time_ms": 0,
            "error_code": 0,
        }
        assert await cluster.state() == "Empty"
        assert (await cluster.ask("LeaveGroup", 0, group_id="none", member_id="x")) == {"error_code": 25}
        none = await cluster.ask("LeaveGroup", 3, group_id="none", members=[{"member_id": "x"}])
        assert (none["error_code"], none["members"][0]["error_code"]) == (0, 25)
        assert (await cluster.ask("LeaveGroup", 3, group_id="", members=[{"member_id": "x"}]))["members"] == []

    run(walk)


def test_a_leaver_ends_its_own_join_and_the_others_syncs() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b, c = cluster.party(), cluster.party(), cluster.party()
        await cluster.stable(a, b, c)
        joins = [a.join(), b.join()]
        assert a.leave() == 0
        told = answered(joins[0])
        assert (told["error_code"], told["member_id"]) == (25, "")
        c.joined(answered(c.join()))
        b.joined(answered(joins[1]))
        follower, leader = (b, c) if answered(joins[1])["leader"] == c.id else (c, b)
        sync = follower.sync()
        assert leader.leave() == 0
        assert answered(sync)["error_code"] == 27

    run(walk)


def test_the_size_limit() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(), cluster.party(instance="i")
        await cluster.stable(a, b)
        told = answered(cluster.party().join())
        assert (told["error_code"], told["member_id"]) == (81, "")
        assert answered(restarted(b).join())["error_code"] == 81
        join = a.join()
        b.joined(answered(b.join()))
        a.joined(answered(join))
        crowd = [cluster.party(group="crowd", protocols=P) for _ in range(3)]
        for party in crowd:
            await party.get_id()
        joins = [party.join() for party in crowd]
        assert answered(joins[2])["error_code"] == 81
        assert (await reply(joins[0]))["error_code"] == (await reply(joins[1]))["error_code"] == 0

    run(walk, Settings(max_group_size=2))


def test_a_member_that_rejoins_a_crowded_round_late_is_out() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(instance="i", rebalance=10_000), cluster.party(rebalance=10_000)
        await cluster.stable(a, b)
        join = b.join(protocols=[{"name": "p", "metadata": b"x"}])
        pending = cluster.party()
        await pending.get_id()
        newcomer = pending.join()
        assert parked(newcomer)
        assert answered(a.join())["error_code"] == 81
        assert a.beat() == 25
        assert parked(join, newcomer)
        await reply(join)
        assert answered(newcomer)["error_code"] == 0

    run(walk, Settings(max_group_size=2))
