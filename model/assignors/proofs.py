"""Balance and stickiness of the assignors: theorems about the numbers in `model.assignors`, step by step.

Any number of members and partitions, and any claims. A sum over members, such as what is assigned so far, is a number
with one law: what a member adds. Each lemma takes the functions that the assignors run through one step; that the
steps of all members add up is induction, said in `THEOREMS`, and not put to the solver. Which partitions a member
keeps, and that none is dealt twice, is a matter of lists, and tested.
"""

from collections.abc import Iterator
from typing import Any

import z3

from fencepost.model.assignors.range import block_size
from fencepost.model.assignors.round_robin import next_turn
from fencepost.model.assignors.sticky import is_improvement
from fencepost.model.assignors.sticky_group import Quota, is_below, kept_claims, may_grow, quota_after
from fencepost.model.proofs.induction import Lemma
from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicNumber, formula, number_term

THEOREMS = {
    "assignors.range": "The blocks of k subscribers follow one another, cover all n partitions, and differ by at most "
    "1, the larger ones first: after i blocks i (n div k) + min(i, n mod k) partitions are given away.",
    "assignors.round-robin": "If all subscribe to the same topics, members before the pointer have one round more "
    "than those from it on, so that two sizes differ by at most 1.",
    "assignors.quota": "If all subscribe to the same topics, sticky gives P mod N members P div N + 1 partitions and "
    "the others P div N: what is unassigned is always what members lack of P div N, and the extra ones.",
    "assignors.retention": "If all subscribe to the same topics, sticky keeps as many valid claims as any assignment "
    "with these sizes.",
    "assignors.improvement": "A move of the general branch lowers the sum of the squared sizes, a natural number, so "
    "that the search ends; where it ends, no member has two more than one that could take a partition from it.",
    "assignors.improvement-by-one": "FALSE: a move between sizes that differ by 1 lowers that sum (KAFKA-15106).",
}
"""What the lemmas of each theorem amount to; P partitions, N members."""

K, Q, R, PLACE, N, GIVEN, PRODUCT = z3.Ints("subscribers quotient remainder position partitions given product")


def term_of(value: Any) -> Any:
    """The z3 term of a symbolic value or of a plain one."""
    return formula(value) if isinstance(value, SymbolicBool | bool) else number_term(value)


def number(term: Any) -> Any:
    """The symbolic number of a term, as the shipped functions take it."""
    return SymbolicNumber(term)


def smaller(one: Any, other: Any) -> Any:
    """The smaller of two terms."""
    return z3.If(one < other, one, other)


def range_lemmas() -> Iterator[Lemma]:
    """One block after the other. `product` is position times quotient, which grows by the quotient with each block."""
    theorem = "assignors.range"
    shape = (K >= 1, Q >= 0, R >= 0, R < K, PLACE >= 0, PLACE < K)
    size = term_of(block_size(number(PLACE), number(Q), number(R)))
    onward = term_of(block_size(number(PLACE + 1), number(Q), number(R)))
    yield Lemma(theorem, "a block has the quotient or one more", shape, z3.Or(size == Q, size == Q + 1))
    yield Lemma(theorem, "the larger blocks come first", shape, onward <= size)
    before = (*shape, PRODUCT + smaller(PLACE, R) == GIVEN)
    yield Lemma(theorem, "a block continues the sum", before, GIVEN + size == PRODUCT + Q + smaller(PLACE + 1, R))
    last = (*shape, PLACE == K - 1, PRODUCT + smaller(PLACE, R) == GIVEN, N == PRODUCT + Q + R)
    yield Lemma(theorem, "the last block ends with the last partition", last, GIVEN + size == N)


def round_robin_lemmas() -> Iterator[Lemma]:
    """A member before the pointer has had its turn in this round."""
    theorem = "assignors.round-robin"
    rounds, turn, one, other = z3.Ints("rounds turn one other")
    shape = (K >= 1, rounds >= 0, turn >= 0, turn < K, one >= 0, one < K, other >= 0, other < K)
    after = term_of(next_turn(number(turn), number(K)))

    def size(member: Any, at: Any, full: Any) -> Any:
        return full + z3.If(member < at, 1, 0)

    rounds_after = rounds + z3.If(after == 0, 1, 0)
    yield Lemma(theorem, "the pointer stays within the members", shape, z3.And(after >= 0, after < K))
    yield Lemma(
        theorem,
        "a deal keeps the sizes what the pointer says",
        shape,
        size(one, turn, rounds) + z3.If(one == turn, 1, 0) == size(one, after, rounds_after),
    )
    difference = size(one, turn, rounds) - size(other, turn, rounds)
    yield Lemma(theorem, "two sizes differ by at most 1", shape, z3.And(difference <= 1, difference >= -1))


LOW, EXTRA, CLAIMS, SIZE, LACKING, REST, MEMBERS, WANTED = z3.Ints("low extra claims size lacking rest members wanted")
QUOTA = Quota(number(LOW), number(EXTRA))
KEPT = term_of(kept_claims(QUOTA, number(CLAIMS)))
EXTRA_AFTER = term_of(quota_after(QUOTA, number(KEPT)).extra)
POSSIBLE = (LOW >= 0, EXTRA >= 0, CLAIMS >= 0)


def quota_lemmas() -> Iterator[Lemma]:
    """The lemmas about quotas; `rest` counts the unassigned partitions, which members lack of the low quota or get as
    one more than it."""
    theorem = "assignors.quota"
    yield Lemma(
        theorem,
        "a member keeps claims of its own, up to one more than the low quota",
        POSSIBLE,
        z3.And(KEPT >= 0, KEPT <= CLAIMS, KEPT <= LOW + 1, EXTRA_AFTER >= 0),
    )
    given, lacked = z3.Ints("given lacked")
    lacks = z3.If(KEPT < LOW, LOW - KEPT, 0)
    yield Lemma(
        theorem,
        "kept claims and what is lacking are the low quotas of the members so far, and the extra ones in use",
        (*POSSIBLE, given + lacked == PRODUCT + WANTED - EXTRA),
        (given + KEPT) + (lacked + lacks) == (PRODUCT + LOW) + WANTED - EXTRA_AFTER,
    )
    dealing = (LOW >= 0, EXTRA >= 0, SIZE >= 0, SIZE <= LOW + 1, LACKING >= 0, REST == LACKING + EXTRA, REST > 0)
    after = term_of(quota_after(QUOTA, number(SIZE + 1)).extra)
    below, growing = term_of(is_below(QUOTA, number(SIZE))), term_of(may_grow(QUOTA, number(SIZE)))
    yield Lemma(
        theorem,
        "a partition for a member below the low quota is one that was lacking",
        (*dealing, below, LACKING >= LOW - SIZE),
        z3.And(SIZE + 1 <= LOW, after == EXTRA, LACKING >= 1, (LACKING - 1) + after == REST - 1),
    )
    yield Lemma(theorem, "a member that lacks of the low quota is below it", (*dealing, SIZE < LOW), below)
    yield Lemma(
        theorem, "one that has it may grow while an extra one is left", (*dealing, SIZE == LOW, EXTRA >= 1), growing
    )
    yield Lemma(
        theorem,
        "a partition for a member that may grow is an extra one",
        (*dealing, growing, LACKING == 0),
        z3.And(SIZE + 1 == LOW + 1, after == EXTRA - 1, LACKING + after == REST - 1),
    )
    in_use = WANTED - EXTRA
    yield Lemma(
        theorem,
        "while an extra one is left, more members are at the low quota than are needed",
        (MEMBERS >= 1, WANTED < MEMBERS, EXTRA >= 1, in_use >= 0),
        MEMBERS - in_use > EXTRA,
    )


def retention_lemmas() -> Iterator[Lemma]:
    """Beside another assignment with the same sizes, in which `wanted` members have one more, `chosen` of them with
    so many claims; `rich` counts the members so far with more claims than the low quota."""
    theorem = "assignors.retention"
    rich, chosen, kept, other, others_size = z3.Ints("rich chosen kept other others_size")
    has_more = z3.If(CLAIMS > LOW, 1, 0)
    in_use = (*POSSIBLE, rich >= 0, WANTED >= 0, smaller(WANTED, rich) == WANTED - EXTRA)
    yield Lemma(
        theorem,
        "as many extra ones are kept as there are members with more claims, or as there are extra ones",
        in_use,
        smaller(WANTED, rich + has_more) == WANTED - EXTRA_AFTER,
    )
    base = z3.Int("base")
    yield Lemma(
        theorem,
        "what is kept is the claims up to the low quotas, and the extra ones in use",
        (*POSSIBLE, kept == base + WANTED - EXTRA),
        kept + KEPT == base + smaller(CLAIMS, LOW) + WANTED - EXTRA_AFTER,
    )
    is_chosen = z3.And(others_size == LOW + 1, CLAIMS > LOW)
    yield Lemma(
        theorem,
        "the other keeps no more of a member than its claims up to the low quota, and one if it is chosen",
        (*POSSIBLE, z3.Or(others_size == LOW, others_size == LOW + 1), other <= base + chosen),
        other + smaller(CLAIMS, others_size) <= base + smaller(CLAIMS, LOW) + chosen + z3.If(is_chosen, 1, 0),
    )
    yield Lemma(
        theorem,
        "so the other keeps no more in all",
        (chosen <= rich, chosen <= WANTED, smaller(WANTED, rich) == WANTED - EXTRA, other <= base + chosen),
        other <= base + WANTED - EXTRA,
    )


def improvement_lemmas() -> Iterator[Lemma]:
    """A partition goes from a larger member to a smaller one."""
    larger, less = z3.Ints("larger smaller")
    moves = term_of(is_improvement(number(larger), number(less)))
    change = (larger - 1) * (larger - 1) + (less + 1) * (less + 1) - larger * larger - less * less
    shape = (larger >= 0, less >= 0)
    yield Lemma("assignors.improvement", "a move lowers the sum of the squares", (*shape, moves), change < 0)
    yield Lemma("assignors.improvement", "the sum has a bound", shape, larger * larger + less * less >= 0)
    yield Lemma(
        "assignors.improvement",
        "without a move to make the sizes differ by at most 1",
        (*shape, z3.Not(moves)),
        larger <= less + 1,
    )
    yield Lemma("assignors.improvement-by-one", "it falls", (*shape, larger > less), change < 0, holds=False)


def assignor_lemmas() -> Iterator[Lemma]:
    """Every lemma of every theorem about the assignors."""
    yield from range_lemmas()
    yield from round_robin_lemmas()
    yield from quota_lemmas()
    yield from retention_lemmas()
    yield from improvement_lemmas()
