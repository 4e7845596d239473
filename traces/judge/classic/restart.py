"""A restart of the target: what may have happened until the moment it was killed, and what a new one makes of it."""

from collections.abc import Iterator

from fencepost.model.classic.coordinator.internal_actions import timers
from fencepost.model.frozen import alter
from fencepost.traces.events import Order
from fencepost.traces.judge.classic.failover import load
from fencepost.traces.judge.classic.nondeterminism import in_dialects
from fencepost.traces.judge.classic.offset_expiry import doubted
from fencepost.traces.judge.search.configuration import Configuration, Trail
from fencepost.traces.judge.search.search import LIMIT, Search, Undecided
from fencepost.traces.judge.search.time_interval import Moment, Span, high

LOADING_MS = 120_000
"""How long after the kill a group may be loaded, as long as no answer shows that it is."""


def restart(search: Search, time: int) -> list[Configuration]:
    """The target was killed and loads its log: the configurations after that. Raises `Undecided`."""
    search.was_restarted = True
    now: Moment = Span(time, time + LOADING_MS) if search.order is Order.INTERVALS else time
    found: dict[Configuration, None] = {}
    for last in endings(search, time):
        for outcome, decisions in in_dialects(load(search, last.world, now), last.decisions):
            begun = Configuration(
                outcome.world,
                clock=time,
                decisions=decisions,
                loading=True,
                soft=last.soft,
                doubtful=doubted(last, outcome.world, time, search.cluster.settings.offsets_retention),
                trail=Trail(outcome.rule, 0, last.trail, last.world, outcome),
            )
            found[begun] = None
    search.parts.clear()
    return list(found)


def endings(search: Search, time: int) -> Iterator[Configuration]:
    """How far things may have got: requests without an answer may or may not have been handled (LAT-16)."""
    if search.order is Order.TOTAL:
        for one in search.configurations:
            yield from search.brought_up_to(one, time)
        return
    known = {bare(one): None for one in search.configurations}
    stack = list(search.configurations)
    while stack:
        one = stack.pop()
        if all(high(due.deadline) + search.grace >= time for due in timers(one.world)):
            yield one
        for after in search.moves(one, time, 0):
            if bare(after) not in known:
                known[bare(after)] = None
                stack.append(after)
        if len(known) > LIMIT:
            raise Undecided(f"more than {LIMIT} explanations of a restart")


def bare(one: Configuration) -> Configuration:
    """The configuration without what nobody will ask for again."""
    return alter(one, given=frozenset(), unseen=())
