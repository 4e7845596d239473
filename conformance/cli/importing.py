"""The command line of `fencepost import`: broker logs and packet captures in, a trace out."""

import argparse
from collections.abc import Callable
from pathlib import Path

from fencepost.conformance.profile import Profile, load_profile
from fencepost.conformance.results import ExitCode
from fencepost.model.settings import Settings
from fencepost.traces.files.trace_files import TraceError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What can be said on the command line."""
    kinds = parser.add_subparsers(required=True, metavar="KIND", dest="kind")
    log = kinds.add_parser("log", help="the log of an Apache Kafka broker, 3.9 or 4.x", allow_abbrev=False)
    log.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a log; several are put in order by time")
    capture = kinds.add_parser("capture", help="a packet capture (pcap, pcapng) of Kafka's port", allow_abbrev=False)
    capture.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a capture; several are put together")
    capture.add_argument(
        "--port", metavar="P", type=port_number, action="append", help="a broker's port (default: 9092)"
    )
    capture.add_argument("--profile", metavar="F", type=Path, help="settings and grace of the cluster, in TOML")
    capture.add_argument("--everything", action="store_true", help=EVERYTHING_HELP)
    for each in (log, capture):
        each.add_argument("-o", "--output", metavar="TRACE", type=Path, required=True, help="the trace to write")


EVERYTHING_HELP = "keep also bytes that may hold records or credentials"


def port_number(text: str) -> int:
    """A port from the command line."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65_536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def run(options: argparse.Namespace, show: Callable[[str], None]) -> int:
    """Import as asked. Raises `TraceError` and `OSError`."""
    for file in options.files:
        if file.exists() and options.output.exists() and file.samefile(options.output):
            raise TraceError(str(file), 0, "would be written over; choose another name for the trace")
    try:
        show(run_import(options))
    except TraceError:
        options.output.unlink(missing_ok=True)
        raise
    return ExitCode.CONFORMANT


def run_import(options: argparse.Namespace) -> str:
    """Do the work and say what came of it."""
    # Imported late: help and usage errors should not wait for it.
    if options.kind == "capture":
        return run_capture_import(options)
    from fencepost.traces.importers.broker_log import import_log

    log = import_log(options.files, options.output)
    writers = ", ".join(sorted(log.coordinators))
    unknown = f"; {log.unknown} lines of the coordinator are of no known kind" if log.unknown else ""
    return f"{log.events} events from {log.lines} lines of {writers} in {options.output}{unknown}"


def cluster_options(options: argparse.Namespace) -> tuple[frozenset[int], Settings | None, int]:
    """What `--port_number` and `--profile` say of the cluster in a capture: ports, settings if they are known, and
    grace in milliseconds. Raises `ProfileError`."""
    from fencepost.traces.importers.packet_capture import DEFAULT_GRACE_MS, DEFAULT_PORT

    profile = load_profile(options.profile) if options.profile is not None else Profile()
    settings = Settings(**profile.settings) if profile.settings else None
    return (
        frozenset(options.port or (DEFAULT_PORT,)),
        settings,
        DEFAULT_GRACE_MS if profile.grace is None else profile.grace,
    )


def run_capture_import(options: argparse.Namespace) -> str:
    """Do that work and say what came of it."""
    from fencepost.traces.importers.packet_capture import CaptureSource, import_capture

    source = CaptureSource(options.files, *cluster_options(options), keep_all_bytes=options.everything)
    capture = import_capture(source, options.output)
    gaps = f"; bytes are missing in {capture.gaps} places" if capture.gaps else ""
    undecoded = f"; {capture.undecoded} messages not decoded" if capture.undecoded else ""
    told = f"{capture.events} events from {capture.packets} packets on {capture.connections} connections"
    return f"{told} in {options.output}{gaps}{undecoded}"
