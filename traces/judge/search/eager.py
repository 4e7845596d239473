"""The likeliest explanations of what clients saw: every request was handled as soon as it was sent."""

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from fencepost.model.classic.coordinator.internal_actions import timers
from fencepost.traces.judge.search.configuration import Configuration
from fencepost.traces.judge.search.time_interval import Moment, high, low
from fencepost.traces.operations import Operation

if TYPE_CHECKING:
    from fencepost.traces.judge.search.search import Search

PROMPT_WIDTH = 3
"""How many explanations are kept of a request or an answer."""


def promptly(search: "Search", begun: list[Configuration], operation: Operation) -> list[Configuration]:
    """Those in which the request is handled at once come first, and a few in which it waits."""
    number, time = operation.handle, operation.sent
    handled: list[tuple[int, list[Configuration]]] = []
    for place, one in enumerate(begun[:PROMPT_WIDTH]):
        if number in one.waiting:
            punctual, certain = lapsed(search, one, time, low), lapsed(search, one, time, high)
            late = lapsed(search, one, time - search.grace, high)
            for further, ready in enumerate({punctual: None, certain: None, late: None}):
                handled.append((place + further, list(islice(search.linearised(ready, number, time), PROMPT_WIDTH))))
    handled.sort(key=lambda each: each[0])  # those that are likely and came of what was likely come first
    found = dict.fromkeys(each for _, some in handled for each in some)
    kept = list(found | dict.fromkeys(begun))
    if len(kept) > 2 * PROMPT_WIDTH:
        search.narrowed = True
    return kept[: 2 * PROMPT_WIDTH]


def lapsed(search: "Search", one: Configuration, time: int, side: Callable[[Moment], int]) -> Configuration:
    """The configuration with every timer fired that was due by then, each in the first way it can: those that may have
    been due (`side` is `low`), or those that were for certain (`high`)."""
    for _ in range(len(timers(one.world)) + 1):
        overdue = [due for due in timers(one.world) if side(due.deadline) < time]
        first = min(overdue, key=lambda due: side(due.deadline), default=None)
        after = next(search.fired(one, first, time), None) if first is not None else None
        if after is None:
            break
        one = after
    return one
