"""What the way through the recorder costs: the same requests to the same server, directly and through it, by turns.

Run with `python -m tests.benchmarks.recorder`; `--requests`, `--rounds` and `--json FILE` are optional. The server and
the recorder have a process each; this one only asks. A heartbeat is next to no work for the server, so the ratio is
the worst that a client can see.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from fencepost.model.wire.codec import encode_request

HEARTBEAT = encode_request("Heartbeat", 3, 1, "me", {"group_id": "g", "generation_id": 1, "member_id": "m"})
PIPELINE_DEPTH = 32
"""How many requests are sent ahead where throughput is measured."""


@contextmanager
def run_server(*words: str) -> Iterator[int]:
    """A command of the kit that prints its address; the port."""
    command = [sys.executable, "-m", "fencepost", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline().strip().rpartition(":")[2])
        finally:
            process.terminate()


def read_frame(stream: Any) -> None:
    """One answer."""
    stream.read(int.from_bytes(stream.read(4)))


def latency(port: int, requests: int) -> float:
    """Milliseconds from a request to its answer, one after the other: the median."""
    frame = len(HEARTBEAT).to_bytes(4) + HEARTBEAT
    taken = []
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as stream:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(requests):
            begun = time.perf_counter()
            connection.sendall(frame)
            read_frame(stream)
            taken.append(time.perf_counter() - begun)
    return median(taken) * 1_000


def throughput(port: int, requests: int) -> float:
    """Requests a second on one connection, many in flight."""
    frame = len(HEARTBEAT).to_bytes(4) + HEARTBEAT
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as stream:
        begun = time.perf_counter()
        for _ in range(requests // PIPELINE_DEPTH):
            connection.sendall(frame * PIPELINE_DEPTH)
            for _ in range(PIPELINE_DEPTH):
                read_frame(stream)
        return requests // PIPELINE_DEPTH * PIPELINE_DEPTH / (time.perf_counter() - begun)


def measure(requests: int, rounds: int) -> dict[str, float]:
    """Both ways by turns, so that both see the same machine."""
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, run_server("serve", "--port", "0") as direct:
        trace = Path(folder) / "trace.jsonl"
        with run_server("record", "--upstream", f"127.0.0.1:{direct}", "-o", str(trace)) as through:
            for _ in range(rounds):
                for name, port in (("direct", direct), ("recorded", through)):
                    figures.setdefault(f"{name}_latency_ms", []).append(latency(port, requests))
                    figures.setdefault(f"{name}_requests_per_second", []).append(throughput(port, requests))
    told = {name: round(median(values), 3) for name, values in figures.items()}
    told["latency_ratio"] = round(told["recorded_latency_ms"] / told["direct_latency_ms"], 2)
    told["throughput_ratio"] = round(told["direct_requests_per_second"] / told["recorded_requests_per_second"], 2)
    told["added_ms"] = round(told["recorded_latency_ms"] - told["direct_latency_ms"], 3)
    return told


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures and keep them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=3_200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    figures = {**measure(options.requests, options.rounds), "cores": os.cpu_count()}
    print(json.dumps(figures, indent=2))
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
