"""The lease as the judge sees it: messages, steps and timers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fencepost.traces.events import Body, Operation
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol
from fencepost.traces.judge.search.configuration import GroupOperation, Instant
from fencepost.traces.judge.search.stepper import HandlerStepper
from tests.support.lease.protocol import HANDLERS, SPECIFICATION, Lease, Request, expire


@dataclass(slots=True)
class LeaseStepper(HandlerStepper):
    """Takes single steps of one lease; a lease that is held is its own timer, as it has a deadline."""

    def initial_state(self) -> Lease:
        return Lease()

    def armed_timers(self, state: Lease) -> Sequence[Lease]:
        return () if state.holder is None else (state,)

    def take_step(self, state: Lease, part: GroupOperation | None, now: Instant) -> tuple[Lease, str, Body]:
        step = expire(state) if part is None else HANDLERS[part.operation.api](state, part.request, now)
        return step.lease, step.rule, step.response


class LeaseProtocol(JudgedProtocol):
    """Reads a trace of leases."""

    specification = SPECIFICATION
    stepper = LeaseStepper

    def requests_in(self, operation: Operation, groups: Iterable[str]) -> Iterator[Request]:
        yield Request(**operation.body)

    def state_label(self, state: Lease) -> str:
        return "free" if state.holder is None else "held"
