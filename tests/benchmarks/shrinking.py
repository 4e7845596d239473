"""How quickly violations are shrunk, and to how much; with `--old TREE` as a ratio to another tree.

Run with `python -m tests.benchmarks.shrinking`. Each of some known bugs is put into the bundled coordinator, and the
first schedule of a seed that shows a violation is shrunk, without a limit. Counted are the runs that it takes, the
processor seconds of these, and the requests of the shortest. The other tree is a checkout of this repository.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.schedules.bench import Bench
from fencepost.conformance.schedules.classic.protocol import ClassicSchedules
from fencepost.conformance.schedules.falsify import Counterexample, falsify
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.scope import ScheduleScope
from fencepost.conformance.zoo.classic.bugs import COORDINATOR_BUGS

BUGS = ("BUG-04", "BUG-06", "BUG-08", "BUG-10", "BUG-12", "BUG-16", "BUG-35", "BUG-40")
NO_LIMIT_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class Shrinking:
    """The shrinking of one violation: the runs and processor seconds it took, the moves of the schedule that was found,
    and the requests of the shortest."""

    bug: str
    runs: int
    seconds: float
    moves: int
    requests: int


@dataclass(frozen=True, slots=True)
class CountingBench(Bench):
    """A bench that notes the processor time of each run that begins."""

    begun: list[float] = field(default_factory=list)

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """As `Bench.violated_by`."""
        self.begun.append(time.process_time())
        return Bench.violated_by(self, schedule)


def shrink_bug(bug: str, seed: int) -> Shrinking:
    """Find a violation of the coordinator with this bug, and shrink its schedule."""
    bench = CountingBench(ClassicSchedules(ScheduleScope(BUNDLED_SETTINGS)), partial(InProcessTarget, BUNDLED_SETTINGS))
    with COORDINATOR_BUGS[bug].activate():
        found = falsify(bench, seed, NO_LIMIT_SECONDS, NO_LIMIT_SECONDS)
    assert isinstance(found, Counterexample)
    begun = bench.begun[found.schedules + 1 :]  # behind the search, which plays once more what it has found
    seconds = round(time.process_time() - begun[0], 2)
    return Shrinking(bug, len(begun), seconds, len(found.generated.moves), found.requests)


def measure_tree(tree: Path, arguments: Sequence[str]) -> list[Shrinking]:
    """The same with the code of another tree, in a process of its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(tree / ".src"), str(tree)))}
    command = [sys.executable, str(Path(__file__).resolve()), *arguments, "--json", "-"]
    done = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return [Shrinking(**row) for row in json.loads(done.stdout)]


def describe(one: Shrinking) -> str:
    """The figures of one violation."""
    return f"{one.runs:5} runs, {one.seconds:7.1f} s, {one.requests:3} requests"


def print_table(new: Sequence[Shrinking], old: Sequence[Shrinking]) -> None:
    """Print a line for each bug and one for all; `old` may be empty."""
    for place, now in enumerate(new):
        beside = f"   before: {describe(old[place])}" if old else ""
        print(f"{now.bug}  {now.moves:4} moves  {describe(now)}{beside}")
    print(f"median: {median(each.requests for each in new):g} requests")
    if old:
        runs = sum(each.runs for each in new) / sum(each.runs for each in old)
        seconds = sum(each.seconds for each in new) / sum(each.seconds for each in old)
        requests = sum(each.requests for each in new) / sum(each.requests for each in old)
        print(f"of the old tree: {runs:.2f} of the runs, {seconds:.2f} of the seconds, {requests:.2f} of the requests")


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.shrinking", description=__doc__)
    parser.add_argument("bugs", nargs="*", metavar="BUG", help="the bugs (default: eight)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="the seed of the schedules (default: 1)")
    parser.add_argument("--old", type=Path, metavar="TREE", help="a checkout to compare with")
    parser.add_argument("--json", metavar="F", help="write the results to this file (-: to standard output alone)")
    options = parser.parse_args(arguments)
    bugs = options.bugs or BUGS
    results = [shrink_bug(bug, options.seed) for bug in bugs]
    text = json.dumps([asdict(each) for each in results])
    if options.json == "-":
        print(text)
        return 0
    if options.json:
        Path(options.json).write_text(text)
    old = measure_tree(options.old.resolve(), [*bugs, "--seed", str(options.seed)]) if options.old else []
    print_table(results, old)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
