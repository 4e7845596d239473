"""The invariants as queries over a whole corpus: no judge, no state, only what answers say of each other.

Each has the scope in which it is true (model/PROOFS.md): one life of a group in one tenure of its coordinator, and a
static member that comes back is the same person under its next id. A member id of which the trace never tells to whom
it was given is nobody's. So what a query finds is a violation; what it does not find may be one all the same.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

Query: TypeAlias = Callable[[DataFrame], DataFrame]
GROUP_COLUMNS = ("trace", "group")
INCARNATION_COLUMNS = (*GROUP_COLUMNS, "incarnation")


def one_leader(events: DataFrame) -> DataFrame:
    """T1: any two members that are told who leads a generation are told of the same leader."""
    told = join_responses(events).select(*INCARNATION_COLUMNS, "generation", "sequence", F.col("leader").alias("id"))
    led = told.join(member_identities(events), [*GROUP_COLUMNS, "id"])
    leaders = F.array_sort(F.collect_set("identity"))
    found = led.groupBy(*INCARNATION_COLUMNS, "generation").agg(
        leaders.alias("leaders"), F.max("sequence").alias("sequence")
    )
    return found.where(F.size("leaders") > 1)


def no_stale_commit(events: DataFrame) -> DataFrame:
    """T2: an accepted commit with a generation carries the current one: none above it was given out before."""
    joined = join_responses(events).select(
        *INCARNATION_COLUMNS, "generation", F.col("sequence").alias("at"), F.lit(None).alias("sequence")
    )
    commits = events.where("intact AND accepted AND generation >= 0").select(
        *INCARNATION_COLUMNS, "generation", F.col("of").alias("at"), "sequence"
    )
    before = (
        Window.partitionBy(*INCARNATION_COLUMNS).orderBy("at").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    given = F.max(F.when(F.col("sequence").isNull(), F.col("generation")))
    both = joined.unionByName(commits).withColumn("current", given.over(before))
    return both.where("sequence IS NOT NULL AND generation < current").drop("at")


def one_owner(events: DataFrame) -> DataFrame:
    """T4: the assignments of one generation that two members receive share no partition.

    Of what the leader itself assigned twice the coordinator is innocent.
    """
    granted = events.where("intact AND api = 'SyncGroup' AND owned IS NOT NULL").select(
        *INCARNATION_COLUMNS,
        "generation",
        "sequence",
        F.col("member_id").alias("id"),
        F.explode("owned").alias("partition"),
    )
    double_assigned = events.where("intact AND double_assigned IS NOT NULL").select(
        *GROUP_COLUMNS, "generation", F.explode("double_assigned").alias("partition")
    )
    owned = granted.join(member_identities(events), [*GROUP_COLUMNS, "id"]).join(
        double_assigned.distinct(), [*GROUP_COLUMNS, "generation", "partition"], "left_anti"
    )
    owners = F.array_sort(F.collect_set("identity"))
    found = owned.groupBy(*INCARNATION_COLUMNS, "generation", "partition").agg(
        owners.alias("owners"), F.max("sequence").alias("sequence")
    )
    return found.where(F.size("owners") > 1)


def longest_wait(events: DataFrame) -> DataFrame:
    """For each member that polls, the partition that waited longest with records buffered, in polls (KIP-41)."""
    polls = events.where("intact AND poll_counts IS NOT NULL")
    member = ("trace", "connection", "member")
    order = Window.partitionBy(*member).orderBy("sequence")
    numbered = polls.withColumn("number", F.row_number().over(order))
    rows = numbered.select(*member, "number", F.explode("poll_counts").alias("row"))
    each = rows.select(*member, "number", "row.*")
    # A wait is a run of polls after each of which the same partition is buffered and nothing of it was returned.
    idle = each.where("buffered > 0 AND returned = 0")
    by_partition = Window.partitionBy(*member, "partition").orderBy("number")
    run = F.col("number") - F.row_number().over(by_partition)
    waits = idle.withColumn("run", run).groupBy(*member, "partition", "run").agg(F.count("*").alias("polls"))
    longest = Window.partitionBy(*member).orderBy(F.desc("polls"), "partition")
    return waits.withColumn("place", F.row_number().over(longest)).where("place = 1").drop("run", "place")


def lag(events: DataFrame) -> DataFrame:
    """The last committed offset of each partition, and how far that is from the end of the log; null where the trace
    does not tell the end."""
    seen = events.where("intact AND offsets IS NOT NULL")
    offsets = seen.select("trace", "group", "sequence", "time", "api", F.explode("offsets").alias("row")).select(
        "trace", "group", "sequence", "time", "api", "row.*"
    )
    latest = F.max_by("offset", "sequence")
    ends = offsets.where("api IN ('Fetch', 'ListOffsets')").groupBy("trace", "topic", "partition")
    committed = offsets.where("api NOT IN ('Fetch', 'ListOffsets')").groupBy(*GROUP_COLUMNS, "topic", "partition")
    both = committed.agg(latest.alias("committed"), F.max("time").alias("time")).join(
        ends.agg(F.max("offset").alias("log_end")), ["trace", "topic", "partition"], "left"
    )
    behind = F.greatest(F.lit(0), F.col("log_end") - F.col("committed"))
    return both.withColumn("lag", F.when(F.col("log_end").isNotNull(), behind))


def join_responses(events: DataFrame) -> DataFrame:
    """Answers that made somebody a member of a generation."""
    return events.where("intact AND api = 'JoinGroup' AND kind = 'response' AND error = 0 AND incarnation IS NOT NULL")


def member_identities(events: DataFrame) -> DataFrame:
    """Who stands behind each member id, as far as the trace shows to whom it was given."""
    identity = F.when(F.col("instance").isNotNull(), F.concat(F.lit("i "), "instance")).otherwise(
        F.concat(F.lit("m "), "member_id")
    )
    known = join_responses(events).groupBy(*GROUP_COLUMNS, F.col("member_id").alias("id"))
    return known.agg(F.min(identity).alias("identity"))


INVARIANTS: Mapping[str, Query] = {
    "one-leader": one_leader,
    "no-stale-commit": no_stale_commit,
    "one-owner": one_owner,
}
"""What finds violations: a row for each."""
VIEWS: Mapping[str, Query] = {"longest-wait": longest_wait, "lag": lag}
"""What only tells."""
