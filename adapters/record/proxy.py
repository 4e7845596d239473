"""The proxy: a listener for every broker of the cluster, and the bytes between each client and its broker."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar
from weakref import WeakSet

from fencepost.adapters.record.address_rewriting import REWRITTEN, Address, addresses, is_known, rewritten
from fencepost.traces.frames import Conversation, Splitter, Tape

MOST_BYTES = 128 * 1024 * 1024
"""A frame longer than this is not Kafka's: its brokers refuse requests above 100 MiB."""
CHUNK = 256 * 1024
MOST_WARNINGS = 100

Noted = TypeVar("Noted")

_log = logging.getLogger(__name__)


class Proxy:
    """Listens on `host` for the clients of a cluster. A broker that an answer names gets a listener of its own. `tell`
    gets lines for whoever runs the proxy."""

    def __init__(self, tape: Tape, host: str, tell: Callable[[str], None]) -> None:
        self._tape = tape
        self._host = host
        self._tell = tell
        self._ports: dict[Address, int] = {}
        self._opening = asyncio.Lock()
        self._servers: list[asyncio.Server] = []
        self._conversations: set[asyncio.Task[None]] = set()
        self._writers: WeakSet[asyncio.StreamWriter] = WeakSet()
        self._warned: set[str] = set()

    async def listen(self, upstream: Address, port: int = 0) -> int:
        """Take connections for a broker; the port for them, 0 for any. Raises OSError if the port cannot be had."""
        async with self._opening:  # two answers may name a broker at the same time
            if upstream not in self._ports:
                self._ports[upstream] = await self._listen(upstream, port)
        return self._ports[upstream]

    async def _listen(self, upstream: Address, port: int) -> int:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._writers.add(writer)
            task = asyncio.create_task(self._converse(reader, writer, upstream))
            self._conversations.add(task)
            task.add_done_callback(self._conversations.discard)

        server = await asyncio.start_server(accept, self._host, port, limit=CHUNK)
        self._servers.append(server)
        found: int = server.sockets[0].getsockname()[1]
        return found

    async def close(self) -> None:
        """Let go of everybody."""
        for server in self._servers:
            server.close()
        for task in self._conversations:
            task.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # the transports let go of their sockets in the loop's next turn

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: Address) -> None:
        """One client's connection from its beginning to its end."""
        talk = self._tape.conversation()
        try:
            there, back = await asyncio.open_connection(*upstream, limit=CHUNK)
        except OSError as error:
            self._warn(f"{upstream[0]}:{upstream[1]}: {error.strerror or error}; its clients are turned away")
            self._note(lambda: talk.ended("lost", "no connection to the broker"))
            writer.close()
            return
        self._writers.add(back)
        gone: list[str] = []
        asking = asyncio.create_task(self._ask(reader, back, talk, gone))
        answering = asyncio.create_task(self._answer(there, writer, talk, gone))
        try:
            await asyncio.wait((asking, answering), return_when=asyncio.FIRST_COMPLETED)
            if asking.done() and asking.exception() is None:
                await asyncio.wait((answering,))  # the client has said all that it will, and may still be answered
        finally:
            for task in (asking, answering):
                task.cancel()
            await asyncio.gather(asking, answering, return_exceptions=True)
            first = next(iter(gone), "recorder")
            self._note(
                lambda: talk.ended("lost" if first == "broker" else "drop", f"the {first} closed the connection")
            )
            back.close()
            writer.close()

    async def _ask(
        self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, talk: Conversation, gone: list[str]
    ) -> None:
        """Bytes from the client. A request is on record before its last byte goes on."""
        splitter = Splitter(MOST_BYTES)
        while data := await read(reader, "client", gone):
            if not splitter.broken:
                for frame in splitter.feed(data):
                    self._note(partial(talk.request, frame))
                self._check(splitter, talk)
            back.write(data)
            await back.drain()
        back.write_eof()

    async def _answer(
        self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, talk: Conversation, gone: list[str]
    ) -> None:
        """Bytes from the broker. An answer is on record before its first byte goes on."""
        splitter = Splitter(MOST_BYTES)
        here = writer.get_extra_info("sockname")[0]
        try:
            while data := await read(there, "broker", gone):
                if splitter.broken:
                    writer.write(data)
                else:
                    for frame in splitter.feed(data):
                        passed = await self._passed(frame, talk, here)
                        writer.write(len(passed).to_bytes(4) + passed)
                    self._check(splitter, talk)
                    if splitter.broken:
                        writer.write(splitter.rest())
                await writer.drain()
        finally:
            writer.write(splitter.rest())

    async def _passed(self, frame: bytes, talk: Conversation, here: str) -> bytes:
        """An answer as the client gets it."""
        flight = self._note(partial(talk.answer, frame))
        if flight is None or flight.request.api not in REWRITTEN:
            return frame
        api, version = flight.request.api, flight.request.version
        if not is_known(api, version):
            self._warn(f"{api} version {version} is not known: its answers pass as they are, and clients may go past")
            return frame
        try:
            places = {each: (here, await self.listen(each)) for each in addresses(api, version, frame)}
            return rewritten(api, version, frame, places)
        except (OSError, ValueError) as error:
            self._warn(f"an answer to {api} passes as it is, and clients may go past the recorder: {error}")
            return frame

    def _check(self, splitter: Splitter, talk: Conversation) -> None:
        if splitter.broken:
            self._warn("a connection does not speak Kafka in the clear (is it TLS?): its bytes pass unrecorded")
            self._note(lambda: self._tape.unknown(f"connection {talk.number} cannot be read"))

    def _note(self, step: Callable[[], Noted]) -> Noted | None:
        """Write something down; whatever goes wrong with that is no reason to hold bytes back."""
        try:
            return step()
        except Exception as error:
            _log.exception("not recorded")
            self._warn(f"something could not be recorded ({error}); bytes pass all the same")
            return None

    def _warn(self, line: str) -> None:
        """Tell the operator, once."""
        if line not in self._warned and len(self._warned) < MOST_WARNINGS:
            self._warned.add(line)
            self._tell(line)


async def read(reader: asyncio.StreamReader, side: str, gone: list[str]) -> bytes:
    """What came, nothing at the end; then `gone` gets the name of the side. Raises ConnectionError as well."""
    data = b""
    try:
        data = await reader.read(CHUNK)
    finally:
        if (not data and reader.at_eof()) or reader.exception() is not None:
            gone.append(side)
    return data
