"""The cooperative rebalance (KIP-429) for any number of members and partitions, and any target of the leader.

In the first rebalance each partition goes to its target, unless another member claims it: then to nobody. A sticky plan
for the second one leaves each partition with whom it is, and gives the others to anybody.
"""

from collections.abc import Callable, Iterator
from typing import Any

import z3

from fencepost.model.classic.kernel.actions import ACTIONS, Kernel, Relation
from fencepost.model.logic import Truth, and_, not_
from fencepost.model.proofs.classic.kernel_proofs import (
    MEMBER,
    PARTITION,
    SymbolicElement,
    SymbolicRelation,
    any_arguments,
    any_kernel,
    any_relation,
    guard_formulas,
)
from fencepost.model.proofs.induction import Lemma
from fencepost.model.proofs.symbolic_values import formula
from fencepost.model.statement import implies

M, X = (SymbolicElement(z3.Const(name, MEMBER)) for name in ("m", "x"))
P = SymbolicElement(z3.Const("p", PARTITION))


def any_owners(name: str) -> Any:
    """Who has which partition: any relation."""
    return any_relation(name, (MEMBER, PARTITION))


def is_exclusive_term(owners: Relation) -> Any:
    """No partition is with two members."""
    m, x = (SymbolicElement(z3.FreshConst(MEMBER)) for _ in range(2))
    p = SymbolicElement(z3.FreshConst(PARTITION))
    claim: Truth = implies(and_(owners.has(m, p), owners.has(x, p)), m == x)
    return z3.ForAll([m.term, x.term, p.term], formula(claim))


def without_claimed(target: Relation, claims: Relation) -> Any:
    """The target less the partitions that another member than theirs claims: these are withheld."""

    def given(m: Any, p: Any) -> Any:
        member, partition = SymbolicElement(m), SymbolicElement(p)
        other = z3.FreshConst(MEMBER)
        free = implies(claims.has(SymbolicElement(other), partition), SymbolicElement(other) == member)
        return z3.And(formula(target.has(member, partition)), z3.ForAll([other], formula(free)))

    return SymbolicRelation((MEMBER, PARTITION), given)


def keeps(plan: Relation, owners: Relation) -> Any:
    """The plan leaves each partition with whom it is: what a sticky assignor does with a target that it can keep."""
    m, p = SymbolicElement(z3.FreshConst(MEMBER)), SymbolicElement(z3.FreshConst(PARTITION))
    return z3.ForAll([m.term, p.term], formula(implies(owners.has(m, p), plan.has(m, p))))


def cooperative_lemmas() -> Iterator[Lemma]:
    """Everything that is proved of cooperative rebalances."""
    yield from plan_lemmas()
    yield from kernel_step_lemmas()


def plan_lemmas(second_keeps: Callable[[Relation, Relation], Any] = keeps) -> Iterator[Lemma]:
    """The lemmas about the two plans: their partitions given, taken and withheld. Members claim all that they own."""
    owned, target, second = (any_owners(name) for name in ("owned_before", "target", "second_target"))
    first = without_claimed(target, owned)
    after = without_claimed(second, first)
    apart = (is_exclusive_term(owned), is_exclusive_term(target))
    unmoved = formula(and_(owned.has(M, P), target.has(M, P)))
    yield Lemma("cooperative.unmoved", "the first plan leaves it", (*apart, unmoved), formula(first.has(M, P)))
    given_up = formula(and_(owned.has(M, P), not_(first.has(M, P))))
    yield Lemma(
        "cooperative.unmoved", "only what moves is given up", (*apart, given_up), formula(not_(target.has(M, P)))
    )
    yield Lemma("cooperative.apart", "the first plan gives nothing twice", apart, is_exclusive_term(first))
    sticky = (*apart, is_exclusive_term(second), second_keeps(second, first))
    planned, kept = formula(second.has(M, P)), formula(first.has(M, P))
    yield Lemma(
        "cooperative.converges", "the second plan withholds nothing", (*sticky, planned), formula(after.has(M, P))
    )
    yield Lemma("cooperative.converges", "and takes nothing from anybody", (*sticky, kept), formula(after.has(M, P)))
    moved = formula(and_(owned.has(M, P), target.has(X, P), not_(M == X)))
    withheld = z3.Not(z3.Or(formula(first.has(M, P)), formula(first.has(X, P))))
    yield Lemma("cooperative.unmoved", "what moves is nobody's between the two", (*apart, moved), withheld)


def kernel_step_lemmas() -> Iterator[Lemma]:
    """A member owns a partition throughout: each action of the kernel that may happen in a cooperative rebalance."""
    before = any_kernel()
    owned = formula(before.owned.has(M, P))
    for name, action in ACTIONS.items():
        arguments = any_arguments(action)
        step = action(before, **arguments)
        hypotheses = (owned, *guard_formulas(step).values(), *cooperative_terms(name, before, arguments))
        yield Lemma(
            "cooperative.unmoved", f"{name} takes nothing away", hypotheses, formula(step.after.owned.has(M, P))
        )


def cooperative_terms(name: str, before: Kernel, arguments: dict[str, Any]) -> Iterator[Any]:
    """How a cooperative member behaves in the action, and that the assignment it gets has the partition."""
    if "member" not in arguments:
        return
    mine = arguments["member"].term == M.term
    match name:
        case "shrink":
            yield z3.Implies(mine, formula(arguments["keeps"].has(P)))
        case "sync-answered":
            yield z3.Implies(mine, formula(before.assigned.has(arguments["generation"], M, P)))
        case "lose":
            yield z3.Not(mine)
