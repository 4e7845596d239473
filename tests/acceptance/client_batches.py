"""Random schedules on a real client, in batches: one for each mode, with a seed of its own.

The traces of a batch are what is kept: they are judged when the figures are made, by the judge at hand. With the
environment variable FENCEPOST_BATCHES their folder outlasts the measurement, and a batch whose traces are there is not
played again. As in a run of the kit, a violation is a `fail` if a replay of its schedule shows it too; the replays are
part of playing a batch. A schedule in which the kit itself was late proves nothing, and does not count.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fencepost.adapters.client.cluster import CLIENT_LABEL
from fencepost.conformance.cli.test import make_play
from fencepost.conformance.clients.classic import DRIVEN_CLIENTS
from fencepost.conformance.clients.play import facts_of, lateness_in
from fencepost.conformance.clients.random_schedules import ScheduleStage
from fencepost.conformance.clients.stage import ClientFacts
from fencepost.conformance.execution.loop_lag import explain_lag
from fencepost.traces.client_judge.judge import judge_client
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.verdict import PASSING, CheckStatus
from tests.acceptance.checks.conformance import join_ids
from tests.acceptance.client_findings import SOURCE_OF_REMARKS
from tests.acceptance.framework import Figure, MeasurementError, at_least, exactly, without_threshold
from tests.acceptance.schedule_batches import batch_folder

SCHEDULES = 1_000
AT_ONCE = 8
"""For two processors: with three times as many, polls of 100 ms took up to 6 s."""
START_S = 60.0
CONFIRMED = "confirmed.json"
"""The file in the folder of a batch that was played whole: the requirements whose violation a replay has shown."""
SESSION_PRIORITY = Path("/proc/self/autogroup")
"""Linux shares processors among sessions, and each client has one of its own: `nice` changes nothing between them."""
HIGH_PRIORITY = "-15"


@dataclass(frozen=True, slots=True)
class ClientBatch:
    """So many schedules of a seed, with the client of a command."""

    name: str
    command: tuple[str, ...]
    seed: int
    count: int


@dataclass(frozen=True, slots=True)
class BatchFindings:
    """What the traces of a batch show: how many were judged, their violations, those of them that a replay has shown,
    the requirements that were seen to hold, the recommendations that were not kept, and how many traces prove nothing.
    """

    judged: int
    violations: tuple[str, ...]
    confirmed: tuple[str, ...]
    held: frozenset[str]
    unusual: frozenset[str]
    late: int


def play_batch(batch: ClientBatch, kept: Path) -> Path:
    """Play a batch, unless its traces are there; their folder. Raises `MeasurementError`."""
    folder = kept / batch.name
    if not (folder / CONFIRMED).exists():
        folder.mkdir(parents=True, exist_ok=True)
        raise_priority()
        (folder / CONFIRMED).write_text(json.dumps(asyncio.run(play_schedules(batch, folder))))
    return folder


def raise_priority() -> None:
    """Let this session go before those of the clients, so that the kit is in time; it changes nothing without the right
    to do so, and where the system knows no such groups."""
    with suppress(OSError):
        SESSION_PRIORITY.write_text(HIGH_PRIORITY)


async def play_schedules(batch: ClientBatch, folder: Path) -> list[str]:
    """Play the schedules of a batch, and those that violate something again; the requirements that a replay violates as
    well. Raises `MeasurementError`."""
    playing, protocol = make_play(batch.command, True, START_S)
    first = await playing.play(protocol.scenarios[0], ClientFacts())
    facts, schedules = facts_of(first), protocol.schedules
    if facts is None or schedules is None:
        raise MeasurementError(f"{batch.name}: the client does not start: {first.blocked}")
    stage = ScheduleStage(schedules, playing, facts, frozenset(), AT_ONCE, lambda line: None, folder)
    engine = stage.make_engine(batch.seed, batch.count)
    await engine.run(lambda result: None)
    replayed = await engine.confirm_violations(sorted(engine.statistics.candidate_failures))
    return [requirement for requirement, each in replayed.items() if each.replay is not None]


def judge_batch(folder: Path) -> BatchFindings:
    """Judge the traces of a batch."""
    violations, confirmed = list[str](), list[str]()
    held, unusual = set[str](), set[str]()
    judged = late = 0
    shown = json.loads((folder / CONFIRMED).read_text())
    for file in sorted(folder.glob("schedule-*.jsonl")):
        header, stream = open_trace(file)
        events = tuple(stream)
        if explain_lag(lateness_in(events), header.grace):
            late += 1
            continue
        verdict = judge_client(header, events, CLIENT_LABEL, DRIVEN_CLIENTS.follow)
        violations += (f"{file.stem} {id}" for id in sorted(verdict.violated))
        confirmed += (f"{file.stem} {id}" for id in sorted(verdict.violated & set(shown)))
        held |= {check.requirement for check in verdict.check_results if check.status in PASSING}
        unusual |= {check.requirement for check in verdict.check_results if check.status is CheckStatus.UNUSUAL}
        judged += 1
    return BatchFindings(judged, tuple(violations), tuple(confirmed), frozenset(held), frozenset(unusual), late)


def check_client_batches(batches: Iterator[ClientBatch], folder: Path, wanted: int) -> Iterator[Figure]:
    """The figures of all batches together, of which so many schedules are to be judged."""
    kept = batch_folder(folder)
    found = [judge_batch(play_batch(batch, kept)) for batch in batches]
    violations = [violation for each in found for violation in each.violations]
    confirmed = [violation for each in found for violation in each.confirmed]
    yield at_least("schedules judged", sum(each.judged for each in found), wanted)
    yield exactly("violations that a replay shows: fail", ", ".join(confirmed) or "none", "none")
    yield without_threshold("violations in one trace, with those", ", ".join(violations) or "none")
    yield without_threshold("requirements seen to hold", len(frozenset[str]().union(*(each.held for each in found))))
    unusual = frozenset[str]().union(*(each.unusual for each in found))
    yield without_threshold("recommendations not kept", join_ids(unusual))
    strange = join_ids(unusual - SOURCE_OF_REMARKS.keys())
    yield exactly("recommendations not kept, without a place in its source", strange, "none")
    yield without_threshold("schedules in which the kit was late", sum(each.late for each in found))
