"""The diagnosis of a trace that the model cannot explain: the path with the fewest wrong responses."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any

from fencepost.model.errors import error_name
from fencepost.model.frozen import evolve
from fencepost.traces.events import Body
from fencepost.traces.judge.search.configuration import (
    Configuration,
    GroupOperation,
    Mismatch,
    Path,
    low,
    step_that_handles,
)
from fencepost.traces.judge.search.search import Search

# --- Words for a response that was seen, for any protocol.

HIDDEN_FIELDS = frozenset({"throttle_time_ms", "_findings", "error_message"})


def format_value(value: Any) -> str:
    """A value in words."""
    if isinstance(value, bytes):
        return f"{len(value)} bytes {value[:16].hex()}" if value else "no bytes"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={format_field(name, each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(format_value(each) for each in value) + "]"
    return repr(value)


def format_field(name: str, value: Any) -> str:
    """A field of a message in words: the name of an error, not its code."""
    return error_name(value) if name == "error_code" and isinstance(value, int) else format_value(value)


def format_observed(body: Body) -> str:
    """A response as it was seen, in words."""
    return ", ".join(f"{name}={format_field(name, value)}" for name, value in body.items() if name not in HIDDEN_FIELDS)


def errors_in(body: Body) -> set[int]:
    """Every error code in a response, at any depth; 0 only if there is no other."""
    found: set[int] = set()
    stack: list[Any] = [body]
    while stack:
        value = stack.pop()
        if isinstance(value, list | tuple):
            stack.extend(value)
        elif isinstance(value, dict):
            if value.get("error_code") is not None:
                found.add(value["error_code"])
            stack.extend(value.values())
    return found - {0} or found


def is_accepted(body: Body) -> bool:
    """Whether a response has no error."""
    return not errors_in(body) - {0}


MAX_EXPANSIONS = 400
"""How many configurations are expanded to diagnose one response."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The first wrong response, and the configuration after it if it is let pass.

    The state is ambiguous if several were possible before: the configuration is one of them.
    """

    mismatch: Mismatch
    after: Configuration | None = None
    is_state_ambiguous: bool = True
    path: Path | None = None
    """How the response came about."""

    @property
    def mismatches(self) -> tuple[Mismatch, ...]:
        """All wrong responses on the path, the first of them first."""
        return self.after.mismatches if self.after is not None and self.after.mismatches else (self.mismatch,)


@dataclass(frozen=True, slots=True)
class Belief:
    """The configurations to go on from after wrong responses, the likeliest first, and the responses that are
    tolerated.

    A tolerated one is wrong by itself, but the target goes by it from now on, and nothing else is the worse for it.
    """

    configurations: tuple[Configuration, ...]
    tolerated: tuple[Mismatch, ...] = ()
    is_certain: bool = True
    """Nothing else can have happened. Otherwise it is a guess, and what it does not explain blames nobody."""
    is_explained: bool = False
    """The response has an explanation but for its time."""


class Diagnoser:
    """Looks for the path with the fewest wrong responses, to name the first of them."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.stepper = search.stepper

    def diagnose(self, part: GroupOperation, time: int) -> Diagnosis:
        """The diagnosis of a response, seen at `time`, that no configuration explains."""
        self.stepper.allow_mismatches = True
        try:
            found = self.fewest_mismatches(part, time)
            if found is None or self.is_linearized_late(found, part) or self.is_of_next_round(found, part):
                found = Diagnosis(self.premature_response(part))
            return replace(found, is_state_ambiguous=len({one.world for one in self.search.configurations}) > 1)
        finally:
            self.stepper.allow_mismatches = False

    def is_early_success(self, found: Diagnosis, part: GroupOperation) -> bool:
        """Whether the diagnosis takes the request to be refused as it is handled, although it parks if it is handled at
        once and was not refused. Then its response is rather too early than that of a state which nobody has seen."""
        handle = part.operation.handle
        step = step_that_handles(found.path, handle)
        is_own = found.mismatch.handle == handle and step is not None and step.rule == found.mismatch.rule
        is_admitted = is_accepted(part.operation.response or {}) and "error" in found.mismatch.fields
        return is_own and is_admitted and self.parks_at_once(part)

    def is_linearized_late(self, found: Diagnosis, part: GroupOperation) -> bool:
        """Whether the diagnosis takes the request to be handled only after a timer fired, past the grace, although
        it parks if it is handled at once. Then its response is rather too early."""
        handle = part.operation.handle
        if found.mismatch.handle != handle or not self.parks_at_once(part):
            return False
        path = step_that_handles(found.path, handle)
        latest = part.operation.sent_at + self.stepper.grace
        while path is not None:
            path = path.previous
            if path is not None and path.request is None and path.start is not None:
                deadlines = map(low, self.stepper.armed_deadlines(path.start))
                if min(deadlines, default=latest) > latest:
                    return True
        return False

    def is_of_next_round(self, found: Diagnosis, part: GroupOperation) -> bool:
        """Whether the diagnosis has more to correct than the time of a response that tells of the round to come where
        the request is parked. Then that round rather came too early."""
        stepper, mismatch, body = self.stepper, found.mismatch, part.operation.response or {}
        if mismatch.handle != part.operation.handle or "generation" not in mismatch.fields:
            return False
        if sum(map(stepper.weight_of, mismatch.fields)) <= stepper.weight_of("time"):
            return False
        return any(stepper.is_of_next_round(one.world, body) for one in self.all_parked(part))

    def parks_at_once(self, part: GroupOperation) -> bool:
        """Whether the request is parked in some configuration, or would be if it were handled now."""
        return any(True for _ in self.all_parked(part))

    def all_parked(self, part: GroupOperation) -> Iterator[Configuration]:
        """The configurations in which the request is parked, those included in which it would be now."""
        for before in self.search.configurations:
            yield from self.parked_after(before, part)

    def parked_after(self, before: Configuration, part: GroupOperation) -> Iterator[Configuration]:
        """The configuration, and those once the request is handled, alone or after another one that waits, in which it
        is parked."""
        handle, time = part.operation.handle, part.operation.responded_at or part.operation.sent_at
        others = sorted(before.waiting - {handle}) if handle in before.waiting else ()
        ready = (after for other in others for after in self.stepper.linearize(before, other, time))
        for start in chain((before,), ready):
            for one in (start, *self.handle_waiting(start, part)):
                if self.stepper.is_parked(one.world, handle):
                    yield one

    def is_handled(self, part: GroupOperation) -> bool:
        """The request was handled in some configuration, or may be at any time."""
        handle = part.operation.handle
        return any(handle in one.waiting or self.has_handled(one, handle) for one in self.search.configurations)

    def has_handled(self, configuration: Configuration, handle: int) -> bool:
        """The request was handled in this configuration: it is parked or has its response."""
        if handle in configuration.matched or any(each == handle for each, _ in configuration.predicted):
            return True
        return self.stepper.is_parked(configuration.world, handle)

    def start_configurations(self, part: GroupOperation, *, arrived: bool) -> Sequence[Configuration]:
        """Where to look from. In a trace seen at the coordinator the request may just have `arrived`; or it was handled
        as the last one, maybe in a way that what is wrong in its response has ruled out."""
        search = self.search
        if arrived:
            return search.on_request(part)
        latest, before = search.latest_arrival
        if latest != part.operation.handle or not is_accepted(part.operation.response or {}):
            return search.configurations
        return list(dict.fromkeys((*search.configurations, *search.handle_at_arrival(before, part))))

    def fewest_mismatches(self, part: GroupOperation, time: int) -> Diagnosis | None:
        """Search best-first for a configuration that has the response, wrong responses let pass. One that gives another
        response costs as much as is wrong in this one. One that refuses what was accepted does not count if the
        request is parked in a state that is known."""
        order, handle = count(), part.operation.handle
        arrived = handle in self.search.open_operations and not self.is_handled(part)
        queue = [(self.cost_of(one), next(order), one) for one in self.start_configurations(part, arrived=arrived)]
        heapq.heapify(queue)
        known = {one for _, _, one in queue}
        nearest: tuple[tuple[int, int], Diagnosis] | None = None
        for _ in range(MAX_EXPANSIONS):
            if not queue or (nearest is not None and queue[0][0] >= nearest[0]):
                break
            _, _, one = heapq.heappop(queue)
            if arrived and one.mismatches:
                # The request, whose own response may be far away, brought a wrong one about.
                return Diagnosis(one.mismatches[0], one)
            settled = self.stepper.deliver(one, part)
            if settled and not one.mismatches:
                return None
            if settled is not None:
                found = (
                    Diagnosis(one.mismatches[0], settled[0], path=one.path)
                    if settled
                    else self.other_response(one, part)
                )
                cost = self.cost_of(one if settled else evolve(one, mismatches=(*one.mismatches, found.mismatch)))
                if (nearest is None or cost < nearest[0]) and not self.is_early_success(found, part):
                    nearest = cost, found
                continue
            for after in self.search.successors(one, time, handle):
                if after not in known:
                    known.add(after)
                    heapq.heappush(queue, (self.cost_of(after), next(order), after))
        return nearest[1] if nearest is not None else None

    def cost_of(self, configuration: Configuration) -> tuple[int, int]:
        """How much is wrong on the path to a configuration: the different kinds of it, however often; among equals, how
        much of it is unlikely."""
        unlikely = sum(self.stepper.is_unlikely(each) for each in configuration.mismatches)
        found = (each for each in configuration.mismatches if not each.is_certain)
        kinds = {(name, each.expected is None) for each in found for name in each.fields}
        return sum(self.stepper.weight_of(name) for name, _ in kinds), unlikely

    def other_response(self, configuration: Configuration, part: GroupOperation) -> Diagnosis:
        """The diagnosis where another response is given than the one seen."""
        handle = part.operation.handle
        expected = next(response for each, response in configuration.predicted if each == handle)
        fields = next(self.stepper.compare_response(part, expected)).required
        rule = configuration.path.rule if configuration.path else ""
        mismatch = Mismatch(handle, frozenset(fields), expected, rule, configuration.world)
        return Diagnosis(mismatch, path=configuration.path)

    def premature_response(self, part: GroupOperation) -> Mismatch:
        """The mismatch of a request that should still be parked; if it was refused instead, that is wrong as well."""
        refused = errors_in(part.operation.response or {}) - {0}
        return self.mismatch_without_response(part, "time", *(("error",) if refused else ()))

    def mismatch_without_response(self, part: GroupOperation, *fields: str) -> Mismatch:
        """The mismatch of a request that should have no response yet, with the rule that handled it."""
        handle = part.operation.handle
        for one in self.search.configurations:
            step = step_that_handles(one.path, handle)
            if step is not None:
                return Mismatch(handle, frozenset(fields), None, step.rule, one.world)
            if handle not in one.waiting:
                continue
            for after in chain(self.parked_after(one, part), self.handle_waiting(one, part)):
                if after.path is not None:
                    return Mismatch(handle, frozenset(fields), None, after.path.rule, after.world)
        configurations = self.search.configurations
        state = configurations[0].world if configurations else self.stepper.initial_state()
        return Mismatch(handle, frozenset(fields), None, "", state)

    def handle_waiting(self, configuration: Configuration, part: GroupOperation) -> Iterator[Configuration]:
        """The configurations once the request is handled, if it still waits."""
        operation = part.operation
        if operation.handle in configuration.waiting:
            time = operation.responded_at or operation.sent_at
            yield from self.stepper.linearize(configuration, operation.handle, time)
