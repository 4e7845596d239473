"""The mutation operators: small changes of a syntax tree that make a program wrong, with the reason for each.

They follow the classical ones (DeMillo and Offutt's), as far as they apply to a program of guards, comparisons and
fields. The core's `and_`, `or_`, `not_`, `ite`, `emit` and `evolve` count as the Python words that they stand for.
First come the sites of a tree where operators apply, and the vocabulary of names for replacements.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

NodePath = tuple[tuple[str, int | None], ...]
"""The path from a tree's root to a node: fields, with an index in those that are lists."""
CONJUNCTIONS = frozenset({"and_", "all_", "all"})
DISJUNCTIONS = frozenset({"or_", "any_", "any"})
CONDITIONAL_CALLS = frozenset({"ite", "emit"})
"""Functions whose first argument decides."""
FIELD_UPDATES = frozenset({"evolve", "replace"})
"""Functions that give a value with other fields."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Definitions of some modules: enumerations, fields with a default, and functions that return a changed argument.

    The latter have a first parameter of the type of their result, so that the argument can replace the call.
    """

    enumerations: Mapping[str, tuple[str, ...]]
    defaults: Mapping[str, frozenset[str]]
    value_returning: frozenset[str]

    @classmethod
    def of(cls, sources: Iterable[str]) -> "Vocabulary":
        """The vocabulary of some modules."""
        enumerations: dict[str, tuple[str, ...]] = {}
        defaults: dict[str, frozenset[str]] = {}
        changing = {"reversed", "sorted"}
        for source in sources:
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.ClassDef):
                    if any("Enum" in ast.unparse(base) for base in node.bases):
                        enumerations[node.name] = members_of(node)
                    fields = (one for one in node.body if isinstance(one, ast.AnnAssign) and one.value is not None)
                    defaults[node.name] = frozenset(one.target.id for one in fields if isinstance(one.target, ast.Name))
                elif isinstance(node, ast.FunctionDef) and returns_its_input(node):
                    changing.add(node.name)
        return cls(enumerations, defaults, frozenset(changing))


def members_of(enumeration: ast.ClassDef) -> tuple[str, ...]:
    """The members of an enumeration."""
    assigned = (node for node in enumeration.body if isinstance(node, ast.Assign))
    return tuple(target.id for node in assigned for target in node.targets if isinstance(target, ast.Name))


def returns_its_input(function: ast.FunctionDef) -> bool:
    """Whether the function returns a value of the type of its first parameter."""
    named = (*function.args.posonlyargs, *function.args.args)
    parameters = [one for one in named if one.arg not in ("self", "cls")]
    if not parameters or parameters[0].annotation is None or function.returns is None:
        return False
    return ast.unparse(parameters[0].annotation) == ast.unparse(function.returns) and function.name != "not_"


@dataclass(frozen=True, slots=True)
class Site:
    """A node with its place in the tree, and the names that its function has `bound` before it."""

    node: ast.AST
    parent: ast.AST
    path: NodePath
    function: str
    bound: frozenset[str]
    strings: tuple[str, ...]
    """The strings of the module, each once."""
    vocabulary: Vocabulary

    @property
    def field(self) -> str:
        """The parent's field that holds the node."""
        return self.path[-1][0]

    @property
    def is_condition(self) -> bool:
        """The node is a condition: of a branch, a loop, a filter, or of a function that chooses."""
        parent = self.parent
        if isinstance(parent, ast.If | ast.IfExp | ast.While):
            return self.field == "test"
        if isinstance(parent, ast.comprehension):
            return self.field == "ifs"
        if isinstance(parent, ast.match_case):
            return self.field == "guard"
        return is_call_of(parent, CONDITIONAL_CALLS) and self.path[-1] == ("args", 0)

    @property
    def is_term(self) -> bool:
        """The node is a term of a connective."""
        if isinstance(self.parent, ast.BoolOp) or is_negation(self.parent):
            return True
        return is_call_of(self.parent, CONJUNCTIONS | DISJUNCTIONS) and self.field == "args"

    @property
    def is_boolean(self) -> bool:
        """The node is a comparison or a connective."""
        if isinstance(self.node, ast.Compare | ast.BoolOp) or is_negation(self.node):
            return True
        return is_call_of(self.node, CONJUNCTIONS | DISJUNCTIONS)


def is_call_of(node: ast.AST, names: frozenset[str]) -> bool:
    """The node calls a function of one of these names."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def is_negation(node: ast.AST) -> bool:
    """The node is a negation."""
    return is_call_of(node, frozenset({"not_"})) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def is_class_name(name: str) -> bool:
    """The name is written like a class."""
    return name[:1].isupper() and not name.isupper()


def sites(tree: ast.Module, vocabulary: Vocabulary) -> Iterator[Site]:
    """Every site of the module's code, without docstrings, types, imports and decorators."""
    strings = tuple(dict.fromkeys(strings_in(tree)))
    yield from _sites(tree, (), "", set(), strings, vocabulary)


def _sites(
    parent: ast.AST, path: NodePath, function: str, bound: set[str], strings: tuple[str, ...], vocabulary: Vocabulary
) -> Iterator[Site]:
    for field, index, node in child_nodes(parent):
        here = (*path, (field, index))
        yield Site(node, parent, here, function, frozenset(bound), strings, vocabulary)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{function}.{node.name}" if function else node.name
            parameters = () if isinstance(node, ast.ClassDef) else ast.walk(node.args)
            names = {one.arg for one in parameters if isinstance(one, ast.arg)}
            yield from _sites(node, here, inside, names, strings, vocabulary)
        else:
            yield from _sites(node, here, function, bound, strings, vocabulary)
        if isinstance(node, ast.stmt):
            names_in = (one for one in ast.walk(node) if isinstance(one, ast.Name))
            bound |= {one.id for one in names_in if isinstance(one.ctx, ast.Store)}


def child_nodes(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    """The child nodes of a node that are code."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases", "keywords") and not isinstance(node, ast.Call):
            continue
        if isinstance(value, ast.AST):
            if not is_skipped(value):
                yield field, None, value
        elif isinstance(value, list):
            for index, one in enumerate(value):
                if isinstance(one, ast.AST) and not is_skipped(one):
                    yield field, index, one


def is_skipped(node: ast.AST) -> bool:
    """The node is not mutated: a docstring, an import, a type alias, a part of a formatted string."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp):
        return all(isinstance(one, ast.Name) and is_class_name(one.id) for one in node.targets)
    if isinstance(node, ast.Assign) and is_call_of(node.value, frozenset({"TypeVar"})):
        return True
    if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
        return True
    return isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr | ast.expr_context)


def strings_in(tree: ast.AST) -> Iterator[str]:
    """The strings inside functions."""
    for field, _, node in child_nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and field != "keys":
            yield node.value
        yield from strings_in(node)


# -- operators -------------------------------------------------------------------------------------------------------

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
    call = site.parent
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and is_class_name(call.func.id)):
        return
    if isinstance(site.node, ast.Constant | ast.Starred):
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
GUARD_OPERATORS = frozenset({"always", "never", "comparison"})
"""Operators that change a guard or a comparison."""
