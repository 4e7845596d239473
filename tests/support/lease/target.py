"""A lease server as a target in this process."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.target import DEFAULT_OPTIONS, Description, Exchange, SendOptions, TraceBuilder
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Kind, Order
from tests.support.lease.protocol import Acquire, Lease, LeaseStep, Renew, Write, acquire, expire, renew, write

HANDLERS: dict[str, tuple[type, Callable[[Lease, Any, int], LeaseStep]]] = {
    "acquire": (Acquire, acquire),
    "renew": (Renew, renew),
    "write": (Write, write),
}


def handle_request(lease: Lease, api: str, body: Body, now: int) -> LeaseStep:
    """Handle a request after the lease has expired, if its deadline has come by `now` (milliseconds)."""
    due = lease.holder is not None and lease.deadline <= now
    request, handler = HANDLERS[api]
    return handler(expire(lease).lease if due else lease, request(**body), now)


@dataclass(slots=True)
class LeaseTarget:
    """A lease server; a faulty one has another `handle`."""

    handle: Callable[[Lease, str, Body, int], LeaseStep] = handle_request
    lease: Lease = field(default_factory=Lease)
    recorder: TraceBuilder | None = None

    async def open(self) -> Description:
        return Description("lease", Order.TOTAL, "virtual", dict.fromkeys(HANDLERS, (0, 0)), Settings(), "")

    def channel(self, recorder: TraceBuilder) -> "LeaseTarget":
        self.recorder = recorder
        return self

    async def restart(self) -> None:
        raise NotImplementedError

    async def close(self) -> None: ...

    def send(self, api: str, version: int, body: Body, options: SendOptions = DEFAULT_OPTIONS) -> Exchange:
        assert self.recorder is not None
        request = self.recorder.record(Kind.REQUEST, api, version, body, member=options.member)
        step = self.handle(self.lease, api, body, request.time)
        self.lease = step.lease
        response = {"error": int(step.error), "token": step.token}
        self.recorder.record(Kind.RESPONSE, api, version, response, member=options.member, of=request.sequence)
        future: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
        future.set_result(response)
        return Exchange(request, future, lambda: None)
