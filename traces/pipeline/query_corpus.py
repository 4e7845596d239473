"""The queries over a corpus: workers run them on the events of some traces at a time, in columns.

Queries about findings of the judge, and those that few corpora have rows for, are queries of Spark.
"""

import uuid
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from fencepost.traces.pipeline import story
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.files import Location, open_parquet
from fencepost.traces.pipeline.judge_corpus import NOT_READY, is_own, read_table
from fencepost.traces.pipeline.parallel import (
    StageProgress,
    as_pipeline_error,
    check_written,
    core_count,
    files_below,
    job_progress,
    read_files,
    run_parts,
    split_evenly,
    write_batches,
    write_frame,
)
from fencepost.traces.pipeline.queries import (
    END_APIS,
    EXAMINED,
    EXAMINED_SCHEMA,
    PERIOD_VIEWS,
    POLL_COLUMNS,
    POLL_SHARES,
    QUERIES,
    EventKind,
    Query,
    are_of_kinds,
    count_examined,
    poll_shares,
)
from fencepost.traces.pipeline.rows import LOOKUPS_SHARD, WHOLE_TRACE
from fencepost.traces.pipeline.shard_plan import Shard, ShardRows, divide_shards
from fencepost.traces.pipeline.tables import EVENTS, SCHEMAS
from fencepost.traces.pipeline.trace_rows import Run, RunReader
from fencepost.traces.pipeline.views import make_spark_views, read_views

JOINED_COLUMNS = ("group", "incarnation", "generation", "sequence", "of", "member_id", "leader", "kind", "api", "error")
"""What the incarnations of a recording are joined by."""
PART_FACTOR = 1 << 32
"""Incarnations of part N are numbered from N times this on."""
Row: TypeAlias = dict[str, Any]
LONGEST_WAIT = "longest-wait"
SHARD_COLUMNS = ("line", "bucket", "api", *JOINED_COLUMNS)
"""What is read of the events of a shard that is no whole trace in one file, whatever the query."""
FEW_EVENTS = 10_000
"""Number of events up to which small traces stay together."""
MAX_PART_EVENTS = 2_000_000
"""Number of events up to which the queries look at them in one task."""


class Span(NamedTuple):
    """A time between two sequence numbers, in which a group was one incarnation."""

    begin: int
    end: int
    incarnation: int | None
    """The number that a file gives it; None for one that a member shows."""


def ends_term(events: pa.Table | pa.RecordBatch) -> pa.Array:
    """The events after which nothing is certain that was before. One without a group is about all groups."""
    kind, api = events["kind"], events["api"]
    is_restart = pc.and_(pc.equal(kind, "fault"), pc.is_in(api, pa.array(["restart", "moved"])))
    is_unknown = pc.and_(pc.equal(kind, "internal"), pc.equal(api, "unknown"))
    is_refusal = pc.and_(pc.equal(kind, "response"), pc.is_in(events["error"], NOT_READY))
    return pc.or_(pc.or_(is_restart, is_unknown), is_refusal)


def join_incarnations(events: pa.Table) -> pa.Table:
    """The events of all parts of a recording but for those that end a term, with the `incarnation` of the whole.

    Each file numbers its incarnations anew, as it does not show who was a member before it. Together the files do: a
    member whose commit or SyncGroup is accepted has been in the group since it joined, for no id is issued twice. So
    what such a member and an incarnation span is one incarnation, and so is what overlaps with it, within one term of
    the coordinator.
    """
    is_end = ends_term(events)
    ends = events.filter(is_end).select(["group", "sequence", "of"]).to_pylist()
    others = events.filter(pc.invert(is_end))
    rows: dict[str, list[Row]] = defaultdict(list)
    every = others.select(list(JOINED_COLUMNS)).to_pylist()
    for row in every:
        rows[row["group"]].append(row)
    for group, mine in rows.items():
        join_group(mine, [end for end in ends if end["group"] in (None, group)])
    joined = pa.array([row["incarnation"] for row in every], pa.int64())
    return others.set_column(others.schema.get_field_index("incarnation"), "incarnation", joined)


def join_group(rows: Sequence[Row], ends: Iterable[Row]) -> None:
    """Give the events of a group the incarnation of the whole; `ends` are those that end its terms.

    An event of which it is not certain, for it was under way when a term ended, is of no incarnation.
    """
    marks = sorted(mark for end in ends for mark in {place_of(end), end["sequence"]})  # it ended between the two
    terms: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        term = bisect_right(marks, place_of(row))
        if term != bisect_right(marks, row["sequence"]):
            row["incarnation"] = None
        if row["incarnation"] is not None:
            terms[term].append(row)
    for known in terms.values():
        first = first_incarnations([*numbered_spans(known), *member_spans(known)])
        for row in known:
            row["incarnation"] = first[row["incarnation"]]


def numbered_spans(rows: Iterable[Row]) -> Iterator[Span]:
    """Yield the span of each incarnation that a file numbers."""
    times: dict[int, list[int]] = defaultdict(list)
    begins: dict[int, int] = {}
    for row in rows:
        incarnation, place = row["incarnation"], place_of(row)
        begins[incarnation] = min(place, begins.get(incarnation, place))
        times[incarnation] += [row["of"]] if row["of"] is not None else []
    for incarnation, begin in begins.items():
        yield Span(begin, max(begin, *times[incarnation], begin), incarnation)


def member_spans(rows: Iterable[Row]) -> Iterator[Span]:
    """Yield the span of each member, from when it joined to its last request. An id that joins an earlier generation
    than before was issued again, to another member."""
    members: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=place_of):
        members[row["member_id"]].append(row)
    for mine in members.values():
        highest = -1
        begin: int | None = None
        end: int | None = None
        for row in mine:
            if is_join(row):
                if row["generation"] < highest:
                    yield from known_span(begin, end)
                    begin = end = None
                highest = max(highest, row["generation"])
                begin = place_of(row) if begin is None else begin
            if row["of"] is not None:
                end = row["of"] if end is None else max(end, row["of"])
        yield from known_span(begin, end)


def known_span(begin: int | None, end: int | None) -> Iterator[Span]:
    """Yield the span between two places, if there is one."""
    if begin is not None and end is not None and begin <= end:
        yield Span(begin, end, None)


def first_incarnations(spans: Iterable[Span]) -> Mapping[int, int]:
    """For each incarnation that a file numbers, the first of those that are one with it, as their spans overlap."""
    found: dict[int, int] = {}
    together: list[int] = []
    reached = -1

    def close() -> None:
        found.update(dict.fromkeys(together, min(together, default=0)))
        together.clear()

    for span in sorted(spans, key=lambda each: (each.begin, each.end)):
        if span.begin > reached:
            close()
        reached = max(reached, span.end)
        together += [span.incarnation] if span.incarnation is not None else []
    close()
    return found


def place_of(row: Row) -> int:
    """Where an event counts: that a member joined, from the response on, all else from the request on."""
    sequence: int = row["sequence"]
    return sequence if row.get("leader") is not None or row["of"] is None else row["of"]


def is_join(row: Row) -> bool:
    """Whether an event that is looked at is a JoinGroup response which admits a member: no other has a leader."""
    return row["leader"] is not None


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
        if is_joined:
            numbers = pc.add(events["incarnation"], part * PART_FACTOR)
            events = events.set_column(events.schema.get_field_index("incarnation"), "incarnation", numbers)
        tables.append(events)
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
    periods = list(files_below(folder, story.OWNERSHIP).values())
    if periods:
        views = [view for view in read_views() if view.name in PERIOD_VIEWS.values()]
        make_spark_views(spark, {story.OWNERSHIP: read_files(spark, periods, story.SCHEMAS[story.OWNERSHIP])}, views)
        yield from ((name, spark.table(view)) for name, view in PERIOD_VIEWS.items())
    if any(open_parquet(file.location).metadata.num_rows for file in files_below(folder, LONGEST_WAIT).values()):
        yield POLL_SHARES, poll_shares(read_table(spark, corpus, EVENTS, POLL_COLUMNS))
