"""The likeliest configurations of a trace seen by clients: every request is handled as soon as it is sent."""

from collections.abc import Callable
from itertools import islice

from fencepost.traces.events import Operation
from fencepost.traces.judge.search.configuration import Configuration
from fencepost.traces.judge.search.stepper import Stepper
from fencepost.traces.judge.search.time_interval import Instant, high, low

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
