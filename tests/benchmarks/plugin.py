"""The costs of the pytest plugin: the start of an unrelated test suite with it and without it, and the cases on the
bundled coordinator in one process and in two workers.

Run with `python -m tests.benchmarks.plugin`; `--pairs`, `--no-cases` and `--json FILE` are optional. The two starts of
a pair follow each other, in turns either one first, and are compared by the time that their processes have on the CPU:
other work on the machine does not count. A start with the plugin may be told from one without it if it takes longer in
so many pairs that chance alone has them once in twenty measurements.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from math import comb, ldexp
from pathlib import Path
from statistics import median

from fencepost.model.classic.catalogue import CATALOGUE

ROOT = Path(__file__).parents[2]
PLUGIN = "fencepost.conformance.testing.plugin"
UNRELATED = "def test_it():\n    assert 1 + 1 == 2\n"
SUITE = """
import pytest
from fencepost.testing import conformance

@pytest.fixture(scope="session")
def fencepost_target():
    return "bundled"

@conformance
def test_group_protocol(fencepost_case, fencepost_run):
    fencepost_case.check()

@pytest.fixture(scope="session", autouse=True)
def tell():
    yield
    import gc
    from fencepost.conformance.testing.runs import InProcessRun
    for run in (each for each in gc.get_objects() if isinstance(each, InProcessRun)):
        with open("played.txt", "a") as file:
            file.write(f"{len(run.state.runs)} {len(run.asked)}\\n")
"""
QUIET = ("-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")
CHANCE = 0.05
"""How often chance alone may make a difference that counts as told."""


def cpu_seconds(words: Sequence[str], folder: Path, path: str) -> float:
    """The time on the CPU of pytest and of its workers, in seconds. Raises `CalledProcessError` if a test fails."""
    before = os.times()
    command = [sys.executable, "-m", "pytest", *QUIET, *words]
    environment = {**os.environ, "PYTHONPATH": path}
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return float(sum(after[2:4]) - sum(before[2:4]))


def make_entry_point(folder: Path) -> str:
    """A path of installed packages on which the plugin has its entry point."""
    info = folder / "fencepost_entry_point-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fencepost-entry-point\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\nfencepost = {PLUGIN}\n")
    return os.pathsep.join([str(folder), str(ROOT / ".src")])


def chance_of(slower: int, pairs: int) -> float:
    """How likely at least so many of the pairs are slower if nothing makes them so."""
    return ldexp(sum(comb(pairs, count) for count in range(slower, pairs + 1)), -pairs)


def measure_start(pairs: int) -> dict[str, float | int]:
    """Compare the starts of an unrelated suite."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_unrelated.py").write_text(UNRELATED)
        paths = {"with": make_entry_point(folder / "site"), "without": str(ROOT / ".src")}
        for path in paths.values():
            cpu_seconds([], folder, path)
        taken: dict[str, list[float]] = {"with": [], "without": []}
        for pair in range(pairs):
            for kind in ("with", "without") if pair % 2 else ("without", "with"):
                taken[kind].append(cpu_seconds([], folder, paths[kind]))
    return compare(taken)


def compare(taken: Mapping[str, Sequence[float]]) -> dict[str, float | int]:
    """The figures of the pairs: the median ratio, and how many pairs were slower with the plugin."""
    pairs = list(zip(taken["with"], taken["without"], strict=True))
    slower = sum(a > b for a, b in pairs)
    chance = chance_of(slower, len(pairs))
    return {
        "pairs": len(pairs),
        "ratio": round(median(a / b for a, b in pairs), 3),
        "difference_ms": round(1_000 * median(a - b for a, b in pairs), 1),
        "slower": slower,
        "chance": round(chance, 3),
        "can_be_told": int(chance < CHANCE),
    }


def measure_cases() -> dict[str, float | int]:
    """Run all requirements on the bundled coordinator, in one process and in two workers: seconds on the CPU, and how
    many scenarios each worker has played for how many requirements."""
    figures: dict[str, float | int] = {"requirements": len(CATALOGUE)}
    for workers in (0, 2):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "test_suite.py").write_text(SUITE)
            words = ["-n", str(workers)] if workers else []
            figures[f"cpu_s_{workers}"] = round(cpu_seconds(words, folder, make_entry_point(folder / "site")), 2)
            lines = [line.split() for line in (folder / "played.txt").read_text().splitlines()]
        for number, (played, asked) in enumerate(lines, 1):
            figures |= {f"played_{workers}_{number}": int(played), f"asked_{workers}_{number}": int(asked)}
    return figures


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=31)
    parser.add_argument("--no-cases", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures = {"start": measure_start(options.pairs)}
    if not options.no_cases:
        figures["cases"] = measure_cases()
    for part, values in figures.items():
        print(f"{part}: " + ", ".join(f"{name} {value}" for name, value in values.items()))
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
