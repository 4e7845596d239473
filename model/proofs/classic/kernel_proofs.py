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
from fencepost.model.classic.kernel.invariants import INVARIANTS, SORTS, STEP_THEOREMS, Invariant, element_names
from fencepost.model.proofs.induction import Lemma
from fencepost.model.proofs.symbolic_values import SymbolicBool, formula

GENERATION, MEMBER, PARTITION = (z3.DeclareSort(name) for name in ("Generation", "Member", "Partition"))
Z3_SORTS = {"generation": GENERATION, "member": MEMBER, "partition": PARTITION}
NOT_AFTER = z3.Function("not_after", GENERATION, GENERATION, z3.BoolSort())
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


class SymbolicElement:
    """Any element of a sort; generations are ordered."""

    __slots__ = ("term",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, constant: Any) -> None:
        self.term = constant

    def __eq__(self, other: object) -> Any:
        assert isinstance(other, SymbolicElement)
        return SymbolicBool(self.term == other.term)

    def __gt__(self, other: "SymbolicElement") -> SymbolicBool:
        return SymbolicBool(z3.Not(NOT_AFTER(self.term, other.term)))


@dataclass(frozen=True, slots=True)
class SymbolicRelation:
    """A relation of any size: what it is between, and which tuples of terms are in it."""

    sorts: tuple[Any, ...]
    body: Callable[..., Any]

    def has(self, *elements: SymbolicElement) -> SymbolicBool:
        """The tuple is in the relation."""
        return SymbolicBool(self.body(*(each.term for each in elements)))

    def every(self, claim: Callable[..., Any]) -> SymbolicBool:
        """The claim holds of each tuple."""
        bound = [z3.FreshConst(sort) for sort in self.sorts]
        return SymbolicBool(
            z3.ForAll(bound, z3.Implies(self.body(*bound), formula(claim(*map(SymbolicElement, bound)))))
        )

    def suffixes(self, *prefix: SymbolicElement) -> "SymbolicRelation":
        """The rest of each tuple that begins so."""
        terms = [each.term for each in prefix]
        return SymbolicRelation(self.sorts[len(prefix) :], lambda *rest: self.body(*terms, *rest))

    def plus(self, *elements: SymbolicElement) -> "SymbolicRelation":
        """With this tuple."""
        return self.plus_all(elements, SymbolicRelation((), z3.And))

    def without(self, *prefix: SymbolicElement) -> "SymbolicRelation":
        """Less the tuples that begin so."""
        terms = [each.term for each in prefix]
        return SymbolicRelation(self.sorts, lambda *each: z3.And(self.body(*each), z3.Not(starts_with(each, terms))))

    def plus_all(self, prefix: tuple[SymbolicElement, ...], rest: "SymbolicRelation") -> "SymbolicRelation":
        """With each tuple of `rest` behind the prefix."""
        terms = [each.term for each in prefix]
        count = len(terms)
        return SymbolicRelation(
            self.sorts,
            lambda *each: z3.Or(self.body(*each), z3.And(starts_with(each, terms), rest.body(*each[count:]))),
        )

    def minus(self, other: "SymbolicRelation") -> "SymbolicRelation":
        """Without the tuples of the other relation."""
        return SymbolicRelation(self.sorts, lambda *each: z3.And(self.body(*each), z3.Not(other.body(*each))))

    def empty(self) -> "SymbolicRelation":
        """The empty relation of the same kind."""
        return SymbolicRelation(self.sorts, lambda *each: z3.BoolVal(False))


def starts_with(each: tuple[Any, ...], prefix: list[Any]) -> Any:
    """A tuple begins so."""
    return z3.And(*(one == other for one, other in zip(each, prefix, strict=False)))


def any_relation(name: str, sorts: tuple[Any, ...]) -> Any:
    """Any relation between these sorts."""
    return SymbolicRelation(sorts, z3.Function(name, *sorts, z3.BoolSort()))


def any_kernel() -> Kernel:
    """A kernel in any state."""
    relations = {name: any_relation(name, sorts) for name, sorts in RELATION_SORTS.items()}
    return Kernel(SymbolicElement(z3.Const("current", GENERATION)), SymbolicBool(z3.Bool("open")), **relations)  # type: ignore[arg-type]


def empty_kernel() -> Kernel:
    """The kernel of a new group: no member and no past."""
    empty = {name: any_relation(name, sorts).empty() for name, sorts in RELATION_SORTS.items()}
    return replace(any_kernel(), open=False, **empty)


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
    """Both ways to begin, and every action taken anywhere the invariants hold."""
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
