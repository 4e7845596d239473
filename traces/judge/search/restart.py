"""A restart of the target: the configurations at the moment it was killed, and those of the new one."""

from collections.abc import Iterator

from fencepost.model.frozen import evolve
from fencepost.traces.events import Order
from fencepost.traces.judge.search.configuration import Configuration
from fencepost.traces.judge.search.search import MAX_CONFIGURATIONS, Search, SearchLimitExceeded
from fencepost.traces.judge.search.time_interval import high


def configurations_after_restart(search: Search, time: int) -> list[Configuration]:
    """The configurations after the target was killed at `time` and started again. Raises `SearchLimitExceeded`."""
    stepper = search.stepper
    found = dict.fromkeys(
        after for last in configurations_before_restart(search, time) for after in stepper.restart(last, time)
    )
    stepper.open_operations.clear()
    return list(found)


def configurations_before_restart(search: Search, time: int) -> Iterator[Configuration]:
    """The configurations when the target was killed: requests without a response may or may not have been handled
    (LAT-16)."""
    stepper = search.stepper
    if stepper.order is Order.TOTAL:
        for one in search.configurations:
            yield from search.advance_to(one, time)
        return
    known = {without_responses(one): None for one in search.configurations}
    stack = list(search.configurations)
    while stack:
        one = stack.pop()
        if all(high(timer.deadline) + stepper.grace >= time for timer in stepper.armed_timers(one.world)):
            yield one
        for after in search.successors(one, time, 0):
            if without_responses(after) not in known:
                known[without_responses(after)] = None
                stack.append(after)
        if len(known) > MAX_CONFIGURATIONS:
            raise SearchLimitExceeded(f"more than {MAX_CONFIGURATIONS} explanations of a restart")


def without_responses(configuration: Configuration) -> Configuration:
    """The configuration without the responses that can no longer be seen."""
    return evolve(configuration, matched=frozenset(), predicted=())
