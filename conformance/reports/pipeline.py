"""The output of `fencepost pipeline judge` besides the report: rebalances, lag, waits and the rows of queries."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from heapq import nlargest
from itertools import accumulate, islice
from operator import itemgetter
from typing import Any

from fencepost.traces.pipeline.queries import INVARIANTS
from fencepost.traces.pipeline.results import CorpusResults

MAX_SHOWN = 5
"""How many of each kind are shown; the tables have all of them."""
INVARIANT_SENTENCES = {
    "one-leader": ("one leader per generation", "joins"),
    "no-stale-commit": ("no commit of a stale generation accepted", "accepted commits"),
    "one-owner": ("each partition owned at most once in a generation", "assignments"),
}
"""What each invariant says, and what it looks at."""
PHASES = {"Preparing": "PreparingRebalance", "Completing": "CompletingRebalance"}


def report_lines(judged: CorpusResults) -> list[str]:
    """Everything, in lines."""
    return [*rebalance_lines(judged), *stuck_lines(judged), *query_lines(judged)]


def query_lines(judged: CorpusResults) -> list[str]:
    """What needs no judge, in lines."""
    return [*lag_lines(judged), *wait_lines(judged), *invariant_lines(judged)]


def rebalance_lines(judged: CorpusResults) -> Iterator[str]:
    """How long rebalances take."""
    durations = Counter(each["duration"] for each in judged.rebalances())
    if not durations:
        return
    half, most = (percentile(durations, share) for share in (0.5, 0.99))
    longest = f"the longest {max(durations)} ms"
    yield f"Rebalances: {durations.total()}, half within {half} ms, 99 % within {most} ms, {longest}"
    for each in largest(judged.rebalances(), "duration"):
        yield f"  {each['duration']} ms: {each['group']!r} to generation {each['generation']}, over by {each['by']}"


def percentile(numbers: Counter[int], share: float) -> int:
    """The number that this share of the numbers is not above; `numbers` says how many there are of each."""
    ordered = sorted(numbers)
    ranks = list(accumulate(numbers[each] for each in ordered))
    return ordered[bisect_right(ranks, int(share * (ranks[-1] - 1)))]


def stuck_lines(judged: CorpusResults) -> Iterator[str]:
    """Rounds that are not over, and who holds them up."""
    count = sum(1 for _ in judged.stuck_rebalances())
    if count:
        yield f"Rebalances that were not over at the end: {count}"
    for each in islice(judged.stuck_rebalances(), MAX_SHOWN):
        awaited = ", ".join(each["awaited"]) or "a timer"
        yield f"  {each['group']!r} in {PHASES[each['phase']]} since {each['since']} ms waits for {awaited}"


def lag_lines(judged: CorpusResults) -> Iterator[str]:
    """How far groups are behind."""
    known = Counter(each["lag"] is not None for each in judged.query_rows("lag"))
    if not known:
        return
    behind = largest((each for each in judged.query_rows("lag") if each["lag"]), "lag")
    unknown = f"unknown for {known[False]}" if known[False] else "known for all"
    most = f", at most {max((each['lag'] for each in behind), default=0)} records" if known[True] else ""
    yield f"Lag of {known.total()} partitions: {unknown}{most}"
    for each in behind:
        yield f"  {each['lag']} records: {each['group']!r}, {each['topic']}/{each['partition']}"


def wait_lines(judged: CorpusResults) -> Iterator[str]:
    """How long buffered partitions wait."""
    for each in largest(judged.query_rows("longest-wait"), "polls")[:1]:
        where = f"{each['partition']} at {each['member'] or each['connection']}"
        yield f"Longest wait of a buffered partition: {each['polls']} polls, {where}"


def invariant_lines(judged: CorpusResults) -> Iterator[str]:
    """What the queries found."""
    yield "Invariants, queried"
    examined = judged.examined_counts()
    for name in INVARIANTS:
        sentence, unit = INVARIANT_SENTENCES[name]
        number = sum(1 for _ in judged.query_rows(name))
        found = f"{number} violations" if number else "holds" if examined[name] else "not looked at"
        unnamed = f"; {examined['unnamed']} name no partition" if name == "one-owner" and examined["unnamed"] else ""
        yield f"  {sentence}: {found} ({examined[name]} {unit} examined{unnamed})"
        for each in islice(judged.query_rows(name), MAX_SHOWN):
            yield f"    {each['group']!r} in generation {each['generation']}: {each['trace']}, event {each['sequence']}"


def largest(rows: Iterator[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    """The first few by this column."""
    return nlargest(MAX_SHOWN, rows, key=itemgetter(column))
