"""A fetcher held against the models: polls that were seen, and the ways to drain that explain them.

The partitions are positions in an order that the fetcher keeps, for instance the order of assignment.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fencepost.model.draining.bounds import Draining
from fencepost.model.draining.fair_share import run_fair_poll
from fencepost.model.draining.polling import PlainBuffers, Prefetch, Resume, Ring, run_poll, should_fetch


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
