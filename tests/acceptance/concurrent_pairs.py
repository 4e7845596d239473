"""Two stages of the pipeline at the same time on one corpus, each killed at ten moments and started again: in the end
the tables are those of one after the other."""

import random
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.schema import TABLES
from tests.acceptance.crash_recovery import (
    TRACE_COUNT,
    Rows,
    campaign_tables,
    damage_line,
    ingest_tables,
    judge_tables,
    start_stage,
    watch_tables,
)
from tests.acceptance.framework import Figure, at_least, exactly
from tests.support.altered_traces import altered_trace

KILLS = 10
MAX_STARTS = 40
"""How often a stage is started at most: one that is done before it is killed is started again, too."""
EARLIEST, LATEST = 0.3, 1.0
"""When a stage is killed, in shares of the time that it takes alone with nothing left to do."""


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

    def start(self, stage: Stage) -> subprocess.Popen[bytes]:
        """Start a stage."""
        to = self.corpus.with_name(f"{self.corpus.name} watched") if stage.name == "watch" else self.corpus
        return start_stage(stage.name, self.traces / stage.part, to)

    def run(self, stage: Stage) -> None:
        """Run a stage to its end."""
        self.start(stage).wait()

    def run_killed(self, seconds: float, stage: Stage, seed: int) -> int:
        """Kill a stage at ten moments, and run it to its end; returns the number of kills."""
        source, kills = random.Random(seed), 0
        for _ in range(MAX_STARTS):
            process = self.start(stage)
            try:
                process.wait(source.uniform(EARLIEST, LATEST) * seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
            if kills == KILLS:
                break
        self.run(stage)
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


def write_shared_traces(folder: Path) -> None:
    """Traces in two folders that share a third of them, some damaged."""
    source = random.Random(0)
    for part, seeds in (("one", range(40)), ("other", range(20, TRACE_COUNT))):
        (folder / part).mkdir(parents=True)
        for seed in seeds:
            path = folder / "one" / f"{seed}.jsonl"
            if path.exists():
                (folder / part / path.name).symlink_to(path)
                continue
            write_trace(folder / part / path.name, *altered_trace(seed))
            if seed % 10 == 0:
                damage_line(folder / part / path.name, source)


def check_pair(name: str, format: str, folder: Path) -> Iterator[Figure]:
    """A pair in a corpus of a format, and the same stages one after the other in another."""
    pair, seed = PAIRS[name], 2 * list(PAIRS).index(name)
    traces = folder / "traces"
    write_shared_traces(traces)
    alone, together = (PairRun(traces, folder / how) for how in ("alone", "together"))
    for run in (alone, together):
        Corpus.create(run.corpus, 4, format)
        for stage in pair.before:
            run.run(stage)
    for stage in pair.stages:
        alone.run(stage)
    begun = time.monotonic()
    alone.run(ONE)
    idle = time.monotonic() - begun
    with ThreadPoolExecutor(2) as pool:
        kills = list(pool.map(partial(together.run_killed, idle), pair.stages, (seed, seed + 1)))
    for run in (alone, together):
        for stage in pair.after:
            run.run(stage)
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
