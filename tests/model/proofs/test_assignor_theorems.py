"""The theorems about assignors are proved of the shipped functions, and not of others."""

from collections.abc import Callable
from typing import Any

import pytest

from fencepost.model.assignors import proofs
from fencepost.model.assignors.proofs import THEOREMS, assignor_lemmas
from fencepost.model.assignors.sticky_group import Quota, quota_after
from fencepost.model.frozen import evolve
from fencepost.model.logic import and_, ite
from fencepost.model.proofs.induction import findings


@pytest.mark.parametrize("seed", [0, 7])
def test_every_lemma_is_settled_as_it_should_be(seed: int) -> None:
    assert [each for each in findings(assignor_lemmas(), seed) if not each.as_expected] == []


def test_every_theorem_has_lemmas_and_false_ones_say_so() -> None:
    found = {each.theorem for each in assignor_lemmas()}
    assert found == set(THEOREMS)
    assert {each.theorem for each in assignor_lemmas() if not each.holds} == {
        name for name, text in THEOREMS.items() if text.startswith("FALSE")
    }


def keeps_too_few(quota: Quota, claims: int) -> int:
    """One claim less than the low quota allows."""
    return ite(claims < quota.low - 1, claims, quota.low - 1)


def keeps_too_many(quota: Quota, claims: int) -> int:
    """One claim more than the low quota, whether or not an extra one is left."""
    return ite(claims < quota.low + 1, claims, quota.low + 1)


def keeps_no_extra(quota: Quota, claims: int) -> int:
    """Never an extra one."""
    return ite(claims < quota.low, claims, quota.low)


MUTANTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "all blocks have the quotient": ("block_size", lambda position, quotient, remainder: quotient),
    "the last blocks are larger": (
        "block_size",
        lambda position, quotient, remainder: quotient + ite(position >= remainder, 1, 0),
    ),
    "the pointer stays": ("next_turn", lambda turn, count: turn),
    "the pointer skips a member": ("next_turn", lambda turn, count: ite(turn + 2 < count, turn + 2, 0)),
    "extra ones are not counted (KAFKA-12984)": ("quota_after", lambda quota, size: quota),
    "extra ones are counted twice": (
        "quota_after",
        lambda quota, size: evolve(quota, extra=quota.extra - ite(size > quota.low, 2, 0)),
    ),
    "members below may grow": ("may_grow", lambda quota, size: and_(size <= quota.low, quota.extra > 0)),
    "members at the low quota are below it": ("is_below", lambda quota, size: size <= quota.low),
    "nobody is below the low quota": ("is_below", lambda quota, size: size < 0),
    "the last extra one goes to nobody": ("may_grow", lambda quota, size: and_(size == quota.low, quota.extra > 1)),
    "moves between sizes that differ by 1 (KAFKA-15106)": ("is_improvement", lambda larger, less: larger > less),
    "no moves between sizes that differ by 2": ("is_improvement", lambda larger, less: larger > less + 2),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_other_functions_are_refuted(monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    name, function = MUTANTS[mutant]
    monkeypatch.setattr(proofs, name, function)
    assert any(each.verdict == "refuted" for each in findings(assignor_lemmas()) if each.lemma.holds)


@pytest.mark.parametrize("keeps", [keeps_too_few, keeps_too_many, keeps_no_extra])
def test_other_ways_to_keep_claims_are_refuted(
    monkeypatch: pytest.MonkeyPatch, keeps: Callable[[Quota, int], int]
) -> None:
    kept = proofs.term_of(keeps(proofs.QUOTA, proofs.number(proofs.CLAIMS)))
    monkeypatch.setattr(proofs, "KEPT", kept)
    after = quota_after(proofs.QUOTA, proofs.number(kept)).extra
    monkeypatch.setattr(proofs, "EXTRA_AFTER", proofs.term_of(after))
    assert any(each.verdict == "refuted" for each in findings(assignor_lemmas()) if each.lemma.holds)
