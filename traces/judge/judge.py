"""Judging a trace: every group's search side by side, what the marks in the trace say, and what went wrong."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.messages.parsing import read_requests
from fencepost.model.frozen import evolve, evolver
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.judge.checks import OperationRecord, checked_sequence, evaluate_check
from fencepost.traces.judge.classic.failover import NOT_READY_ERRORS
from fencepost.traces.judge.classic.restart import configurations_after_restart
from fencepost.traces.judge.diagnosis.attribution import build_violation
from fencepost.traces.judge.diagnosis.diagnosis import Diagnoser, recover
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.observe.coordinator_lookup import LookupCheck, unusual_lookup_fields
from fencepost.traces.judge.observe.log_steps import LogStepCheck
from fencepost.traces.judge.observe.partial_trace import PartialTrace
from fencepost.traces.judge.observe.topics import KnownTopics
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Mismatch, Path
from fencepost.traces.judge.search.eager import EAGER_BEAM_WIDTH
from fencepost.traces.judge.search.search import (
    MAX_CONFIGURATIONS,
    MAX_EAGER_CONFIGURATIONS,
    Search,
    SearchLimitExceeded,
)
from fencepost.traces.model_transitions import Transition, TransitionFields, transition_fields
from fencepost.traces.operations import Lookahead, Operation
from fencepost.traces.verdict import CheckResult, TraceVerdict, Violation

NO_FIELDS: frozenset[tuple[int, str]] = frozenset()
MAX_RECORDS = 20_000
"""How many judged operations are remembered for marks that come later."""
MAX_PENDING_STEPS = 1_000
"""After how many requests and answers one of several explanations is taken for what happened, to forget the past."""
replace_history = evolver(Configuration, "path", "unusual")
GAP_ANNOTATIONS = frozenset({"unknown", "continued"})
"""Remarks by which a trace says that it does not show what was before."""


@cache
def rule_set(rule: str) -> frozenset[str]:
    """This rule alone."""
    return frozenset((rule,))


class Judge:
    """Takes the events of one trace in order and says in the end what they show."""

    def __init__(
        self,
        header: Header,
        decisions: Mapping[str, bool] | None = None,
        beam_width: int | None = None,
        *,
        max_configurations: int = MAX_CONFIGURATIONS,
        eager: bool = False,
    ) -> None:
        self.beam_width = beam_width
        self.max_configurations = max_configurations
        self.eager = eager
        self.header = header
        self.decisions = tuple(sorted((decisions or {}).items()))
        self.topics = KnownTopics()
        self.searches: dict[str, Search] = {}
        self.stop_reasons: dict[str, str] = {}
        self.lookup = LookupCheck()
        self.partial_trace = PartialTrace(settings_assumed=header.implementation.get("settings") == "assumed")
        self.log_steps = LogStepCheck()
        self.records: OrderedDict[int, OperationRecord] = OrderedDict()
        self.violations: list[Violation] = []
        self.waiting_groups: dict[int, list[str]] = {}
        """The groups in which an operation waits for its answer."""
        self.check_results: list[CheckResult] = []
        self.rules: Counter[str] = Counter()
        self.transitions: Counter[TransitionFields] = Counter()
        self.inconclusive: list[str] = []
        self.events = 0
        self.restarts = 0
        self.settings = header.settings
        self.observer: Callable[[str, Path], None] | None = None
        """Is told of every step that is settled, by group and in order."""

    # --- events -------------------------------------------------------------------------------------------------

    def judge_events(self, events: Iterable[Event]) -> TraceVerdict:
        """Judge all events of a trace."""
        for moment in Lookahead(events).pair_operations():
            self.on_event(moment.event, moment.operation)
        return self.finish()

    def on_event(self, event: Event, operation: Operation | None) -> None:
        """Judge one event."""
        self.events += 1
        if event.kind is Kind.REQUEST and operation is not None:
            self.record_of(operation.handle)
            for part in self.split_by_group(operation):
                self.advance_group(part.request.group, part, event.time, sent=True)
        elif event.kind is Kind.RESPONSE and operation is not None:
            self.record_of(operation.handle).has_response = True
            self.check_lookup(operation)
            for group in self.waiting_groups.pop(operation.handle, ()):
                known = self.searches[group].open_operations.get(operation.handle) if group in self.searches else None
                if known is not None:
                    self.advance_group(group, known, event.time, sent=False)
            if self.partial_trace.is_partial:
                self.partial_trace.on_response(self, operation, event.time)
        elif event.kind is Kind.FAULT and event.api == "closed" and operation is not None:
            self.on_connection_closed(operation)
        elif event.kind is Kind.FAULT and event.api == "restart":
            self.lookup.reset()
            self.restarts += 1
            self.update_size_limit(event)
            for group in self.searches:
                self.on_restart(group, event.time)
        elif event.kind is Kind.FAULT and operation is not None and self.partial_trace.is_partial:
            self.partial_trace.on_connection_lost(operation)
        elif event.kind is Kind.INTERNAL:
            self.on_annotation(event)

    def on_annotation(self, event: Event) -> None:
        """What the schedule says about itself: what was known before it, and what an answer is evidence of."""
        if event.api == "topics":
            self.topics.learn_from_annotation(event.body)
            decided = {**dict(self.decisions), **event.body.get("decisions", {})}
            self.decisions = tuple(sorted(decided.items()))
        elif event.api in GAP_ANNOTATIONS:
            self.partial_trace.reset(self, event.time)
            self.log_steps.reset()
        elif event.api == "step":
            self.violations.extend(self.log_steps.check_step(event))
        elif event.api == "evidence":
            self.check_results.append(
                evaluate_check(event, self.records.get(checked_sequence(event) + 1), self.commit_all_histories)
            )

    def record_of(self, handle: int) -> OperationRecord:
        """The record of an operation."""
        known = self.records.get(handle)
        if known is None:
            known = self.records[handle] = OperationRecord()
            if len(self.records) > MAX_RECORDS:
                self.records.popitem(last=False)
        return known

    def split_by_group(self, operation: Operation) -> Iterator[GroupOperation]:
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
            self.record_of(operation.handle).undecided_reason = "the request is not well formed"
            return
        for request in requests:
            if self.partial_trace.is_partial and self.partial_trace.defer(self, operation, request):
                continue
            if not self.lookup.is_sent_elsewhere(operation, request):
                self.search_for(request.group)
                yield GroupOperation(operation, request)

    def search_for(self, group: str) -> Search:
        """The search for a group."""
        if group not in self.searches:
            start = Configuration(GroupState(), decisions=self.decisions, loading=self.restarts > 0)
            cluster = self.topics.cluster(self.settings)
            search = Search(group, cluster, self.header.order, self.header.grace, [start], beam_width=self.beam_width)
            search.max_configurations, search.eager = self.max_configurations, self.eager
            search.was_restarted = self.restarts > 0
            self.searches[group] = search
        return self.searches[group]

    # --- one group ----------------------------------------------------------------------------------------------

    def advance_group(self, group: str, part: GroupOperation, time: int, *, sent: bool) -> None:
        """Take a request or an answer into the group's search; explain it if nothing fits."""
        search = self.searches[group]
        if sent:
            self.waiting_groups.setdefault(part.operation.handle, []).append(group)
        if group in self.stop_reasons:
            self.record_of(part.operation.handle).undecided_reason = self.stop_reasons[group]
            return
        if self.topics.has_unknown_ids(part.operation):
            self.abandon_at_request(group, part, "the trace does not tell which topics the ids in it are of")
            return
        try:
            after = search.on_request(part) if sent else search.on_response(part, time)
        except SearchLimitExceeded as reason:
            self.abandon_at_request(group, part, str(reason))
            return
        if not after:
            self.diagnose(group, part, time)
            return
        search.configurations = after
        search.pending_steps += 1
        if (len(after) == 1 and after[0].path is not None) or search.pending_steps > MAX_PENDING_STEPS:
            self.commit_history(search)

    def on_restart(self, group: str, time: int) -> None:
        """The target was killed and started again."""
        if group in self.stop_reasons:
            return
        try:
            self.searches[group].configurations = configurations_after_restart(self.searches[group], time)
        except SearchLimitExceeded as reason:
            self.abandon_group(group, "a restart", str(reason))

    def update_size_limit(self, event: Event) -> None:
        """A restart may come with another size limit (FAILOVER-17)."""
        if "max_group_size" in event.body:
            self.settings = evolve(self.settings, max_group_size=event.body["max_group_size"])
            for search in self.searches.values():
                search.cluster = evolve(search.cluster, settings=self.settings)

    def commit_history(self, search: Search) -> None:
        """One explanation is left (or taken): what it says of the past is what happened."""
        if not search.configurations:
            return
        search.pending_steps = 0
        steps: list[Path] = []
        trail = search.configurations[0].path
        while trail is not None:
            steps.append(trail)
            trail = trail.previous
        for step in reversed(steps):
            self.count_step(search.group, step)
        # An answer is unusual if it is so whatever happened.
        first, *others = search.configurations
        for handle, name in first.unusual.intersection(*(one.unusual for one in others)) if others else first.unusual:
            self.record_of(handle).unusual_fields |= {name}
        plain = [replace_history(one, None, NO_FIELDS) for one in search.configurations]
        search.configurations = list(dict.fromkeys(plain)) if others else plain

    def count_step(self, group: str, step: Path) -> None:
        """Take note of a step that is settled."""
        if step.rule:
            self.rules[step.rule] += 1
            if step.handle:
                record = self.record_of(step.handle)
                record.rules = record.rules | rule_set(step.rule) if record.rules else rule_set(step.rule)
        if step.start is not None and step.outcome is not None:
            self.transitions[transition_fields(step.start, step.request, step.outcome)] += 1
        if self.observer is not None:
            self.observer(group, step)

    def commit_all_histories(self) -> None:
        """What is left of the past of every group is settled."""
        for search in self.searches.values():
            self.commit_history(search)

    def abandon_at_request(self, group: str, part: GroupOperation, reason: str) -> None:
        """Nothing more can be said about this group from this request on."""
        self.abandon_group(group, f"request {part.operation.handle - 1}", reason)
        self.record_of(part.operation.handle).undecided_reason = reason

    def abandon_group(self, group: str, where: str, reason: str) -> None:
        """Nothing more can be said about this group."""
        self.commit_history(self.searches[group])
        self.stop_reasons[group] = reason
        self.inconclusive.append(f"group {group!r}, {where}: {reason}")

    def diagnose(self, group: str, part: GroupOperation, time: int) -> None:
        """No explanation is left: find the answer that is wrong and say what would have been right."""
        search = self.searches[group]
        operation = part.operation
        if self.partial_trace.is_partial and self.partial_trace.explains_mismatch(self, group, part):
            return
        if (
            operation.response is not None
            and self.header.clock == "wall"
            and errors_in(operation.response) <= NOT_READY_ERRORS
        ):
            self.abandon_at_request(group, part, "the target said that it was not ready")
            return
        finding = Diagnoser(search).diagnose(part, time)
        if self.partial_trace.is_partial and self.partial_trace.may_predate_trace(self, part, finding.mismatch, time):
            return
        last = search.open_operations.get(finding.mismatches[-1].handle, part)
        adoption = recover(finding, last.operation.response or {}, search.open_operations)
        if adoption is None:
            fault = self.record_violation(search, part, finding.mismatch)
            self.commit_history(search)
            self.stop_group(group, fault, operation)
            return
        for misfit in finding.mismatches:
            self.record_violation(search, part, misfit, tolerated=misfit in adoption.tolerated)
        search.configurations = [adoption.after]
        search.open_operations.pop(operation.handle, None)
        self.commit_history(search)

    def record_violation(
        self, search: Search, part: GroupOperation, mismatch: Mismatch, *, tolerated: bool = False
    ) -> Violation:
        """Put a wrong answer on record; a waived fault leaves what else the answer shows as it is."""
        record = self.record_of(mismatch.handle)
        fault = build_violation(search.group, search.open_operations.get(mismatch.handle, part), mismatch, record.rules)
        fault = evolve(fault, tolerated=tolerated)
        self.violations.append(fault)
        if tolerated:
            record.tolerated += (fault,)
        else:
            record.violation = fault
        return fault

    def stop_group(self, group: str, violation: Violation, operation: Operation) -> None:
        """Nothing that comes after this fault can be judged in its group."""
        self.stop_reasons[group] = (
            "blocked by " + ", ".join(violation.requirements) + f" at request {violation.sequence}"
        )
        self.record_of(operation.handle).undecided_reason = self.stop_reasons[group]

    def on_connection_closed(self, operation: Operation) -> None:
        """The target closed a connection instead of answering; the latest request left so is to blame."""
        for group, search in self.searches.items():
            left = [
                part
                for part in search.open_operations.values()
                if part.operation.lost and part.operation.response is None
            ]
            if group in self.stop_reasons or search.was_restarted or operation.handle not in search.open_operations:
                continue
            last = max(left, key=lambda part: part.operation.handle, default=search.open_operations[operation.handle])
            fault = self.record_violation(search, last, Diagnoser(search).mismatch_without_response(last, "closed"))
            self.commit_history(search)
            self.stop_group(group, fault, last.operation)

    def check_lookup(self, operation: Operation) -> None:
        """FindCoordinator answers to no group, nor does the wrong node; they have a check of their own."""
        if operation.api == "Metadata" and operation.response is not None:
            self.topics.learn_from_metadata(operation.response)
        if operation.api == "FindCoordinator" and operation.response is not None:
            self.record_of(operation.handle).unusual_fields |= unusual_lookup_fields(operation.response)
        for fault in self.lookup.check_response(operation):
            self.violations.append(fault)
            self.record_of(operation.handle).violation = fault

    # --- the end ------------------------------------------------------------------------------------------------

    def finish(self) -> TraceVerdict:
        """Everything found, once the trace is over."""
        self.commit_all_histories()
        return TraceVerdict(
            violations=tuple(self.violations),
            check_results=(*self.check_results, *self.log_steps.check_results()),
            rules=dict(self.rules),
            decisions=self.agreed_decisions(),
            inconclusive=(*self.inconclusive, *self.partial_trace.undecided_reasons()),
            events=self.events,
            transitions={Transition(*each): count for each, count in self.transitions.items()},
        )

    @property
    def truncated(self) -> bool:
        """Some explanations were not followed."""
        return any(search.truncated for search in self.searches.values())

    def agreed_decisions(self) -> dict[str, bool]:
        """The reference differences on which all explanations of some group agree, and groups do not disagree."""
        found: set[tuple[str, bool]] = set()
        for search in self.searches.values():
            if search.truncated:
                continue
            common = set(search.configurations[0].decisions) if search.configurations else set()
            for one in search.configurations[1:]:
                common &= set(one.decisions)
            found |= common
        return {name: side for name, side in sorted(found) if (name, not side) not in found}


BEAM_WIDTHS = (12, 60, 400)
"""How many explanations of an answer are kept, in one pass after the other; nearly always one of the first is what
happened."""


def judge(
    header: Header, events: Iterable[Event], decisions: Mapping[str, bool] | None = None, *, eager: bool = False
) -> TraceVerdict:
    """Judge one trace. `decisions` are reference differences already settled for the target (DIV-nn).

    A few explanations of every answer are enough to accept a trace; `is_likely` tries the likeliest ones before and
    gives
    up sooner, which is quicker and decides no reference difference. To reject a trace all of them have to be looked at:
    that is done in a last pass, for which `events` must be a sequence; a stream is then left undecided.
    """
    if eager and header.order is Order.INTERVALS and isinstance(events, Sequence):
        verdict = Judge(
            header, decisions, EAGER_BEAM_WIDTH, max_configurations=MAX_EAGER_CONFIGURATIONS, eager=True
        ).judge_events(events)
        if not verdict.violations and not verdict.inconclusive:
            return verdict
    for width in BEAM_WIDTHS:
        narrow = Judge(header, decisions, width)
        verdict = narrow.judge_events(events)
        if not narrow.truncated or not (verdict.violations or verdict.inconclusive):
            return verdict
        if not isinstance(events, Sequence):
            break
    else:
        return Judge(
            header, decisions, max_configurations=MAX_EAGER_CONFIGURATIONS if eager else MAX_CONFIGURATIONS
        ).judge_events(events)
    doubt = "only some explanations were followed, and none of them holds"
    return evolve(verdict, violations=(), check_results=(), inconclusive=(*verdict.inconclusive, doubt))
