"""The commands for real clients and brokers: `record` them, `import` their logs and captures, and `serve` clients."""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.console import Console, handle_signals, run_interruptible
from fencepost.conformance.cli.options import (
    EVERYTHING,
    FORCE,
    LOUDNESS,
    Command,
    Option,
    address,
    bootstrap,
    listening_address,
    listening_port,
    node_count,
    port,
    protocols_for,
    refuse_options,
    run_protocol,
    seconds,
    size,
    topic_partitions,
    whole,
)

if TYPE_CHECKING:
    from fencepost.adapters.record.recorder import RecordingOptions, RecordingResult
    from fencepost.model.settings import Settings


# --- record


def run_record(options: argparse.Namespace, console: Console) -> int:
    """Record until Ctrl-C or for --seconds; the proxy's address is printed once it listens."""
    import asyncio

    from fencepost.conformance.cli.files import refuse_existing
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.files.rotating_writer import part_path

    job = recording_options(options)
    first = job.path if job.max_file_bytes is None else part_path(job.path, 1)
    refuse_existing(first, may_overwrite=options.force)
    result = asyncio.run(_record_until_signal(job, console))
    files = f"{result.files[0]}" + (f" and {len(result.files) - 1} more" if len(result.files) > 1 else "")
    undecoded = f", {result.undecoded} messages not decoded" if result.undecoded else ""
    console.note(f"{result.events} events in {files}{undecoded}")
    return ExitCode.COULD_NOT_RUN if result.write_error else ExitCode.CONFORMANT


def recording_options(options: argparse.Namespace) -> "RecordingOptions":
    """The recording that the options and the profile describe. Raises `ProfileError`."""
    from fencepost.adapters.record.recorder import DEFAULT_GRACE_MS, RecordingOptions
    from fencepost.adapters.security.authentication import load_security
    from fencepost.conformance.profile import load_profile

    profile = load_profile(options.profile)
    return RecordingOptions(
        listen=options.listen,
        upstream=options.upstream,
        path=options.output,
        max_file_bytes=options.rotate,
        sync_interval_s=options.sync,
        duration_s=options.seconds,
        grace_ms=DEFAULT_GRACE_MS if profile.grace is None else profile.grace,
        settings=profile.settings,
        overrides_broker=profile.overrides_broker,
        keep_all_bytes=options.everything,
        may_overwrite=options.force,
        security=load_security(profile.security, wants_tls=options.upstream.wants_tls),
    )


async def _record_until_signal(job: "RecordingOptions", console: Console) -> "RecordingResult":
    """Record until a signal that ends a command; the trace is then complete."""
    import asyncio

    from fencepost.adapters.address import format_address
    from fencepost.adapters.record.recorder import record_traffic

    def announce(host: str, port: int) -> None:
        console.print_line(format_address(host, port))

    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    with handle_signals(lambda *_: loop.call_soon_threadsafe(stop.set)):
        return await record_traffic(job, announce, console.log, stop)


# --- import


def run_import(options: argparse.Namespace, console: Console) -> int:
    """Import the files and print how many events they gave. A trace that fails half-way is removed, and one that was
    there before is kept then."""
    from fencepost.conformance.cli.files import refuse_existing
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.files.trace_files import TraceError

    for file in options.files:
        if file.exists() and options.output.exists() and file.samefile(options.output):
            raise TraceError(str(file), 0, "would be written over; choose another name for the trace")
    refuse_existing(options.output, may_overwrite=options.force)
    partial = options.output.with_name(f".partial-{options.output.name}")
    try:
        found = options.act(options, partial)
        partial.replace(options.output)
    finally:
        partial.unlink(missing_ok=True)
    console.note(found)
    return ExitCode.CONFORMANT


def import_log_files(options: argparse.Namespace, output: Path) -> str:
    """Import broker logs into a file; returns a line with the counts."""
    from fencepost.traces.importers.broker_log import import_log

    log = import_log(options.files, output)
    shapes = "; ".join(dict.fromkeys(filter(None, log.shapes)))
    doubled = f"{log.doubled} doubled lines were left out" if log.doubled else ""
    notes = "".join(f"; {note}" for note in (log.unread, *log.notes, doubled) if note)
    return f"{log.events} events from {log.lines} lines ({shapes}) in {options.output}{notes}"


def import_offsets_files(options: argparse.Namespace, output: Path) -> str:
    """Import what coordinators stored into a file; returns a line with the counts."""
    from fencepost.traces.importers.offsets_topic import import_offsets

    stored = import_offsets(options.files, output)
    others = f"; {stored.others} records are not of classic groups" if stored.others else ""
    unread = f"; {stored.unread} parts were not read: {stored.reason}" if stored.unread else ""
    return f"{stored.events} events from {stored.records} records in {options.output}{others}{unread}"


def import_capture_files(options: argparse.Namespace, output: Path) -> str:
    """Import packet captures into a file; returns a line with the counts."""
    from fencepost.traces.importers.packet_capture import DEFAULT_PORT, CaptureSource, import_capture

    ports = frozenset(options.port or (DEFAULT_PORT,))
    source = CaptureSource(options.files, ports, *cluster_options(options), keep_all_bytes=options.everything)
    capture = import_capture(source, output)
    gaps = f"; bytes are missing in {capture.gaps} places" if capture.gaps else ""
    undecoded = f"; {capture.undecoded} messages not decoded" if capture.undecoded else ""
    if capture.cut:
        undecoded += f"; {capture.cut} packets are cut at {capture.cut_at} bytes: take the capture with -s 0"
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
    from fencepost.conformance.profile import load_profile
    from fencepost.model.settings import Settings
    from fencepost.traces.importers.packet_capture import DEFAULT_GRACE_MS

    profile = load_profile(options.profile)
    settings = Settings(**profile.settings) if profile.settings else None
    return settings, DEFAULT_GRACE_MS if profile.grace is None else profile.grace


# --- serve


def serve_classic(options: argparse.Namespace, console: Console) -> int:
    """Serve until Ctrl-C; the bootstrap address is printed once the server listens."""
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.run import runner

    own = {"host", "port", "storage", "slow_storage", "dialect", "nodes", "runner"}
    refuse_options(options, "serve", frozenset(own))
    serve = (options.runner or runner).serve
    try:
        serving = serve(
            options.host,
            options.port,
            options.storage,
            console.print_line,
            options.slow_storage,
            options.nodes,
            options.dialect,
        )
        run_interruptible(serving)
    except KeyboardInterrupt:
        console.log("stopped")
    return ExitCode.CONFORMANT


def list_dialects() -> list[str]:
    """The dialects of the bundled coordinator."""
    from fencepost.model.protocols import KAFKA, default_protocol, protocols_with

    spoken = protocols_with(lambda entry: entry.coordinator)
    return [KAFKA, *(name for name in spoken if name != default_protocol().name)]


# --- the commands

_PROFILE = Option("--profile", "F", "settings and grace of the cluster, in TOML", Path)
_OUTPUT = Option("-o --output", "TRACE", "the trace to write", Path, required=True)


_FILE = Option("files", "FILE", read=Path, nargs="+")
_OFFSETS = (replace(_FILE, help="a segment, a folder of segments, or a dump"), _OUTPUT, FORCE, LOUDNESS)
_LOG = (replace(_FILE, help="a log; several are sorted by time"), _OUTPUT, FORCE, LOUDNESS)
_CAPTURE = (
    replace(_FILE, help="a capture; several are merged"),
    Option("--port", "P", "a broker's port (default: 9092)", port, repeats=True),
    EVERYTHING,
    _PROFILE,
    _OUTPUT,
    FORCE,
    LOUDNESS,
)
_REQUEST_LOG = (
    replace(_FILE, help="a request log; parts, and those of all brokers, are merged"),
    _PROFILE,
    _OUTPUT,
    FORCE,
    LOUDNESS,
)
_RECORDINGS = (
    replace(_FILE, help="a recording, or a part of one"),
    Option("--skew", "MS", "how much the recorders' clocks differ at most", whole, 10),
    _OUTPUT,
    FORCE,
    LOUDNESS,
)
COMMANDS = {
    "record": Command(
        run_record,
        (
            Option(
                "--listen",
                "H:P",
                "address for the clients; other brokers get free ports (default: 127.0.0.1 and a free port)",
                listening_address,
                ("127.0.0.1", 0),
                tells_default=False,
            ),
            Option(
                "--upstream",
                "H:P",
                "the cluster; kafka+ssl://H:P for TLS, and a,b for several addresses",
                bootstrap,
                required=True,
            ),
            Option("-o --output", "FILE", "the trace to write (.gz: gzip)", Path, required=True),
            FORCE,
            Option("--rotate", "SIZE", "begin a new file after SIZE bytes (50M, 1G)", size),
            Option("--sync", "S", "longest time in seconds until an event is on the disk", seconds, 1.0),
            Option("--seconds", "S", "stop after S seconds (default: at Ctrl-C)", seconds),
            Option("--profile", "F", "settings, security and grace, in TOML", Path),
            EVERYTHING,
            LOUDNESS,
        ),
    ),
    "import": Command(
        run_import,
        actions={
            "log": (
                "logs of Kafka brokers, 0.10 to 4.x, and of clients, in any layout",
                Command(import_log_files, _LOG),
            ),
            "offsets": (
                "the topic __consumer_offsets: segments of its log, or the text of kafka-dump-log --offsets-decoder",
                Command(import_offsets_files, _OFFSETS),
            ),
            "capture": (
                "a packet capture (pcap, pcapng) of Kafka's port",
                Command(import_capture_files, _CAPTURE),
            ),
            "request-log": (
                "the request log of Apache Kafka (kafka.request.logger at DEBUG)",
                Command(import_request_log_files, _REQUEST_LOG),
            ),
            "recordings": (
                "what several recorders of one cluster wrote, as one trace",
                Command(import_recording_files, _RECORDINGS),
            ),
        },
        metavar="KIND",
    ),
    "serve": Command(
        partial(run_protocol, "serve"),
        (
            Option("--host", "HOST", "address to listen on", default="127.0.0.1"),
            Option("--port", "PORT", "port to listen on, 0 for any", listening_port, 9092),
            Option("--storage", "DIR", "keep groups, offsets, topics and records here (default: in memory)", Path),
            Option("--slow-storage", "MS", "delay every write by MS milliseconds", whole, 0),
            Option(
                "--dialect",
                help="as Kafka's coordinator, or as the proposal of client-side assignment has it",
                choices=list_dialects,
            ),
            Option(
                "--nodes",
                "N",
                "serve N nodes, all but the first at free ports; SIGUSR1 has the next one coordinate all groups",
                node_count,
                1,
                tells_default=False,
            ),
            Option(
                "--topic",
                "NAME=N",
                "push: a topic with N partitions; may be given several times",
                topic_partitions,
                repeats=True,
            ),
            Option(
                "--zookeeper",
                "HOST:PORT",
                "push: keep paths and sessions in this ZooKeeper (default: in memory)",
                address,
            ),
            Option("--protocol", help="", choices=lambda: protocols_for("serve")),
        ),
    ),
}
