"""What went wrong: the path with the fewest wrong answers, and where one can go on after it."""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from fencepost.model.classic.coordinator.state import World
from fencepost.model.classic.core.state import HeartbeatAnswer
from fencepost.model.classic.messages.responses import Described, Fetched, Listed
from fencepost.model.frozen import alter
from fencepost.traces.events import Body
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.search.configuration import Configuration, Part
from fencepost.traces.judge.search.configuration import Fault as Misfit
from fencepost.traces.judge.search.search import Search

EXPANSIONS = 400
"""How far to look for the explanation of a failure."""
HARMLESS = (HeartbeatAnswer, Fetched, Described, Listed)
"""Answers to requests that change nothing that matters."""
UNMOVED = frozenset({"sync.stable"})
"""Rules of others that change nothing."""
ASIDE = frozenset({"epoch", "metadata"})
"""What is stored beside an offset: wrong or not, the rest of the answer means the same."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, and the state of the group if one waves it through."""

    misfit: Misfit
    after: Configuration | None = None

    @property
    def misfits(self) -> tuple[Misfit, ...]:
        """All wrong answers on the way, the first of them first."""
        return self.after.faults if self.after is not None and self.after.faults else (self.misfit,)


class Autopsy:
    """Looks for the path with the fewest wrong answers, to name the first of them."""

    def __init__(self, search: Search) -> None:
        self.search = search

    def of(self, part: Part, time: int) -> Finding:
        """The first answer that is wrong on the path that explains most."""
        search = self.search
        search.lenient = True
        try:
            return self.nearest(part, time) or Finding(self.too_early(part))
        finally:
            search.lenient = False

    def starts(self, part: Part) -> list[Configuration]:
        """Where to look from: for a trace seen at the coordinator the request may just have been handled."""
        search, number = self.search, part.operation.handle
        handled = any(number in one.waiting or self.holds(one, number) for one in search.configurations)
        return search.configurations if handled or number not in search.parts else search.sent(part)

    @staticmethod
    def holds(one: Configuration, number: int) -> bool:
        """The request was handled in this configuration: it is parked or has its answer."""
        if number in one.given or any(each == number for each, _ in one.unseen):
            return True
        group = one.world.group
        return group is not None and any(number in (slot.join, slot.sync) for slot in group.slots)

    def nearest(self, part: Part, time: int) -> Finding | None:
        """Best-first search over wrong answers waved through."""
        order = count()
        number = part.operation.handle
        starts = self.starts(part)
        arrived = starts is not self.search.configurations
        queue = [(weight(one), next(order), one) for one in starts]
        heapq.heapify(queue)
        known = {one for _, _, one in queue}
        for _ in range(EXPANSIONS):
            if not queue:
                return None
            _, _, one = heapq.heappop(queue)
            if arrived and one.faults:
                # The request, whose own answer may be far away, brought a wrong one about.
                return Finding(one.faults[0], one)
            settled = self.search.delivered(one, part)
            if settled:
                return Finding(one.faults[0], settled[0]) if one.faults else None
            if settled is not None:
                answer = next(expected for each, expected in one.unseen if each == number)
                fields = next(self.search.differences(part, answer)).hard
                rule = one.trail.rule if one.trail else ""
                return Finding(Misfit(number, frozenset(fields), answer, rule, one.world))
            for after in self.search.moves(one, time, number):
                if after not in known:
                    known.add(after)
                    heapq.heappush(queue, (weight(after), next(order), after))
        return None

    def too_early(self, part: Part) -> Misfit:
        """The request should still be parked; if it was refused instead, that is wrong as well."""
        refused = errors_in(part.operation.answer or {}) - {0}
        return self.parked(part, "time", *(("error",) if refused else ()))

    def parked(self, part: Part, *fields: str) -> Misfit:
        """A fault of a request that has no answer, with the rule that handled it."""
        number = part.operation.handle
        for one in self.search.configurations:
            trail = one.trail
            while trail is not None:
                if trail.handle == number:
                    return Misfit(number, frozenset(fields), None, trail.rule, one.world)
                trail = trail.before
            for after in self.starts_handled(one, part):
                if after.trail is not None:
                    return Misfit(number, frozenset(fields), None, after.trail.rule, one.world)
        world = self.search.configurations[0].world if self.search.configurations else World()
        return Misfit(number, frozenset(fields), None, "", world)

    def starts_handled(self, one: Configuration, part: Part) -> Iterator[Configuration]:
        """The configuration once the request is handled, if it still waits."""
        operation = part.operation
        if operation.handle in one.waiting:
            yield from self.search.linearised(one, operation.handle, operation.answered or operation.sent)


def weight(one: Configuration) -> int:
    """How much is wrong on the way to a configuration: the different kinds of it, however often.

    A member let in without an id does not count: that it is wrong is so on every way.
    """
    found = (each for each in one.faults if not is_admission(each))
    return len({(name, each.expected is None) for each in found for name in each.fields})


NOT_COUNTING = frozenset({"join.completing.same-protocols", "join.stable.same-protocols", "join.replace.stable"})
"""Rules that tell a member the generation that the others are in already."""


@dataclass(frozen=True, slots=True)
class Adoption:
    """The state to go on from after wrong answers, and which of them the target now simply goes by.

    Those are wrong by themselves, but nothing else that the answer shows is the worse for them: a number that it
    counts from, a member let in without an id, or what is stored beside an offset.
    """

    after: Configuration
    waived: tuple[Misfit, ...] = ()


def is_admission(misfit: Misfit) -> bool:
    """A member was let in that should have been sent for an id."""
    return misfit.expected is None and misfit.rule == "join.id-required"


def is_told(one: Configuration, known: Mapping[int, Part]) -> bool:
    """Another member was told the right generation."""
    assert one.world.group is not None
    answers = (known[each].operation.answer or {} for each in one.given if each in known)
    return any(each.get("generation_id") == one.world.group.generation for each in answers)


def adopted(finding: Finding, body: Body, known: Mapping[int, Part]) -> Adoption | None:
    """Where to go on after wrong answers, if that is beyond doubt; else None. `known` are requests by handle.

    Either the answer was wrong and nothing depended on it, or the target goes by what it told from now on.
    """
    after = finding.after
    if after is None:
        return None
    clean = alter(after, faults=())
    rest = [each for each in after.faults if not is_admission(each)]
    if not rest:
        return Adoption(clean, after.faults)
    if all(each.fields == {"generation"} for each in rest) and clean.world.group is not None:
        if any(each.rule in NOT_COUNTING for each in rest) or is_told(clean, known):
            return Adoption(clean)
        told = alter(clean.world.group, generation=body.get("generation_id", -1))
        return Adoption(alter(clean, world=alter(clean.world, group=told)), after.faults)
    misfit = rest[0]
    if len(after.faults) != 1 or "time" in misfit.fields:
        return None
    if misfit.fields <= ASIDE:
        return Adoption(clean, (misfit,))
    refused = body.get("error_code") not in (None, 0) and getattr(misfit.expected, "error", 0) != 0
    unmoved = isinstance(misfit.expected, HARMLESS) or misfit.rule in UNMOVED
    return Adoption(clean) if refused or unmoved else None
