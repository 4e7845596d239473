"""What went wrong: the path with the fewest wrong answers, and where one can go on after it."""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import HeartbeatResponse
from fencepost.model.classic.messages.responses import DescribeGroupResponse, ListGroupsResponse, OffsetFetchResponse
from fencepost.model.frozen import evolve
from fencepost.traces.events import Body
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Mismatch
from fencepost.traces.judge.search.search import Search

MAX_EXPANSIONS = 400
"""How far to look for the explanation of a failure."""
READ_ONLY_RESPONSES = (HeartbeatResponse, OffsetFetchResponse, DescribeGroupResponse, ListGroupsResponse)
"""Answers to requests that change nothing that matters."""
NO_EFFECT_RULES = frozenset({"sync.stable"})
"""Rules of others that change nothing."""
OFFSET_DETAIL_FIELDS = frozenset({"epoch", "metadata"})
"""What is stored beside an offset: wrong or not, the rest of the answer means the same."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong, and the state of the group if one waves it through."""

    mismatch: Mismatch
    after: Configuration | None = None

    @property
    def mismatches(self) -> tuple[Mismatch, ...]:
        """All wrong answers on the way, the first of them first."""
        return self.after.mismatches if self.after is not None and self.after.mismatches else (self.mismatch,)


class Diagnoser:
    """Looks for the path with the fewest wrong answers, to name the first of them."""

    def __init__(self, search: Search) -> None:
        self.search = search

    def diagnose(self, part: GroupOperation, time: int) -> Diagnosis:
        """The first answer that is wrong on the path that explains most."""
        search = self.search
        search.allow_mismatches = True
        try:
            return self.fewest_mismatches(part, time) or Diagnosis(self.premature_response(part))
        finally:
            search.allow_mismatches = False

    def start_configurations(self, part: GroupOperation) -> list[Configuration]:
        """Where to look from: for a trace seen at the coordinator the request may just have been handled."""
        search, number = self.search, part.operation.handle
        handled = any(number in one.waiting or self.has_handled(one, number) for one in search.configurations)
        return search.configurations if handled or number not in search.open_operations else search.on_request(part)

    @staticmethod
    def has_handled(configuration: Configuration, number: int) -> bool:
        """The request was handled in this configuration: it is parked or has its answer."""
        if number in configuration.matched or any(each == number for each, _ in configuration.predicted):
            return True
        group = configuration.world.group
        return group is not None and any(number in (slot.join, slot.sync) for slot in group.slots)

    def fewest_mismatches(self, part: GroupOperation, time: int) -> Diagnosis | None:
        """Best-first search over wrong answers waved through."""
        order = count()
        number = part.operation.handle
        starts = self.start_configurations(part)
        arrived = starts is not self.search.configurations
        queue = [(mismatch_cost(one), next(order), one) for one in starts]
        heapq.heapify(queue)
        known = {one for _, _, one in queue}
        for _ in range(MAX_EXPANSIONS):
            if not queue:
                return None
            _, _, one = heapq.heappop(queue)
            if arrived and one.mismatches:
                # The request, whose own answer may be far away, brought a wrong one about.
                return Diagnosis(one.mismatches[0], one)
            settled = self.search.deliver(one, part)
            if settled:
                return Diagnosis(one.mismatches[0], settled[0]) if one.mismatches else None
            if settled is not None:
                response = next(expected for each, expected in one.predicted if each == number)
                fields = next(self.search.compare_response(part, response)).required
                rule = one.path.rule if one.path else ""
                return Diagnosis(Mismatch(number, frozenset(fields), response, rule, one.world))
            for after in self.search.successors(one, time, number):
                if after not in known:
                    known.add(after)
                    heapq.heappush(queue, (mismatch_cost(after), next(order), after))
        return None

    def premature_response(self, part: GroupOperation) -> Mismatch:
        """The request should still be parked; if it was refused instead, that is wrong as well."""
        refused = errors_in(part.operation.response or {}) - {0}
        return self.mismatch_without_response(part, "time", *(("error",) if refused else ()))

    def mismatch_without_response(self, part: GroupOperation, *fields: str) -> Mismatch:
        """A fault of a request that has no answer, with the rule that handled it."""
        number = part.operation.handle
        for one in self.search.configurations:
            trail = one.path
            while trail is not None:
                if trail.handle == number:
                    return Mismatch(number, frozenset(fields), None, trail.rule, one.world)
                trail = trail.previous
            for after in self.handle_waiting(one, part):
                if after.path is not None:
                    return Mismatch(number, frozenset(fields), None, after.path.rule, one.world)
        world = self.search.configurations[0].world if self.search.configurations else GroupState()
        return Mismatch(number, frozenset(fields), None, "", world)

    def handle_waiting(self, configuration: Configuration, part: GroupOperation) -> Iterator[Configuration]:
        """The configuration once the request is handled, if it still waits."""
        operation = part.operation
        if operation.handle in configuration.waiting:
            yield from self.search.linearize(
                configuration, operation.handle, operation.responded_at or operation.sent_at
            )


def mismatch_cost(configuration: Configuration) -> int:
    """How much is wrong on the way to a configuration: the different kinds of it, however often.

    A member let in without an id does not count: that it is wrong is so on every way.
    """
    found = (each for each in configuration.mismatches if not is_admission(each))
    return len({(name, each.expected is None) for each in found for name in each.fields})


SAME_GENERATION_RULES = frozenset(
    {"join.completing.same-protocols", "join.stable.same-protocols", "join.replace.stable"}
)
"""Rules that tell a member the generation that the others are in already."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """The state to go on from after wrong answers, and which of them the target now simply goes by.

    Those are wrong by themselves, but nothing else that the answer shows is the worse for them: a number that it
    counts from, a member let in without an id, or what is stored beside an offset.
    """

    after: Configuration
    tolerated: tuple[Mismatch, ...] = ()


def is_admission(mismatch: Mismatch) -> bool:
    """A member was let in that should have been sent for an id."""
    return mismatch.expected is None and mismatch.rule == "join.id-required"


def is_generation_announced(configuration: Configuration, operations: Mapping[int, GroupOperation]) -> bool:
    """Another member was told the right generation."""
    assert configuration.world.group is not None
    responses = (operations[each].operation.response or {} for each in configuration.matched if each in operations)
    return any(each.get("generation_id") == configuration.world.group.generation for each in responses)


def recover(diagnosis: Diagnosis, body: Body, operations: Mapping[int, GroupOperation]) -> Recovery | None:
    """Where to go on after wrong answers, if that is beyond doubt; else None. `operations` are requests by handle.

    Either the answer was wrong and nothing depended on it, or the target goes by what it told from now on.
    """
    after = diagnosis.after
    if after is None:
        return None
    clean = evolve(after, mismatches=())
    rest = [each for each in after.mismatches if not is_admission(each)]
    if not rest:
        return Recovery(clean, after.mismatches)
    if all(each.fields == {"generation"} for each in rest) and clean.world.group is not None:
        if any(each.rule in SAME_GENERATION_RULES for each in rest) or is_generation_announced(clean, operations):
            return Recovery(clean)
        told = evolve(clean.world.group, generation=body.get("generation_id", -1))
        return Recovery(evolve(clean, world=evolve(clean.world, group=told)), after.mismatches)
    misfit = rest[0]
    if len(after.mismatches) != 1 or "time" in misfit.fields:
        return None
    if misfit.fields <= OFFSET_DETAIL_FIELDS:
        return Recovery(clean, (misfit,))
    refused = body.get("error_code") not in (None, 0) and getattr(misfit.expected, "error", 0) != 0
    unmoved = isinstance(misfit.expected, READ_ONLY_RESPONSES) or misfit.rule in NO_EFFECT_RULES
    return Recovery(clean) if refused or unmoved else None
