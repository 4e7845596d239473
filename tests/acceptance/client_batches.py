"""Random schedules on a real client, in batches: one for each mode, with a seed of its own.

The traces of a batch are what is kept: they are judged when the figures are made, by the judge at hand. With the
environment variable FENCEPOST_BATCHES their folder outlasts the measurement, and a batch whose traces are there is not
played again. No check of these figures is confirmed by a replay: one violation in one trace is a miss.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fencepost.adapters.client.cluster import CLIENT_LABEL
from fencepost.conformance.cli.clients import make_play
from fencepost.conformance.clients.classic import DRIVEN_CLIENTS
from fencepost.conformance.clients.play import ClientScenarioRun, facts_of
from fencepost.conformance.clients.random_schedules import ScheduleStage
from fencepost.conformance.clients.stage import ClientFacts
from fencepost.traces.client_judge.judge import judge_client
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.verdict import PASSING
from tests.acceptance.framework import Figure, MeasurementError, at_least, exactly, without_threshold
from tests.acceptance.schedule_batches import batch_folder

SCHEDULES = 1_000
AT_ONCE = 24
START_S = 60.0
DONE, LATE = "done", "late"
"""The files in the folder of a batch that say that it was played whole, and in which schedules the kit was late."""


@dataclass(frozen=True, slots=True)
class ClientBatch:
    """So many schedules of a seed, with the client of a command."""

    name: str
    command: tuple[str, ...]
    seed: int
    count: int


@dataclass(frozen=True, slots=True)
class BatchFindings:
    """What the traces of a batch show: violations, requirements that were seen to hold, traces that prove nothing."""

    traces: int
    violations: tuple[str, ...]
    held: frozenset[str]
    late: int


def play_batch(batch: ClientBatch, kept: Path) -> Path:
    """Play a batch, unless its traces are there; their folder. Raises `MeasurementError`."""
    folder = kept / batch.name
    if not (folder / DONE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        late = asyncio.run(play_schedules(batch, folder))
        (folder / LATE).write_text("".join(f"{name}\n" for name in late))
        (folder / DONE).touch()
    return folder


async def play_schedules(batch: ClientBatch, folder: Path) -> list[str]:
    """Play the schedules of a batch; the names of those in which the kit itself was too late. Raises
    `MeasurementError`."""
    playing, protocol = make_play(batch.command, True, START_S)
    first = await playing.play(protocol.scenarios[0], ClientFacts())
    facts, schedules = facts_of(first), protocol.schedules
    if facts is None or schedules is None:
        raise MeasurementError(f"{batch.name}: the client does not start: {first.blocked}")
    stage = ScheduleStage(schedules, playing, facts, frozenset(), AT_ONCE, lambda line: None, folder)
    engine, late = stage.make_engine(batch.seed, batch.count), list[str]()

    def add_run(run: ClientScenarioRun) -> None:
        if "the kit itself" in run.blocked:
            late.append(run.scenario.name)
        stage.add_run(run)

    engine.on_run = add_run
    await engine.run(lambda result: None)
    return late


def judge_batch(folder: Path) -> BatchFindings:
    """Judge the traces of a batch."""
    late = set((folder / LATE).read_text().split())
    files = sorted(folder.glob("schedule-*.jsonl"))
    violations, held, left_out = list[str](), set[str](), 0
    for file in files:
        header, events = open_trace(file)
        verdict = judge_client(header, tuple(events), CLIENT_LABEL, DRIVEN_CLIENTS.follow)
        if verdict.violations and file.stem in late:  # the kit itself may have caused them
            left_out += 1
            continue
        violations += (f"{file.stem} {violation.requirement}" for violation in verdict.violations)
        held |= {check.requirement for check in verdict.check_results if check.status in PASSING}
    return BatchFindings(len(files) - left_out, tuple(violations), frozenset(held), left_out)


def check_client_batches(batches: Iterator[ClientBatch], folder: Path, wanted: int) -> Iterator[Figure]:
    """The figures of all batches together, of which so many schedules are to be judged."""
    kept = batch_folder(folder)
    found = [judge_batch(play_batch(batch, kept)) for batch in batches]
    violations = [violation for each in found for violation in each.violations]
    failures: Mapping[str, int] = Counter(violation.partition(" ")[2] for violation in violations)
    yield at_least("schedules judged", sum(each.traces for each in found), wanted)
    yield exactly("violations", ", ".join(violations) or "none", "none")
    yield without_threshold("requirements violated", ", ".join(sorted(failures)) or "none")
    yield without_threshold("requirements seen to hold", len(frozenset[str]().union(*(each.held for each in found))))
    yield without_threshold("schedules in which the kit was late", sum(each.late for each in found))
