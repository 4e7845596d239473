"""Who acts in a scenario, and what comes back to them: members, calls, marks."""

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.target import Exchange
from fencepost.traces.events import Body

CONSUMER, RANGE = "consumer", "range"
RESPONSE_TIMEOUT_MS = 10_000
"""How long a scenario waits for an answer that should have come; silence is never a verdict."""


class Blocked(Exception):
    """The scenario cannot go on; its remaining requirements stay undecided."""


class Unsupported(Exception):
    """The target does not offer what the scenario needs."""


def subscription(*topics: str) -> bytes:
    """Consumer metadata, version 0, for these topics and no user data."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


@dataclass(slots=True)
class Member:
    """An actor of the schedule: what it offers, and what it was last told. Times in milliseconds."""

    label: str
    protocols: tuple[tuple[str, bytes], ...]
    session_timeout: int
    rebalance_timeout: int
    instance: str | None = None
    protocol_type: str = CONSUMER
    id: str = ""
    generation: int = -1
    protocol: str | None = None
    leader: str | None = None
    members: tuple[Body, ...] = ()

    @property
    def is_leader(self) -> bool:
        """It was told that it is the leader."""
        return self.leader is not None and self.leader == self.id


@dataclass(slots=True)
class Call:
    """A request that was sent; awaiting it gives the body of the answer."""

    api: str
    version: int
    exchange: Exchange
    timeout: int
    learn: Callable[[Body], None] = field(default=lambda body: None)

    def __await__(self) -> Generator[Any, None, Body]:
        return self._await_response().__await__()

    async def _await_response(self) -> Body:
        try:
            body = await asyncio.wait_for(asyncio.shield(self.exchange.response), self.timeout / 1000)
        except TimeoutError:
            raise Blocked(f"no answer to {self.api} within {self.timeout} ms") from None
        if body is None:
            raise Blocked(f"the connection ended without an answer to {self.api}")
        return body

    @property
    def done(self) -> bool:
        """The answer is there, or will never come."""
        return self.exchange.response.done()

    @property
    def body(self) -> Body:
        """The answer, which has to be there."""
        body = self.exchange.response.result() if self.done else None
        if body is None:
            raise Blocked(f"no answer to {self.api} yet")
        return body

    @property
    def error(self) -> int:
        """The error code of the answer."""
        return int(self.body.get("error_code", 0))

    def drop_connection(self) -> None:
        """Close the connection that carries this request."""
        self.exchange.drop()


@dataclass(frozen=True, slots=True)
class Check:
    """An answer is evidence of a requirement, as far as `fields` go (all of them if empty); see `Stage.shows`."""

    requirement: str
    call: Call
    fields: tuple[str, ...]
    reached: bool
    note: str
    unusual: str = ""
