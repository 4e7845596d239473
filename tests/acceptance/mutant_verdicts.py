"""Judge each mutant of the core that tests/model/mutants/core.json lacks, and write its verdict to that table.

python -m tests.acceptance.mutant_verdicts [--again] [--only TEXT]
"""

import argparse
import gc
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from fencepost.conformance.zoo.mutants import Mutant
from tests.acceptance.framework import Figure, exactly, without_threshold
from tests.model.mutants.classify import ORDER, classify_by_proof, classify_mutant, functions_proved, recording
from tests.model.mutants.comparison import recorded_tours
from tests.model.mutants.core import core_mutants, function_of
from tests.model.mutants.results import EQUIVALENT, FILE, REFUTED, TOUR, UNEXPLAINED, Verdict, read, write

Verdicts = list[tuple[str, Verdict]]
PROCESSES = 2
SAVE_INTERVAL_S = 20.0
"""Seconds."""


def judge_mutants(mutants: Sequence[Mutant]) -> Verdicts:
    """Judge some mutants of one function by comparison and tour."""
    return [(mutant.name, classify_mutant(mutant)) for mutant in mutants]


def prove_mutant(task: tuple[Mutant, Verdict]) -> Verdicts:
    """Ask the proof about one mutant that no tour finds."""
    mutant, verdict = task
    return [(mutant.name, classify_by_proof(mutant, verdict))]


def group_by_function(mutants: Iterable[Mutant]) -> Iterator[list[Mutant]]:
    """The mutants of each function together, for they need the same calls; what is in no function alone, and last."""
    groups = [list(group) for _, group in groupby(mutants, lambda one: (one.module, one.function))]
    yield from (group for group in groups if function_of(group[0]) is not None)
    yield from ([one] for group in groups if function_of(group[0]) is None for one in group)


def judge_all(chosen: Sequence[Mutant], known: dict[str, Verdict], file: Path = FILE) -> dict[str, Verdict]:
    """Judge the mutants that are not judged yet, showing progress; the table is written every now and then.

    First all of them by comparison and tour, then what is left by proof: of that what is in a function, for a proof is
    about any values, and not about their defaults.
    """
    todo = [one for one in chosen if one.name not in known]
    if todo:
        for number, machine in enumerate(ORDER, 1):
            print_progress(f"taking every transition of a machine once: {machine}, {number} of {len(ORDER)}")
            recorded_tours(recording(machine))
            gc.freeze()
        run_parallel(judge_mutants, list(group_by_function(todo)), known, file)
    inside = [one for one in chosen if function_of(one) is not None]
    rest = [(one, known[one.name]) for one in inside if known[one.name].verdict != TOUR and not known[one.name].asked]
    if rest:
        print_progress("proving everything once, to see what a proof runs")
        functions_proved()
        run_parallel(prove_mutant, rest, known, file)
    return known


Task = TypeVar("Task")


def run_parallel(work: Callable[[Task], Verdicts], todo: Sequence[Task], known: dict[str, Verdict], file: Path) -> None:
    """Run `work` on each task in forked processes, add its verdicts to `known` and save them, also when interrupted."""
    began, saved, kinds = time.monotonic(), time.monotonic(), Counter[str]()
    gc.freeze()
    try:
        with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("fork")) as pool:
            for done, verdicts in enumerate(pool.map(work, todo), 1):
                known.update(verdicts)
                kinds.update(verdict.verdict for _, verdict in verdicts)
                if time.monotonic() - saved > SAVE_INTERVAL_S:
                    save(known, file)
                    saved = time.monotonic()
                    left = (saved - began) / done * (len(todo) - done)
                    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
                    print_progress(f"{done / len(todo):.0%}: {shown}; about {left:.0f} s left")
    finally:
        save(known, file)


def save(known: Mapping[str, Verdict], file: Path) -> None:
    """Write the table in the order of the core."""
    write({one.name: known[one.name] for one in core_mutants() if one.name in known}, file)


def print_progress(line: str) -> None:
    """Show progress."""
    print(line, file=sys.stderr, flush=True)


def check_mutants(_: Path) -> Iterator[Figure]:
    """Every mutant of the core is refuted, found by a tour or equivalent, all of them judged anew."""
    began = time.monotonic()
    known = read()
    verdicts = judge_all(core_mutants(), {})
    counts = Counter(one.verdict for one in verdicts.values())
    yield exactly("mutants of the core that were judged", len(verdicts), len(core_mutants()))
    yield exactly("unexplained", counts[UNEXPLAINED], 0)
    yield exactly("verdicts other than in the table", sum(known.get(name) != one for name, one in verdicts.items()), 0)
    yield without_threshold("found by a tour", counts[TOUR])
    yield without_threshold("refuted by the proof alone", counts[REFUTED])
    yield without_threshold("equivalent, exhaustively compared", counts[EQUIVALENT])
    yield without_threshold(
        "transitions compared for the equivalent ones", sum(one.compared for one in verdicts.values())
    )
    yield without_threshold("minutes", round((time.monotonic() - began) / 60, 1))


def main() -> int:
    """Judge what is not judged yet."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.mutant_verdicts", description=__doc__)
    parser.add_argument("--again", action="store_true", help="also what is in the table already")
    parser.add_argument("--only", metavar="TEXT", default="", help="only mutants whose name has this text")
    options = parser.parse_args()
    chosen = [one for one in core_mutants() if options.only in one.name]
    known = {name: verdict for name, verdict in read().items() if not (options.again and options.only in name)}
    verdicts = judge_all(chosen, known)
    unexplained = sum(one.verdict == UNEXPLAINED for one in verdicts.values())
    print(f"{len(verdicts)} mutants judged, {unexplained} unexplained")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
