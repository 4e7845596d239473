"""Silence as evidence: an operation whose response is overdue in every configuration.

That no response was seen until a moment is an observation like any other. It has an explanation if in some
configuration the response was not due until then: the request is parked and no timer that ends its wait had to fire, or
it may still wait to be handled. As for a response, the search goes depth-first from each configuration, and whatever
must have happened by then happens. If the model gives the response on every path, it is overdue.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Path, Response
from fencepost.traces.judge.search.search import Search
from fencepost.traces.judge.search.time_interval import high

MAX_SILENT_CONFIGURATIONS = 2_000
"""How many configurations are looked at before an operation is not called overdue."""


@dataclass(frozen=True, slots=True)
class GivenResponse:
    """A response that the model gave, and the rule of the step that gave it."""

    rule: str
    response: Response


@dataclass(frozen=True, slots=True)
class Overdue:
    """The response that an overdue operation should have, on one of the paths, and the configuration that it leads
    to."""

    given: GivenResponse
    configuration: Configuration

    def rules_of(self, handle: int) -> Iterator[str]:
        """The rules by which the steps that are not settled yet handle an operation."""
        path = self.configuration.path
        while path is not None:
            if path.handle == handle and path.rule:
                yield path.rule
            path = path.previous


def response_given(path: Path | None, handle: int) -> GivenResponse | None:
    """The response to an operation that the steps of a path give, None if they give none."""
    while path is not None:
        for reply in path.outcome.replies if path.outcome is not None else ():
            if reply.handle == handle:
                return GivenResponse(path.rule, reply.response)
        path = path.previous
    return None


def steps_before(path: Path | None, handle: int) -> int:
    """How many of the steps of a path come before an operation is handled; 0 if it was handled before them."""
    steps = 0
    while path is not None and path.handle != handle:
        steps, path = steps + 1, path.previous
    before = 0
    while path is not None and path.previous is not None:
        before, path = before + 1, path.previous
    return before


class SilenceSearch:
    """Looks for a configuration in which the response to an operation was not due before `moment`, in milliseconds.

    `settled` is the response that was given by the steps that are settled already, if they gave it.
    """

    def __init__(self, search: Search, part: GroupOperation, moment: int, settled: GivenResponse | None) -> None:
        self.search = search
        self.stepper = search.stepper
        self.handle = part.operation.handle
        self.sent_at = part.operation.sent_at
        self.moment = moment
        self.settled = settled
        self.was_given = False
        """The response was given in some configuration before the search."""
        self.is_futile = False
        """The operation cannot become overdue, or not within the bounds of the search."""

    def find_overdue(self) -> Overdue | None:
        """The overdue operation, None if some configuration explains the silence or there are too many to say."""
        found: list[Overdue] = []
        stack = self.search.configurations[::-1]
        self.was_given = any(self.response_in(one) is not None for one in stack)
        known = set(stack)
        while stack:
            one = stack.pop()
            given = self.response_in(one)
            if given is not None:
                if self.stepper.may_be_missing(given.response):
                    return None
                found.append(Overdue(given, one))
                continue
            if self.can_be_silent(one):
                return None
            for after in self.search.successors(one, self.moment, self.handle):
                if after not in known:
                    known.add(after)
                    stack.append(after)
            if len(known) > MAX_SILENT_CONFIGURATIONS:
                self.is_futile = True
                return None
        return min(found, key=lambda overdue: steps_before(overdue.configuration.path, self.handle), default=None)

    def response_in(self, configuration: Configuration) -> GivenResponse | None:
        """The response that the operation has in a configuration."""
        if self.handle in configuration.waiting or self.stepper.is_parked(configuration.world, self.handle):
            return None
        return response_given(configuration.path, self.handle) or self.settled

    def can_be_silent(self, configuration: Configuration) -> bool:
        """Whether the operation may be without a response at the moment: nothing had to happen before that it does not
        have behind it."""
        state, grace = configuration.world, self.stepper.grace
        if self.handle in configuration.waiting:
            if self.sent_at + grace < self.moment:
                return False
        elif not self.stepper.is_parked(state, self.handle):
            self.is_futile = True  # nothing known says when it will have a response
            return True
        return all(high(each) + grace >= self.moment for each in self.stepper.armed_deadlines(state))
