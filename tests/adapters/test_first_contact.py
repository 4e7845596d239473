"""What the kit learns of a target before a run: told by the profile or the broker, measured, or not known."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace

import pytest

from fencepost.adapters.address import TargetError, parse_target
from fencepost.adapters.target import Description, SettingOrigin
from fencepost.adapters.wire.discovery import MAX_PROBED_METADATA, round_delay
from fencepost.adapters.wire.target import KafkaTarget
from fencepost.model.settings import SETTING_OF_CONFIG, Settings
from fencepost.model.wire.codec import DecodedRequest
from tests.support.fake_broker import DISCONNECT, KAFKA_CONFIGS, SILENCE, FakeBroker, ScriptedResponse, serve_brokers
from tests.support.odd_brokers import ODD_BROKERS
from tests.support.served_coordinator import serve_in_thread

pytestmark = pytest.mark.real_time

TIMEOUT_S = 40.0
TWO_PARTITIONS = {"offsets_partitions": 2}
SERVED = Settings(
    min_session_timeout=700,
    max_session_timeout=90_000,
    initial_rebalance_delay=300,
    max_group_size=5,
    max_offset_metadata=1_234,
    offsets_partitions=2,
)
MEASURED = {
    "min_session_timeout": 700,
    "max_session_timeout": 90_000,
    "initial_rebalance_delay": 300,
    "max_group_size": 5,
    "max_offset_metadata": 1_234,
}


def describe_served(
    *names: str, settings: Settings = SERVED, overrides: Mapping[str, int] = TWO_PARTITIONS
) -> Description:
    """The description of a server with these oddities, and no group of the kit's is left on it."""

    async def describe(bootstrap: str) -> Description:
        async with asyncio.timeout(TIMEOUT_S):
            target = KafkaTarget(parse_target(f"kafka://{bootstrap}"), overrides=overrides)
            try:
                return await target.open()
            finally:
                assert await list_groups(target) == []
                await target.close()

    with ExitStack() as stack:
        for name in names:
            stack.enter_context(ODD_BROKERS[name].activate())
        return asyncio.run(describe(stack.enter_context(serve_in_thread(settings))))


async def list_groups(target: KafkaTarget) -> list[str]:
    from fencepost.adapters.target import TraceBuilder

    channel = target.channel(TraceBuilder(lambda: 0))
    body = await channel.send("ListGroups", 4, {"states_filter": []}).response
    assert body is not None
    await channel.close()
    return [row["group_id"] for row in body["groups"]]


@pytest.mark.parametrize("name", ["hangs-up", "garbles", "tells-nothing"])
def test_what_a_broker_does_not_tell_is_measured(name: str) -> None:
    description = describe_served(name)
    assert description.settings == replace(SERVED, offsets_retention=604_800_000, retention_check_interval=600_000)
    for name in MEASURED:
        origin = SettingOrigin.ESTIMATE if name == "initial_rebalance_delay" else SettingOrigin.PROBE
        assert description.origin_of(name) is origin, name
    for name in ("offsets_retention", "retention_check_interval"):
        assert description.origin_of(name) is SettingOrigin.NOT_TOLD
    assert not description.knows("offsets_retention")
    assert any(remark.startswith("DescribeConfigs") for remark in description.remarks)


def test_a_delay_that_is_not_among_the_settings_is_measured() -> None:
    description = describe_served("tells-no-delay")
    assert description.settings.initial_rebalance_delay == 300
    assert description.origin_of("initial_rebalance_delay") is SettingOrigin.ESTIMATE
    assert not description.knows("initial_rebalance_delay")
    assert description.origin_of("max_group_size") is SettingOrigin.BROKER


def test_no_delay_and_no_limits_are_measured_as_such() -> None:
    free = Settings(
        min_session_timeout=0, max_session_timeout=2**31 - 1, initial_rebalance_delay=0, max_offset_metadata=10**6
    )
    description = describe_served("tells-nothing", settings=free)
    assert description.settings.initial_rebalance_delay == 0
    assert description.origin_of("initial_rebalance_delay") is SettingOrigin.ESTIMATE
    for name in ("min_session_timeout", "max_session_timeout", "max_group_size", "max_offset_metadata"):
        assert description.origin_of(name) is SettingOrigin.UNLIMITED, name
        assert not description.knows(name)
    assert description.settings.max_offset_metadata == MAX_PROBED_METADATA


def test_a_broker_that_never_parks_is_remarked_on() -> None:
    remark = "a JoinGroup during a rebalance is answered at once: the target does not park it"
    assert remark in describe_served("tells-nothing", "generation-alone").remarks
    assert remark not in describe_served("tells-nothing").remarks


def test_what_a_profile_tells_is_not_measured() -> None:
    told = {**MEASURED, "max_group_size": 3, **TWO_PARTITIONS}
    description = describe_served("tells-nothing", overrides=told)
    assert description.settings.max_group_size == 3
    assert {description.origin_of(name) for name in told} == {SettingOrigin.PROFILE}


# --- DescribeConfigs


async def open_on(broker: FakeBroker, overrides: Mapping[str, int], may_contradict: bool) -> Description:
    async with asyncio.timeout(TIMEOUT_S), serve_brokers(broker):
        target = KafkaTarget(
            ("127.0.0.1", broker.port), overrides=overrides, may_contradict=may_contradict, timeout=0.5, ready_timeout=1
        )
        try:
            return await target.open()
        finally:
            await target.close()


def describe(
    broker: FakeBroker, overrides: Mapping[str, int] = TWO_PARTITIONS, *, may_contradict: bool = False
) -> Description:
    return asyncio.run(open_on(broker, overrides, may_contradict))


def configs_handler(*configs: Mapping[str, str | None]) -> Callable[[DecodedRequest], ScriptedResponse]:
    return lambda _: {"results": [{"error_code": 0, "configs": list(configs)}]}


def test_settings_come_from_the_broker() -> None:
    broker = FakeBroker()
    broker.responses["DescribeConfigs"] = configs_handler(
        *(
            {"name": name, "value": str(value)}
            for name, value in zip(SETTING_OF_CONFIG, (10, 20, 0, 7, 9, 2, 30, 99), strict=True)
        ),
        {"name": "log.dirs", "value": "/x"},
    )
    description = describe(broker, {})
    assert description.settings == Settings(10, 20, 0, 7, 9, 120_000, 30, 99)
    question = next(r.body for r in broker.requests if r.api == "DescribeConfigs")["resources"][0]
    assert (question["resource_type"], question["resource_name"]) == (4, "0")


def test_a_profile_that_contradicts_the_broker_is_an_error_that_names_both() -> None:
    with pytest.raises(TargetError) as caught:
        describe(FakeBroker(), {**TWO_PARTITIONS, "max_group_size": 5})
    message = str(caught.value)
    assert message.partition(": ")[2] == (
        "the profile says [settings] max_group_size = 5, but the broker says 2147483647 (group.max.size); "
        "take the line out, or add override = true"
    )


def test_a_profile_may_override_the_broker() -> None:
    broker = FakeBroker()
    description = describe(broker, {**TWO_PARTITIONS, "max_group_size": 5}, may_contradict=True)
    assert description.settings.max_group_size == 5
    assert description.origin_of("max_group_size") is SettingOrigin.OVERRIDE
    question = next(r.body for r in broker.requests if r.api == "DescribeConfigs")["resources"][0]
    assert "group.max.size" not in question["configuration_keys"]


def test_a_profile_that_agrees_is_no_error() -> None:
    description = describe(FakeBroker(), {**TWO_PARTITIONS, "max_session_timeout": 1_800_000})
    assert description.origin_of("max_session_timeout") is SettingOrigin.PROFILE


def test_bounds_that_cross_each_other() -> None:
    with pytest.raises(TargetError, match=r"min_session_timeout = 90000 \(profile\) is above max_session_timeout = 10"):
        broker = FakeBroker()
        broker.responses["DescribeConfigs"] = configs_handler({"name": "group.max.session.timeout.ms", "value": "10"})
        describe(broker, {**TWO_PARTITIONS, "min_session_timeout": 90_000})


ALL_TOLD = {name: getattr(Settings(), name) for name in SETTING_OF_CONFIG.values()}


@pytest.mark.parametrize(
    ("response", "remark"),
    [
        (DISCONNECT, "DescribeConfigs: the target closed the connection"),
        (SILENCE, "DescribeConfigs: no answer to DescribeConfigs v1 within 0.5 s"),
        (b"HTTP/1.1 400 Bad", "DescribeConfigs: the answer is not Kafka's: it begins with b'HTTP/1.1 400 Bad'"),
        ({"results": [{"error_code": 29}]}, "DescribeConfigs: TOPIC_AUTHORIZATION_FAILED"),
        ({"results": []}, None),
        (
            {
                "results": [
                    {
                        "configs": [
                            {"name": "group.min.session.timeout.ms", "value": "9"},
                            {"name": "group.max.session.timeout.ms", "value": "8"},
                            {"name": "group.max.size", "value": "many"},
                            {"name": "group.initial.rebalance.delay.ms", "value": "-5"},
                        ]
                    }
                ]
            },
            "DescribeConfigs: a minimum session timeout of 9 above the maximum of 8",
        ),
    ],
)
def test_no_answer_to_describe_configs_ends_first_contact(response: ScriptedResponse, remark: str | None) -> None:
    broker = FakeBroker()
    broker.responses["DescribeConfigs"] = lambda _: response
    description = describe(broker, ALL_TOLD)
    assert description.remarks == ((remark,) if remark else ())
    assert {description.origin_of(name) for name in ALL_TOLD} == {SettingOrigin.PROFILE}


def test_a_broker_that_answers_no_probe_leaves_settings_untold() -> None:
    """Its JoinGroup is silent and its OffsetCommit hangs up; the run begins all the same."""
    broker = FakeBroker()
    broker.responses["DescribeConfigs"] = configs_handler(*KAFKA_CONFIGS[5:])
    description = describe(broker)
    assert not any(
        description.knows(name) for name in ("min_session_timeout", "initial_rebalance_delay", "max_offset_metadata")
    )
    assert description.settings == Settings(offsets_partitions=2)
    assert description.origin_of("initial_rebalance_delay") is SettingOrigin.NOT_TOLD


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(TargetError, match="unknown setting 'depth' in the profile"):
        describe(FakeBroker(), {"depth": 1})


@pytest.mark.parametrize(
    ("measured", "delay"),
    [(0.4, 0), (99.0, 0), (100.0, 100), (604.0, 600), (655.0, 600), (187.0, 150), (3_004.0, 3_000), (3_300.0, 3_000)],
)
def test_a_measured_delay_is_rounded_down(measured: float, delay: int) -> None:
    assert round_delay(measured) == delay
