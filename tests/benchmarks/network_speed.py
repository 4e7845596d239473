"""How long a full run on a broker takes, beside commit 79b4ef4, and what its slowest scenarios wait for.

Run with `python -m tests.benchmarks.network_speed kafka://HOST:PORT`. Both trees test the same broker in turn. A run
waits most of the time, so that the seconds are those of the clock.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import open_trace
from tests.acceptance.verdict_corpus.compare import COMMIT, ROOT, worktree
from tests.benchmarks.trees import run_fencepost

LISTED = 10
"""How many scenarios are listed."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The longest time without an event in a scenario that takes `seconds`; `reason` says what is waited for."""

    scenario: str
    seconds: float
    longest: float
    reason: str


def longest_wait(scenario: str, events: Sequence[Event]) -> Wait:
    """The longest wait in the trace of a scenario."""
    pauses = [later.time - earlier.time for earlier, later in pairwise(events)]
    if not pauses:
        return Wait(scenario, 0.0, 0.0, "nothing")
    place = pauses.index(max(pauses))
    seconds = (events[-1].time - events[0].time) / 1000
    return Wait(scenario, seconds, pauses[place] / 1000, reason_of_wait(events[: place + 1], events[place + 1]))


def reason_of_wait(before: Sequence[Event], after: Event) -> str:
    """What is waited for between the events `before` and the next one: a response, or a timer of the broker."""
    answered = {event.of for event in before}
    in_flight = [event for event in before if event.kind is Kind.REQUEST and event.sequence not in answered]
    if after.kind is Kind.RESPONSE and after.of in {event.sequence for event in in_flight}:
        return f"the response to {after.api}"
    parked = f", with {in_flight[-1].api} in flight" if in_flight else ""
    return f"a timer, before {after.kind.value} {after.api}{parked}"


def list_slowest(folder: Path) -> list[Wait]:
    """The slowest scenarios and schedules whose traces are in a folder, the slowest one first."""
    waits = [
        longest_wait(path.name.removesuffix(".jsonl"), list(open_trace(path)[1])) for path in sorted(folder.iterdir())
    ]
    return sorted(waits, key=lambda wait: -wait.seconds)[:LISTED]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the trees on a broker and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.network_speed", description=__doc__)
    parser.add_argument("target", metavar="TARGET", help="kafka://HOST:PORT of a broker")
    parser.add_argument("--pairs", type=int, default=10, metavar="N", help="runs of each tree (default: 10)")
    parser.add_argument("--old", type=Path, help=f"a worktree of {COMMIT} (default: one made for the purpose)")
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="the requirements (default: all)")
    options = parser.parse_args(arguments)
    command = ["test", options.target, *(["--only", *options.only] if options.only else [])]
    olds, news = list[float](), list[float]()
    with nullcontext(options.old) if options.old else worktree() as old_tree, TemporaryDirectory() as folder:
        traces = Path(folder)
        for pair in range(1, options.pairs + 1):
            olds.append(run_fencepost(old_tree.resolve(), *command).elapsed)
            news.append(run_fencepost(ROOT, *command, "--traces", folder).elapsed)
            print(f"  pair {pair}: {COMMIT} {olds[-1]:.1f} s, this tree {news[-1]:.1f} s", flush=True)
        print(f"this tree {median(news):.1f} s, {COMMIT} {median(olds):.1f} s, ratio {median(olds) / median(news):.2f}")
        print("the slowest scenarios and schedules of the last run, and their longest waits:")
        for wait in list_slowest(traces):
            print(f"  {wait.seconds:5.1f} s  {wait.scenario}: {wait.longest:.1f} s for {wait.reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
