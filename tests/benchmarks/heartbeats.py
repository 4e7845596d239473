"""What remembered steps spare whoever tells a story: `python -m tests.benchmarks.heartbeats`.

A group of ten, 95 % of whose traffic is heartbeats, is judged as its coordinator sees it while its story is told, in
turn with every step taken anew and with those remembered that repeat an earlier one. Reading counts. The ratio is that
of processor seconds.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.traces.events import Lookahead
from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.history.builder import TraceHistory
from fencepost.traces.history.recorder import make_recorder
from fencepost.traces.judge.judge import Judge
from fencepost.traces.verdict import TraceVerdict
from tests.benchmarks.judge import busy_group

TURNS_BETWEEN_COMMITS = 19


def tell_file(path: Path, *, anew: bool) -> tuple[float, TraceVerdict, TraceHistory]:
    """Judge a trace and tell its story; the processor seconds, and what came of it."""
    begun = time.process_time()
    header, events = open_trace(path)
    histories: list[TraceHistory] = []
    recorder = make_recorder("t", header, histories)
    judge = Judge(header, on_step=recorder.on_step, check_repetitions=anew)
    for moment in Lookahead(events).pair_operations():
        recorder.before_event(moment, judge)
        judge.on_event(*moment)
        recorder.after_event(moment, judge)
    verdict = judge.finish()
    recorder.finish()
    return time.process_time() - begun, verdict, histories[0]


def measure(events: int, pairs: int) -> dict[str, Any]:
    """The ratios of some pairs."""
    header, seen = run_virtual(busy_group(events, TURNS_BETWEEN_COMMITS))
    share = sum(event.api == "Heartbeat" for event in seen) / len(seen)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        write_trace(path, replace(header, implementation={"recorder": "benchmark"}), seen)
        for _ in range(pairs):
            (slow, *one), (quick, *other) = (tell_file(path, anew=anew) for anew in (True, False))
            assert one == other, "the same verdict and the same story"
            ratios.append(round(slow / quick, 2))
    return {"events": len(seen), "heartbeats": round(share, 3), "ratios": ratios, "ratio": median(ratios)}


def main(arguments: list[str]) -> int:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=24_000)
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args(arguments)
    print(json.dumps(measure(options.events, options.pairs)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
