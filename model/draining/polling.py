"""How a consumer hands out fetched records: `max.poll.records`, draining and prefetching (KIP-41).

The assigned partitions form a ring. A poll visits them from a cursor on, each at most once, and takes from each
what is left of its limit. One visit is one step, so that the theorems can speak of any number of partitions: these
functions run on plain numbers and, in the proofs, on symbolic ones.

Beside that stands the proportional ideal of KIP-41, by which a poll divides its limit equally over the partitions that
have records.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
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
