"""A group settles, for any number of members: every action lowers the rank, and some action is possible until then.

Members are an uninterpreted sort. That a row of finite sets can be lowered finitely often only is the one step that is
not put to the solver.
"""

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import z3

from fencepost.model.classic.kernel.rebalance import (
    BEFORE_PHASE,
    REBALANCE_ACTIONS,
    Rebalance,
    SetOfRank,
    is_awaited,
    is_settled,
    is_stable,
    phase_rank,
)
from fencepost.model.logic import and_, not_
from fencepost.model.proofs.classic.kernel_proofs import MEMBER, SymbolicElement, any_arguments, any_relation
from fencepost.model.proofs.induction import Lemma
from fencepost.model.proofs.symbolic_values import SymbolicBool, formula
from fencepost.model.statement import implies

SETS = ("members", "living", "joined", "synced", "told", "may_revoke", "owes_join")
ARGUMENTS: dict[str, Any] = {"member": MEMBER, "gone": MEMBER, "leader": MEMBER, "dropped": (MEMBER,)}
"""The arguments of the actions: members, and a set of them."""


def any_rebalance() -> Rebalance:
    """A rebalance in any state."""
    sets = {name: any_relation(f"set_{name}", (MEMBER,)) for name in SETS}
    preparing, completing = (SymbolicBool(z3.Bool(name)) for name in ("preparing", "completing"))
    return Rebalance(preparing, completing, SymbolicElement(z3.Const("the_leader", MEMBER)), **sets)  # type: ignore[arg-type]


def for_all(claim: Callable[[SymbolicElement], Any]) -> Any:
    """The claim holds of every member."""
    member = z3.FreshConst(MEMBER)
    return z3.ForAll([member], formula(claim(SymbolicElement(member))))


def exists(claim: Callable[[SymbolicElement], Any]) -> Any:
    """The claim holds of some member."""
    member = z3.FreshConst(MEMBER)
    return z3.Exists([member], formula(claim(SymbolicElement(member))))


def invariant(rebalance: Rebalance) -> Any:
    """What holds all the time: requests wait in their phase alone, and the leader is a member."""
    leads = z3.Implies(formula(rebalance.completing), formula(rebalance.members.has(rebalance.leader)))
    phases = z3.Not(z3.And(formula(rebalance.preparing), formula(rebalance.completing)))
    waiting = for_all(
        lambda m: and_(
            implies(rebalance.joined.has(m), rebalance.preparing),
            implies(rebalance.synced.has(m), rebalance.completing),
            implies(rebalance.told.has(m), is_stable(rebalance)),
        )
    )
    # Who may revoke lives, so that the sets of the rank are all of the living or of the members.
    alive = for_all(lambda m: implies(rebalance.may_revoke.has(m), rebalance.living.has(m)))
    return z3.And(leads, phases, waiting, alive)


def is_part(after: Rebalance, before: Rebalance, members: SetOfRank) -> Any:
    """Whether the set of the later rebalance is a part of that of the earlier one."""
    return for_all(lambda m: implies(members(after, m), members(before, m)))


def is_smaller(after: Rebalance, before: Rebalance, members: SetOfRank) -> Any:
    """Whether the set of the later rebalance is a part of that of the earlier one, and lacks somebody."""
    lost = exists(lambda m: and_(members(before, m), not_(members(after, m))))
    return z3.And(is_part(after, before, members), lost)


def is_lower(after: Rebalance, before: Rebalance) -> Any:
    """The rank is lower: at the first place where it differs it is."""
    result = is_smaller(after, before, is_awaited)
    for digit_after, digit_before in reversed(tuple(zip(phase_rank(after), phase_rank(before), strict=True))):
        falls = z3.And(formula(digit_before), z3.Not(formula(digit_after)))
        result = z3.Or(falls, z3.And(formula(digit_before) == formula(digit_after), result))
    for members in reversed(BEFORE_PHASE):
        result = z3.Or(is_smaller(after, before, members), z3.And(is_part(after, before, members), result))
    return result


def rebalance_lemmas() -> Iterator[Lemma]:
    """Everything that is proved of settling."""
    before = any_rebalance()
    for name, action in REBALANCE_ACTIONS.items():
        step = action(before, **any_arguments(action, ARGUMENTS))
        hypotheses = (invariant(before), formula(step.guard))
        yield Lemma("settles.rank", f"{name} lowers the rank", hypotheses, is_lower(step.after, before))
        yield Lemma("settles.rank", f"{name} keeps what holds all the time", hypotheses, invariant(step.after))
    everyone = for_all(lambda m: is_settled(before, m))
    living = exists(before.living.has)
    unsettled, possible = (invariant(before), z3.Not(everyone), living), some_action(before)
    yield Lemma("settles.progress", "some action is possible until the group is settled", unsettled, possible)
    settled = (invariant(before), everyone, living)
    all_are = for_all(lambda m: implies(before.living.has(m), and_(before.members.has(m), before.told.has(m))))
    nobody = for_all(lambda m: and_(not_(before.joined.has(m)), not_(before.synced.has(m))))
    yield Lemma("settles.end", "a settled group is stable, its members are the living", settled, all_are)
    yield Lemma("settles.end", "nobody waits in a settled group", settled, nobody)


def some_action(rebalance: Rebalance) -> Any:
    """Some action other than `revoke`, which nobody has to take, is possible."""
    possible: list[Any] = []
    nobody = rebalance.members.empty()
    for name, action in REBALANCE_ACTIONS.items():
        wanted = list(signature(action).parameters)[1:]
        if name == "revoke":
            continue
        if not wanted:
            possible.append(formula(action(rebalance).guard))
        elif wanted == ["leader", "dropped"]:
            possible.append(exists(lambda m, action=action: action(rebalance, m, nobody).guard))  # type: ignore[misc]
        else:
            possible.append(exists(lambda m, action=action: action(rebalance, m).guard))  # type: ignore[misc]
    return z3.Or(*possible)
