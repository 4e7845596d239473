"""The in-process target and the clock it runs on."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fencepost.adapters.bundled.classic.rebalance import Rounds
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Recorder, TargetError
from fencepost.adapters.virtual_clock import Deadlock, VirtualClock, run_virtual
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind, Order
from tests.support.group_driver import Cluster, D, now, parked, reply, run


def test_time_jumps_to_the_next_timer() -> None:
    async def walk() -> list[tuple[str, int]]:
        seen: list[tuple[str, int]] = []

        async def sleep(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            seen.append((name, now()))

        await asyncio.gather(sleep("long", 604_800), sleep("short", 0.001), sleep("none", 0))
        return seen

    assert run_virtual(walk()) == [("none", 0), ("short", 1), ("long", 604_800_000)]


def test_many_small_steps_do_not_drift() -> None:
    async def walk() -> None:
        for step in range(1, 1001):
            await asyncio.sleep(0.1)
            assert now() == step * 100

    run_virtual(walk())


def test_waiting_for_what_never_comes_is_an_error_and_not_a_hang() -> None:
    async def walk() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock, match=r"at 0 ms nothing is scheduled, .*Task-"):
        run_virtual(walk())


def test_a_coordinator_at_rest_leaves_nothing_scheduled() -> None:
    async def walk(cluster: Cluster) -> None:
        a = cluster.party()
        await cluster.stable(a)
        partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
        topics = [{"name": "fencepost", "partitions": [partition]}]
        await cluster.ask("TxnOffsetCommit", 2, group_id="other", producer_id=4, topics=topics)
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        run(walk)


def test_the_description() -> None:
    async def walk() -> None:
        target = InProcessTarget(Settings(min_session_timeout=1))
        with pytest.raises(TargetError, match="open the target first"):
            target.channel(Recorder(now))
        description = await target.open()
        assert (description.order, description.clock, description.topic) == (Order.TOTAL, "virtual", "fencepost")
        assert description.versions["JoinGroup"] == (0, 9)
        assert description.settings.min_session_timeout == 1 and description.can_restart
        channel = target.channel(Recorder(now))
        for api, version in (("JoinGroup", 10), ("Produce", 3)):
            with pytest.raises(TargetError, match=f"{api} version {version} cannot be sent"):
                channel.send(api, version, {})
        await channel.close()
        with pytest.raises(TargetError, match="closed"):
            channel.send("Heartbeat", 0, {})
        await target.close()

    run_virtual(walk())


def test_events_are_recorded_in_the_order_of_their_handling() -> None:
    events: list[Event] = []

    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(), cluster.party()
        await a.get_id()
        await b.get_id()
        join = a.join()
        await asyncio.sleep(D / 1000)
        b.join()  # at the very moment at which the first round is done: timers go first
        assert not parked(join)
        events.extend(cluster.recorder.events[4:])

    run(walk)
    assert [(e.kind, e.time, e.connection, e.of) for e in events] == [
        (Kind.REQUEST, 0, 0, None),
        (Kind.ANSWER, D, 0, 4),
        (Kind.REQUEST, D, 0, None),
    ]
    assert [e.sequence for e in events] == [4, 5, 6]


def test_a_dropped_request_is_answered_to_nobody_but_on_record() -> None:
    async def walk(cluster: Cluster) -> None:
        a, b = cluster.party(), cluster.party()
        await a.get_id()
        await b.get_id()
        dropped, kept = b.join(), a.join()
        dropped.drop()
        dropped.drop()
        assert dropped.answer.result() is None
        assert (await reply(kept))["leader"] == b.id
        assert dropped.request is not None
        about = [e for e in cluster.recorder.events if e.of == dropped.request.sequence]
        assert [(e.kind, e.api, e.time) for e in about] == [(Kind.FAULT, "drop", 0), (Kind.ANSWER, "JoinGroup", 2 * D)]
        kept.drop()
        assert cluster.recorder.events[-1].kind is Kind.ANSWER

    run(walk)


def test_a_restart_loses_what_is_parked_and_tells_every_live_recorder_once() -> None:
    async def walk(cluster: Cluster) -> None:
        other, gone = Recorder(now), Recorder(now)
        channels = [cluster.target.channel(recorder) for recorder in (other, other, gone)]
        await channels[2].close()
        a = cluster.party()
        join = a.join(version=3)
        await cluster.target.restart()
        assert join.answer.result() is None
        assert [len(r.events) for r in (cluster.recorder, other, gone)] == [2, 1, 0]
        assert (other.events[0].kind, other.events[0].api) == (Kind.FAULT, "restart")
        await asyncio.sleep(10)
        assert len(cluster.recorder.events) == 2

    run(walk)


def test_a_closed_channel_records_nothing_more() -> None:
    async def walk(cluster: Cluster) -> None:
        recorder = Recorder(now)
        channel = cluster.target.channel(recorder)
        body: dict[str, Any] = {"group_id": "g", "session_timeout_ms": 6_000, "protocol_type": "t"}
        join = channel.send("JoinGroup", 0, body | {"protocols": [{"name": "p", "metadata": b""}]})
        await channel.close()
        assert join.answer.result() is None
        await asyncio.sleep(5)
        assert [e.kind for e in recorder.events] == [Kind.REQUEST]
        assert await cluster.state() == "CompletingRebalance"

    run(walk)


def test_one_schedule_gives_one_trace() -> None:
    def trace() -> list[Event]:
        events: list[Event] = []

        async def walk(cluster: Cluster) -> None:
            parties = [cluster.party(instance=instance) for instance in (None, "i", None)]
            await cluster.stable(*parties)
            await asyncio.sleep(20)
            events.extend(cluster.recorder.events)

        run(walk)
        return events

    assert trace() == trace()


def test_a_named_function_can_be_put_out_of_action(monkeypatch: pytest.MonkeyPatch) -> None:
    def lone(session: int) -> Callable[[Cluster], Any]:
        async def walk(cluster: Cluster) -> None:
            a = cluster.party(session=session)
            await cluster.stable(a)
            await asyncio.sleep(session / 1000 - 1)
            assert a.beat() == 0
            await asyncio.sleep(session / 1000 - 1)
            assert a.beat() == 0

        return walk

    run(lone(6_000))
    monkeypatch.setattr(Rounds, "touch_session", lambda self, group, member: None)
    with pytest.raises(AssertionError):
        run(lone(600_000))


def test_the_clock_counts_milliseconds() -> None:
    loop = VirtualClock()
    try:
        loop.run_until_complete(asyncio.sleep(1.5))
        assert loop.milliseconds == 1500
    finally:
        loop.close()
