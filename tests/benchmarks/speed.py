"""How fast the commands are beside those of another commit: `python -m tests.benchmarks.speed BASE [PART...]`.

Both trees run the same command in turn, each in a process of its own. A ratio is that of processor seconds, start-up
included, of the commit BASE to those of the tree at hand: above 1 the tree at hand is faster.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tests.benchmarks.judge import write_benchmark_trace

ROOT = Path(__file__).parents[2]
JUDGED_EVENTS = {"judge": 60_000, "judge-intervals": 15_000}
COMMANDS = {
    "startup": ("explain", "JOIN-29"),
    "judge": ("judge", "judge.jsonl"),
    "judge-intervals": ("judge", "judge-intervals.jsonl"),
    "schedules": ("test", "bundled", "--only", "HB-01", "--schedules", "60"),
    "explore": ("explore", "--requests", "3"),
    "prove": ("prove",),
}
"""What is run for each part. Traces are in the folder in which the commands run."""


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """A worktree of a commit, for the block. Raises `CalledProcessError` if there is no such commit."""
    git = ("git", "-C", str(ROOT), "worktree")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "base"
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def write_traces(folder: Path, parts: Sequence[str], events: Mapping[str, int]) -> None:
    """Write the traces that are judged: a busy group as its coordinator sees it, and as its clients do."""
    for part in set(parts) & set(events):
        write_benchmark_trace(folder / f"{part}.jsonl", events[part], clients=part == "judge-intervals")


def run_fencepost(tree: Path, folder: Path, arguments: Sequence[str]) -> float:
    """The processor seconds that `fencepost` of a tree takes in a folder. Raises `CalledProcessError` if it fails."""
    path = os.pathsep.join(map(str, (tree / ".src", tree)))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-P", "-m", "fencepost", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode == 2:
        done.check_returncode()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare_trees(base: Path, folder: Path, part: str, pairs: int) -> float:
    """Run the command of a part by both trees in turn, print the figures, and return the median of the ratios."""
    rows = [
        (run_fencepost(base, folder, COMMANDS[part]), run_fencepost(ROOT, folder, COMMANDS[part])) for _ in range(pairs)
    ]
    before, after = (median(runs) for runs in zip(*rows, strict=True))
    ratios = [old / new for old, new in rows]
    print(
        f"{part:16} {before:7.2f} s before, {after:7.2f} s now, ratio {median(ratios):.2f}"
        f"   (of the pairs: {', '.join(f'{ratio:.2f}' for ratio in ratios)})",
        flush=True,
    )
    return median(ratios)


def main(arguments: Sequence[str] | None = None, events: Mapping[str, int] = JUDGED_EVENTS) -> int:
    """Compare the trees; 1 if a part is slower than it may be."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.speed", description=__doc__)
    parser.add_argument("base", metavar="BASE", help="the commit to compare with")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"the parts: {', '.join(COMMANDS)} (default: all)")
    parser.add_argument("--pairs", type=int, default=10, metavar="N", help="how often each runs (default: 10)")
    parser.add_argument("--least", type=float, default=0.98, metavar="R", help="the least ratio (default: 0.98)")
    options = parser.parse_args(arguments)
    parts = options.parts or list(COMMANDS)
    if unknown := set(parts) - set(COMMANDS):
        parser.error(f"no such part: {min(unknown)}; known: {', '.join(COMMANDS)}")
    with tempfile.TemporaryDirectory() as name, worktree(options.base) as base:
        write_traces(Path(name), parts, events)
        ratios = [compare_trees(base, Path(name), part, options.pairs) for part in parts]
    return int(min(ratios) < options.least)


if __name__ == "__main__":
    sys.exit(main())
