"""The page's holes on a Kafka over the network: with a repair undone its schedule shows what the model predicts."""

import asyncio

import pytest

from fencepost.model.settings import Settings
from tests.support.controlled_regions import CONTROLLED
from tests.support.faulty_regions import ALL_FAULTS, mark_name
from tests.support.region_steps import IN_HAND, SCHEDULES, play_schedule
from tests.support.served_coordinator import serve_in_thread

SERVER = Settings(min_session_timeout=100, initial_rebalance_delay=50)
SHOWN = {**SCHEDULES, **CONTROLLED}
QUICK = ("contribute_once", "trust_old_map", "name_by_hash", "take_before_permit")
KAFKA_ALONE = {"begin_at_end", "skip_lost_records"}
"""The bundled server deletes no records, and its topics do not grow."""


@pytest.mark.parametrize("name", [mark_name(name, QUICK) for name in sorted(SHOWN.keys() - KAFKA_ALONE)])
def test_a_repair_closes_its_hole(name: str) -> None:
    schedule, predicted = SHOWN[name]
    with serve_in_thread(SERVER) as bootstrap:
        assert asyncio.run(play_schedule(bootstrap, schedule)) == ""
        with ALL_FAULTS[name].activate():
            assert asyncio.run(play_schedule(bootstrap, schedule)) == predicted


@pytest.mark.acceptance
def test_a_message_in_hand_survives_a_reset() -> None:
    schedule, predicted = IN_HAND
    with serve_in_thread(SERVER) as bootstrap:
        assert asyncio.run(play_schedule(bootstrap, schedule)) == predicted
