"""The lease as the judge sees it: messages, steps, timers, and how responses are compared and put into words."""

from collections import namedtuple
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fencepost.traces.events import Header
from fencepost.traces.judge.diagnosis.wording import format_observed
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Mismatch
from fencepost.traces.judge.search.difference import ResponseDifference
from fencepost.traces.judge.search.stepper import Stepper, Timer
from fencepost.traces.judge.search.time_interval import Instant
from fencepost.traces.operations import Operation
from fencepost.traces.verdict import Violation
from tests.support.lease.protocol import HANDLERS, RULES, Lease, LeaseStep, Request, expire

Steps = Iterator[Configuration]
Reply = namedtuple("Reply", ("handle", "response"))
"""The response to the request `handle`."""
Outcome = namedtuple("Outcome", ("state", "replies", "rule"))
"""A step in the words of the search."""


@dataclass(slots=True)
class LeaseStepper(Stepper):
    """Takes single steps of one lease; a lease that is held is its own timer, as it has a deadline."""

    def initial_state(self) -> Lease:
        return Lease()

    def armed_timers(self, state: Lease) -> Sequence[Lease]:
        return () if state.holder is None else (state,)

    def handle_request(self, configuration: Configuration, part: GroupOperation, now: Instant) -> Steps:
        step, handle = HANDLERS[part.operation.api](configuration.world, part.request, now), part.operation.handle
        outcome = Outcome(step.lease, (Reply(handle, step),), step.rule)
        return self.apply(configuration, outcome, step.lease, handle, now)

    def handle_timer(self, configuration: Configuration, timer: Timer, now: Instant) -> Steps:
        step = expire(configuration.world)
        return self.apply(configuration, Outcome(step.lease, (), step.rule), step.lease, 0, now)

    def compare_response(self, part: GroupOperation, expected: LeaseStep) -> Iterator[ResponseDifference]:
        body, difference = part.operation.response or {}, ResponseDifference()
        difference.require_equal("error", int(expected.error), body.get("error_code"))
        difference.require_equal("token", expected.token, body.get("token"))
        yield difference


class LeaseProtocol(JudgedProtocol):
    """Reads a trace of leases."""

    def __init__(self, header: Header) -> None:
        self.header = header

    def requests_in(self, operation: Operation, groups: Iterable[str]) -> Iterator[Request]:
        yield Request(**operation.body)

    def new_stepper(self, group: str, settings: object) -> LeaseStepper:
        return LeaseStepper(group, self.header.order, self.header.grace)

    def build_violation(self, group: str, part: GroupOperation, mismatch: Mismatch, rules: frozenset[str]) -> Violation:
        operation, step, rule = part.operation, mismatch.expected, mismatch.rule
        fields, observed = tuple(sorted(mismatch.fields)), format_observed(operation.response or {})
        allowed = "no response yet" if step is None else f"{step.error.name}, token={step.token}"
        where = (operation.handle - 1, group, operation.api)
        return Violation(*where, fields, observed, (allowed,), rule, RULES.get(rule, ""), ())
