"""One connection to a push broker, with everything that is seen on it on record."""

import asyncio
from dataclasses import dataclass, field

from fencepost.adapters.target import TraceBuilder
from fencepost.model.push.dialect import REPAIRED
from fencepost.model.push.wire import (
    Body,
    MalformedFrame,
    decode_push_request,
    decode_push_response,
    encode_push_request,
    encode_push_response,
    frame_size,
    response_name,
)
from fencepost.traces.events import Event, Kind

DIALECT = REPAIRED
"""The messages that the kit speaks."""
RESPONSE_TIMEOUT_S = 10.0
APART, FORM = "PUSH-51", "PUSH-50"
"""The requirements that bytes may break: responses can be told apart, and messages have their form."""


@dataclass(eq=False, slots=True)
class PushConnection:
    """A connection of one actor."""

    recorder: TraceBuilder
    number: int
    member: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    is_over: bool = field(default=False)

    async def ask(self, api: str, body: Body, **marks: bool) -> Body | None:
        """Send a lookup or a registration, and return the body of its response; None if none comes. `marks` are
        recorded and not sent."""
        request = self.record(Kind.REQUEST, api, {**body, **{f"_{name}": value for name, value in marks.items()}})
        if self.is_over:
            return None
        self.writer.write(encode_push_request(api, body, DIALECT))
        payload = await self.read_payload()
        if payload is None:
            return None
        try:
            response = decode_push_response(api, payload, DIALECT)
        except MalformedFrame as error:
            self.give_up(error, APART if payload[:2] and not self.is_type_of(payload, api) else FORM)
            return None
        self.record(Kind.RESPONSE, api, response, of=request.sequence)
        return response

    async def next_request(self) -> Event | None:
        """The next request of the coordinator; None if the connection is over."""
        payload = await self.read_payload(forever=True)
        if payload is None or self.is_over:  # what was under way when it was closed is read by nobody
            return None
        try:
            api, body = decode_push_request(payload, DIALECT)
        except MalformedFrame as error:
            self.give_up(error, FORM)
            return None
        return self.record(Kind.REQUEST, api, body)

    def respond(self, request: Event, body: Body) -> None:
        """Respond to a request of the coordinator."""
        if not self.is_over:
            self.record(Kind.RESPONSE, request.api, body, of=request.sequence)
            self.writer.write(encode_push_response(request.api, body, DIALECT))

    def drop(self) -> None:
        """Close the connection."""
        if not self.is_over:
            self.is_over = True
            self.record(Kind.FAULT, "drop", {})
            self.writer.close()

    def close(self) -> None:
        """Close the connection when the trace is over: nothing is recorded."""
        self.is_over = True
        self.writer.close()

    async def read_payload(self, *, forever: bool = False) -> bytes | None:
        """The next payload; None if the connection is over, which is recorded."""
        try:
            async with asyncio.timeout(None if forever else RESPONSE_TIMEOUT_S):
                size = frame_size(await self.reader.readexactly(4))
                return await self.reader.readexactly(size)
        except MalformedFrame as error:
            self.give_up(error, FORM)
        except TimeoutError:
            return None
        except (asyncio.IncompleteReadError, ConnectionError):
            if not self.is_over:
                self.is_over = True
                self.record(Kind.FAULT, "closed", {})
                self.writer.close()
        return None

    def give_up(self, error: MalformedFrame, requirement: str) -> None:
        """Close a connection on which bytes came that are no message."""
        if not self.is_over:
            self.is_over = True
            self.record(Kind.FAULT, "malformed", {"reason": str(error), "requirement": requirement})
            self.writer.close()

    @staticmethod
    def is_type_of(payload: bytes, api: str) -> bool:
        """Whether a response says that it is one to this request."""
        try:
            return response_name(payload) == api
        except MalformedFrame:
            return False

    def record(self, kind: Kind, api: str, body: Body, of: int | None = None) -> Event:
        """Put an event of this connection on record."""
        return self.recorder.record(kind, api, 0, body, connection=self.number, member=self.member, of=of)
