"""The plain data of a scenario: members, calls and checks."""

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from fencepost.adapters.target import Exchange
from fencepost.traces.events import Body

CONSUMER, RANGE = "consumer", "range"
RESPONSE_TIMEOUT_MS = 10_000
"""How long a scenario waits for an immediate response."""


class Blocked(Exception):
    """Ends a scenario that cannot go on; the requirements it has not checked stay inconclusive."""


class Unanswered(Blocked):
    """Ends a scenario that waits for a response in vain."""


class Unsupported(Exception):
    """Ends a scenario that needs a feature which the target lacks."""


def subscription(*topics: str) -> bytes:
    """Consumer metadata, version 0, that subscribe to the topics, without user data."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


@dataclass(slots=True)
class Member:
    """A client of the group: the protocols it offers, and its state by the last JoinGroup response. Milliseconds."""

    label: str
    protocols: tuple[tuple[str, bytes], ...]
    session_timeout: int
    rebalance_timeout: int
    instance: str | None = None
    protocol_type: str | None = CONSUMER
    id: str = ""
    generation: int = -1
    protocol: str | None = None
    leader: str | None = None
    members: tuple[Body, ...] = ()

    @property
    def is_leader(self) -> bool:
        """Whether its last JoinGroup response named it the leader."""
        return self.leader is not None and self.leader == self.id


@dataclass(slots=True)
class Call:
    """A request that was sent. Awaiting it gives the body of the response, or raises `Blocked` after `timeout` ms."""

    api: str
    version: int
    exchange: Exchange
    timeout: int

    def __await__(self) -> Generator[Any, None, Body]:
        return self._await_response().__await__()

    async def _await_response(self) -> Body:
        # A response may be here already. `wait` resumes its caller behind the callbacks that were added at sending, by
        # which members learn, since callbacks run in the order in which they were added; `wait_for` need not.
        await asyncio.wait([self.exchange.response], timeout=self.timeout / 1000)
        if not self.done:
            raise Unanswered(f"no answer to {self.api} within {self.timeout} ms")
        body = self.exchange.response.result()
        if body is None:
            raise Blocked(f"the connection ended without an answer to {self.api}")
        return body

    @property
    def done(self) -> bool:
        """Whether the response is here or can no longer come."""
        return self.exchange.response.done()

    @property
    def body(self) -> Body:
        """The body of the response. Raises `Blocked` if there is none yet."""
        body = self.exchange.response.result() if self.done else None
        if body is None:
            raise Blocked(f"no answer to {self.api} yet")
        return body

    @property
    def error(self) -> int:
        """The error code of the response."""
        return int(self.body.get("error_code", 0))

    def drop_connection(self) -> None:
        """Close the connection that carries this request."""
        self.exchange.drop()


@dataclass(frozen=True, slots=True)
class Check:
    """The response of a call is evidence of a requirement; see `ScenarioContext.add_check`."""

    requirement: str
    call: Call
    fields: tuple[str, ...]
    reached: bool
    note: str
    unusual: str = ""
    may_close: bool = False
