"""The sites of a syntax tree where mutation operators apply, and the vocabulary of names for replacements."""

import ast
from collections.abc import Iterable, Iterator, Mapping
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
                    defaults[node.name] = fields_with_default(node)
                elif isinstance(node, ast.FunctionDef) and returns_its_input(node):
                    changing.add(node.name)
        return cls(enumerations, defaults, frozenset(changing))


def members_of(enumeration: ast.ClassDef) -> tuple[str, ...]:
    """The members of an enumeration."""
    assigned = (node for node in enumeration.body if isinstance(node, ast.Assign))
    return tuple(target.id for node in assigned for target in node.targets if isinstance(target, ast.Name))


def fields_with_default(kind: ast.ClassDef) -> frozenset[str]:
    """The fields of a class that have a default."""
    fields = (node for node in kind.body if isinstance(node, ast.AnnAssign) and node.value is not None)
    return frozenset(node.target.id for node in fields if isinstance(node.target, ast.Name))


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


def is_constructor(node: ast.AST) -> bool:
    """The node calls a name that is written like a class."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and is_class_name(node.func.id)


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
            names = set() if isinstance(node, ast.ClassDef) else parameter_names(node)
            yield from _sites(node, here, inside, names, strings, vocabulary)
        else:
            yield from _sites(node, here, function, bound, strings, vocabulary)
        if isinstance(node, ast.stmt):
            bound |= names_bound_by(node)


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


def parameter_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names of a function's parameters."""
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def names_bound_by(statement: ast.stmt) -> set[str]:
    """The names that a statement binds."""
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def strings_in(tree: ast.AST) -> Iterator[str]:
    """The strings inside functions."""
    for field, _, node in child_nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and field != "keys":
            yield node.value
        yield from strings_in(node)
