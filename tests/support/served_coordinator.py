"""A server of our own in a thread, for clients that block."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from fencepost.adapters.serve.server import Server
from fencepost.model.settings import Settings

FAST_SETTINGS = Settings(min_session_timeout=100, initial_rebalance_delay=200)
"""Settings that let a test be over soon."""


@contextmanager
def serve_in_thread(
    settings: Settings = FAST_SETTINGS,
    storage: Path | None = None,
    storage_delay_ms: int = 0,
    make_server: Callable[[Settings, Path | None, int], Server] = Server,
) -> Iterator[str]:
    """Runs a server, or one that `make_server` makes; gives its bootstrap address."""
    address: Future[str] = Future()
    stop: Future[None] = Future()

    async def live() -> None:
        try:
            server = make_server(settings, storage, storage_delay_ms)
            await server.listen("127.0.0.1", 0)
        except BaseException as error:
            address.set_exception(error)
            return
        host, port = server.address
        address.set_result(f"{host}:{port}")
        await asyncio.wrap_future(stop)
        await server.close()

    thread = threading.Thread(target=asyncio.run, args=(live(),), daemon=True)
    thread.start()
    try:
        yield address.result(10)
    finally:
        stop.set_result(None)
        thread.join(10)
        assert not thread.is_alive()
