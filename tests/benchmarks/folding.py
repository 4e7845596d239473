"""How much folding heartbeats spares the judge: `python -m tests.benchmarks.folding`.

A group of ten, 95 % of whose traffic is heartbeats, is judged as its recorder sees it, in turn with all events and
folded, reading included. The ratio is that of processor seconds.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.traces.classic.folding import HeartbeatFolding
from fencepost.traces.events import Lookahead
from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.verdict import TraceVerdict
from tests.benchmarks.judge import MAX_TRAVEL_MS, busy_group
from tests.support.client_view import as_seen_by_clients

TURNS_BETWEEN_COMMITS = 19
GRACE_MS = 50


def write_recording(path: Path, events: int, *, clients: bool) -> float:
    """Make a recording; what share of its events are heartbeats."""
    header, seen = run_virtual(busy_group(events, TURNS_BETWEEN_COMMITS))
    header = replace(header, implementation={"recorder": "benchmark"})
    if clients:
        header, seen = as_seen_by_clients(replace(header, grace=GRACE_MS), seen, random.Random(0), MAX_TRAVEL_MS)
    write_trace(path, header, seen)
    return sum(event.api == "Heartbeat" for event in seen) / len(seen)


def judge_file(path: Path, *, folds: bool) -> tuple[float, TraceVerdict]:
    """Judge a recording as `fencepost judge` does; the processor seconds, and the verdict."""
    begun = time.process_time()
    header, events = open_trace(path)
    judge = Judge(header)
    moments = Lookahead(events).pair_operations()
    if folds:
        folding = HeartbeatFolding(judge)
        for moment, is_folded in folding.fold(moments):
            if not is_folded:
                judge.on_event(*moment)
        folding.settle()
    else:
        for moment in moments:
            judge.on_event(*moment)
    return time.process_time() - begun, judge.finish()


def measure(events: int, pairs: int, *, clients: bool) -> dict[str, Any]:
    """The ratios of some pairs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        share = write_recording(path, events, clients=clients)
        ratios = []
        for _ in range(pairs):
            all_events, folded = (judge_file(path, folds=folds) for folds in (False, True))
            ratios.append(all_events[0] / folded[0])
            one, other = all_events[1], folded[1]
            assert (one.violations, one.rules, one.events) == (other.violations, other.rules, other.events)
    return {
        "heartbeats": round(share, 3),
        "ratios": [round(each, 2) for each in ratios],
        "ratio": round(median(ratios), 2),
    }


def main(arguments: list[str]) -> int:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args(arguments)
    for name, clients in (("as clients see it", True), ("as the coordinator sees it", False)):
        print(name, json.dumps(measure(options.events, options.pairs, clients=clients)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
