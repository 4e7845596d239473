"""How many known bugs random schedules find in a second, beside commit 79b4ef4.

Run with `python -m tests.benchmarks.zoo_speed`. The bugs are those that both trees know. Each tree hunts them one after
the other in a process of its own, in turn, by the schedules of each seed. A hunt ends with the first violation, or
after `--seconds`. Seconds are processor seconds; those of a hunt that finds nothing count.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import median

from fencepost.conformance.zoo.registry import KNOWN_BUGS
from tests.acceptance.verdict_corpus.compare import COMMIT, ROOT, worktree
from tests.benchmarks.trees import run_script

SCRIPT = Path(__file__).with_name("hunt_bugs.py")
OLD_BUGS = "conformance/zoo/record.json"
"""The file of the old tree that names its bugs."""

Hunts = Mapping[str, tuple[bool, float]]
"""Whether a bug was found, and the seconds that took."""


def common_bugs(old_tree: Path) -> list[str]:
    """The bugs of this tree that the old one knows too."""
    known = (old_tree / OLD_BUGS).read_text()
    return [name for name in KNOWN_BUGS if f'"{name}"' in known]


def found_per_second(hunts: Hunts) -> float:
    """How many bugs were found in a processor second."""
    return sum(found for found, _ in hunts.values()) / sum(seconds for _, seconds in hunts.values())


def compare_trees(old_tree: Path, names: Sequence[str], seeds: Sequence[int], limit: float) -> None:
    """Hunt with one seed after the other by both trees and print the figures."""
    ratios: list[float] = []
    for seed in seeds:
        old = run_script(old_tree, SCRIPT, seed, limit, *names)
        new = run_script(ROOT, SCRIPT, seed, limit, *names)
        for tree, hunts in ((COMMIT, old), ("this tree", new)):
            found, seconds = sum(each for each, _ in hunts.values()), sum(each for _, each in hunts.values())
            missed = " ".join(name for name, (is_found, _) in hunts.items() if not is_found)
            print(f"  seed {seed}, {tree:12} {found} of {len(hunts)} in {seconds:.1f} s; not found: {missed or 'none'}")
        ratios.append(found_per_second(new) / found_per_second(old))
        print(f"  seed {seed}, ratio of bugs found in a second: {ratios[-1]:.2f}", flush=True)
    print(f"ratio {median(ratios):.2f}   (of the seeds: {', '.join(f'{each:.2f}' for each in ratios)})")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the trees and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.zoo_speed", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="BUG", help="the bugs (default: all that both trees know)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds, each hunted by both (default: 3)")
    parser.add_argument("--first", type=int, default=1, metavar="SEED", help="the first of them (default: 1)")
    parser.add_argument("--seconds", type=float, default=20.0, metavar="S", help="the limit of a hunt (default: 20)")
    parser.add_argument("--old", type=Path, help=f"a worktree of {COMMIT} (default: one made for the purpose)")
    options = parser.parse_args(arguments)
    with nullcontext(options.old) if options.old else worktree() as old_tree:
        names = common_bugs(old_tree.resolve())
        if unknown := set(options.names) - set(names):
            parser.error(f"no bug that both trees know: {min(unknown)}")
        seeds = range(options.first, options.first + options.seeds)
        compare_trees(old_tree.resolve(), options.names or names, seeds, options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
