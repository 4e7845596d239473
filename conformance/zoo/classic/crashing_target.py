"""The bundled coordinator as in a process of its own: an exception ends it, and its connections are closed."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fencepost.adapters.bundled.classic.messages import Request, Response
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Description, TargetError
from fencepost.model.wire.codec import encode_body
from fencepost.traces.events import Kind, Order


class CrashingTarget(InProcessTarget):
    """In process, on virtual time; with order INTERVALS, traces are as clients see them.

    A coordinator that raises an exception is gone: every connection is closed without a response, and requests fail
    until the next restart.
    """

    def __init__(self, *given: Any, spec: Order = Order.TOTAL, **named: Any) -> None:
        super().__init__(*given, **named)
        self._order = spec

    async def open(self) -> Description:
        """As `InProcessTarget.open`."""
        return replace(await super().open(), order=self._order)

    async def restart(self, max_group_size: int | None = None) -> None:
        """As `InProcessTarget.restart`. Raises `TargetError` if it does not start."""
        try:
            await super().restart(max_group_size)
        except Exception as error:
            self._crash()
            raise TargetError(f"the coordinator does not start any more: {error!r}") from error

    def submit(self, request: Request, flight: Any) -> None:
        """As `InProcessTarget.submit`."""
        try:
            super().submit(request, flight)
        except TargetError:
            raise
        except Exception:
            self._crash()

    def advance(self) -> None:
        """As `InProcessTarget.advance`."""
        try:
            super().advance()
        except Exception:
            self._crash()

    def _deliver(self, responses: Iterable[Response]) -> None:
        """As `InProcessTarget`, with a crash for a response that cannot be encoded, as where it has to be sent."""
        known = list(responses)
        for response in known:
            flight = self._pending.get(response.handle)
            if flight is not None:
                encode_body(f"{flight.request.api}Response", flight.request.version, response.body)
        super()._deliver(known)

    def _crash(self) -> None:
        self._coordinator = None
        if self._timer is not None:
            self._timer.cancel()
        lost, self._pending = self._pending, {}
        for flight in lost.values():
            request = flight.request
            flight.channel.recorder.record(
                Kind.FAULT, "closed", request.version, {}, connection=request.connection, of=request.sequence
            )
            flight.channel.disconnect(flight)
