"""Draining and prefetching: KIP-41's vectors, its example, and the bounds on how long a buffered partition waits."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.model.draining.non_theorems import (
    FALSE_CLAIMS,
    FalseClaim,
    Schedule,
    delays_b,
    example,
    first_poll_of_b,
    starves_b,
)
from fencepost.model.draining.polling import (
    PlainBuffers,
    Prefetch,
    Resume,
    Ring,
    add_fetched,
    add_partition,
    drop_partition,
    refill_buffers,
    run_poll,
    share_equally,
    should_fetch,
)

Supply = Callable[[int, int], int]
"""How many records a fetch brings, by poll (the first is 1) and position."""
NEVER: Supply = lambda poll, position: 0  # noqa: E731
AFTER, AT, START = Resume.AFTER, Resume.AT, Resume.START


def simulate_polls(ring: Ring, resume: Resume, prefetch: Prefetch, supply: Supply) -> Iterator[tuple[int, ...]]:
    """What each poll returns, by position, when every fetch is answered before the next poll; without end."""
    for number in count(1):
        before, ring = ring, run_poll(ring, resume)
        yield tuple(before.buffers[position] - ring.buffers[position] for position in range(ring.partitions))
        ring = refill_buffers(ring, prefetch, partial(supply, number))


def first_polls(held: tuple[int, ...], limit: int, resume: Resume, count: int) -> list[tuple[int, ...]]:
    """What the first polls return if nothing more is fetched."""
    return list(
        islice(simulate_polls(Ring(len(held), limit, PlainBuffers(held)), resume, Prefetch.EMPTY, NEVER), count)
    )


@pytest.mark.parametrize(
    ("held", "limit", "resume", "expected"),
    [
        ((1000, 1000, 1000), 300, AFTER, [(300, 0, 0), (0, 300, 0), (0, 0, 300), (300, 0, 0)]),
        (
            (1000, 1000, 1000),
            300,
            AT,
            [(300, 0, 0)] * 3 + [(100, 200, 0), (0, 300, 0), (0, 300, 0), (0, 200, 100)],
        ),
        ((100, 150, 500), 300, AFTER, [(100, 150, 50), (0, 0, 300), (0, 0, 150)]),
        ((100, 150, 500), 300, AT, [(100, 150, 50), (0, 0, 300), (0, 0, 150)]),
        ((300, 1, 1), 300, AFTER, [(300, 0, 0)]),
        ((3, 3), 2, AFTER, [(2, 0), (0, 2), (1, 1)]),
        ((3, 3), 2, AT, [(2, 0), (1, 1), (0, 2)]),
        ((3, 3), 2, START, [(2, 0), (1, 1), (0, 2)]),
        ((0, 0), 2, AFTER, [(0, 0)]),
    ],
    ids=lambda each: getattr(each, "value", None),
)
def test_vectors_of_polls(held: tuple[int, ...], limit: int, resume: Resume, expected: list[tuple[int, ...]]) -> None:
    assert first_polls(held, limit, resume, len(expected)) == expected


def first_poll_with_b(resume: Resume, prefetch: Prefetch, *, a_goes_on: bool) -> int | None:
    """KIP-41's example: polls of 1 record, A has 1000 and B none at the first fetch; B has data right after."""
    ring = Ring(2, 1, PlainBuffers((1000, 0)))
    supply: Supply = lambda poll, position: 1000 if position == 1 or a_goes_on else 0  # noqa: E731
    responses = islice(simulate_polls(ring, resume, prefetch, supply), 5_000)
    return next((number for number, (_, of_b) in enumerate(responses, 1) if of_b), None)


@pytest.mark.parametrize("a_goes_on", [False, True])
@pytest.mark.parametrize(
    ("resume", "prefetch", "once", "for_ever"),
    [
        (AFTER, Prefetch.TOTAL, 1001, 1001),
        (AFTER, Prefetch.SHARE, 2, 2),
        (AT, Prefetch.TOTAL, 1001, 1001),
        (AT, Prefetch.SHARE, 1001, 1001),
        (START, Prefetch.TOTAL, 1001, 2001),
        (START, Prefetch.SHARE, 1001, None),
        (AFTER, Prefetch.INTEGER_SHARE, None, None),
        (AFTER, Prefetch.EMPTY, 2, 2),
    ],
    ids=lambda each: getattr(each, "value", None),
)
def test_the_example_of_kip_41(
    resume: Resume, prefetch: Prefetch, once: int | None, for_ever: int | None, a_goes_on: bool
) -> None:
    assert first_poll_with_b(resume, prefetch, a_goes_on=a_goes_on) == (for_ever if a_goes_on else once)


@pytest.mark.parametrize(
    ("prefetch", "limit", "held", "expected"),
    [
        (Prefetch.SHARE, 300, (99, 100, 0), (True, False, True)),
        (Prefetch.TOTAL, 300, (100, 0, 0), (True, True, True)),
        (Prefetch.TOTAL, 300, (100, 200, 0), (False, False, False)),
        (Prefetch.EMPTY, 300, (1, 0, 0), (False, True, True)),
        (Prefetch.SHARE, 1, (0, 0, 1), (True, True, False)),
        (Prefetch.INTEGER_SHARE, 1, (0, 0, 0), (False, False, False)),
    ],
    ids=lambda each: getattr(each, "value", None),
)
def test_vectors_of_prefetching(
    prefetch: Prefetch, limit: int, held: tuple[int, ...], expected: tuple[bool, ...]
) -> None:
    ring = Ring(3, limit, PlainBuffers(held))
    assert tuple(should_fetch(prefetch, ring, position, sum(held)) for position in range(3)) == expected


RINGS = st.tuples(
    st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 6), st.integers(0, 4), st.integers(0, 4)
).map(lambda each: (tuple(each[0]), each[1], each[2] % len(each[0]), each[3] % len(each[0])))
"""Buffers, limit, cursor and tracked partition."""


@given(RINGS, st.data())
def test_after_serves_within_the_distance_whatever_is_fetched(
    drawn: tuple[tuple[int, ...], int, int, int], data: st.DataObject
) -> None:
    held, limit, cursor, tracked = drawn
    ring = Ring(len(held), limit, PlainBuffers(held).put(tracked, max(1, held[tracked])), cursor)
    distance = (tracked - cursor) % len(held)
    for _ in range(distance + 1):
        after = run_poll(ring, AFTER)
        if after.buffers[tracked] < ring.buffers[tracked]:
            return
        ring = after
        for position in range(len(held)):
            ring = add_fetched(ring, position, data.draw(st.integers(0, 9)))
    pytest.fail("not served")


@given(RINGS)
def test_without_refills_at_serves_exactly_when_those_ahead_are_gone(
    drawn: tuple[tuple[int, ...], int, int, int],
) -> None:
    held, limit, cursor, tracked = drawn
    buffers = PlainBuffers(held).put(tracked, max(1, held[tracked]))
    places = [(cursor + step) % len(held) for step in range((tracked - cursor) % len(held))]
    ahead, busy = sum(buffers[place] for place in places), sum(buffers[place] > 0 for place in places)

    def first(resume: Resume) -> int:
        responses = simulate_polls(Ring(len(held), limit, buffers, cursor), resume, Prefetch.EMPTY, NEVER)
        return next(number for number, response in enumerate(responses, 1) if response[tracked])

    assert first(AT) == ahead // limit + 1
    assert first(AFTER) <= min(busy, ahead // limit) + 1


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_the_bound_of_after_is_tight(partitions: int) -> None:
    responses = first_polls((300,) * partitions, 300, AFTER, partitions)
    assert [response[-1] > 0 for response in responses] == [False] * (partitions - 1) + [True]


@pytest.mark.parametrize(
    ("resume", "prefetch", "limit", "held", "brings"),
    [
        (AT, Prefetch.TOTAL, 300, (350, 10), 1000),
        (AT, Prefetch.SHARE, 300, (1000, 10), 900),
        (AT, Prefetch.TOTAL, 3, (7, 1), 6),
        (START, Prefetch.EMPTY, 1, (1, 1), 1),
    ],
)
def test_schedules_that_starve(
    resume: Resume, prefetch: Prefetch, limit: int, held: tuple[int, int], brings: int
) -> None:
    supply: Supply = lambda poll, position: brings if position == 0 else 0  # noqa: E731
    ring = Ring(2, limit, PlainBuffers(held))
    assert not any(of_b for _, of_b in islice(simulate_polls(ring, resume, prefetch, supply), 1_000))
    assert list(islice(simulate_polls(ring, AFTER, prefetch, supply), 2))[1][1]


# --- equal shares, changes of the ring, and what is false


@pytest.mark.parametrize(
    ("records", "limit", "expected"),
    [
        ((1000, 1000, 1000), 300, (100, 100, 100)),
        ((1000, 1000, 0), 300, (150, 150, 0)),
        ((50, 1000, 1000), 300, (50, 125, 125)),
        ((10, 20, 30), 300, (10, 20, 30)),
        ((5, 5, 5), 4, (2, 1, 1)),
        ((5, 5, 5), 2, (1, 1, 0)),
        ((0, 0), 5, (0, 0)),
    ],
)
def test_vectors_of_equal_shares(records: tuple[int, ...], limit: int, expected: tuple[int, ...]) -> None:
    """V-POLL-5, and what KIP-41 says of unused shares."""
    assert share_equally(records, limit) == expected


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(1, 40))
def test_shares_are_as_equal_as_can_be(records: list[int], limit: int) -> None:
    taken = share_equally(records, limit)
    assert sum(taken) == min(limit, sum(records))
    for one, held in zip(taken, records, strict=True):
        assert 0 <= one <= held
        assert one == held or all(other <= one + 1 for other in taken)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7])
def test_a_greedy_poll_is_no_farther_from_equal_shares_than_the_bound(limit: int) -> None:
    reached: dict[int, int] = {}
    for records in product(range(limit + 2), repeat=3):
        ring = Ring(3, limit, PlainBuffers(records))
        after = run_poll(ring, Resume.AFTER)
        greedy = [held - after.buffers[place] for place, held in enumerate(records)]
        misplaced = sum(max(0, one - other) for one, other in zip(greedy, share_equally(records, limit), strict=True))
        busy = sum(held > 0 for held in records)
        if busy:
            assert misplaced <= limit - -(-limit // busy)
            reached[busy] = max(reached.get(busy, 0), misplaced)
    assert reached == {busy: limit - -(-limit // busy) for busy in (1, 2, 3)}


@given(
    held=st.lists(st.integers(0, 5), min_size=2, max_size=5),
    changes=st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 5)), max_size=12),
)
def test_a_partition_is_served_in_time_whatever_comes_and_goes(
    held: list[int], changes: list[tuple[bool, int, int]]
) -> None:
    """The tracked one is the last. There is at most one change between two polls."""
    ring, tracked = Ring(len(held), 2, PlainBuffers([*held[:-1], 3])), len(held) - 1
    bound = len(held)
    for number, (comes, place, records) in enumerate([*changes, *((False, 0, 0),) * 20], 1):
        polled = run_poll(ring, Resume.AFTER)
        if polled.buffers[tracked] < ring.buffers[tracked]:
            assert number <= bound
            return
        ring = polled
        if comes:
            position = place % (ring.partitions + 1)
            ring, tracked, bound = add_partition(ring, position, records), tracked + (position <= tracked), bound + 1
        elif ring.partitions > 1 and place % ring.partitions != tracked:
            position = place % ring.partitions
            ring, tracked = drop_partition(ring, position), tracked - (position < tracked)
    pytest.fail("not served")


@pytest.mark.parametrize("false", FALSE_CLAIMS, ids=lambda false: false.id)
def test_each_false_claim_has_a_schedule(false: FalseClaim) -> None:
    assert false.show()


def test_what_a_schedule_shows_depends_on_the_rule() -> None:
    """Going on after the partition visited last, the same schedules serve B in the second poll."""
    for schedule in (
        Schedule(300, (350, 10), Resume.AFTER, Prefetch.TOTAL, of_a=1000),
        Schedule(300, (1000, 10), Resume.AFTER, Prefetch.SHARE, of_a=900),
        Schedule(1, (1, 1), Resume.AFTER, Prefetch.EMPTY, of_a=1),
    ):
        assert first_poll_of_b(schedule) == 2
        assert starves_b(schedule)() is None
    assert first_poll_of_b(example(Resume.AFTER, Prefetch.SHARE)) == 2
    assert delays_b(example(Resume.AFTER, Prefetch.SHARE), 1001)() is None
