"""How fast the judge is beside that of commit 79b4ef4, and beside what reading alone takes.

Run with `python -m tests.benchmarks.judge_speed`. Three traces: a busy group of ten seen at the coordinator, the same
as clients see it, and many small groups side by side that rebalance, with wrong responses among them. Each is judged in
a process of its own, by the old tree and by this one in turn. Seconds are processor seconds, the reading of the file
included. The limits are what it takes to read the lines, and to decode their JSON.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import median

from tests.acceptance.synthetic_corpus import make_corpus
from tests.acceptance.verdict_corpus.compare import COMMIT, ROOT, worktree
from tests.benchmarks.judge import write_benchmark_trace
from tests.benchmarks.trees import run_script

SCRIPT = Path(__file__).with_name("judge_trace.py")
EVENTS = {"total": 100_000, "intervals": 40_000, "mixed": 40_000}
EVENTS_OF_A_GROUP = 900
"""About how many events a group of the mixed trace has."""


def write_trace_of(kind: str, events: int, folder: Path) -> Path:
    """Make the trace of this kind."""
    if kind == "mixed":
        make_corpus(folder, events, max(1, events // EVENTS_OF_A_GROUP), 2_000, 1)
        return folder / "000.jsonl"
    path = folder / f"{kind}.jsonl"
    write_benchmark_trace(path, events, clients=kind == "intervals")
    return path


def write_old_format(path: Path) -> Path:
    """The trace as the old tree reads it, which has another word for responses."""
    old = path.with_suffix(".old.jsonl")
    old.write_bytes(path.read_bytes().replace(b'"kind":"response"', b'"kind":"answer"'))
    return old


def measure_limit(trace: Path, take: Callable[[bytes], object]) -> float:
    """The processor seconds that it takes to read the lines of a trace and to `take` each of them."""
    begun = time.process_time()
    with trace.open("rb") as lines:
        for line in lines:
            take(line)
    return time.process_time() - begun


def compare_trees(kind: str, trace: Path, old_tree: Path, pairs: int) -> None:
    """Judge a trace by both trees in turn and print the figures."""
    old_trace = write_old_format(trace)
    old, new = [], []
    for _ in range(pairs):
        old.append(run_script(old_tree, SCRIPT, old_trace))
        new.append(run_script(ROOT, SCRIPT, trace))
    events = int(new[0]["events"])
    ratios = [before["seconds"] / after["seconds"] for before, after in zip(old, new, strict=True)]
    print(f"{kind}: {events} events, {new[0]['violations']} violations, {new[0]['inconclusive']} inconclusive")
    for name, rows in ((COMMIT, old), ("this tree", new)):
        seconds = median(row["seconds"] for row in rows)
        print(f"  {name:12} {events / seconds:10,.0f} events a second")
    print(f"  ratio        {median(ratios):10.2f}   (of the pairs: {', '.join(f'{each:.2f}' for each in ratios)})")
    for name, take in (("JSON alone", json.loads), ("lines alone", len)):
        print(f"  {name:12} {events / measure_limit(trace, take):10,.0f} events a second", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the traces, compare the trees and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.judge_speed", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"the traces: {', '.join(EVENTS)} (default: all)")
    parser.add_argument("--events", type=int, metavar="N", help="how long each trace is (default: 40,000 and more)")
    parser.add_argument("--pairs", type=int, default=10, metavar="N", help="how often each is judged (default: 10)")
    parser.add_argument("--old", type=Path, help=f"a worktree of {COMMIT} (default: one made for the purpose)")
    options = parser.parse_args(arguments)
    if unknown := set(options.kinds) - set(EVENTS):
        parser.error(f"no such trace: {min(unknown)}; known: {', '.join(EVENTS)}")
    with tempfile.TemporaryDirectory() as name, nullcontext(options.old) if options.old else worktree() as old_tree:
        for kind in options.kinds or EVENTS:
            trace = write_trace_of(kind, options.events or EVENTS[kind], Path(name))
            compare_trees(kind, trace, old_tree.resolve(), options.pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
