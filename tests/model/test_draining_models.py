"""The proportional ideal, the queue of completed fetches, and the bounds."""

from collections.abc import Callable
from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.model.draining.bounds import (
    Draining,
    Refills,
    latest_poll,
    most_misplaced,
    most_retained,
    polls_before_fetch,
)
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
    CompletedFetch,
    FetchQueue,
    PlainBuffers,
    Prefetch,
    Resume,
    Ring,
    add_completed,
    add_fetched,
    add_partition,
    drain_queue,
    drop_partition,
    is_fetchable,
    records_ahead,
    refill_buffers,
    run_fair_poll,
    run_poll,
    share_equally,
    simulate_polls,
)

RUN: dict[Draining, Callable[[Ring], Ring]] = {
    Draining.AFTER: lambda ring: run_poll(ring, Resume.AFTER),
    Draining.AT: lambda ring: run_poll(ring, Resume.AT),
    Draining.START: lambda ring: run_poll(ring, Resume.START),
    Draining.EQUAL: run_fair_poll,
}
RINGS = st.tuples(
    st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 6), st.integers(0, 4), st.integers(0, 4)
).map(
    lambda each: (
        Ring(
            len(each[0]),
            each[1],
            PlainBuffers(each[0]).put(each[3] % len(each[0]), max(1, each[0][each[3] % len(each[0])])),
            each[2] % len(each[0]),
        ),
        each[3] % len(each[0]),
    )
)
"""A ring, and a partition of it that has records."""


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


def test_a_limit_that_is_too_small_for_all_goes_round() -> None:
    ring = Ring(3, 2, PlainBuffers((5, 5, 5)))
    served = []
    for _ in range(3):
        after = run_fair_poll(ring)
        served.append(tuple(ring.buffers[each] - after.buffers[each] for each in range(3)))
        ring = after
    assert served == [(1, 1, 0), (1, 0, 1), (0, 1, 1)]


@pytest.mark.parametrize("rule", [Draining.AFTER, Draining.AT])
def test_a_poll_is_filled_from_the_cursor_on(rule: Draining) -> None:
    """V-POLL-2, V-POLL-3: greedy, over all partitions, and no further."""
    ring, found = Ring(3, 300, PlainBuffers((100, 150, 500))), []
    for _ in range(3):
        after = RUN[rule](ring)
        found.append(tuple(ring.buffers[each] - after.buffers[each] for each in range(3)))
        ring = after
    assert found == [(100, 150, 50), (0, 0, 300), (0, 0, 150)]
    full = RUN[rule](Ring(3, 300, PlainBuffers((300, 1, 1))))
    assert [full.buffers[each] for each in range(3)] == [0, 1, 1]


def test_the_queue_drains_as_todays_java_client() -> None:
    """V-POLL-1, V-POLL-4: the rest of the head comes first."""
    queue = add_completed(FetchQueue(300), [CompletedFetch(each, 1000) for each in range(3)])
    found = []
    for _ in range(7):
        taken, queue = drain_queue(queue)
        found.append([(fetch.partition, fetch.records) for fetch in taken])
    assert found == [
        [(0, 300)],
        [(0, 300)],
        [(0, 300)],
        [(0, 100), (1, 200)],
        [(1, 300)],
        [(1, 300)],
        [(1, 200), (2, 100)],
    ]
    assert [is_fetchable(queue, each) for each in range(3)] == [True, True, False]
    assert drain_queue(FetchQueue(5)) == ((), FetchQueue(5))
    assert add_completed(FetchQueue(5), [CompletedFetch(1, 0)]) == FetchQueue(5)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.integers(1, 6),
    st.integers(0, 4),
    st.lists(st.integers(0, 9), max_size=30),
)
def test_a_queue_serves_a_partition_in_the_poll_that_the_records_ahead_say(
    records: list[int], limit: int, place: int, refills: list[int]
) -> None:
    """T3: whatever comes in behind it."""
    partition = place % len(records)
    queue = add_completed(FetchQueue(limit), [CompletedFetch(*each) for each in enumerate(records)])
    ring = Ring(len(records), limit, PlainBuffers(records))
    expected = latest_poll(Draining.QUEUE, ring, partition, Refills.ANY)
    assert expected == records_ahead(queue, partition) // limit + 1
    for number in range(1, expected + 1):
        taken, queue = drain_queue(queue)
        assert (partition in {fetch.partition for fetch in taken}) == (number == expected)
        more = refills[number - 1] if number <= len(refills) else 0
        queue = add_completed(queue, [CompletedFetch(9, more)])


def first_service(draining: Draining, ring: Ring, position: int, refill: Callable[[Ring], Ring], most: int) -> int:
    """The number of the first poll that serves the partition, `most` + 1 if none does by then."""
    for number in range(1, most + 1):
        after = RUN[draining](ring)
        if after.buffers[position] < ring.buffers[position]:
            return number
        ring = refill(after)
    return most + 1


@pytest.mark.parametrize("draining", RUN)
@given(RINGS)
def test_without_refills_ahead_the_bound_holds(draining: Draining, drawn: tuple[Ring, int]) -> None:
    ring, position = drawn
    bound = latest_poll(draining, ring, position, Refills.NEVER_AHEAD)
    assert bound is not None
    found = first_service(draining, ring, position, lambda ring: ring, bound)
    assert found == bound if draining in (Draining.AT, Draining.START) else found <= bound


@pytest.mark.parametrize("draining", [Draining.AFTER, Draining.EQUAL])
@given(RINGS, st.data())
def test_these_bounds_hold_whatever_is_fetched(
    draining: Draining, drawn: tuple[Ring, int], data: st.DataObject
) -> None:
    ring, position = drawn
    bound = latest_poll(draining, ring, position, Refills.ANY)
    assert bound is not None

    def refill(ring: Ring) -> Ring:
        for each in range(ring.partitions):
            ring = add_fetched(ring, each, data.draw(st.integers(0, 9)))
        return ring

    assert first_service(draining, ring, position, refill, bound) <= bound


@given(RINGS)
def test_at_has_a_bound_if_only_empty_buffers_are_refilled(drawn: tuple[Ring, int]) -> None:
    ring, position = drawn
    bound = latest_poll(Draining.AT, ring, position, Refills.WHEN_EMPTY, most=9)
    assert bound is not None
    found = first_service(
        Draining.AT, ring, position, lambda ring: refill_buffers(ring, Prefetch.EMPTY, lambda each: 9), bound
    )
    assert found <= bound
    assert latest_poll(Draining.AT, ring, position, Refills.ANY) is None
    assert latest_poll(Draining.START, ring, position, Refills.WHEN_EMPTY, most=9) is None


AB = Ring(2, 1, PlainBuffers((1000, 0)))
"""KIP-41's example: polls of one record, the first fetch brought 1000 of A and none of B."""


@pytest.mark.parametrize(
    ("prefetch", "of_a", "of_b"),
    [
        (Prefetch.TOTAL, 1000, 1000),
        (Prefetch.SHARE, 1000, 0),
        (Prefetch.EMPTY, 1000, 0),
        (Prefetch.INTEGER_SHARE, None, None),
    ],
)
def test_polls_before_the_next_fetch_in_the_example(prefetch: Prefetch, of_a: int | None, of_b: int | None) -> None:
    """V-PREFETCH-1."""
    assert (polls_before_fetch(prefetch, AB, 0), polls_before_fetch(prefetch, AB, 1)) == (of_a, of_b)


def test_vectors_of_the_next_fetch() -> None:
    """V-PREFETCH-3, -4."""
    assert polls_before_fetch(Prefetch.TOTAL, Ring(1, 300, PlainBuffers((1000,))), 0) == 3
    held = Ring(3, 300, PlainBuffers((99, 100, 0)))
    assert [polls_before_fetch(Prefetch.SHARE, held, each) for each in range(3)] == [0, 1, 0]


@pytest.mark.parametrize("prefetch", Prefetch)
@given(st.integers(1, 4), st.integers(1, 9), st.integers(0, 9), st.sampled_from((Resume.AFTER, Resume.AT)))
def test_retained_records_have_the_bound(
    prefetch: Prefetch, partitions: int, limit: int, fetched: int, resume: Resume
) -> None:
    """PREFETCH-06; V-PREFETCH-2 is about twice what heuristic 1 retains."""
    ring = Ring(partitions, limit, PlainBuffers((fetched,) * partitions))
    for _ in range(12):
        assert sum(ring.buffers[each] for each in range(partitions)) <= most_retained(
            prefetch, limit, partitions, fetched
        )
        ring = refill_buffers(run_poll(ring, resume), prefetch, lambda each: fetched)


def test_the_second_heuristic_retains_about_twice_as_much() -> None:
    assert most_retained(Prefetch.SHARE, 1, 2, 1000) == 2000
    ring = refill_buffers(run_poll(AB, Resume.AFTER), Prefetch.SHARE, lambda each: 1000)
    assert sum(ring.buffers[each] for each in range(2)) == 1999


def test_the_literal_rule_starves_under_the_second_heuristic() -> None:
    """'Begin there' with a refill of what is below its share: B is never served, and going on after serves it."""
    for resume, waits in ((Resume.AT, 500), (Resume.AFTER, 1)):
        ring = Ring(2, 300, PlainBuffers((1000, 10)))
        returned = islice(
            simulate_polls(ring, resume, Prefetch.SHARE, lambda poll, position: 900 if position == 0 else 0), 500
        )
        served = [of_b > 0 for _, of_b in returned]
        assert (served.index(True) if True in served else 500) == waits


# --- equal shares, changes of the ring, and what is false


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
            assert misplaced <= most_misplaced(limit, busy)
            reached[busy] = max(reached.get(busy, 0), misplaced)
    assert reached == {busy: most_misplaced(limit, busy) for busy in (1, 2, 3)}


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
