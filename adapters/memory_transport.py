"""The transport of a connection within this process."""

import asyncio


class MemoryTransport(asyncio.Transport):
    """The server's end of a connection in this process: the client reads the bytes that it writes."""

    def __init__(self, protocol: asyncio.StreamReaderProtocol, responses: asyncio.StreamReader) -> None:
        super().__init__(extra={"peername": ("127.0.0.1", 0), "sockname": ("127.0.0.1", 9092)})
        self._protocol = protocol
        self._responses = responses
        self._is_closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Hand bytes to the client."""
        if not self._is_closing:
            self._responses.feed_data(bytes(data))

    def get_write_buffer_size(self) -> int:
        """Nothing is buffered."""
        return 0

    def is_closing(self) -> bool:
        """Whether the server has closed the connection."""
        return self._is_closing

    def close(self) -> None:
        """End the connection; the client reads what was written before."""
        if not self._is_closing:
            self._is_closing = True
            self._responses.feed_eof()
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        """As `close`: nothing is buffered."""
        self.close()
