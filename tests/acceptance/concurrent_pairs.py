"""Two stages of the pipeline at the same time on one corpus, each killed at ten moments and started again: in the end
the tables are those of one after the other."""

import random
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.tables import TABLES
from tests.acceptance.crash_recovery import (
    DAMAGED_EVERY,
    Rows,
    campaign_tables,
    damage_line,
    ingest_tables,
    judge_tables,
    watch_tables,
)
from tests.acceptance.framework import Figure, MeasurementError, at_least, exactly
from tests.acceptance.stage_process import StagePlace, stage_place
from tests.support.altered_traces import altered_trace

KILLS = 10
MAX_TOLD = 1_000
MAX_STARTS = 40
"""How often a stage is started at most: one that ends before it is killed is started again, too."""
KILLED_BY_TIME = 2
"""Every so many-th kill comes at a moment of the clock, the others at work with a file."""
JAVA_KILLED = 8
"""Every so many-th kill is one of the Java process, too."""
TRACE_COUNT, SHARED_FROM, SHARED_TO = 24, 8, 16


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage, by the name of `crash_recovery`, and the part of the traces that it reads."""

    name: str
    part: str = "one"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two stages; what runs before and after them is not killed."""

    stages: tuple[Stage, Stage]
    before: tuple[Stage, ...] = ()
    after: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class Whole:
    """A stage that came to its end: how long it took, and the file events below its output."""

    seconds: float
    events: int


ONE, OTHER, JUDGE = Stage("ingest"), Stage("ingest", "other"), Stage("judge")
PAIRS: Mapping[str, Pair] = {
    "two ingests": Pair((ONE, OTHER), (), (JUDGE,)),
    "an ingest and a judge": Pair((OTHER, JUDGE), (ONE,), (JUDGE,)),
    "two judges": Pair((JUDGE, JUDGE), (ONE, OTHER)),
    "a watch and an ingest": Pair((Stage("watch"), OTHER), (ONE,)),
    "a campaign and an ingest": Pair((Stage("campaign"), OTHER), (ONE,)),
}


@dataclass(slots=True)
class PairRun:
    """Runs stages on a corpus; the findings of a watch are beside it."""

    traces: Path
    corpus: Path

    def start(self, place: StagePlace, stage: Stage, kill_at: int = 0) -> ForkServerProcess:
        """Start a stage."""
        to = self.corpus.with_name(f"{self.corpus.name} watched") if stage.name == "watch" else self.corpus
        return place.start(stage.name, self.traces / stage.part, to, kill_at)

    def run(self, place: StagePlace, stage: Stage) -> "Whole":
        """Run a stage to its end."""
        process = self.start(place, stage)
        begun = time.monotonic()
        process.join()
        check_ended(place, process, stage)
        return Whole(time.monotonic() - begun, int(place.events_file.read_text()))

    def run_killed(self, whole: "Whole", place: StagePlace, stage: Stage, seed: int) -> int:
        """Kill a stage at moments of what it is as a `whole`, and run it to its end; returns the number of kills."""
        source, kills = random.Random(seed), 0
        for _ in range(MAX_STARTS):
            is_by_time = kills % KILLED_BY_TIME == 0 or not whole.events
            process = self.start(place, stage, 0 if is_by_time else source.randint(1, whole.events))
            begun = time.monotonic()
            process.join(source.uniform(0, whole.seconds) if is_by_time else None)
            process.kill()
            process.join()
            check_ended(place, process, stage, -signal.SIGKILL)
            if not process.exitcode:  # less is left to do than at first
                whole = Whole(time.monotonic() - begun, int(place.events_file.read_text()))
                continue
            kills += 1
            if kills % JAVA_KILLED == 0:
                place.kill_java()
            if kills == KILLS:
                break
        self.run(place, stage)
        return kills

    def tables(self, stages: tuple[Stage, ...]) -> dict[str, Rows]:
        """The tables that these stages leave. The rows of a campaign's seeds have the times at which they ran."""
        found: dict[str, Rows] = {}
        names = {stage.name for stage in stages}
        if "campaign" in names:
            found["campaign"] = campaign_tables(self.corpus)
        else:
            found["ingest"] = ingest_tables(self.corpus)
        if "judge" in names:
            found["judge"] = judge_tables(self.corpus)
        if "watch" in names:
            found["watch"] = watch_tables(self.corpus.with_name(f"{self.corpus.name} watched"))
        return found


def check_ended(place: StagePlace, process: ForkServerProcess, stage: Stage, *allowed: int) -> None:
    """Raises `MeasurementError` unless a stage ended well, or with an exit code that is `allowed`."""
    if process.exitcode not in (0, *allowed):
        said = place.output_file.read_text(errors="replace").splitlines()
        errors = [line for line in said if "Error" in line or "Exception" in line]
        told = " ".join((errors or said)[-3:])[:MAX_TOLD]
        raise MeasurementError(f"{stage.name} ends with {process.exitcode}: {told}")


def write_shared_traces(folder: Path) -> None:
    """Traces in two folders that share a third of them, some damaged."""
    source = random.Random(0)
    for part, seeds in (("one", range(SHARED_TO)), ("other", range(SHARED_FROM, TRACE_COUNT))):
        (folder / part).mkdir(parents=True)
        for seed in seeds:
            path = folder / "one" / f"{seed}.jsonl"
            if path.exists():
                (folder / part / path.name).symlink_to(path)
                continue
            write_trace(folder / part / path.name, *altered_trace(seed))
            if seed % DAMAGED_EVERY == 0:
                damage_line(folder / part / path.name, source)


def check_pair(name: str, folder: Path) -> Iterator[Figure]:
    """A pair in one corpus, and the same stages one after the other in another."""
    pair, seed = PAIRS[name], 2 * list(PAIRS).index(name)
    write_shared_traces(folder / "traces")
    alone, together = (PairRun(folder / "traces", folder / how) for how in ("alone", "together"))
    with stage_place(folder / "first") as first, stage_place(folder / "second") as second:
        for run in (alone, together):
            Corpus.create(run.corpus, 2)
            for stage in pair.before:
                run.run(first, stage)
        wholes = [alone.run(first, stage) for stage in pair.stages]
        with ThreadPoolExecutor(2) as pool:
            kills = list(pool.map(together.run_killed, wholes, (first, second), pair.stages, (seed, seed + 1)))
        for run in (alone, together):
            for stage in pair.after:
                run.run(first, stage)
    yield at_least("kills of each", min(kills), KILLS)
    corpus = Corpus.open(together.corpus)
    files = [Path(file) for table in TABLES for file in corpus.files(table)]
    yield exactly("files that a snapshot names and that are not there", sum(not each.exists() for each in files), 0)
    everything = (*pair.before, *pair.stages, *pair.after)
    wanted, found = alone.tables(everything), together.tables(everything)
    for stage_name, tables in wanted.items():
        for table, rows in tables.items():
            same = "yes" if rows == found[stage_name][table] else "no"
            yield exactly(f"{stage_name}: the same {len(rows)} rows of {table}", same, "yes")
