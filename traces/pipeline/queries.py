"""The invariants as queries over events in columns: comparisons of responses, without a judge.

Each query is limited to the scope of its theorem (model/PROOFS.md): one incarnation of a group, and a static member
that returns has the same identity under its next id. Member ids that no response of the trace hands out are skipped.
So every row is a violation, and some violations are not found.

Arrow does what concerns all events, and leaves the few that may be violations to Python. A query gets the events of
whole traces, or those of whole groups, in the order of their lines.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from fencepost.traces.pipeline.files import make_schema

Row: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[Any, ...]
Events: TypeAlias = pa.Table | pa.RecordBatch
EventKind: TypeAlias = Callable[[Events], pa.Array]
"""Whether each event is of a kind."""
GROUP_COLUMNS = ("trace", "group")
INCARNATION_COLUMNS = (*GROUP_COLUMNS, "incarnation")
GENERATION_COLUMNS = (*INCARNATION_COLUMNS, "generation")
MEMBER_COLUMNS = ("trace", "connection", "member")
FIRST_GENERATION = 1
"""The first generation that a member joins."""
NEVER = 1 << 63
"""The sequence number of an event that does not come."""
END_APIS = pa.array(["Fetch", "ListOffsets"])
"""The responses that tell the end of a log; others with offsets accept commits."""
GENERATION_SCHEMA = "trace string, group string, incarnation int64, generation int32"
IDENTITY_COLUMNS = (*GENERATION_COLUMNS, "sequence", "error", "member_id", "instance", "leader")
EXAMINED = "examined"
"""The name of the table with what the invariants look at."""
OFFSETS = "offsets"
MINUTE_MS = 60_000
POLL_SHARES = "poll-shares"
POLL_COLUMNS = ("trace", "connection", "member", "intact", "poll_counts")
"""What that query reads of the events."""


@dataclass(frozen=True, slots=True)
class Query:
    """Finds rows of `schema` in events, of which it reads some columns. It looks at events of some kinds only, which
    these columns tell."""

    columns: Sequence[str]
    schema: pa.Schema
    kinds: Sequence[EventKind]
    find: Callable[[pa.Table], list[Row]]

    def run(self, events: pa.Table) -> pa.Table:
        """The rows that it finds."""
        mine = events.select(list(self.columns))
        found = self.find(mine.filter(are_of_kinds(mine, self.kinds)))
        return pa.Table.from_pylist(found, self.schema) if found else self.schema.empty_table()


def are_of_kinds(events: Events, kinds: Iterable[EventKind]) -> pa.Array:
    """Whether each event is of one of these kinds."""
    return reduce(pc.or_, (is_kind(events) for is_kind in kinds))


def is_join(events: Events) -> pa.Array:
    """The JoinGroup responses that admit a member to a generation: no other response has a leader."""
    is_certain = both(events["incarnation"].is_valid(), pc.equal(events["error"], 0))
    return both(events["leader"].is_valid(), is_certain)


def is_commit(events: Events) -> pa.Array:
    """The responses that accept commits which claim a generation."""
    return both(events["accepted"], pc.greater_equal(events["generation"], 0))


def is_grant(events: Events) -> pa.Array:
    """The SyncGroup responses with an assignment."""
    return events["owned"].is_valid()


def is_double_assignment(events: Events) -> pa.Array:
    """The SyncGroup requests in which the leader assigns a partition twice."""
    return events["double_assigned"].is_valid()


def is_poll(events: Events) -> pa.Array:
    """The polls."""
    return events["poll_counts"].is_valid()


def tells_offsets(events: Events) -> pa.Array:
    """The responses that accept commits or tell the end of a log."""
    return events["offsets"].is_valid()


def both(one: pa.Array, other: pa.Array) -> pa.Array:
    """Where both hold; what is unknown does not."""
    return pc.fill_null(pc.and_kleene(one, other), False)


def find_leaders(events: pa.Table) -> list[Row]:
    """T1, one leader for each generation: the generations in which responses name different leaders."""
    claims = find_shared_claims(events.filter(is_join(events)), GENERATION_COLUMNS, "leader")
    return found_by_several(claims, GENERATION_COLUMNS, "leader", "leaders", events)


def find_stale_commits(events: pa.Table) -> list[Row]:
    """T2, no stale commit: the accepted commits below a generation that was handed out before they were sent.

    Those of generation 0 are among them: the first that a member joins is 1.
    """
    joins, commits = events.filter(is_join(events)), events.filter(is_commit(events))
    begun: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    for *incarnation, generation, begin in tuples_of(group_rows(joins, GENERATION_COLUMNS, [("sequence", "min")])):
        begun[tuple(incarnation)].append((generation, begin))
    ends = {incarnation: Successions(generations) for incarnation, generations in begun.items()}
    late: set[Key] = set()
    for *incarnation, generation, sent in tuples_of(group_rows(commits, GENERATION_COLUMNS, [("of", "max")])):
        last = ends.get(tuple(incarnation))
        if generation < FIRST_GENERATION or (last is not None and last.end_of(generation) < sent):
            late.add((*incarnation, generation))
    found = []
    for row in rows_of(commits.select([*GENERATION_COLUMNS, "sequence", "of"]), GENERATION_COLUMNS, late):
        *incarnation, generation = (row[name] for name in GENERATION_COLUMNS)
        last = ends.get(tuple(incarnation))
        current = max(FIRST_GENERATION, last.current_at(row["of"]) if last is not None else 0)
        if generation < current:
            found.append({**row, "current": current})
    return found


class Successions:
    """When the generations of an incarnation were first handed out, each with its sequence number."""

    def __init__(self, generations: Iterable[tuple[int, int]]) -> None:
        self.generations: list[int] = []
        """In order."""
        self.ends: list[int] = []
        """For each, when a later one was handed out."""
        end = NEVER
        for generation, begin in sorted(generations, reverse=True):
            self.generations.append(generation)
            self.ends.append(end)
            end = min(end, begin)
        self.generations.reverse()
        self.ends.reverse()
        self.begin = end

    def end_of(self, generation: int) -> int:
        """When one later than `generation` was first handed out."""
        place = bisect_right(self.generations, generation)
        return self.ends[place - 1] if place else self.begin

    def current_at(self, sequence: int) -> int:
        """The highest that was handed out before; 0 if none was."""
        later = [next for next, end in zip(self.generations[1:], self.ends, strict=False) if end <= sequence]
        return later[-1] if later else (self.generations[0] if self.begin <= sequence else 0)


def find_owners(events: pa.Table) -> list[Row]:
    """T4, one owner: the partitions in the assignments of two members of a generation.

    Partitions that the leader itself assigned twice are skipped: the coordinator passes assignments on.
    """
    granted = events.filter(both(is_grant(events), events["incarnation"].is_valid()))
    columns = (*GENERATION_COLUMNS, "partition")
    each = explode(granted.select([*GENERATION_COLUMNS, "sequence", "member_id", "owned"]), "owned", "partition")
    claims = find_shared_claims(each, columns, "member_id")
    if not claims:
        return []
    twice = explode(
        events.filter(is_double_assignment(events)).select([*GROUP_COLUMNS, "generation", "double_assigned"]),
        "double_assigned",
        "partition",
    )
    names = (*GROUP_COLUMNS, "generation", "partition")
    left = {key_of(row, names) for row in twice.to_pylist()}
    kept = [row for row in claims if key_of(row, names) not in left]
    return found_by_several(kept, columns, "member_id", "owners", events)


def find_longest_waits(events: pa.Table) -> list[Row]:
    """For each member, the partition with the longest run of polls that left it buffered and returned none of it."""
    waits: dict[Key, dict[str, int]] = {}
    longest: dict[Key, dict[str, int]] = {}
    for row in (row for batch in events.to_batches() for row in batch.to_pylist()):
        key = key_of(row, MEMBER_COLUMNS)
        idle = {each["partition"] for each in row["poll_counts"] if each["buffered"] > 0 and each["returned"] == 0}
        before, most = waits.get(key, {}), longest.setdefault(key, {})
        waits[key] = {each: before.get(each, 0) + 1 for each in idle}
        for partition, polls in waits[key].items():
            most[partition] = max(polls, most.get(partition, 0))
    found = []
    for key, most in longest.items():
        if most:
            partition = min(most, key=lambda each: (-most[each], each))
            place = dict(zip(MEMBER_COLUMNS, key, strict=True))
            found.append({**place, "partition": partition, "polls": most[partition]})
    return found


def find_offsets(events: pa.Table) -> list[Row]:
    """For each partition of a group and each minute in which it moved, the last committed offset, the end of the log
    and the lag at the end of the minute; the last two are null as long as the trace does not show the end."""
    each = explode(events.select([*GROUP_COLUMNS, "time", "at", "api", "offsets"]), "offsets", "row")
    if not each.num_rows:
        return []
    row = each["row"].combine_chunks()
    for name in ("topic", "partition", "offset"):
        each = each.append_column(name, row.field(name))
    clock = pc.divide(each["at"].cast(pa.int64()), 1_000)
    each = each.append_column("minute", pc.divide(pc.coalesce(clock, each["time"]), MINUTE_MS))
    tells_end = pc.is_in(each["api"], END_APIS)
    ends: dict[Key, list[Row]] = defaultdict(list)
    for end in last_by_minute(each.filter(tells_end), ("trace", "topic", "partition"), "max"):
        ends[end["trace"], end["topic"], end["partition"]].append({**end, "log_end": end["offset_max"]})
    commits: dict[Key, list[Row]] = defaultdict(list)
    columns = (*GROUP_COLUMNS, "topic", "partition")
    for commit in last_by_minute(each.filter(pc.invert(tells_end)), columns, "last"):
        commits[key_of(commit, columns)].append({**commit, "committed": commit["offset_last"]})
    return [
        {**dict(zip(columns, key, strict=True)), **told}
        for key, known in commits.items()
        for told in follow_minutes(known, ends[key[0], key[2], key[3]])
    ]


def last_by_minute(offsets: pa.Table, columns: Sequence[str], which: str) -> list[Row]:
    """Of each minute the last offset, or the highest, and when it was told."""
    grouped = offsets.group_by([*columns, "minute"], use_threads=False)
    rows: list[Row] = grouped.aggregate([("offset", which), ("time", "max"), ("at", "max")]).to_pylist()
    return rows


def follow_minutes(commits: Iterable[Row], ends: Iterable[Row]) -> Iterator[Row]:
    """Yield a partition as it was at the end of each minute in which it moved, from its first commit on."""
    minutes: dict[int, Row] = {}
    for told in (*commits, *ends):
        known = minutes.get(told["minute"], told)
        later = max((known, told), key=lambda each: each["time_max"])
        minutes[told["minute"]] = {**known, **told, "time_max": later["time_max"], "at_max": later["at_max"]}
    committed = log_end = None
    for minute in sorted(minutes):
        told = minutes[minute]
        committed = told.get("committed", committed)
        log_end = max((each for each in (log_end, told.get("log_end")) if each is not None), default=None)
        if committed is not None:
            lag = None if log_end is None else max(0, log_end - committed)
            is_last = minute == max(minutes)
            offsets = {"committed": committed, "log_end": log_end, "lag": lag, "is_last": is_last}
            yield {"at": told["at_max"], "time": told["time_max"], **offsets}


def find_shared_claims(claims: pa.Table, columns: Sequence[str], id: str) -> list[Row]:
    """The claims of ids to what another id claims too, by these columns, each with the last `sequence` of its id."""
    last = group_rows(claims, (*columns, id), [("sequence", "max")])
    number = group_rows(last, columns, [(id, "count")])
    several = number.filter(pc.greater(number[f"{id}_count"], 1))
    keys = {key_of(row, columns) for row in several.select(list(columns)).to_pylist()}
    return list(rows_of(last.rename_columns({"sequence_max": "sequence"}), columns, keys))


def found_by_several(claims: Sequence[Row], columns: Sequence[str], id: str, name: str, events: pa.Table) -> list[Row]:
    """What several identities claim, with these as `name` and the last sequence number. An id that no response of the
    trace hands out has none."""
    known = member_identities(events, {key_of(row, GROUP_COLUMNS) for row in claims})
    held: dict[Key, set[str]] = defaultdict(set)
    last: dict[Key, int] = {}
    for row in claims:
        identity = known.get((*key_of(row, GROUP_COLUMNS), row[id]))
        if identity is not None:
            key = key_of(row, columns)
            held[key].add(identity)
            last[key] = max(row["sequence"], last.get(key, 0))
    return [
        {**dict(zip(columns, key, strict=True)), name: sorted(identities), "sequence": last[key]}
        for key, identities in held.items()
        if len(identities) > 1
    ]


def member_identities(events: pa.Table, groups: set[Key]) -> dict[Key, str]:
    """The identity behind each member id that a response in one of these groups hands out."""
    found: dict[Key, str] = {}
    if groups:
        for row in rows_of(events.filter(is_join(events)), GROUP_COLUMNS, groups):
            identity = f"m {row['member_id']}" if row["instance"] is None else f"i {row['instance']}"
            key = (*key_of(row, GROUP_COLUMNS), row["member_id"])
            found[key] = min(identity, found.get(key, identity))
    return found


def group_rows(events: pa.Table, columns: Sequence[str], aggregations: Sequence[tuple[str, str]]) -> pa.Table:
    """One row for each combination of values in the columns."""
    return events.group_by(list(columns), use_threads=False).aggregate(list(aggregations))


def rows_of(events: pa.Table, columns: Sequence[str], keys: set[Key]) -> Iterable[Row]:
    """Yield the rows with one of these combinations of values in the columns."""
    if keys:
        likely = events.filter(pc.is_in(events[columns[1]], pa.array([key[1] for key in keys], pa.string())))
        yield from (row for row in likely.to_pylist() if key_of(row, columns) in keys)


def tuples_of(events: pa.Table) -> Iterator[Key]:
    """Yield the rows as tuples."""
    return zip(*(column.to_pylist() for column in events.columns), strict=True)


def explode(events: pa.Table, column: str, name: str) -> pa.Table:
    """A row for each value in a column of lists, which is in the column `name`."""
    lists = events[column].combine_chunks()
    each = events.drop_columns([column]).take(pc.list_parent_indices(lists))
    return each.append_column(name, pc.list_flatten(lists))


def key_of(row: Row, columns: Iterable[str]) -> Key:
    """The values of some columns."""
    return tuple(row[name] for name in columns)


def count_examined(events: pa.Table) -> Counter[str]:
    """The number of responses that each invariant looks at, by its name.

    `unnamed` counts the assignments that name no partition: they are empty, or not in the format of Kafka's consumers.
    """
    names = pc.greater(pc.list_value_length(events["owned"]), 0)
    masks = {
        "one-leader": is_join(events),
        "no-stale-commit": is_commit(events),
        "one-owner": pc.fill_null(names, False),
        "unnamed": both(is_grant(events), pc.invert(names)),
    }
    return Counter({name: pc.sum(mask).as_py() or 0 for name, mask in masks.items()})


INVARIANTS: Mapping[str, Query] = {
    "one-leader": Query(
        IDENTITY_COLUMNS,
        make_schema(f"{GENERATION_SCHEMA}, leaders [string], sequence int64"),
        (is_join,),
        find_leaders,
    ),
    "no-stale-commit": Query(
        (*GENERATION_COLUMNS, "sequence", "of", "error", "leader", "accepted"),
        make_schema(f"{GENERATION_SCHEMA}, sequence int64, current int32"),
        (is_join, is_commit),
        find_stale_commits,
    ),
    "one-owner": Query(
        (*IDENTITY_COLUMNS, "owned", "double_assigned"),
        make_schema(f"{GENERATION_SCHEMA}, partition string, owners [string], sequence int64"),
        (is_join, is_grant, is_double_assignment),
        find_owners,
    ),
}
"""Queries whose rows are violations."""
EXAMINED_SCHEMA = pa.schema([(name, pa.int64()) for name in (*INVARIANTS, "unnamed")])
VIEWS: Mapping[str, Query] = {
    "longest-wait": Query(
        (*MEMBER_COLUMNS, "poll_counts"),
        make_schema("trace string, connection int64, member string, partition string, polls int64"),
        (is_poll,),
        find_longest_waits,
    ),
    OFFSETS: Query(
        (*GROUP_COLUMNS, "time", "at", "api", "offsets"),
        make_schema(
            "trace string, at instant, time int64, group string, topic string, partition int32, committed int64, "
            "log_end int64, lag int64, is_last bool"
        ),
        (tells_offsets,),
        find_offsets,
    ),
}
"""Queries for information."""
QUERIES: Mapping[str, Query] = {**INVARIANTS, **VIEWS}
PERIOD_VIEWS: Mapping[str, str] = {"unowned": "unowned", "owned-twice": "owned_twice"}
"""The tables about the periods in which members had partitions, each with the view that makes it. A gap in a recording
is in no period, and is nobody's fault: time behind one is not counted."""


def poll_shares(events: DataFrame) -> DataFrame:
    """For each partition of a member: its polls, in how many it had records and in how many it returned some, and its
    share of all the records that the member returned."""
    member = ("trace", "connection", "member")
    polls = events.where("intact AND poll_counts IS NOT NULL")
    rows = polls.select(*member, F.explode("poll_counts").alias("row")).select(*member, "row.*")
    has_any = (F.col("returned") > 0) | (F.col("buffered") > 0)
    counted = rows.groupBy(*member, "partition").agg(
        F.count_if(has_any).alias("polls"),
        F.count_if(F.col("returned") > 0).alias("served"),
        F.sum("returned").alias("records"),
    )
    whole = F.sum("records").over(Window.partitionBy(*member))
    return counted.withColumn("share", F.when(whole > 0, F.col("records") / whole))
