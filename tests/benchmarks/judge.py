"""How fast the judge is: a long totally ordered trace of a busy group of ten, and the same group as clients see it.

Run with `python -m tests.benchmarks.judge`; `--events`, `--intervals` and `--json FILE` are optional. Reading the trace
file counts; seconds are processor seconds of the one core that the judge uses. Memory is flat if the second half of
the trace needs next to nothing that the first did not.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import TraceBuilder
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.context import ScenarioContext
from fencepost.traces.events import Event, Header, Order
from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.judge.judge import judge
from tests.support.client_view import as_seen_by_clients

MEMBERS = 10
ROUNDS_BETWEEN_REBALANCES = 400
PAUSE_MS = 30
"""Members do not speak in chorus: each has a turn of its own every 300 ms."""
MAX_TRAVEL_MS = 3
"""How long a message travels between a client and the coordinator."""
MAX_GROWTH_MIB = 8
"""How much the second half of a trace may add to the memory of the first."""


async def busy_group(events: int, turns_between_commits: int = 3) -> tuple[Header, tuple[Event, ...]]:
    """Ten members that heartbeat and commit, and now and then rebalance."""
    settings = replace(BUNDLED_SETTINGS, max_group_size=2 * MEMBERS)
    target = InProcessTarget(settings)
    description = await target.open()
    loop = asyncio.get_running_loop()
    recorder = TraceBuilder(lambda: int(loop.time() * 1000 + 1e-6))
    channel = target.channel(recorder)
    stage = ScenarioContext(description, channel, recorder, "busy")
    members = [
        stage.member(f"M{number}", session_timeout=30_000, rebalance_timeout=60_000) for number in range(MEMBERS)
    ]
    members = list(await stage.form_stable_group(*members))
    turn, seen = 0, 0
    while seen < events:
        for member in members:
            await stage.sleep(PAUSE_MS)
            await stage.heartbeat(member)
            if turn % turns_between_commits == 0:
                await stage.commit(member, {turn % 4: turn})
        seen += MEMBERS * (4 if turn % turns_between_commits == 0 else 2)
        turn += 1
        if turn % ROUNDS_BETWEEN_REBALANCES == 0:
            for call in [stage.join(member) for member in members]:
                await call
            await stage.sync_all(*members)
    await channel.close()
    await target.close()
    return Header("benchmark", Order.TOTAL, "virtual", settings, 0), recorder.events


def peak_mib() -> float:
    """The most memory this process has had so far. Linux tells; `getrusage` would count its parent's as well."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].removesuffix("kB")) / 1024


def with_memory_peak(events: Iterator[Event], half: int, peaks: list[float]) -> Iterator[Event]:
    """The events, noting the memory when half of them were read."""
    for number, event in enumerate(events):
        if number == half:
            peaks.append(peak_mib())
        yield event


def measure(path: Path, count: int) -> dict[str, Any]:
    """Judge a trace file and say how it went."""
    peaks: list[float] = []
    header, events = open_trace(path)
    # The judge uses one core; its processor time does not depend on who else uses the machine.
    begun = time.process_time()
    verdict = judge(header, with_memory_peak(events, count // 2, peaks))
    seconds = time.process_time() - begun
    grown = peak_mib() - peaks[0]
    return {
        "events": verdict.events,
        "seconds": round(seconds, 2),
        "events_per_second": round(verdict.events / seconds),
        "peak_mib": round(peak_mib(), 1),
        "grown_mib_in_second_half": round(grown, 1),
        "flat": grown <= MAX_GROWTH_MIB,
        "faults": len(verdict.violations),
        "inconclusive": len(verdict.inconclusive),
    }


def write_benchmark_trace(path: Path, events: int, *, clients: bool) -> int:
    """Make a trace file; how many events it holds."""
    header, seen = run_virtual(busy_group(events))
    if clients:
        header, seen = as_seen_by_clients(replace(header, grace=50), seen, random.Random(0), MAX_TRAVEL_MS)
    write_trace(path, header, seen)
    return len(seen)


def measure_in_new_process(path: Path, count: int) -> dict[str, Any]:
    """Judge where nothing else has used memory before."""
    from multiprocessing import get_context

    with get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (path, count))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both kinds of traces, print the figures and keep them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--intervals", type=int, default=50_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, events in (("total", options.events), ("intervals", options.intervals)):
            path = Path(folder) / f"{name}.jsonl"
            print(f"{name}: making {events} events", file=sys.stderr, flush=True)
            count = write_benchmark_trace(path, events, clients=name == "intervals")
            print(f"{name}: judging {count} events", file=sys.stderr, flush=True)
            figures[name] = measure_in_new_process(path, count)
            print(name, json.dumps(figures[name]), flush=True)
            path.unlink()
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
