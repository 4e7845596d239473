"""How a consumer hands out fetched records: `max.poll.records`, draining and prefetching (KIP-41).

The assigned partitions form a ring. A poll visits them from a cursor on, each at most once, and takes from each
what is left of its limit. One visit is one step, so that the theorems can speak of any number of partitions: these
functions run on plain numbers and, in the proofs, on symbolic ones.

Beside that stand the proportional ideal of KIP-41, by which a poll divides its limit equally over the partitions that
have records, and the queue of completed fetches that today's Java client drains (KAFKA-3007). Each response to a fetch
adds, at the tail of that queue, the records of each partition that has some. A poll drains the head, then the next,
until it has its limit. While records of a partition are in the queue, no fetch is sent for it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Protocol, Self

from fencepost.model.frozen import evolve
from fencepost.model.logic import Truth, and_, ite, not_


class Resume(Enum):
    """Where the next poll starts. Always from the start is not KIP-41's rule; it is the one that starves."""

    AFTER = "after"
    """After the partition visited last."""
    AT = "at"
    """At the partition visited last if records of it are left (what today's Java client does in effect)."""
    START = "start"
    """At the first partition, always: an iteration over a map in its fixed order."""


class Prefetch(Enum):
    """When fetches are sent as a poll returns: the two heuristics of KIP-41, today's rule, and a trap."""

    TOTAL = "total"
    """For every partition if fewer records are retained in total than a poll may return."""
    SHARE = "share"
    """For a partition that retains less than its share of a poll, as a rational number."""
    INTEGER_SHARE = "integer-share"
    """SHARE in integer division: with more partitions than records in a poll the share is 0, and nothing is fetched."""
    EMPTY = "empty"
    """For a partition of which nothing is retained."""


class Buffers(Protocol):
    """Records retained, by position in the ring."""

    def __getitem__(self, position: int, /) -> int:
        """How many records are retained of this partition."""
        ...

    def put(self, position: int, records: int, /) -> Self:
        """The buffers with this many records of this partition."""
        ...

    def insert(self, position: int, records: int, /) -> Self:
        """The buffers with another partition at this position; those from there on move up by one."""
        ...

    def drop(self, position: int, /) -> Self:
        """The buffers without the partition at this position; those behind it move down by one."""
        ...


class PlainBuffers(tuple[int, ...]):
    """Buffers of plain numbers."""

    __slots__ = ()

    def put(self, position: int, records: int, /) -> "PlainBuffers":
        """The buffers with this many records of this partition."""
        return PlainBuffers((*self[:position], records, *self[position + 1 :]))

    def insert(self, position: int, records: int, /) -> "PlainBuffers":
        """The buffers with another partition at this position; those from there on move up by one."""
        return PlainBuffers((*self[:position], records, *self[position:]))

    def drop(self, position: int, /) -> "PlainBuffers":
        """The buffers without the partition at this position; those behind it move down by one."""
        return PlainBuffers((*self[:position], *self[position + 1 :]))


@dataclass(frozen=True, slots=True)
class Ring:
    """The assigned partitions, what is buffered of them, and how far the present poll has come."""

    partitions: int
    limit: int
    """`max.poll.records`, at least 1, over all partitions together."""
    buffers: Buffers
    cursor: int = 0
    budget: int = 0
    """Records that the present poll may still take."""
    visited: int = 0
    """Partitions that the present poll has visited."""


def begin_poll(ring: Ring, resume: Resume) -> Ring:
    """The ring at the beginning of a poll."""
    cursor = 0 if resume is Resume.START else ring.cursor
    return evolve(ring, cursor=cursor, budget=ring.limit, visited=0)


def is_poll_unfinished(ring: Ring) -> Truth:
    """The poll has records to take and partitions to visit."""
    return and_(ring.budget > 0, ring.visited < ring.partitions)


def next_position(ring: Ring, position: int) -> int:
    """The next position in the ring."""
    return ite(position + 1 < ring.partitions, position + 1, 0)


def visit(ring: Ring, resume: Resume) -> Ring:
    """Take from the partition at the cursor and go on to the next."""
    held = ring.buffers[ring.cursor]
    taken = ite(held <= ring.budget, held, ring.budget)
    rest = held - taken
    onward = next_position(ring, ring.cursor)
    return evolve(
        ring,
        buffers=ring.buffers.put(ring.cursor, rest),
        cursor=ite(rest > 0, ring.cursor, onward) if resume is Resume.AT else onward,
        budget=ring.budget - taken,
        visited=ring.visited + 1,
    )


def add_fetched(ring: Ring, position: int, records: int) -> Ring:
    """More records of a partition have arrived."""
    return evolve(ring, buffers=ring.buffers.put(position, ring.buffers[position] + records))


def add_partition(ring: Ring, position: int, records: int) -> Ring:
    """The ring after a partition was assigned, or resumed with what is retained of it: between two polls.

    The next poll still begins with the partition that it would have begun with.
    """
    onward = ite(position <= ring.cursor, ring.cursor + 1, ring.cursor)
    buffers = ring.buffers.insert(position, records)
    return evolve(ring, partitions=ring.partitions + 1, buffers=buffers, cursor=onward)


def drop_partition(ring: Ring, position: int) -> Ring:
    """The ring after a partition was revoked or paused, of at least two: between two polls.

    If the next poll would have begun with it, it begins with the one behind it.
    """
    shifted = ite(position < ring.cursor, ring.cursor - 1, ring.cursor)
    cursor = ite(shifted < ring.partitions - 1, shifted, 0)
    return evolve(ring, partitions=ring.partitions - 1, buffers=ring.buffers.drop(position), cursor=cursor)


def may_send_fetch(prefetch: Prefetch, ring: Ring, position: int, retained: int, leader_is_busy: Truth) -> Truth:
    """A fetch for this partition is sent: the rule allows it, and its leader has answered the fetch before (KIP-41)."""
    return and_(not_(leader_is_busy), should_fetch(prefetch, ring, position, retained))


def should_fetch(prefetch: Prefetch, ring: Ring, position: int, retained: int) -> Truth:
    """A fetch for this partition may be sent as the poll returns; `retained` counts the records of all partitions."""
    held = ring.buffers[position]
    if prefetch is Prefetch.TOTAL:
        return retained < ring.limit
    if prefetch is Prefetch.SHARE:
        return held * ring.partitions < ring.limit
    if prefetch is Prefetch.INTEGER_SHARE:
        return held < ring.limit // ring.partitions
    return held == 0


def run_poll(ring: Ring, resume: Resume) -> Ring:
    """The ring after a whole poll; the number of partitions has to be a plain number."""
    ring = begin_poll(ring, resume)
    for _ in range(ring.partitions):
        ring = ite(is_poll_unfinished(ring), visit(ring, resume), ring)
    return ring


def refill_buffers(ring: Ring, prefetch: Prefetch, brings: Callable[[int], int]) -> Ring:
    """The ring after the fetches that a returning poll sends were answered; `brings` says with how many records."""
    retained = 0
    for position in range(ring.partitions):
        retained = retained + ring.buffers[position]
    after = ring
    for position in range(ring.partitions):
        wanted = should_fetch(prefetch, ring, position, retained)
        after = ite(wanted, add_fetched(after, position, brings(position)), after)
    return after


Supply = Callable[[int, int], int]
"""How many records a fetch brings, by poll (the first is 1) and position."""


def simulate_polls(ring: Ring, resume: Resume, prefetch: Prefetch, supply: Supply) -> Iterator[tuple[int, ...]]:
    """What each poll returns, by position, when every fetch is answered before the next poll; without end."""
    number = 0
    while True:
        number += 1
        before, ring = ring, run_poll(ring, resume)
        positions = range(ring.partitions)
        yield tuple(before.buffers[position] - ring.buffers[position] for position in positions)
        ring = refill_buffers(ring, prefetch, partial(supply, number))


def share_equally(records: Sequence[int], limit: int) -> tuple[int, ...]:
    """How many records of each partition a poll returns, the partitions in the order of the poll.

    Each gets an equal share of `limit`. Whatever a partition cannot use is shared by the others, and what is left of a
    division goes to the first of them, one record each.
    """
    taken = [0] * len(records)
    left = min(limit, sum(records))
    while left:
        open_places = [place for place, count in enumerate(records) if taken[place] < count]
        share, extra = divmod(left, len(open_places))
        for number, place in enumerate(open_places):
            more = min(records[place] - taken[place], share + (number < extra))
            taken[place] += more
            left -= more
    return tuple(taken)


def run_fair_poll(ring: Ring) -> Ring:
    """The ring of plain buffers after a poll that shares equally.

    Where the limit is too small for a record of each, the next poll goes on after the last partition it served.
    """
    positions = [(ring.cursor + step) % ring.partitions for step in range(ring.partitions)]
    taken = share_equally([ring.buffers[position] for position in positions], ring.limit)
    left = list(PlainBuffers(ring.buffers[position] for position in range(ring.partitions)))
    cursor = ring.cursor
    for position, count in zip(positions, taken, strict=True):
        left[position] -= count
        if count:
            cursor = (position + 1) % ring.partitions
    return evolve(ring, buffers=PlainBuffers(left), cursor=cursor, budget=ring.limit - sum(taken), visited=len(taken))


@dataclass(frozen=True, slots=True)
class CompletedFetch:
    """The records of one partition that came with one response, at least one."""

    partition: int
    records: int


@dataclass(frozen=True, slots=True)
class FetchQueue:
    """Completed fetches in the order in which they are drained; of the first, part may be gone."""

    limit: int
    """`max.poll.records`, at least 1."""
    fetches: tuple[CompletedFetch, ...] = ()


def add_completed(queue: FetchQueue, fetches: Iterable[CompletedFetch]) -> FetchQueue:
    """The queue with the fetches of a response at its tail; those without records are dropped."""
    return FetchQueue(queue.limit, (*queue.fetches, *(fetch for fetch in fetches if fetch.records)))


def drain_queue(queue: FetchQueue) -> tuple[tuple[CompletedFetch, ...], FetchQueue]:
    """What a poll returns, in this order, and the queue after it."""
    taken: list[CompletedFetch] = []
    budget = queue.limit
    for place, fetch in enumerate(queue.fetches):
        count = min(budget, fetch.records)
        taken.append(CompletedFetch(fetch.partition, count))
        budget -= count
        if not budget:
            rest = CompletedFetch(fetch.partition, fetch.records - count)
            left = queue.fetches[place + 1 :]
            return tuple(taken), FetchQueue(queue.limit, (rest, *left) if rest.records else left)
    return tuple(taken), FetchQueue(queue.limit)


def is_fetchable(queue: FetchQueue, partition: int) -> bool:
    """Whether a fetch may be sent for the partition: nothing of it is in the queue (PREFETCH-11)."""
    return all(fetch.partition != partition for fetch in queue.fetches)


def records_ahead(queue: FetchQueue, partition: int) -> int:
    """The records in the queue before the first of the partition; all of them if it has none."""
    ahead = 0
    for fetch in queue.fetches:
        if fetch.partition == partition:
            break
        ahead += fetch.records
    return ahead
