"""The command line of `fencepost pipeline`: options in, Spark started, lines and tables out."""

import argparse
import sys
import time
from collections.abc import Callable

from fencepost.conformance.progress import Progress, ProgressDisplay
from fencepost.conformance.results import Exit
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.ingest import ingest
from fencepost.traces.pipeline.session import session
from fencepost.traces.pipeline.sources import trace_files

__all__ = ["PipelineError", "run"]

Show = Callable[[str], None]


def run(options: argparse.Namespace, show: Show) -> int:
    """Do what was asked. Raises `PipelineError` and `OSError`."""
    stages: dict[str, Callable[[argparse.Namespace, Show, ProgressDisplay], int]] = {"ingest": run_ingest}
    display = ProgressDisplay(sys.stderr, live=sys.stderr.isatty())
    try:
        return stages[options.stage](options, show, display)
    finally:
        display.close()


def run_ingest(options: argparse.Namespace, show: Show, display: ProgressDisplay) -> int:
    """`fencepost pipeline ingest`."""
    corpus = Corpus.create(options.to, options.buckets)
    paths = trace_files(options.traces, options.to / "made")
    tell = Teller(display, "MiB", 1 << 20)
    with session("ingest", options.master, dict(options.conf)) as spark:
        done = ingest(spark, corpus, paths, tell)
    display.close()
    counts = done.counts
    known = f", {done.known} known already" if done.known else ""
    show(f"{done.inputs} files read{known}; the corpus is {options.to}\n")
    kinds = f"{counts.headers} headers + {counts.events} events + {counts.quarantined} in quarantine"
    show(f"{counts.lines} lines = {kinds}\n")
    return Exit.CONFORMANT


class Teller:
    """Tells a person how far a stage is."""

    def __init__(self, display: ProgressDisplay, what: str, unit: int = 1) -> None:
        self.display = display
        self.what = what
        self.unit = unit
        self.begun = time.monotonic()

    def __call__(self, done: int, total: int, doing: str) -> None:
        """So much is done of so much."""
        seconds = time.monotonic() - self.begun
        total = -(-total // self.unit)
        self.display(Progress(min(total, -(-done // self.unit)), total, seconds, 0, doing, self.what))
