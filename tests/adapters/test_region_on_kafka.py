"""The region on a Kafka over the network: nothing is lost, nothing comes twice, through forced resets and a crash."""

import asyncio
import uuid

import pytest

from fencepost.adapters.region.controller import RegionSettings
from fencepost.adapters.region.kafka_consumer import KafkaGroup
from fencepost.model.settings import Settings
from tests.support.region_job import JobResult, Load, fill_topic, run_job
from tests.support.served_coordinator import serve_in_thread
from tests.targets.running import RunningTarget

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
