"""The likeliest explanations of what clients saw: every request was handled as soon as it was sent."""

from itertools import islice
from typing import TYPE_CHECKING

from fencepost.model.internal import timers
from fencepost.traces.judge.configuration import Configuration
from fencepost.traces.judge.operations import Operation
from fencepost.traces.judge.span import high

if TYPE_CHECKING:
    from fencepost.traces.judge.search import Search

PROMPT_WIDTH = 3
"""How many explanations are kept of a request or an answer."""


def promptly(search: "Search", begun: list[Configuration], operation: Operation) -> list[Configuration]:
    """Those in which the request is handled at once come first, and a few in which it waits."""
    number, time = operation.handle, operation.sent
    found: dict[Configuration, None] = {}
    for one in begun[:PROMPT_WIDTH]:
        if number in one.waiting:
            for ready in {lapsed(search, one, time): None, lapsed(search, one, time - search.grace): None}:
                found.update(dict.fromkeys(islice(search.linearised(ready, number, time), PROMPT_WIDTH)))
    kept = list(found | dict.fromkeys(begun))
    if len(kept) > 2 * PROMPT_WIDTH:
        search.narrowed = True
    return kept[: 2 * PROMPT_WIDTH]


def lapsed(search: "Search", one: Configuration, time: int) -> Configuration:
    """The configuration with every timer fired that was due for certain by then, each in the first way it can."""
    for _ in range(len(timers(one.world)) + 1):
        overdue = [due for due in timers(one.world) if high(due.deadline) < time]
        first = min(overdue, key=lambda due: high(due.deadline), default=None)
        after = next(search.fired(one, first, time), None) if first is not None else None
        if after is None:
            break
        one = after
    return one
