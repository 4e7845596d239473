"""Theorems about fetches, retained records, changes of the assignment, and equal shares.

As in `waiting`: any number of partitions and records, one visit, one fetch or one partition at a time.
"""

from collections.abc import Iterator

import z3

from fencepost.model.draining.polling import (
    Prefetch,
    Resume,
    add_fetched,
    add_partition,
    drop_partition,
    may_send_fetch,
    should_fetch,
    visit,
)
from fencepost.model.proofs.draining.waiting import (
    AHEAD,
    HERE,
    IN_POLL,
    START_AHEAD,
    WELL_FORMED,
    B,
    H,
    J,
    M,
    N,
    R,
    T,
    distance,
    poll_progress,
    records_term,
    term_of,
)
from fencepost.model.proofs.obligations import Lemma
from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicNumber

FETCHING = {
    "draining.total": "Fetching below max.poll.records in total: a poll that begins with m records retained takes m, "
    "so that nothing is fetched, not even of an empty partition, for T div m polls.",
    "draining.share": "Fetching below the share of a poll: an empty partition always qualifies.",
    "draining.integer-share": "The share in integers: with more partitions than records in a poll, nothing ever "
    "qualifies.",
    "draining.integer-share-fetches": "FALSE: with the share in integers an empty partition qualifies.",
    "draining.memory": "Fetching below the share of a poll, with at most F records in a fetch: a partition retains "
    "fewer than m / n + F, for what it retains grows by a fetch alone; so all together fewer than m + n F.",
    "draining.total-memory": "Fetching below max.poll.records in total: the n fetches begin with fewer than m "
    "retained, so all together retain fewer than m + n F as well.",
    "draining.in-flight": "No fetch goes to a leader that has not answered the one before: such a fetch is late, and "
    "sent only for a partition that qualifies, so that no bound on what is retained changes.",
    "draining.no-limit": "A poll without a limit: it empties each partition it visits, and has budget for the next.",
    "draining.ring-change": "Resuming after, a partition that goes between two polls brings t no farther from the "
    "cursor, and one that comes brings t one farther at most: t is served no later than poll n + c, if c come.",
    "draining.equal-share": "A greedy poll that finds k partitions with records has at most m - ceil(m / k) of other "
    "partitions than equal shares. It takes what its first partition has, b. If b is at least ceil(m / k), so many are "
    "in their place. Else equal shares take b too, and the rest is a poll of m - b records over k - 1 partitions, of "
    "which it is shown that the bound is no larger.",
}
"""What the lemmas of each theorem amount to; n partitions, m = max.poll.records."""


def fetching_lemmas() -> Iterator[Lemma]:
    """Every lemma about fetches, memory, changes of the ring and equal shares."""
    yield from prefetch_lemmas()
    yield from memory_lemmas()
    yield from limit_lemmas()
    yield from ring_change_lemmas()
    yield from equal_share_lemmas()


def prefetch_lemmas() -> Iterator[Lemma]:
    """When fetches are sent."""
    retained = z3.Int("retained")
    sent = {
        each: term_of(should_fetch(each, HERE, SymbolicNumber(T), SymbolicNumber(retained)))  # type: ignore[arg-type]
        for each in Prefetch
    }
    there = visit(HERE, Resume.AFTER)
    yield Lemma("draining.total", "it goes by the total alone", WELL_FORMED, sent[Prefetch.TOTAL] == (retained < M))
    yield Lemma(
        "draining.total",
        "a poll that comes to its last partition uses up its limit",
        (*IN_POLL, H == T, AHEAD.law(B, H), poll_progress(HERE, Resume.AFTER), START_AHEAD + B[T] >= M),
        term_of(there.budget) == 0,
    )
    empty = (*WELL_FORMED, B[T] == 0)
    for each in (Prefetch.SHARE, Prefetch.EMPTY):
        yield Lemma("draining.share", f"{each.value}: an empty partition qualifies", empty, sent[each])
    trap = sent[Prefetch.INTEGER_SHARE]
    yield Lemma("draining.integer-share", "it never qualifies", (*WELL_FORMED, M < N), z3.Not(trap))
    yield Lemma("draining.integer-share-fetches", "it qualifies when empty", empty, trap, holds=False)
    busy = z3.Bool("leader_is_busy")
    for each in Prefetch:
        late = term_of(
            may_send_fetch(
                each,
                HERE,
                SymbolicNumber(T),  # type: ignore[arg-type]
                SymbolicNumber(retained),  # type: ignore[arg-type]
                SymbolicBool(busy),  # type: ignore[arg-type]
            )
        )
        goal = z3.And(z3.Implies(late, sent[each]), late == z3.And(sent[each], z3.Not(busy)))
        yield Lemma("draining.in-flight", f"{each.value}: it qualifies, and its leader is idle", WELL_FORMED, goal)


def memory_lemmas() -> Iterator[Lemma]:
    """What a partition retains, and all together."""
    more, most, retained = z3.Ints("more most retained")
    position, records = SymbolicNumber(T), SymbolicNumber(more)
    share = term_of(should_fetch(Prefetch.SHARE, HERE, position, SymbolicNumber(retained)))  # type: ignore[arg-type]
    total = term_of(should_fetch(Prefetch.TOTAL, HERE, position, SymbolicNumber(retained)))  # type: ignore[arg-type]
    held = records_term(add_fetched(HERE, position, records))[T]  # type: ignore[arg-type]
    fetched = (*WELL_FORMED, more >= 0, more <= most)
    yield Lemma("draining.memory", "a fetch fills it below the bound", (*fetched, share), (held - most) * N < M)
    there = records_term(visit(HERE, Resume.AFTER))
    yield Lemma("draining.memory", "a visit adds nothing", (*IN_POLL, B[J] >= 0), there[J] <= B[J])
    yield Lemma(
        "draining.total-memory",
        "n fetches fill it below the bound",
        (*fetched, total),
        retained + N * most < M + N * most,
    )


def limit_lemmas() -> Iterator[Lemma]:
    """A limit that is never reached, such as the default of KIP-41."""
    there = visit(HERE, Resume.AFTER)
    rest = z3.Int("rest")
    yield Lemma(
        "draining.no-limit",
        "a visit with budget for everything empties the partition and leaves budget for the rest",
        (*IN_POLL, rest >= 0, B[H] + rest <= R),
        z3.And(records_term(there)[H] == 0, term_of(there.budget) >= rest),
    )


def ring_change_lemmas() -> Iterator[Lemma]:
    """A partition goes or comes between two polls: where the tracked one is then, and how far from the cursor."""
    place, records = SymbolicNumber(J), SymbolicNumber(z3.Int("records_of_it"))
    gone = drop_partition(HERE, place)  # type: ignore[arg-type]
    moved = T - z3.If(J < T, 1, 0)
    cursor = term_of(gone.cursor)
    away = z3.If(cursor <= moved, moved - cursor, moved - cursor + N - 1)
    others = (*WELL_FORMED, J >= 0, J < N, N >= 2, J != T)
    goal = z3.And(away <= distance(H), cursor >= 0, cursor < N - 1, records_term(gone)[moved] == B[T])
    yield Lemma("draining.ring-change", "one that goes brings t no farther", others, goal)
    come = add_partition(HERE, place, records)  # type: ignore[arg-type]
    moved, cursor = T + z3.If(J <= T, 1, 0), term_of(come.cursor)
    away = z3.If(cursor <= moved, moved - cursor, moved - cursor + N + 1)
    goal = z3.And(away <= distance(H) + 1, cursor >= 0, cursor <= N, records_term(come)[moved] == B[T])
    yield Lemma("draining.ring-change", "one that comes brings t one farther", (*WELL_FORMED, J >= 0, J <= N), goal)


def equal_share_lemmas() -> Iterator[Lemma]:
    """The step of the descent: budget r over k partitions, of which the first has b records, fewer than its share q."""
    r, k, b, q, onward = z3.Ints("r k b q onward")
    shares = (k >= 2, b >= 0, b < q, (q - 1) * k < r, r <= q * k, r - b <= onward * (k - 1), onward >= 0)
    yield Lemma("draining.equal-share", "the bound of the rest is no larger", shares, (r - b) - onward <= r - q)
    yield Lemma(
        "draining.equal-share",
        "a single partition has everything in its place",
        (r >= 0, (q - 1) < r, r <= q),
        r - q == 0,
    )
