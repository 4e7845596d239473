"""Rounds of the bundled coordinator: joining, the initial delay, completing, syncing."""

import asyncio

from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from tests.support.group_driver import (
    INITIAL_DELAY_MS,
    ONLY_P,
    ONLY_Q,
    P_THEN_Q,
    Q_THEN_P,
    BundledGroup,
    are_parked,
    now_ms,
    open_group,
    response_of,
    wait_for_response,
)


async def test_a_lone_member_walks_through_a_round(bundled: BundledGroup) -> None:
    a = bundled.member()
    await a.obtain_id()
    assert await bundled.group_state() == "Empty"
    join = a.join()
    assert await bundled.group_state() == "PreparingRebalance"
    told = await wait_for_response(join)
    assert now_ms() == INITIAL_DELAY_MS
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
    a.accept_join(told)
    assert await bundled.group_state() == "CompletingRebalance"
    assert a.heartbeat() == Error.NONE
    assert response_of(a.sync({a.id: b"mine"})) == {
        "throttle_time_ms": 0,
        "error_code": 0,
        "protocol_type": "test",
        "protocol_name": "p",
        "assignment": b"mine",
    }
    assert await bundled.group_state() == "Stable"
    assert a.heartbeat() == Error.NONE


async def test_only_the_leader_is_told_the_members_and_each_gets_its_own_assignment(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member(protocols=(("p", b"b's"),))
    await a.obtain_id()
    await b.obtain_id()
    first, second = a.join(), b.join()
    told_a, told_b = await wait_for_response(first), await wait_for_response(second)
    assert {m["member_id"]: m["metadata"] for m in told_a["members"]} == {a.id: b"mp", b.id: b"b's"}
    assert told_b["members"] == [] and told_b["leader"] == a.id
    a.accept_join(told_a)
    b.accept_join(told_b)
    sync = b.sync({b.id: b"ignored"})
    assert are_parked(sync)
    assert response_of(a.sync({a.id: b"1", "ghost": b"3"}))["assignment"] == b"1"
    assert response_of(sync)["assignment"] == b""
    assert response_of(a.sync({a.id: b"other"}))["assignment"] == b"1"


async def test_refused_requests_change_nothing(bundled: BundledGroup) -> None:
    a, other = bundled.member(protocols=P_THEN_Q), bundled.member()
    await bundled.form_stable_group(a)
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
        assert response_of(exchange)["error_code"] == error
    assert [
        a.heartbeat(generation_id=0),
        a.heartbeat(generation_id=2),
        a.heartbeat(member_id="x"),
        a.heartbeat(),
    ] == [Error.ILLEGAL_GENERATION, Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.NONE]
    assert await bundled.group_state("new") == "Empty"
    assert await bundled.group_state("other") == "Dead"


async def test_session_bounds_are_inclusive_and_old_versions_skip_the_detour(bundled: BundledGroup) -> None:
    low, high = bundled.member(session=6_000), bundled.member(session=1_800_000)
    assert response_of(low.join())["error_code"] == Error.MEMBER_ID_REQUIRED
    assert response_of(high.join())["error_code"] == Error.MEMBER_ID_REQUIRED
    old = bundled.member(group="old")
    assert (await wait_for_response(old.join(version=3)))["error_code"] == Error.NONE
    refused = response_of(old.join(version=6, session_timeout_ms=1))
    assert (refused["protocol_name"], refused["generation_id"]) == ("", -1)
    assert "protocol_type" not in refused and "throttle_time_ms" in refused


async def test_rejoining_while_completing(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member()
    await a.obtain_id()
    await b.obtain_id()
    joins = [a.join(), b.join()]
    a.accept_join(await wait_for_response(joins[0]))
    b.accept_join(await wait_for_response(joins[1]))
    again = response_of(a.join())
    assert again["generation_id"] == 1 and len(again["members"]) == 2
    sync = b.sync()
    b.protocols = (("p", b"changed"),)
    changed = b.join()
    assert are_parked(changed) and response_of(sync)["error_code"] == Error.REBALANCE_IN_PROGRESS
    assert [a.heartbeat(), response_of(a.sync())["error_code"]] == [
        Error.REBALANCE_IN_PROGRESS,
        Error.REBALANCE_IN_PROGRESS,
    ]
    assert response_of(a.join())["generation_id"] == 2
    assert response_of(changed)["generation_id"] == 2


async def test_rejoining_in_stable(bundled: BundledGroup) -> None:
    a, b = bundled.member(protocols=P_THEN_Q), bundled.member(protocols=P_THEN_Q)
    await bundled.form_stable_group(a, b)
    same = response_of(b.join(session_timeout_ms=20_000))
    assert (same["generation_id"], same["leader"], same["members"]) == (1, a.id, [])
    assert a.heartbeat() == Error.NONE
    b.protocols = Q_THEN_P
    join = b.join()
    assert are_parked(join) and a.heartbeat() == Error.REBALANCE_IN_PROGRESS
    assert response_of(a.join())["generation_id"] == 2
    b.accept_join(response_of(join))
    assert response_of(a.sync(generation_id=2))["error_code"] == Error.NONE
    leader = a.join()
    assert are_parked(leader) and b.heartbeat() == Error.REBALANCE_IN_PROGRESS


async def test_a_pending_id_blocks_a_round_until_it_leaves_or_expires(bundled: BundledGroup) -> None:
    a, c = bundled.member(), bundled.member(session=7_000)
    await bundled.form_stable_group(a)
    await c.obtain_id()
    assert a.heartbeat() == Error.NONE and c.heartbeat(generation_id=1) == Error.UNKNOWN_MEMBER_ID
    join = a.join()
    assert are_parked(join)
    assert c.leave() == Error.NONE
    a.accept_join(response_of(join))
    assert response_of(a.sync())["error_code"] == Error.NONE
    assert response_of(c.join())["error_code"] == Error.UNKNOWN_MEMBER_ID
    c.id = ""
    await c.obtain_id()
    join, start = a.join(), now_ms()
    assert (await wait_for_response(join))["generation_id"] == 3
    assert now_ms() - start == 7_000


async def test_the_rebalance_timeout_drops_whoever_did_not_rejoin(bundled: BundledGroup) -> None:
    a, b = bundled.member(rebalance=10_000), bundled.member(rebalance=20_000)
    await bundled.form_stable_group(a, b)
    start, join = now_ms(), a.join()
    told = await b.heartbeat_until(start + 18_000)
    assert set(told) == {27}
    assert b.commit() == Error.NONE
    a.accept_join(await wait_for_response(join))
    assert now_ms() == start + 20_000
    assert b.heartbeat() == Error.UNKNOWN_MEMBER_ID
    assert [m["member_id"] for m in response_of(a.join())["members"]] == [a.id]


async def test_the_protocol_with_most_votes_is_selected(bundled: BundledGroup) -> None:
    for number, (lists, selected) in enumerate(
        [
            ((P_THEN_Q,), "p"),
            ((Q_THEN_P,), "q"),
            ((P_THEN_Q, Q_THEN_P, Q_THEN_P), "q"),
            ((Q_THEN_P, ONLY_P), "p"),
            ((ONLY_Q, P_THEN_Q), "q"),
        ]
    ):
        parties = [bundled.member(group=f"g{number}", protocols=offered) for offered in lists]
        await bundled.form_stable_group(*parties)
        assert {party.protocol for party in parties} == {selected}


async def test_the_initial_delay_is_extended_by_newcomers_up_to_the_rebalance_timeout(bundled: BundledGroup) -> None:
    a = bundled.member(group="one", rebalance=5_000)
    joins = [a.join(version=3)]
    for _ in range(2):
        await asyncio.sleep(2)
        joins.append(bundled.member(group="one").join(version=3))
    assert are_parked(*joins)
    await wait_for_response(joins[0])
    assert now_ms() == 5_000 and not are_parked(*joins)
    b, c = bundled.member(group="two"), bundled.member(group="two")
    start, first = now_ms(), b.join(version=3)
    await asyncio.sleep(2.999)
    second = c.join(version=3)
    await wait_for_response(second)
    assert now_ms() - start == 2 * INITIAL_DELAY_MS and not are_parked(first)


async def test_without_a_delay_a_lone_member_is_answered_at_once() -> None:
    async with open_group(Settings(initial_rebalance_delay=0)) as bundled:
        a = bundled.member()
        await a.obtain_id()
        a.accept_join(await wait_for_response(a.join()))
        assert now_ms() == 0


async def test_generations_go_on_when_a_group_empties(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member()
    await bundled.form_stable_group(a)
    assert a.leave() == Error.NONE
    assert await bundled.group_state() == "Empty"
    assert response_of(a.join())["error_code"] == Error.UNKNOWN_MEMBER_ID
    b.type = "other"
    await bundled.form_stable_group(b)
    assert b.generation == 3
