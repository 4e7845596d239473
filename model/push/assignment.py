"""Which consumer gets which partitions: ranges over the threads of each topic, as the coordinator computes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fencepost.model.frozen import fast_frozen
from fencepost.model.logic import Token


@fast_frozen
@dataclass(frozen=True, slots=True)
class Share:
    """What one registration of a consumer is to fetch."""

    consumer: Token
    number: int
    partitions: tuple[Token, ...]


def assign_ranges(partitions: Sequence[Token], threads: Mapping[Token, int]) -> dict[Token, tuple[Token, ...]]:
    """The partitions of a topic by consumer: contiguous ranges over all threads, in the order of `threads`.

    The first threads get one more where the division leaves a rest (draft, 7 step 1.3, leaves the rule open; this is
    the range rule of the consumers of that time).
    """
    slots = [consumer for consumer, count in threads.items() for _ in range(count)]
    shares: dict[Token, tuple[Token, ...]] = dict.fromkeys(threads, ())
    if not slots:
        return shares
    size, rest = divmod(len(partitions), len(slots))
    start = 0
    for place, consumer in enumerate(slots):
        end = start + size + (place < rest)
        shares[consumer] += tuple(partitions[start:end])
        start = end
    return shares


def owners_of(shares: Sequence[Share], partitions: Sequence[Token]) -> tuple[Token, ...]:
    """The owner of each partition in this order, None of one that nobody got."""
    owner = {partition: share.consumer for share in shares for partition in share.partitions}
    return tuple(owner.get(partition) for partition in partitions)
