"""Around a failover a coordinator may say that it is not ready (LAT-15), or fail to write, and then the request may or
may not have taken effect (LAT-16)."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING

from fencepost.model.classic.coordinator.availability import Gate, refusal, turn_away
from fencepost.model.classic.coordinator.internal_actions import restarted, unloaded
from fencepost.model.classic.coordinator.state import Outcome, World, answer
from fencepost.model.classic.coordinator.write_failures import Failure, fail, failure_error
from fencepost.model.classic.core.state import Choices, Dialect
from fencepost.model.errors import Error
from fencepost.model.frozen import alter
from fencepost.traces.events import Order
from fencepost.traces.judge.classic.nondeterminism import Decisions, in_dialects
from fencepost.traces.judge.classic.offset_expiry import doubted
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.search.configuration import Configuration, Part, Trail, noted, ready_by, renamed
from fencepost.traces.judge.search.time_interval import Moment, Span, high

if TYPE_CHECKING:
    from fencepost.traces.judge.search.search import Search

NOT_READY = frozenset(gate.error for gate in Gate)
"""Errors a coordinator may give in place of any answer around a failover (LAT-15)."""
FAILED = frozenset({Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR, Error.UNKNOWN_SERVER_ERROR})
"""Errors of a request that may have taken effect (LAT-16)."""
BLIND = frozenset({"gate.loading.heartbeat", "gate.loading.sync", "gate.elsewhere.list"})
"""Rules of the gate that say nothing of it."""


def excused(search: "Search", one: Configuration, part: Part, now: Moment) -> Iterator[Configuration]:
    """The request as handled by a coordinator that is not ready, or whose log fails."""
    if not search.was_restarted or part.operation.answer is None:
        return
    errors = errors_in(part.operation.answer)
    if one.loading or errors & NOT_READY:
        yield from plainest(turned_away(search, one, part, now), one) or refused(search, one, part, now)
    if errors & FAILED:
        yield from failed(search, one, part, now)


def plainest(found: Iterator[Configuration], before: Configuration) -> list[Configuration]:
    """The configurations in which nothing is unusual, or else all of them."""
    kept = list(found)
    return [each for each in kept if each.soft == before.soft] or kept


def turned_away(search: "Search", one: Configuration, part: Part, now: Moment) -> Iterator[Configuration]:
    """The request meets a coordinator that does not look at the group: what it may say then, and only then."""
    for gate in Gate:

        def run(dialect: Dialect, gate: Gate = gate) -> Outcome:
            context = search.context(now, Choices(), dialect)
            return turn_away(one.world, part.request, gate, context, search.cluster)

        for outcome, decisions in in_dialects(run, one.decisions):
            by_gate = outcome.rule.startswith("gate.") and outcome.rule not in BLIND
            if one.loading or by_gate:
                yield from answered_so(search, one, part, outcome, decisions)


def refused(search: "Search", one: Configuration, part: Part, now: Moment) -> Iterator[Configuration]:
    """The request gets one of the errors in place of any other answer (LAT-15)."""
    for error in NOT_READY:

        def run(dialect: Dialect, error: Error = error) -> Outcome:
            told = refusal(part.request, error, dialect, search.cluster)
            return answer(one.world, part.request, told, "gate.not-ready")

        for outcome, decisions in in_dialects(run, one.decisions):
            yield from answered_so(search, one, part, outcome, decisions)


def answered_so(
    search: "Search", one: Configuration, part: Part, outcome: Outcome, decisions: Decisions
) -> Iterator[Configuration]:
    """The configuration after such an answer, if it is the one seen."""
    number = part.operation.handle
    (reply,) = outcome.replies
    for difference in search.differences(part, reply.answer):
        if not difference.hard:
            trail = Trail(outcome.rule, number, one.trail)
            after = alter(one, given=one.given | {number}, decisions=decisions, trail=trail)
            yield noted(renamed(after, difference.shown), number, difference)


def failed(search: "Search", one: Configuration, part: Part, now: Moment) -> Iterator[Configuration]:
    """The request is handled, but its write fails; it may be on the log all the same (LAT-16)."""
    ready = ready_by(one, now)
    choices = Choices(search.new_id(part.operation), None, ready.world.group.protocol if ready.world.group else None)
    seen = errors_in(part.operation.answer or {}) & FAILED
    for failure, taken in product(Failure, (False, True)):

        def run(dialect: Dialect, failure: Failure = failure, taken: bool = taken) -> Outcome:
            context = search.context(now, choices, dialect)
            outcome = None
            if failure_error(failure, part.request, dialect) in seen:
                outcome = fail(ready.world, part.request, failure, context, search.cluster, taken=taken)
            return outcome or Outcome(ready.world, (), "")

        for outcome, decisions in in_dialects(run, one.decisions):
            if outcome.replies:
                for after in search.absorbed(ready, outcome, part.operation.handle, now):
                    yield alter(after, decisions=decisions)


def moved(search: "Search", one: Configuration, time: int, wanted: int) -> Iterator[Configuration]:
    """The group went to another node and is loaded there: so it is where a parked request is sent there."""
    part, group = search.parts.get(wanted), one.world.group
    if not search.was_restarted or part is None or group is None or part.operation.answer is None:
        return
    parked = any(wanted in (slot.join, slot.sync) for slot in group.slots)
    if not parked or errors_in(part.operation.answer) != {Error.NOT_COORDINATOR}:
        return
    now: Moment = time if search.order is Order.TOTAL else Span(one.clock, max(one.clock, time))
    for gone in search.absorbed(one, unloaded(one.world), 0, now):
        for outcome, decisions in in_dialects(load(search, one.world, now), one.decisions):
            yield alter(
                gone,
                world=outcome.world,
                decisions=decisions,
                loading=True,
                doubtful=doubted(one, outcome.world, high(now), search.cluster.settings.offsets_retention),
                trail=Trail(outcome.rule, 0, gone.trail),
            )


def load(search: "Search", world: World, now: Moment) -> Callable[[Dialect], Outcome]:
    """Loading this world, in whatever dialect."""
    return lambda dialect: restarted(world, search.context(now, Choices(), dialect))
