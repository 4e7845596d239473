"""The invariants as queries over a whole corpus: comparisons of responses, without a judge.

Each query is limited to the scope of its theorem (model/PROOFS.md): one incarnation of a group, and a static member
that returns has the same identity under its next id. Member ids that no response of the trace hands out are skipped.
So every row is a violation, and some violations are not found.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

Query: TypeAlias = Callable[[DataFrame], DataFrame]
GROUP_COLUMNS = ("trace", "group")
INCARNATION_COLUMNS = (*GROUP_COLUMNS, "incarnation")
GENERATION_COLUMNS = (*INCARNATION_COLUMNS, "generation")
FIRST_GENERATION = 1
"""The first generation that a member joins."""
ADMITTED = "leader IS NOT NULL AND error = 0 AND incarnation IS NOT NULL"
"""A JoinGroup response that admits a member to a generation: no other response has a leader."""
COMMITTED = "accepted AND generation >= 0"
ASSIGNED = "owned IS NOT NULL"
"""A SyncGroup response with an assignment."""
EXAMINED_COLUMNS = (
    *("trace", "group", "incarnation", "generation", "sequence", "of", "intact", "error"),
    *("member_id", "instance", "leader", "accepted", "owned", "double_assigned"),
)
"""The columns that the invariants read."""


def one_leader(events: DataFrame) -> DataFrame:
    """T1, one leader for each generation: the generations in which responses name different leaders."""
    told = join_responses(events).select(*GENERATION_COLUMNS, "sequence", F.col("leader").alias("id"))
    led = with_identities(claimed_by_several(told, GENERATION_COLUMNS), events)
    leaders = F.array_sort(F.collect_set("identity"))
    found = led.groupBy(*GENERATION_COLUMNS).agg(leaders.alias("leaders"), F.max("sequence").alias("sequence"))
    return found.where(F.size("leaders") > 1)


def no_stale_commit(events: DataFrame) -> DataFrame:
    """T2, no stale commit: the accepted commits below a generation that was handed out before they were sent.

    Those of generation 0 are among them: the first that a member joins is 1.
    """
    is_commit = F.col("leader").isNull()
    both = events.where(f"intact AND (({ADMITTED}) OR ({COMMITTED}))").select(
        *INCARNATION_COLUMNS,
        "generation",
        F.when(is_commit, F.col("of")).otherwise(F.col("sequence")).alias("at"),
        F.when(is_commit, F.col("sequence")).alias("sequence"),
    )
    before = (
        Window.partitionBy(*INCARNATION_COLUMNS).orderBy("at").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    given = F.max(F.when(F.col("sequence").isNull(), F.col("generation")))
    found = both.withColumn("current", F.greatest(given.over(before), F.lit(FIRST_GENERATION)))
    return found.where("sequence IS NOT NULL AND generation < current").drop("at")


def one_owner(events: DataFrame) -> DataFrame:
    """T4, one owner: the partitions in the assignments of two members of a generation.

    Partitions that the leader itself assigned twice are skipped: the coordinator passes assignments on.
    """
    granted = events.where(f"intact AND {ASSIGNED}").select(
        *GENERATION_COLUMNS,
        "sequence",
        F.col("member_id").alias("id"),
        F.explode("owned").alias("partition"),
    )
    double_assigned = events.where("intact AND double_assigned IS NOT NULL").select(
        *GROUP_COLUMNS, "generation", F.explode("double_assigned").alias("partition")
    )
    owned_columns = (*GENERATION_COLUMNS, "partition")
    owned = claimed_by_several(granted, owned_columns).join(
        double_assigned.distinct(), [*GROUP_COLUMNS, "generation", "partition"], "left_anti"
    )
    owners = F.array_sort(F.collect_set("identity"))
    found = (
        with_identities(owned, events)
        .groupBy(*owned_columns)
        .agg(owners.alias("owners"), F.max("sequence").alias("sequence"))
    )
    return found.where(F.size("owners") > 1)


def longest_wait(events: DataFrame) -> DataFrame:
    """For each member, the partition with the longest run of polls that left it buffered and returned none of it."""
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
    """The last committed offset, the end of the log and the lag of each partition; the last two are null if the trace
    does not show the end."""
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
    """The JoinGroup responses that admit a member to a generation."""
    return events.where(f"intact AND {ADMITTED}")


def claimed_by_several(claims: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The claims of ids to what another id claims too, by these columns, each with the last `sequence` of its `id`.

    They are few, so that the joins after this one are small.
    """
    last = claims.groupBy(*columns, "id").agg(F.max("sequence").alias("sequence"))
    claimed = last.groupBy(*columns).agg(F.collect_list(F.struct("id", "sequence")).alias("claims"))
    return claimed.where(F.size("claims") > 1).select(*columns, F.inline("claims"))


def with_identities(claims: DataFrame, events: DataFrame) -> DataFrame:
    """The claims of ids that a response of the trace hands out, with the `identity` behind each."""
    groups = F.broadcast(claims.select(*GROUP_COLUMNS).distinct())  # without one, no event is read for it
    known = member_identities(events.join(groups, [*GROUP_COLUMNS], "left_semi"))
    return claims.join(known, [*GROUP_COLUMNS, "id"])


def member_identities(events: DataFrame) -> DataFrame:
    """The identity behind each member id that a response of the trace hands out."""
    identity = F.when(F.col("instance").isNotNull(), F.concat(F.lit("i "), "instance")).otherwise(
        F.concat(F.lit("m "), "member_id")
    )
    known = join_responses(events).groupBy(*GROUP_COLUMNS, F.col("member_id").alias("id"))
    return known.agg(F.min(identity).alias("identity"))


def examined_events(events: DataFrame, also: str = "") -> DataFrame:
    """The events that the invariants look at, with the columns that they read: a small part of a corpus; and those with
    the column `also`, if one is named."""
    looked_at = f"({ADMITTED}) OR ({COMMITTED}) OR {ASSIGNED} OR double_assigned IS NOT NULL"
    columns = list(EXAMINED_COLUMNS)
    if also:
        columns.append(also)
        looked_at = f"{looked_at} OR {also}"
    return events.select(*columns).where(f"intact AND ({looked_at})")


def count_examined(events: DataFrame) -> DataFrame:
    """A row with the number of responses that each invariant looks at, in columns of their names.

    `unnamed` counts the assignments that name no partition: they are empty, or not in the format of Kafka's consumers.
    """
    counts = {
        "one-leader": ADMITTED,
        "no-stale-commit": COMMITTED,
        "one-owner": f"{ASSIGNED} AND size(owned) > 0",
        "unnamed": f"{ASSIGNED} AND size(owned) = 0",
    }
    return events.where("intact").agg(*(F.expr(f"count_if({where})").alias(name) for name, where in counts.items()))


INVARIANTS: Mapping[str, Query] = {
    "one-leader": one_leader,
    "no-stale-commit": no_stale_commit,
    "one-owner": one_owner,
}
"""Queries whose rows are violations."""


EXAMINED = "examined"
"""The name of the table with what the invariants look at."""
VIEWS: Mapping[str, Query] = {"longest-wait": longest_wait, "lag": lag}
"""Queries for information."""
