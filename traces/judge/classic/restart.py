"""A restart of the target: what may have happened until the moment it was killed, and what a new one makes of it."""

from collections.abc import Iterator

from fencepost.model.classic.coordinator.internal_actions import armed_timers
from fencepost.model.frozen import evolve
from fencepost.traces.events import Order
from fencepost.traces.judge.classic.failover import load_in_dialect
from fencepost.traces.judge.classic.nondeterminism import outcomes_over_dialects
from fencepost.traces.judge.classic.offset_expiry import maybe_expired_offsets
from fencepost.traces.judge.search.configuration import Configuration, Path
from fencepost.traces.judge.search.search import MAX_CONFIGURATIONS, Search, SearchLimitExceeded
from fencepost.traces.judge.search.time_interval import Instant, TimeInterval, high

MAX_LOADING_MS = 120_000
"""How long after the kill a group may be loaded, as long as no answer shows that it is."""


def configurations_after_restart(search: Search, time: int) -> list[Configuration]:
    """The target was killed and loads its log: the configurations after that. Raises `SearchLimitExceeded`."""
    search.was_restarted = True
    now: Instant = TimeInterval(time, time + MAX_LOADING_MS) if search.order is Order.INTERVALS else time
    found: dict[Configuration, None] = {}
    for last in configurations_before_restart(search, time):
        for outcome, decisions in outcomes_over_dialects(load_in_dialect(search, last.world, now), last.decisions):
            begun = Configuration(
                outcome.state,
                clock=time,
                decisions=decisions,
                loading=True,
                unusual=last.unusual,
                maybe_expired=maybe_expired_offsets(
                    last, outcome.state, time, search.cluster.settings.offsets_retention
                ),
                path=Path(outcome.rule, 0, last.path, last.world, outcome),
            )
            found[begun] = None
    search.open_operations.clear()
    return list(found)


def configurations_before_restart(search: Search, time: int) -> Iterator[Configuration]:
    """How far things may have got: requests without an answer may or may not have been handled (LAT-16)."""
    if search.order is Order.TOTAL:
        for one in search.configurations:
            yield from search.advance_to(one, time)
        return
    known = {without_responses(one): None for one in search.configurations}
    stack = list(search.configurations)
    while stack:
        one = stack.pop()
        if all(high(due.deadline) + search.grace >= time for due in armed_timers(one.world)):
            yield one
        for after in search.successors(one, time, 0):
            if without_responses(after) not in known:
                known[without_responses(after)] = None
                stack.append(after)
        if len(known) > MAX_CONFIGURATIONS:
            raise SearchLimitExceeded(f"more than {MAX_CONFIGURATIONS} explanations of a restart")


def without_responses(configuration: Configuration) -> Configuration:
    """The configuration without what nobody will ask for again."""
    return evolve(configuration, matched=frozenset(), predicted=())
