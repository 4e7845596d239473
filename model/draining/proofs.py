"""Who starves under greedy draining: theorems about `model.draining.polling`, visit by visit (KIP-41).

Any number of partitions, records and any `max.poll.records`. `t` is a tracked partition of which records are
buffered. What is summed over the partitions ahead of t is a function of the position with one law, which is used
one position at a time, so that no query has a quantifier. Each theorem follows from its lemmas by descent on natural
numbers; that last step is ordinary arithmetic, said in `WAITING`, and not put to the solver.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import z3

from fencepost.model.draining.polling import (
    Prefetch,
    Resume,
    Ring,
    add_fetched,
    add_partition,
    begin_poll,
    drop_partition,
    is_poll_unfinished,
    may_send_fetch,
    next_position,
    should_fetch,
    visit,
)
from fencepost.model.proofs.induction import Lemma
from fencepost.model.proofs.symbolic_values import SymbolicArray, SymbolicBool, SymbolicNumber, formula, number_term

WAITING = {
    "draining.after": "Resuming after the partition visited last serves t no later than poll d + 1 <= n, where d is "
    "its distance from the cursor, whatever is fetched meanwhile: d falls with every visit, and every poll visits. "
    "It is tight: if all hold max.poll.records, every poll makes one visit.",
    "draining.exact": "Under every rule, a poll serves t exactly if fewer records than max.poll.records are ahead.",
    "draining.after-unrefilled": "Resuming after, with q partitions and F records ahead and no refill of them: t is "
    "served no later than poll min(q, F div m) + 1, since a poll that misses t takes 1 off q and m off F at least.",
    "draining.at-unrefilled": "Resuming at, with F records ahead and no refill of them: t is served in poll "
    "F div m + 1 exactly, since a poll that misses t takes m off F. A queue of fetches to whose tail others are "
    "added is such a ring.",
    "draining.at-refilled-when-empty": "Resuming at, with refills of empty buffers up to R: t is served no later than "
    "poll d R div m + 1, since a poll that misses t takes m off the most that can still come ahead of it.",
    "draining.start": "Always from the start: t starves if m records are ahead of it whenever a poll begins.",
    "draining.rank-at": "FALSE: resuming at, every visit of another partition brings t nearer.",
}
"""What the lemmas of each theorem amount to; n partitions, m = max.poll.records."""

N, M, H, R, V, T, J = z3.Ints("partitions limit cursor budget visited t j")
B = z3.Array("records", z3.IntSort(), z3.IntSort())
START_AHEAD, START_BUSY = z3.Ints("ahead_at_start busy_at_start")


def term_of(value: Any) -> Any:
    """The z3 term of a symbolic value or of a plain one."""
    if isinstance(value, SymbolicArray):
        return value.term
    return formula(value) if isinstance(value, SymbolicBool | bool) else number_term(value)


def any_ring() -> Ring:
    """A ring in any state."""
    values: Any = (
        SymbolicNumber(N),
        SymbolicNumber(M),
        SymbolicArray(B),
        SymbolicNumber(H),
        SymbolicNumber(R),
        SymbolicNumber(V),
    )
    return Ring(*values)


HERE = any_ring()
WELL_FORMED = (N >= 1, M >= 1, H >= 0, H < N, T >= 0, T < N, B[H] >= 0, B[T] >= 0, R >= 0, R <= M, V >= 0, V <= N)
IN_POLL = (*WELL_FORMED, term_of(is_poll_unfinished(HERE)))


def records_term(at: Ring) -> Any:
    """The array of records."""
    return term_of(at.buffers)


def next_position_term(position: Any) -> Any:
    """The next position, as the shipped function has it."""
    return term_of(next_position(HERE, SymbolicNumber(position)))  # type: ignore[arg-type]


def distance(position: Any) -> Any:
    """How many visits away t is from this position: the rank."""
    return z3.If(position <= T, T - position, T - position + N)


@dataclass(frozen=True, slots=True)
class RingSum:
    """A weight summed over the partitions from a position up to t, without t; `of` is that sum by position."""

    name: str
    busy: bool = False

    def of(self, array: Any, position: Any) -> Any:
        """The sum from this position on."""
        return z3.Function(self.name, B.sort(), z3.IntSort(), z3.IntSort())(array, position)

    def weight(self, count: Any) -> Any:
        """What one partition counts: its records, or 1 if it has any."""
        return z3.If(count > 0, 1, 0) if self.busy else count

    def law(self, array: Any, position: Any) -> Any:
        """The definition of the sum, at one position."""
        onward = self.weight(array[position]) + self.of(array, next_position_term(position))
        return self.of(array, position) == z3.If(position == T, 0, onward)


AHEAD, BUSY = RingSum("ahead"), RingSum("busy", busy=True)


def sum_laws(array: Any, position: Any) -> tuple[Any, ...]:
    """The two sums are defined at the position and at the next one, and not negative."""
    places = (position, next_position_term(position))
    return tuple(
        claim
        for kind in (AHEAD, BUSY)
        for place in places
        for claim in (kind.law(array, place), kind.of(array, place) >= 0)
    )


def frame_lemmas() -> Iterator[Lemma]:
    """By induction on the distance to t: a sum changes only with the partitions it is taken over."""
    after = records_term(visit(HERE, Resume.AFTER))
    other = z3.Array("other", z3.IntSort(), z3.IntSort())
    for kind in (AHEAD, BUSY):
        for name, array, same in (
            ("visited", after, distance(J) < distance(H)),
            ("refilled elsewhere", other, other[J] == B[J]),
        ):
            laws = (kind.law(B, J), kind.law(array, J), J >= 0, J < N, same)
            onward = z3.Or(J == T, kind.of(array, next_position_term(J)) == kind.of(B, next_position_term(J)))
            goal = z3.And(
                kind.of(array, J) == kind.of(B, J),
                z3.Implies(J != T, distance(next_position_term(J)) == distance(J) - 1),
            )
            yield Lemma("draining.exact", f"{kind.name} stays when {name}", (*IN_POLL, *laws, onward), goal)
        below = (kind.law(B, J), J >= 0, J < N, B[J] >= 0, z3.Or(J == T, kind.of(B, next_position_term(J)) >= 0))
        yield Lemma("draining.exact", f"{kind.name} is not negative", (*WELL_FORMED, *below), kind.of(B, J) >= 0)


def is_same_ring(there: Ring) -> Any:
    """The ring has as many partitions as before, and its polls the same limit."""
    return z3.And(term_of(there.partitions) == N, term_of(there.limit) == M)


def goes_on(resume: Resume) -> Any:
    """A poll begins where the last one left off, or at the first partition, and with everything as it is."""
    first = begin_poll(HERE, resume)
    return z3.And(
        term_of(is_poll_unfinished(first)),
        term_of(first.cursor) == (0 if resume is Resume.START else H),
        records_term(first)[J] == B[J],
        is_same_ring(first),
    )


def poll_progress(at: Ring, resume: Resume) -> Any:
    """The invariant of a poll that has not served t, in terms of the records ahead of t at its beginning."""
    array, cursor, budget, visited = records_term(at), term_of(at.cursor), term_of(at.budget), term_of(at.visited)
    ahead, busy = AHEAD.of(array, cursor), BUSY.of(array, cursor)
    taken = M - budget
    missed = {
        Resume.AFTER: z3.And(ahead <= START_AHEAD - M, busy <= START_BUSY - 1),
        Resume.AT: ahead == START_AHEAD - M,
        Resume.START: START_AHEAD >= M,
    }[resume]
    return z3.And(
        z3.If(budget > 0, ahead + taken == START_AHEAD, z3.And(missed, START_AHEAD >= M)),
        z3.Implies(budget > 0, busy <= START_BUSY - z3.If(taken > 0, 1, 0)),
        z3.Implies(budget > 0, visited + distance(cursor) <= N - 1),
    )


def poll_lemmas(resume: Resume, theorem: str) -> Iterator[Lemma]:
    """A poll under one of the rules: how it begins, a visit of another partition, how it ends, a visit of t."""
    first = begin_poll(HERE, resume)
    array, cursor = records_term(first), term_of(first.cursor)
    yield Lemma(
        theorem,
        f"{resume.value}: a poll begins with a visit to make, where it should, and with everything as it is",
        (*WELL_FORMED, AHEAD.of(array, cursor) == START_AHEAD, BUSY.of(array, cursor) == START_BUSY),
        z3.And(goes_on(resume), poll_progress(first, resume)),
    )
    there = visit(HERE, resume)
    onward = next_position_term(H)
    same = tuple(kind.of(records_term(there), onward) == kind.of(B, onward) for kind in (AHEAD, BUSY))
    laws = (*sum_laws(B, H), *(kind.law(records_term(there), H) for kind in (AHEAD, BUSY)), *same)
    yield Lemma(
        theorem,
        f"{resume.value}: a visit of another partition makes progress",
        (*IN_POLL, H != T, *laws, poll_progress(HERE, resume)),
        poll_progress(there, resume),
    )
    yield Lemma(
        theorem,
        f"{resume.value}: a poll that ends before t has used up its limit, and m records were ahead",
        (*WELL_FORMED, poll_progress(HERE, resume), z3.Not(term_of(is_poll_unfinished(HERE)))),
        z3.And(R == 0, START_AHEAD >= M),
    )
    yield Lemma(
        theorem,
        f"{resume.value}: a visit of t serves it, and fewer than m records were ahead",
        (*IN_POLL, H == T, B[T] > 0, AHEAD.law(B, H), poll_progress(HERE, resume)),
        z3.And(records_term(there)[T] < B[T], START_AHEAD < M),
    )


def well_formed_lemmas() -> Iterator[Lemma]:
    """A visit leaves a ring as it should be, under every rule."""
    for resume in Resume:
        there = visit(HERE, resume)
        goal = z3.And(
            term_of(there.cursor) >= 0,
            term_of(there.cursor) < N,
            term_of(there.budget) >= 0,
            term_of(there.budget) <= M,
            records_term(there)[J] >= 0,
            z3.Implies(J != H, records_term(there)[J] == B[J]),
            B[H] - records_term(there)[H] == R - term_of(there.budget),
            term_of(there.visited) == V + 1,
            V < N,
            is_same_ring(there),
        )
        yield Lemma(
            "draining.exact", f"{resume.value}: a visit keeps the ring well formed", (*IN_POLL, B[J] >= 0), goal
        )


def resume_after_lemmas() -> Iterator[Lemma]:
    """Resuming after: the rank falls with every visit, whatever is fetched."""
    theorem = "draining.after"
    there = visit(HERE, Resume.AFTER)
    onward = distance(term_of(there.cursor))
    yield Lemma(theorem, "the rank is below n", WELL_FORMED, z3.And(distance(H) >= 0, distance(H) <= N - 1))
    yield Lemma(
        theorem,
        "a visit of another partition brings t one nearer",
        (*IN_POLL, H != T),
        z3.And(onward == distance(H) - 1, records_term(there)[T] == B[T]),
    )
    yield Lemma(theorem, "a visit of t serves it", (*IN_POLL, H == T, B[T] > 0), records_term(there)[T] < B[T])
    yield Lemma(theorem, "every poll makes a visit, where the last one left off", WELL_FORMED, goes_on(Resume.AFTER))
    more = z3.Int("more")
    richer = add_fetched(HERE, SymbolicNumber(J), SymbolicNumber(more))  # type: ignore[arg-type]
    yield Lemma(
        theorem,
        "a fetch adds what it brings, and changes nothing else",
        (*WELL_FORMED, more >= 0, J >= 0, J < N),
        z3.And(records_term(richer) == z3.Store(B, J, B[J] + more), term_of(richer.cursor) == H, is_same_ring(richer)),
    )
    yield Lemma(
        theorem,
        "tight: a full buffer takes the whole poll",
        (*IN_POLL, R == M, B[H] >= M),
        z3.And(term_of(there.budget) == 0, term_of(there.cursor) == next_position_term(H)),
    )


def resume_at_lemmas() -> Iterator[Lemma]:
    """Resuming at: at most the records at the cursor, and R for each partition after it, can still come ahead of t."""
    theorem, most, room = "draining.at-refilled-when-empty", z3.Int("most"), z3.Int("room")
    there = visit(HERE, Resume.AT)
    cursor, left = term_of(there.cursor), term_of(there.budget)
    refill = z3.Array("refill", z3.IntSort(), z3.IntSort())
    # `max_items` stands for (d - 1) R, of which a step to the next partition takes R; t itself has nothing ahead.
    hypotheses = (*IN_POLL, H != T, most >= 0, room >= 0, z3.Implies(distance(H) >= 2, room >= most), B[H] <= most)
    potential = B[H] + room

    def remaining(array: Any) -> Any:
        return z3.If(cursor == T, 0, array[cursor] + z3.If(cursor == H, room, room - most))

    yield Lemma(
        theorem,
        "a visit of another partition takes what it takes off what can still come",
        (*hypotheses, B[next_position_term(H)] <= most),
        remaining(records_term(there)) <= potential - (R - left),
    )
    limits = (
        refill[cursor] <= most,
        z3.Implies(records_term(there)[cursor] > 0, refill[cursor] == records_term(there)[cursor]),
    )
    yield Lemma(
        theorem,
        "even if what is empty is refilled then",
        (*hypotheses, *limits, refill[cursor] >= 0),
        z3.And(remaining(refill) <= potential - (R - left), remaining(refill) >= 0),
    )


def waiting_lemmas() -> Iterator[Lemma]:
    """Every lemma about how long a partition with buffered records waits."""
    yield from well_formed_lemmas()
    yield from frame_lemmas()
    yield from resume_after_lemmas()
    yield from poll_lemmas(Resume.AFTER, "draining.after-unrefilled")
    yield from poll_lemmas(Resume.AT, "draining.at-unrefilled")
    yield from poll_lemmas(Resume.START, "draining.start")
    yield from resume_at_lemmas()
    # Resuming at: the rank need not fall, which is where the proof of resuming after breaks.
    onward = distance(term_of(visit(HERE, Resume.AT).cursor))
    yield Lemma("draining.rank-at", "the rank falls", (*IN_POLL, H != T), onward < distance(H), holds=False)


# --- Theorems about fetches, retained records, changes of the assignment, and equal shares.
#
# Any number of partitions and records, one visit, one fetch or one partition at a time.

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
    yield Lemma("draining.share", "it goes by the share", WELL_FORMED, sent[Prefetch.SHARE] == (B[T] * N < M))
    yield Lemma("draining.share", "an empty partition qualifies", empty, sent[Prefetch.SHARE])
    yield Lemma(
        "draining.share", "today's rule goes by what is empty", WELL_FORMED, sent[Prefetch.EMPTY] == (B[T] == 0)
    )
    trap = sent[Prefetch.INTEGER_SHARE]
    yield Lemma("draining.integer-share", "it never qualifies", (*WELL_FORMED, M < N), z3.Not(trap))
    yield Lemma("draining.integer-share", "else an empty partition qualifies", (*empty, M >= N), trap)
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
    rest = z3.Int("rest")
    for resume in Resume:
        there = visit(HERE, resume)
        yield Lemma(
            "draining.no-limit",
            f"{resume.value}: a visit with budget for everything empties the partition, and leaves budget for the rest",
            (*IN_POLL, rest >= 0, B[H] + rest <= R),
            z3.And(
                records_term(there)[H] == 0,
                term_of(there.budget) >= rest,
                term_of(there.cursor) == next_position_term(H),
            ),
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
    goal = z3.And(goal, term_of(gone.partitions) == N - 1)
    yield Lemma("draining.ring-change", "one that goes brings t no farther", others, goal)
    come = add_partition(HERE, place, records)  # type: ignore[arg-type]
    moved, cursor = T + z3.If(J <= T, 1, 0), term_of(come.cursor)
    away = z3.If(cursor <= moved, moved - cursor, moved - cursor + N + 1)
    goal = z3.And(away <= distance(H) + 1, cursor >= 0, cursor <= N, records_term(come)[moved] == B[T])
    goal = z3.And(goal, term_of(come.partitions) == N + 1)
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


# --- Every theorem about draining and prefetching (KIP-41).

THEOREMS = WAITING | FETCHING
"""What the lemmas of each theorem amount to; n partitions, m = max.poll.records."""


def draining_lemmas() -> Iterator[Lemma]:
    """Every lemma of every theorem about draining."""
    yield from waiting_lemmas()
    yield from fetching_lemmas()
