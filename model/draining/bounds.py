"""How long a partition with buffered records can wait, and how much a consumer can retain: member.md 6.3 and 6.7."""

from enum import Enum

from fencepost.model.draining.polling import Prefetch, Ring


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
