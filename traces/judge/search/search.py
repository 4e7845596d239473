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

from fencepost.model.frozen import evolve
from fencepost.traces.events import Operation, Order
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, merge_decisions
from fencepost.traces.judge.search.eager import linearize_eagerly
from fencepost.traces.judge.search.stepper import MAX_CONFIGURATIONS, RepeatedStep, SearchLimitExceeded, Stepper
from fencepost.traces.judge.search.time_interval import high, low

MAX_EXPANSIONS_PER_MATCH = 5
"""How many configurations are looked at for each further explanation of a response, if not all of them are wanted."""
MAX_EAGER_CONFIGURATIONS = 2_000
"""The same as `MAX_CONFIGURATIONS` where many short traces are judged, most of which need no search at all."""


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
        found = [
            after
            for one in self.configurations
            for ready in self.advance_to(one, operation.sent_at)
            for after in stepper.handle_request(ready, part, operation.sent_at)
        ]
        return found if len(found) < 2 else merge_decisions(found)

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
                self.has_cut |= self.eager
                raise SearchLimitExceeded(f"more than {self.max_configurations} explanations of one answer")
        return merge_decisions(found)

    def is_enough(self, found: int, expanded: int) -> bool:
        """So many explanations of a response are enough, or not worth looking for more."""
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
