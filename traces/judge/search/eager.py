"""The likeliest explanations of what clients saw: every request was handled as soon as it was sent."""

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from fencepost.model.classic.coordinator.internal_actions import armed_timers
from fencepost.traces.judge.search.configuration import Configuration
from fencepost.traces.judge.search.time_interval import Instant, high, low
from fencepost.traces.operations import Operation

if TYPE_CHECKING:
    from fencepost.traces.judge.search.search import Search

EAGER_BEAM_WIDTH = 3
"""How many explanations are kept of a request or an answer."""


def linearize_eagerly(search: "Search", begun: list[Configuration], operation: Operation) -> list[Configuration]:
    """Those in which the request is handled at once come first, and a few in which it waits."""
    number, time = operation.handle, operation.sent_at
    handled: list[tuple[int, list[Configuration]]] = []
    for place, one in enumerate(begun[:EAGER_BEAM_WIDTH]):
        if number in one.waiting:
            punctual, certain = (
                fire_overdue_timers(search, one, time, low),
                fire_overdue_timers(search, one, time, high),
            )
            late = fire_overdue_timers(search, one, time - search.grace, high)
            for further, ready in enumerate({punctual: None, certain: None, late: None}):
                handled.append((place + further, list(islice(search.linearize(ready, number, time), EAGER_BEAM_WIDTH))))
    handled.sort(key=lambda each: each[0])  # those that are likely and came of what was likely come first
    found = dict.fromkeys(each for _, some in handled for each in some)
    kept = list(found | dict.fromkeys(begun))
    if len(kept) > 2 * EAGER_BEAM_WIDTH:
        search.truncated = True
    return kept[: 2 * EAGER_BEAM_WIDTH]


def fire_overdue_timers(
    search: "Search", configuration: Configuration, time: int, side: Callable[[Instant], int]
) -> Configuration:
    """The configuration with every timer fired that was due by then, each in the first way it can: those that may have
    been due (`side` is `low`), or those that were for certain (`high`)."""
    for _ in range(len(armed_timers(configuration.world)) + 1):
        overdue = [due for due in armed_timers(configuration.world) if side(due.deadline) < time]
        first = min(overdue, key=lambda due: side(due.deadline), default=None)
        after = next(search.fire_timer(configuration, first, time), None) if first is not None else None
        if after is None:
            break
        configuration = after
    return configuration
