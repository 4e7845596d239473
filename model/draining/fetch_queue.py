"""The queue of completed fetches: the one that today's Java client drains (KIP-41 as it was built, KAFKA-3007).

Each response to a fetch adds, at the tail, the records of each partition that has some. A poll drains the head, then
the next, until it has its limit. While records of a partition are in the queue, no fetch is sent for it.
"""

from collections.abc import Iterable
from dataclasses import dataclass


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
