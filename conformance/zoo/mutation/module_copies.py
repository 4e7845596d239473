"""Loads changed modules beside the shipped ones: copies of them and of all modules that depend on them.

Ordinary imports never give a copy, and no shipped module refers to one. Two values of one kind are of different classes
if the module of their class was copied: compare them by their fields.
"""

import ast
import builtins
import importlib
import importlib.util
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

PACKAGE = "fencepost"
"""The package whose modules may be changed and copied."""


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
    codes = {name: compile(tree, str(file_of(name)), "exec") for name, tree in changed.items()}
    copies = ModuleCopies(codes, wanted, shared)
    return {name: copies.module(name) for name in wanted}


class ModuleCopies:
    """Changed modules and copies that are loaded together."""

    def __init__(self, changed: Mapping[str, CodeType], wanted: Sequence[str], shared: Collection[str] = ()) -> None:
        self._changed = changed
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
            exec(self._changed.get(name) or code_of(name), copy.__dict__)
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
    """These modules and all modules of the package that they depend on."""
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
