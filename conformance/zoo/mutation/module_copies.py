"""Loading changed modules beside the shipped ones: a copy of each, and of whatever depends on it; the rest is shared.

Nothing that is loaded here is seen by an ordinary import, and no shipped module ever sees a copy. Two values of one
kind are of different classes if the module of their class was copied: compare them by what they hold.
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
    """The wanted modules as they are when some modules are changed: those that do not depend on them are the shipped
    ones, the others copies. `shared` stay the shipped ones as well: modules that take no more than names of types from
    what is changed. A changed module may fail while it is loaded, with any exception."""
    codes = {name: compile(tree, str(file_of(name)), "exec") for name, tree in changed.items()}
    copies = ModuleCopies(codes, wanted, shared)
    return {name: copies.module(name) for name in wanted}


class ModuleCopies:
    """Modules that are loaded together."""

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
        """The module: a copy if it has to be one."""
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
        """What `import` calls inside a copy."""
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
    """Where a shipped module is. Raises `ModuleNotFoundError`."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no module named {module!r}", name=module)
    return Path(spec.origin)


@cache
def code_of(module: str) -> CodeType:
    """A shipped module, compiled."""
    return compile(source_of(module), str(file_of(module)), "exec")


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules of the house that a module imports itself, at its top or inside functions."""
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
    """These modules and all of the house that they depend on."""
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
