"""The bundled coordinator as in a process of its own, and its mutants."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from fencepost.adapters import classic
from fencepost.adapters.address import TargetError
from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.messages import Request, Response
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Description
from fencepost.conformance.zoo.fault import Patch
from fencepost.conformance.zoo.mutants import Mutant, apply_mutant, load_changed, package_mutants, source_of
from fencepost.conformance.zoo.operators import GUARD_OPERATORS
from fencepost.model.wire.codec import encode_body
from fencepost.traces.events import Kind, Order

TIMER_WORDS = ("timer", "arm", "cancel", "touch_session", "deadline", "delay", "schedule")
"""Words by which a statement or a sum is about a timer."""
EXCLUDED_MODULES = frozenset(
    {"responses", "coordinator", "log", "messages", "records", "coordinator_state", "subscription", "topics"}
)
"""Modules without decisions: layouts, files, names."""
_COORDINATOR = f"{classic.__name__}.coordinator"


class CrashingTarget(InProcessTarget):
    """In process, on virtual time; with order INTERVALS, traces are as clients see them.

    A coordinator that raises an exception is gone: every connection is closed without a response, and requests fail
    until the next restart. A mutant takes the place of `coordinator` while it is active.
    """

    coordinator: type[Coordinator] = Coordinator

    def __init__(self, *given: Any, order: Order = Order.TOTAL, **named: Any) -> None:
        super().__init__(*given, **{"make_coordinator": self.coordinator, **named})
        self._order = order

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


# -- mutants -------------------------------------------------------------------------------------------------------


def coordinator_mutants() -> Iterator[Mutant]:
    """The mutants of every guard, comparison and timer of the bundled coordinator in the order of the source."""
    mutants = package_mutants(classic, EXCLUDED_MODULES, GUARD_OPERATORS | {"statement", "sum"})
    return filter(is_systematic, mutants)


def is_systematic(mutant: Mutant) -> bool:
    """Whether the mutant changes a guard, a comparison or a timer."""
    if mutant.operator in GUARD_OPERATORS:
        return bool(mutant.function)
    return any(word in mutant.before.lower() for word in TIMER_WORDS)


def put_in_mutant(mutant: Mutant, patch: Patch) -> None:
    """Have crashing targets run the mutant. Raises any exception while it is loaded."""
    patch.replace(CrashingTarget, "coordinator", load_coordinator(mutant))


@lru_cache(maxsize=1)
def load_coordinator(mutant: Mutant) -> type[Coordinator]:
    """The coordinator with the mutant in it."""
    tree = apply_mutant(source_of(mutant.module), mutant)
    loaded: type[Coordinator] = load_changed({mutant.module: tree}, [_COORDINATOR])[_COORDINATOR].Coordinator
    return loaded
