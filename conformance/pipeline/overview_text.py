"""The output of `fencepost pipeline judge` besides the report: rebalances, lag, waits and the rows of queries."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from fencepost.conformance.pipeline.overview import Overview
from fencepost.traces.pipeline.queries import INVARIANTS

INVARIANT_SENTENCES = {
    "one-leader": ("one leader per generation", "joins"),
    "no-stale-commit": ("no commit of a stale generation accepted", "accepted commits"),
    "one-owner": ("each partition owned at most once in a generation", "assignments"),
}
"""What each invariant says, and what it looks at."""
PHASES = {"Preparing": "PreparingRebalance", "Completing": "CompletingRebalance"}


def overview_lines(overview: Overview) -> list[str]:
    """Everything, in lines."""
    return [*rebalance_lines(overview), *stuck_lines(overview), *query_lines(overview)]


def query_lines(overview: Overview) -> list[str]:
    """What needs no judge, in lines."""
    return [*lag_lines(overview), *owner_lines(overview), *wait_lines(overview), *invariant_lines(overview)]


def rebalance_lines(overview: Overview) -> Iterator[str]:
    """How long rebalances take."""
    durations = overview.durations
    if not durations:
        return
    half, most = (percentile(durations, share) for share in (0.5, 0.99))
    longest = f"the longest {max(durations)} ms"
    yield f"Rebalances: {durations.total()}, half within {half} ms, 99 % within {most} ms, {longest}"
    for each in overview.rows["rebalance"].list_rows():
        yield f"  {each['duration']} ms: {each['group']!r} to generation {each['generation']}, over by {each['by']}"


def percentile(numbers: Counter[int], share: float) -> int:
    """The number that this share of the numbers is not above; `numbers` says how many there are of each."""
    ordered = sorted(numbers)
    ranks = list(accumulate(numbers[each] for each in ordered))
    return ordered[bisect_right(ranks, int(share * (ranks[-1] - 1)))]


def stuck_lines(overview: Overview) -> Iterator[str]:
    """Rounds that are not over, and who holds them up."""
    stuck = overview.rows["stuck"]
    if stuck.count:
        yield f"Rebalances that were not over at the end: {stuck.count}"
    for each in stuck.list_rows():
        awaited = ", ".join(each["awaited"]) or "a timer"
        yield f"  {each['group']!r} in {PHASES[each['phase']]} since {each['since']} ms waits for {awaited}"


def lag_lines(overview: Overview) -> Iterator[str]:
    """How far groups are behind."""
    known, unknown = overview.known_lags, overview.unknown_lags
    if not known and not unknown:
        return
    behind = overview.rows["lag"].list_rows()
    told = f"unknown for {unknown}" if unknown else "known for all"
    most = f", at most {behind[0]['lag'] if behind else 0} records" if known else ""
    yield f"Lag of {known + unknown} partitions: {told}{most}"
    for each in behind:
        yield f"  {each['lag']} records: {each['group']!r}, {each['topic']}/{each['partition']}"


def owner_lines(overview: Overview) -> Iterator[str]:
    """How long partitions had no owner, and which had two at once."""
    if not overview.followed:
        return
    idle, twice = overview.rows["unowned"], overview.rows["owned-twice"]
    longest = f", at most {idle.list_rows()[0]['longest']} ms at a stretch" if idle.count else ""
    yield f"Partitions without an owner for a while: {idle.count} of {overview.followed}{longest}"
    for each in idle.list_rows():
        yield f"  {each['unowned']} ms in {each['stretches']} stretches: {each['group']!r}, {each['partition']}"
    if twice.count:
        yield f"Partitions that two members had at once: {twice.count} times"
    for each in twice.list_rows():
        what = f"{each['group']!r}, {each['partition']}, {each['other']!r} and {each['member_id']!r}"
        yield f"  {each['both']} ms: {what} ({each['trace']}, event {each['sequence']})"


def wait_lines(overview: Overview) -> Iterator[str]:
    """How long buffered partitions wait."""
    for each in overview.rows["longest-wait"].list_rows()[:1]:
        where = f"{each['partition']} at {each['member'] or each['connection']}"
        yield f"Longest wait of a buffered partition: {each['polls']} polls, {where}"


def invariant_lines(overview: Overview) -> Iterator[str]:
    """What the queries found."""
    yield "Invariants, queried"
    examined = overview.examined
    for name in INVARIANTS:
        sentence, unit = INVARIANT_SENTENCES[name]
        violations = overview.rows[name]
        found = f"{violations.count} violations" if violations.count else "holds" if examined[name] else "not looked at"
        unnamed = f"; {examined['unnamed']} name no partition" if name == "one-owner" and examined["unnamed"] else ""
        yield f"  {sentence}: {found} ({examined[name]} {unit} examined{unnamed})"
        for each in violations.list_rows():
            yield f"    {each['group']!r} in generation {each['generation']}: {each['trace']}, event {each['sequence']}"
