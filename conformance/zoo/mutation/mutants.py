"""Mutants of a module: each is its source with one place changed by one operator.

Everything here is syntax: source text in, mutants out. The module `operators` lists what is tried and why; the module
`module_copies` loads mutated modules.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.conformance.zoo.mutation.operators import OPERATORS, Operator
from fencepost.conformance.zoo.mutation.syntax import NodePath, Vocabulary, sites

_MAX_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mutant of one module: the node at `path`, its source `before` and `after`; without a `replacement` the node is
    removed.

    Equal sources in one function are numbered by `occurrence`, not by line, so that a mutant keeps its name when other
    lines change.
    """

    module: str
    function: str
    operator: str
    before: str
    after: str
    occurrence: int
    line: int
    path: NodePath
    replacement: ast.AST | None

    @property
    def name(self) -> str:
        """The name of the mutant: one line, unique within the module."""
        place = f"{self.module.rpartition('.')[2]}.{self.function or '(module)'}"
        again = f" #{self.occurrence}" if self.occurrence > 1 else ""
        return f"{place}: {self.operator}: {self.before} -> {self.after}{again}"


def mutants_of(
    module: str, source: str, vocabulary: Vocabulary, operators: Sequence[Operator] = OPERATORS
) -> Iterator[Mutant]:
    """The mutants of a module in the order of its source, without those that give the same result."""
    tree = ast.parse(source)
    seen: Counter[tuple[str, str, str, str]] = Counter()
    for site in sites(tree, vocabulary):
        made: set[str] = set()
        for operator in operators:
            for replacement in operator.replacements(site):
                before, after = source_line(site.node), "nothing" if replacement is None else source_line(replacement)
                if before == after or after in made:
                    continue
                made.add(after)
                key = (site.function, operator.name, before, after)
                seen[key] += 1
                line: int = getattr(site.node, "lineno", 0)
                yield Mutant(module, *key, seen[key], line, site.path, replacement)


def source_line(node: ast.AST) -> str:
    """The source of a node in one line; if it is long, its beginning and end."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN // 2]} ... {text[-_MAX_SHOWN // 2 :]}"


def apply_mutant(source: str, mutant: Mutant) -> ast.Module:
    """The module's tree with the mutant in it."""
    tree = ast.parse(source)
    field, index = mutant.path[-1]
    parent = node_at(tree, mutant.path[:-1])
    if index is None:
        setattr(parent, field, mutant.replacement)
    else:
        rows: list[ast.AST] = getattr(parent, field)
        if mutant.replacement is None:
            del rows[index]
            if not rows and field in ("body", "finalbody"):
                rows.append(ast.Pass())
        else:
            rows[index] = mutant.replacement
    if isinstance(mutant.replacement, ast.Call) and isinstance(mutant.replacement.func, ast.Name):
        import_beside(tree, mutant.before, mutant.replacement.func.id)
    return ast.fix_missing_locations(tree)


def node_at(tree: ast.AST, path: NodePath) -> ast.AST:
    """The node at a path of a tree."""
    for name, place in path:
        child = getattr(tree, name)
        tree = child if place is None else child[place]
    return tree


def changed_lines(source: str, mutant: Mutant) -> range:
    """The numbers of the lines where the mutant differs from the module."""
    node: Any = node_at(ast.parse(source), mutant.path)
    return range(node.lineno, node.end_lineno + 1)


def import_beside(tree: ast.Module, before: str, name: str) -> None:
    """Import a name that the module lacks from the module of the name that it replaces."""
    if name in names_of(tree):
        return
    replaced = before.partition("(")[0]
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and replaced in {alias.name for alias in node.names}:
            node.names.append(ast.alias(name))


def names_of(tree: ast.Module) -> set[str]:
    """The names that a module imports from others or defines as functions and classes."""
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return names | {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def all_mutants(sources: Mapping[str, str], operators: Sequence[Operator] = OPERATORS) -> tuple[Mutant, ...]:
    """The mutants of several modules with one vocabulary."""
    vocabulary = Vocabulary.of(sources.values())
    return tuple(
        mutant for module, source in sources.items() for mutant in mutants_of(module, source, vocabulary, operators)
    )
