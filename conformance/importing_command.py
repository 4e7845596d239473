"""The command line of `fencepost import`: broker logs and packet captures in, a trace out."""

import argparse
from collections.abc import Callable
from pathlib import Path

from fencepost.conformance.results import Exit
from fencepost.traces.format import TraceError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What can be said on the command line."""
    kinds = parser.add_subparsers(required=True, metavar="KIND", dest="kind")
    log = kinds.add_parser("log", help="the log of an Apache Kafka broker, 3.9 or 4.x", allow_abbrev=False)
    log.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a log; several are put in order by time")
    for each in (log,):
        each.add_argument("-o", "--output", metavar="TRACE", type=Path, required=True, help="the trace to write")


def run(options: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Import as asked. Raises `TraceError` and `OSError`."""
    for file in options.files:
        if file.exists() and options.output.exists() and file.samefile(options.output):
            raise TraceError(str(file), 0, "would be written over; choose another name for the trace")
    try:
        tell(imported(options))
    except TraceError:
        options.output.unlink(missing_ok=True)
        raise
    return Exit.CONFORMANT


def imported(options: argparse.Namespace) -> str:
    """Do the work and say what came of it."""
    # Imported late: help and usage errors should not wait for it.
    from fencepost.traces.importers.log import import_log

    log = import_log(options.files, options.output)
    writers = ", ".join(sorted(log.writers))
    unknown = f"; {log.unknown} lines of the coordinator are of no known kind" if log.unknown else ""
    return f"{log.events} events from {log.lines} lines of {writers} in {options.output}{unknown}"
