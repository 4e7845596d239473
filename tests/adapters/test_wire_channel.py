"""Requests over the wire: their recorded events, order, destinations and connections."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fencepost.adapters.address import TargetError
from fencepost.adapters.target import SendOptions, TraceBuilder
from fencepost.adapters.wire import connection
from fencepost.adapters.wire.channel import WireChannel
from fencepost.adapters.wire.target import KafkaTarget
from fencepost.model.errors import Error
from fencepost.model.wire.codec import DecodedRequest, UnencodableError
from fencepost.traces.events import Body, Event, Kind
from tests.support.fake_broker import DISCONNECT, SILENCE, FakeBroker, encode_frame, serve_brokers

pytestmark = pytest.mark.real_time

HEARTBEAT_BODY = {"group_id": "g", "generation_id": 1, "member_id": "m"}
JOIN_BODY = {"group_id": "g", "session_timeout_ms": 1000, "protocol_type": "consumer"}
TIMEOUT_S = 20.0


@asynccontextmanager
async def open_target(*brokers: FakeBroker) -> AsyncIterator[tuple[KafkaTarget, WireChannel, TraceBuilder]]:
    """An open target with one channel; whatever happens is over after LIMIT seconds."""
    async with asyncio.timeout(TIMEOUT_S), serve_brokers(*brokers):
        target = KafkaTarget(("127.0.0.1", brokers[0].port), ready_timeout=1.0, overrides={"offsets_partitions": 1})
        await target.open()
        for broker in brokers:
            broker.requests.clear()
        recorder = TraceBuilder(lambda: 0)
        try:
            yield target, target.channel(recorder), recorder
        finally:
            await target.close()
            assert asyncio.all_tasks() - {asyncio.current_task()} <= server_tasks()


def server_tasks() -> set[asyncio.Task[Any]]:
    """The tasks of the test's own servers."""
    return {task for task in asyncio.all_tasks() if "Broker.serve" in repr(task.get_coro())}


def event_kinds(recorder: TraceBuilder) -> list[tuple[str, str, int | None]]:
    return [(event.kind.value, event.api, event.of) for event in recorder.events]


async def test_a_request_and_its_answer_are_recorded() -> None:
    broker = FakeBroker()
    async with open_target(broker) as (_, channel, recorder):
        exchange = channel.send("Heartbeat", 3, HEARTBEAT_BODY, SendOptions(member="A", client_id="me"))
        body = await exchange.response
        assert body == {"throttle_time_ms": 0, "error_code": 0}
        request, response = recorder.events
        assert exchange.request is request
        connection = request.connection
        assert request == Event(0, 0, connection, "A", Kind.REQUEST, "Heartbeat", 3, HEARTBEAT_BODY)
        assert response == Event(1, 0, connection, "A", Kind.RESPONSE, "Heartbeat", 3, body, of=0)
        assert broker.requests[0].client_id == "me"


async def test_each_request_in_flight_has_its_own_connection_and_idle_ones_are_used_again() -> None:
    broker = FakeBroker()
    async with open_target(broker) as (_, channel, recorder):
        channel.send("JoinGroup", 5, JOIN_BODY)
        await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response
        await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response
        join, first, _, second, _ = recorder.events
        assert join.connection != first.connection == second.connection


async def test_requests_leave_in_the_order_they_were_sent() -> None:
    broker = FakeBroker()
    async with open_target(broker) as (_, channel, recorder):
        sent = [channel.send("Heartbeat", 3, HEARTBEAT_BODY, SendOptions(member=str(n))) for n in range(20)]
        for exchange in sent:
            await exchange.response
        members = [event.member for event in recorder.events if event.kind is Kind.REQUEST]
        assert members == [str(n) for n in range(20)]


async def test_a_waiting_request_is_recorded_when_it_is_written_and_not_before() -> None:
    async with open_target(FakeBroker()) as (_, channel, recorder):
        first, second = channel.send("JoinGroup", 5, JOIN_BODY), channel.send("Heartbeat", 3, HEARTBEAT_BODY)
        assert first.request is not None  # an idle connection was there
        assert second.request is None
        await second.response
        assert second.request is recorder.events[1]


async def test_wire_findings_are_part_of_the_answer() -> None:
    def surplus(request: DecodedRequest) -> bytes:
        frame = encode_frame(request, {"error_code": 0})[4:] + b"!!"
        return len(frame).to_bytes(4) + frame

    broker = FakeBroker()
    broker.responses["Heartbeat"] = surplus
    async with open_target(broker) as (_, channel, recorder):
        body = await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response
        assert body is not None and body["_findings"] == ["2 surplus bytes"]
        assert recorder.events[-1].body == body


async def test_a_wrong_correlation_id_is_a_finding() -> None:
    broker = FakeBroker()
    broker.responses["Heartbeat"] = lambda r: encode_frame(
        DecodedRequest(r.api, r.key, r.version, 7_000_000, None, {}, ()), {"error_code": 0}
    )
    async with open_target(broker) as (_, channel, _):
        body = await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response
        assert body is not None
        assert [finding.partition(" instead")[0] for finding in body["_findings"]] == ["correlation id 7000000"]


@pytest.mark.parametrize(
    ("reply", "reason", "head"),
    [
        (DISCONNECT, "the target closed the connection", None),
        (b"\0\0\0\x09abc", "the target closed the connection after 7 bytes of the answer", b"\0\0\0\x09abc"),
        (b"HTTP/1.1 400\r\n", "the answer is not Kafka's: it begins with b'HTTP/1.1 400\\r\\n'", b"HTTP/1.1 400\r\n"),
    ],
)
async def test_a_connection_without_an_answer_is_a_fault(reply: bytes, reason: str, head: bytes | None) -> None:
    broker = FakeBroker()
    broker.responses["Heartbeat"] = lambda _: reply
    async with open_target(broker) as (_, channel, recorder):
        assert await channel.send("Heartbeat", 3, HEARTBEAT_BODY, SendOptions(member="B")).response is None
        fault = recorder.events[-1]
        assert (fault.kind, fault.api, fault.of, fault.member) == (Kind.FAULT, "closed", 0, "B")
        assert fault.body == {"reason": reason} | ({"head": head} if head else {})


async def test_drop_closes_the_connection_and_the_answer_is_none() -> None:
    broker = FakeBroker()
    async with open_target(broker) as (_, channel, recorder):
        exchange = channel.send("JoinGroup", 5, JOIN_BODY)
        exchange.drop()
        exchange.drop()
        assert await exchange.response is None
        assert event_kinds(recorder) == [("request", "JoinGroup", None), ("fault", "drop", 0)]
        await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response
        assert recorder.events[2].connection != recorder.events[0].connection


async def test_a_request_that_waits_for_its_connection_is_sent_before_it_is_dropped() -> None:
    broker = FakeBroker()
    async with open_target(broker) as (_, channel, recorder):
        channel.send("JoinGroup", 5, JOIN_BODY)
        exchange = channel.send("JoinGroup", 5, JOIN_BODY | {"member_id": "late"})
        exchange.drop()
        assert event_kinds(recorder) == [("request", "JoinGroup", None)]
        assert await exchange.response is None
        assert event_kinds(recorder)[1:] == [("request", "JoinGroup", None), ("fault", "drop", 1)]
        await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response
        arrived = [request.body["member_id"] for request in broker.requests if request.api == "JoinGroup"]
        assert sorted(arrived) == ["", "late"]


async def test_drop_after_the_answer_does_nothing() -> None:
    async with open_target(FakeBroker()) as (_, channel, recorder):
        exchange = channel.send("Heartbeat", 3, HEARTBEAT_BODY)
        await exchange.response
        exchange.drop()
        assert [event.kind for event in recorder.events] == [Kind.REQUEST, Kind.RESPONSE]


async def test_close_cancels_what_is_in_flight_and_records_nothing() -> None:
    async with open_target(FakeBroker()) as (_, channel, recorder):
        in_flight = [channel.send("JoinGroup", 5, JOIN_BODY) for _ in range(3)]
        await channel.close()
        assert all(exchange.response.cancelled() for exchange in in_flight)
        assert event_kinds(recorder) == [("request", "JoinGroup", None)]
        with pytest.raises(RuntimeError, match="closed"):
            channel.send("Heartbeat", 3, HEARTBEAT_BODY)


async def test_what_cannot_be_written_is_refused_at_once() -> None:
    async with open_target(FakeBroker()) as (_, channel, recorder):
        with pytest.raises(UnencodableError):
            channel.send("Heartbeat", 3, {"nonsense": 1})
        with pytest.raises(ValueError, match=r"the target has no broker 9; it has \[0\]"):
            channel.send("Heartbeat", 3, HEARTBEAT_BODY, SendOptions(broker=9))
        assert recorder.events == ()


# --- which broker


def requested_nodes(brokers: tuple[FakeBroker, ...], api: str) -> list[int]:
    return [broker.node for broker in brokers for request in broker.requests if request.api == api]


@pytest.mark.parametrize(
    ("api", "version", "body", "key"),
    [
        ("Heartbeat", 3, HEARTBEAT_BODY, ("g", 0)),
        ("OffsetFetch", 5, {"group_id": "g", "topics": []}, ("g", 0)),
        ("OffsetFetch", 8, {"groups": [{"group_id": "g", "topics": []}]}, ("g", 0)),
        ("DescribeGroups", 0, {"groups": ["g"]}, ("g", 0)),
        ("DeleteGroups", 0, {"groups_names": ["g"]}, ("g", 0)),
        ("TxnOffsetCommit", 0, {"transactional_id": "t", "group_id": "g", "topics": []}, ("g", 0)),
        ("EndTxn", 0, {"transactional_id": "t"}, ("t", 1)),
        ("AddOffsetsToTxn", 0, {"transactional_id": "t", "group_id": "g"}, ("t", 1)),
        ("InitProducerId", 0, {"transactional_id": "t"}, ("t", 1)),
    ],
)
async def test_a_request_goes_to_its_coordinator(api: str, version: int, body: Body, key: tuple[str, int]) -> None:
    brokers = (FakeBroker(0), FakeBroker(1))
    for broker in brokers:
        broker.responses["FindCoordinator"] = lambda _: brokers[0].coordinator_response(brokers[1])
    async with open_target(*brokers) as (_, channel, _):
        for _ in range(2):
            await channel.send(api, version, body).response
        assert requested_nodes(brokers, api) == [1, 1]
        asked = [r.body for r in brokers[0].requests if r.api == "FindCoordinator"]
        assert [(question["key"], question["key_type"]) for question in asked] == [key] * len(asked)


@pytest.mark.parametrize(("api", "body"), [("ListGroups", {}), ("InitProducerId", {"transactional_id": None})])
async def test_a_request_without_a_coordinator_goes_to_the_first_broker(api: str, body: Mapping[str, Any]) -> None:
    brokers = (FakeBroker(0), FakeBroker(1))
    async with open_target(*brokers) as (_, channel, _):
        await channel.send(api, 0, body).response
        assert requested_nodes(brokers, api) == [0]
        await channel.send(api, 0, body, SendOptions(broker=1)).response
        assert requested_nodes(brokers, api) == [0, 1]


async def test_a_coordinator_that_moved_is_looked_up_again() -> None:
    brokers = (FakeBroker(0), FakeBroker(1))
    home = brokers[1]
    for broker in brokers:
        broker.responses["FindCoordinator"] = lambda _: brokers[0].coordinator_response(home)
        broker.responses["Heartbeat"] = lambda _, here=broker: {"error_code": 0 if here is home else 16}  # type: ignore[misc]
    async with open_target(*brokers) as (_, channel, _):
        assert (await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response or {})["error_code"] == Error.NONE
        home = brokers[0]
        assert (await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response or {})[
            "error_code"
        ] == Error.NOT_COORDINATOR
        assert (await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response or {})["error_code"] == Error.NONE
        assert requested_nodes(brokers, "Heartbeat") == [0, 1, 1]


async def test_a_coordinator_that_hung_up_is_looked_up_again() -> None:
    brokers = (FakeBroker(0), FakeBroker(1))
    home = brokers[1]
    for broker in brokers:
        broker.responses["FindCoordinator"] = lambda _: brokers[0].coordinator_response(home)
    brokers[1].responses["Heartbeat"] = lambda _: DISCONNECT
    async with open_target(*brokers) as (_, channel, _):
        assert await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response is None
        home = brokers[0]
        assert await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response is not None


async def test_where_no_coordinator_is_named_the_first_broker_says_so_itself() -> None:
    brokers = (FakeBroker(0), FakeBroker(1))
    async with open_target(*brokers) as (_, channel, _):
        for broker in brokers:
            broker.responses["FindCoordinator"] = lambda _: brokers[0].coordinator_response(
                brokers[0], error=Error.COORDINATOR_NOT_AVAILABLE
            )
            broker.responses["Heartbeat"] = lambda _: {"error_code": Error.INVALID_GROUP_ID}
        body = await channel.send("Heartbeat", 3, HEARTBEAT_BODY | {"group_id": ""}).response
        assert body is not None and body["error_code"] == Error.INVALID_GROUP_ID


# --- limits


async def test_a_target_that_is_gone_is_a_fault_and_not_an_error() -> None:
    broker = FakeBroker()
    async with asyncio.timeout(TIMEOUT_S):
        async with serve_brokers(broker):
            target = KafkaTarget(("127.0.0.1", broker.port), overrides={"offsets_partitions": 1})
            await target.open()
            assert await target.is_alive()
        recorder = TraceBuilder(lambda: 0)
        channel = target.channel(recorder)
        # The first one may still meet a connection that is just being closed.
        assert await channel.send("Heartbeat", 3, HEARTBEAT_BODY, SendOptions(member="A")).response is None
        exchange = channel.send("Heartbeat", 3, HEARTBEAT_BODY, SendOptions(member="A"))
        assert await exchange.response is None and exchange.request is None
        fault = recorder.events[-1]
        assert (fault.kind, fault.api, fault.of) == (Kind.FAULT, "unreachable", None)
        assert fault.body == {"api": "Heartbeat", "reason": "connection refused"}
        assert not await target.is_alive()
        await target.close()


async def test_connections_are_made_beforehand() -> None:
    """As many as asked for, and only those that are missing; a schedule then needs no new one."""

    broker = FakeBroker()
    async with asyncio.timeout(TIMEOUT_S), serve_brokers(broker):
        target = KafkaTarget(("127.0.0.1", broker.port), overrides={"offsets_partitions": 1})
        await target.open()
        for wanted in (6, 6, 2):
            await target.open_idle_connections(wanted)
            assert target._pool.idle_count(("127.0.0.1", broker.port)) == 6
        channel = target.channel(TraceBuilder(lambda: 0))
        assert channel.send("Heartbeat", 3, HEARTBEAT_BODY, SendOptions(member="A")).request is not None
        await target.close()


async def test_too_many_connections_are_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.adapters.wire.target.connection_limit", lambda: 3)

    async with open_target(FakeBroker()) as (_, channel, _):
        joins = [channel.send("JoinGroup", 5, JOIN_BODY) for _ in range(4)]
        with pytest.raises(TargetError, match=r"^3 connections are open .* \(ulimit -n\)"):
            await joins[3].response
        assert not any(join.response.done() for join in joins[:3])


async def test_an_idle_connection_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.adapters.wire.target.connection_limit", lambda: 2)

    brokers = (FakeBroker(0), FakeBroker(1))
    async with open_target(*brokers) as (_, channel, _):
        channel.send("JoinGroup", 5, JOIN_BODY, SendOptions(broker=1))
        waiting = channel.send("JoinGroup", 5, JOIN_BODY, SendOptions(broker=1))
        while waiting.request is None:
            await asyncio.sleep(0)
        assert not waiting.response.done()


async def test_an_old_idle_connection_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_target(FakeBroker()) as (_, channel, recorder):
        await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response
        monkeypatch.setattr(connection, "MAX_IDLE_S", 0.0)
        await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response
        assert recorder.events[0].connection != recorder.events[2].connection


async def test_bytes_that_nobody_asked_for_end_an_idle_connection() -> None:
    broker = FakeBroker()
    broker.responses["Heartbeat"] = lambda r: SILENCE
    async with open_target(broker) as (_, channel, recorder):
        exchange = channel.send("Heartbeat", 3, HEARTBEAT_BODY)
        while not broker.requests:
            await asyncio.sleep(0)
        once = encode_frame(broker.requests[0], {"error_code": 0})
        assert broker.asked_on is not None
        broker.asked_on.write(once + once)
        assert await exchange.response is not None
        broker.responses["Heartbeat"] = lambda r: {"error_code": 0}
        assert await channel.send("Heartbeat", 3, HEARTBEAT_BODY).response is not None
        assert recorder.events[0].connection != recorder.events[2].connection


async def test_hundreds_of_groups_at_once() -> None:
    broker = FakeBroker()
    parked = 2
    async with open_target(broker) as (target, _, _):
        recorders = [TraceBuilder(lambda: 0) for _ in range(200)]
        channels = [target.channel(recorder) for recorder in recorders]
        for channel in channels:
            for _ in range(parked):
                channel.send("JoinGroup", 5, JOIN_BODY)
        beats = [channel.send("Heartbeat", 3, HEARTBEAT_BODY) for channel in channels]
        for beat in beats:
            assert await beat.response is not None
        connections = [e.connection for r in recorders for e in r.events if e.api == "JoinGroup"]
        assert len(connections) == len(set(connections)) == 200 * parked
