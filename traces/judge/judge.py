"""The judge of a trace: one judge for each group, the checks that concern no single group, and the verdict."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from fencepost.model.errors import FencepostError
from fencepost.model.frozen import evolve
from fencepost.model.protocols import find_protocol, load_part, protocols_with
from fencepost.model.settings import without_guesses
from fencepost.traces.events import REQUEST, RESPONSE, Event, Header, Kind, Lookahead, Operation, Order
from fencepost.traces.judge.checks import checked_sequence, evaluate_check
from fencepost.traces.judge.groups.group_judge import (
    AdvanceObserver,
    GroupFindings,
    GroupJudge,
    StepObserver,
    TraceContext,
)
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol, PartialGroup, TraceFollower, TraceGap
from fencepost.traces.judge.search.configuration import GroupOperation, Request
from fencepost.traces.judge.search.search import EAGER_BEAM_WIDTH, MAX_EAGER_CONFIGURATIONS
from fencepost.traces.judge.search.stepper import MAX_CONFIGURATIONS
from fencepost.traces.verdict import CheckResult, TraceVerdict, Transition, TransitionFields, Violation

# --- The protocols by which traces are judged, by the names that headers have for them.

MakeProtocol: TypeAlias = Callable[[Header], JudgedProtocol]
"""Makes the reader of a trace from its header."""


class UnknownProtocol(FencepostError):
    """A trace is of a protocol that no judge is there for; the message is one clear line."""


def protocol_of(header: Header) -> JudgedProtocol:
    """The reader of a trace, by the protocol that its header names. Raises `UnknownProtocol`."""
    entry = find_protocol(header.protocol)
    if entry is None or not entry.judge:
        known = ", ".join(protocols_with(lambda entry: entry.judge))
        raise UnknownProtocol(f"protocol {header.protocol!r} is none that is judged: {known}")
    make: MakeProtocol = load_part(entry.judge)
    return make(header)


DEFAULT_PROTOCOL: MakeProtocol = protocol_of


class Judge:
    """Hands the events of one trace, in order, to the judges of its groups, and sums up what they found.

    `only` says which groups to judge (default: all). Without `is_shared_judged` nothing is said about what concerns no
    single group: lookups, and the steps that a coordinator itself logs. With `check_repetitions` every step that is
    known from an earlier one is taken anew all the same; `RepetitionError` is raised if it is not the same.
    """

    def __init__(
        self,
        header: Header,
        decisions: Mapping[str, bool] | None = None,
        beam_width: int | None = None,
        *,
        max_configurations: int = MAX_CONFIGURATIONS,
        eager: bool = False,
        only: Callable[[str], bool] | None = None,
        is_shared_judged: bool = True,
        on_step: StepObserver | None = None,
        on_advance: AdvanceObserver | None = None,
        protocol: MakeProtocol = DEFAULT_PROTOCOL,
        check_repetitions: bool = False,
    ) -> None:
        self.header = header
        self.only = only
        self.is_shared_judged = is_shared_judged
        self.make_protocol = protocol
        self.protocol = protocol(header)
        self.follower = self.protocol.new_follower()
        settings = without_guesses(header.settings, header.not_told)
        self.trace = TraceContext(
            self.protocol, settings, decisions or {}, beam_width, max_configurations, eager, on_step, on_advance
        )
        self.trace.check_repetitions = check_repetitions
        self.records = self.trace.records
        self.found = self.trace.found
        self.groups: dict[str, GroupJudge | PartialGroup] = {}
        self.gap: TraceGap | None = None
        self.shared_violations: list[Violation] = []
        """Violations in what concerns no single group."""
        self.waiting_groups: dict[int, list[str]] = {}
        """By handle, the groups in which an operation waits for its response."""
        self.check_results: list[CheckResult] = []
        self.events = 0

    # --- events -------------------------------------------------------------------------------------------------

    def judge_events(self, events: Iterable[Event]) -> TraceVerdict:
        """Judge all events of a trace."""
        for moment in Lookahead(events).pair_operations():
            self.on_event(moment.event, moment.operation)
        return self.finish()

    def on_event(self, event: Event, operation: Operation | None) -> None:
        """Judge one event; `operation` is the one that it begins or ends."""
        self.events += 1
        if self.follower is not None:
            self.follow(self.follower, event)
        elif event.kind is REQUEST:
            if operation is not None:
                self.on_request(operation)
        elif event.kind is RESPONSE:
            if operation is not None:
                self.on_response(operation, event.time)
            elif self.only is not None and self.is_shared_judged:
                self.protocol.on_unpaired_response(event.body)
        else:
            handle = HANDLERS.get((event.kind, event.api)) or HANDLERS.get((event.kind, ANY_API))
            if handle is not None:
                handle(self, event, operation)

    def follow(self, follower: TraceFollower, event: Event) -> None:
        """Have the protocol follow the whole trace by itself."""
        for violation in follower.on_event(event):
            self.record_shared(violation)
        self.records.of(event.sequence + 1)

    def on_request(self, operation: Operation) -> None:
        """Hand a request to every group that it concerns."""
        if self.repeat_step(operation):
            return
        handle = operation.handle
        self.records.of(handle)
        for request in self.requests_in(operation):
            name, part = request.group, GroupOperation(operation, request)
            if self.only is not None and not self.only(name):
                continue
            is_deferred = self.gap is not None and self.partial_group(name, self.gap).defer(part)
            if not is_deferred and self.protocol.is_sent_elsewhere(operation, request):
                continue
            self.waiting_groups.setdefault(handle, []).append(name)
            if not is_deferred:
                group = self.groups.get(name)
                if group is None:
                    group = self.groups[name] = GroupJudge(self.trace, name)
                group.on_request(part)

    def repeat_step(self, operation: Operation) -> bool:
        """Whether the request does to its only group what an earlier one did, which then is all that there is to it."""
        name = self.protocol.repeatable_group(operation)
        group = None if name is None else self.groups.get(name)
        return isinstance(group, GroupJudge) and group.repeat_step(operation)

    def requests_in(self, operation: Operation) -> tuple[Request, ...]:
        """The request as each group sees it. One that no coordinator could read concerns none."""
        try:
            requests = tuple(self.protocol.requests_in(operation, self.followed_groups()))
            hash(requests)  # where a list takes the place of a name, a TypeError says so
            return requests
        except (AttributeError, KeyError, TypeError):
            self.records.of(operation.handle).undecided_reason = "the request is not well formed"
            return ()

    def followed_groups(self) -> Iterator[str]:
        """The names of the groups whose state is known."""
        for judge in self.judges():
            yield judge.group

    def judges(self) -> Iterator[GroupJudge]:
        """The judges of the groups whose state is known."""
        for group in self.groups.values():
            judge = group.judge if isinstance(group, PartialGroup) else group
            if judge is not None:
                yield judge

    def on_response(self, operation: Operation, time: int) -> None:
        """Hand a response to the groups in which its request waits."""
        record = self.records.of(operation.handle)
        record.has_response = True
        for violation in self.protocol.check_response(operation, record):
            record.violation = self.record_shared(violation)
        for group in self.waiting_groups.pop(operation.handle, ()):
            self.groups[group].on_response(operation, time)

    def record_shared(self, violation: Violation) -> Violation:
        """Put a violation on record that concerns no single group; returns it, so marked."""
        shared = evolve(violation, is_shared=True)
        if self.is_shared_judged:
            self.shared_violations.append(shared)
            self.found.append(shared)
        return shared

    # --- faults and annotations ---------------------------------------------------------------------------------

    def on_connection_closed(self, event: Event, operation: Operation | None) -> None:
        """The target closed a connection instead of responding; if others with requests of other groups ended with it,
        it went down at any one of the requests, and each of the others proves nothing."""
        if operation is None:
            return
        record = self.records.of(operation.handle)
        record.is_closed = True
        if operation.is_cut_with_others and sum(map(is_cut_off, self.judges())) > 1:
            record.undecided_reason = CLOSED_AT_ONCE
            if not any(each.title == CLOSED_AT_ONCE for each in self.shared_violations):
                self.record_shared(closed_at_once(operation))
            return
        for judge in self.judges():
            judge.on_connection_closed(operation)

    def on_connection_lost(self, event: Event, operation: Operation | None) -> None:
        """A request lost its connection."""
        if operation is not None:
            for group in self.groups.values():
                if isinstance(group, PartialGroup):
                    group.on_connection_lost(operation)

    def on_restart(self, event: Event, operation: Operation | None) -> None:
        """The target was killed and started again, perhaps with another size limit (FAILOVER-17)."""
        self.protocol.on_restart()
        self.trace.restarts += 1
        if "max_group_size" in event.body:
            self.trace.settings = evolve(self.trace.settings, max_group_size=event.body["max_group_size"])
        for judge in self.judges():
            judge.on_restart(event.time)

    def on_move(self, event: Event, operation: Operation | None) -> None:
        """Another node is about to coordinate a group; others may go with it."""
        self.protocol.on_move()
        self.trace.restarts += 1
        for judge in self.judges():
            judge.on_move()

    def on_moved(self, event: Event, operation: Operation | None) -> None:
        """Another node coordinates the group; others may have gone with it."""
        self.protocol.on_moved(event)
        for judge in self.judges():
            judge.on_moved(event.time, is_certain=judge.group == event.body["group"])

    def on_gap(self, event: Event, operation: Operation | None) -> None:
        """Discard the state of all groups at a gap event, or of the one it names: the trace does not show what came
        before."""
        self.gap = self.gap or TraceGap(self.header.implementation.get("settings") == "assumed")
        self.gap.time = event.time
        if "group" not in event.body:
            self.protocol.on_gap()
        for name in (event.body["group"],) if "group" in event.body else tuple(self.groups):
            if self.only is None or self.only(name):
                self.partial_group(name, self.gap).on_gap()

    def partial_group(self, name: str, gap: TraceGap) -> PartialGroup:
        """The group of a trace that does not show everything; its state is unknown if it is new."""
        group = self.groups.get(name)
        if not isinstance(group, PartialGroup):
            group = self.groups[name] = self.protocol.partial_group(self.trace, name, gap, group)
        return group

    def on_annotation(self, event: Event, operation: Operation | None) -> None:
        """The schedule says what is known of its target, or a coordinator's log shows a step."""
        self.trace.decisions = {**self.trace.decisions, **event.body.get("decisions", {})}
        for violation in self.protocol.on_annotation(event):
            self.record_shared(violation)

    def on_check(self, event: Event, operation: Operation | None) -> None:
        """The schedule says which requirement a response puts to the test."""
        record = self.records.get(checked_sequence(event) + 1)
        self.check_results.append(evaluate_check(event, record, self.protocol, self.commit_histories))

    # --- the end ------------------------------------------------------------------------------------------------

    def commit_histories(self) -> None:
        """Settle what is left of the past of every group."""
        for judge in self.judges():
            judge.commit_history()

    def finish(self) -> TraceVerdict:
        """Everything found, once the trace is over."""
        self.commit_histories()
        for violation in () if self.follower is None else self.follower.finish():
            self.record_shared(violation)
        rules, transitions = Counter[str](), Counter[TransitionFields]()
        inconclusive: list[str] = []
        for findings in self.findings():
            rules.update(findings.rules)
            transitions.update(findings.transitions)
            inconclusive += findings.inconclusive
        partial = [group for group in self.groups.values() if isinstance(group, PartialGroup)]
        inconclusive += filter(None, (group.undecided_reason() for group in partial))
        violations = tuple(self.violations)
        violated = {requirement for violation in violations for requirement in violation.requirements}
        return TraceVerdict(
            violations=violations,
            check_results=(*self.check_results, *self.protocol.check_results()),
            rules=dict(rules),
            decisions=self.agreed_decisions(),
            inconclusive=tuple(inconclusive),
            events=self.events,
            transitions={Transition(*each): count for each, count in transitions.items()},
            recommendations=frozenset(filter(self.protocol.specification.is_recommendation, violated)),
        )

    def findings(self) -> Iterator[GroupFindings]:
        """What came to light in the groups."""
        if self.follower is not None:
            yield self.follower.findings
        for group in self.groups.values():
            yield group.findings
            if isinstance(group, PartialGroup) and group.judge is not None:
                yield group.judge.findings

    @property
    def violations(self) -> list[Violation]:
        """The violations that stand, in the order found."""
        standing = {id(each) for each in self.shared_violations}
        standing.update(id(each) for findings in self.findings() for each in findings.violations)
        return [each for each in self.found if id(each) in standing]

    @property
    def truncated(self) -> bool:
        """Some explanations were not followed."""
        return any(judge.search.truncated for judge in self.judges())

    def agreed_decisions(self) -> dict[str, bool]:
        """The reference differences on which all explanations of some group agree, and groups do not disagree."""
        found: set[tuple[str, bool]] = set()
        for judge in self.judges():
            search = judge.search
            if search.truncated:
                continue
            common = set(search.configurations[0].decisions) if search.configurations else set()
            for one in search.configurations[1:]:
                common &= set(one.decisions)
            found |= common
        return {name: side for name, side in sorted(found) if (name, not side) not in found}


def is_cut_off(judge: GroupJudge) -> bool:
    """Whether a request of a group was cut off together with requests on other connections."""
    return any(part.operation.is_cut_with_others for part in judge.search.open_operations.values())


CLOSED_AT_ONCE = "the target closed several connections at once, without an answer"


def closed_at_once(operation: Operation) -> Violation:
    """The violation of a target that goes down while it has several requests to answer, this one among them. Which
    requirement it breaks is not known."""
    return Violation(
        sequence=operation.handle - 1,
        group="",
        api=operation.api,
        fields=("closed",),
        observed="the connection was closed without an answer",
        allowed=("an answer",),
        rule="",
        guard="",
        requirements=(),
        kind=CLOSED_AT_ONCE,
        title=CLOSED_AT_ONCE,
    )


ANY_API = ""
HANDLERS: Mapping[tuple[Kind, str], Callable[[Judge, Event, Operation | None], None]] = {
    (Kind.FAULT, "closed"): Judge.on_connection_closed,
    (Kind.FAULT, "restart"): Judge.on_restart,
    (Kind.FAULT, "move"): Judge.on_move,
    (Kind.FAULT, "moved"): Judge.on_moved,
    (Kind.FAULT, ANY_API): Judge.on_connection_lost,
    (Kind.INTERNAL, "unknown"): Judge.on_gap,
    (Kind.INTERNAL, "continued"): Judge.on_gap,
    (Kind.INTERNAL, "check"): Judge.on_check,
    (Kind.INTERNAL, ANY_API): Judge.on_annotation,
}
"""What to do at an event that is neither a request nor a response."""
BEAM_WIDTHS = (12, 60, 400)
"""How many explanations of a response are kept in each pass; nearly always one of the first is what happened."""
CONFIGURATIONS_PER_EXPLANATION = 100
"""How many configurations a pass may look at for each explanation that it keeps: where a few explanations do not come
to light soon, more of them may."""
SETTLED_BEAM_WIDTH = 2
"""The width of a pass before these where the reference differences are settled, so that a pass need not decide any."""


def judge(
    header: Header,
    events: Iterable[Event],
    decisions: Mapping[str, bool] | None = None,
    *,
    eager: bool = False,
    protocol: MakeProtocol = DEFAULT_PROTOCOL,
) -> TraceVerdict:
    """Judge one trace. `decisions` are reference differences already settled for the target (DIV-nn).

    A few explanations of every response are enough to accept a trace. With `decisions` the likeliest ones come first,
    which may leave a difference undecided that they do not settle; so they do if the judge is `eager`, which gives up
    sooner, too. To reject a trace all explanations have to be tried: that is done in a last pass, for which `events`
    must be a sequence; a stream is then left inconclusive.
    """
    is_repeatable = isinstance(events, Sequence)
    is_seen_by_clients = header.order is Order.INTERVALS
    if (eager or decisions) and is_seen_by_clients and is_repeatable:
        verdict = Judge(
            header,
            decisions,
            EAGER_BEAM_WIDTH,
            max_configurations=MAX_EAGER_CONFIGURATIONS,
            eager=True,
            protocol=protocol,
        ).judge_events(events)
        if not verdict.violations and not verdict.inconclusive:
            return verdict
    is_settled = bool(decisions) and is_repeatable and not is_seen_by_clients
    for width in (SETTLED_BEAM_WIDTH, *BEAM_WIDTHS) if is_settled else BEAM_WIDTHS:
        limit = min(width * CONFIGURATIONS_PER_EXPLANATION, MAX_CONFIGURATIONS)
        narrow = Judge(header, decisions, width, max_configurations=limit, protocol=protocol)
        verdict = narrow.judge_events(events)
        if not narrow.truncated or not (verdict.violations or verdict.inconclusive):
            return verdict
        if not is_repeatable:
            break
    else:
        limit = MAX_EAGER_CONFIGURATIONS if eager else MAX_CONFIGURATIONS
        return Judge(header, decisions, max_configurations=limit, protocol=protocol).judge_events(events)
    doubt = "only some explanations were followed, and none of them holds"
    return evolve(verdict, violations=(), check_results=(), inconclusive=(*verdict.inconclusive, doubt))
