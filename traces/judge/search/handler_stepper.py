"""Steps of protocols whose handlers respond to every request at once."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Response, State
from fencepost.traces.judge.search.stepper import Stepper, Timer
from fencepost.traces.judge.search.time_interval import Instant


class Reply(NamedTuple):
    """The response to the request with this handle."""

    handle: int
    response: Response


class StepOutcome(NamedTuple):
    """What comes of a step: the `Outcome` of the search."""

    state: State
    rule: str
    replies: tuple[Reply, ...]


@dataclass(slots=True)
class HandlerStepper(Stepper):
    """Takes single steps of one group by a function that says what comes of a request or a timer."""

    @abstractmethod
    def take_step(self, state: State, part: GroupOperation | None, now: Instant) -> tuple[State, str, Response]:
        """The state after a request, or after a timer if there is none; the rule; the response."""

    def handle_request(
        self, configuration: Configuration, part: GroupOperation, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after a request that gets its response at once."""
        state, rule, response = self.take_step(configuration.world, part, now)
        handle = part.operation.handle
        return self.apply(configuration, StepOutcome(state, rule, (Reply(handle, response),)), state, handle, now)

    def handle_timer(self, configuration: Configuration, timer: Timer, now: Instant) -> Iterator[Configuration]:
        """The configurations after a timer that no request waits for."""
        state, rule, _ = self.take_step(configuration.world, None, now)
        return self.apply(configuration, StepOutcome(state, rule, ()), state, 0, now)
