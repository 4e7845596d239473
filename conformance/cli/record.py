"""The work of `fencepost record`: options in, a trace out."""

import argparse
import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

from fencepost.adapters.record.recorder import DEFAULT_GRACE_MS, RecordingOptions, RecordingResult, record_traffic
from fencepost.adapters.target import TargetError
from fencepost.conformance.profile import Profile, load_profile
from fencepost.conformance.results import ExitCode


def run(options: argparse.Namespace, announce: Callable[[str], None], show: Callable[[str], None]) -> int:
    """Record as asked. Raises `TargetError`, `ProfileError` and `OSError`."""
    profile = load_profile(options.profile) if options.profile is not None else Profile()
    job = RecordingOptions(
        listen=options.listen,
        upstream=options.upstream,
        path=options.output,
        max_file_bytes=options.rotate,
        sync_interval_s=options.sync,
        duration_s=options.seconds,
        grace_ms=DEFAULT_GRACE_MS if profile.grace is None else profile.grace,
        settings=profile.settings,
        keep_all_bytes=options.everything,
    )
    if not job.path.parent.is_dir():
        raise TargetError(f"{job.path.parent}: no such folder")
    recorded = asyncio.run(_record_until_stopped(job, announce, show))
    files = f"{recorded.files[0]}" + (f" and {len(recorded.files) - 1} more" if len(recorded.files) > 1 else "")
    unread = f", {recorded.undecoded} messages not decoded" if recorded.undecoded else ""
    show(f"{recorded.events} events in {files}{unread}")
    return ExitCode.COULD_NOT_RUN if recorded.write_error else ExitCode.CONFORMANT


async def _record_until_stopped(
    job: RecordingOptions, announce: Callable[[str], None], show: Callable[[str], None]
) -> RecordingResult:
    """Record until a signal says that it is enough: what is on record then is a whole trace."""

    def address(host: str, port: int) -> None:
        announce(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError):  # no such signals here, or not in this thread
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, stop.set)
    return await record_traffic(job, address, show, stop)
