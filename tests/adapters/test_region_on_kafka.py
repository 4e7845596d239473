"""The region on a Kafka over the network: nothing is lost or comes twice, and a repair undone shows what it repairs."""

import asyncio
import uuid

import pytest

from fencepost.adapters.region.controller import RegionSettings
from fencepost.adapters.region.kafka_consumer import KafkaGroup
from fencepost.model.settings import Settings
from tests.support.controlled_regions import CONTROLLED
from tests.support.faulty_regions import ALL_FAULTS, mark_name
from tests.support.region_job import JobResult, Load, fill_topic, run_job
from tests.support.region_steps import IN_HAND, SCHEDULES, play_schedule
from tests.support.served_coordinator import serve_in_thread
from tests.targets.running import RunningTarget

# --- The region on a Kafka over the network: nothing is lost, nothing comes twice, through forced resets and a crash.

SETTINGS = RegionSettings(checkpoint_period=0.3, max_attempts=50, relaunch=0.2, tuple_seconds=0.0, max_poll_records=50)
SERVER = Settings(min_session_timeout=100, initial_rebalance_delay=200)


def run_on(bootstrap: str, load: Load) -> JobResult:
    host, _, port = bootstrap.rpartition(":")
    topic = f"region-{uuid.uuid4().hex[:8]}"
    ends = fill_topic(bootstrap, topic, load)
    group = KafkaGroup((host, int(port)), topic, topic, session_timeout=1_500, heartbeat_interval=100)
    return asyncio.run(run_job(group, load, ends, SETTINGS))


@pytest.mark.acceptance
def test_on_the_bundled_server() -> None:
    with serve_in_thread(SERVER) as bootstrap:
        result = run_on(bootstrap, Load(3_000, rebalances=2, crashes=1))
    assert result.faults() == ""
    assert result.crashes and result.resets >= 3


@pytest.mark.kafka4
def test_on_kafka(kafka4: RunningTarget) -> None:
    result = run_on(kafka4.bootstrap, Load(3_000, rebalances=2, crashes=1))
    assert result.faults() == ""
    assert result.crashes and result.resets >= 3


# --- The page's holes on a Kafka over the network: with a repair undone its schedule shows what the model predicts.

HOLES_SERVER = Settings(min_session_timeout=100, initial_rebalance_delay=50)
SHOWN = {**SCHEDULES, **CONTROLLED}
QUICK = ("contribute_once", "trust_old_map", "name_by_hash", "take_before_permit")
KAFKA_ALONE = {"begin_at_end", "skip_lost_records"}
"""The bundled server deletes no records, and its topics do not grow."""


@pytest.mark.parametrize("name", [mark_name(name, QUICK) for name in sorted(SHOWN.keys() - KAFKA_ALONE)])
def test_a_repair_closes_its_hole(name: str) -> None:
    schedule, predicted = SHOWN[name]
    with serve_in_thread(HOLES_SERVER) as bootstrap:
        assert asyncio.run(play_schedule(bootstrap, schedule)) == ""
        with ALL_FAULTS[name].activate():
            assert asyncio.run(play_schedule(bootstrap, schedule)) == predicted


@pytest.mark.acceptance
def test_a_message_in_hand_survives_a_reset() -> None:
    schedule, predicted = IN_HAND
    with serve_in_thread(HOLES_SERVER) as bootstrap:
        assert asyncio.run(play_schedule(bootstrap, schedule)) == predicted
