"""The work of `fencepost record`: options in, a trace out."""

import argparse
import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

from fencepost.adapters.record.recorder import GRACE_MS, Job, Recorded, record
from fencepost.adapters.target import TargetError
from fencepost.conformance.profile import Profile, load_profile
from fencepost.conformance.results import Exit


def run(options: argparse.Namespace, announce: Callable[[str], None], tell: Callable[[str], None]) -> int:
    """Record as asked. Raises `TargetError`, `ProfileError` and `OSError`."""
    profile = load_profile(options.profile) if options.profile is not None else Profile()
    job = Job(
        listen=options.listen,
        upstream=options.upstream,
        path=options.output,
        rotate=options.rotate,
        sync=options.sync,
        seconds=options.seconds,
        grace=GRACE_MS if profile.grace is None else profile.grace,
        settings=profile.settings,
        everything=options.everything,
    )
    if not job.path.parent.is_dir():
        raise TargetError(f"{job.path.parent}: no such folder")
    recorded = asyncio.run(_recorded(job, announce, tell))
    files = f"{recorded.files[0]}" + (f" and {len(recorded.files) - 1} more" if len(recorded.files) > 1 else "")
    unread = f", {recorded.undecoded} messages not decoded" if recorded.undecoded else ""
    tell(f"{recorded.events} events in {files}{unread}")
    return Exit.COULD_NOT_RUN if recorded.lost else Exit.CONFORMANT


async def _recorded(job: Job, announce: Callable[[str], None], tell: Callable[[str], None]) -> Recorded:
    """Record until a signal says that it is enough: what is on record then is a whole trace."""

    def address(host: str, port: int) -> None:
        announce(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError):  # no such signals here, or not in this thread
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, stop.set)
    return await record(job, address, tell, stop)
