"""How fast random schedules are drawn, played and judged in process, beside those of commit 79b4ef4.

Run with `python -m tests.benchmarks.schedule_speed`. Each tree plays as many schedules on its bundled coordinator in a
process of its own, in turn. Seconds are processor seconds. The rate is that of moves and events, for the schedules of
the two trees are not of one length. What they reach is told beside it: how many differ, and the transitions seen.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import median

from tests.acceptance.verdict_corpus.compare import COMMIT, ROOT, worktree
from tests.benchmarks.trees import run_script

SCRIPT = Path(__file__).with_name("play_schedules.py")


def compare_trees(old_tree: Path, pairs: int, batches: int) -> None:
    """Play the schedules of one seed after the other by both trees and print the figures."""
    old, new = [], []
    for seed in range(1, pairs + 1):
        old.append(run_script(old_tree, SCRIPT, seed, batches))
        new.append(run_script(ROOT, SCRIPT, seed, batches))
    for name, rows in ((COMMIT, old), ("this tree", new)):
        for unit in ("schedules", "moves", "events"):
            print(
                f"  {name:12} {median(row['seconds'] / row[unit] for row in rows) * 1000:8.3f} ms for 1 of the {unit}"
            )
        told = ", ".join(
            f"{median(row[each] for row in rows):g} {each}" for each in ("schedules", "different", "transitions")
        )
        print(f"  {name:12} {told}", flush=True)
    for unit in ("moves", "events"):
        ratios = [
            before["seconds"] / before[unit] * after[unit] / after["seconds"]
            for before, after in zip(old, new, strict=True)
        ]
        print(
            f"  ratio by {unit}: {median(ratios):.2f}   (of the pairs: {', '.join(f'{each:.2f}' for each in ratios)})"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the trees and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.schedule_speed", description=__doc__)
    parser.add_argument("--batches", type=int, default=5, metavar="N", help="batches of 20 schedules (default: 5)")
    parser.add_argument("--pairs", type=int, default=10, metavar="N", help="seeds, each played by both (default: 10)")
    parser.add_argument("--old", type=Path, help=f"a worktree of {COMMIT} (default: one made for the purpose)")
    options = parser.parse_args(arguments)
    with nullcontext(options.old) if options.old else worktree() as old_tree:
        compare_trees(old_tree.resolve(), options.pairs, options.batches)
    return 0


if __name__ == "__main__":
    sys.exit(main())
