"""The query for stale commits: what it finds of those that adversarial schedules hide, and what it charges falsely."""

import gzip
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.pipeline.corpus import Corpus
from tests.acceptance.framework import Figure, at_least, exactly, without_threshold
from tests.acceptance.verdict_corpus.conversion import convert_trace
from tests.support.altered_traces import altered_trace
from tests.support.corpus_queries import query_here
from tests.support.corpus_tables import ingest_here
from tests.support.random_client import random_trace
from tests.support.stale_commits import stale_commit

KNOWN, FRESH = range(20), range(10_000, 10_100)
"""Seeds of schedules that the query was written for, and of others."""
ALTERED_COUNT, CONFORMANT_COUNT = 1_000, 200
RECORDINGS = Path(__file__).parent / "verdict_corpus" / "recordings" / "traces"


def found_by_query(folder: Path) -> set[tuple[str, int]]:
    """The stale commits that the query finds in the traces in a folder: names of files and sequence numbers."""
    corpus = Corpus.create(folder.with_name(f"{folder.name} corpus"), 4)
    ingest_here(corpus, sorted(folder.glob("*.jsonl")))
    return {(row["trace"], row["sequence"]) for row in query_here(corpus, "no-stale-commit")}


def write_schedules(folder: Path, seeds: Sequence[int]) -> set[tuple[str, int]]:
    """Write the schedules of some seeds, each with its stale commit and without; returns the stale commits."""
    folder.mkdir()
    hidden = set()
    for seed in seeds:
        drawn = stale_commit(seed)
        write_trace(folder / f"{seed}.jsonl", drawn.header, drawn.violating)
        write_trace(folder / f"conformant-{seed}.jsonl", drawn.header, drawn.conformant)
        hidden.add((str(folder.resolve() / f"{seed}.jsonl"), drawn.sequence))
    return hidden


def check_stale_commits(folder: Path) -> Iterator[Figure]:
    """Schedules with a hidden stale commit, and corpora in which whatever the query finds must be a violation."""
    for what, seeds, least in (("known schedules", KNOWN, 18), ("fresh schedules", FRESH, 90)):
        hidden = write_schedules(folder / what, seeds)
        found = found_by_query(folder / what)
        yield at_least(f"{what}: stale commits found, of {len(seeds)}", len(found & hidden), least)
        yield exactly(f"{what}: found that are none", len(found - hidden), 0)
    for corpus in (conformant_traces, altered_traces, recorded_traces):
        place = folder / corpus.__name__
        place.mkdir()
        corpus(place)
        name = corpus.__name__.replace("_", " ")
        found = found_by_query(place)
        yield without_threshold(f"{name}: traces", len(list(place.iterdir())))
        yield without_threshold(f"{name}: stale commits found", len(found))
        charged = {trace for trace, _ in found}
        conformant = sum(not has_violation(Path(trace)) for trace in charged)
        yield exactly(f"{name}: conformant traces that the query charges", conformant, 0)


def conformant_traces(folder: Path) -> None:
    """Random traces of the model as coordinator."""
    for seed in range(CONFORMANT_COUNT):
        write_trace(folder / f"{seed}.jsonl", *random_trace(random.Random(f"conformant {seed}"), 60))


def altered_traces(folder: Path) -> None:
    """Random traces, many with altered responses."""
    for seed in range(ALTERED_COUNT):
        write_trace(folder / f"{seed}.jsonl", *altered_trace(seed))


def recorded_traces(folder: Path) -> None:
    """Traces of runs on brokers and on the bundled coordinator, as this version reads them."""
    for path in sorted(RECORDINGS.glob("*.jsonl.gz")):
        with gzip.open(path) as lines:
            (folder / path.name.removesuffix(".gz")).write_bytes(b"".join(convert_trace(lines)))


def has_violation(path: Path) -> bool:
    """Whether the judge finds a violation in a trace."""
    header, events = open_trace(path)
    return bool(Judge(header).judge_events(list(events)).violations)
