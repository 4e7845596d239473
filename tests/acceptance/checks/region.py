"""Thresholds of the consistent region on a real Kafka: what is lost and what comes twice through resets and crashes."""

import asyncio
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from fencepost.adapters.region.controller import RegionSettings
from fencepost.adapters.region.kafka_consumer import KafkaGroup
from tests.acceptance.checks.conformance import start_target
from tests.acceptance.framework import Check, Figure, at_least, exactly, without_threshold
from tests.support.controlled_regions import CONTROLLED
from tests.support.faulty_regions import ALL_FAULTS
from tests.support.region_job import JobResult, Load, fill_topic, run_job
from tests.support.region_steps import IN_HAND, SCHEDULES, play_schedule
from tests.targets.running import load_target

RECORDS = int(os.environ.get("FENCEPOST_RECORDS", "1000000"))
REBALANCES, CRASHES = 10, 2
SMALL = Load(60_000, rebalances=8, crashes=2)
"""What a region with a repair undone gets."""
SETTINGS = RegionSettings(checkpoint_period=1.0, max_attempts=20, relaunch=0.5, tuple_seconds=0.0)
TIMEOUT_S, SMALL_TIMEOUT_S = 3_000.0, 90.0
NOTHING = "nothing lost, nothing twice"
UNDONE = (
    "leave_out_seek_map",
    "merge_first_part",
    "write_while_pending",
    "trust_membership",
    "submit_late",
    "trust_old_map",
    "ignore_revocation",
    "keep_queue",
    "ignore_seek_map",
)


def run_region(bootstrap: str, load: Load, timeout: float) -> JobResult:
    """Fill a topic of its own, and run a region over it."""
    host, _, port = bootstrap.rpartition(":")
    topic = f"region-{uuid.uuid4().hex[:8]}"
    ends = fill_topic(bootstrap, topic, load)
    return asyncio.run(run_job(KafkaGroup((host, int(port)), topic, topic), load, ends, SETTINGS, timeout))


def check_volume(folder: Path) -> Iterator[Figure]:
    """Many records, rebalances that force resets, and crashes."""
    with start_target(load_target("kafka4", folder)) as address:
        result = run_region(
            address.removeprefix("kafka://"), Load(RECORDS, rebalances=REBALANCES, crashes=CRASHES), TIMEOUT_S
        )
    due, found = sum(result.ends.values()), result.downstream
    yield at_least("records", due, 1_000_000)
    yield exactly("records in the last complete checkpoint", sum(found.taken.values()), due)
    yield exactly("records that came twice", found.duplicates, 0)
    yield exactly("gaps", found.gaps, 0)
    yield at_least("resets of the region", result.resets, REBALANCES)
    yield exactly("crashes of operators", len(result.crashes), CRASHES)
    yield without_threshold("complete checkpoints", result.checkpoints)
    yield without_threshold("seconds", round(result.seconds, 1))


def check_repairs(folder: Path) -> Iterator[Figure]:
    """With one repair undone, what the model predicts: records lost, twice, or a region that never gets through."""
    with start_target(load_target("kafka4", folder)) as address:
        whole = run_region(address.removeprefix("kafka://"), SMALL, SMALL_TIMEOUT_S)
        yield exactly(
            "with all repairs", whole.faults() or "nothing lost, nothing twice", "nothing lost, nothing twice"
        )
        for name in UNDONE:
            with ALL_FAULTS[name].activate():
                broken = run_region(address.removeprefix("kafka://"), SMALL, SMALL_TIMEOUT_S)
            words = ALL_FAULTS[name].sentence.rstrip(".")
            yield without_threshold(words, broken.faults() or "not seen in this load")


def check_holes(folder: Path) -> Iterator[Figure]:
    """The schedules of the page's holes, step by step: with all repairs, and with the one undone that is for it."""
    with start_target(load_target("kafka4", folder)) as address:
        bootstrap = address.removeprefix("kafka://")
        for name, (schedule, predicted) in {**SCHEDULES, **CONTROLLED}.items():
            words = (schedule.__doc__ or name).partition(":")[0]
            whole = asyncio.run(play_schedule(bootstrap, schedule))
            yield exactly(f"{words}, repaired", whole or NOTHING, NOTHING)
            with ALL_FAULTS[name].activate():
                yield exactly(f"{words}, {name}", asyncio.run(play_schedule(bootstrap, schedule)), predicted)
        schedule, predicted = IN_HAND
        yield exactly(
            "H03, the reset before the submission", asyncio.run(play_schedule(bootstrap, schedule)), predicted
        )


CHECKS = (
    Check("volume", "A million records on Kafka 4, with ten forced resets and two crashes", check_volume),
    Check("holes", "The schedules of the page's holes on Kafka 4, with a repair and without it", check_holes),
    Check("repairs", "Regions with a repair undone on Kafka 4", check_repairs),
)
