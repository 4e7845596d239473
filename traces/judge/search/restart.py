"""A restart of the target, or a move of a group: the configurations before it, and those of the new coordinator."""

from collections.abc import Callable, Iterator

from fencepost.model.frozen import evolve
from fencepost.traces.events import Order
from fencepost.traces.judge.search.configuration import Configuration
from fencepost.traces.judge.search.search import Search
from fencepost.traces.judge.search.stepper import MAX_CONFIGURATIONS, SearchLimitExceeded
from fencepost.traces.judge.search.time_interval import high


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
