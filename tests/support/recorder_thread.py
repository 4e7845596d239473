"""A recorder of our own in a thread, for clients that block."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field

from fencepost.adapters.address import parse_address
from fencepost.adapters.record.recorder import RecordingOptions, RecordingResult, record_traffic


@dataclass(slots=True)
class RunningRecorder:
    """A running recorder: its address for clients, its notices, and its result once it has ended."""

    bootstrap: str
    notices: list[str]
    results: list[RecordingResult] = field(default_factory=list)


@contextmanager
def record_in_thread(job: RecordingOptions) -> Iterator[RunningRecorder]:
    """Runs a recorder until the end of the block."""
    address: Future[tuple[str, int]] = Future()
    ends: Future[None] = Future()
    told: list[str] = []
    recorded: list[RecordingResult] = []

    async def live() -> None:
        stop = asyncio.Event()
        waiting = asyncio.ensure_future(asyncio.wrap_future(ends))
        waiting.add_done_callback(lambda _: stop.set())
        try:
            recorded.append(
                await record_traffic(job, lambda host, port: address.set_result((host, port)), told.append, stop)
            )
        except BaseException as error:
            address.set_exception(error)

    thread = threading.Thread(target=asyncio.run, args=(live(),), daemon=True)
    thread.start()
    try:
        host, port = address.result(20)
        yield RunningRecorder(f"{host}:{port}", told, recorded)
    finally:
        ends.set_result(None)
        thread.join(20)
        assert not thread.is_alive()


def parse_bootstrap(bootstrap: str) -> tuple[str, int]:
    """Host and port of an address."""
    found = parse_address(bootstrap)
    assert found is not None
    return found
