"""The proportional ideal of KIP-41: a poll divides its limit equally over the partitions that have records."""

from collections.abc import Sequence

from fencepost.model.draining.polling import PlainBuffers, Ring
from fencepost.model.frozen import evolve


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
