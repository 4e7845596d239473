"""`fencepost import`: broker logs, request logs, packet captures or recordings in, a trace out."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.argument_types import port, whole
from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.record import EVERYTHING_HELP, FORCE_HELP

if TYPE_CHECKING:
    from fencepost.model.settings import Settings

DEFAULT_SKEW_MS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the kinds of `fencepost import` and their arguments."""
    kinds = parser.add_subparsers(required=True, metavar="KIND")
    log = kinds.add_parser("log", help="the log of an Apache Kafka broker, 3.9 or 4.x", allow_abbrev=False)
    log.set_defaults(import_files=import_log_files)
    log.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a log; several are sorted by time")
    capture = kinds.add_parser("capture", help="a packet capture (pcap, pcapng) of Kafka's port", allow_abbrev=False)
    capture.set_defaults(import_files=import_capture_files)
    capture.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a capture; several are merged")
    capture.add_argument("--port", metavar="P", type=port, action="append", help="a broker's port (default: 9092)")
    capture.add_argument("--everything", action="store_true", help=EVERYTHING_HELP)
    requests = kinds.add_parser(
        "request-log", help="the request log of Apache Kafka (kafka.request.logger at DEBUG)", allow_abbrev=False
    )
    requests.set_defaults(import_files=import_request_log_files)
    requests.add_argument(
        "files", metavar="FILE", nargs="+", type=Path, help="a request log; parts, and those of all brokers, are merged"
    )
    for each in (capture, requests):
        each.add_argument("--profile", metavar="F", type=Path, help="settings and grace of the cluster, in TOML")
    recordings = kinds.add_parser(
        "recordings", help="what several recorders of one cluster wrote, as one trace", allow_abbrev=False
    )
    recordings.set_defaults(import_files=import_recording_files)
    recordings.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a recording, or a part of one")
    recordings.add_argument(
        "--skew",
        metavar="MS",
        type=whole,
        default=DEFAULT_SKEW_MS,
        help=f"how much the recorders' clocks differ at most (default: {DEFAULT_SKEW_MS})",
    )
    for each in (log, capture, requests, recordings):
        each.add_argument("-o", "--output", metavar="TRACE", type=Path, required=True, help="the trace to write")
        each.add_argument("--force", action="store_true", help=FORCE_HELP)


def run(options: argparse.Namespace, console: Console) -> int:
    """Import the files and print how many events they gave. A trace that fails half-way is removed, and one that was
    there before is kept then."""
    from fencepost.conformance.cli.outputs import refuse_existing
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.files.trace_files import TraceError

    for file in options.files:
        if file.exists() and options.output.exists() and file.samefile(options.output):
            raise TraceError(str(file), 0, "would be written over; choose another name for the trace")
    refuse_existing(options.output, may_overwrite=options.force)
    partial = options.output.with_name(f".partial-{options.output.name}")
    try:
        found = options.import_files(options, partial)
        partial.replace(options.output)
    finally:
        partial.unlink(missing_ok=True)
    console.log(found)
    return ExitCode.CONFORMANT


def import_log_files(options: argparse.Namespace, output: Path) -> str:
    """Import broker logs into a file; returns a line with the counts."""
    from fencepost.traces.importers.broker_log import import_log

    log = import_log(options.files, output)
    writers = ", ".join(sorted(log.coordinators))
    unknown = f"; {log.unknown} lines of the coordinator are of no known kind" if log.unknown else ""
    return f"{log.events} events from {log.lines} lines of {writers} in {options.output}{unknown}"


def import_capture_files(options: argparse.Namespace, output: Path) -> str:
    """Import packet captures into a file; returns a line with the counts."""
    from fencepost.traces.importers.packet_capture import DEFAULT_PORT, CaptureSource, import_capture

    ports = frozenset(options.port or (DEFAULT_PORT,))
    source = CaptureSource(options.files, ports, *cluster_options(options), keep_all_bytes=options.everything)
    capture = import_capture(source, output)
    gaps = f"; bytes are missing in {capture.gaps} places" if capture.gaps else ""
    undecoded = f"; {capture.undecoded} messages not decoded" if capture.undecoded else ""
    counts = f"{capture.events} events from {capture.packets} packets on {capture.connections} connections"
    return f"{counts} in {options.output}{gaps}{undecoded}"


def import_request_log_files(options: argparse.Namespace, output: Path) -> str:
    """Import request logs into a file; returns a line with the counts."""
    from fencepost.traces.importers.request_log import RequestLogSource, import_request_log

    log = import_request_log(RequestLogSource(options.files, *cluster_options(options)), output)
    undecoded = f"; {log.undecoded} requests not decoded" if log.undecoded else ""
    tail = f"; {log.left_out} requests left out, of groups that the log shows in part" if log.left_out else ""
    counts = f"{log.events} events from {log.requests} requests in {log.lines} lines"
    return f"{counts} in {options.output}{undecoded}{tail}"


def import_recording_files(options: argparse.Namespace, output: Path) -> str:
    """Join recordings in a file; returns a line with the counts."""
    from fencepost.traces.importers.recordings import join_recordings

    joined = join_recordings(options.files, output, options.skew)
    return f"{joined.events} events from {joined.recordings} recordings in {options.output}"


def cluster_options(options: argparse.Namespace) -> "tuple[Settings | None, int]":
    """The settings of a cluster (None if unknown) and the grace in milliseconds, from `--profile`. Raises
    `ProfileError`."""
    from fencepost.conformance.profile import Profile, load_profile
    from fencepost.model.settings import Settings
    from fencepost.traces.importers.packet_capture import DEFAULT_GRACE_MS

    profile = load_profile(options.profile) if options.profile is not None else Profile()
    settings = Settings(**profile.settings) if profile.settings else None
    return settings, DEFAULT_GRACE_MS if profile.grace is None else profile.grace
