"""The application that drives a client under test: commands to it, and its callbacks, records and results.

A driver is a program with a client in it. It reads commands and writes messages, one JSON object a line; the page on
testing clients has both. Everything that passes is in the trace of the cluster.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from fencepost.adapters.client.cluster import CLIENT_LABEL, ScriptedCluster
from fencepost.model.errors import FencepostError
from fencepost.traces.events import Kind

CALLBACKS = ("assigned", "revoked", "lost")
POLL_MS = 100
"""How long a poll of the application waits for records."""
UNSUPPORTED = "unsupported"
"""The error of a command that a driver does not know."""
PAUSE_S = 0.1
"""How long the application waits after a poll that has failed."""

Message = Mapping[str, Any]


class DriverError(FencepostError):
    """A driver does not keep its protocol; the message is one clear line."""


def decode_message(line: bytes) -> Message:
    """The message in a line of a driver. Raises `DriverError`."""
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise DriverError(f"the driver wrote no JSON object: {line[:80].decode(errors='replace')!r}")
    return message


class Application:
    """An application that subscribes to a topic, polls, and does what a scenario asks for. `send` takes a command to
    the driver."""

    def __init__(self, cluster: ScriptedCluster, send: Callable[[Message], None]) -> None:
        self.is_closing = False
        self._cluster = cluster
        self._send = send
        self._results: dict[int, asyncio.Future[Message]] = {}
        self._count = 0
        self._turn = asyncio.Lock()
        self._is_ready = asyncio.Event()
        self._may_poll = asyncio.Event()
        self._may_poll.set()

    # -- what a scenario does ----------------------------------------------------------------------------------------

    async def run(self, topic: str) -> None:
        """Subscribe to the topic and poll until the application is to close."""
        await self._is_ready.wait()
        await self.do("subscribe", topics=[topic])
        while not self.is_closing:
            await self._may_poll.wait()
            if not self.is_closing and "error" in await self.do("poll", ms=POLL_MS):
                await asyncio.sleep(PAUSE_S)
        await self.do("close")

    def close(self) -> None:
        """Have the application close its client after the poll under way."""
        self.is_closing = True
        self.go_on_polling()

    def stop_polling(self) -> None:
        """Have the application stop polling until `go_on_polling`."""
        self._may_poll.clear()

    def go_on_polling(self) -> None:
        """Have the application poll again."""
        self._may_poll.set()

    async def do(self, command: str, **fields: Any) -> Message:
        """Have the driver carry out a command; the message with its result."""
        async with self._turn:
            self._count += 1
            number = self._count
            result: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
            self._results[number] = result
            message = {"id": number, "do": command, **fields}
            self._record(Kind.INTERNAL, "command", message)
            self._send(message)
            return await result

    # -- what the driver says ----------------------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        """Take a message of the driver. Raises `DriverError`."""
        match message:
            case {"ready": dict(about)}:
                self._record(Kind.INTERNAL, "driver", about)
                self._is_ready.set()
            case {"event": str(name), "partitions": list(partitions)} if name in CALLBACKS:
                self._record(Kind.CALLBACK, name, {**message, "partitions": sorted(partitions)})
            case {"records": list(records)}:
                counts = Counter(f"{topic}/{number}" for topic, number, _ in records)
                self._record(Kind.POLL, "records", {"returned": dict(counts), "records": records})
            case {"committed": int(number)} if 0 < number <= self._count:
                self._record(Kind.INTERNAL, "committed", message)
            case {"done": int(number)} | {"error": str(_), "of": int(number)} if number in self._results:
                self._record(Kind.INTERNAL, "result", message)
                result = self._results.pop(number)
                if not result.done():  # nobody waits for it any more
                    result.set_result(message)
            case _:
                raise DriverError(f"the driver wrote an unknown message: {json.dumps(message)[:80]}")

    def _record(self, kind: Kind, name: str, body: Message) -> None:
        rest = {key: value for key, value in body.items() if key != "event"}
        self._cluster.trace.record_event(kind, name, 0, rest, 0, CLIENT_LABEL)
