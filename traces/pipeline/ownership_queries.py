"""Who had the partitions of groups, and how fair their polls were, as queries over a corpus.

The periods in which a member had partitions are findings of the judge (`Ownership`), for a recording alone. A gap in a
recording is in no period, and is nobody's fault: time behind one is not counted.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

Query: TypeAlias = Callable[[DataFrame], DataFrame]
PERIOD = "member_id string, generation int, partitions array<string>, since long, until long, end string"
"""The value of a finding of the kind `ownership`."""
PARTITION_COLUMNS = ("trace", "group", "partition")
GAP = "gap"


def read_periods(findings: DataFrame) -> DataFrame:
    """The periods of each partition, a row each, from the findings of the kind `ownership`."""
    read = findings.select("trace", "group", "sequence", F.from_json("value", PERIOD).alias("period"))
    return read.select(
        "trace",
        "group",
        "sequence",
        F.explode("period.partitions").alias("partition"),
        *(F.col(f"period.{name}").alias(name) for name in ("member_id", "generation", "since", "until", "end")),
    )


def unowned_times(periods: DataFrame) -> DataFrame:
    """For each partition of a group, how long nobody had it between its first owner and its last, and the longest time
    at a stretch, in milliseconds."""
    placed = periods.withColumn("before", F.max("until").over(earlier())).withColumn(
        "end_before", F.max_by("end", "until").over(earlier())
    )
    idle = F.when(F.col("end_before") == GAP, 0).otherwise(F.greatest(F.lit(0), F.col("since") - F.col("before")))
    return (
        placed.withColumn("idle", F.coalesce(idle, F.lit(0)))
        .groupBy(*PARTITION_COLUMNS)
        .agg(
            F.count("*").alias("periods"),
            F.min("since").alias("since"),
            F.max("until").alias("until"),
            F.sum("idle").alias("unowned"),
            F.max("idle").alias("longest"),
            F.count_if(F.col("idle") > 0).alias("stretches"),
        )
    )


def owned_twice(periods: DataFrame) -> DataFrame:
    """The periods that begin while another member has the partition, with that member, and how many milliseconds both
    have it."""
    before = F.max_by(F.struct("member_id", "until"), "until").over(earlier())
    both = F.least(F.col("until"), F.col("before.until")) - F.col("since")
    found = periods.withColumn("before", before).where("before.member_id <> member_id AND before.until > since")
    return found.select(
        *PARTITION_COLUMNS,
        "generation",
        "sequence",
        "member_id",
        F.col("before.member_id").alias("other"),
        both.alias("both"),
    ).where("both > 0")


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


def earlier() -> WindowSpec:
    """The periods of the partition that begin before this one."""
    placed = Window.partitionBy(*PARTITION_COLUMNS).orderBy("since", "sequence")
    return placed.rowsBetween(Window.unboundedPreceding, -1)


PERIOD_QUERIES: Mapping[str, Query] = {"unowned": unowned_times, "owned-twice": owned_twice}
"""Queries about the periods of partitions."""
POLL_SHARES = "poll-shares"
POLL_COLUMNS = ("trace", "connection", "member", "intact", "poll_counts")
"""What that query reads of the events."""
