"""The theorems of the kernel for any number of members, partitions and generations.

The actions of `model.classic.kernel.actions` run on predicates over uninterpreted sorts; generations are totally
ordered and nothing else is known of them. Each action, from any state in which all invariants hold, leads to one in
which they hold.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import z3

from fencepost.model.classic.kernel.actions import ACTIONS, Kernel, KernelStep, adopt
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
from fencepost.model.classic.theorems.kernel_statements import (
    INVARIANTS,
    SORTS,
    STEP_THEOREMS,
    Invariant,
    element_names,
)
from fencepost.model.logic import Truth, and_, not_
from fencepost.model.proofs.induction import Lemma
from fencepost.model.proofs.symbolic_relations import SymbolicRelation, any_relation, without_past
from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicElement, formula, order_of
from fencepost.model.relations import Relation
from fencepost.model.statement import implies

GENERATION, MEMBER, PARTITION = (z3.DeclareSort(name) for name in ("Generation", "Member", "Partition"))
Z3_SORTS = {"generation": GENERATION, "member": MEMBER, "partition": PARTITION}
NOT_AFTER = order_of(GENERATION)
RELATION_SORTS: dict[str, tuple[Any, ...]] = {
    "registered": (MEMBER,),
    "owned": (MEMBER, PARTITION),
    "syncing": (MEMBER,),
    "stable": (MEMBER,),
    "believed": (MEMBER, GENERATION),
    "joined": (GENERATION, MEMBER),
    "led": (GENERATION, MEMBER),
    "claimed": (GENERATION, MEMBER, PARTITION),
    "published": (GENERATION,),
    "assigned": (GENERATION, MEMBER, PARTITION),
    "sent": (MEMBER, GENERATION, PARTITION),
    "accepted": (MEMBER, GENERATION, PARTITION),
}
"""The relations of a kernel and what they are between."""
ARGUMENT_SORTS: dict[str, Any] = {
    "generation": GENERATION,
    "leader": MEMBER,
    "member": MEMBER,
    "partition": PARTITION,
    "members": (MEMBER,),
    "claims": (MEMBER, PARTITION),
    "assignment": (MEMBER, PARTITION),
    "keeps": (PARTITION,),
}
"""The arguments of the actions: elements, and relations."""


def any_kernel() -> Kernel:
    """A kernel in any state."""
    relations = {name: any_relation(name, sorts) for name, sorts in RELATION_SORTS.items()}
    return Kernel(SymbolicElement(z3.Const("current", GENERATION)), SymbolicBool(z3.Bool("open")), **relations)  # type: ignore[arg-type]


def empty_kernel() -> Kernel:
    """The kernel of a new group: no member and no past."""
    return replace(without_past(any_kernel()), open=False)


def total_order() -> tuple[Any, ...]:
    """Generations are totally ordered."""
    a, b, c = (z3.Const(name, GENERATION) for name in ("a", "b", "c"))
    return (
        z3.ForAll([a], NOT_AFTER(a, a)),
        z3.ForAll([a, b, c], z3.Implies(z3.And(NOT_AFTER(a, b), NOT_AFTER(b, c)), NOT_AFTER(a, c))),
        z3.ForAll([a, b], z3.Implies(z3.And(NOT_AFTER(a, b), NOT_AFTER(b, a)), a == b)),
        z3.ForAll([a, b], z3.Or(NOT_AFTER(a, b), NOT_AFTER(b, a))),
    )


def universal_formula(claim: Invariant, kernel: Kernel) -> Any:
    """The invariant as a formula about all elements."""
    bound = [z3.FreshConst(Z3_SORTS[SORTS[name]]) for name in element_names(claim)]
    body = formula(claim(kernel, *map(SymbolicElement, bound)))
    return z3.ForAll(bound, body) if bound else body


def generic_formula(claim: Invariant, *kernels: Kernel) -> Any:
    """The invariant about any elements."""
    return formula(
        claim(*kernels, *(SymbolicElement(z3.Const(name, Z3_SORTS[SORTS[name]])) for name in element_names(claim)))
    )


def any_arguments(action: Callable[..., Any], sorts: Mapping[str, Any] = ARGUMENT_SORTS) -> dict[str, Any]:
    """Any arguments for an action: elements and relations, by name of these sorts."""
    found: dict[str, Any] = {}
    for name in list(signature(action).parameters)[1:]:
        kind = sorts[name]
        found[name] = (
            any_relation(f"any_{name}", kind)
            if isinstance(kind, tuple)
            else SymbolicElement(z3.Const(f"any_{name}", kind))
        )
    return found


@dataclass(frozen=True, slots=True)
class ActionCase:
    """An action taken in some state: what is assumed of that, the guards by name, the kernel before and after."""

    action: str
    before: Kernel
    after: Kernel
    assumed: tuple[Any, ...]
    guards: dict[str, Any]
    claims: tuple[Invariant, ...] = INVARIANTS
    step_claims: tuple[Invariant, ...] = STEP_THEOREMS

    def lemmas(self, dropped: str = "") -> Iterator[Lemma]:
        """Each invariant after the action; with a guard dropped, to see whether it is needed."""
        guards = tuple(guard for name, guard in self.guards.items() if name != dropped)
        hypotheses = (*self.assumed, *guards)
        for claim in self.claims:
            yield Lemma(f"kernel.{claim.__name__}", self.action, hypotheses, generic_formula(claim, self.after))
        for claim in self.step_claims:
            goal = generic_formula(claim, self.before, self.after)
            yield Lemma(f"kernel.{claim.__name__}", self.action, hypotheses, goal)


def action_cases() -> Iterator[ActionCase]:
    """The two ways to begin, and every action taken anywhere the invariants hold."""
    new, ordered = empty_kernel(), total_order()
    yield ActionCase("new group", new, new, ordered, {}, step_claims=())
    adopted = adopt(new, **any_arguments(adopt))
    yield ActionCase("adopt", new, adopted.after, ordered, guard_formulas(adopted), step_claims=())
    before = any_kernel()
    assumed = (*ordered, *(universal_formula(claim, before) for claim in INVARIANTS))
    for name, action in ACTIONS.items():
        move = action(before, **any_arguments(action))
        yield ActionCase(name, before, move.after, assumed, guard_formulas(move))


def guard_formulas(step: KernelStep) -> dict[str, Any]:
    """The guards of a symbolic action as formulas."""
    return {name: formula(guard) for name, guard in step.guards.items()}


def kernel_lemmas() -> Iterator[Lemma]:
    """Everything that is proved of the kernel."""
    for each in action_cases():
        yield from each.lemmas()


# --- A group settles, for any number of members: every action lowers the rank, and some action is possible until
# then.
#
# Members are an uninterpreted sort. That a row of finite sets can be lowered finitely often only is the one step that
# is not put to the solver.

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


# --- The cooperative rebalance (KIP-429) for any number of members and partitions, and any target of the leader.
#
# In the first rebalance each partition goes to its target, unless another member claims it: then to nobody. A sticky
# plan for the second one leaves each partition with whom it is, and gives the others to anybody.

M, X = (SymbolicElement(z3.Const(name, MEMBER)) for name in ("m", "x"))
P = SymbolicElement(z3.Const("p", PARTITION))


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
    owned, target, second = (
        any_relation(name, (MEMBER, PARTITION)) for name in ("owned_before", "target", "second_target")
    )
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
