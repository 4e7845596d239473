"""The kit's own requests to a broker, which are not recorded."""

import asyncio
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from fencepost.adapters.address import Address
from fencepost.adapters.wire.connection import ConnectionLoss, ConnectionLossError, LossCause
from fencepost.adapters.wire.pool import ConnectionPool
from fencepost.model.wire.codec import VERSIONS, DecodedResponse, decode_response, encode_request
from fencepost.traces.events import Body

CLIENT_ID = "fencepost"


class AdminClient:
    """Sends requests over the connections of `pool`. A response may take `timeout` seconds; `versions` are those that
    target and kit share, empty until they are known."""

    def __init__(self, pool: ConnectionPool, timeout: float) -> None:
        self.pool = pool
        self.versions: Mapping[str, tuple[int, int]] = {}
        self._timeout = timeout
        self._ids = count(1)

    def next_id(self) -> int:
        """Return a correlation id that no request in flight has."""
        return next(self._ids) & 0x7FFF_FFFF

    def nearest_version(self, api: str, preferred: int) -> int:
        """The version nearest to `preferred` that the target has."""
        lowest, highest = self.versions.get(api, VERSIONS[api])
        return max(lowest, min(preferred, highest))

    async def request(
        self, address: Address, api: str, version: int, body: Body, *, fresh: bool = False, alone: bool = False
    ) -> DecodedResponse:
        """Send a request, on a `fresh` connection or on one that carries it `alone` if need be, and return its
        response. Raises `ConnectionLossError` without one, else as `ConnectionPool.acquire`."""
        frame = encode_request(api, version, self.next_id(), CLIENT_ID, body)
        connection = await (self.pool.open_connection(address) if fresh or alone else self.pool.acquire(address))
        try:
            async with asyncio.timeout(self._timeout):
                response = await connection.exchange(frame)
        except TimeoutError:
            loss = ConnectionLoss(LossCause.SILENT, f"no answer to {api} v{version} within {self._timeout:g} s")
            raise ConnectionLossError(loss) from None
        if alone:
            connection.close()
        else:
            self.pool.release(address, connection)
        return decode_response(api, version, response)


def error_codes(body: Body) -> Iterator[int]:
    """Every error code in a response, at any depth."""
    for key, value in body.items():
        if key == "error_code":
            yield value
        elif type(value) is list:
            yield from _codes_in(value)


def _codes_in(items: list[Any]) -> Iterator[int]:
    for item in items:
        if isinstance(item, Mapping):
            yield from error_codes(item)
