"""The queries over a corpus: workers run them on the events of some traces at a time, in columns.

Queries about findings of the judge, and those that few corpora have rows for, are queries of Spark.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.file_systems import Location, file_sizes, join_location, open_parquet
from fencepost.traces.pipeline.folding import FINDINGS_FOLDER
from fencepost.traces.pipeline.frames import (
    SizedFile,
    check_written,
    files_below,
    read_files,
    write_batches,
    write_frame,
)
from fencepost.traces.pipeline.joined_parts import JOINED_COLUMNS, ends_term, join_incarnations, number_parts
from fencepost.traces.pipeline.judge_corpus import FINDING_SCHEMA, is_own, read_table
from fencepost.traces.pipeline.ownership_queries import (
    PERIOD_QUERIES,
    POLL_COLUMNS,
    POLL_SHARES,
    poll_shares,
    read_periods,
)
from fencepost.traces.pipeline.parallel import (
    StageProgress,
    as_pipeline_error,
    core_count,
    job_progress,
    run_parts,
    split_evenly,
)
from fencepost.traces.pipeline.queries import (
    END_APIS,
    EXAMINED,
    EXAMINED_SCHEMA,
    QUERIES,
    EventKind,
    Query,
    are_of_kinds,
    count_examined,
)
from fencepost.traces.pipeline.schema import EVENTS, SCHEMAS
from fencepost.traces.pipeline.shard_plan import Shard, ShardRows, divide_shards
from fencepost.traces.pipeline.shards import LOOKUPS_SHARD, WHOLE_TRACE
from fencepost.traces.pipeline.trace_rows import Run, RunReader

OWNERSHIP = "ownership"
"""The kind of findings that say who had which partitions."""
OWNERSHIP_SCHEMA = pa.schema([FINDING_SCHEMA.field(name) for name in ("trace", "group", "sequence", "value")])
LONGEST_WAIT = "longest-wait"
SHARD_COLUMNS = ("line", "bucket", "api", *JOINED_COLUMNS)
"""What is read of the events of a shard that is no whole trace in one file, whatever the query."""
FEW_EVENTS = 10_000
"""Number of events up to which small traces stay together."""
MAX_PART_EVENTS = 2_000_000
"""Number of events up to which the queries look at them in one task."""


def query_corpus(
    spark: SparkSession,
    corpus: Corpus,
    parts: Sequence[Sequence[ShardRows]],
    folder: Location,
    progress: StageProgress,
) -> None:
    """Run all queries on the parts of a corpus, and write their rows into `folder`, a table each. Raises
    `PipelineError`."""
    job, work = uuid.uuid4().hex, join_parts(parts, core_count(spark))

    def query_part(part: Sequence[ShardRows]) -> tuple[dict[str, Mapping[str, int]], Counter[str]]:
        events = read_events(part, QUERIES.values())
        found = {name: query.run(events).to_batches() for name, query in QUERIES.items()}
        return {name: write_batches(rows, folder, name, job) for name, rows in found.items()}, count_examined(events)

    with as_pipeline_error():
        with job_progress(spark, len(work), lambda done, total: progress(done, total, "querying")):
            done = run_parts(spark, work, query_part)
        for name, query in QUERIES.items():
            files = {file: size for written, _ in done for file, size in written[name].items()}
            write_rest(folder, name, job, files, [] if files else [pa.RecordBatch.from_pylist([], query.schema)])
        counts = sum((each for _, each in done), Counter[str]())
        examined = {name: counts[name] for name in EXAMINED_SCHEMA.names}
        write_rest(folder, EXAMINED, job, {}, [pa.RecordBatch.from_pylist([examined], EXAMINED_SCHEMA)])
        for name, frame in further_queries(spark, corpus, folder):
            write_frame(frame, folder, name)


def write_rest(
    folder: Location, table: str, job: str, files: Mapping[str, int], batches: Iterable[pa.RecordBatch]
) -> None:
    """Write rows into a table of which workers have written some `files`. Raises `PipelineError` if one is missing."""
    check_written(folder, table, job, {**files, **write_batches(batches, folder, table, job)})


def join_parts(parts: Iterable[Sequence[ShardRows]], cores: int) -> list[list[ShardRows]]:
    """The shards of a plan in fewer parts, as many for each core. Traces that were split for the judge are whole again,
    unless they are very long."""
    by_trace: dict[str, list[ShardRows]] = {}
    for each in (each for part in parts for each in part):
        by_trace.setdefault(each.shard.trace, []).append(each)
    shards = [each for mine in by_trace.values() for each in join_shards(mine)]
    rounds = max(1, -(-sum(each.size for each in shards) // (cores * MAX_PART_EVENTS)))
    sized = [SizedPart(sum(each.size for each in part), part) for part in divide_shards(shards, FEW_EVENTS)]
    joined = split_evenly(sized, rounds * cores)
    return [sorted((each for one in some for each in one.shards), key=lambda each: each.place) for some in joined]


class SizedPart(NamedTuple):
    """Shards that are next to each other, with their number of events."""

    size: int
    shards: Sequence[ShardRows]


def join_shards(shards: Sequence[ShardRows]) -> Sequence[ShardRows]:
    """The shards of a trace as one, unless it is very long."""
    size = sum(each.size for each in shards)
    if len(shards) == 1 or size > MAX_PART_EVENTS:
        return shards
    return [replace(shards[0], shard=Shard(shards[0].shard.trace, (WHOLE_TRACE,), size, 0))]


def read_events(part: Iterable[ShardRows], queries: Iterable[Query]) -> pa.Table:
    """The events in a part of a corpus that some queries look at, with the columns that these read. The parts of a
    recording are one trace."""
    plain = [each for each in part if is_plain(each)]
    others = [each for each in part if not is_plain(each)]
    asked = tuple(QUERIES.values() if others else queries)  # all that they look at shows how long members are there
    kinds = tuple(dict.fromkeys(kind for query in asked for kind in query.kinds))
    columns = dict.fromkeys(["trace", "intact", *(name for query in asked for name in query.columns)])
    columns |= dict.fromkeys(SHARD_COLUMNS if others else ())
    schema = pa.schema([SCHEMAS[EVENTS].field(name) for name in columns])
    reader = RunReader(list(columns), [field.name for field in schema if field.type == pa.string()])
    found = [
        batch.filter(pc.and_(batch["intact"], are_of_kinds(batch, kinds))).cast(schema)
        for run in join_runs(each.files[0][0][0] for each in plain)
        for batch in reader.batches(run)
    ]
    return pa.concat_tables(
        [pa.Table.from_batches(found, schema), *(read_shard(reader, each, kinds, schema) for each in others)]
    )


def is_plain(each: ShardRows) -> bool:
    """Whether a shard is a whole trace in one run of rows."""
    return each.shard.bucket == WHOLE_TRACE and len(each.files) == 1 and len(each.files[0][0]) == 1


def join_runs(runs: Iterable[Run]) -> Iterator[Run]:
    """Yield runs, as one those of which one follows the other."""
    joined: Run | None = None
    for run in runs:
        if joined is not None and (run.file, run.row) == (joined.file, joined.row + joined.rows):
            joined = joined._replace(rows=joined.rows + run.rows)
            continue
        if joined is not None:
            yield joined
        joined = run
    if joined is not None:
        yield joined


def read_shard(reader: RunReader, each: ShardRows, kinds: Collection[EventKind], schema: pa.Schema) -> pa.Table:
    """The events of a shard that are of some kinds."""
    is_joined = len(each.files) > 1
    tables = []
    for part, (runs, begins, _) in enumerate(each.files):
        batches = []
        for batch in (batch for run in runs for batch in reader.batches(run)):
            is_asked = pc.and_(are_of_kinds(batch, kinds), is_of(batch, each.shard))
            is_new = pc.and_(batch["intact"], pc.greater(batch["line"], begins))
            rows = batch.filter(pc.and_(is_new, pc.or_(is_asked, pc.and_(ends_term(batch), is_joined))))
            batches.append(rows.cast(schema))
        events = pa.Table.from_batches(batches, schema)
        events = events.sort_by("line") if len(runs) > 1 else events
        tables.append(number_parts(events, part) if is_joined else events)
    whole = join_incarnations(pa.concat_tables(tables)) if is_joined else pa.concat_tables(tables)
    names = pa.repeat(pa.scalar(each.shard.trace), whole.num_rows)
    return whole.set_column(whole.schema.get_field_index("trace"), "trace", names)


def is_of(batch: pa.RecordBatch, shard: Shard) -> pa.Array:
    """Whether each of these events is one of a shard for the queries: of its groups, and what tells the ends of logs to
    all of them. Polls are in the shard of lookups."""
    if shard.bucket == WHOLE_TRACE:
        return is_own(batch, shard)
    if shard.bucket == LOOKUPS_SHARD:
        return batch["poll_counts"].is_valid()
    tells_end = pc.and_(pc.less(batch["bucket"], 0), pc.is_in(batch["api"], END_APIS))
    return pc.or_(is_own(batch, shard), tells_end)


def further_queries(spark: SparkSession, corpus: Corpus, folder: Location) -> Iterator[tuple[str, DataFrame]]:
    """Yield the queries about members in recordings and about polls, if the corpus shows any, by name."""
    findings = files_below(folder, f"{FINDINGS_FOLDER}/kind={OWNERSHIP}")
    if findings:
        sizes = file_sizes(folder, findings)
        files = [
            SizedFile(str(join_location(folder, name)), size or 0) for name, size in zip(findings, sizes, strict=True)
        ]
        periods = read_periods(read_files(spark, files, OWNERSHIP_SCHEMA))
        yield from ((name, query(periods)) for name, query in PERIOD_QUERIES.items())
    if any(open_parquet(file).metadata.num_rows for file in files_below(folder, LONGEST_WAIT).values()):
        yield POLL_SHARES, poll_shares(read_table(spark, corpus, EVENTS, POLL_COLUMNS))
