"""The lease as the judge sees it: messages, steps, the one timer, and how responses are compared and put into words."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fencepost.traces.events import Header
from fencepost.traces.judge.diagnosis.wording import format_observed
from fencepost.traces.judge.groups.protocol import JudgedProtocol
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Mismatch
from fencepost.traces.judge.search.difference import ResponseDifference
from fencepost.traces.judge.search.stepper import Stepper, Timer
from fencepost.traces.judge.search.time_interval import Instant
from fencepost.traces.operations import Operation
from fencepost.traces.verdict import Violation
from tests.support.lease.protocol import RULES, Acquire, Lease, LeaseStep, Renew, Write, acquire, expire, renew, write


class LeaseRequest(NamedTuple):
    """A request, and the name of its lease."""

    group: str
    action: Acquire | Renew | Write


class Reply(NamedTuple):
    """A response to the request `handle`."""

    handle: int
    response: LeaseStep


class Outcome(NamedTuple):
    """A step in the words of the search."""

    state: Lease
    replies: tuple[Reply, ...]
    rule: str


class Expiry(NamedTuple):
    """The timer of a lease that is held."""

    deadline: Instant


@dataclass(slots=True)
class LeaseStepper(Stepper):
    """Takes single steps of one lease."""

    def initial_state(self) -> Lease:
        """A lease that nobody has held."""
        return Lease()

    def armed_timers(self, state: Lease) -> Sequence[Expiry]:
        """The expiry, if a client holds the lease."""
        return () if state.holder is None else (Expiry(state.deadline),)

    def handle_request(
        self, configuration: Configuration, part: GroupOperation, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after the request; it is responded to at once."""
        lease, action, handle = configuration.world, part.request.action, part.operation.handle
        match action:
            case Acquire():
                step = acquire(lease, action, now)
            case Renew():
                step = renew(lease, action, now)
            case _:
                step = write(lease, action, now)
        return self.apply(
            configuration, Outcome(step.lease, (Reply(handle, step),), step.rule), step.lease, handle, now
        )

    def handle_timer(self, configuration: Configuration, timer: Timer, now: Instant) -> Iterator[Configuration]:
        """The configuration after the lease has expired."""
        step = expire(configuration.world)
        return self.apply(configuration, Outcome(step.lease, (), step.rule), step.lease, 0, now)

    def compare_response(self, part: GroupOperation, expected: LeaseStep) -> Iterator[ResponseDifference]:
        """Error and token have to be the same."""
        body, difference = part.operation.response or {}, ResponseDifference()
        difference.require_equal("error", int(expected.error), body.get("error_code"))
        difference.require_equal("token", expected.token, body.get("token"))
        yield difference


class LeaseProtocol(JudgedProtocol):
    """Reads a trace of leases."""

    def __init__(self, header: Header) -> None:
        self.header = header

    def requests_in(self, operation: Operation, groups: Iterable[str]) -> Iterator[LeaseRequest]:
        """The request, which concerns one lease."""
        body = dict(operation.body)
        yield LeaseRequest(
            body.pop("lease"), {"Acquire": Acquire, "Renew": Renew, "Write": Write}[operation.api](**body)
        )

    def new_stepper(self, group: str, settings: object) -> LeaseStepper:
        """A stepper for one lease."""
        return LeaseStepper(group, self.header.order, self.header.grace)

    def build_violation(self, group: str, part: GroupOperation, mismatch: Mismatch, rules: frozenset[str]) -> Violation:
        """The mismatch in words."""
        operation, step = part.operation, mismatch.expected
        return Violation(
            operation.handle - 1,
            group,
            operation.api,
            tuple(sorted(mismatch.fields)),
            format_observed(operation.response or {}),
            ("no response yet" if step is None else f"{step.error.name}, token={step.token}",),
            mismatch.rule,
            RULES.get(mismatch.rule, ""),
            (),
        )
