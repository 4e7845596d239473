"""The mutation operators: small changes that make a program wrong, with the reason for each.

They follow the classical ones (DeMillo and Offutt's), as far as they apply to a program of guards, comparisons and
fields. The core's `and_`, `or_`, `not_`, `ite`, `emit` and `evolve` count as the Python words that they stand for.
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
"""Nodes to put in the place of another; None removes it."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A mutation operator: its name, the reason for it, and the function that gives the replacements of a site."""

    name: str
    reason: str
    replacements: Callable[[Site], Replacements]


def force_condition(value: bool) -> Callable[[Site], Replacements]:
    """Replace a condition by a constant; terms of connectives are left to `drop_term`."""

    def replacements(site: Site) -> Replacements:
        if (site.is_condition or (site.is_boolean and not site.is_term)) and not isinstance(site.node, ast.Constant):
            yield ast.Constant(value)

    return replacements


def negate_condition(site: Site) -> Replacements:
    """Negate a condition; comparisons are left to `change_comparison`."""
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
    """Replace a comparison by its opposite, an order also by the one that differs where both sides are equal."""
    if isinstance(site.node, ast.Compare):
        for place, comparison in enumerate(site.node.ops):
            for other in _NEIGHBOURS[type(comparison)]:
                ops = [*site.node.ops[:place], other(), *site.node.ops[place + 1 :]]
                yield ast.Compare(site.node.left, ops, site.node.comparators)


def drop_term(site: Site) -> Replacements:
    """Drop a term of a conjunction or disjunction."""
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
    """Swap conjunction and disjunction, all and any, largest and smallest."""
    if isinstance(site.node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(site.node.op, ast.And) else ast.And(), site.node.values)
    elif isinstance(site.node, ast.Call) and is_call_of(site.node, frozenset(_OTHER)):
        assert isinstance(site.node.func, ast.Name)
        other = ast.Name(_OTHER[site.node.func.id], ast.Load())
        yield ast.Call(other, site.node.args, site.node.keywords)


def drop_field(site: Site) -> Replacements:
    """Drop a field of an update or of a constructor call, so that it keeps its value or gets its default."""
    if not isinstance(site.node, ast.keyword) or not isinstance(site.parent, ast.Call) or site.node.arg is None:
        return
    if is_call_of(site.parent, FIELD_UPDATES) or site.node.arg in default_fields(site, site.parent):
        yield None


def default_fields(site: Site, call: ast.Call) -> frozenset[str]:
    """The fields of the called class that have a default."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return site.vocabulary.defaults.get(name, frozenset())


def empty_value(site: Site) -> Replacements:
    """Replace the value of a field without a default by an empty one."""
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
    """An empty tuple in the place of a tuple, else None."""
    return ast.Tuple([], ast.Load()) if isinstance(value, ast.Tuple) else ast.Constant(None)


def change_constant(site: Site) -> Replacements:
    """Replace a constant: by the other truth value, the next number, another string of the module, the next member of
    an enumeration."""
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
    """Replace a sum or difference by one of its sides, a difference also by the sum."""
    if isinstance(site.node, ast.BinOp) and isinstance(site.node.op, ast.Add | ast.Sub):
        yield site.node.left
        if isinstance(site.node.op, ast.Add):
            yield site.node.right
        else:
            yield ast.BinOp(site.node.left, ast.Add(), site.node.right)


def drop_call(site: Site) -> Replacements:
    """Replace a call that returns its first argument changed by that argument."""
    if isinstance(site.node, ast.Call) and is_call_of(site.node, site.vocabulary.value_returning):
        yield from (one for one in site.node.args[:1] if not isinstance(one, ast.Starred))


def drop_statement(site: Site) -> Replacements:
    """Drop a statement: a call, an update of a field, an assignment to a bound name, a return without a value."""
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
"""All operators; equal results count for the first of them."""
