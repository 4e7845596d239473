"""The house without the protocols that no target speaks, and the everyday house, which has no laboratory either: their
folders and entry points are taken away, and the rest works."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("model", "traces", "adapters", "conformance")
DESIGNS = ("push", "region", "proposal")
"""The protocols that no target speaks."""
LABORATORY = ("explore", "exploration", "proofs", "theorems", "zoo", "pipeline")
"""Searches, proofs, the zoo and Spark: folders and modules of these names."""
TRACES = sorted(str(path) for path in (ROOT / "tests" / "traces" / "data").glob("*.jsonl*"))[:20]


@pytest.fixture(scope="module", params=[DESIGNS, (*DESIGNS, *LABORATORY)], ids=["without designs", "everyday"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for installed packages, with the package and its metadata."""
    taken = [name for each in request.param for name in (each, f"{each}.py")]
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / ".src" / "fencepost", site / "fencepost", ignore=shutil.ignore_patterns(*LAYERS))
    for layer in LAYERS:
        ignore = shutil.ignore_patterns("__pycache__", *taken)
        shutil.copytree(ROOT / layer, site / "fencepost" / layer, ignore=ignore)
    metadata = site / "fencepost-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: fencepost\nVersion: 0\n")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    kept = [f"{name} = {place}" for name, place in groups["fencepost.protocols"].items() if name not in DESIGNS]
    (metadata / "entry_points.txt").write_text("\n".join(["[fencepost.protocols]", *kept, ""]))
    return site


def run(site: Path, *words: str) -> tuple[int, str]:
    """Exit code and output of a command of the package in `site`."""
    command = (sys.executable, "-m", "fencepost", *words)
    done = subprocess.run(
        command, cwd=site, env={**os.environ, "PYTHONPATH": str(site)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.returncode, done.stdout.decode()


def test_no_protocol_is_left_over(site: Path) -> None:
    assert not [path for path in site.rglob("*") if path.stem in DESIGNS]
    code, text = run(site, "explore", "--help")
    assert code == 0 and "classic (default: classic)" in text
    code, text = run(site, "test", "push://bundled")
    assert code == 2 and "'push://bundled' is no target" in text


@pytest.mark.parametrize("command", ["", "test", "judge", "explain", "prove"])
def test_every_command_has_its_help(site: Path, command: str) -> None:
    assert run(site, *command.split(), "--help")[0] == 0


def test_requirements_are_listed(site: Path) -> None:
    code, text = run(site, "list")
    assert code == 0 and "JOIN-29" in text and "PUSH-01" not in text


@pytest.mark.slow
def test_the_bundled_coordinator_conforms(site: Path) -> None:
    code, text = run(site, "test", "bundled")
    assert code == 0 and "CONFORMANT" in text


@pytest.mark.slow
def test_traces_are_judged(site: Path) -> None:
    code, text = run(site, "judge", *TRACES)
    assert TRACES and code in (0, 1, 3) and "Traceback" not in text
