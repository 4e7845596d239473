"""Judging a trace: every group's search side by side, what the marks in the trace say, and what went wrong."""

import heapq
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from fencepost.model.reading import read_requests
from fencepost.model.rules import RULES
from fencepost.model.world import Cluster, World
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.judge.explanation import expected, false_guard, observed
from fencepost.traces.judge.lookup import LookupCheck
from fencepost.traces.judge.operations import Lookahead, Operation
from fencepost.traces.judge.search import NOT_READY, Configuration, Part, Search, Undecided, errors_in
from fencepost.traces.judge.search import Fault as Misfit
from fencepost.traces.judge.verdict import Evidence, Fault, Standing, TraceVerdict

REMEMBERED = 20_000
"""How many judged operations are remembered for marks that come later."""
EXPANSIONS = 400
"""How far the judge looks for the explanation of a failure."""


@dataclass(slots=True)
class Judged:
    """What is known of an operation: the rule that explained it, soft differences, and the fault if there is one."""

    rules: set[str] = field(default_factory=set)
    soft: set[str] = field(default_factory=set)
    fault: Fault | None = None
    answered: bool = False
    undecided: str = ""


class Judge:
    """Takes the events of one trace in order and says in the end what they show."""

    def __init__(self, header: Header, decisions: Mapping[str, bool] | None = None) -> None:
        self.header = header
        self.decisions = tuple(sorted((decisions or {}).items()))
        self.topics: dict[str, int] | None = None
        self.searches: dict[str, Search] = {}
        self.stopped: dict[str, str] = {}
        self.lookup = LookupCheck()
        self.judged: OrderedDict[int, Judged] = OrderedDict()
        self.faults: list[Fault] = []
        self.evidence: list[Evidence] = []
        self.rules: Counter[str] = Counter()
        self.inconclusive: list[str] = []
        self.events = 0

    # --- events -------------------------------------------------------------------------------------------------

    def read(self, events: Iterable[Event]) -> TraceVerdict:
        """Judge all events of a trace."""
        for moment in Lookahead(events).moments():
            self.take(moment.event, moment.operation)
        return self.finish()

    def take(self, event: Event, operation: Operation | None) -> None:
        """Judge one event."""
        self.events += 1
        if event.kind is Kind.REQUEST and operation is not None:
            self.remember(operation.handle)
            for part in self.parts(operation):
                self.advance(part.request.group, part, event.time, sent=True)
        elif event.kind is Kind.ANSWER and operation is not None:
            self.remember(operation.handle).answered = True
            self.looked_up(operation)
            for group in list(self.searches):
                known = self.searches[group].parts.get(operation.handle)
                if known is not None:
                    self.advance(group, known, event.time, sent=False)
        elif event.kind is Kind.FAULT and event.api == "restart":
            for search in self.searches.values():
                search.configurations = search.restarted(event.time)
        elif event.kind is Kind.INTERNAL:
            self.noted(event)

    def noted(self, event: Event) -> None:
        """What the schedule says about itself: the topics that exist, and what an answer is evidence of."""
        if event.api == "topics":
            self.topics = {**(self.topics or {}), **event.body["topics"]}
        elif event.api == "evidence":
            self.evidence.append(self.weighed(event))

    def remember(self, handle: int) -> Judged:
        """The record of an operation."""
        if handle not in self.judged:
            self.judged[handle] = Judged()
            if len(self.judged) > REMEMBERED:
                self.judged.popitem(last=False)
        return self.judged[handle]

    def parts(self, operation: Operation) -> Iterator[Part]:
        """The operation as each group sees it. A request no coordinator could read is left alone."""
        try:
            requests = read_requests(
                operation.api, operation.version, operation.body, operation.handle, tuple(self.searches)
            )
        except (KeyError, TypeError, AttributeError):
            self.remember(operation.handle).undecided = "the request is not well formed"
            return
        for request in requests:
            self.search(request.group)
            yield Part(operation, request)

    def search(self, group: str) -> Search:
        """The search for a group."""
        if group not in self.searches:
            cluster = Cluster(self.header.settings, self.topics)
            start = Configuration(World(), decisions=self.decisions)
            self.searches[group] = Search(group, cluster, self.header.order, self.header.grace, [start])
        return self.searches[group]

    # --- one group ----------------------------------------------------------------------------------------------

    def advance(self, group: str, part: Part, time: int, *, sent: bool) -> None:
        """Take a request or an answer into the group's search; explain it if nothing fits."""
        search = self.searches[group]
        if group in self.stopped:
            self.remember(part.operation.handle).undecided = self.stopped[group]
            return
        try:
            after = search.sent(part) if sent else search.answered(part, time)
        except Undecided as reason:
            self.stop(group, part, str(reason))
            return
        if not after:
            self.explain(group, part, time)
            return
        search.configurations = after
        if len(after) == 1 and after[0].trail is not None:
            self.settle(search)

    def settle(self, search: Search) -> None:
        """One explanation is left (or taken): what it says of the past is what happened."""
        if not search.configurations:
            return
        trail = search.configurations[0].trail
        while trail is not None:
            if trail.rule:
                self.rules[trail.rule] += 1
            if trail.handle:
                record = self.remember(trail.handle)
                record.soft |= trail.soft
                if trail.rule:
                    record.rules.add(trail.rule)
            trail = trail.before
        search.configurations = [replace(one, trail=None) for one in search.configurations]

    def stop(self, group: str, part: Part, reason: str) -> None:
        """Nothing more can be said about this group."""
        self.settle(self.searches[group])
        self.stopped[group] = reason
        self.inconclusive.append(f"group {group!r}, request {part.operation.handle - 1}: {reason}")
        self.remember(part.operation.handle).undecided = reason

    def explain(self, group: str, part: Part, time: int) -> None:
        """No explanation is left: find the answer that is wrong and say what would have been right."""
        search = self.searches[group]
        operation = part.operation
        if operation.answer is not None and self.header.clock == "wall" and errors_in(operation.answer) <= NOT_READY:
            self.stop(group, part, "the target said that it was not ready")
            return
        found = Autopsy(search).of(part, time)
        self.settle(search)
        blamed = search.parts.get(found.handle, part)
        fault = self.fault_of(search, blamed, found)
        self.faults.append(fault)
        self.remember(found.handle).fault = fault
        self.stopped[group] = "blocked by " + ", ".join(fault.requirements) + f" at request {fault.sequence}"
        self.remember(operation.handle).undecided = self.stopped[group]

    def fault_of(self, search: Search, part: Part, found: Misfit) -> Fault:
        """The fault in words."""
        operation = part.operation
        applied = RULES.get(found.rule)
        body = operation.answer or {}
        late = "time" in found.fields and found.expected is not None
        wait = f" after {(operation.answered or 0) - operation.sent} ms" if "time" in found.fields else ""
        return Fault(
            sequence=operation.handle - 1,
            group=search.group,
            api=operation.api,
            fields=tuple(sorted(found.fields)),
            observed=observed(body) + wait,
            allowed=(expected(found.expected) + (" at once" if late else ""),),
            rule=found.rule,
            guard=false_guard(part.request, operation.api, body, found.world, applied),
            requirements=applied.blamed(found.fields) if applied is not None else (),
        )

    def looked_up(self, operation: Operation) -> None:
        """FindCoordinator answers to no group; it has a check of its own."""
        for fault in self.lookup.answered(operation):
            self.faults.append(fault)
            self.remember(operation.handle).fault = fault

    # --- evidence -----------------------------------------------------------------------------------------------

    def weighed(self, mark: Event) -> Evidence:
        """What a marked answer says of a requirement."""
        body = mark.body
        requirement, sequence = body["requirement"], mark.of if mark.of is not None else -1
        record = self.judged.get(sequence + 1)
        fields = frozenset(body.get("fields") or ())

        def stands(standing: Standing, note: str = "") -> Evidence:
            return Evidence(requirement, sequence, standing, note)

        if record is None:
            return stands(Standing.INCONCLUSIVE, "the answer is not in the trace")
        if record.fault is not None:
            if not fields or fields & set(record.fault.fields):
                return stands(Standing.FAIL)
            return stands(Standing.INCONCLUSIVE, "blocked by " + ", ".join(record.fault.requirements))
        if record.undecided:
            return stands(Standing.INCONCLUSIVE, record.undecided)
        if not record.answered:
            return stands(Standing.INCONCLUSIVE, "no answer was seen")
        for search in self.searches.values():
            self.settle(search)
        if fields & record.soft:
            return stands(Standing.FAIL, "differs in " + ", ".join(sorted(fields & record.soft)))
        if not body.get("met", True):
            return stands(Standing.NOT_OBSERVED, body.get("note", "the schedule did not get that far"))
        return stands(Standing.PASS)

    def finish(self) -> TraceVerdict:
        """Everything found, once the trace is over."""
        for search in self.searches.values():
            self.settle(search)
        return TraceVerdict(
            faults=tuple(self.faults),
            evidence=tuple(self.evidence),
            rules=dict(self.rules),
            decisions=self.decided(),
            inconclusive=tuple(self.inconclusive),
            events=self.events,
        )

    def decided(self) -> dict[str, bool]:
        """The reference differences on which all explanations of some group agree."""
        found: dict[str, bool] = {}
        for search in self.searches.values():
            common = set(search.configurations[0].decisions) if search.configurations else set()
            for one in search.configurations[1:]:
                common &= set(one.decisions)
            found.update(dict(common))
        return found


class Autopsy:
    """Looks for the path with the fewest wrong answers, to name the first of them."""

    def __init__(self, search: Search) -> None:
        self.search = search

    def of(self, part: Part, time: int) -> Misfit:
        """The first answer that is wrong on the path that explains most."""
        search = self.search
        search.lenient = True
        try:
            return self.nearest(part, time) or self.too_early(part)
        finally:
            search.lenient = False

    def starts(self, part: Part, time: int) -> list[Configuration]:
        """Where to look from: for a trace seen at the coordinator the request may just have been handled."""
        search, number = self.search, part.operation.handle
        if number in search.parts and not any(number in one.waiting for one in search.configurations):
            handled = any(number in one.given for one in search.configurations)
            parked = any(self.holds(one, number) for one in search.configurations)
            if (
                not handled
                and not parked
                and not any(n == number for one in search.configurations for n, _ in one.unseen)
            ):
                return search.sent(part)
        return search.configurations

    @staticmethod
    def holds(one: Configuration, number: int) -> bool:
        """The request was handled in this configuration: it is parked or has its answer."""
        if number in one.given or any(each == number for each, _ in one.unseen):
            return True
        group = one.world.group
        return group is not None and any(number in (slot.join, slot.sync) for slot in group.slots)

    def nearest(self, part: Part, time: int) -> Misfit | None:
        """Best-first search over wrong answers waved through."""
        order = count()
        number = part.operation.handle
        queue = [(len(one.faults), next(order), one) for one in self.starts(part, time)]
        heapq.heapify(queue)
        known = {one for _, _, one in queue}
        for _ in range(EXPANSIONS):
            if not queue:
                return None
            _, _, one = heapq.heappop(queue)
            settled = self.search.delivered(one, part)
            if settled:
                return one.faults[0] if one.faults else None
            if settled is not None:
                answer = next(expected for each, expected in one.unseen if each == number)
                fields = self.search.difference(part, answer).hard
                return Misfit(number, frozenset(fields), answer, one.trail.rule if one.trail else "", one.world)
            for after in self.search.moves(one, time, number):
                if after not in known:
                    known.add(after)
                    heapq.heappush(queue, (len(after.faults), next(order), after))
        return None

    def too_early(self, part: Part) -> Misfit:
        """The request should still be parked: name the rule that parked it."""
        number = part.operation.handle
        for one in self.search.configurations:
            trail = one.trail
            while trail is not None:
                if trail.handle == number:
                    return Misfit(number, frozenset({"time"}), None, trail.rule, one.world)
                trail = trail.before
            for after in self.starts_handled(one, part):
                if after.trail is not None:
                    return Misfit(number, frozenset({"time"}), None, after.trail.rule, one.world)
        world = self.search.configurations[0].world if self.search.configurations else World()
        return Misfit(number, frozenset({"time"}), None, "", world)

    def starts_handled(self, one: Configuration, part: Part) -> Iterator[Configuration]:
        """The configuration once the request is handled, if it still waits."""
        if part.operation.handle in one.waiting:
            yield from self.search.linearised(
                one, part.operation.handle, part.operation.answered or part.operation.sent
            )


def judge(header: Header, events: Iterable[Event], decisions: Mapping[str, bool] | None = None) -> TraceVerdict:
    """Judge one trace. `decisions` are reference differences already settled for the target (DIV-nn)."""
    return Judge(header, decisions).read(events)
