"""Static members of the bundled coordinator (KIP-345), leaving, and the size limit."""

import asyncio

import pytest

from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from tests.support.group_driver import (
    ONLY_P,
    ONLY_Q,
    P_THEN_Q,
    BundledGroup,
    GroupMember,
    are_parked,
    now_ms,
    open_group,
    response_of,
    wait_for_response,
)


def restart_member(member: GroupMember) -> GroupMember:
    """The same instance, which remembers nothing."""
    return GroupMember(member.bundled, instance=member.instance, protocols=member.protocols, session=member.session)


async def test_a_follower_is_replaced_without_a_rebalance(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member(instance="i")
    await bundled.form_stable_group(a, b)
    new = restart_member(b)
    new.protocols = (("p", b"changed"),)
    told = response_of(new.join())
    assert (told["generation_id"], told["leader"], told["members"]) == (1, a.id, [])
    assert told["skip_assignment"] is False and told["member_id"] != b.id
    new.accept_join(told)
    assert a.heartbeat() == Error.NONE
    assert response_of(new.sync())["assignment"] == b"for 1"
    assert [b.heartbeat(), b.heartbeat(generation_id=9), b.heartbeat(group_instance_id=None)] == [
        Error.FENCED_INSTANCE_ID,
        Error.FENCED_INSTANCE_ID,
        Error.UNKNOWN_MEMBER_ID,
    ]
    assert [response_of(b.join())["error_code"], b.commit(), b.leave()] == [
        Error.FENCED_INSTANCE_ID,
        Error.FENCED_INSTANCE_ID,
        Error.FENCED_INSTANCE_ID,
    ]
    assert response_of(b.sync())["error_code"] == Error.FENCED_INSTANCE_ID
    join = a.join()
    new.accept_join(response_of(new.join()))
    members = {m["member_id"]: m["metadata"] for m in response_of(join)["members"]}
    assert members == {a.id: b"mp", new.id: b"changed"}


@pytest.mark.parametrize("version", [9, 8])
async def test_a_leader_is_replaced_without_a_rebalance(bundled: BundledGroup, version: int) -> None:
    a, b = bundled.member(instance="i"), bundled.member()
    await bundled.form_stable_group(a, b)
    told = response_of(restart_member(a).join(version))
    if version == 9:
        assert told["leader"] == told["member_id"] and told["skip_assignment"] is True
        assert {m["member_id"] for m in told["members"]} == {told["member_id"], b.id}
    else:
        assert told["leader"] == a.id and told["members"] == [] and "skip_assignment" not in told
    assert b.heartbeat() == Error.NONE


async def test_a_replacement_that_changes_the_vote_starts_a_round(bundled: BundledGroup) -> None:
    a, b = bundled.member(protocols=P_THEN_Q), bundled.member(protocols=P_THEN_Q, instance="i")
    await bundled.form_stable_group(a, b)
    assert b.protocol == "p"
    new = restart_member(b)
    new.protocols = ONLY_Q
    join = new.join()
    assert are_parked(join) and a.heartbeat() == Error.REBALANCE_IN_PROGRESS
    a.accept_join(response_of(a.join()))
    assert (a.protocol, response_of(join)["generation_id"]) == ("q", 2)


async def test_a_replacement_while_completing_or_preparing(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member(instance="i")
    await bundled.form_stable_group(a, b)
    join = b.join(protocols=[{"name": "p", "metadata": b"x"}])
    new = restart_member(b)
    second = new.join()
    assert (response_of(join)["error_code"], response_of(join)["member_id"]) == (Error.FENCED_INSTANCE_ID, b.id)
    a.accept_join(response_of(a.join()))
    new.accept_join(response_of(second))
    syncs = [new.sync(), restart_member(b).join()]
    assert response_of(syncs[0])["error_code"] == Error.FENCED_INSTANCE_ID
    assert are_parked(syncs[1]) and a.heartbeat() == Error.REBALANCE_IN_PROGRESS
    assert response_of(a.join())["generation_id"] == response_of(syncs[1])["generation_id"] == 3


async def test_identity_checks_and_an_unmapped_instance(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member(instance="i")
    await bundled.form_stable_group(a, b)
    assert response_of(a.join(group_instance_id="i"))["error_code"] == Error.FENCED_INSTANCE_ID
    assert response_of(a.join(group_instance_id="x"))["error_code"] == Error.UNKNOWN_MEMBER_ID
    assert b.heartbeat(group_instance_id=None) == Error.NONE
    pending = bundled.member()
    await pending.obtain_id()
    assert response_of(pending.join(group_instance_id="x"))["error_code"] == Error.UNKNOWN_SERVER_ERROR


async def test_an_absent_static_member_stays_and_loses_the_lead(bundled: BundledGroup) -> None:
    a, b = bundled.member(instance="i", rebalance=20_000, session=15_000), bundled.member(rebalance=20_000)
    await bundled.form_stable_group(a, b)
    start, join = now_ms(), b.join(protocols=[{"name": "p", "metadata": b"x"}])
    await a.heartbeat_until(start + 18_000)
    told = await wait_for_response(join)
    assert now_ms() - start == 20_000
    assert told["leader"] == b.id and {m["member_id"] for m in told["members"]} == {a.id, b.id}
    b.accept_join(told)
    assert a.heartbeat() == Error.ILLEGAL_GENERATION
    assert response_of(b.sync())["error_code"] == Error.NONE
    a.generation = 2
    await asyncio.gather(a.heartbeat_until(now_ms() + 18_000), b.heartbeat_until(now_ms() + 18_000))
    await asyncio.sleep(2)
    assert [a.heartbeat(), b.heartbeat()] == [Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS]


async def test_no_generation_without_anybody_there(bundled: BundledGroup) -> None:
    a, b, c = (
        bundled.member(instance="i", rebalance=10_000, session=25_000),
        bundled.member(instance="j", rebalance=10_000, session=25_000),
        bundled.member(),
    )
    await bundled.form_stable_group(a, b, c)
    assert c.leave() == Error.NONE
    await asyncio.sleep(24)
    assert await bundled.group_state() == "PreparingRebalance"
    a.accept_join(await wait_for_response(a.join()))
    assert a.generation == 2 and await bundled.group_state() == "CompletingRebalance"


async def test_leaving_in_a_batch(bundled: BundledGroup) -> None:
    a, b, c = bundled.member(), bundled.member(instance="i"), bundled.member()
    await bundled.form_stable_group(a, b, c)
    entries = [
        {"member_id": "", "group_instance_id": "i"},
        {"member_id": "x"},
        {"member_id": c.id},
        {"member_id": c.id},
        {"member_id": ""},
        {"member_id": a.id, "group_instance_id": "i"},
    ]
    told = await bundled.request("LeaveGroup", 5, group_id="g", members=entries)
    assert [m["error_code"] for m in told["members"]] == [
        Error.NONE,
        Error.UNKNOWN_MEMBER_ID,
        Error.NONE,
        Error.UNKNOWN_MEMBER_ID,
        Error.UNKNOWN_MEMBER_ID,
        Error.UNKNOWN_MEMBER_ID,
    ]
    assert [m["member_id"] for m in told["members"]] == ["", "x", c.id, c.id, "", a.id]
    assert a.heartbeat() == Error.REBALANCE_IN_PROGRESS
    assert [m["member_id"] for m in response_of(a.join())["members"]] == [a.id]
    assert await bundled.request("LeaveGroup", 2, group_id="g", member_id=a.id) == {
        "throttle_time_ms": 0,
        "error_code": 0,
    }
    assert await bundled.group_state() == "Empty"
    assert (await bundled.request("LeaveGroup", 0, group_id="none", member_id="x")) == {
        "error_code": Error.UNKNOWN_MEMBER_ID
    }
    none = await bundled.request("LeaveGroup", 3, group_id="none", members=[{"member_id": "x"}])
    assert (none["error_code"], none["members"][0]["error_code"]) == (Error.NONE, Error.UNKNOWN_MEMBER_ID)
    assert (await bundled.request("LeaveGroup", 3, group_id="", members=[{"member_id": "x"}]))["members"] == []


async def test_a_leaver_ends_its_own_join_and_the_others_syncs(bundled: BundledGroup) -> None:
    a, b, c = bundled.member(), bundled.member(), bundled.member()
    await bundled.form_stable_group(a, b, c)
    joins = [a.join(), b.join()]
    assert a.leave() == Error.NONE
    told = response_of(joins[0])
    assert (told["error_code"], told["member_id"]) == (Error.UNKNOWN_MEMBER_ID, "")
    c.accept_join(response_of(c.join()))
    b.accept_join(response_of(joins[1]))
    follower, leader = (b, c) if response_of(joins[1])["leader"] == c.id else (c, b)
    sync = follower.sync()
    assert leader.leave() == Error.NONE
    assert response_of(sync)["error_code"] == Error.REBALANCE_IN_PROGRESS


async def test_the_size_limit() -> None:
    async with open_group(Settings(max_group_size=2)) as bundled:
        a, b = bundled.member(), bundled.member(instance="i")
        await bundled.form_stable_group(a, b)
        told = response_of(bundled.member().join())
        assert (told["error_code"], told["member_id"]) == (Error.GROUP_MAX_SIZE_REACHED, "")
        assert response_of(restart_member(b).join())["error_code"] == Error.GROUP_MAX_SIZE_REACHED
        join = a.join()
        b.accept_join(response_of(b.join()))
        a.accept_join(response_of(join))
        crowd = [bundled.member(group="crowd", protocols=ONLY_P) for _ in range(3)]
        for party in crowd:
            await party.obtain_id()
        joins = [party.join() for party in crowd]
        assert response_of(joins[2])["error_code"] == Error.GROUP_MAX_SIZE_REACHED
        assert (
            (await wait_for_response(joins[0]))["error_code"]
            == (await wait_for_response(joins[1]))["error_code"]
            == Error.NONE
        )


async def test_a_member_that_rejoins_a_crowded_round_late_is_out() -> None:
    async with open_group(Settings(max_group_size=2)) as bundled:
        a, b = bundled.member(instance="i", rebalance=10_000), bundled.member(rebalance=10_000)
        await bundled.form_stable_group(a, b)
        join = b.join(protocols=[{"name": "p", "metadata": b"x"}])
        pending = bundled.member()
        await pending.obtain_id()
        newcomer = pending.join()
        assert are_parked(newcomer)
        assert response_of(a.join())["error_code"] == Error.GROUP_MAX_SIZE_REACHED
        assert a.heartbeat() == Error.UNKNOWN_MEMBER_ID
        assert are_parked(join, newcomer)
        await wait_for_response(join)
        assert response_of(newcomer)["error_code"] == Error.NONE
