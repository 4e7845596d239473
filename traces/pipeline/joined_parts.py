"""Incarnations of groups across the parts of a recording: the queries examine several files as one trace.

Each file numbers its incarnations anew, as it does not show who was a member before it. Together the files do: a member
whose commit or SyncGroup is accepted has been in the group since it joined, for no id is issued twice. So what such a
member and an incarnation span is one incarnation, and so is what overlaps with it, within one term of the coordinator.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.pipeline.queries import GROUP_COLUMNS, examined_events

NOT_READY = ", ".join(str(int(error)) for error in sorted(COORDINATOR_NOT_READY))
ENDS_TERM = (
    "(kind = 'fault' AND api IN ('restart', 'moved')) OR (kind = 'internal' AND api = 'unknown') "
    f"OR (kind = 'response' AND coalesce(error IN ({NOT_READY}), false))"
)
"""An event after which nothing is certain that was before. One without a group is about all groups."""
PART_COLUMNS = ("trace", "recording", "part", "flawed", "continued")
"""The columns of the table of traces that say how parts follow each other."""
IS_PART = "recording <> ''"
TERM_COLUMNS = (*GROUP_COLUMNS, "term")
PART_FACTOR = 1 << 32
"""Incarnations of part N are numbered from N times this on."""


def continued_parts(traces: DataFrame) -> DataFrame:
    """The parts of recordings of which several follow each other in a corpus: the `file`, its `number`, and as `whole`
    the first of them, whose name the trace has. As `recordings.group_recordings` joins them."""
    order = Window.partitionBy("recording").orderBy("part", "trace")
    is_next = (F.col("part") == F.lag("part").over(order) + 1) & F.lag("flawed").over(order).isNull()
    follows = F.coalesce(is_next & F.col("continued").isNotNull(), F.lit(False))
    parts = traces.where(IS_PART).withColumn("follows", follows)
    begun = F.last(F.when(~F.col("follows"), F.col("trace")), ignorenulls=True).over(order)
    whole = parts.select(F.col("trace").alias("file"), F.col("part").alias("number"), begun.alias("whole"))
    several = F.count("*").over(Window.partitionBy("whole")) > 1
    return whole.withColumn("several", several).where("several").drop("several")


def placed_events(events: DataFrame, parts: DataFrame) -> DataFrame:
    """The events that the invariants look at, and of recordings in `parts` what ends a term; with their part."""
    looked_at = examined_events(events.withColumn("ends", F.expr(ENDS_TERM)), also="ends")
    return looked_at.join(parts, looked_at["trace"] == parts["file"], "left").where("NOT ends OR whole IS NOT NULL")


def join_incarnations(placed: DataFrame) -> DataFrame:
    """The events that the invariants look at, those of recordings in parts as of one trace, with the `incarnation` of
    the whole; `placed` comes from `placed_events` and is read several times."""
    columns = [each for each in placed.columns if each not in ("ends", "file", "number", "whole")]
    shown = number_terms(
        placed.where("whole IS NOT NULL")
        .withColumn("trace", F.col("whole"))
        .withColumn("incarnation", F.col("number") * PART_FACTOR + F.col("incarnation"))
        .withColumn(
            "place", F.when(is_join() & ~F.col("ends"), F.col("sequence")).otherwise(F.coalesce("of", "sequence"))
        )
    )
    joined = shown.join(first_incarnations(shown), [*TERM_COLUMNS, "incarnation"], "left")
    told = joined.withColumn("incarnation", F.col("first")).select(columns)
    return placed.where("whole IS NULL").select(columns).unionByName(told)


def number_terms(shown: DataFrame) -> DataFrame:
    """The events but for those that end a term, each with the number of its term; one of which it is not certain, for
    it was under way when a term ended, is of no incarnation."""
    ends = shown.where("ends")
    groups = shown.where("group IS NOT NULL").select(*GROUP_COLUMNS).distinct()
    of_all = ends.where("group IS NULL").drop("group").join(groups, "trace")
    both = ends.where("group IS NOT NULL").unionByName(of_all)
    times = F.array_distinct(F.array("place", "sequence"))  # it ended between the two
    moments = both.select(*GROUP_COLUMNS, F.explode(times).alias("place"))
    marks = moments.withColumn("sequence", F.col("place")).withColumn("mark", F.lit(1))
    rows = shown.where("NOT ends").withColumn("mark", F.lit(0)).unionByName(marks, allowMissingColumns=True)

    def marks_before(place: str) -> Column:
        return F.sum("mark").over(Window.partitionBy(*GROUP_COLUMNS).orderBy(place))

    numbered = rows.withColumn("term", marks_before("place")).withColumn("until", marks_before("sequence"))
    certain = F.when(F.col("term") == F.col("until"), F.col("incarnation"))
    return numbered.where("mark = 0").withColumn("incarnation", certain)


def first_incarnations(shown: DataFrame) -> DataFrame:
    """For each incarnation that a file numbers, within a term, the `first` of those that are one with it."""
    known = shown.where("incarnation IS NOT NULL")
    of_id = Window.partitionBy(*TERM_COLUMNS, "member_id").orderBy("place")
    highest = F.max(F.when(is_join(), F.col("generation"))).over(of_id)
    is_new = is_join() & (F.col("generation") < highest)  # so the id was issued again
    issues = known.withColumn("issue", F.count_if(F.coalesce(is_new, F.lit(False))).over(of_id))
    members = issues.groupBy(*TERM_COLUMNS, "member_id", "issue").agg(
        F.min(F.when(is_join(), F.col("place"))).alias("begin"), F.max("of").alias("end")
    )
    begin = F.min("place")
    numbers = known.groupBy(*TERM_COLUMNS, "incarnation").agg(
        begin.alias("begin"), F.greatest(begin, F.max("of")).alias("end")
    )
    spans = numbers.unionByName(members.where("begin <= end").drop("member_id", "issue"), allowMissingColumns=True)
    order = Window.partitionBy(*TERM_COLUMNS).orderBy("begin", "end")
    reached = F.max("end").over(order.rowsBetween(Window.unboundedPreceding, -1))
    begun = spans.withColumn("is_first", F.coalesce(F.col("begin") > reached, F.lit(True)))
    numbered = begun.withColumn("number", F.count_if("is_first").over(order)).where("incarnation IS NOT NULL")
    first = F.min("incarnation").over(Window.partitionBy(*TERM_COLUMNS, "number"))
    return numbered.select(*TERM_COLUMNS, "incarnation", first.alias("first"))


def is_join() -> Column:
    """Whether an event that is looked at is a JoinGroup response which admits a member: no other has a leader."""
    return F.col("leader").isNotNull()
