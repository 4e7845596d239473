"""Draining and prefetching: KIP-41's vectors, its example, and the bounds on how long a buffered partition waits."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.model.draining.polling import (
    PlainBuffers,
    Prefetch,
    Resume,
    Ring,
    Supply,
    add_fetched,
    run_poll,
    should_fetch,
    simulate_polls,
)

NEVER: Supply = lambda poll, position: 0  # noqa: E731
AFTER, AT, START = Resume.AFTER, Resume.AT, Resume.START


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


def first_poll_of_b(resume: Resume, prefetch: Prefetch, *, a_goes_on: bool) -> int | None:
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
    assert first_poll_of_b(resume, prefetch, a_goes_on=a_goes_on) == (for_ever if a_goes_on else once)


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
