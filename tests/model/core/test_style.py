"""The style of the core that lets its twin run on symbolic values: one look at the syntax tree of every module.

On a symbol all operands of `and`, `or` and `if ... else ...` are evaluated. So they change nothing, and are total: they
compare, add, read fields and call functions of this style.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

CLASSIC = Path(__file__).parents[3] / "model" / "classic"
CORE = [*sorted((CLASSIC / "core").glob("*.py")), CLASSIC / "member" / "member.py"]
MODULES = sorted(path.relative_to(CLASSIC).as_posix() for path in CORE if path.name != "__init__.py")
BANNED_CALLS = {"sorted", "hash", "set", "frozenset", "dict", "bool", "print", "id"}
CONNECTIVES = {"and_", "or_", "not_", "ite", "absent", "all_", "any_", "count", "largest"}
"""What a proof makes of the words of Python."""
BANNED_NODES: dict[type[ast.AST], str] = {
    ast.Dict: "a dict",
    ast.DictComp: "a dict",
    ast.Set: "a set",
    ast.SetComp: "a set",
    ast.JoinedStr: "an f-string",
    ast.While: "while",
    ast.Raise: "raise",
    ast.Try: "try",
    ast.Assert: "assert",
    ast.Delete: "del",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Lambda: "a lambda",
    ast.NamedExpr: "an assignment in an expression",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
}
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def truths() -> set[str]:
    """The fields and functions of the core that hold or give a truth value."""
    found: set[str] = set()
    for path in (*CORE, CLASSIC.parent / "logic.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_truth(node.annotation):
                found.add(node.target.id)
            elif isinstance(node, ast.arg) and node.annotation is not None and is_truth(node.annotation):
                found.add(node.arg)
            elif isinstance(node, ast.FunctionDef) and node.returns is not None and is_truth(node.returns):
                found.add(node.name)
    return found | {"any", "all"}


def is_truth(annotation: ast.expr) -> bool:
    """The annotation is a truth value's."""
    return isinstance(annotation, ast.Name) and annotation.id in ("Truth", "bool")


TRUTHS = truths()


def local_truths(tree: ast.Module) -> set[str]:
    """The names that a module gives to truth values, or to parts of tuples, which may be some."""
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    truths = {
        target.id
        for node in assigned
        for target in node.targets
        if isinstance(target, ast.Name) and is_truth_expression(node.value, TRUTHS)
    }
    looped = [node.target for node in ast.walk(tree) if isinstance(node, ast.For | ast.comprehension)]
    parts = [*(target for node in assigned for target in node.targets), *looped]
    return truths | {
        one.id for each in parts if isinstance(each, ast.Tuple) for one in each.elts if isinstance(one, ast.Name)
    }


def is_truth_expression(value: ast.expr, names: set[str]) -> bool:
    """The expression is a truth value, given the names of those known."""
    match value:
        case ast.Compare() | ast.Constant(value=bool()) | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Subscript():
            return True
        case ast.IfExp(body=then, orelse=otherwise):
            return is_truth_expression(then, names) and is_truth_expression(otherwise, names)
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Call(func=ast.Name(id=name)):
            return name in names
        case _:
            return False


def style_errors(source: str) -> list[str]:
    """What does not fit the style, one line each."""
    tree = ast.parse(source)
    names = TRUTHS | local_truths(tree)
    checks: tuple[Callable[[ast.AST], str | None], ...] = (
        banned_construct,
        arithmetic,
        comparison,
        mutating_statement,
        lambda node: truth_test(node, names),
    )
    found = [(node, check(node)) for node in ast.walk(without_annotations(tree)) for check in checks]
    return [f"{getattr(node, 'lineno', 0)}: {flaw}" for node, flaw in found if flaw] + list(forks_in_loops(tree))


def without_annotations(tree: ast.Module) -> ast.Module:
    """The tree without types, which have operators and subscripts of their own."""
    tree.body = [node for node in tree.body if not is_alias(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return tree


def is_alias(node: ast.stmt) -> bool:
    """A type with a name: `Progress = tuple[...]`, `CoreResponse = A | B`, `Handle: TypeAlias = ...`."""
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Subscript)


def banned_construct(node: ast.AST) -> str | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BANNED_CALLS | CONNECTIVES:
        return f"{node.func.id}()"
    return next((name for kind, name in BANNED_NODES.items() if isinstance(node, kind)), None)


def arithmetic(node: ast.AST) -> str | None:
    if isinstance(node, ast.BinOp | ast.AugAssign) and not isinstance(node.op, ast.Add | ast.Sub):
        return f"{type(node.op).__name__}: numbers are only added and compared"
    return None


def comparison(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Compare):
        return None
    for comparison, other in zip(node.ops, node.comparators, strict=True):
        is_none = isinstance(comparison, ast.Is | ast.IsNot) and isinstance(other, ast.Constant) and other.value is None
        in_tuple = isinstance(comparison, ast.In | ast.NotIn) and isinstance(other, ast.Tuple)
        if not (is_none or in_tuple or isinstance(comparison, COMPARISONS)):
            return f"{type(comparison).__name__}: values are compared, or looked for in a tuple that is written out"
    return None


def mutating_statement(node: ast.AST) -> str | None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    changed = [target for target in targets if isinstance(target, ast.Attribute | ast.Subscript)]
    return "a value is changed in place" if changed else None


def truth_test(node: ast.AST, names: set[str]) -> str | None:
    """A number is never taken for a truth value."""
    if isinstance(node, ast.If | ast.IfExp):
        tested = [node.test]
    elif isinstance(node, ast.BoolOp):
        tested = node.values
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        tested = [node.operand]
    else:
        return None
    wrong = [one for one in tested if not is_truth_expression(one, names)]
    return f"{ast.unparse(wrong[0])} is tested, but is no truth value" if wrong else None


def forks_in_loops(tree: ast.Module) -> Iterator[str]:
    """Every `if` inside a loop over slots, unless it is all of the loop and ends it: a search."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and "slots" in ast.unparse(node.iter) and not is_search(node):
            inner = [each for part in node.body for each in ast.walk(part)]
        elif isinstance(node, ast.comprehension) and "slots" in ast.unparse(node.iter):
            inner = [*node.ifs]
            if inner:
                yield f"{node.ifs[0].lineno}: a comprehension over slots leaves some out"
        elif isinstance(node, ast.GeneratorExp | ast.ListComp):
            over_slots = any("slots" in ast.unparse(each.iter) for each in node.generators)
            inner = list(ast.walk(node.elt)) if over_slots else []
        else:
            continue
        for each in inner:
            if isinstance(each, ast.If):
                yield f"{each.lineno}: if inside a loop over slots"


def is_search(loop: ast.For) -> bool:
    """`for index, slot in ...: if ...: return index`."""
    (first, *rest) = loop.body
    return not rest and isinstance(first, ast.If) and not first.orelse and isinstance(first.body[0], ast.Return)


@pytest.mark.parametrize("module", MODULES)
def test_the_core_keeps_the_style(module: str) -> None:
    assert style_errors((CLASSIC / module).read_text()) == []


@pytest.mark.parametrize(
    ("line", "flaw"),
    [
        ("x = and_(a, b)", "1: and_()"),
        ("x = a is b", "1: Is: values are compared, or looked for in a tuple that is written out"),
        ("x = a in b", "1: In: values are compared, or looked for in a tuple that is written out"),
        ("x = slot.join or b == c", "1: slot.join is tested, but is no truth value"),
        ("x = not number", "1: number is tested, but is no truth value"),
        ("x = (c := d)", "1: an assignment in an expression"),
        ("x = f(a * b)", "1: Mult: numbers are only added and compared"),
        ("x = {a: b}", "1: a dict"),
        ("x = sorted(a)", "1: sorted()"),
        ("a.b = c", "1: a value is changed in place"),
        ("if slot.join:\n    x = 1", "1: slot.join is tested, but is no truth value"),
        ("x = a if sum(b) else c", "1: sum(b) is tested, but is no truth value"),
        ("for s in g.slots:\n    if s.armed:\n        x = 1", "2: if inside a loop over slots"),
        ("x = tuple(s for s in g.slots if s.armed)", "1: a comprehension over slots leaves some out"),
    ],
)
def test_what_breaks_the_style_is_seen(line: str, flaw: str) -> None:
    assert style_errors(line) == [flaw]


def test_what_the_style_allows() -> None:
    search = (
        "def find(g):\n    for i, s in enumerate(g.slots):\n        if s.armed:\n            return i\n    return -1"
    )
    assert style_errors(search) == []
    assert style_errors("if a is None or not 0 <= b < 2:\n    x = b + c - 1 if a in (1, 2) else c") == []
    assert style_errors("x = tuple(1 if s.armed else 2 for s in g.slots)") == []
