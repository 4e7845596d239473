"""`fencepost record`: a proxy between the clients and the brokers of a cluster, and the trace of their messages."""

import argparse
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.argument_types import bootstrap, listening_address, seconds, size
from fencepost.conformance.cli.console import Console

if TYPE_CHECKING:
    from fencepost.adapters.record.recorder import RecordingOptions, RecordingResult

UPSTREAM_HELP = "the cluster; kafka+ssl://H:P for TLS, and a,b for several addresses"
FORCE_HELP = "write over a file that is there"
EVERYTHING_HELP = "keep also bytes that may hold records or credentials"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost record`."""
    parser.add_argument(
        "--listen",
        metavar="H:P",
        type=listening_address,
        default=("127.0.0.1", 0),
        help="address for the clients; other brokers get free ports (default: 127.0.0.1 and a free port)",
    )
    parser.add_argument("--upstream", metavar="H:P", type=bootstrap, required=True, help=UPSTREAM_HELP)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True, help="the trace to write (.gz: gzip)"
    )
    parser.add_argument("--force", action="store_true", help=FORCE_HELP)
    parser.add_argument("--rotate", metavar="SIZE", type=size, help="begin a new file after SIZE bytes (50M, 1G)")
    parser.add_argument(
        "--sync",
        metavar="S",
        type=seconds,
        default=1.0,
        help="longest time in seconds until an event is on the disk (default: 1)",
    )
    parser.add_argument("--seconds", metavar="S", type=seconds, help="stop after S seconds (default: at Ctrl-C)")
    parser.add_argument("--profile", metavar="F", type=Path, help="settings, security and grace, in TOML")
    parser.add_argument("--everything", action="store_true", help=EVERYTHING_HELP)


def run(options: argparse.Namespace, console: Console) -> int:
    """Record until Ctrl-C or for --seconds; the proxy's address is printed once it listens."""
    import asyncio

    from fencepost.conformance.cli.outputs import refuse_existing
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.files.rotating_writer import part_path

    job = recording_options(options)
    first = job.path if job.max_file_bytes is None else part_path(job.path, 1)
    refuse_existing(first, may_overwrite=options.force)
    result = asyncio.run(_record_until_signal(job, console))
    files = f"{result.files[0]}" + (f" and {len(result.files) - 1} more" if len(result.files) > 1 else "")
    undecoded = f", {result.undecoded} messages not decoded" if result.undecoded else ""
    console.log(f"{result.events} events in {files}{undecoded}")
    return ExitCode.COULD_NOT_RUN if result.write_error else ExitCode.CONFORMANT


def recording_options(options: argparse.Namespace) -> "RecordingOptions":
    """The recording that the options and the profile describe. Raises `ProfileError`."""
    from fencepost.adapters.record.recorder import DEFAULT_GRACE_MS, RecordingOptions
    from fencepost.adapters.security.loading import load_security
    from fencepost.conformance.profile import Profile, load_profile

    profile = load_profile(options.profile) if options.profile is not None else Profile()
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
    """Record until SIGINT or SIGTERM; the trace is then complete."""
    import asyncio

    from fencepost.adapters.address import format_address
    from fencepost.adapters.record.recorder import record_traffic

    def announce(host: str, port: int) -> None:
        console.print_line(format_address(host, port))

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError):  # no such signals here, or not in this thread
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, stop.set)
    return await record_traffic(job, announce, console.log, stop)
