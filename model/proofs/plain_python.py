"""Plain Python made fit for symbols: `and`, `or` and `if ... else ...` become terms as the proof reads them.

Handlers are written as anybody writes Python, and that source is what runs everywhere but in a proof. Python asks for a
plain truth value in more places than `if`: `and`, `or`, `not`, a conditional expression, `any`, `all`. On symbols each
would fork the path, and a loop over n slots would have 2^n of them. So the proof reads the source once more and puts a
call in the place of each such expression, which makes one term for both cases:

    a and b, a or b, not a          `conjunction`, `disjunction`, `opposite`
    a if c else b                   `choice`
    a is None, a in (b, c), a < b < c    `absent`; a disjunction; a conjunction
    any(..), all(..), sum(..), max(..), min(..)    `some`, `every`, `total`, `greatest`, `least`
    a in b, a.isdisjoint(b), {a, b}, dict.fromkeys(a, b)    `contains`, `apart`, `collection`, `constant_map`
    all(f(a) for a in b)            `every_of`, which is about every element of a symbolic set

`if` statements are left as they are. They fork: they are the decisions that a reader of the protocol knows by name.
Operands are passed as functions, so that a call does on plain values what the expression does, in the same order, and
leaves out what it leaves out. Only on a symbol all operands are evaluated, and so they have to be total there: an
operand that raises where Python would not have come to it stops the proof. Operands change nothing: a handler's
source has no assignment in an expression, and its values are frozen.

A twin is a module read in this way. It has the classes and constants of the module itself, its functions, and the
twins of all modules of protocols that it imports; what lies below the protocols (`logic`, `frozen`, ...) is shared.
"""

import ast
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from operator import attrgetter
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import z3

from fencepost.model.logic import absent
from fencepost.model.proofs.symbolic_values import (
    SymbolicBool,
    SymbolicElement,
    SymbolicMap,
    SymbolicNumber,
    SymbolicSet,
    conjoin,
    disjoin,
    negate,
    set_term,
    value_term,
)

Handler = TypeVar("Handler", bound=Callable[..., Any])
Operand = Callable[[], Any]

# --- What the expressions become.


def conjunction(*operands: Operand) -> Any:
    """`a and b and ...`: the first plain value that is false; else the term of those that are symbols, or the last."""
    return fold_truths(conjoin, False, (operand() for operand in operands))


def disjunction(*operands: Operand) -> Any:
    """`a or b or ...`: the first plain value that is true; else the term of those that are symbols, or the last."""
    return fold_truths(disjoin, True, (operand() for operand in operands))


def every(values: Iterable[Any]) -> Any:
    """`all(...)`."""
    return fold_truths(conjoin, False, map(as_truth, values), True)


def some(values: Iterable[Any]) -> Any:
    """`any(...)`."""
    return fold_truths(disjoin, True, map(as_truth, values), False)


def as_truth(value: Any) -> Any:
    """The value as a truth value of either kind; that of a set is whether anything is in it."""
    if isinstance(value, SymbolicBool):
        return value
    return value.is_inhabited() if isinstance(value, SymbolicSet) else bool(value)


def every_of(values: Iterable[Any], claim: Callable[[Any], Any]) -> Any:
    """`all(claim(value) for value in values)`."""
    return values.every(claim) if isinstance(values, SymbolicSet) else every(map(claim, values))


def some_of(values: Iterable[Any], claim: Callable[[Any], Any]) -> Any:
    """`any(claim(value) for value in values)`."""
    if isinstance(values, SymbolicSet):
        return opposite(values.every(lambda value: opposite(claim(value))))
    return some(map(claim, values))


def contains(values: Any, value: Any) -> Any:
    """`value in values`."""
    if isinstance(values, frozenset) and isinstance(value, SymbolicElement):
        return some(value == one for one in values)
    return values.has(value) if isinstance(values, SymbolicSet | SymbolicMap) else value in values


def apart(one: Any, other: Any) -> Any:
    """`one.isdisjoint(other)`."""
    if isinstance(one, SymbolicSet) or isinstance(other, SymbolicSet):
        return opposite(one & other)
    return one.isdisjoint(other)


def collection(*values: Any) -> Any:
    """`{a, b, ...}`."""
    if values and isinstance(values[0], SymbolicElement):
        return SymbolicSet(set_term(values, values[0].term.sort()))
    return set(values)


def constant_map(keys: Any, value: Any) -> Any:
    """`dict.fromkeys(keys, value)`."""
    if not isinstance(keys, SymbolicSet):
        return dict.fromkeys(keys, value)
    kinds: dict[type, Callable[[Any], Any]] = {bool: SymbolicBool, int: SymbolicNumber}
    return SymbolicMap(keys, z3.K(keys.sort, value_term(value)), kinds.get(type(value), type(value)))


def fold_truths(join: Callable[[Any, Any], Any], end: bool, values: Iterable[Any], result: Any = None) -> Any:
    """The values joined; the first plain one whose truth is `end` decides, and nothing behind it is evaluated."""
    term: Any = None
    for value in values:
        if isinstance(value, SymbolicSet):
            value = value.is_inhabited()
        if isinstance(value, SymbolicBool):
            term = value if term is None else join(term, value)
        elif bool(value) is end:
            return value
        else:
            result = value
    return result if term is None else term


def opposite(value: Any) -> Any:
    """`not a`."""
    return negate(as_truth(value))


def choice(condition: Any, then: Operand, otherwise: Operand) -> Any:
    """`a if c else b`: both in one value on a symbol, but for two names of rules, between which the path forks."""
    condition = as_truth(condition)
    if not isinstance(condition, SymbolicBool):
        return then() if condition else otherwise()
    one, other = then(), otherwise()
    if isinstance(one, str) and isinstance(other, str):
        return one if condition else other
    return condition.choose(one, other)


def total(values: Iterable[Any]) -> Any:
    """`sum(...)`, of truth values too."""
    result: Any = 0
    for value in values:
        result = result + (value.choose(1, 0) if isinstance(value, SymbolicBool) else value)
    return result


def greatest(*values: Any) -> Any:
    """`max(a, b, ...)`."""
    top, *rest = values
    for value in rest:
        top = choice(value > top, lambda value=value: value, lambda top=top: top)  # type: ignore[misc]
    return top


def least(*values: Any) -> Any:
    """`min(a, b, ...)`."""
    bottom, *rest = values
    for value in rest:
        bottom = choice(value < bottom, lambda value=value: value, lambda bottom=bottom: bottom)  # type: ignore[misc]
    return bottom


# --- The expressions are found in the syntax tree.

CALLS: dict[str, Callable[..., Any]] = {"any": some, "all": every, "sum": total, "max": greatest, "min": least}
CLAIMS: dict[str, Callable[..., Any]] = {"any": some_of, "all": every_of}
_OTHERS = (conjunction, disjunction, opposite, choice, absent, contains, apart, collection, constant_map)
EXPRESSIONS = {one.__name__: one for one in (*_OTHERS, *CALLS.values(), *CLAIMS.values())}


class ExpressionRewriter(ast.NodeTransformer):
    """Puts a call in the place of every expression that asks for a plain truth value."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """`and` and `or`."""
        self.generic_visit(node)
        return call(conjunction if isinstance(node.op, ast.And) else disjunction, *map(later, node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """`not`."""
        self.generic_visit(node)
        return call(opposite, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """`a if c else b`."""
        self.generic_visit(node)
        return call(choice, node.test, later(node.body), later(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Comparisons with None or a tuple, and chains of comparisons."""
        self.generic_visit(node)
        if len(node.ops) > 1:
            parts = zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
            return call(conjunction, *(later(ast.Compare(one, [op], [other])) for one, op, other in parts))
        (comparison,), (other,) = node.ops, node.comparators
        if isinstance(other, ast.Constant) and other.value is None and isinstance(comparison, ast.Is | ast.IsNot):
            found = call(absent, node.left)
        elif isinstance(other, ast.Tuple) and isinstance(comparison, ast.In | ast.NotIn):
            found = call(disjunction, *(later(ast.Compare(node.left, [ast.Eq()], [one])) for one in other.elts))
        elif isinstance(comparison, ast.In | ast.NotIn):
            found = call(contains, other, node.left)
        else:
            return node
        return found if isinstance(comparison, ast.Is | ast.In) else call(opposite, found)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """`any`, `all`, `sum`, `max`, `min`; `dict.fromkeys`, `isdisjoint`."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "isdisjoint":
            return call(apart, node.func.value, *node.args)
        if isinstance(node.func, ast.Attribute) and ast.unparse(node.func) == "dict.fromkeys":
            return call(constant_map, *node.args)
        claimed = self._claim_of_each(node)
        if claimed is not None:
            return claimed
        made = CALLS.get(node.func.id) if isinstance(node.func, ast.Name) else None
        return node if made is None or node.keywords else call(made, *node.args)

    def visit_Set(self, node: ast.Set) -> ast.expr:
        """`{a, b}`."""
        self.generic_visit(node)
        return call(collection, *node.elts)

    def _claim_of_each(self, node: ast.Call) -> ast.expr | None:
        """`all(f(a) for a in b)` as a claim about the elements of `b`; None for any other call."""
        match node:
            case ast.Call(
                ast.Name(name), [ast.GeneratorExp(claim, [ast.comprehension(ast.Name(one), values, [], 0)])], []
            ) if name in CLAIMS:
                nothing = ast.arguments(posonlyargs=[], args=[ast.arg(one)], kwonlyargs=[], kw_defaults=[], defaults=[])
                return call(CLAIMS[name], values, ast.Lambda(nothing, claim))
        return None


def call(function: Callable[..., Any], *arguments: ast.expr) -> ast.expr:
    """The expression that calls one of `EXPRESSIONS`, under a name that no source has."""
    return ast.Call(ast.Name(f"<{function.__name__}>", ast.Load()), list(arguments), [])


def later(operand: ast.expr) -> ast.expr:
    """The operand, to be evaluated when it is called."""
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(nothing, operand)


def rewrite_functions(source: str) -> ast.Module:
    """The functions of a module, made fit for symbols; without their decorators."""
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    for node in functions:
        node.decorator_list = []
    return ast.fix_missing_locations(ast.Module([ExpressionRewriter().visit(node) for node in functions], []))


# --- Twins of modules.

Scope = dict[str, Any]
"""The names of a module."""
ENGINES = frozenset({"proofs", "explore", "wire"})
"""Packages, of the model or of a protocol, whose modules have no twins."""


def has_twin(scope: Scope) -> bool:
    """The module belongs to a protocol, and not to the proofs or searches about it."""
    name: str = scope["__name__"]
    package = name.removeprefix("fencepost.model.").split(".")[:-1]
    return name.startswith("fencepost.model.") and bool(package) and not ENGINES.intersection(package)


class ModuleTwins:
    """The twins of modules, each made when it is first needed. `rewritten` are the modules and packages whose source
    is rewritten; other modules of protocols keep their code, and call twins."""

    def __init__(self, *rewritten: str) -> None:
        self._rewritten = rewritten
        self._scopes: dict[int, tuple[Scope, Scope, Scope]] = {}
        """By its identity: the scope of a module, that of its twin, and the functions that were rewritten."""

    def twin(self, function: Handler) -> Handler:
        """The function as its module's twin has it."""
        assert isinstance(function, FunctionType)
        twin, rewritten = self._twin_scope(function.__globals__)
        found: Any = rewritten.get(function.__qualname__)
        return cast(Handler, self._with_scope(function, twin) if found is None else found)

    def forget(self) -> None:
        """Make all twins anew, for modules have changed since."""
        self._scopes.clear()

    def _twin_scope(self, scope: Scope) -> tuple[Scope, Scope]:
        """The names of a module's twin, and the rewritten functions among them, decorators left out."""
        if id(scope) not in self._scopes:
            twin, rewritten = dict(scope), Scope()
            self._scopes[id(scope)] = (scope, twin, rewritten)
            if self._is_rewritten(scope):
                twin.update({f"<{name}>": one for name, one in EXPRESSIONS.items()})
                tree = rewrite_functions(scope.get("__source__") or Path(scope["__file__"]).read_text())
                exec(compile(tree, scope["__file__"], "exec"), twin)
                rewritten.update({name: twin[name] for name in map(attrgetter("name"), tree.body)})
            twin.update({name: self._twin_value(one, scope) for name, one in scope.items() if name[:2] != "__"})
        return self._scopes[id(scope)][1:]

    def _is_rewritten(self, scope: Scope) -> bool:
        return any(f"{scope['__name__']}.".startswith(f"{one}.") for one in self._rewritten)

    def _has_twin(self, scope: Scope) -> bool:
        return has_twin(scope) or self._is_rewritten(scope)

    def _with_scope(self, function: FunctionType, twin: Scope) -> FunctionType:
        """The function with the names of a twin, also in what is closed over."""
        held = tuple(CellType(self._twin_value(one.cell_contents, twin)) for one in function.__closure__ or ())
        made = FunctionType(function.__code__, twin, function.__name__, function.__defaults__, held)
        made.__kwdefaults__ = function.__kwdefaults__
        return made

    def _twin_value(self, value: Any, scope: Scope) -> Any:
        """What stands for a module's value in its twin: for functions and modules of protocols, and for what holds such
        functions, their twins."""
        if isinstance(value, FunctionType):
            return self.twin(value) if value.__globals__ is scope or self._has_twin(value.__globals__) else value
        if isinstance(value, ModuleType) and self._has_twin(vars(value)):
            twin = ModuleType(value.__name__)
            twin.__dict__.update(self._twin_scope(vars(value))[0])
            return twin
        if type(value) is tuple:
            made = tuple(self._twin_value(one, scope) for one in value)
            return made if any(one is not other for one, other in zip(made, value, strict=True)) else value
        if type(value) is dict:
            return {key: self._twin_value(one, scope) for key, one in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            own = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
            changed = {name: made for name, one in own.items() if (made := self._twin_value(one, scope)) is not one}
            return replace(value, **changed) if changed else value
        return value
