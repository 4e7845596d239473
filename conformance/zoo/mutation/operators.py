"""The mutation operators: in which small ways a program is made wrong, and why in these.

They follow the classical ones (DeMillo and Offutt's), as far as they make sense for a program of guards, comparisons
and fields. The core's `and_`, `or_`, `not_`, `ite`, `emit` and `evolve` mean what Python's own words mean.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fencepost.conformance.zoo.mutation.syntax import (
    CONJUNCTIONS,
    DISJUNCTIONS,
    FIELD_UPDATES,
    Site,
    is_call_of,
    is_class_name,
    is_constructor,
    is_negation,
)

Replacements = Iterator[ast.AST | None]
"""What may stand in a place instead; None for nothing."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A way to be wrong: its name, why it is tried, and what it puts in a place."""

    name: str
    reason: str
    replacements: Callable[[Site], Replacements]


def force_condition(value: bool) -> Callable[[Site], Replacements]:
    """A condition that always holds, or never does. Terms of connectives are left out instead."""

    def replacements(site: Site) -> Replacements:
        if (site.is_condition or (site.is_boolean and not site.is_term)) and not isinstance(site.node, ast.Constant):
            yield ast.Constant(value)

    return replacements


def negate_condition(site: Site) -> Replacements:
    """The opposite of a condition; comparisons have opposites of their own."""
    if is_negation(site.node):
        yield site.node.args[0] if isinstance(site.node, ast.Call) else site.node.operand  # type: ignore[attr-defined]
    elif (site.is_condition or (site.is_boolean and not site.is_term)) and not isinstance(site.node, ast.Compare):
        assert isinstance(site.node, ast.expr)
        if not isinstance(site.node, ast.Constant):
            yield ast.UnaryOp(ast.Not(), site.node)


_NEIGHBOURS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}


def change_comparison(site: Site) -> Replacements:
    """A comparison's neighbours: its opposite, and for an order the one that differs where both sides are equal."""
    if isinstance(site.node, ast.Compare):
        for place, comparison in enumerate(site.node.ops):
            for other in _NEIGHBOURS[type(comparison)]:
                ops = [*site.node.ops[:place], other(), *site.node.ops[place + 1 :]]
                yield ast.Compare(site.node.left, ops, site.node.comparators)


def drop_term(site: Site) -> Replacements:
    """A conjunction or disjunction without one of its terms."""
    if isinstance(site.node, ast.BoolOp):
        for place in range(len(site.node.values)):
            rest = [*site.node.values[:place], *site.node.values[place + 1 :]]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(site.node.op, rest)
    elif (
        isinstance(site.node, ast.Call)
        and is_call_of(site.node, CONJUNCTIONS | DISJUNCTIONS)
        and len(site.node.args) > 1
    ):
        for place in range(len(site.node.args)):
            rest = [*site.node.args[:place], *site.node.args[place + 1 :]]
            yield rest[0] if len(rest) == 1 else ast.Call(site.node.func, rest, [])


_OTHER = {"and_": "or_", "or_": "and_", "all_": "any_", "any_": "all_", "all": "any", "any": "all"}
_OTHER |= {"min": "max", "max": "min"}


def swap_connective(site: Site) -> Replacements:
    """All for any, any for all; the largest for the smallest."""
    if isinstance(site.node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(site.node.op, ast.And) else ast.And(), site.node.values)
    elif isinstance(site.node, ast.Call) and is_call_of(site.node, frozenset(_OTHER)):
        assert isinstance(site.node.func, ast.Name)
        other = ast.Name(_OTHER[site.node.func.id], ast.Load())
        yield ast.Call(other, site.node.args, site.node.keywords)


def drop_field(site: Site) -> Replacements:
    """A field keeps its value, or gets its default."""
    if not isinstance(site.node, ast.keyword) or not isinstance(site.parent, ast.Call) or site.node.arg is None:
        return
    if is_call_of(site.parent, FIELD_UPDATES) or site.node.arg in default_fields(site, site.parent):
        yield None


def default_fields(site: Site, call: ast.Call) -> frozenset[str]:
    """The fields with a default of the class that is called."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return site.vocabulary.defaults.get(name, frozenset())


def empty_value(site: Site) -> Replacements:
    """A field that has no default gets nothing."""
    if not is_constructor(site.parent) or isinstance(site.node, ast.Constant | ast.Starred):
        return
    if isinstance(site.node, ast.keyword):
        assert isinstance(site.parent, ast.Call)
        if site.node.arg not in default_fields(site, site.parent) and not isinstance(site.node.value, ast.Constant):
            yield ast.keyword(site.node.arg, empty_like(site.node.value))
    elif site.field == "args":
        assert isinstance(site.node, ast.expr)
        yield empty_like(site.node)


def empty_like(value: ast.expr) -> ast.expr:
    """Nothing, in the form of the value."""
    return ast.Tuple([], ast.Load()) if isinstance(value, ast.Tuple) else ast.Constant(None)


def change_constant(site: Site) -> Replacements:
    """The other truth value, the next number, another string of the module, the next member of an enumeration."""
    node = site.node
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield ast.Constant(node.value + 1)
        elif isinstance(node.value, str) and site.function and len(site.strings) > 1:
            place = site.strings.index(node.value) if node.value in site.strings else -1
            yield ast.Constant(site.strings[(place + 1) % len(site.strings)])
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and is_class_name(node.value.id):
        members = site.vocabulary.enumerations.get(node.value.id, ())
        if node.attr in members and isinstance(node.ctx, ast.Load):
            following = members[(members.index(node.attr) + 1) % len(members)]
            yield ast.Attribute(node.value, following, ast.Load())


def drop_summand(site: Site) -> Replacements:
    """One side of a sum or difference, or the sum for the difference."""
    if isinstance(site.node, ast.BinOp) and isinstance(site.node.op, ast.Add | ast.Sub):
        yield site.node.left
        if isinstance(site.node.op, ast.Add):
            yield site.node.right
        else:
            yield ast.BinOp(site.node.left, ast.Add(), site.node.right)


def drop_call(site: Site) -> Replacements:
    """A call that gives back its argument changed, left out."""
    if isinstance(site.node, ast.Call) and is_call_of(site.node, site.vocabulary.value_returning):
        yield from (one for one in site.node.args[:1] if not isinstance(one, ast.Starred))


def drop_statement(site: Site) -> Replacements:
    """A statement left out: a call, a change of a field, a new value of a name that has one, a return of nothing."""
    node = site.node
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete() | ast.Raise():
            yield None
        case ast.Return(value=None) | ast.Break() | ast.Continue():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield None
        case ast.Assign(targets=[ast.Name() as name]) if name.id in site.bound:
            yield None
        case _:
            return


OPERATORS = (
    Operator("always", "a guard that is not there lets everything in", force_condition(True)),
    Operator("never", "a branch that is not there", force_condition(False)),
    Operator("negated", "a guard the wrong way round", negate_condition),
    Operator("comparison", "the wrong comparison: the opposite, or one off at the boundary", change_comparison),
    Operator("term", "a condition forgotten among several", drop_term),
    Operator("connective", "and for or, all for any, largest for smallest", swap_connective),
    Operator("field", "an assignment of a field forgotten", drop_field),
    Operator("value", "a field that is filled with nothing", empty_value),
    Operator("constant", "the wrong constant: truth value, number, name, state, error", change_constant),
    Operator("sum", "a deadline, generation or list with a part forgotten", drop_summand),
    Operator("call", "a change that is not made: no timer armed, nobody removed", drop_call),
    Operator("statement", "a step forgotten", drop_statement),
)
"""All operators, in the order in which equal results are credited."""
