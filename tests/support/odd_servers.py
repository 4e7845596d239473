"""Servers on loopback that are no broker, or an odd one: the behaviour of each, and the message for it.

All of them hang up at the end of a test; none waits for anything but bytes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from fencepost.conformance.testing.threads import enter_in_thread
from fencepost.model.wire.codec import decode_request
from tests.support.bad_inputs.bad_input import SAMPLES, BadInput
from tests.support.fake_broker import DISCONNECT, SILENCE, FakeBroker, encode_frame, serve_brokers

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter
Serve: TypeAlias = Callable[[Reader, Writer], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class OddServer:
    """`make` makes what is served: a function for each connection, or a broker with a table of responses. `reason` is
    what the complaint says; `is_slow` if only a timeout of the kit ends the wait."""

    make: Callable[[], Serve | FakeBroker]
    reason: str
    is_slow: bool = False
    is_recorded: bool = False
    """Whether `fencepost record` has no reason to refuse it."""

    def commands(self) -> tuple[str, ...]:
        """The commands that refuse it."""
        return tuple(name for name in SERVER_COMMANDS if name != "record" or not self.is_recorded)


async def close_at_once(reader: Reader, writer: Writer) -> None:
    """Hang up without a word."""


async def say_nothing(reader: Reader, writer: Writer) -> None:
    """Read for ever."""
    while await reader.read(1 << 16):
        pass


async def speak(words: bytes, reader: Reader, writer: Writer) -> None:
    """Answer anything with the same words, and hang up."""
    await reader.read(1)
    writer.write(words)


async def greet(words: bytes, reader: Reader, writer: Writer) -> None:
    """Speak first, as mail and shell servers do, and wait."""
    writer.write(words)
    await say_nothing(reader, writer)


async def echo(reader: Reader, writer: Writer) -> None:
    """Send back what comes."""
    while data := await reader.read(1 << 16):
        writer.write(data)


async def stall(words: bytes, reader: Reader, writer: Writer) -> None:
    """Answer with the beginning of a frame, and stay connected."""
    await reader.read(1)
    writer.write(words)
    await say_nothing(reader, writer)


async def drip(reader: Reader, writer: Writer) -> None:
    """Answer a byte at a time, with a length that is never reached."""
    await reader.read(1)
    writer.write((1 << 20).to_bytes(4))
    with suppress(ConnectionError):
        while True:
            writer.write(b"\0")
            await writer.drain()
            await asyncio.sleep(0.05)


async def mistake_ids(reader: Reader, writer: Writer) -> None:
    """Answer well, with the correlation id of nobody."""
    broker = FakeBroker()
    while True:
        frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
        request = decode_request(frame)
        answer = bytearray(encode_frame(request, broker.api_versions(request)))  # type: ignore[arg-type]
        answer[4:8] = (-7).to_bytes(4, signed=True)
        writer.write(answer)


def answering(**bodies: Any) -> Callable[[], FakeBroker]:
    """A broker with these responses instead of its own: a body, or what `FakeBroker` understands."""

    def make() -> FakeBroker:
        broker = FakeBroker()
        for api, body in bodies.items():
            broker.responses[api] = lambda request, body=body: body  # type: ignore[misc]
        return broker

    return make


def offering(**versions: tuple[int, int] | None) -> Callable[[], FakeBroker]:
    """A broker that offers other versions of these APIs, None for none."""

    def make() -> FakeBroker:
        broker = FakeBroker()
        for api, offered in versions.items():
            if offered is None:
                del broker.versions[api]
            else:
                broker.versions[api] = offered
        return broker

    return make


def only_sasl() -> FakeBroker:
    """A listener that wants SASL: it hangs up on whatever is not ApiVersions."""
    broker = FakeBroker()
    broker.sasl_mechanisms = ("PLAIN",)
    for api in broker.responses.keys() - {"ApiVersions"}:
        broker.responses[api] = lambda _: DISCONNECT
    return broker


FIND_COORDINATOR = b"\0\0\0\x18\0\0\0\1" + bytes(4) + b"\0\0\0\1\0\1h\0\0\x23\x84\0\0\0\1\0"
"""The frame of a response to another request."""
TLS_ALERT = b"\x15\x03\x03\0\x02\x02\x46"
GARBAGE = bytes((n * 37 + 11) % 256 | 0x80 for n in range(64))
ODD_SERVERS: Mapping[str, OddServer] = {
    "closes at once": OddServer(lambda: close_at_once, "it gave no reason"),
    "never answers": OddServer(lambda: say_nothing, "no answer to ApiVersions", is_slow=True),
    "TLS": OddServer(lambda: partial(speak, TLS_ALERT), "speaks TLS"),
    "HTTP": OddServer(lambda: partial(speak, b"HTTP/1.1 400 Bad Request\r\n\r\n"), "speaks HTTP"),
    "SSH": OddServer(lambda: partial(greet, b"SSH-2.0-OpenSSH_9.6\r\n"), "SSH"),
    "SASL only": OddServer(only_sasl, "SASL"),
    "garbage": OddServer(lambda: partial(speak, GARBAGE), "not Kafka's"),
    "echo": OddServer(lambda: echo, "makes no sense"),
    "frame cut off": OddServer(lambda: partial(speak, b"\0\0\0\x40\0\0\0\1\0"), "after 9 bytes"),
    "frame that stalls": OddServer(lambda: partial(stall, b"\0\0\0\x40\0\0\0\1\0"), "no answer to", is_slow=True),
    "byte by byte": OddServer(lambda: drip, "no answer to", is_slow=True),
    "giant length": OddServer(lambda: partial(stall, b"\x7f\xff\xff\xff\0\0"), "not Kafka's"),
    "length below 0": OddServer(lambda: partial(stall, b"\xff\xff\xff\xff\0\0"), "not Kafka's"),
    "empty frame": OddServer(lambda: partial(stall, bytes(4)), "makes no sense"),
    "wrong correlation id": OddServer(lambda: mistake_ids, "makes no sense"),
    "endless retry of ApiVersions": OddServer(answering(ApiVersions={"error_code": 35}), "error 35"),
    "body of another API": OddServer(lambda: partial(stall, FIND_COORDINATOR), "does not offer"),
    "no list of APIs": OddServer(answering(ApiVersions={"error_code": 0, "api_keys": []}), "does not offer"),
    "old versions only": OddServer(offering(JoinGroup=None), "does not offer JoinGroup"),
    "versions of the future only": OddServer(offering(JoinGroup=(90, 99)), "does not offer JoinGroup"),
    "no brokers": OddServer(answering(Metadata={"brokers": [], "topics": []}), "names no broker"),
    "broker that is elsewhere": OddServer(
        answering(Metadata={"brokers": [{"node_id": 0, "host": "127.0.0.1", "port": 1}], "topics": []}), "advertises"
    ),
    "broker with a name that is none": OddServer(
        answering(Metadata={"brokers": [{"node_id": 0, "host": "a..b", "port": 1}], "topics": []}), "advertises"
    ),
    "Metadata that hangs up": OddServer(answering(Metadata=DISCONNECT), "closed the connection"),
    "Metadata that is silent": OddServer(answering(Metadata=SILENCE), "no answer to Metadata", is_slow=True),
    "no coordinator": OddServer(
        answering(FindCoordinator={"error_code": 15, "node_id": -1, "host": "", "port": -1}),
        "is not ready",
        is_slow=True,
        is_recorded=True,
    ),
}
"""By what they are; at least twelve of them end without a timeout."""


SERVER_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "test": ("test", "ADDRESS", "--json", "r.json"),
    "replay": ("replay", "t.jsonl", "ADDRESS"),
    "record": ("record", "-o", "new.jsonl", "--upstream", "ADDRESS"),
}
"""The commands that connect to a server."""


def server_case(name: str, command: str, address: str) -> BadInput:
    """A command on an odd server at this address, as a bad input."""
    words = tuple(word.replace("ADDRESS", address) for word in SERVER_COMMANDS[command])
    report = "r.json" if "r.json" in words else ""
    return BadInput(f"{command} on {name}", words, address, {"t.jsonl": SAMPLES.trace}, report=report)


@contextmanager
def serve_oddly(name: str) -> Iterator[str]:
    """Serve one of them in a thread; gives its address."""
    made = ODD_SERVERS[name].make()

    @asynccontextmanager
    async def serve() -> AsyncIterator[str]:
        if isinstance(made, FakeBroker):
            async with serve_brokers(made):
                yield f"127.0.0.1:{made.port}"
            return
        serving: set[asyncio.Task[None]] = set()

        async def accept(reader: Reader, writer: Writer) -> None:
            task = asyncio.current_task()
            assert task is not None
            serving.add(task)
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await made(reader, writer)
            writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        try:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for task in serving:
                task.cancel()

    with enter_in_thread(serve) as address:
        yield address
