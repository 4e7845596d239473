"""False claims about KIP-41's rules, each with a schedule that shows it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fencepost.model.draining.polling import (
    PlainBuffers,
    Prefetch,
    Resume,
    Ring,
    may_send_fetch,
    refill_buffers,
    run_poll,
    share_equally,
)


@dataclass(frozen=True, slots=True)
class FalseClaim:
    """A claim that is false, why, and what its schedule shows: a sentence, or None if the claim withstands it."""

    id: str
    sentence: str
    reason: str
    show: Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Two partitions A and B, polls of `limit` records and fetches that bring `of_a` and `of_b` records each time."""

    limit: int
    held: tuple[int, int]
    resume: Resume
    prefetch: Prefetch
    of_a: int = 0
    of_b: int = 0

    def rings(self) -> Iterator[Ring]:
        """The ring before each poll."""
        ring = Ring(2, self.limit, PlainBuffers(self.held))
        while True:
            yield ring
            ring = refill_buffers(run_poll(ring, self.resume), self.prefetch, (self.of_a, self.of_b).__getitem__)


def first_poll_of_b(schedule: Schedule) -> int | None:
    """The number of the poll that serves B first; None if the schedule comes back to where it was before, for ever."""
    seen: set[tuple[int, int, int]] = set()
    for number, ring in enumerate(schedule.rings(), 1):
        held = (ring.buffers[0], ring.buffers[1], ring.cursor)
        if held in seen:
            return None
        seen.add(held)
        if run_poll(ring, schedule.resume).buffers[1] < ring.buffers[1]:
            return number
    raise AssertionError("a schedule has no end")


def starves_b(schedule: Schedule) -> Callable[[], str | None]:
    """What the schedule shows if it never serves B, although records of B are buffered all the time."""

    def show() -> str | None:
        if first_poll_of_b(schedule) is not None:
            return None
        a, b = schedule.held
        return (
            f"polls of {schedule.limit}, A holds {a} and B {b}, each fetch brings {schedule.of_a} of A: the same"
            " buffers come again and again, and no poll serves B"
        )

    return show


def delays_b(schedule: Schedule, least: int) -> Callable[[], str | None]:
    """What the schedule shows if B is not served before poll `least`."""

    def show() -> str | None:
        number = first_poll_of_b(schedule)
        if number is None or number < least:
            return None
        return (
            f"polls of {schedule.limit}, A holds {schedule.held[0]} and B nothing yet: poll {number:,} serves B first"
        )

    return show


def is_never_fetched() -> str | None:
    """Nothing is buffered, and nothing is fetched."""
    schedule = Schedule(1, (0, 0), Resume.AFTER, Prefetch.INTEGER_SHARE, 9, 9)
    rings = schedule.rings()
    first, second = next(rings), next(rings)
    return "polls of 1, two empty partitions: no fetch is ever sent" if first.buffers == second.buffers else None


IDEAL_BUFFERS = ((1000, 1000, 1000), (1000, 1000, 0))
"""KIP-41's two cases of proportional polls: three partitions with records, and two of them."""


def is_unequal() -> str | None:
    """A greedy poll of 300 next to equal shares, in both cases of KIP-41."""
    shown = []
    for held in IDEAL_BUFFERS:
        after = run_poll(Ring(3, 300, PlainBuffers(held)), Resume.AFTER)
        taken = tuple(before - after.buffers[place] for place, before in enumerate(held))
        equal = share_equally(held, 300)
        if taken == equal:
            return None
        shown.append(f"with {held} buffered it returns {taken}, not {equal}")
    return f"a poll of 300: {', and '.join(shown)}"


def is_withheld() -> str | None:
    """An empty partition whose leader has not answered another fetch."""
    ring = Ring(2, 1, PlainBuffers((5, 0)))
    if may_send_fetch(Prefetch.SHARE, ring, 1, 5, leader_is_busy=True):
        return None
    return "B is empty, and its leader has not answered a fetch for A: no fetch for B is sent"


def is_reset_by_rebalances() -> str | None:
    """A cursor that begins at the first partition after each rebalance, and a rebalance between any two polls."""
    ring = Ring(2, 1, PlainBuffers((9, 9)))
    for _ in range(5):
        polled = run_poll(ring, Resume.START)
        if polled.buffers[1] < ring.buffers[1]:
            return None
        ring = refill_buffers(polled, Prefetch.SHARE, lambda position: 1)
    return "polls of 1, A and B hold 9 each, a rebalance after each poll begins the ring anew: every poll serves A"


EXAMPLE = Schedule(1, (1000, 0), Resume.AFTER, Prefetch.TOTAL, of_b=1000)
"""KIP-41's own: the first fetch brought 1,000 records of A, and B has data right after it."""


def example(resume: Resume, prefetch: Prefetch) -> Schedule:
    """KIP-41's example under these rules."""
    return Schedule(EXAMPLE.limit, EXAMPLE.held, resume, prefetch, of_b=EXAMPLE.of_b)


FALSE_CLAIMS = (
    FalseClaim(
        "draining.begin-there",
        "If the next poll begins where the last one left off, every buffered partition is served.",
        "the partition left off is refilled before it is empty, below max.poll.records in total",
        starves_b(Schedule(300, (350, 10), Resume.AT, Prefetch.TOTAL, of_a=1000)),
    ),
    FalseClaim(
        "draining.begin-there-share",
        "If fetches are sent below the share of a poll too, every buffered partition is served.",
        "the partition left off is refilled before it is empty, below its share as well",
        starves_b(Schedule(300, (1000, 10), Resume.AT, Prefetch.SHARE, of_a=900)),
    ),
    FalseClaim(
        "draining.fixed-order",
        "If every poll begins with the first partition, every buffered partition is served.",
        "the first partition always has records again",
        starves_b(Schedule(1, (1, 1), Resume.START, Prefetch.EMPTY, of_a=1)),
    ),
    FalseClaim(
        "draining.example-total",
        "Fetching below max.poll.records in total serves B of KIP-41's example before A is empty.",
        "nothing is fetched until A is empty, whatever the cursor",
        delays_b(example(Resume.AFTER, Prefetch.TOTAL), 1001),
    ),
    FalseClaim(
        "draining.example-share",
        "Fetching below the share of a poll serves B of KIP-41's example before A is empty.",
        "B is fetched at once, but polls begin with A until it is empty; going on after it serves B in poll 2",
        delays_b(example(Resume.AT, Prefetch.SHARE), 1001),
    ),
    FalseClaim(
        "draining.share-in-integers",
        "The share of a poll may be computed in integers.",
        "with more partitions than records in a poll it is 0",
        is_never_fetched,
    ),
    FalseClaim(
        "draining.equal-poll",
        "A greedy poll returns equal shares.",
        "it takes all it can from the first partition",
        is_unequal,
    ),
    FalseClaim(
        "draining.fetched-when-empty",
        "An empty partition is fetched as the poll returns.",
        "its leader has not answered the fetch before",
        is_withheld,
    ),
    FalseClaim(
        "draining.reset-by-rebalances",
        "A rebalance may begin the ring anew.",
        "with a rebalance after each poll it is the fixed order",
        is_reset_by_rebalances,
    ),
)
