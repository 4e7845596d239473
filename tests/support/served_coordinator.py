"""A server of our own in a thread, for clients that block."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from fencepost.adapters.serve.server import Server
from fencepost.conformance.testing.threads import enter_in_thread
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

    @asynccontextmanager
    async def serve() -> AsyncIterator[str]:
        server = make_server(settings, storage, storage_delay_ms)
        await server.listen("127.0.0.1", 0)
        host, port = server.address
        try:
            yield f"{host}:{port}"
        finally:
            await server.close()

    with enter_in_thread(serve) as address:
        yield address
