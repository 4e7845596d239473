"""Timers of the bundled coordinator: sessions, new members, pending ids, the sync timer, the clean-up pass."""

import asyncio

from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from tests.support.group_driver import (
    INITIAL_DELAY_MS,
    BundledGroup,
    are_parked,
    now_ms,
    open_group,
    response_of,
    wait_for_response,
)


async def sleep_until(time: int) -> None:
    """Wait until a time in milliseconds."""
    await asyncio.sleep((time - now_ms()) / 1000)


async def test_a_silent_member_goes_at_its_session_timeout_and_not_before(bundled: BundledGroup) -> None:
    a, b = bundled.member(session=30_000), bundled.member(session=6_000)
    await bundled.form_stable_group(a, b)
    start = now_ms()
    await sleep_until(start + 5_999)
    assert [a.heartbeat(), b.heartbeat()] == [Error.NONE, Error.NONE]
    await sleep_until(start + 11_998)
    assert a.heartbeat() == Error.NONE
    await sleep_until(start + 11_999)
    assert [a.heartbeat(), b.heartbeat()] == [Error.REBALANCE_IN_PROGRESS, Error.UNKNOWN_MEMBER_ID]


async def test_the_last_member_expires_into_an_empty_group(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member()
    await bundled.form_stable_group(a)
    await sleep_until(now_ms() + 10_000)
    assert await bundled.group_state() == "Empty"
    await bundled.form_stable_group(b)
    assert b.generation == 3


async def test_only_a_good_heartbeat_or_commit_extends_a_session() -> None:
    async with open_group(Settings(initial_rebalance_delay=0)) as bundled:
        parties = [bundled.member(group=f"g{number}") for number in range(6)]
        for party in parties:
            await bundled.form_stable_group(party)
        start = now_ms()
        for step in range(1, 4):
            await sleep_until(start + step * 5_000)
            parties[0].heartbeat()
            parties[1].commit()
            parties[2].heartbeat(generation_id=9)
            parties[3].commit(generation_id_or_member_epoch=9)
            parties[4].fetch()
            response_of(parties[5].sync())
        assert [party.heartbeat() for party in parties] == [
            Error.NONE,
            Error.NONE,
            Error.UNKNOWN_MEMBER_ID,
            Error.UNKNOWN_MEMBER_ID,
            Error.UNKNOWN_MEMBER_ID,
            Error.UNKNOWN_MEMBER_ID,
        ]


async def test_parked_requests_hold_a_session_open(bundled: BundledGroup) -> None:
    a, b = bundled.member(session=60_000), bundled.member(session=6_000)
    await bundled.form_stable_group(a, b)
    join = b.join(protocols=[{"name": "p", "metadata": b"new"}])
    await sleep_until(now_ms() + 20_000)
    assert are_parked(join)
    a.accept_join(response_of(a.join()))
    b.accept_join(response_of(join))
    sync = b.sync()
    await sleep_until(now_ms() + 20_000)
    assert response_of(a.sync({b.id: b"x"}))["error_code"] == Error.NONE
    assert response_of(sync)["assignment"] == b"x"
    await sleep_until(now_ms() + 5_999)
    assert b.heartbeat() == Error.NONE


async def test_a_first_join_is_parked_for_300_seconds_at_most(bundled: BundledGroup) -> None:
    a, b = bundled.member(rebalance=900_000, session=900_000), bundled.member(session=6_000)
    await bundled.form_stable_group(a)
    await b.obtain_id()
    start, join = now_ms(), b.join()
    told = await wait_for_response(join)
    assert (told["error_code"], told["member_id"], now_ms() - start) == (Error.UNKNOWN_MEMBER_ID, "", 300_000)
    assert a.heartbeat() == Error.REBALANCE_IN_PROGRESS


async def test_a_heartbeat_of_a_new_member_ends_its_grace(bundled: BundledGroup) -> None:
    a, b = bundled.member(rebalance=900_000, session=900_000), bundled.member(session=6_000)
    await bundled.form_stable_group(a)
    await b.obtain_id()
    start, join = now_ms(), b.join()
    assert b.heartbeat(generation_id=1) == Error.REBALANCE_IN_PROGRESS
    assert (await wait_for_response(join))["error_code"] == Error.UNKNOWN_MEMBER_ID
    assert now_ms() - start == 6_000


async def test_the_session_of_a_newcomer_does_not_run_during_the_initial_delay() -> None:
    async with open_group(Settings(initial_rebalance_delay=10000)) as bundled:
        a = bundled.member(session=6_000)
        await a.obtain_id()
        assert (await wait_for_response(a.join()))["error_code"] == Error.NONE
        assert now_ms() == 10_000


async def test_leaving_does_not_cut_the_initial_delay_short_but_an_expiry_does(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member()
    await a.obtain_id()
    await b.obtain_id()
    joins = [a.join(), b.join()]
    await sleep_until(1_000)
    assert b.leave() == Error.NONE
    assert response_of(joins[1])["error_code"] == Error.UNKNOWN_MEMBER_ID
    assert are_parked(joins[0])
    await wait_for_response(joins[0])
    assert now_ms() == 2 * INITIAL_DELAY_MS
    c = bundled.member(group="other", session=6_000)
    d = bundled.member(group="other")
    await c.obtain_id()
    start = now_ms()
    await sleep_until(start + 4_000)
    await d.obtain_id()
    assert (await wait_for_response(d.join()))["generation_id"] == 1
    assert now_ms() - start == 6_000


async def test_members_that_do_not_sync_are_removed_even_if_they_heartbeat(bundled: BundledGroup) -> None:
    a, b = bundled.member(rebalance=20_000), bundled.member(rebalance=20_000)
    await a.obtain_id()
    await b.obtain_id()
    joins = [a.join(), b.join()]
    a.accept_join(await wait_for_response(joins[0]))
    b.accept_join(await wait_for_response(joins[1]))
    start = now_ms()
    assert response_of(a.sync())["error_code"] == Error.NONE
    told = await asyncio.gather(a.heartbeat_until(start + 19_000), b.heartbeat_until(start + 19_000))
    assert set(told[0] + told[1]) == {0}
    await sleep_until(start + 20_000)
    assert [a.heartbeat(), b.heartbeat()] == [Error.REBALANCE_IN_PROGRESS, Error.UNKNOWN_MEMBER_ID]


async def test_without_the_leaders_sync_the_others_are_told_to_rejoin(bundled: BundledGroup) -> None:
    a, b = bundled.member(session=60_000, rebalance=20_000), bundled.member(session=60_000, rebalance=20_000)
    await a.obtain_id()
    await b.obtain_id()
    joins = [a.join(), b.join()]
    a.accept_join(await wait_for_response(joins[0]))
    b.accept_join(await wait_for_response(joins[1]))
    start, sync = now_ms(), b.sync()
    assert (await wait_for_response(sync))["error_code"] == Error.REBALANCE_IN_PROGRESS
    assert now_ms() - start == 20_000
    assert [a.heartbeat(), b.heartbeat()] == [Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS]
    b.accept_join(response_of(b.join()))
    await sleep_until(now_ms() + 20_000)
    assert await bundled.group_state() == "Empty"


async def test_the_silent_member_of_a_round_goes_at_its_session_timeout(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member(session=6_000)
    await bundled.form_stable_group(a, b)
    start = now_ms()
    a.accept_join(await wait_for_response(a.join()))
    assert now_ms() - start == 6_000


async def test_clean_up_removes_groups_without_offsets_and_expired_offsets() -> None:
    settings = Settings(offsets_retention=1_000_000, retention_check_interval=600_000)

    async with open_group(settings) as bundled:
        simple, bare, kept = (bundled.member(group=name) for name in ("simple", "bare", "kept"))
        await bare.obtain_id()
        assert simple.commit() == Error.NONE
        await bundled.form_stable_group(kept)
        assert kept.commit() == Error.NONE
        await sleep_until(500_000)
        assert simple.commit(generation_id_or_member_epoch=-1, retention_time_ms=50_000, version=4) == Error.NONE
        await sleep_until(599_999)
        assert [await bundled.group_state(name) for name in ("simple", "bare", "kept")] == ["Empty"] * 3
        await sleep_until(600_000)
        assert [await bundled.group_state(name) for name in ("simple", "bare", "kept")] == ["Dead", "Dead", "Empty"]
        await sleep_until(1_199_999)
        assert kept.fetch()["committed_offset"] == 7
        await sleep_until(1_200_000)
        assert await bundled.group_state("kept") == "Dead"


async def test_offsets_of_subscribed_topics_and_open_transactions_do_not_expire() -> None:
    settings = Settings(offsets_retention=1_000, retention_check_interval=5_000)
    subscription = b"\x00\x01\x00\x00\x00\x01\x00\x03one\xff\xff\xff\xff"

    async with open_group(settings, topics={"one": 1, "two": 1, "three": 1}) as bundled:
        a = bundled.member(type="consumer", session=600_000, protocols=(("range", subscription),))
        await bundled.form_stable_group(a)
        assert [a.commit(topic="one"), a.commit(topic="two"), a.commit(topic="three")] == [
            Error.NONE,
            Error.NONE,
            Error.NONE,
        ]
        partition = {"partition_index": 0, "committed_offset": 8, "committed_metadata": ""}
        body = {"group_id": "g", "producer_id": 1, "topics": [{"name": "three", "partitions": [partition]}]}
        await bundled.request("TxnOffsetCommit", 2, **body)
        await sleep_until(10_000)
        assert [a.fetch(topic=topic)["committed_offset"] for topic in ("one", "two", "three")] == [7, -1, 7]
