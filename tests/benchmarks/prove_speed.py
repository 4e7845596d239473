"""How fast `fencepost prove` is, beside commit 79b4ef4, and on two cores beside one.

Run with `python -m tests.benchmarks.prove_speed` on a calm machine of two cores: seconds are those of the clock. The
two trees do not prove the same theorems, so they are compared by theorems a second. The gain of the processes is what
the same command takes longer when it is confined to one core; its verdicts have to be the same.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import median

from tests.acceptance.verdict_corpus.compare import COMMIT, ROOT, worktree
from tests.benchmarks.trees import CommandRun, run_fencepost

VERDICT = re.compile(r"^(proved|refuted|false|unknown)\b.*? +(\S+):", re.MULTILINE)


def verdicts(run: CommandRun) -> dict[str, str]:
    """The verdicts that a run prints, by theorem."""
    return {name: verdict for verdict, name in VERDICT.findall(run.output)}


def theorems_per_second(run: CommandRun) -> float:
    """How many theorems a run proves in a second of the clock."""
    return sum(each == "proved" for each in verdicts(run).values()) / run.elapsed


def confine_to_one_core() -> None:
    """Leave this process, and those that it starts, one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def compare_runs(old_tree: Path, rounds: int) -> bool:
    """Prove in turn and print the figures; whether the verdicts on one core and on all are the same."""
    rows = [
        (
            run_fencepost(old_tree, "prove"),
            run_fencepost(ROOT, "prove", prepare=confine_to_one_core),
            run_fencepost(ROOT, "prove"),
        )
        for _ in range(rounds)
    ]
    names = (COMMIT, "one core", f"{len(os.sched_getaffinity(0))} cores")
    for name, runs in zip(names, zip(*rows, strict=True), strict=True):
        proved = sum(each == "proved" for each in verdicts(runs[0]).values())
        elapsed, cpu = median(each.elapsed for each in runs), median(each.cpu for each in runs)
        print(f"  {name:9} {proved} theorems proved, {elapsed:.1f} s, of processors {cpu:.1f} s")
    for beside, ratios in (
        (f"theorems a second, beside {COMMIT}", [theorems_per_second(b) / theorems_per_second(a) for a, _, b in rows]),
        ("seconds, beside one core", [one.elapsed / two.elapsed for _, one, two in rows]),
    ):
        print(f"  ratio of {beside}: {median(ratios):.2f}   ({', '.join(f'{each:.2f}' for each in ratios)})")
    return all(verdicts(one) == verdicts(two) for _, one, two in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the runs and print the figures; 1 if the verdicts differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.prove_speed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="how often each proves (default: 10)")
    parser.add_argument("--old", type=Path, help=f"a worktree of {COMMIT} (default: one made for the purpose)")
    options = parser.parse_args(arguments)
    with nullcontext(options.old) if options.old else worktree() as old_tree:
        return 0 if compare_runs(old_tree.resolve(), options.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
