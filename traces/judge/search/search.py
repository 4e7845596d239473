"""The search over what one group may have gone through, event by event.

Seen at the coordinator, a request is handled at its event; seen at clients, at some moment before its answer, in any
order that explains all answers (LAT-07). Timers fire as they come due.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.classic.coordinator.dispatch import handle
from fencepost.model.classic.coordinator.internal_actions import Due, deadlines, fire, timers
from fencepost.model.classic.coordinator.state import Cluster, Outcome
from fencepost.model.classic.core.state import Choices, Context, Dialect, Phase
from fencepost.model.classic.messages.requests import EndTransaction, Join, TransactionalCommit
from fencepost.model.classic.messages.responses import Answer
from fencepost.model.errors import Error
from fencepost.model.frozen import alter
from fencepost.traces.events import Order
from fencepost.traces.judge.classic.failover import excused, moved
from fencepost.traces.judge.classic.matching import Difference, Fresh, Seen, compare
from fencepost.traces.judge.classic.nondeterminism import Run, in_choices
from fencepost.traces.judge.classic.offset_expiry import doubted, removals
from fencepost.traces.judge.classic.reduction import may_rest, rests
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.search.configuration import (
    Configuration,
    Fault,
    Part,
    Trail,
    noted,
    ready_by,
    renamed,
    tidied,
    united,
)
from fencepost.traces.judge.search.eager import promptly
from fencepost.traces.judge.search.fast_path import straight
from fencepost.traces.judge.search.time_interval import Moment, Span, high, low
from fencepost.traces.operations import Operation

LIMIT = 20_000
"""How many configurations one answer may need before the judge gives up: inconclusive, never a verdict."""
EFFORT = 5
"""How many configurations are looked at for each further explanation of an answer, if not all of them are wanted."""
BRISK_LIMIT = 2_000
"""The same where many short traces are judged, most of which need no search at all."""
SKEW_MS = 100
"""How far apart requests may be sent for their order to be left out of account when timers are set."""
TICK_MS = 2
"""By how much a time between two requests may look too short, as clocks count whole milliseconds on both sides."""

CONCURRENT = frozenset({51})
"""The transaction coordinator, asked beforehand, is still ending the producer's last transaction (KIP-890)."""
AT_ONCE = frozenset(
    {
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_GROUP_ID,
        Error.INVALID_SESSION_TIMEOUT,
        Error.MEMBER_ID_REQUIRED,
        Error.GROUP_MAX_SIZE_REACHED,
    }
)
"""Errors that refuse a JoinGroup at once or not at all."""


class Undecided(Exception):
    """The search grew beyond its bound."""


@dataclass(slots=True)
class Search:
    """All explanations of what was seen of one group."""

    group: str
    cluster: Cluster
    order: Order
    grace: int
    configurations: list[Configuration]
    parts: dict[int, Part] = field(default_factory=dict)
    issued: dict[str, int] = field(default_factory=dict)
    """Which request every member id was made up for (LAT-01)."""
    was_restarted: bool = False
    width: int | None = None
    """How many explanations to keep of one answer; None for all of them."""
    narrowed: bool = False
    """There were more than that, so finding none later proves nothing."""
    unsettled: int = 0
    """How many requests and answers the trails of the configurations go back."""
    limit: int = LIMIT
    prompt: bool = False
    """A first pass over what clients saw: most likely every request was handled as soon as it was sent."""
    lenient: bool = False
    """Wave differing answers through and note them: only to explain a failure."""

    # --- events -------------------------------------------------------------------------------------------------

    def sent(self, part: Part) -> list[Configuration]:
        """A request was sent, or arrived; returns the configurations that explain it."""
        operation = part.operation
        self.parts[operation.handle] = part
        if self.order is Order.INTERVALS:
            begun = [
                self.at_once(alter(one, waiting=one.waiting | {operation.handle}), operation.handle, operation.sent)
                for one in self.configurations
            ]
            return promptly(self, begun, operation) if self.prompt else begun
        if len(self.configurations) == 1:
            only = straight(self, self.configurations[0], part)
            if only is not None:
                return [only]
        found = [
            after
            for one in self.configurations
            for ready in self.brought_up_to(one, operation.sent)
            for after in self.handled(ready, part, operation.sent)
        ]
        return found if len(found) < 2 else united(found)

    def answered(self, part: Part, time: int) -> list[Configuration]:
        """An answer was seen; returns the configurations that explain it."""
        number = part.operation.handle
        if self.prompt:
            told = [after for one in self.configurations for after in self.delivered(one, part) or ()]
            if told:
                self.narrowed |= len(self.configurations) > 1
                self.parts.pop(number, None)
                return united(told)
        if len(self.configurations) == 1:
            settled = self.delivered(self.configurations[0], part)
            if settled:
                self.parts.pop(number, None)
                return settled
        found: dict[Configuration, None] = {}
        stack = self.configurations[::-1]
        # Those that have the answer already come first: they may be the plainer way to where others lead.
        stack.sort(key=lambda one: self.delivered(one, part) is not None)
        known, followed = set(stack), 0
        while stack:
            if self.width is not None and (
                len(found) >= self.width or (found and (followed > EFFORT * self.width or self.prompt))
            ):
                self.narrowed = True
                break
            one = stack.pop()
            followed += 1
            settled = self.delivered(one, part)
            if settled is not None:
                found.update(dict.fromkeys(settled))
                continue
            rested = dict.fromkeys(self.rested(each, time) for each in self.moves(one, time, number))
            after = [each for each in rested if each not in known]
            known.update(after)
            stack.extend(reversed(after))
            if len(known) > self.limit:
                self.narrowed |= self.prompt
                raise Undecided(f"more than {self.limit} explanations of one answer")
        if found:
            self.parts.pop(number, None)
        return united(found)

    def lost(self, part: Part) -> None:
        """Nobody will see the answer of this operation; it may still be handled."""
        part.operation.lost = True

    # --- moves --------------------------------------------------------------------------------------------------

    def moves(self, one: Configuration, time: int, wanted: int) -> Iterator[Configuration]:
        """What may have happened next, no later than `time`."""
        for number in sorted(one.waiting, key=lambda each: each != wanted):
            yield from self.linearised(one, number, time)
        for due in timers(one.world):
            if low(due.deadline) <= time:
                yield from self.fired(one, due, time)
        yield from moved(self, one, time, wanted)

    def linearised(self, one: Configuration, number: int, time: int) -> Iterator[Configuration]:
        """A waiting request is handled, unless a timer must have fired before."""
        part = self.parts[number]
        earliest = max(one.clock, part.operation.sent)
        if any(high(due.deadline) + self.grace < earliest for due in timers(one.world)):
            return
        # The bounds go by the request, not by the path to it, so that paths in another order meet again.
        first = part.operation.sent if earliest - part.operation.sent < SKEW_MS else earliest
        answered = part.operation.answered
        if answered is None or answered > earliest + 2 * self.grace:
            answered = earliest + self.grace
        latest = max(first, answered)
        now = Span(first - TICK_MS, latest)
        yield from self.handled(alter(one, waiting=one.waiting - {number}), part, now)

    def rested(self, one: Configuration, time: int) -> Configuration:
        """The configuration with every waiting request handled of which nobody can tell when it was."""
        for number in sorted(one.waiting):
            one = self.at_once(one, number, time)
        return one

    def at_once(self, one: Configuration, number: int, time: int) -> Configuration:
        """The configuration with this request handled, if nobody can tell when it was; else as it is."""
        part = self.parts[number]
        if one.loading or self.lenient or not may_rest(part.operation.api, part.operation.answer):
            return one
        for after in self.linearised(one, number, time):
            rule = after.trail.rule if after.trail is not None else ""
            if after.decisions == one.decisions and rests(one.world, part.request, rule, after.world):
                return alter(after, clock=one.clock)
        return one

    def brought_up_to(self, start: Configuration, time: int) -> Iterator[Configuration]:
        """The configuration with every timer fired that must be, and with or without those that may."""
        if time < min(map(low, deadlines(start.world)), default=time + 1):
            yield start
            return
        known, stack = {start}, [start]
        while stack:
            one = stack.pop()
            dues = [due for due in timers(one.world) if low(due.deadline) <= time]
            if all(high(due.deadline) + self.grace >= time for due in dues):
                yield one
            for due in dues:
                for after in self.fired(one, due, time):
                    if after not in known:
                        known.add(after)
                        stack.append(after)
            if len(known) > LIMIT:
                raise Undecided(f"more than {LIMIT} orders of timers")

    def fired(self, one: Configuration, due: Due, time: int) -> Iterator[Configuration]:
        """A timer fires."""
        earliest = max(one.clock, low(due.deadline))
        if any(high(other.deadline) + self.grace < earliest for other in timers(one.world)):
            return
        latest = max(earliest, min(time, high(due.deadline) + self.grace))
        now: Moment = earliest if earliest == latest else Span(earliest, latest)

        def run(choices: Choices, dialect: Dialect) -> Outcome:
            return fire(one.world, due, self.context(now, choices, dialect))

        at = alter(one, clock=earliest)
        yield from self.outcomes(at, run, 0, None, now)

    def handled(self, one: Configuration, part: Part, now: Moment) -> Iterator[Configuration]:
        """A request is handled now."""
        for start in self.swept(one, part, now):
            yield from self.handled_in(start, part, now)
        yield from excused(self, one, part, now)

    def handled_in(self, one: Configuration, part: Part, now: Moment) -> Iterator[Configuration]:
        """A request is handled in this very world."""
        request, operation = part.request, part.operation
        unsettled = isinstance(request, TransactionalCommit) and errors_in(operation.answer or {}) == CONCURRENT
        if unsettled or (isinstance(request, EndTransaction) and (operation.answer or {}).get("error_code")):
            # The transaction coordinator is not what is judged here.
            yield alter(one, given=one.given | {operation.handle})
            return

        ready = ready_by(one, now)

        def run(choices: Choices, dialect: Dialect) -> Outcome:
            return handle(ready.world, request, self.context(now, choices, dialect), self.cluster)

        outcomes = self.outcomes(ready, run, operation.handle, self.new_id(operation), now)
        if not (self.lenient and self.let_in(part)):
            yield from outcomes
            return
        for after in outcomes:
            if after.trail is not None and after.trail.rule == "join.id-required":
                yield from self.admitted(ready, part, now)
            else:
                yield after

    @staticmethod
    def let_in(part: Part) -> bool:
        """A dynamic member without an id was let in although its version has it ask for one first."""
        if not isinstance(part.request, Join) or part.operation.answer is None:
            return False
        core = part.request.core
        new = core.requires_id and core.member is None and core.instance is None
        return new and part.operation.answer.get("error_code") == 0

    def admitted(self, one: Configuration, part: Part, now: Moment) -> Iterator[Configuration]:
        """Such a member: wrong, but one can go on from there."""
        request = part.request
        assert isinstance(request, Join)
        fault = Fault(part.operation.handle, frozenset({"error"}), None, "join.id-required", one.world)
        eager = alter(request, core=alter(request.core, requires_id=False))

        def run(choices: Choices, dialect: Dialect) -> Outcome:
            return handle(one.world, eager, self.context(now, choices, dialect), self.cluster)

        noted = alter(one, faults=(*one.faults, fault))
        yield from self.outcomes(noted, run, part.operation.handle, self.new_id(part.operation), now)

    def swept(self, one: Configuration, part: Part, now: Moment) -> Iterator[Configuration]:
        """The configuration, and the same after a clean-up pass that the request may find has taken place."""
        yield one
        trail = Trail("clean-up", 0, one.trail)
        for world in removals(one, part, high(now), self.cluster):
            yield alter(one, world=world, swept=one.clock, trail=trail)

    # --- outcomes -----------------------------------------------------------------------------------------------

    def context(self, now: Moment, choices: Choices, dialect: Dialect) -> Context:
        """The context of a step."""
        settings = self.cluster.settings
        return Context(
            now,
            choices,
            dialect,
            settings.max_group_size,
            settings.initial_rebalance_delay,
            settings.new_member_timeout,
        )

    def new_id(self, operation: Operation) -> Any:
        """The id made up for this request: the one its answer shows, or one still unknown."""
        if operation.api != "JoinGroup":
            return None
        shown = operation.answer.get("member_id") if operation.answer is not None else None
        if not shown or not isinstance(shown, str):
            return Fresh(operation.handle)
        return shown

    def outcomes(
        self, one: Configuration, run: Run, number: int, member_id: Any, now: Moment
    ) -> Iterator[Configuration]:
        """The configurations after a step, over all choices and dialects, as far as they fit what was seen."""
        leaders, protocols = self.hints(one, number)
        for outcome, decisions in in_choices(run, one.world, member_id, leaders, protocols, one.decisions):
            for after in self.absorbed(one, outcome, number, now):
                yield alter(after, decisions=decisions) if decisions is not one.decisions else after

    def hints(self, one: Configuration, number: int) -> tuple[list[str], list[str]]:
        """Leaders and protocols named in the answers that parked joins are known to get."""
        group, asked = one.world.group, self.parts.get(number)
        joins = asked is None or asked.operation.api == "JoinGroup"
        if not joins and (group is None or group.phase is not Phase.PREPARING):
            return [], []
        numbers = [slot.join for slot in group.slots if slot.join] if group is not None else []
        leaders: dict[str, None] = {}
        protocols: dict[str, None] = {}
        for each in (*numbers, number):
            part = self.parts.get(each)
            if part is not None and part.operation.api == "JoinGroup" and part.operation.answer is not None:
                body = part.operation.answer
                if body.get("error_code") == 0 and isinstance(body.get("leader"), str):
                    leaders[body["leader"]] = None
                    protocols[body.get("protocol_name") or ""] = None
        return list(leaders), list(protocols)

    def absorbed(self, one: Configuration, outcome: Outcome, number: int, now: Moment) -> Iterator[Configuration]:
        """The configurations after an outcome: none if an answer that is known differs from it."""
        if self.width is not None and self.order is Order.INTERVALS and self.is_hopeless(outcome, number):
            self.narrowed = True
            return
        doubtful = doubted(one, outcome.world, high(now), self.cluster.settings.offsets_retention)
        handled = self.parts.get(number)
        clock = one.clock if handled is None else max(one.clock, handled.operation.sent)
        request = handled.request if handled is not None else None
        world = outcome.world
        if self.order is Order.INTERVALS and world.group is not one.world.group:
            world = tidied(world, one.world.group, 2 * self.grace)
        trail = Trail(outcome.rule, number, one.trail, one.world, outcome, request)
        states = [alter(one, world=world, clock=clock, doubtful=doubtful, trail=trail)]
        for reply in outcome.replies:
            part = self.parts.get(reply.handle)
            if part is not None and not (part.operation.lost and part.operation.answer is None):
                states = [
                    after for state in states for after in self.replied(state, part, reply.answer, outcome.rule, now)
                ]
        yield from states

    def is_hopeless(self, outcome: Outcome, number: int) -> bool:
        """The request is a JoinGroup that parks now, but its answer cannot come of that.

        It would not fit in the end; seen here, it spares the search everything up to the end of the join phase. To
        say which answer is wrong one has to get there, though.
        """
        part, group = self.parts.get(number), outcome.world.group
        if part is None or group is None or part.operation.answer is None or part.operation.api != "JoinGroup":
            return False
        parked = next((slot for slot in group.slots if slot.join == number), None)
        if parked is None:
            return False
        body = part.operation.answer
        if body.get("error_code") != Error.NONE:
            return body.get("error_code") in AT_ONCE
        usurped = parked.id == group.leader != body.get("leader")
        return usurped or body.get("generation_id") != group.generation + 1

    def replied(
        self, one: Configuration, part: Part, expected: Answer, rule: str, now: Moment
    ) -> Iterator[Configuration]:
        """The configuration once the model has given an answer, as far as it fits the one that was seen."""
        operation = part.operation
        if operation.answer is None:
            yield alter(one, unseen=(*one.unseen, (operation.handle, expected)))
            return
        late = operation.answered is not None and operation.answered > high(now) + self.grace
        for difference in self.differences(part, expected):
            hard = frozenset(difference.hard | {"time"} if late else difference.hard)
            if hard and not self.lenient:
                continue
            fault = (Fault(operation.handle, hard, expected, rule, one.world),) if hard else ()
            after = noted(renamed(one, difference.shown), operation.handle, difference)
            yield alter(after, given=one.given | {operation.handle}, faults=(*one.faults, *fault))

    def differences(self, part: Part, expected: Answer) -> Iterator[Difference]:
        """Hold an answer seen against the one expected, and against all ids ever made up."""
        operation = part.operation
        assert operation.answer is not None
        seen = Seen(operation.api, operation.version, operation.body, operation.answer, self.group, self.cluster.names)
        for difference in compare(expected, seen):
            if operation.api == "JoinGroup" and not operation.body.get("member_id"):
                shown = operation.answer.get("member_id")
                if shown and self.issued.setdefault(shown, operation.handle) != operation.handle:
                    difference.hard.add("member")
            yield difference

    def delivered(self, one: Configuration, part: Part) -> list[Configuration] | None:
        """The configurations once the answer was seen; None if it has yet to be given."""
        number = part.operation.handle
        if number in one.given:
            return [alter(one, given=one.given - {number})]
        for position, (each, expected) in enumerate(one.unseen):
            if each == number:
                rest = alter(one, unseen=one.unseen[:position] + one.unseen[position + 1 :])
                return [
                    noted(renamed(rest, difference.shown), number, difference)
                    for difference in self.differences(part, expected)
                    if not difference.hard
                ]
        return None
