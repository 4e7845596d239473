"""Judging a trace: every group's search side by side, what the marks in the trace say, and what went wrong."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from fencepost.model.classic.coordinator.state import World
from fencepost.model.classic.messages.parsing import read_requests
from fencepost.model.frozen import alter, changer
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.judge.checks import Judged, marked, weighed
from fencepost.traces.judge.classic.failover import NOT_READY
from fencepost.traces.judge.classic.restart import restart
from fencepost.traces.judge.diagnosis.attribution import fault_of
from fencepost.traces.judge.diagnosis.diagnosis import Autopsy, adopted
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.observe.coordinator_lookup import LookupCheck, unusual
from fencepost.traces.judge.observe.log_steps import StepsSeen
from fencepost.traces.judge.observe.partial_trace import Sight
from fencepost.traces.judge.observe.topics import TopicsSeen
from fencepost.traces.judge.search.configuration import Configuration, Part, Trail
from fencepost.traces.judge.search.configuration import Fault as Misfit
from fencepost.traces.judge.search.eager import PROMPT_WIDTH
from fencepost.traces.judge.search.search import BRISK_LIMIT, LIMIT, Search, Undecided
from fencepost.traces.model_transitions import Parts, Transition, parts
from fencepost.traces.operations import Lookahead, Operation
from fencepost.traces.verdict import Evidence, Fault, TraceVerdict

NOTHING: frozenset[tuple[int, str]] = frozenset()
REMEMBERED = 20_000
"""How many judged operations are remembered for marks that come later."""
PATIENCE = 1_000
"""After how many requests and answers one of several explanations is taken for what happened, to forget the past."""
forgetful = changer(Configuration, "trail", "soft")
UNKNOWN = frozenset({"unknown", "continued"})
"""Remarks by which a trace says that it does not show what was before."""


@cache
def only(rule: str) -> frozenset[str]:
    """This rule alone."""
    return frozenset((rule,))


class Judge:
    """Takes the events of one trace in order and says in the end what they show."""

    def __init__(
        self,
        header: Header,
        decisions: Mapping[str, bool] | None = None,
        width: int | None = None,
        *,
        limit: int = LIMIT,
        prompt: bool = False,
    ) -> None:
        self.width = width
        self.limit = limit
        self.prompt = prompt
        self.header = header
        self.decisions = tuple(sorted((decisions or {}).items()))
        self.topics = TopicsSeen()
        self.searches: dict[str, Search] = {}
        self.stopped: dict[str, str] = {}
        self.lookup = LookupCheck()
        self.sight = Sight(settings_assumed=header.implementation.get("settings") == "assumed")
        self.steps = StepsSeen()
        self.judged: OrderedDict[int, Judged] = OrderedDict()
        self.faults: list[Fault] = []
        self.asked: dict[int, list[str]] = {}
        """The groups in which an operation waits for its answer."""
        self.evidence: list[Evidence] = []
        self.rules: Counter[str] = Counter()
        self.transitions: Counter[Parts] = Counter()
        self.inconclusive: list[str] = []
        self.events = 0
        self.restarts = 0
        self.settings = header.settings
        self.witness: Callable[[str, Trail], None] | None = None
        """Is told of every step that is settled, by group and in order."""

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
            for group in self.asked.pop(operation.handle, ()):
                known = self.searches[group].parts.get(operation.handle) if group in self.searches else None
                if known is not None:
                    self.advance(group, known, event.time, sent=False)
            if self.sight.is_partial:
                self.sight.answered(self, operation, event.time)
        elif event.kind is Kind.FAULT and event.api == "closed" and operation is not None:
            self.hung_up(operation)
        elif event.kind is Kind.FAULT and event.api == "restart":
            self.lookup.forget()
            self.restarts += 1
            self.resized(event)
            for group in self.searches:
                self.killed(group, event.time)
        elif event.kind is Kind.FAULT and operation is not None and self.sight.is_partial:
            self.sight.ended(operation)
        elif event.kind is Kind.INTERNAL:
            self.noted(event)

    def noted(self, event: Event) -> None:
        """What the schedule says about itself: what was known before it, and what an answer is evidence of."""
        if event.api == "topics":
            self.topics.told(event.body)
            decided = {**dict(self.decisions), **event.body.get("decisions", {})}
            self.decisions = tuple(sorted(decided.items()))
        elif event.api in UNKNOWN:
            self.sight.forget(self, event.time)
            self.steps.forget()
        elif event.api == "step":
            self.faults.extend(self.steps.take(event))
        elif event.api == "evidence":
            self.evidence.append(weighed(event, self.judged.get(marked(event) + 1), self.settle_all))

    def remember(self, handle: int) -> Judged:
        """The record of an operation."""
        known = self.judged.get(handle)
        if known is None:
            known = self.judged[handle] = Judged()
            if len(self.judged) > REMEMBERED:
                self.judged.popitem(last=False)
        return known

    def parts(self, operation: Operation) -> Iterator[Part]:
        """The operation as each group sees it. A request no coordinator could read is left alone."""
        try:
            requests = read_requests(
                operation.api,
                operation.version,
                operation.body,
                operation.handle,
                tuple(self.searches),
                self.topics.names,
            )
        except (KeyError, TypeError, AttributeError):
            self.remember(operation.handle).undecided = "the request is not well formed"
            return
        for request in requests:
            if self.sight.is_partial and self.sight.holds(self, operation, request):
                continue
            if not self.lookup.is_elsewhere(operation, request):
                self.search(request.group)
                yield Part(operation, request)

    def search(self, group: str) -> Search:
        """The search for a group."""
        if group not in self.searches:
            start = Configuration(World(), decisions=self.decisions, loading=self.restarts > 0)
            cluster = self.topics.cluster(self.settings)
            search = Search(group, cluster, self.header.order, self.header.grace, [start], width=self.width)
            search.limit, search.prompt = self.limit, self.prompt
            search.was_restarted = self.restarts > 0
            self.searches[group] = search
        return self.searches[group]

    # --- one group ----------------------------------------------------------------------------------------------

    def advance(self, group: str, part: Part, time: int, *, sent: bool) -> None:
        """Take a request or an answer into the group's search; explain it if nothing fits."""
        search = self.searches[group]
        if sent:
            self.asked.setdefault(part.operation.handle, []).append(group)
        if group in self.stopped:
            self.remember(part.operation.handle).undecided = self.stopped[group]
            return
        if self.topics.leave_open(part.operation):
            self.stop(group, part, "the trace does not tell which topics the ids in it are of")
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
        search.unsettled += 1
        if (len(after) == 1 and after[0].trail is not None) or search.unsettled > PATIENCE:
            self.settle(search)

    def killed(self, group: str, time: int) -> None:
        """The target was killed and started again."""
        if group in self.stopped:
            return
        try:
            self.searches[group].configurations = restart(self.searches[group], time)
        except Undecided as reason:
            self.give_up(group, "a restart", str(reason))

    def resized(self, event: Event) -> None:
        """A restart may come with another size limit (FAILOVER-17)."""
        if "max_group_size" in event.body:
            self.settings = alter(self.settings, max_group_size=event.body["max_group_size"])
            for search in self.searches.values():
                search.cluster = alter(search.cluster, settings=self.settings)

    def settle(self, search: Search) -> None:
        """One explanation is left (or taken): what it says of the past is what happened."""
        if not search.configurations:
            return
        search.unsettled = 0
        steps: list[Trail] = []
        trail = search.configurations[0].trail
        while trail is not None:
            steps.append(trail)
            trail = trail.before
        for step in reversed(steps):
            self.happened(search.group, step)
        # An answer is unusual if it is so whatever happened.
        first, *others = search.configurations
        for handle, name in first.soft.intersection(*(one.soft for one in others)) if others else first.soft:
            self.remember(handle).soft |= {name}
        plain = [forgetful(one, None, NOTHING) for one in search.configurations]
        search.configurations = list(dict.fromkeys(plain)) if others else plain

    def happened(self, group: str, step: Trail) -> None:
        """Take note of a step that is settled."""
        if step.rule:
            self.rules[step.rule] += 1
            if step.handle:
                record = self.remember(step.handle)
                record.rules = record.rules | only(step.rule) if record.rules else only(step.rule)
        if step.start is not None and step.outcome is not None:
            self.transitions[parts(step.start, step.request, step.outcome)] += 1
        if self.witness is not None:
            self.witness(group, step)

    def settle_all(self) -> None:
        """What is left of the past of every group is settled."""
        for search in self.searches.values():
            self.settle(search)

    def stop(self, group: str, part: Part, reason: str) -> None:
        """Nothing more can be said about this group from this request on."""
        self.give_up(group, f"request {part.operation.handle - 1}", reason)
        self.remember(part.operation.handle).undecided = reason

    def give_up(self, group: str, where: str, reason: str) -> None:
        """Nothing more can be said about this group."""
        self.settle(self.searches[group])
        self.stopped[group] = reason
        self.inconclusive.append(f"group {group!r}, {where}: {reason}")

    def explain(self, group: str, part: Part, time: int) -> None:
        """No explanation is left: find the answer that is wrong and say what would have been right."""
        search = self.searches[group]
        operation = part.operation
        if self.sight.is_partial and self.sight.excuses(self, group, part):
            return
        if operation.answer is not None and self.header.clock == "wall" and errors_in(operation.answer) <= NOT_READY:
            self.stop(group, part, "the target said that it was not ready")
            return
        finding = Autopsy(search).of(part, time)
        if self.sight.is_partial and self.sight.lingers(self, part, finding.misfit, time):
            return
        last = search.parts.get(finding.misfits[-1].handle, part)
        adoption = adopted(finding, last.operation.answer or {}, search.parts)
        if adoption is None:
            fault = self.blame(search, part, finding.misfit)
            self.settle(search)
            self.halt(group, fault, operation)
            return
        for misfit in finding.misfits:
            self.blame(search, part, misfit, waived=misfit in adoption.waived)
        search.configurations = [adoption.after]
        search.parts.pop(operation.handle, None)
        self.settle(search)

    def blame(self, search: Search, part: Part, misfit: Misfit, *, waived: bool = False) -> Fault:
        """Put a wrong answer on record; a waived fault leaves what else the answer shows as it is."""
        record = self.remember(misfit.handle)
        fault = fault_of(search.group, search.parts.get(misfit.handle, part), misfit, record.rules)
        fault = alter(fault, waived=waived)
        self.faults.append(fault)
        if waived:
            record.waived += (fault,)
        else:
            record.fault = fault
        return fault

    def halt(self, group: str, fault: Fault, operation: Operation) -> None:
        """Nothing that comes after this fault can be judged in its group."""
        self.stopped[group] = "blocked by " + ", ".join(fault.requirements) + f" at request {fault.sequence}"
        self.remember(operation.handle).undecided = self.stopped[group]

    def hung_up(self, operation: Operation) -> None:
        """The target closed a connection instead of answering; the latest request left so is to blame."""
        for group, search in self.searches.items():
            left = [part for part in search.parts.values() if part.operation.lost and part.operation.answer is None]
            if group in self.stopped or search.was_restarted or operation.handle not in search.parts:
                continue
            last = max(left, key=lambda part: part.operation.handle, default=search.parts[operation.handle])
            fault = self.blame(search, last, Autopsy(search).parked(last, "closed"))
            self.settle(search)
            self.halt(group, fault, last.operation)

    def looked_up(self, operation: Operation) -> None:
        """FindCoordinator answers to no group, nor does the wrong node; they have a check of their own."""
        if operation.api == "Metadata" and operation.answer is not None:
            self.topics.learn(operation.answer)
        if operation.api == "FindCoordinator" and operation.answer is not None:
            self.remember(operation.handle).soft |= unusual(operation.answer)
        for fault in self.lookup.answered(operation):
            self.faults.append(fault)
            self.remember(operation.handle).fault = fault

    # --- the end ------------------------------------------------------------------------------------------------

    def finish(self) -> TraceVerdict:
        """Everything found, once the trace is over."""
        self.settle_all()
        return TraceVerdict(
            faults=tuple(self.faults),
            evidence=(*self.evidence, *self.steps.evidence()),
            rules=dict(self.rules),
            decisions=self.decided(),
            inconclusive=(*self.inconclusive, *self.sight.unresolved()),
            events=self.events,
            transitions={Transition(*each): count for each, count in self.transitions.items()},
        )

    @property
    def narrowed(self) -> bool:
        """Some explanations were not followed."""
        return any(search.narrowed for search in self.searches.values())

    def decided(self) -> dict[str, bool]:
        """The reference differences on which all explanations of some group agree, and groups do not disagree."""
        found: set[tuple[str, bool]] = set()
        for search in self.searches.values():
            if search.narrowed:
                continue
            common = set(search.configurations[0].decisions) if search.configurations else set()
            for one in search.configurations[1:]:
                common &= set(one.decisions)
            found |= common
        return {name: side for name, side in sorted(found) if (name, not side) not in found}


WIDTHS = (12, 60, 400)
"""How many explanations of an answer are kept, in one pass after the other; nearly always one of the first is what
happened."""


def judge(
    header: Header, events: Iterable[Event], decisions: Mapping[str, bool] | None = None, *, likely: bool = False
) -> TraceVerdict:
    """Judge one trace. `decisions` are reference differences already settled for the target (DIV-nn).

    A few explanations of every answer are enough to accept a trace; `likely` tries the likeliest ones before and gives
    up sooner, which is quicker and decides no reference difference. To reject a trace all of them have to be looked at:
    that is done in a last pass, for which `events` must be a sequence; a stream is then left undecided.
    """
    if likely and header.order is Order.INTERVALS and isinstance(events, Sequence):
        verdict = Judge(header, decisions, PROMPT_WIDTH, limit=BRISK_LIMIT, prompt=True).read(events)
        if not verdict.faults and not verdict.inconclusive:
            return verdict
    for width in WIDTHS:
        narrow = Judge(header, decisions, width)
        verdict = narrow.read(events)
        if not narrow.narrowed or not (verdict.faults or verdict.inconclusive):
            return verdict
        if not isinstance(events, Sequence):
            break
    else:
        return Judge(header, decisions, limit=BRISK_LIMIT if likely else LIMIT).read(events)
    doubt = "only some explanations were followed, and none of them holds"
    return alter(verdict, faults=(), evidence=(), inconclusive=(*verdict.inconclusive, doubt))
