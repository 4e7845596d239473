"""Single steps of a group: the configuration after a request or a timer, and its match with the responses seen.

`Stepper` is all that the search knows of a protocol.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import NamedTuple, Protocol

from fencepost.model.frozen import evolve
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Operation, Order
from fencepost.traces.judge.search.configuration import (
    Configuration,
    Decisions,
    FreshId,
    GroupOperation,
    Instant,
    Mismatch,
    Outcome,
    Path,
    Response,
    ResponseDifference,
    State,
    TimeInterval,
    high,
    low,
    with_unusual_fields,
)
from fencepost.traces.verdict import TransitionFields

REORDER_WINDOW_MS = 100
"""How far apart requests may be sent for their order to be left out of account when timers are set."""
CLOCK_RESOLUTION_MS = 2
"""By how much a time between two requests may look too short, as clocks count whole milliseconds on both sides."""

MAX_HANDLING_MS = 5_000
"""How much longer than the grace of a trace a request waits to be handled at most, if its connection lasts."""
MAX_CONFIGURATIONS = 20_000
"""How many configurations one response may need before the search gives up: inconclusive, never a verdict."""
MAX_WAYS = 720
"""In how many ways a response is compared whose ids were not known before: all those of six members."""
ERROR_FIELD = "error_code"


class SearchLimitExceeded(Exception):
    """The search grew beyond its bound."""


class Timer(Protocol):
    """A timer that runs; protocols add what they need to fire it."""

    @property
    def deadline(self) -> Instant:
        """When it is due, in milliseconds."""


@dataclass(frozen=True, slots=True)
class RepeatedStep:
    """A step that was taken before: its rule, and the transition that it is."""

    rule: str
    transition: TransitionFields | None


@dataclass(slots=True)
class Stepper(ABC):
    """Takes single steps of one group; a protocol says which there are."""

    group: str
    order: Order
    grace: int
    """How long after its deadline a timer may fire, in milliseconds."""
    open_operations: dict[int, GroupOperation] = field(default_factory=dict)
    """By handle, the operations whose response is still to be seen."""
    was_restarted: bool = False
    is_moving: bool = False
    """Another node may take the group over at any moment."""
    skip_dead_ends: bool = False
    """Leave out configurations that have no future, as not all of them are wanted."""
    has_skipped: bool = False
    """Some were left out."""
    max_matches: int = MAX_CONFIGURATIONS
    """How many configurations may come of one response that shows ids which were not known before."""
    allow_mismatches: bool = False
    """Let wrong responses pass and note them: only for a diagnosis."""

    # --- the protocol -------------------------------------------------------------------------------------------

    @abstractmethod
    def initial_state(self) -> State:
        """The state of a group in which nothing has happened."""

    def initial_configuration(self, decisions: Decisions) -> Configuration:
        """The configuration in which nothing was seen yet."""
        return Configuration(self.initial_state(), decisions=decisions)

    def on_restart(self, settings: Settings) -> None:
        """The target was killed and started again with these settings."""
        self.was_restarted = True

    @abstractmethod
    def armed_timers(self, state: State) -> Sequence[Timer]:
        """The timers that run in a state."""

    def armed_deadlines(self, state: State) -> Sequence[Instant]:
        """The deadlines of the timers that run in a state."""
        return [timer.deadline for timer in self.armed_timers(state)]

    @abstractmethod
    def handle_request(
        self, configuration: Configuration, part: GroupOperation, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after a request is handled, as far as they fit the responses seen (see `apply`)."""

    @abstractmethod
    def handle_timer(self, configuration: Configuration, timer: Timer, now: Instant) -> Iterator[Configuration]:
        """The configurations after a timer fires, as far as they fit the responses seen (see `apply`)."""

    def compare_response(self, part: GroupOperation, expected: Response) -> Iterator[ResponseDifference]:
        """Compare the response seen with one that the model gives, in every way in which fresh ids can be matched.

        Here the model gives a body, whose fields are required; if the error codes differ, no other field counts.
        """
        seen, difference = part.operation.response or {}, ResponseDifference()
        for name in sorted(expected, key=lambda name: name != ERROR_FIELD):
            if ERROR_FIELD not in difference.required:
                difference.require_equal(name, expected[name], seen.get(name))
        yield difference

    def resolve_ids(self, configuration: Configuration, shown: Mapping[FreshId, str]) -> Configuration:
        """The configuration with ids in the place of fresh ones, once a response shows them."""
        return configuration

    def remember_steps(self, configurations: Iterable[Configuration]) -> AbstractContextManager[None]:
        """Meanwhile, a step that is taken again from one of these states, or one that they lead to, may be looked up:
        nothing else is learned of the trace."""
        return nullcontext()

    def take_fast_path(self, configuration: Configuration, part: GroupOperation) -> Configuration | None:
        """The only configuration after a request seen at the coordinator, if that is plain without a search."""
        return None

    def learn_step(  # noqa: B027 (most protocols learn none)
        self, before: Configuration, part: GroupOperation, after: Configuration
    ) -> None:
        """Learn the step that a request was which was handled at once, in the only configuration, to repeat it."""

    def repeat_step(self, configuration: Configuration, operation: Operation) -> RepeatedStep | None:
        """The step that a request is, if it was learned and nothing else can have happened. The configuration is the
        only one; what changes in it may be left to `catch_up`."""
        return None

    def catch_up(self, configuration: Configuration) -> Configuration:
        """The configuration after the steps that were repeated."""
        return configuration

    def copy(self) -> "Stepper":
        """A stepper in the same circumstances, to try something out: it repeats no step that this one has taken."""
        twin = copy(self)
        twin.open_operations = dict(self.open_operations)
        return twin

    def commutes(self, before: Configuration, part: GroupOperation, after: Configuration) -> bool:
        """No response can show when the request was handled, so it may be handled at once."""
        return False

    def may_commute(self, configuration: Configuration, part: GroupOperation) -> bool:
        """A quick look at whether it is worth asking if the request commutes."""
        return False

    def internal_steps(self, configuration: Configuration, time: int, wanted: int) -> Iterator[Configuration]:
        """The configurations after what else may happen by `time`, with the response to `wanted` in mind."""
        yield from ()

    def restart(self, configuration: Configuration, time: int) -> Iterator[Configuration]:
        """The configurations after the target was killed and started again."""
        yield configuration

    def move(self, configuration: Configuration, time: int) -> Iterator[Configuration]:
        """The configurations after another node has taken the group over, by `time`."""
        yield configuration

    def is_unlikely(self, mismatch: Mismatch) -> bool:
        """Whether the wrong response itself speaks against the state in which the model gives another."""
        return False

    def weight_of(self, name: str) -> int:
        """How many other fields a wrong field of this name counts for."""
        return 1

    def is_parked(self, state: State, handle: int) -> bool:
        """The request was handled and waits for its response."""
        return False

    def is_of_next_round(self, state: State, body: Body) -> bool:
        """Whether a response tells of the round that comes next in a state in which its request is parked."""
        return False

    def may_be_missing(self, expected: Response) -> bool:
        """Whether a response that the model gives need not be seen."""
        return False

    # --- when a step is taken -----------------------------------------------------------------------------------

    def is_out_of_time(self, configuration: Configuration, moment: int) -> bool:
        """Whether something had to happen before the moment: a timer to fire, or a request to be handled of which
        nothing was seen since. (When those are handled whose response was seen, that response tells.)"""
        for timer in self.armed_timers(configuration.world):
            if high(timer.deadline) + self.grace < moment:
                return True
        latest = moment - self.grace - MAX_HANDLING_MS
        for handle in configuration.waiting:
            operation = self.open_operations[handle].operation
            if operation.sent_at < latest and operation.response is None and not operation.lost:
                return True
        return False

    def linearize(self, configuration: Configuration, handle: int, time: int) -> Iterator[Configuration]:
        """The configurations after a waiting request is handled; none if a timer must have fired before."""
        part = self.open_operations[handle]
        operation = part.operation
        if self.is_out_of_time(configuration, max(configuration.clock, operation.sent_at)):
            return
        now = self.handling_time(configuration, operation)
        yield from self.handle_request(evolve(configuration, waiting=configuration.waiting - {handle}), part, now)

    def handling_time(self, configuration: Configuration, operation: Operation) -> Instant:
        """When a request is handled that comes next."""
        if self.order is Order.TOTAL:
            return operation.sent_at
        earliest = max(configuration.clock, operation.sent_at)
        # The bounds go by the request, not by the path to it, so that paths in another order meet again.
        first = operation.sent_at if earliest - operation.sent_at < REORDER_WINDOW_MS else earliest
        responded = operation.responded_at
        if responded is None or responded > earliest + 2 * self.grace:
            responded = earliest + self.grace
        return TimeInterval(first - CLOCK_RESOLUTION_MS, max(first, responded))

    def fire_timer(self, configuration: Configuration, timer: Timer, time: int) -> Iterator[Configuration]:
        """The configurations after a timer fires, no later than `time`; none if another must have fired before."""
        earliest = max(configuration.clock, low(timer.deadline))
        if self.is_out_of_time(configuration, earliest):
            return
        latest = max(earliest, min(time, high(timer.deadline) + self.grace))
        now: Instant = earliest if earliest == latest else TimeInterval(earliest, latest)
        yield from self.handle_timer(evolve(configuration, clock=earliest), timer, now)

    # --- what comes of it ---------------------------------------------------------------------------------------

    def apply(
        self, configuration: Configuration, outcome: Outcome, after: State, handle: int, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations in the state `after` an outcome: none if a response that was seen differs from it.

        `handle` is that of the request handled, 0 for a timer.
        """
        part = self.open_operations.get(handle)
        clock, request = configuration.clock, None
        if part is not None:
            clock, request = max(clock, part.operation.sent_at), part.request
        path = Path(outcome.rule, handle, configuration.path, configuration.world, outcome, request)
        found = [evolve(configuration, world=after, clock=clock, path=path)]
        for reply in outcome.replies:
            part = self.open_operations.get(reply.handle)
            if part is not None and not (part.operation.lost and part.operation.response is None):
                expected = reply.response
                found = self.keep_matches(
                    matched for one in found for matched in self.match_response(one, part, expected, outcome.rule, now)
                )
        yield from found

    def keep_matches(self, matches: Iterator[Configuration]) -> list[Configuration]:
        """As many of the configurations as are wanted. Raises `SearchLimitExceeded` if all are, and are too many."""
        kept = list(islice(matches, self.max_matches))
        if len(kept) == self.max_matches and next(matches, None) is not None:
            self.leave_out(f"more than {self.max_matches} ways to match the ids of one response")
        return kept

    def ways_to_match(self, part: GroupOperation, expected: Response) -> Iterator[ResponseDifference]:
        """As `compare_response`, up to `MAX_WAYS`. Raises `SearchLimitExceeded` if all are wanted, and are too many."""
        ways = iter(self.compare_response(part, expected))
        yield from islice(ways, MAX_WAYS)
        if next(ways, None) is not None:
            self.leave_out(f"more than {MAX_WAYS} ways to match the ids of one response")

    def leave_out(self, reason: str) -> None:
        """Note that not all is tried; raises `SearchLimitExceeded` where all is wanted."""
        if not (self.skip_dead_ends or self.allow_mismatches):
            raise SearchLimitExceeded(reason)
        self.has_skipped = True

    def match_response(
        self, configuration: Configuration, part: GroupOperation, expected: Response, rule: str, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations once the model has given a response, as far as it fits the one that was seen."""
        operation = part.operation
        if operation.response is None:
            # In the order of the requests, so that paths in another order meet again.
            predicted = sorted((*configuration.predicted, (operation.handle, expected)), key=itemgetter(0))
            yield evolve(configuration, predicted=tuple(predicted))
            return
        late = self.is_late(operation, now)
        for difference in self.ways_to_match(part, expected):
            wrong = frozenset(difference.required | {"time"} if late else difference.required)
            if wrong and not self.allow_mismatches:
                continue
            mismatches = configuration.mismatches
            if wrong:
                due = high(now) if late else None
                mismatch = Mismatch(operation.handle, wrong, expected, rule, configuration.world, due=due)
                mismatches = (*mismatches, mismatch)
            after = self.take_over(configuration, operation.handle, difference)
            yield evolve(
                after,
                matched=configuration.matched | {operation.handle},
                mismatches=mismatches,
            )

    def is_late(self, operation: Operation, now: Instant) -> bool:
        """Whether the response was seen too late for a request handled now."""
        return operation.responded_at is not None and operation.responded_at > high(now) + self.grace

    def take_over(self, configuration: Configuration, handle: int, difference: ResponseDifference) -> Configuration:
        """The configuration with what a response shows: fresh ids, and unusual fields."""
        if difference.fresh_ids:
            configuration = self.resolve_ids(configuration, difference.fresh_ids)
        return with_unusual_fields(configuration, handle, difference)

    def deliver(self, configuration: Configuration, part: GroupOperation) -> list[Configuration] | None:
        """The configurations once the response was seen; None if it has yet to be given."""
        handle = part.operation.handle
        if handle in configuration.matched:
            return [evolve(configuration, matched=configuration.matched - {handle})]
        for position, (each, expected) in enumerate(configuration.predicted):
            if each == handle:
                predicted = configuration.predicted[:position] + configuration.predicted[position + 1 :]
                rest = evolve(configuration, predicted=predicted)
                return self.keep_matches(
                    self.take_over(rest, handle, difference)
                    for difference in self.ways_to_match(part, expected)
                    if not difference.required
                )
        return None


# --- Steps of protocols whose handlers respond to every request at once.


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
