"""The search for configurations that explain the trace of one group, event by event.

A trace shows operations: requests with their responses. Each takes effect at one moment, its linearization point,
between the two. A trace seen by clients does not show that moment:

    time            0        10        20        30        40
    A  JoinGroup    [-----x-----------------------)              x  a possible linearization point
    B  JoinGroup         [-----------x------)                    [  the request is sent
    A  Heartbeat                          [----x----)            )  the response is seen
    timers                       !                               !  the model lets one fire
    configurations  1     1..2      2..5    1..3     1

The trace is explained if there is an order of these points, and of the timers of the model, in which the model gives
every response that was seen. Where operations overlap there are many orders, and the protocol leaves choices open
besides (a leader, an id, a difference of the reference implementations). So the search keeps a list of configurations,
one for each way things may have gone so far: the state of the model, the requests that wait to be handled, and the
responses that the model has given and that are still to be seen.

A request adds itself to what waits in every configuration (`on_request`). Nothing else is decided, until a response is
seen (`on_response`): then only those configurations stay in which the model has given this very response. To find
them the search goes depth-first from each configuration: it handles a waiting request, fires a timer that may be due,
or lets happen what else the protocol has (`successors`), until the response is given or nothing is left to try. A step
that gives a response other than the one the trace shows later is cut off at once, since the response is known ahead.
If no configuration stays, the trace is wrong here, and the diagnosis finds out in what.

A trace seen at the coordinator is in order already: a request is handled at its event, and only timers and choices are
left open.

A coordinator that speaks first shows what it did by itself in what others see of it. Any number of spontaneous steps
(`internal_steps`) may lie between two such moments, so all configurations that they lead to are looked at (`observe`).

A step from an equal state is taken once while a response is searched (`remember_steps`): most configurations differ in
what has no part in it.

Four things keep the number of configurations small.
- Equal configurations are one; the path to them is not compared. Times are intervals (see `time_interval`), set by the
  request and not by the path, so that paths in another order meet again.
- A request of which no response can show when it was handled is handled at once (`linearize_commuting`): a partial
  order reduction.
- A beam: at first a few explanations of a response are enough. `truncated` says that there were more, so that finding
  none later proves nothing, and the judge tries again with a wider beam.
- The fast path: where nothing is open, a step of the model is compared with the trace without any of this. One that
  was taken before is not even taken again (`repeat_step`), and the configuration catches up when somebody looks at it.

How one step is taken, and what the protocol is, is the business of the `Stepper`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from fencepost.model.frozen import evolve
from fencepost.traces.events import Operation, Order
from fencepost.traces.judge.search.configuration import (
    Configuration,
    GroupOperation,
    Instant,
    Path,
    Response,
    high,
    low,
    merge_decisions,
    step_that_handles,
    step_that_responds,
)
from fencepost.traces.judge.search.stepper import MAX_CONFIGURATIONS, RepeatedStep, SearchLimitExceeded, Stepper

# --- The likeliest configurations of a trace seen by clients: every request is handled as soon as it is sent.

EAGER_BEAM_WIDTH = 3
"""How many configurations are kept at a request or a response."""


def linearize_eagerly(
    stepper: Stepper, begun: list[Configuration], operation: Operation
) -> tuple[list[Configuration], bool]:
    """The configurations in which the request is handled at once, then some in which it waits; and whether others
    were left out."""
    handle, time = operation.handle, operation.sent_at
    handled: list[tuple[int, list[Configuration]]] = []
    for place, one in enumerate(begun[:EAGER_BEAM_WIDTH]):
        if handle in one.waiting:
            punctual = fire_overdue_timers(stepper, one, time, low)
            certain = fire_overdue_timers(stepper, one, time, high)
            late = fire_overdue_timers(stepper, one, time - stepper.grace, high)
            for further, ready in enumerate({punctual: None, certain: None, late: None}):
                after = list(islice(stepper.linearize(ready, handle, time), EAGER_BEAM_WIDTH))
                handled.append((place + further, after))
    handled.sort(key=lambda each: each[0])  # those that are likely and came of what was likely come first
    found = dict.fromkeys(each for _, some in handled for each in some)
    kept = list(found | dict.fromkeys(begun))
    return kept[: 2 * EAGER_BEAM_WIDTH], len(kept) > 2 * EAGER_BEAM_WIDTH


def fire_overdue_timers(
    stepper: Stepper, configuration: Configuration, time: int, side: Callable[[Instant], int]
) -> Configuration:
    """The configuration with every timer fired that was due by `time`, each in the first way it can.

    `side` is `low` for those that may have been due, `high` for those that were for certain.
    """
    for _ in range(len(stepper.armed_timers(configuration.world)) + 1):
        overdue = [timer for timer in stepper.armed_timers(configuration.world) if side(timer.deadline) < time]
        first = min(overdue, key=lambda timer: side(timer.deadline), default=None)
        after = next(stepper.fire_timer(configuration, first, time), None) if first is not None else None
        if after is None:
            break
        configuration = after
    return configuration


MAX_EXPANSIONS_PER_MATCH = 5
"""How many configurations are looked at for each further explanation of a response, if not all of them are wanted."""
MAX_EAGER_CONFIGURATIONS = 2_000
"""`MAX_CONFIGURATIONS` for judging many short traces, most of which need no search at all."""


@dataclass(slots=True)
class Search:
    """All explanations of what was seen of one group."""

    stepper: Stepper
    latest: list[Configuration]
    """The configurations without the steps that were repeated since."""
    beam_width: int | None = None
    """How many explanations to keep of one response; None for all of them."""
    max_configurations: int = MAX_CONFIGURATIONS
    eager: bool = False
    """A first pass over what clients saw: most likely every request was handled as soon as it was sent."""
    has_cut: bool = False
    """Some explanations were left out."""
    pending_steps: int = 0
    """How many requests and responses the paths of the configurations go back."""
    is_behind: bool = False
    """Steps were repeated since."""
    latest_arrival: tuple[int, list[Configuration]] = (0, [])
    """The handle of the request that arrived last at the coordinator, and the configurations before it."""

    @property
    def configurations(self) -> list[Configuration]:
        """All explanations of what was seen."""
        if self.is_behind:
            self.configurations = [self.stepper.catch_up(one) for one in self.latest]
        return self.latest

    @configurations.setter
    def configurations(self, found: list[Configuration]) -> None:
        self.latest, self.is_behind = found, False

    @property
    def open_operations(self) -> dict[int, GroupOperation]:
        """By handle, the operations whose response is still to be seen."""
        return self.stepper.open_operations

    @property
    def truncated(self) -> bool:
        """Some explanations were left out, so finding none later proves nothing."""
        return self.has_cut or self.stepper.has_skipped

    # --- events -------------------------------------------------------------------------------------------------

    def on_request(self, part: GroupOperation) -> list[Configuration]:
        """The configurations that explain a request that was sent (seen by a client) or arrived (at the
        coordinator)."""
        operation, stepper = part.operation, self.stepper
        stepper.open_operations[operation.handle] = part
        if stepper.order is Order.INTERVALS:
            with stepper.remember_steps(self.configurations):
                return self.begin_waiting(part)
        if len(self.configurations) == 1:
            only = stepper.take_fast_path(self.configurations[0], part)
            if only is not None:
                stepper.learn_step(self.configurations[0], part, only)
                return [only]
        self.latest_arrival = operation.handle, self.configurations
        found = list(self.handle_at_arrival(self.configurations, part))
        return found if len(found) < 2 else merge_decisions(found)

    def handle_at_arrival(self, before: Iterable[Configuration], part: GroupOperation) -> Iterator[Configuration]:
        """The configurations after a request is handled when it arrives."""
        time = part.operation.sent_at
        return (
            after
            for one in before
            for ready in self.advance_to(one, time)
            for after in self.stepper.handle_request(ready, part, time)
        )

    def repeat_step(self, operation: Operation) -> RepeatedStep | None:
        """The step that a request is, if it is the same as an earlier one and nothing else is open."""
        if len(self.latest) != 1:
            return None
        step = self.stepper.repeat_step(self.latest[0], operation)
        self.is_behind |= step is not None
        return step

    def begin_waiting(self, part: GroupOperation) -> list[Configuration]:
        """The configurations with the request waiting, or handled if that can be decided already."""
        handle, time = part.operation.handle, part.operation.sent_at
        begun = [
            self.linearize_if_commuting(evolve(one, waiting=one.waiting | {handle}), handle, time)
            for one in self.configurations
        ]
        if len(begun) == 1 and handle not in begun[0].waiting:
            self.stepper.learn_step(self.configurations[0], part, begun[0])
        if not self.eager:
            return begun
        kept, has_cut = linearize_eagerly(self.stepper, begun, part.operation)
        self.has_cut |= has_cut
        return kept

    def on_response(self, part: GroupOperation, time: int) -> list[Configuration]:
        """The configurations that explain a response seen at `time`. Raises `SearchLimitExceeded`."""
        found = self.delivered_at_once(part, time)
        if not found:
            with self.stepper.remember_steps(self.configurations):
                found = self.search_response(part, time)
        if found:
            self.stepper.open_operations.pop(part.operation.handle, None)
        return found

    def delivered_at_once(self, part: GroupOperation, time: int) -> list[Configuration]:
        """The configurations in which the response was given already, if there is no need to look at others."""
        if self.eager:
            given = [after for one in self.configurations for after in self.stepper.deliver(one, part) or ()]
            if given:
                self.has_cut |= len(self.configurations) > 1
                return merge_decisions(given)
        if len(self.configurations) == 1:
            only = self.configurations[0]
            return self.stepper.deliver(only, part) or self.handle_alone(only, part, time)
        return []

    def handle_alone(self, configuration: Configuration, part: GroupOperation, time: int) -> list[Configuration]:
        """The configurations in which the response was given, if nothing can have happened but that its request was
        handled, in one way; else none."""
        stepper, handle = self.stepper, part.operation.handle
        is_alone = configuration.waiting == {handle} and time < min(
            map(low, stepper.armed_deadlines(configuration.world)), default=time + 1
        )
        if not is_alone or any(True for _ in stepper.internal_steps(configuration, time, handle)):
            return []
        handled = list(stepper.linearize(configuration, handle, time))
        return stepper.deliver(handled[0], part) or [] if len(handled) == 1 else []

    def search_response(self, part: GroupOperation, time: int) -> list[Configuration]:
        """The configurations found depth-first in which the response is given."""
        handle, deliver = part.operation.handle, self.stepper.deliver
        found: dict[Configuration, None] = {}
        stack = self.configurations[::-1]
        # Those that have the response already come first: they may be the plainer way to where others lead.
        stack.sort(key=lambda one: deliver(one, part) is not None)
        known, expanded = set(stack), 0
        while stack:
            if self.is_enough(len(found), expanded):
                self.has_cut = True
                break
            one = stack.pop()
            expanded += 1
            settled = deliver(one, part)
            if settled is not None:
                found.update(dict.fromkeys(settled))
                continue
            rested = dict.fromkeys(self.linearize_commuting(each, time) for each in self.successors(one, time, handle))
            after = [each for each in rested if each not in known]
            known.update(after)
            stack.extend(reversed(after))
            if len(known) > self.max_configurations:
                self.has_cut |= self.max_configurations < MAX_CONFIGURATIONS
                raise SearchLimitExceeded(f"more than {self.max_configurations} explanations of one answer")
        return merge_decisions(found)

    def is_enough(self, found: int, expanded: int) -> bool:
        """Whether the explanations of a response that were found are enough, or more are not worth looking for."""
        if self.beam_width is None or not found:
            return False
        return self.eager or found >= self.beam_width or expanded > MAX_EXPANSIONS_PER_MATCH * self.beam_width

    def observe(self, see: Callable[[Configuration], Iterable[Configuration] | None], time: int) -> list[Configuration]:
        """The configurations that explain something that was seen and is no response: of all that the group may have
        come to by itself by `time`, those in which `see` finds it, as they are once it was seen. Raises
        `SearchLimitExceeded`."""
        return list(dict.fromkeys(after for one in self.reach(time) for after in see(one) or ()))

    def reach(self, time: int) -> list[Configuration]:
        """Every configuration that the group may have come to by `time`, at which nothing more was seen. Raises
        `SearchLimitExceeded`."""
        found = dict.fromkeys(self.configurations)
        stack = list(found)
        while stack:
            after = [each for each in self.successors(stack.pop(), time, 0) if each not in found]
            found.update(dict.fromkeys(after))
            stack += after
            if len(found) > self.max_configurations:
                raise SearchLimitExceeded(f"more than {self.max_configurations} states explain what was seen")
        return list(found)

    # --- moves --------------------------------------------------------------------------------------------------

    def successors(self, configuration: Configuration, time: int, wanted: int) -> Iterator[Configuration]:
        """The configurations after what may have happened next, no later than `time`; `wanted` is tried first."""
        stepper = self.stepper
        for handle in sorted(configuration.waiting, key=lambda each: each != wanted):
            yield from stepper.linearize(configuration, handle, time)
        for timer in stepper.armed_timers(configuration.world):
            if low(timer.deadline) <= time:
                yield from stepper.fire_timer(configuration, timer, time)
        yield from stepper.internal_steps(configuration, time, wanted)

    def linearize_commuting(self, configuration: Configuration, time: int) -> Configuration:
        """The configuration with every waiting request handled that commutes."""
        for handle in sorted(configuration.waiting):
            configuration = self.linearize_if_commuting(configuration, handle, time)
        return configuration

    def linearize_if_commuting(self, configuration: Configuration, handle: int, time: int) -> Configuration:
        """The configuration with this request handled if it commutes; else as it is."""
        stepper = self.stepper
        part = stepper.open_operations[handle]
        if stepper.allow_mismatches or not stepper.may_commute(configuration, part):
            return configuration
        for after in stepper.linearize(configuration, handle, time):
            if after.decisions == configuration.decisions and stepper.commutes(configuration, part, after):
                return evolve(after, clock=configuration.clock)
        return configuration

    def advance_to(self, start: Configuration, time: int) -> Iterator[Configuration]:
        """The configurations with every timer fired that must be, and with or without those that may."""
        stepper = self.stepper
        if time < min(map(low, stepper.armed_deadlines(start.world)), default=time + 1):
            yield start
            return
        known, stack = {start}, [start]
        while stack:
            one = stack.pop()
            due = [timer for timer in stepper.armed_timers(one.world) if low(timer.deadline) <= time]
            if all(high(timer.deadline) + stepper.grace >= time for timer in due):
                yield one
            for timer in due:
                for after in stepper.fire_timer(one, timer, time):
                    if after not in known:
                        known.add(after)
                        stack.append(after)
            if len(known) > MAX_CONFIGURATIONS:
                raise SearchLimitExceeded(f"more than {MAX_CONFIGURATIONS} orders of timers")


# --- A restart of the target, or a move of a group: the configurations before it, and those of the new coordinator.


def configurations_after_restart(search: Search, time: int) -> list[Configuration]:
    """The configurations after the target was killed at `time` and started again. Raises `SearchLimitExceeded`."""
    stepper = search.stepper
    found = dict.fromkeys(
        after for last in configurations_before_restart(search, time) for after in stepper.restart(last, time)
    )
    stepper.open_operations.clear()
    return list(found)


def configurations_after_move(search: Search, time: int) -> list[Configuration]:
    """The configurations after another node has taken the group over, by `time`. Requests in flight may have been
    handled before. Raises `SearchLimitExceeded`."""
    stepper = search.stepper
    before = configurations_before_restart(search, time, merge=lambda one: one)
    return list(dict.fromkeys(after for last in before for after in stepper.move(last, time)))


def without_responses(configuration: Configuration) -> Configuration:
    """The configuration without the responses that can no longer be seen."""
    return evolve(configuration, matched=frozenset(), predicted=())


def configurations_before_restart(
    search: Search, time: int, merge: Callable[[Configuration], Configuration] = without_responses
) -> Iterator[Configuration]:
    """The configurations when the target was killed: requests without a response may or may not have been handled
    (LAT-16). Those that `merge` makes equal count as one."""
    stepper = search.stepper
    if stepper.order is Order.TOTAL:
        for one in search.configurations:
            yield from search.advance_to(one, time)
        return
    known = {merge(one): None for one in search.configurations}
    stack = list(search.configurations)
    while stack:
        one = stack.pop()
        if all(high(timer.deadline) + stepper.grace >= time for timer in stepper.armed_timers(one.world)):
            yield one
        for after in search.successors(one, time, 0):
            if merge(after) not in known:
                known[merge(after)] = None
                stack.append(after)
        if len(known) > MAX_CONFIGURATIONS:
            raise SearchLimitExceeded(f"more than {MAX_CONFIGURATIONS} explanations of a restart")


# --- Silence as evidence: an operation whose response is overdue in every configuration.
#
# That no response was seen until a moment is an observation like any other. It has an explanation if in some
# configuration the response was not due until then: the request is parked and no timer that ends its wait had to fire,
# or it may still wait to be handled. As for a response, the search goes depth-first from each configuration, and
# whatever must have happened by then happens. If the model gives the response on every path, it is overdue.

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


def response_given(path: Path | None, handle: int) -> GivenResponse | None:
    """The response to an operation that the steps of a path give, None if they give none."""
    step = step_that_responds(path, handle)
    if step is None:
        return None
    return GivenResponse(step.rule, next(each.response for each in step.outcome.replies if each.handle == handle))


def steps_before(path: Path | None, handle: int) -> int:
    """How many of the steps of a path come before an operation is handled; 0 if it was handled before them."""
    step, before = step_that_handles(path, handle), 0
    while step is not None and step.previous is not None:
        before, step = before + 1, step.previous
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
        return min(found, key=lambda overdue: self.unlikeliness(overdue.configuration.path), default=None)

    def unlikeliness(self, path: Path | None) -> tuple[int, int]:
        """How unlikely a path is: the timers that were due already when the operation was handled and had not fired,
        then the steps before it."""
        step = step_that_handles(path, self.handle)
        armed = self.stepper.armed_deadlines(step.start) if step is not None and step.start is not None else ()
        return sum(high(deadline) <= self.sent_at for deadline in armed), steps_before(path, self.handle)

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
