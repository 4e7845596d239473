"""The search over what one group may have gone through, event by event.

Seen at the coordinator, a request is handled at its event; seen at clients, at some moment before its answer, in any
order that explains all answers (LAT-07). Timers fire as they come due.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.internal_actions import ArmedTimer, armed_deadlines, armed_timers, fire_timer
from fencepost.model.classic.coordinator.state import Cluster, StepResult
from fencepost.model.classic.core.state import Choices, Context, Phase
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages.requests import EndTxn, JoinGroup, TxnOffsetCommit
from fencepost.model.classic.messages.responses import Response
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.traces.events import Order
from fencepost.traces.judge.classic.failover import handle_during_failover, load_on_other_node
from fencepost.traces.judge.classic.matching import FreshId, ObservedResponse, ResponseDifference, compare_responses
from fencepost.traces.judge.classic.nondeterminism import StepFunction, outcomes_over_choices
from fencepost.traces.judge.classic.offset_expiry import maybe_expired_offsets, states_after_cleanup
from fencepost.traces.judge.classic.reduction import is_commutative, may_commute
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.search.configuration import (
    Configuration,
    GroupOperation,
    Mismatch,
    Path,
    finish_loading,
    merge_decisions,
    normalize_members,
    resolve_ids,
    with_unusual_fields,
)
from fencepost.traces.judge.search.eager import linearize_eagerly
from fencepost.traces.judge.search.fast_path import take_fast_path
from fencepost.traces.judge.search.time_interval import Instant, TimeInterval, high, low
from fencepost.traces.operations import Operation

MAX_CONFIGURATIONS = 20_000
"""How many configurations one answer may need before the judge gives up: inconclusive, never a verdict."""
MAX_EXPANSIONS_PER_MATCH = 5
"""How many configurations are looked at for each further explanation of an answer, if not all of them are wanted."""
MAX_EAGER_CONFIGURATIONS = 2_000
"""The same where many short traces are judged, most of which need no search at all."""
REORDER_WINDOW_MS = 100
"""How far apart requests may be sent for their order to be left out of account when timers are set."""
CLOCK_RESOLUTION_MS = 2
"""By how much a time between two requests may look too short, as clocks count whole milliseconds on both sides."""

CONCURRENT_TRANSACTIONS = frozenset({51})
"""The transaction coordinator, asked beforehand, is still ending the producer's last transaction (KIP-890)."""
IMMEDIATE_JOIN_ERRORS = frozenset(
    {
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_GROUP_ID,
        Error.INVALID_SESSION_TIMEOUT,
        Error.MEMBER_ID_REQUIRED,
        Error.GROUP_MAX_SIZE_REACHED,
    }
)
"""Errors that refuse a JoinGroup at once or not at all."""


class SearchLimitExceeded(Exception):
    """The search grew beyond its bound."""


@dataclass(slots=True)
class Search:
    """All explanations of what was seen of one group."""

    group: str
    cluster: Cluster
    order: Order
    grace: int
    configurations: list[Configuration]
    open_operations: dict[int, GroupOperation] = field(default_factory=dict)
    issued_ids: dict[str, int] = field(default_factory=dict)
    """Which request every member id was made up for (LAT-01)."""
    was_restarted: bool = False
    beam_width: int | None = None
    """How many explanations to keep of one answer; None for all of them."""
    truncated: bool = False
    """There were more than that, so finding none later proves nothing."""
    pending_steps: int = 0
    """How many requests and answers the trails of the configurations go back."""
    max_configurations: int = MAX_CONFIGURATIONS
    eager: bool = False
    """A first pass over what clients saw: most likely every request was handled as soon as it was sent."""
    allow_mismatches: bool = False
    """Wave differing answers through and note them: only to explain a failure."""

    # --- events -------------------------------------------------------------------------------------------------

    def on_request(self, part: GroupOperation) -> list[Configuration]:
        """A request was sent, or arrived; returns the configurations that explain it."""
        operation = part.operation
        self.open_operations[operation.handle] = part
        if self.order is Order.INTERVALS:
            begun = [
                self.linearize_if_commuting(
                    evolve(one, waiting=one.waiting | {operation.handle}), operation.handle, operation.sent_at
                )
                for one in self.configurations
            ]
            return linearize_eagerly(self, begun, operation) if self.eager else begun
        if len(self.configurations) == 1:
            only = take_fast_path(self, self.configurations[0], part)
            if only is not None:
                return [only]
        found = [
            after
            for one in self.configurations
            for ready in self.advance_to(one, operation.sent_at)
            for after in self.handle_request(ready, part, operation.sent_at)
        ]
        return found if len(found) < 2 else merge_decisions(found)

    def on_response(self, part: GroupOperation, time: int) -> list[Configuration]:
        """An answer was seen; returns the configurations that explain it."""
        number = part.operation.handle
        if self.eager:
            told = [after for one in self.configurations for after in self.deliver(one, part) or ()]
            if told:
                self.truncated |= len(self.configurations) > 1
                self.open_operations.pop(number, None)
                return merge_decisions(told)
        if len(self.configurations) == 1:
            settled = self.deliver(self.configurations[0], part)
            if settled:
                self.open_operations.pop(number, None)
                return settled
        found: dict[Configuration, None] = {}
        stack = self.configurations[::-1]
        # Those that have the answer already come first: they may be the plainer way to where others lead.
        stack.sort(key=lambda one: self.deliver(one, part) is not None)
        known, followed = set(stack), 0
        while stack:
            if self.beam_width is not None and (
                len(found) >= self.beam_width
                or (found and (followed > MAX_EXPANSIONS_PER_MATCH * self.beam_width or self.eager))
            ):
                self.truncated = True
                break
            one = stack.pop()
            followed += 1
            settled = self.deliver(one, part)
            if settled is not None:
                found.update(dict.fromkeys(settled))
                continue
            rested = dict.fromkeys(self.linearize_commuting(each, time) for each in self.successors(one, time, number))
            after = [each for each in rested if each not in known]
            known.update(after)
            stack.extend(reversed(after))
            if len(known) > self.max_configurations:
                self.truncated |= self.eager
                raise SearchLimitExceeded(f"more than {self.max_configurations} explanations of one answer")
        if found:
            self.open_operations.pop(number, None)
        return merge_decisions(found)

    def mark_lost(self, part: GroupOperation) -> None:
        """Nobody will see the answer of this operation; it may still be handled."""
        part.operation.lost = True

    # --- moves --------------------------------------------------------------------------------------------------

    def successors(self, configuration: Configuration, time: int, wanted: int) -> Iterator[Configuration]:
        """What may have happened next, no later than `time`."""
        for number in sorted(configuration.waiting, key=lambda each: each != wanted):
            yield from self.linearize(configuration, number, time)
        for due in armed_timers(configuration.world):
            if low(due.deadline) <= time:
                yield from self.fire_timer(configuration, due, time)
        yield from load_on_other_node(self, configuration, time, wanted)

    def linearize(self, configuration: Configuration, number: int, time: int) -> Iterator[Configuration]:
        """A waiting request is handled, unless a timer must have fired before."""
        part = self.open_operations[number]
        earliest = max(configuration.clock, part.operation.sent_at)
        if any(high(due.deadline) + self.grace < earliest for due in armed_timers(configuration.world)):
            return
        # The bounds go by the request, not by the path to it, so that paths in another order meet again.
        first = part.operation.sent_at if earliest - part.operation.sent_at < REORDER_WINDOW_MS else earliest
        answered = part.operation.responded_at
        if answered is None or answered > earliest + 2 * self.grace:
            answered = earliest + self.grace
        latest = max(first, answered)
        now = TimeInterval(first - CLOCK_RESOLUTION_MS, latest)
        yield from self.handle_request(evolve(configuration, waiting=configuration.waiting - {number}), part, now)

    def linearize_commuting(self, configuration: Configuration, time: int) -> Configuration:
        """The configuration with every waiting request handled of which nobody can tell when it was."""
        for number in sorted(configuration.waiting):
            configuration = self.linearize_if_commuting(configuration, number, time)
        return configuration

    def linearize_if_commuting(self, configuration: Configuration, number: int, time: int) -> Configuration:
        """The configuration with this request handled, if nobody can tell when it was; else as it is."""
        part = self.open_operations[number]
        if (
            configuration.loading
            or self.allow_mismatches
            or not may_commute(part.operation.api, part.operation.response)
        ):
            return configuration
        for after in self.linearize(configuration, number, time):
            rule = after.path.rule if after.path is not None else ""
            if after.decisions == configuration.decisions and is_commutative(
                configuration.world, part.request, rule, after.world
            ):
                return evolve(after, clock=configuration.clock)
        return configuration

    def advance_to(self, start: Configuration, time: int) -> Iterator[Configuration]:
        """The configuration with every timer fired that must be, and with or without those that may."""
        if time < min(map(low, armed_deadlines(start.world)), default=time + 1):
            yield start
            return
        known, stack = {start}, [start]
        while stack:
            one = stack.pop()
            dues = [due for due in armed_timers(one.world) if low(due.deadline) <= time]
            if all(high(due.deadline) + self.grace >= time for due in dues):
                yield one
            for due in dues:
                for after in self.fire_timer(one, due, time):
                    if after not in known:
                        known.add(after)
                        stack.append(after)
            if len(known) > MAX_CONFIGURATIONS:
                raise SearchLimitExceeded(f"more than {MAX_CONFIGURATIONS} orders of timers")

    def fire_timer(self, configuration: Configuration, due: ArmedTimer, time: int) -> Iterator[Configuration]:
        """A timer fires."""
        earliest = max(configuration.clock, low(due.deadline))
        if any(high(other.deadline) + self.grace < earliest for other in armed_timers(configuration.world)):
            return
        latest = max(earliest, min(time, high(due.deadline) + self.grace))
        now: Instant = earliest if earliest == latest else TimeInterval(earliest, latest)

        def run(choices: Choices, dialect: Dialect) -> StepResult:
            return fire_timer(configuration.world, due, self.step_context(now, choices, dialect))

        at = evolve(configuration, clock=earliest)
        yield from self.successors_by_step(at, run, 0, None, now)

    def handle_request(
        self, configuration: Configuration, part: GroupOperation, now: Instant
    ) -> Iterator[Configuration]:
        """A request is handled now."""
        for start in self.with_cleanup(configuration, part, now):
            yield from self.handle_in_state(start, part, now)
        yield from handle_during_failover(self, configuration, part, now)

    def handle_in_state(
        self, configuration: Configuration, part: GroupOperation, now: Instant
    ) -> Iterator[Configuration]:
        """A request is handled in this very world."""
        request, operation = part.request, part.operation
        unsettled = (
            isinstance(request, TxnOffsetCommit) and errors_in(operation.response or {}) == CONCURRENT_TRANSACTIONS
        )
        if unsettled or (isinstance(request, EndTxn) and (operation.response or {}).get("error_code")):
            # The transaction coordinator is not what is judged here.
            yield evolve(configuration, matched=configuration.matched | {operation.handle})
            return

        ready = finish_loading(configuration, now)

        def run(choices: Choices, dialect: Dialect) -> StepResult:
            return handle_request(ready.world, request, self.step_context(now, choices, dialect), self.cluster)

        outcomes = self.successors_by_step(ready, run, operation.handle, self.member_id_for(operation), now)
        if not (self.allow_mismatches and self.is_admitted_without_id(part)):
            yield from outcomes
            return
        for after in outcomes:
            if after.path is not None and after.path.rule == "join.id-required":
                yield from self.admit_without_id(ready, part, now)
            else:
                yield after

    @staticmethod
    def is_admitted_without_id(part: GroupOperation) -> bool:
        """A dynamic member without an id was let in although its version has it ask for one first."""
        if not isinstance(part.request, JoinGroup) or part.operation.response is None:
            return False
        core = part.request.core
        new = core.requires_id and core.member is None and core.instance is None
        return new and part.operation.response.get("error_code") == 0

    def admit_without_id(
        self, configuration: Configuration, part: GroupOperation, now: Instant
    ) -> Iterator[Configuration]:
        """Such a member: wrong, but one can go on from there."""
        request = part.request
        assert isinstance(request, JoinGroup)
        fault = Mismatch(part.operation.handle, frozenset({"error"}), None, "join.id-required", configuration.world)
        eager = evolve(request, core=evolve(request.core, requires_id=False))

        def run(choices: Choices, dialect: Dialect) -> StepResult:
            return handle_request(configuration.world, eager, self.step_context(now, choices, dialect), self.cluster)

        noted = evolve(configuration, mismatches=(*configuration.mismatches, fault))
        yield from self.successors_by_step(noted, run, part.operation.handle, self.member_id_for(part.operation), now)

    def with_cleanup(self, configuration: Configuration, part: GroupOperation, now: Instant) -> Iterator[Configuration]:
        """The configuration, and the same after a clean-up pass that the request may find has taken place."""
        yield configuration
        trail = Path("clean-up", 0, configuration.path)
        for world in states_after_cleanup(configuration, part, high(now), self.cluster):
            yield evolve(configuration, world=world, last_cleanup=configuration.clock, path=trail)

    # --- outcomes -----------------------------------------------------------------------------------------------

    def step_context(self, now: Instant, choices: Choices, dialect: Dialect) -> Context:
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

    def member_id_for(self, operation: Operation) -> Any:
        """The id made up for this request: the one its answer shows, or one still unknown."""
        if operation.api != "JoinGroup":
            return None
        shown = operation.response.get("member_id") if operation.response is not None else None
        if not shown or not isinstance(shown, str):
            return FreshId(operation.handle)
        return shown

    def successors_by_step(
        self, configuration: Configuration, run: StepFunction, number: int, member_id: Any, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after a step, over all choices and dialects, as far as they fit what was seen."""
        leaders, protocols = self.candidate_choices(configuration, number)
        for outcome, decisions in outcomes_over_choices(
            run, configuration.world, member_id, leaders, protocols, configuration.decisions
        ):
            for after in self.apply(configuration, outcome, number, now):
                yield evolve(after, decisions=decisions) if decisions is not configuration.decisions else after

    def candidate_choices(self, configuration: Configuration, number: int) -> tuple[list[str], list[str]]:
        """Leaders and protocols named in the answers that parked joins are known to get."""
        group, asked = configuration.world.group, self.open_operations.get(number)
        joins = asked is None or asked.operation.api == "JoinGroup"
        if not joins and (group is None or group.phase is not Phase.PREPARING):
            return [], []
        numbers = [slot.join for slot in group.slots if slot.join] if group is not None else []
        leaders: dict[str, None] = {}
        protocols: dict[str, None] = {}
        for each in (*numbers, number):
            part = self.open_operations.get(each)
            if part is not None and part.operation.api == "JoinGroup" and part.operation.response is not None:
                body = part.operation.response
                if body.get("error_code") == 0 and isinstance(body.get("leader"), str):
                    leaders[body["leader"]] = None
                    protocols[body.get("protocol_name") or ""] = None
        return list(leaders), list(protocols)

    def apply(
        self, configuration: Configuration, outcome: StepResult, number: int, now: Instant
    ) -> Iterator[Configuration]:
        """The configurations after an outcome: none if an answer that is known differs from it."""
        if self.beam_width is not None and self.order is Order.INTERVALS and self.is_dead_end(outcome, number):
            self.truncated = True
            return
        doubtful = maybe_expired_offsets(
            configuration, outcome.state, high(now), self.cluster.settings.offsets_retention
        )
        handled = self.open_operations.get(number)
        clock = configuration.clock if handled is None else max(configuration.clock, handled.operation.sent_at)
        request = handled.request if handled is not None else None
        world = outcome.state
        if self.order is Order.INTERVALS and world.group is not configuration.world.group:
            world = normalize_members(world, configuration.world.group, 2 * self.grace)
        trail = Path(outcome.rule, number, configuration.path, configuration.world, outcome, request)
        states = [evolve(configuration, world=world, clock=clock, maybe_expired=doubtful, path=trail)]
        for reply in outcome.replies:
            part = self.open_operations.get(reply.handle)
            if part is not None and not (part.operation.lost and part.operation.response is None):
                states = [
                    after
                    for state in states
                    for after in self.match_response(state, part, reply.response, outcome.rule, now)
                ]
        yield from states

    def is_dead_end(self, outcome: StepResult, number: int) -> bool:
        """The request is a JoinGroup that parks now, but its answer cannot come of that.

        It would not fit in the end; seen here, it spares the search everything up to the end of the join phase. To
        say which answer is wrong one has to get there, though.
        """
        part, group = self.open_operations.get(number), outcome.state.group
        if part is None or group is None or part.operation.response is None or part.operation.api != "JoinGroup":
            return False
        parked = next((slot for slot in group.slots if slot.join == number), None)
        if parked is None:
            return False
        body = part.operation.response
        if body.get("error_code") != Error.NONE:
            return body.get("error_code") in IMMEDIATE_JOIN_ERRORS
        usurped = parked.id == group.leader != body.get("leader")
        return usurped or body.get("generation_id") != group.generation + 1

    def match_response(
        self, configuration: Configuration, part: GroupOperation, expected: Response, rule: str, now: Instant
    ) -> Iterator[Configuration]:
        """The configuration once the model has given an answer, as far as it fits the one that was seen."""
        operation = part.operation
        if operation.response is None:
            yield evolve(configuration, predicted=(*configuration.predicted, (operation.handle, expected)))
            return
        late = operation.responded_at is not None and operation.responded_at > high(now) + self.grace
        for difference in self.compare_response(part, expected):
            hard = frozenset(difference.required | {"time"} if late else difference.required)
            if hard and not self.allow_mismatches:
                continue
            fault = (Mismatch(operation.handle, hard, expected, rule, configuration.world),) if hard else ()
            after = with_unusual_fields(resolve_ids(configuration, difference.fresh_ids), operation.handle, difference)
            yield evolve(
                after,
                matched=configuration.matched | {operation.handle},
                mismatches=(*configuration.mismatches, *fault),
            )

    def compare_response(self, part: GroupOperation, expected: Response) -> Iterator[ResponseDifference]:
        """Hold an answer seen against the one expected, and against all ids ever made up."""
        operation = part.operation
        assert operation.response is not None
        seen = ObservedResponse(
            operation.api, operation.version, operation.body, operation.response, self.group, self.cluster.names
        )
        for difference in compare_responses(expected, seen):
            if operation.api == "JoinGroup" and not operation.body.get("member_id"):
                shown = operation.response.get("member_id")
                if shown and self.issued_ids.setdefault(shown, operation.handle) != operation.handle:
                    difference.required.add("member")
            yield difference

    def deliver(self, configuration: Configuration, part: GroupOperation) -> list[Configuration] | None:
        """The configurations once the answer was seen; None if it has yet to be given."""
        number = part.operation.handle
        if number in configuration.matched:
            return [evolve(configuration, matched=configuration.matched - {number})]
        for position, (each, expected) in enumerate(configuration.predicted):
            if each == number:
                rest = evolve(
                    configuration,
                    predicted=configuration.predicted[:position] + configuration.predicted[position + 1 :],
                )
                return [
                    with_unusual_fields(resolve_ids(rest, difference.fresh_ids), number, difference)
                    for difference in self.compare_response(part, expected)
                    if not difference.required
                ]
        return None
