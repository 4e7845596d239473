"""Opening and restarting a target: its description, topic and coordinators, and errors for unusable addresses."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest

from fencepost.adapters.address import TargetError
from fencepost.adapters.target import Description, SettingOrigin
from fencepost.adapters.wire.cluster import NAMES
from fencepost.adapters.wire.connection import connection_limit
from fencepost.adapters.wire.discovery import SECURITY, probe_groups
from fencepost.adapters.wire.target import KafkaTarget
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import VERSIONS, DecodedRequest
from fencepost.model.wire.primitives import java_abs_hash
from fencepost.traces.events import Order
from tests.support.fake_broker import (
    DISCONNECT,
    SILENCE,
    TOPIC_ID,
    FakeBroker,
    ScriptedResponse,
    encode_frame,
    serve_brokers,
)

pytestmark = pytest.mark.real_time

TIMEOUT_S = 20.0
TWO_PARTITIONS = {"offsets_partitions": 2}


async def open_and_close(
    *brokers: FakeBroker,
    overrides: Mapping[str, int] = TWO_PARTITIONS,
    timeout: float = 10.0,
    ready_timeout: float = 1.0,
) -> Description:
    """Open a target on the brokers, and let go of it."""
    async with asyncio.timeout(TIMEOUT_S), serve_brokers(*brokers):
        address = ("127.0.0.1", brokers[0].port)
        target = KafkaTarget(address, overrides=overrides, timeout=timeout, ready_timeout=ready_timeout)
        try:
            return await target.open()
        finally:
            await target.close()


def describe_target(*brokers: FakeBroker, **options: Any) -> Description:
    return asyncio.run(open_and_close(*brokers, **options))


def refusal_of(*brokers: FakeBroker, **options: Any) -> str:
    """The complaint, with the port taken out."""
    with pytest.raises(TargetError) as caught:
        describe_target(*brokers, **options)
    message = str(caught.value)
    assert "\n" not in message
    return re.sub(r"127\.0\.0\.1:\d+", "HOST", message)


# --- a good broker


def test_open_describes_the_target() -> None:
    brokers = (FakeBroker(3), FakeBroker(5))
    description = describe_target(*brokers)
    assert description == Description(
        name=f"kafka://127.0.0.1:{brokers[0].port}",
        order=Order.INTERVALS,
        clock="wall",
        versions={api: VERSIONS[api] for api in VERSIONS if api in brokers[0].responses or api == "SyncGroup"},
        settings=Settings(offsets_partitions=2),
        topic="fencepost",
        topic_id=TOPIC_ID,
        brokers=(3, 5),
        can_restart=False,
        implementation={"cluster": "test"},
        origins=dict.fromkeys(NAMES, SettingOrigin.BROKER)
        | {"offsets_partitions": SettingOrigin.PROFILE, "new_member_timeout": SettingOrigin.CONSTANT},
    )


def test_versions_are_those_that_both_sides_have() -> None:
    broker = FakeBroker()
    broker.versions |= {"JoinGroup": (3, 99), "Heartbeat": (0, 2), "OffsetFetch": (50, 60)}
    versions = describe_target(broker).versions
    assert versions["JoinGroup"] == (3, VERSIONS["JoinGroup"][1])
    assert versions["Heartbeat"] == (0, 2)
    assert "OffsetFetch" not in versions


def test_without_ids_of_topics_no_version_goes_by_them() -> None:
    broker = FakeBroker()
    broker.versions |= {"Metadata": (0, 9), "OffsetFetch": (8, 10)}
    description = describe_target(broker)
    assert description.topic_id is None
    assert description.versions["OffsetFetch"] == (8, 9)
    broker = FakeBroker()
    broker.versions |= {"Metadata": (0, 9), "OffsetFetch": (10, 10)}
    assert "OffsetFetch" not in describe_target(broker).versions


@pytest.mark.parametrize("highest", range(VERSIONS["ApiVersions"][1]))
def test_an_older_api_versions_is_fallen_back_to(highest: int) -> None:
    broker = FakeBroker()
    broker.versions["ApiVersions"] = (0, highest)
    assert describe_target(broker).versions["ApiVersions"] == (0, highest)
    assert [r.version for r in broker.requests[:2]] == [VERSIONS["ApiVersions"][1], 0]


def test_a_broker_that_hangs_up_on_a_new_version_is_asked_for_the_oldest() -> None:
    broker = FakeBroker()
    response = broker.responses["ApiVersions"]
    broker.responses["ApiVersions"] = lambda r: DISCONNECT if r.version else response(r)
    assert describe_target(broker).versions


def test_a_malformed_refusal_of_api_versions_is_fallen_back_from() -> None:
    broker = FakeBroker()
    response = broker.responses["ApiVersions"]

    def refuse_malformed(request: DecodedRequest) -> ScriptedResponse:
        if request.version == 0:
            return response(request)
        body = request.correlation_id.to_bytes(4) + b"\0\x23\x01"  # error 35 and a count of one byte
        return len(body).to_bytes(4) + body

    broker.responses["ApiVersions"] = refuse_malformed
    assert describe_target(broker).versions


# --- topic and coordinators


def test_the_topic_is_created_and_awaited() -> None:
    broker = FakeBroker()
    leaders = iter([-1, 0])
    broker.responses["CreateTopics"] = lambda r: {"topics": [{"name": broker.topic, "error_code": 0}]}

    def metadata(request: DecodedRequest) -> ScriptedResponse:
        if not request.body["topics"]:
            return broker.metadata(request)
        leader = next(leaders)
        partitions = [{"partition_index": n, "leader_id": leader, "error_code": 0} for n in range(4)]
        return {"topics": [{"error_code": 0, "name": broker.topic, "partitions": partitions}]}

    broker.responses["Metadata"] = metadata
    assert describe_target(broker).topic == "fencepost"
    created = next(r.body for r in broker.requests if r.api == "CreateTopics")["topics"][0]
    assert (created["name"], created["num_partitions"]) == ("fencepost", 4)
    assert next(leaders, None) is None


def test_a_topic_is_created_once_the_one_of_its_name_is_deleted() -> None:
    """With a ZooKeeper, Kafka no longer shows a topic that it is deleting, and cannot create it again yet."""
    broker = FakeBroker()
    errors = iter([Error.TOPIC_ALREADY_EXISTS, Error.TOPIC_ALREADY_EXISTS, Error.NONE])
    made = []

    def create(request: DecodedRequest) -> ScriptedResponse:
        made.append(next(errors))
        return {"topics": [{"name": broker.topic, "error_code": made[-1]}]}

    def metadata(request: DecodedRequest) -> ScriptedResponse:
        if not request.body["topics"] or Error.NONE in made:
            return broker.metadata(request)
        return {"topics": [{"error_code": Error.UNKNOWN_TOPIC_OR_PARTITION, "name": broker.topic, "partitions": []}]}

    broker.responses |= {"CreateTopics": create, "Metadata": metadata}
    assert describe_target(broker).topic == "fencepost"
    assert len(made) == 3


def test_a_topic_is_created_before_metadata_may_do_so() -> None:
    """A broker that creates a topic of one partition whenever somebody asks for it by its name."""
    broker = FakeBroker()
    everything, counts = broker.metadata, dict[str, int]()

    def create(request: DecodedRequest) -> ScriptedResponse:
        counts.setdefault("fencepost", request.body["topics"][0]["num_partitions"])
        return {"topics": [{"name": "fencepost", "error_code": Error.NONE}]}

    def metadata(request: DecodedRequest) -> ScriptedResponse:
        for each in request.body["topics"] or ():
            counts.setdefault(each["name"], 1)
        rows = [
            {
                "error_code": 0,
                "name": name,
                "partitions": [{"partition_index": n, "leader_id": 0} for n in range(count)],
            }
            for name, count in counts.items()
        ]
        return {**everything(request), "topics": rows}  # type: ignore[dict-item]

    broker.responses |= {"CreateTopics": create, "Metadata": metadata}
    assert describe_target(broker).topic == "fencepost"
    assert counts == {"fencepost": 4}


def test_a_topic_that_cannot_be_created() -> None:
    broker = FakeBroker()
    everything = broker.metadata
    broker.responses["Metadata"] = lambda request: {
        **everything(request),  # type: ignore[dict-item]
        "topics": [{"name": "fencepost", "error_code": Error.UNKNOWN_TOPIC_OR_PARTITION}],
    }
    broker.responses["CreateTopics"] = lambda r: {
        "topics": [{"name": "fencepost", "error_code": Error.TOPIC_AUTHORIZATION_FAILED, "error_message": "no"}]
    }
    assert refusal_of(broker) == (
        "kafka://HOST: cannot create topic 'fencepost': error 29 no; create it with 4 partitions by hand"
    )


def test_a_topic_with_too_few_partitions() -> None:
    broker = FakeBroker()
    part = {"partition_index": 0, "leader_id": 0, "error_code": 0}
    everything = broker.metadata
    broker.responses["Metadata"] = lambda r: {
        **everything(r),  # type: ignore[dict-item]
        "topics": [{"error_code": 0, "name": "fencepost", "partitions": [part]}],
    }
    assert refusal_of(broker) == (
        "kafka://HOST: topic 'fencepost' has 1 partitions, the kit needs 4; delete it or add partitions"
    )


def test_a_topic_without_leaders() -> None:
    broker = FakeBroker()
    everything = broker.metadata
    broker.responses["Metadata"] = lambda r: {**everything(r), "topics": [{"error_code": 5, "name": "fencepost"}]}  # type: ignore[dict-item]
    assert refusal_of(broker, ready_timeout=0.0) == (
        "kafka://HOST: topic 'fencepost' has no leaders after 0 s (error 5); create it with 4 partitions by hand"
    )


def test_coordinators_are_awaited() -> None:
    broker = FakeBroker()
    errors = iter([15, 16, 0, 0, 0])
    loading = iter([14, 0, 0])
    broker.responses["FindCoordinator"] = lambda _: broker.coordinator_response(broker, error=next(errors))
    broker.responses["OffsetFetch"] = lambda _: {"error_code": next(loading), "topics": []}
    describe_target(broker)
    assert next(errors, None) is next(loading, None) is None


def test_a_coordinator_that_never_comes() -> None:
    broker = FakeBroker()
    broker.responses["FindCoordinator"] = lambda _: broker.coordinator_response(
        broker, error=Error.COORDINATOR_NOT_AVAILABLE
    )
    assert re.fullmatch(
        r"kafka://HOST: the coordinator of group 'fencepost-probe-\d' is not ready after 0 s \(error 15\); "
        r"is the broker still starting\?",
        refusal_of(broker, ready_timeout=0.0),
    )


def test_probe_groups_cover_every_partition() -> None:
    assert sorted(java_abs_hash(group) % 50 for group in probe_groups(50)) == list(range(50))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", 0),
        ("\U0001f600", 1772899),
    ],
)
def test_javas_hash(text: str, value: int) -> None:
    assert java_abs_hash(text) == value


# --- not a broker


def raw_broker(reply: bytes | None) -> FakeBroker:
    broker = FakeBroker()
    broker.responses["ApiVersions"] = lambda _: reply
    return broker


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (b"\x15\x03\x03\0\x02\x02\x46", "speaks TLS; write kafka+ssl://HOST"),
        (
            b"HTTP/1.1 400 Bad Request\r\n",
            "speaks HTTP, not Kafka's protocol; check the port",
        ),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "speaks SSH, not Kafka's protocol; check the port"),
        (
            b"\xff\xff\xff\xfe nonsense",
            "the answer is not Kafka's: it begins with b'\\xff\\xff\\xff\\xfe nonsense'; check the address",
        ),
        (DISCONNECT, "the target closed the connection; it gave no reason; look into its log"),
        (
            b"\0\0\1\0\0",
            "the target closed the connection after 5 bytes of the answer; it gave no reason; look into its log",
        ),
        (
            b"\0\0\0\x04ABCD",
            "the answer to ApiVersions makes no sense (no list of APIs); is this a Kafka broker?",
        ),
    ],
)
def test_listener_that_is_no_kafka_broker(reply: bytes, complaint: str) -> None:
    assert refusal_of(raw_broker(reply)) == f"kafka://HOST: {complaint}"


def test_a_silent_port() -> None:
    assert refusal_of(raw_broker(SILENCE), timeout=0.05) == (
        "kafka://HOST: no answer to ApiVersions v4 within 0.05 s; is this a Kafka broker, and is it well?"
    )


def test_an_error_to_api_versions() -> None:
    broker = FakeBroker()
    broker.responses["ApiVersions"] = lambda _: {"error_code": Error.UNSUPPORTED_VERSION, "api_keys": []}
    assert refusal_of(broker) == (
        "kafka://HOST: the answer to ApiVersions makes no sense (error 35); is this a Kafka broker?"
    )


def test_a_broker_without_groups() -> None:
    broker = FakeBroker()
    del broker.responses["JoinGroup"], broker.responses["Heartbeat"]
    assert refusal_of(broker) == ("kafka://HOST: does not offer JoinGroup, Heartbeat in a version that Fencepost knows")


def test_a_broker_that_hangs_up_later() -> None:
    broker = FakeBroker()
    broker.responses["Metadata"] = lambda _: DISCONNECT
    assert refusal_of(broker) == (
        "kafka://HOST: the target closed the connection; it gave no reason; look into its log"
    )


def test_a_broker_that_wants_sasl_says_so_itself() -> None:
    """It hangs up on what comes before the handshake, and names its mechanisms to one that it does not have."""
    broker = FakeBroker()
    broker.responses["Metadata"] = lambda _: DISCONNECT
    broker.sasl_mechanisms = ("PLAIN", "SCRAM-SHA-256")
    assert refusal_of(broker) == f"kafka://HOST: wants SASL (PLAIN, SCRAM-SHA-256); {SECURITY}"


def test_a_cluster_without_brokers() -> None:
    broker = FakeBroker()
    broker.responses["Metadata"] = lambda _: {"brokers": [], "topics": []}
    assert refusal_of(broker) == "kafka://HOST: Metadata names no broker; is the cluster still starting?"


def test_an_advertised_address_that_cannot_be_reached() -> None:
    broker = FakeBroker()
    broker.responses["Metadata"] = lambda _: {"brokers": [{"node_id": 7, "host": "127.0.0.1", "port": 1}]}
    assert refusal_of(broker) == (
        "kafka://HOST: broker 7 advertises kafka://HOST, which this machine cannot reach (connection refused); "
        "set its advertised.listeners"
    )


@pytest.mark.parametrize(
    ("host", "complaint"),
    [
        ("127.0.0.1", "kafka://127.0.0.1:1: connection refused; is the broker running?"),
        ("::1", "kafka://[::1]:1: "),
        ("no-such-host.invalid", "kafka://no-such-host.invalid:1: no such host; check the host name"),
    ],
)
async def test_nobody_listens(host: str, complaint: str) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        with pytest.raises(TargetError) as caught:
            await KafkaTarget((host, 1)).open()
        assert str(caught.value).startswith(complaint)


def test_the_limit_of_open_files_leaves_room() -> None:
    assert 0 < connection_limit() <= 16_384


def test_frames_of_the_test_broker_are_whole() -> None:
    """The brokers above would prove nothing if their answers were misread."""
    request = DecodedRequest("Heartbeat", 12, 3, 7, None, {}, ())
    assert encode_frame(request, {"error_code": Error.REBALANCE_IN_PROGRESS})[4:] == b"\0\0\0\x07\0\0\0\0\0\x1b"
