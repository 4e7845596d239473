"""How long a partition with buffered records can wait, how much a consumer can retain, and what polls show of it.

The bounds are those of member.md 6.3 and 6.7. A fetcher is held against the models: polls that were seen, and the ways
to drain that explain them. Its partitions are positions in an order that the fetcher keeps, for instance the order of
assignment.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from fencepost.model.draining.polling import PlainBuffers, Prefetch, Resume, Ring, run_fair_poll, run_poll, should_fetch


class Draining(Enum):
    """A way to choose what a poll returns, as a fetcher may declare it."""

    AFTER = "after"
    """Greedy; the next poll goes on after the partition visited last."""
    AT = "at"
    """Greedy; the next poll goes on at the partition visited last if records of it are left."""
    START = "start"
    """Greedy, always from the first partition: the rule that starves."""
    EQUAL = "equal"
    """Equal shares, see `fair_share`."""
    QUEUE = "queue"
    """Completed fetches in the order in which they came, see `fetch_queue`."""


class Refills(Enum):
    """When the buffers of other partitions may grow while one waits."""

    NEVER_AHEAD = "never ahead"
    """Not those that are drained before it."""
    WHEN_EMPTY = "when empty"
    """Those that are empty, up to a most."""
    ANY = "any"


def latest_poll(draining: Draining, ring: Ring, position: int, refills: Refills, most: int = 0) -> int | None:
    """The number of the poll, the first is 1, by which a partition with records is served; None without a bound.

    `most` is what a buffer ever holds, for refills when empty. The bounds are theorems of `model/draining/proofs.py`,
    but for EQUAL, where each poll passes a limit of partitions or serves all. For QUEUE the ring is the queue, the
    cursor at its head: refills come behind the partition and do not matter.
    """
    cursor = 0 if draining is Draining.START else ring.cursor
    distance = (position - cursor) % ring.partitions
    ahead = [ring.buffers[(cursor + step) % ring.partitions] for step in range(distance)]
    busy = sum(count > 0 for count in ahead)
    without_refill = sum(ahead) // ring.limit + 1
    if draining is Draining.QUEUE:
        return without_refill
    if draining is Draining.EQUAL:
        return (busy if refills is Refills.NEVER_AHEAD else distance) // ring.limit + 1
    if draining is Draining.AFTER:
        return min(busy + 1, without_refill) if refills is Refills.NEVER_AHEAD else distance + 1
    if refills is Refills.NEVER_AHEAD:
        return without_refill
    if draining is Draining.AT and refills is Refills.WHEN_EMPTY:
        return distance * most // ring.limit + 1
    return None


def polls_before_fetch(prefetch: Prefetch, ring: Ring, position: int) -> int | None:
    """After how many polls, if nothing arrives, a fetch for the partition can be sent; None for never.

    0: it can be sent as things are. TOTAL waits for the records of all partitions, the other rules for those of this
    one alone; how soon these are drained is a matter of `latest_poll`, and here each poll is taken to drain them.
    """
    total = sum(ring.buffers[each] for each in range(ring.partitions))
    if prefetch is Prefetch.TOTAL:
        return total // ring.limit
    if prefetch is Prefetch.INTEGER_SHARE and ring.limit < ring.partitions:
        return None
    share = {
        Prefetch.SHARE: -(-ring.limit // ring.partitions),
        Prefetch.INTEGER_SHARE: ring.limit // ring.partitions,
    }.get(prefetch, 1)
    surplus = ring.buffers[position] - (share - 1)
    return max(0, -(-surplus // ring.limit))


def most_misplaced(limit: int, busy: int) -> int:
    """The most records of a greedy poll that would be of other partitions if it divided equally (`fair_share`).

    `busy` is how many partitions have records, at least 1. The bound is reached where each has as many as a poll may
    return.
    """
    return limit - -(-limit // busy)


def most_retained(prefetch: Prefetch, limit: int, partitions: int, most_fetched: int) -> int:
    """The most records that a consumer retains (PREFETCH-06); `most_fetched` is what a fetch of a partition brings."""
    per_partition = {
        Prefetch.SHARE: -(-limit // partitions) - 1,
        Prefetch.INTEGER_SHARE: max(0, limit // partitions - 1),
        Prefetch.EMPTY: 0,
    }
    if prefetch is Prefetch.TOTAL:
        return limit - 1 + partitions * most_fetched
    return partitions * (per_partition[prefetch] + most_fetched)


@dataclass(frozen=True, slots=True)
class ObservedPoll:
    """A poll: the records buffered of each partition when it began, and how many of each it returned."""

    buffered: tuple[int, ...]
    returned: tuple[int, ...]
    fetched: frozenset[int] | None = None
    """The partitions for which fetches were sent as the poll returned; None if that was not seen."""


GREEDY = {Draining.AFTER: Resume.AFTER, Draining.AT: Resume.AT, Draining.START: Resume.START}


def find_broken_polls(polls: Sequence[ObservedPoll], limit: int) -> Iterator[str]:
    """A sentence for each poll that no way to drain allows, whatever its order of partitions (POLL-01, -02, -04)."""
    for number, poll in enumerate(polls, 1):
        total, available = sum(poll.returned), sum(poll.buffered)
        if total > limit:
            yield f"poll {number} returns {total} records, at most {limit} are allowed"
        for position, (count, held) in enumerate(zip(poll.returned, poll.buffered, strict=True)):
            if count > held:
                yield f"poll {number} returns {count} records of partition {position}, of which {held} are buffered"
        if total < min(limit, available):
            yield f"poll {number} returns {total} records, although {available} are buffered and {limit} are allowed"


def explain_polls(polls: Sequence[ObservedPoll], limit: int) -> frozenset[Draining]:
    """The ways to drain that the polls agree with, from some place of the cursor on.

    QUEUE is not among them, for it has no fixed order of partitions; between refills it drains as AT does.
    """
    if not polls:
        return frozenset(GREEDY) | {Draining.EQUAL}
    size = len(polls[0].buffered)
    return frozenset(
        draining
        for draining in (*GREEDY, Draining.EQUAL)
        if any(_explains(draining, polls, limit, cursor) for cursor in range(size))
    )


def _explains(draining: Draining, polls: Sequence[ObservedPoll], limit: int, cursor: int) -> bool:
    for poll in polls:
        ring = Ring(len(poll.buffered), limit, PlainBuffers(poll.buffered), cursor)
        after = run_fair_poll(ring) if draining is Draining.EQUAL else run_poll(ring, GREEDY[draining])
        returned = tuple(held - after.buffers[position] for position, held in enumerate(poll.buffered))
        if returned != poll.returned:
            return False
        cursor = after.cursor
    return True


def longest_waits(polls: Sequence[ObservedPoll]) -> tuple[int, ...]:
    """For each partition: the most polls in a row that returned nothing of it while records of it were buffered."""
    if not polls:
        return ()
    waits, longest = [0] * len(polls[0].buffered), [0] * len(polls[0].buffered)
    for poll in polls:
        for position, (count, held) in enumerate(zip(poll.returned, poll.buffered, strict=True)):
            waits[position] = waits[position] + 1 if held and not count else 0
            longest[position] = max(longest[position], waits[position])
    return tuple(longest)


def find_starvation(polls: Sequence[ObservedPoll], most_polls: int) -> Iterator[str]:
    """A sentence for each partition that waits longer than a bound allows (POLL-05, -06).

    `most_polls` is the number of the poll by which a partition has to be served: `bounds.latest_poll`, or the number
    of partitions for a fetcher that goes on after the partition visited last.
    """
    for position, waited in enumerate(longest_waits(polls)):
        if waited >= most_polls:
            yield f"partition {position} is not served by {waited} polls in a row, it has to be by poll {most_polls}"


def explain_fetches(polls: Sequence[ObservedPoll], limit: int) -> frozenset[Prefetch]:
    """The prefetch rules that all fetches agree with: none is sent that the rule does not allow, none is left out."""
    found = set(Prefetch)
    for poll in polls:
        if poll.fetched is None:
            continue
        held = PlainBuffers(before - count for before, count in zip(poll.buffered, poll.returned, strict=True))
        ring = Ring(len(held), limit, held)
        for rule in tuple(found):
            wanted = {each for each in range(len(held)) if should_fetch(rule, ring, each, sum(held))}
            if wanted != poll.fetched:
                found.discard(rule)
    return frozenset(found)
