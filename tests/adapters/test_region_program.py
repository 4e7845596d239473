"""The bundled region on virtual time: nothing is lost, nothing comes twice downstream, whatever fault happens."""

import asyncio
import random
from dataclasses import dataclass

import pytest

from fencepost.adapters.region.controller import RegionMode, RegionProgram, RegionSettings
from fencepost.adapters.region.kafka import Downstream, MemoryKafka, Message
from fencepost.adapters.region.operator import QUEUED_POLLS, OperatorState, RegionOperator
from fencepost.adapters.virtual_clock import run_virtual
from tests.support.faulty_regions import FAULTS

NAMES = ("A", "B", "C")
SETTINGS = RegionSettings(max_poll_records=5, max_attempts=50)
SEEDS = 20
ROUNDS = 8
RESTARTED = 65
"""A seed with a restart of the control plane after one of three has been reset."""


@dataclass(frozen=True, slots=True)
class Job:
    """A region and its Kafka."""

    region: RegionProgram
    kafka: MemoryKafka


def new_job(partitions: int = 3, records: int = 40, settings: RegionSettings = SETTINGS) -> Job:
    kafka = MemoryKafka({("t", number): records for number in range(partitions)}, 3.0)
    return Job(RegionProgram(NAMES, kafka.make_consumer, settings), kafka)


def cause_trouble(job: Job, chance: random.Random) -> None:
    """One fault, and a few more records."""
    region, kafka = job.region, job.kafka
    for partition in kafka.ends:
        kafka.ends[partition] += chance.randrange(12)
    match chance.randrange(6):
        case 0:
            region.crash(chance.choice(NAMES))
        case 1:
            region.request_reset()
        case 2 if kafka.members:
            kafka.expel(chance.choice(kafka.members))
        case 3:
            kafka.rebalance()
        case 4 if len(kafka.ends) < 6:
            kafka.add_partition(("t", len(kafka.ends)))
        case 5:
            asyncio.ensure_future(region.control.restart())  # noqa: RUF006


async def play(seed: int, job: Job) -> Job:
    """Trouble at random moments, then calm until all is through and in a checkpoint, or time is over."""
    chance = random.Random(seed)
    running = asyncio.create_task(job.region.run())
    try:
        for _ in range(ROUNDS):
            await asyncio.sleep(chance.uniform(0.0, 2.5))
            cause_trouble(job, chance)
        for _ in range(60):
            await asyncio.sleep(1.0)
            if running.done() or faults_of(job.region.last.downstream, job.kafka) == "":
                break
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return job


def faults_of(downstream: Downstream, kafka: MemoryKafka) -> str:
    """The losses and duplicates downstream in words; empty if there are none."""
    if downstream.duplicates or downstream.gaps:
        return f"{downstream.duplicates} came twice, {downstream.gaps} gaps"
    due = {partition: end for partition, end in kafka.ends.items() if end}
    return "" if downstream.taken == due else f"{sum(downstream.taken.values())} of {sum(due.values())} came"


def run_seed(seed: int) -> str:
    job = run_virtual(play(seed, new_job()))
    return faults_of(job.region.last.downstream, job.kafka)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_lost_and_nothing_comes_twice(seed: int) -> None:
    assert run_seed(seed) == ""


def forget_attempts(program: pytest.MonkeyPatch) -> None:
    """REGION-H12: each request sets the count of attempts back."""
    whole = RegionProgram.request_reset

    def request(self: RegionProgram) -> None:
        self.attempts = 0
        whole(self)

    program.setattr(RegionProgram, "request_reset", request)


@pytest.mark.parametrize("name", ["leave_out_seek_map", "merge_first_part", "keep_queue", "ignore_seek_map"])
def test_a_region_without_one_of_its_rules_is_seen(name: str) -> None:
    with FAULTS[name].activate():
        assert any(run_seed(seed) for seed in range(SEEDS))


def test_a_region_without_requests_for_resets_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RegionOperator, "_await_reset", lambda self: None)
    assert any(run_seed(seed) for seed in range(SEEDS))


def test_an_operator_that_was_reset_contributes_again() -> None:
    assert run_seed(RESTARTED) == ""
    with FAULTS["contribute_once"].activate():
        assert run_seed(RESTARTED) != ""


async def insist() -> RegionProgram:
    region = new_job(settings=RegionSettings(max_attempts=5)).region
    running = asyncio.create_task(region.run())
    for _ in range(100):
        region.request_reset()
        await asyncio.sleep(0.05)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return region


def test_an_endless_series_of_resets_fails_the_region(monkeypatch: pytest.MonkeyPatch) -> None:
    region = run_virtual(insist())
    assert (region.mode, region.resets) == (RegionMode.FAILED, 5)
    forget_attempts(monkeypatch)
    assert run_virtual(insist()).resets > 2 * region.resets


def test_the_queue_holds_a_hundred_polls() -> None:
    async def fill() -> RegionOperator:
        region = new_job(1, 4 * QUEUED_POLLS, RegionSettings(max_poll_records=1, checkpoint_period=60.0)).region
        running = asyncio.create_task(region.run())
        await asyncio.sleep(1.0)
        await region._close(NAMES)
        await asyncio.sleep(15.0)
        fullest = max((one.operator for one in region.operators.values()), key=lambda one: one.longest_queue)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return fullest

    fullest = run_virtual(fill())
    assert fullest.longest_queue == QUEUED_POLLS
    assert fullest.state is OperatorState.RECORDS_FETCHED


def test_downstream_counts_what_is_twice_and_what_is_missing() -> None:
    downstream = Downstream()
    for offset in (0, 2, 1):
        downstream.take(Message(("t", 0), offset), 0)
    assert (downstream.duplicates, downstream.gaps) == (1, 1)
