"""How fast the explorer is without numpy, beside that of commit 79b4ef4.

Run with `python -m tests.benchmarks.explore_speed`. Both explore the default instance of the old tree, in turn: two
processes that ask for a member id first, with three requests each. This tree checks more statements on the way. Seconds
are processor seconds of the whole command. The model changed between the two, so that the numbers of states differ by
less than a hundredth; both are printed.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import median

from tests.acceptance.verdict_corpus.compare import COMMIT, ROOT, worktree
from tests.benchmarks.trees import CommandRun, run_fencepost

OLD_INSTANCE = ("explore", "--requests", "3")
NEW_INSTANCE = (*OLD_INSTANCE, "--direct", "0")
LAST_LINE = re.compile(r"^([\d,]+) states, reduced, ([\d,]+) moves, .*plain\)", re.MULTILINE)


def forbid_numpy(folder: Path) -> None:
    """Make a package in this folder that stands before numpy and cannot be imported."""
    package = folder / "numpy"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError\n")


def states_and_moves(run: CommandRun) -> tuple[int, int]:
    """The states and moves that an exhausted search without numpy tells of."""
    found = LAST_LINE.search(run.output)
    if found is None:
        raise SystemExit("explore_speed: the search was not exhausted, or used numpy")
    return int(found[1].replace(",", "")), int(found[2].replace(",", ""))


def compare_trees(old_tree: Path, pairs: int) -> None:
    """Explore by both trees in turn and print the figures."""
    with tempfile.TemporaryDirectory() as name:
        forbid_numpy(Path(name))
        rows = [
            (
                run_fencepost(old_tree, *OLD_INSTANCE, before=[Path(name)]),
                run_fencepost(ROOT, *NEW_INSTANCE, before=[Path(name)]),
            )
            for _ in range(pairs)
        ]
    for tree, runs in zip((COMMIT, "this tree"), zip(*rows, strict=True), strict=True):
        states, moves = states_and_moves(runs[0])
        print(f"  {tree:12} {states:,} states, {moves:,} moves, {median(each.cpu for each in runs):.1f} s")
    ratios = [old.cpu / new.cpu for old, new in rows]
    print(f"  ratio        {median(ratios):.2f}   (of the pairs: {', '.join(f'{each:.2f}' for each in ratios)})")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the trees and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.explore_speed", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10, metavar="N", help="how often each explores (default: 10)")
    parser.add_argument("--old", type=Path, help=f"a worktree of {COMMIT} (default: one made for the purpose)")
    options = parser.parse_args(arguments)
    with nullcontext(options.old) if options.old else worktree() as old_tree:
        compare_trees(old_tree.resolve(), options.pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
