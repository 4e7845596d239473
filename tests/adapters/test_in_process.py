"""The in-process target and the clock it runs on."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from fencepost.adapters.address import TargetError
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import TraceBuilder
from fencepost.adapters.virtual_clock import Deadlock, VirtualClock, run_virtual
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind, Order
from tests.support.group_driver import (
    INITIAL_DELAY_MS,
    BundledGroup,
    GroupMember,
    are_parked,
    now_ms,
    open_group,
    wait_for_response,
)


async def test_time_jumps_to_the_next_timer() -> None:
    seen: list[tuple[str, int]] = []

    async def sleep(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((name, now_ms()))

    await asyncio.gather(sleep("long", 604_800), sleep("short", 0.001), sleep("none", 0))
    assert seen == [("none", 0), ("short", 1), ("long", 604_800_000)]


async def test_many_small_steps_do_not_drift() -> None:
    for step in range(1, 1001):
        await asyncio.sleep(0.1)
        assert now_ms() == step * 100


def test_waiting_for_what_never_comes_is_an_error_and_not_a_hang() -> None:
    async def walk() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock, match=r"at 0 ms nothing is scheduled, .*Task-"):
        run_virtual(walk())


def test_a_coordinator_at_rest_leaves_nothing_scheduled() -> None:
    async def wait_forever() -> None:
        async with open_group() as bundled:
            await bundled.form_stable_group(bundled.member())
            partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
            topics = [{"name": "fencepost", "partitions": [partition]}]
            await bundled.request("TxnOffsetCommit", 2, group_id="other", producer_id=4, topics=topics)
            await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        run_virtual(wait_forever())


async def test_open_describes_the_bundled_coordinator() -> None:
    target = InProcessTarget(Settings(min_session_timeout=1))
    with pytest.raises(TargetError, match="open the target first"):
        target.channel(TraceBuilder(now_ms))
    description = await target.open()
    assert (description.order, description.clock, description.topic) == (Order.TOTAL, "virtual", "fencepost")
    assert description.versions["JoinGroup"] == (0, 9)
    assert description.settings.min_session_timeout == 1 and description.can_restart
    channel = target.channel(TraceBuilder(now_ms))
    for api, version in (("JoinGroup", 10), ("Produce", 3)):
        with pytest.raises(TargetError, match=f"{api} version {version} cannot be sent"):
            channel.send(api, version, {})
    await channel.close()
    with pytest.raises(TargetError, match="closed"):
        channel.send("Heartbeat", 0, {})
    await target.close()


async def test_events_are_recorded_in_the_order_of_their_handling(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member()
    await a.obtain_id()
    await b.obtain_id()
    join = a.join()
    await asyncio.sleep(INITIAL_DELAY_MS / 1000)
    b.join()  # at the very moment at which the first round is done: timers go first
    assert not are_parked(join)
    events = bundled.recorder.events[4:]
    assert [(e.kind, e.time, e.connection, e.of) for e in events] == [
        (Kind.REQUEST, 0, 0, None),
        (Kind.RESPONSE, INITIAL_DELAY_MS, 0, 4),
        (Kind.REQUEST, INITIAL_DELAY_MS, 0, None),
    ]
    assert [e.sequence for e in events] == [4, 5, 6]


async def test_a_dropped_request_is_answered_to_nobody_but_on_record(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member()
    await a.obtain_id()
    await b.obtain_id()
    dropped, kept = b.join(), a.join()
    dropped.drop()
    dropped.drop()
    assert dropped.response.result() is None
    assert (await wait_for_response(kept))["leader"] == b.id
    assert dropped.request is not None
    about = [e for e in bundled.recorder.events if e.of == dropped.request.sequence]
    assert [(e.kind, e.api, e.time) for e in about] == [
        (Kind.FAULT, "drop", 0),
        (Kind.RESPONSE, "JoinGroup", 2 * INITIAL_DELAY_MS),
    ]
    kept.drop()
    assert bundled.recorder.events[-1].kind is Kind.RESPONSE


async def test_a_restart_loses_what_is_parked_and_tells_every_live_recorder_once(bundled: BundledGroup) -> None:
    other, gone = TraceBuilder(now_ms), TraceBuilder(now_ms)
    channels = [bundled.target.channel(recorder) for recorder in (other, other, gone)]
    await channels[2].close()
    a = bundled.member()
    join = a.join(version=3)
    await bundled.target.restart()
    assert join.response.result() is None
    assert [len(r.events) for r in (bundled.recorder, other, gone)] == [2, 1, 0]
    assert (other.events[0].kind, other.events[0].api) == (Kind.FAULT, "restart")
    await asyncio.sleep(10)
    assert len(bundled.recorder.events) == 2


async def test_a_closed_channel_records_nothing_more(bundled: BundledGroup) -> None:
    recorder = TraceBuilder(now_ms)
    channel = bundled.target.channel(recorder)
    body: dict[str, Any] = {"group_id": "g", "session_timeout_ms": 6_000, "protocol_type": "t"}
    join = channel.send("JoinGroup", 0, body | {"protocols": [{"name": "p", "metadata": b""}]})
    await channel.close()
    assert join.response.result() is None
    await asyncio.sleep(5)
    assert [e.kind for e in recorder.events] == [Kind.REQUEST]
    assert await bundled.group_state() == "CompletingRebalance"


def test_one_schedule_gives_one_trace() -> None:
    async def record_trace() -> Sequence[Event]:
        async with open_group() as bundled:
            members = [bundled.member(instance=instance) for instance in (None, "i", None)]
            await bundled.form_stable_group(*members)
            await asyncio.sleep(20)
            return bundled.recorder.events

    assert run_virtual(record_trace()) == run_virtual(record_trace())


async def test_coordinator_methods_can_be_patched(bundled: BundledGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    async def heartbeat_twice(member: GroupMember) -> list[int]:
        await bundled.form_stable_group(member)
        errors = []
        for _ in range(2):
            await asyncio.sleep(member.session / 1000 - 1)
            errors.append(member.heartbeat())
        return errors

    assert await heartbeat_twice(bundled.member(session=6_000)) == [Error.NONE, Error.NONE]
    monkeypatch.setattr(Rebalancer, "touch_session", lambda self, group, member: None)
    errors = await heartbeat_twice(bundled.member(session=600_000, group="patched"))
    assert errors == [Error.UNKNOWN_MEMBER_ID] * 2


def test_the_clock_counts_milliseconds() -> None:
    loop = VirtualClock()
    try:
        loop.run_until_complete(asyncio.sleep(1.5))
        assert loop.milliseconds == 1500
    finally:
        loop.close()
