"""A group settles, for any number of members, and each part of an action that this rests on is missed."""

from collections.abc import Callable
from typing import Any

import pytest
import z3

from fencepost.model.classic.core.state import MemberView
from fencepost.model.classic.kernel import rebalance
from fencepost.model.classic.member.member import claimed_partitions, gets_partition
from fencepost.model.classic.proofs.kernel_proofs import cooperative_lemmas, plan_lemmas, rebalance_lemmas
from fencepost.model.proofs.induction import findings
from tests.support.edits import mutant
from tests.support.plain_values import build


@pytest.mark.parametrize("seed", [0, 7, 19])
def test_every_lemma_is_proved(seed: int) -> None:
    found = list(findings((*rebalance_lemmas(), *cooperative_lemmas()), seed))
    assert [each for each in found if not each.as_expected] == []


MUTANTS: list[tuple[Callable[..., Any], str, str, str]] = [
    (rebalance.revoke, "may_revoke=rebalance.may_revoke.without(member),", "", "revoke lowers the rank"),
    (rebalance.complete, "is_needed(rebalance, leader)", "rebalance.living.has(leader)", "complete keeps"),
    (rebalance.join, "not_(rebalance.joined.has(member))", "True", "join lowers the rank"),
    (rebalance.join, "rebalance.joined.plus(member)", "rebalance.joined", "join lowers the rank"),
    (rebalance.tell, "told=rebalance.told.plus(member)", "told=rebalance.told", "tell lowers the rank"),
    (rebalance.rejoin, ", owes_join=rebalance.owes_join.without(member)", "", "rejoin lowers the rank"),
    (rebalance.publish, "synced=rebalance.members.empty(), ", "", "publish keeps"),
    (rebalance.publish, "is_needed(rebalance, rebalance.leader)", "False", "some action is possible"),
    (rebalance.remove, "not_(rebalance.living.has(gone))", "False", "some action is possible"),
    (rebalance.rejoin, "rebalance.owes_join.has(member)", "False", "some action is possible"),
]


@pytest.mark.parametrize(("function", "before", "after", "broken"), MUTANTS)
def test_other_actions_are_refuted(function: Callable[..., Any], before: str, after: str, broken: str) -> None:
    with mutant(function, before, after):
        wrong = [each.lemma.name for each in findings(rebalance_lemmas()) if not each.as_expected]
    assert any(name.startswith(broken) for name in wrong)


def test_a_plan_that_is_not_sticky_needs_a_third_rebalance() -> None:
    found = list(findings(plan_lemmas(lambda second, first: z3.BoolVal(True))))
    assert {each.lemma.theorem for each in found if not each.as_expected} == {"cooperative.converges"}


@pytest.mark.parametrize("claims", [(False, False), (True, False), (False, True), (True, True)])
def test_the_shipped_member_withholds_as_the_theorem_has_it(claims: tuple[bool, bool]) -> None:
    views = tuple(build(MemberView, name, None, (claim,)) for name, claim in zip("ab", claims, strict=True))
    for owner in ("a", "b", None):
        claimed = claimed_partitions(views, (owner,))  # type: ignore[arg-type]
        given = [gets_partition(claimed, view, (owner,), 0) for view in views]  # type: ignore[arg-type]
        others = [claims[1], claims[0]]
        assert given == [view.id == owner and not other for view, other in zip(views, others, strict=True)]
