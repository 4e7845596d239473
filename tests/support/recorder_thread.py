"""A recorder of our own in a thread, for clients that block."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fencepost.adapters.address import parse_address
from fencepost.adapters.record.recorder import RecordingOptions, RecordingResult
from fencepost.conformance.testing.recording import record_meanwhile
from fencepost.conformance.testing.threads import enter_in_thread


@dataclass(slots=True)
class RunningRecorder:
    """A running recorder: its address for clients, its notices, and the work that has its result once it has ended."""

    bootstrap: str
    notices: list[str]
    work: asyncio.Task[RecordingResult]


@contextmanager
def record_in_thread(job: RecordingOptions) -> Iterator[RunningRecorder]:
    """Runs a recorder until the end of the block."""
    told: list[str] = []
    with enter_in_thread(lambda: record_meanwhile(job, told.append)) as (bootstrap, work):
        yield RunningRecorder(bootstrap, told, work)


def parse_bootstrap(bootstrap: str) -> tuple[str, int]:
    """Host and port of an address."""
    found = parse_address(bootstrap)
    assert found is not None
    return found
