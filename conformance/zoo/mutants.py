"""Mutants of a module, each its source with one place changed by one operator, and copies of modules that carry one.

Mutants are syntax: source text in, mutants out. Changed modules are loaded beside the shipped ones: copies of them and
of all modules that depend on them. Ordinary imports never give a copy, and no shipped module refers to one. Two values
of one kind are of different classes if the module of their class was copied: compare them by their fields.
"""

import ast
import builtins
import importlib
import importlib.util
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from types import CodeType, ModuleType
from typing import Any

from fencepost.conformance.zoo.operators import OPERATORS, NodePath, Operator, Vocabulary, sites

_MAX_SHOWN = 120
PACKAGE = "fencepost"
"""The package whose modules may be changed and copied."""


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


def package_mutants(package: ModuleType, excluded: Collection[str], operators: Collection[str]) -> tuple[Mutant, ...]:
    """The mutants of a package but for some of its modules, by the operators with these names, in the order of the
    source."""
    names = sorted(f"{package.__name__}.{each.name}" for each in iter_modules(package.__path__))
    sources = {name: source_of(name) for name in names if name.rpartition(".")[2] not in excluded}
    return all_mutants(sources, [one for one in OPERATORS if one.name in operators])


# -- copies of modules -----------------------------------------------------------------------------------------------


def source_of(module: str) -> str:
    """The source of a shipped module. Raises `ModuleNotFoundError`."""
    return file_of(module).read_text(encoding="utf-8")


def load_changed(
    changed: Mapping[str, ast.Module], wanted: Sequence[str], shared: Collection[str] = ()
) -> dict[str, ModuleType]:
    """The wanted modules with some modules changed: copies if they depend on changed ones, else the shipped modules.

    Modules in `shared` are never copied: those that import only types from changed modules. A changed module may raise
    any exception while it is loaded.
    """
    copies = ModuleCopies(changed, wanted, shared)
    return {name: copies.module(name) for name in wanted}


class ModuleCopies:
    """Changed modules and copies that are loaded together."""

    def __init__(self, changed: Mapping[str, ast.Module], wanted: Sequence[str], shared: Collection[str] = ()) -> None:
        self._changed = changed
        self._codes = {name: compile(tree, str(file_of(name)), "exec") for name, tree in changed.items()}
        self._copied = {
            name
            for name in dependencies_of(wanted)
            if name not in shared and not dependencies_of((name,)).isdisjoint(changed)
        }
        self._loaded: dict[str, ModuleType] = {}
        self._builtins = {**vars(builtins), "__import__": self._import}

    def module(self, name: str) -> ModuleType:
        """The module, or its copy if it depends on a changed module."""
        if name not in self._copied:
            return importlib.import_module(name)
        if name not in self._loaded:
            shipped = importlib.import_module(name)
            copy = ModuleType(name, shipped.__doc__)
            copy.__dict__.update(__file__=shipped.__file__, __package__=shipped.__package__)
            copy.__dict__["__builtins__"] = self._builtins
            self._loaded[name] = copy
            if name in self._changed:
                # A proof reads it; the file has the shipped source.
                copy.__dict__["__source__"] = ast.unparse(self._changed[name])
            exec(self._codes.get(name) or code_of(name), copy.__dict__)
        return self._loaded[name]

    def _import(
        self,
        name: str,
        scope: Mapping[str, Any] | None = None,
        local: Mapping[str, Any] | None = None,
        names: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """The `__import__` of copies."""
        if not names or not name.startswith(PACKAGE):
            return builtins.__import__(name, scope, local, names or (), level)
        package = self.module(name)
        inside = [f"{name}.{one}" for one in names if f"{name}.{one}" in self._copied]
        if not inside:
            return package
        view = ModuleType(name)
        view.__dict__.update(vars(package))
        view.__dict__.update({one.rpartition(".")[2]: self.module(one) for one in inside})
        return view


@cache
def file_of(module: str) -> Path:
    """The file of a shipped module. Raises `ModuleNotFoundError`."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no module named {module!r}", name=module)
    return Path(spec.origin)


@cache
def code_of(module: str) -> CodeType:
    """The code of a shipped module."""
    return compile(source_of(module), str(file_of(module)), "exec")


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules of the package that a module imports directly, at its top or inside functions."""
    return frozenset(_imports(ast.parse(source_of(module))))


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == PACKAGE:
            yield node.module
            yield from (one for alias in node.names if is_module(one := f"{node.module}.{alias.name}"))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == PACKAGE)


@cache
def is_module(name: str) -> bool:
    """A module of this name is shipped."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def dependencies_of(modules: Iterable[str]) -> frozenset[str]:
    """The given modules and all modules of the package that they depend on."""
    return frozenset().union(*(_dependencies_of(one) for one in modules))


@cache
def _dependencies_of(module: str) -> frozenset[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports_of(name)
    return frozenset(found)
