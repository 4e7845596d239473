"""The plan of judging a corpus: its shards, where the rows of each are, and which are one task.

The driver makes it from the table of traces, without Spark: it knows all traces by name, and no event.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.files import open_parquet
from fencepost.traces.pipeline.parallel import Spark, core_count, split_evenly
from fencepost.traces.pipeline.rows import (
    LOOKUPS_SHARD,
    UNRELATED_BUCKET,
    WHOLE_TRACE,
)
from fencepost.traces.pipeline.tables import TRACES
from fencepost.traces.pipeline.trace_rows import (
    FILES_AT_ONCE,
    RecordingFiles,
    Run,
    Runs,
    TraceFile,
    group_recordings,
    line_offsets,
    locate_rows,
)

LONG_TRACE_EVENTS = 50_000
"""A trace with more events is long: it may be split into shards by bucket, and unrelated events are not read."""
SPLITS_PER_CORE = 3
"""A long trace is split if it is more than such a part of the work of a core."""
PARTS_PER_CORE = 24
"""If a core has so many parts to do, the last are small enough to keep all cores busy to the end."""
FEWEST_PARTS_PER_CORE = 2
MAX_PART_EVENTS = 250_000
"""Number of events up to which shards are judged in one task; of small shards, as many as are in a long trace."""
FILE_COLUMNS = (
    *("trace", "events", "lines", "flawed", "marked"),
    *("recording", "part", "continued", "buckets", "sizes"),
)
"""What the plan is made from, of the table of traces."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A unit of work: a trace, and the buckets of its groups, or `WHOLE_TRACE`, or `LOOKUPS_SHARD`.

    `size` is its number of events, without those that other shards have too. `files` is the number of the trace's
    files, and `unread` that of events which no shard has; only one shard of a trace counts them.
    """

    trace: str
    buckets: tuple[int, ...]
    size: int
    files: int
    unread: int = 0

    @property
    def bucket(self) -> int:
        """The first bucket, which stands for all."""
        return self.buckets[0]


class HeaderRow(NamedTuple):
    """A row of the table of traces."""

    file: str
    row: int


@dataclass(frozen=True, slots=True)
class ShardRows:
    """A shard with the places of its rows: of its header, and of its events in each file of the trace, with the line
    of the file after which they begin, and the number of lines in the files before it."""

    shard: Shard
    header: HeaderRow
    files: Sequence[tuple[Sequence[Run], int, int]]

    @property
    def size(self) -> int:
        """The number of events."""
        return self.shard.size

    @property
    def place(self) -> tuple[str, int]:
        """The first row of its events: shards in this order are read from one end of a file to the other."""
        runs = next((runs for runs, _, _ in self.files if runs), ())
        return (runs[0].file, runs[0].row) if runs else ("", 0)


def plan_parts(spark: Spark, corpus: Corpus, split: int | None = None) -> list[list[ShardRows]]:
    """The shards of a corpus in parts, each of which is one task; those with the most events come first.

    Traces with more than `split` events are split, by default long ones that are much of the work of a core. So are
    the smallest of the long ones, one for each core, if no small parts come last. None is split if the buckets of
    groups are not known.
    """
    files, headers = corpus_files(corpus)
    limit = split if corpus.buckets else sys.maxsize
    return divide_work(files, headers, locate_rows(spark, corpus), core_count(spark), limit)


def divide_work(
    files: Sequence[TraceFile], headers: Mapping[str, HeaderRow], runs: Runs, cores: int, split: int | None = None
) -> list[list[ShardRows]]:
    """The parts of a plan for some files, whose headers and events are there, and for a number of cores."""
    recordings = group_recordings(files)
    total = sum(map(events_to_read, recordings))
    limit = max(LONG_TRACE_EVENTS, total // (SPLITS_PER_CORE * cores)) if split is None else split
    limits = dict.fromkeys((whole[0].trace for whole in recordings), limit)
    if split is None:
        large = max(LONG_TRACE_EVENTS, total // (PARTS_PER_CORE * cores))
        last = sorted((whole for whole in recordings if events_to_read(whole) > large), key=events_to_read)[:cores]
        limits |= dict.fromkeys((whole[0].trace for whole in last), LONG_TRACE_EVENTS)
    shards = place_shards(recordings, headers, runs, limits)
    least = min(LONG_TRACE_EVENTS, total // (FEWEST_PARTS_PER_CORE * cores))
    return divide_shards(shards, max(least, min(MAX_PART_EVENTS, total // (PARTS_PER_CORE * cores))))


def events_to_read(whole: RecordingFiles) -> int:
    """The number of the events of a trace but for those that a long one is judged without."""
    return sum(file.events - file.sizes.get(UNRELATED_BUCKET, 0) for file in whole)


def place_shards(
    recordings: Iterable[RecordingFiles], headers: Mapping[str, HeaderRow], runs: Runs, limits: Mapping[str, int]
) -> Iterator[ShardRows]:
    """Yield the shards of all traces with the places of their rows; a trace with more events than its limit is split.
    Raises `PipelineError`."""
    for whole in recordings:
        files = tuple((runs_of(file, runs), begins, before) for file, begins, before in line_offsets(whole))
        for shard in shards_of(whole, limits[whole[0].trace]):
            yield ShardRows(shard, headers[shard.trace], files)


def runs_of(file: TraceFile, runs: Runs) -> tuple[Run, ...]:
    """Where the events of a file are. Raises `PipelineError` if some are not in the corpus."""
    found = tuple(runs.get(file.trace, ()))
    there = sum(run.rows for run in found)
    if there != file.events:
        raise PipelineError(f"the corpus has {there} of the {file.events} events of {file.trace}: ingest it anew")
    return found


def divide_shards(shards: Iterable[ShardRows], size: int) -> list[list[ShardRows]]:
    """The shards in parts of about `size` events, the largest first; those of a part are next to each other in files,
    so that their rows are read once."""
    ordered = sorted(shards, key=lambda each: each.place)
    begins, events = [0], 0
    for place, each in enumerate(ordered):
        if place > begins[-1] and events + each.size > size:
            begins.append(place)
            events = 0
        events += each.size
    parts = [ordered[begin:end] for begin, end in pairwise([*begins, len(ordered)]) if begin < end]
    parts.sort(key=lambda part: -sum(each.size for each in part))
    return parts


def corpus_files(corpus: Corpus) -> tuple[list[TraceFile], dict[str, HeaderRow]]:
    """The trace files of a corpus, and the rows with their headers, read without Spark: all of them have to come
    here."""
    found, headers = [], {}
    names = corpus.files(TRACES)
    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        for name, table in zip(names, pool.map(lambda name: open_parquet(name).read(FILE_COLUMNS), names), strict=True):
            for number, row in enumerate(table.to_pylist()):
                sizes = dict(zip(row.pop("buckets"), row.pop("sizes"), strict=True))
                found.append(TraceFile(**row, sizes=sizes))
                headers[row["trace"]] = HeaderRow(name, number)
    return found, headers


def shards_of(files: RecordingFiles, split: int) -> Iterator[Shard]:
    """The shards of a trace: a single one if it has checks, one bucket, or at most `split` events to read, else so many
    that each has about as many."""
    trace, events = files[0].trace, sum(file.events for file in files)
    sizes: Counter[int] = Counter()
    for file in files:
        sizes.update(file.sizes)
    if any(file.marked for file in files):
        yield Shard(trace, (WHOLE_TRACE,), events, len(files))
        return
    unread = sizes.pop(UNRELATED_BUCKET, 0)
    read = events - unread
    if read <= split or len(sizes) < 2:
        left = unread if events > LONG_TRACE_EVENTS else 0
        yield Shard(trace, (WHOLE_TRACE,), events - left, len(files), left)
        return
    each = [SizedBucket(bucket, size) for bucket, size in sizes.items()]
    for some in split_evenly(each, -(-read // max(1, split))):
        yield Shard(trace, tuple(sorted(one.bucket for one in some)), sum(one.size for one in some), 0)
    yield Shard(trace, (LOOKUPS_SHARD,), read - sizes.total(), len(files), unread)


class SizedBucket(NamedTuple):
    """A bucket with the number of its events."""

    bucket: int
    size: int
