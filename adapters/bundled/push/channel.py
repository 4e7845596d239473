"""The coordinator's end of a consumer's channel: what it sends, and the responses that come back in order."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from fencepost.adapters.bundled.push.framing import DIALECT, read_frame
from fencepost.model.push.interest import Interest
from fencepost.model.push.wire import Body, MalformedFrame, decode_push_response, encode_push_request, response_name


@dataclass(eq=False, slots=True)
class ConsumerChannel:
    """A registered consumer. Nothing is sent any more once it is closed."""

    group: str
    consumer: str
    interest: Interest
    session_timeout: float
    """Seconds."""
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    heard_at: float
    ping_due: float = 0.0
    is_held: bool = False
    """A Stop or Start is awaited: no pings."""
    pings: int = 0
    confirmed: int = 0
    retries: int = 0
    on_offsets: Callable[[Body], None] | None = None
    """Told of the offsets in each response to a ping."""
    _awaited: deque[tuple[str, "asyncio.Future[Body]"]] = field(default_factory=deque)

    @property
    def is_closed(self) -> bool:
        """Whether the channel is gone."""
        return self.writer.is_closing()

    def send(self, name: str, body: Body) -> "asyncio.Future[Body]":
        """Send a request; the future of its response is cancelled if the channel closes first."""
        future: asyncio.Future[Body] = asyncio.get_running_loop().create_future()
        if self.is_closed:
            future.cancel()
            return future
        self._awaited.append((name, future))
        self.writer.write(encode_push_request(name, body, DIALECT))
        return future

    def ping(self) -> None:
        """Send a ping that confirms the last one answered."""
        self.pings += 1
        number = self.pings
        future = self.send("Ping", {"num_retries": min(self.retries, 0x7FFF), "confirmed": self.confirmed})
        self.retries += 1

        def on_response(done: "asyncio.Future[Body]") -> None:
            if not done.cancelled():
                self.confirmed, self.retries = number, 0
                if self.on_offsets is not None and "partitions" in done.result():
                    self.on_offsets(done.result())

        future.add_done_callback(on_response)

    async def read_responses(self) -> None:
        """Take responses until the channel ends, or one is none that is awaited."""
        loop = asyncio.get_running_loop()
        try:
            while (payload := await read_frame(self.reader)) is not None:
                if not self._awaited or response_name(payload) != self._awaited[0][0]:
                    return
                name, future = self._awaited.popleft()
                body = decode_push_response(name, payload, DIALECT)
                self.heard_at = loop.time()
                if not future.done():
                    future.set_result(body)
        except MalformedFrame:
            return
        finally:
            self.close()

    def close(self) -> None:
        """Close the channel; what is awaited will not come, and what a full connection holds back is not sent."""
        if self.writer.transport.get_write_buffer_size():
            self.writer.transport.abort()
        self.writer.close()
        while self._awaited:
            self._awaited.popleft()[1].cancel()
