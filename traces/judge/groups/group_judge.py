"""The judge of one group: its search, the steps it settles, and the diagnosis when no configuration is left.

A group judge follows its group until the trace ends or it stops: at a violation it cannot go on from, or where the
search says that nothing can be decided any more.

After a violation the judge believes the target: it goes on from the states in which the target may be if it means what
it has said. As long as that is a guess, the group is in doubt: what the states explain is kept, and what they do not
explain is no further violation, for it may follow from the first one. Once a single state has explained some
responses the doubt is over.
"""

from abc import abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol, TypeAlias

from fencepost.model.frozen import evolve, evolver
from fencepost.model.settings import Settings
from fencepost.traces.events import Operation
from fencepost.traces.judge.diagnosis.diagnosis import Belief, Diagnoser, Diagnosis
from fencepost.traces.judge.search.configuration import (
    Configuration,
    Decisions,
    GroupOperation,
    Mismatch,
    Path,
    Request,
    State,
    rules_of,
)
from fencepost.traces.judge.search.search import (
    GivenResponse,
    Overdue,
    Search,
    SilenceSearch,
    configurations_after_move,
    configurations_after_restart,
)
from fencepost.traces.judge.search.stepper import MAX_CONFIGURATIONS, RepeatedStep, SearchLimitExceeded, Stepper
from fencepost.traces.verdict import TransitionFields, Violation

# --- The records of the operations of a trace, and the findings in one group.

MAX_RECORDS = 20_000
"""How many judged operations are remembered for checks that come later."""


@cache
def rule_set(rule: str) -> frozenset[str]:
    """The rule alone; one set for all operations that it explains."""
    return frozenset((rule,))


@dataclass(slots=True)
class OperationRecord:
    """The record of one operation: the rules that explain it, and the unusual fields and violations of its response."""

    rules: frozenset[str] = frozenset()
    unusual_fields: frozenset[str] = frozenset()
    violation: Violation | None = None
    tolerated: tuple[Violation, ...] = ()
    """Violations after which the rest of the response still means the same."""
    has_response: bool = False
    is_closed: bool = False
    """The target closed its connection."""
    undecided_reason: str = ""
    undecided_fields: frozenset[str] = frozenset()
    """The fields that are undecided for that reason; all if empty."""
    is_explained: bool = False
    """The response that came at the wrong time has an explanation otherwise."""

    def add_rule(self, rule: str) -> None:
        """Remember a rule that explains the operation."""
        self.rules = self.rules | rule_set(rule) if self.rules else rule_set(rule)


class OperationRecords(OrderedDict[int, OperationRecord]):
    """The latest operations of a trace by handle."""

    def of(self, handle: int) -> OperationRecord:
        """Return the record of an operation; if it is new, the oldest may make room for it."""
        known = self.get(handle)
        if known is None:
            known = self[handle] = OperationRecord()
            if len(self) > MAX_RECORDS:
                self.popitem(last=False)
        return known


@dataclass(slots=True)
class GroupFindings:
    """The findings in one group: violations, counts of settled steps by rule and by transition, and open questions."""

    violations: list[Violation] = field(default_factory=list)
    rules: Counter[str] = field(default_factory=Counter)
    transitions: Counter[TransitionFields] = field(default_factory=Counter)
    inconclusive: list[str] = field(default_factory=list)

    def add(self, other: "GroupFindings") -> None:
        """Add what came to light later."""
        self.violations += other.violations
        self.rules.update(other.rules)
        self.transitions.update(other.transitions)
        self.inconclusive += other.inconclusive


# --- The interface of a protocol to the judge of one group: the part that the search does not need.


class GroupProtocol(Protocol):
    """Reads the messages of one trace for the judges of its groups. `JudgedProtocol` is the whole interface."""

    @abstractmethod
    def requests_in(self, operation: Operation, groups: Iterable[str]) -> Iterable[Request]:
        """The request as each group sees it that it concerns; `groups` are those known so far.

        Raises AttributeError, KeyError or TypeError if it is not well formed.
        """

    @abstractmethod
    def new_stepper(self, group: str, settings: Settings) -> Stepper:
        """A stepper for a group of which nothing was seen yet."""

    @abstractmethod
    def build_violation(self, group: str, part: GroupOperation, mismatch: Mismatch, rules: frozenset[str]) -> Violation:
        """The mismatch in words; `rules` are those that explain the operation as far as it is settled."""

    def believe(self, diagnosis: Diagnosis, part: GroupOperation, search: Search, time: int) -> Belief | None:
        """Where to go on after what a diagnosis has found of an operation at `time`, in milliseconds; None if nothing
        can be told any more."""
        return None

    def silence_grace(self) -> int | None:
        """How long after its latest moment a response may still be out, in ms; None: silence is never a violation."""
        return None

    def is_handled_by_coordinator(self, part: GroupOperation) -> bool:
        """Whether it is the coordinator of the group that has to respond, so that its silence means something."""
        return True

    def is_sign_of_life(self, part: GroupOperation) -> bool:
        """Whether the response shows that the coordinator of the group is alive and in charge."""
        return part.operation.response is not None and self.is_handled_by_coordinator(part)

    def undecidable_reason(self, part: GroupOperation) -> str:
        """Why an operation cannot be judged; empty if it can."""
        return ""

    def excuse_for(self, part: GroupOperation) -> str:
        """Why a response without an explanation is no violation; empty if it is one."""
        return ""

    def transition_of(self, step: Path) -> TransitionFields | None:
        """The transition of the model that a step is; None if it is not one."""
        return None


# --- Operations of a group that get no response, and the signs of life that make their silence a violation.

SILENCE_GRACE_MS = 5_000
"""How much longer than the grace of a trace a response may be out where time is not virtual."""
MISSING = "missing"
"""The field of a mismatch that is a response which was never seen."""
MAX_UNANSWERED = 64
"""How many operations without a response are watched in a group."""


@dataclass(slots=True)
class Unanswered:
    """An operation without a response, as far as the trace is known ahead."""

    part: GroupOperation
    sent_in: State
    """The state in which it was sent, in one of the configurations."""
    settled: GivenResponse | None = None
    """The response that the model gave it, by a step that is settled."""
    given_by: int | None = None
    """The time, in milliseconds, by which the model had given it a response in some configuration."""


class SilenceWatch:
    """Watches the operations of one group that get no response."""

    def __init__(self, protocol: GroupProtocol, search: Search) -> None:
        self.protocol = protocol
        self.search = search
        self.grace = protocol.silence_grace()
        self.unanswered: dict[int, Unanswered] = {}
        """By handle, in the order sent."""

    def watch(self, part: GroupOperation) -> None:
        """Watch an operation whose response is not known ahead."""
        is_judged = self.grace is not None and self.protocol.is_handled_by_coordinator(part)
        if is_judged and len(self.unanswered) < MAX_UNANSWERED:
            self.unanswered[part.operation.handle] = Unanswered(part, self.search.configurations[0].world)

    def on_step(self, step: Path) -> None:
        """Note which of the operations a settled step responds to."""
        for reply in step.outcome.replies if step.outcome is not None else ():
            if reply.handle in self.unanswered:
                self.unanswered[reply.handle].settled = GivenResponse(step.rule, reply.response)

    def overdue_operations(self, alive: GroupOperation, last_time: int) -> Iterator[tuple[Unanswered, Overdue]]:
        """The operations whose response was overdue, by the grace, when the coordinator got a request that it responds
        to. What was seen of the group before ends at `last_time`, in milliseconds."""
        if self.grace is None or not self.protocol.is_sign_of_life(alive):
            return
        for handle, one in list(self.unanswered.items()):
            operation = one.part.operation
            # What a lost request would have got is no part of a configuration: equal ones are merged.
            if operation.response is not None or operation.lost:
                del self.unanswered[handle]
                continue
            if self.is_behind_another(one):
                continue
            overdue = self.find_overdue(one, alive.operation.sent_at - self.grace, last_time)
            if overdue is not None:
                yield one, overdue

    def is_behind_another(self, one: Unanswered) -> bool:
        """Whether an older request on the same connection has no response: a broker reads them one by one."""
        operation = one.part.operation
        older = (each.operation for handle, each in self.search.open_operations.items() if handle < operation.handle)
        return any(each.connection == operation.connection for each in older)

    def find_overdue(self, one: Unanswered, moment: int, last_time: int) -> Overdue | None:
        """The operation, if its response had to be out before `moment`, in milliseconds, in every configuration."""
        search = SilenceSearch(self.search, one.part, moment, one.settled)
        overdue = search.find_overdue()
        if search.is_futile:
            del self.unanswered[one.part.operation.handle]
        if overdue is None or not search.was_given:
            return overdue
        # When exactly the model gave it is not known any more, but it was no later than what was seen then.
        one.given_by = last_time if one.given_by is None else one.given_by
        return overdue if one.given_by < moment else None


def missing_response(one: Unanswered, overdue: Overdue) -> Mismatch:
    """The mismatch of an overdue operation."""
    given, state = overdue.given, overdue.configuration.world
    handle = one.part.operation.handle
    return Mismatch(handle, frozenset({MISSING}), given.response, given.rule, state, sent_in=one.sent_in)


# --- The check of repeated steps: each is taken anew and has to come to the same.


class RepetitionError(Exception):
    """A step comes to something else than the one that it was taken to repeat."""


def check_repetition(
    protocol: GroupProtocol, search: Search, before: Configuration, operation: Operation, step: RepeatedStep
) -> None:
    """Take a step that `search` has repeated in the configuration `before` anew, as it was taken the first time.

    Raises `RepetitionError`.
    """
    stepper = search.stepper.copy()
    (request,) = protocol.requests_in(operation, ())
    anew, part = Search(stepper, [before]), GroupOperation(operation, request)
    found = anew.configurations = anew.on_request(part)
    if operation.handle in stepper.open_operations and operation.responded_at is not None:
        found = anew.on_response(part, operation.responded_at)
    if found != search.configurations or operation.handle in stepper.open_operations:
        raise RepetitionError(f"request {operation.handle - 1}: {found} instead of {search.configurations}")
    (after,) = found
    transition = None if after.path is None else protocol.transition_of(after.path)
    if after.path is None or after.path.rule != step.rule or transition != step.transition:
        raise RepetitionError(f"request {operation.handle - 1}: {after.path} instead of {step}")


NO_FIELDS: frozenset[tuple[int, str]] = frozenset()
MAX_PENDING_STEPS = 1_000
"""After how many events one of several configurations is taken for what happened, to forget the past."""
MAX_DOUBTS = 24
"""How many wrong responses may follow from one before the group is not followed any more."""
MAX_CONFIGURATIONS_IN_DOUBT = 2_000
"""How many configurations a response may need after a violation: from a wrong state there may be no way to it."""
CONFIRMATIONS = 3
"""After how many responses that a single state explains a group is no longer in doubt."""
replace_history = evolver(Configuration, "path", "unusual")

StepObserver: TypeAlias = Callable[[str, Path], None]
"""Called with every step that is settled, by group and in order."""
AdvanceObserver: TypeAlias = Callable[["GroupJudge", Operation, int], None]
"""Called after every request and response, with the time in milliseconds, while the group is followed."""
Excuse: TypeAlias = Callable[[GroupOperation, Mismatch | None, int], bool]
"""Called with an operation whose response has no explanation, at first without and then with the mismatch: true if the
trace does not show enough of the group to blame anyone."""


@dataclass(slots=True)
class TraceContext:
    """What all groups of one trace share."""

    protocol: GroupProtocol
    settings: Settings
    decisions: Mapping[str, bool]
    beam_width: int | None = None
    max_configurations: int = MAX_CONFIGURATIONS
    eager: bool = False
    on_step: StepObserver | None = None
    on_advance: AdvanceObserver | None = None
    records: OperationRecords = field(default_factory=OperationRecords)
    found: list[Violation] = field(default_factory=list)
    """Every violation in the order found, retracted ones included."""
    restarts: int = 0
    check_repetitions: bool = False
    """Take every step that is repeated anew, and compare what comes of it."""
    repeated_steps: int = 0

    @property
    def settled_decisions(self) -> tuple[tuple[str, bool], ...]:
        """The decisions as a configuration has them."""
        return tuple(sorted(self.decisions.items()))


class GroupJudge:
    """Follows one group from a configuration on, at first the one in which nothing has happened."""

    def __init__(self, trace: TraceContext, group: str, start: Configuration | None = None) -> None:
        self.trace = trace
        self.group = group
        self.excuse: Excuse | None = None
        self.stop_reason = ""
        """Why the group is not followed any more; empty as long as it is."""
        self.findings = GroupFindings()
        stepper = trace.protocol.new_stepper(group, trace.settings)
        stepper.was_restarted = trace.restarts > 0
        stepper.skip_dead_ends = trace.beam_width is not None
        stepper.max_matches = trace.beam_width or trace.max_configurations
        if start is None:
            start = stepper.initial_configuration(trace.settled_decisions)
        self.search = Search(stepper, [start], trace.beam_width, trace.max_configurations, trace.eager)
        self.silence = SilenceWatch(trace.protocol, self.search)
        self.last_time = 0
        """When the last request or response was seen, in milliseconds."""
        self.doubt: Violation | None = None
        """The violation after which the state is a guess."""
        self.guess_reason = ""
        """Why the state was a guess for a time; empty if it never was."""
        self.doubts = self.confirmations = 0
        """How many wrong responses followed the violation, and how many in a row had an explanation since."""

    # --- events -------------------------------------------------------------------------------------------------

    def on_request(self, part: GroupOperation) -> None:
        """Take in a request."""
        if self.silence.unanswered:
            self.judge_silence(part)
        if part.operation.response is None:
            self.silence.watch(part)
        self.advance(part, part.operation.sent_at, sent=True)

    def repeat_step(self, operation: Operation) -> bool:
        """Take in a request that does what an earlier one did, with nothing else to be seen; whether it is one.

        It moves no group to another phase or generation, and no member, so neither `on_advance` nor `on_step` is told:
        who wants to see every step has repetitions checked.
        """
        trace = self.trace
        is_asked = trace.check_repetitions and trace.on_step is not None
        if self.stop_reason or is_asked or self.silence.unanswered:
            return False
        before = self.search.configurations if trace.check_repetitions else []
        step = self.search.repeat_step(operation)
        if step is None:
            return False
        if trace.check_repetitions:
            check_repetition(trace.protocol, self.search, before[0], operation, step)
        trace.records.of(operation.handle).rules = rule_set(step.rule)
        self.findings.rules[step.rule] += 1
        if step.transition is not None:
            self.findings.transitions[step.transition] += 1
        self.last_time = operation.sent_at
        trace.repeated_steps += 1
        return True

    def on_response(self, operation: Operation, time: int) -> None:
        """Take in the response to a request of this group."""
        part = self.search.stepper.open_operations.get(operation.handle)
        if part is not None:
            self.advance(part, time, sent=False)

    def advance(self, part: GroupOperation, time: int, *, sent: bool) -> None:
        """Take a request or a response into the search; diagnose it if no configuration explains it."""
        if self.stop_reason:
            self.trace.records.of(part.operation.handle).undecided_reason = self.stop_reason
            return
        reason = self.trace.protocol.undecidable_reason(part)
        if reason:
            self.abandon_at_request(part, reason)
            return
        search = self.search
        try:
            after = search.on_request(part) if sent else search.on_response(part, time)
        except SearchLimitExceeded as limit:
            self.abandon_at_request(part, str(limit))
            return
        if after:
            search.configurations = after
            search.pending_steps += 1
            self.last_time = time
            if self.doubt is not None and not sent:
                self.confirm_state()
            if (len(after) == 1 and after[0].path is not None) or search.pending_steps > MAX_PENDING_STEPS:
                self.commit_history()
        else:
            self.diagnose(part, time)
        if self.trace.on_advance is not None and not self.stop_reason and self.doubt is None:
            self.trace.on_advance(self, part.operation, time)

    def on_restart(self, time: int) -> None:
        """The target was killed and started again, perhaps with other settings."""
        if self.stop_reason:
            return
        self.search.stepper.on_restart(self.trace.settings)
        self.silence.unanswered.clear()
        try:
            self.search.configurations = configurations_after_restart(self.search, time)
        except SearchLimitExceeded as reason:
            self.abandon("a restart", str(reason))

    def on_move(self) -> None:
        """Another node is about to coordinate the group, or others that belong with it."""
        self.search.stepper.was_restarted = self.search.stepper.is_moving = True

    def on_moved(self, time: int, *, is_certain: bool) -> None:
        """Another node coordinates the group, if that `is_certain`. If the trace has a response that denies it, the
        diagnosis of that response will tell."""
        if self.stop_reason:
            return
        try:
            moved = configurations_after_move(self.search, time)
        except SearchLimitExceeded as reason:
            self.abandon("a move", str(reason))
            return
        if not is_certain:
            moved = list(dict.fromkeys((*self.search.configurations, *moved)))
        if moved:
            self.search.configurations = moved
            self.search.stepper.is_moving = False

    def on_connection_closed(self, operation: Operation) -> None:
        """The target closed a connection instead of responding; the latest request left so is to blame."""
        waiting = self.search.open_operations
        if self.stop_reason or self.search.stepper.was_restarted or operation.handle not in waiting:
            return
        left = [part for part in waiting.values() if part.operation.lost and part.operation.response is None]
        last = max(left, key=lambda part: part.operation.handle, default=waiting[operation.handle])
        mismatch = Diagnoser(self.search).mismatch_without_response(last, "closed")
        self.charge(last, mismatch)
        self.commit_history()

    # --- what is settled ----------------------------------------------------------------------------------------

    def commit_history(self) -> None:
        """One configuration is left (or taken): the path to it is what happened."""
        search = self.search
        if not search.configurations:
            return
        search.pending_steps = 0
        steps: list[Path] = []
        path = search.configurations[0].path
        while path is not None:
            steps.append(path)
            path = path.previous
        for step in reversed(steps):
            self.count_step(step)
        # A response is unusual if it is so whatever happened.
        first, *others = search.configurations
        for handle, name in first.unusual.intersection(*(one.unusual for one in others)) if others else first.unusual:
            self.trace.records.of(handle).unusual_fields |= {name}
        plain = [replace_history(first, None, NO_FIELDS)]
        if others:
            plain = list(dict.fromkeys(plain + [replace_history(one, None, NO_FIELDS) for one in others]))
        search.configurations = plain

    def count_step(self, step: Path) -> None:
        """Count a step that is settled."""
        if step.rule:
            self.findings.rules[step.rule] += 1
            if step.handle:
                self.trace.records.of(step.handle).add_rule(step.rule)
        if self.silence.unanswered:
            self.silence.on_step(step)
        transition = self.trace.protocol.transition_of(step)
        if transition is not None:
            self.findings.transitions[transition] += 1
        if self.trace.on_step is not None:
            self.trace.on_step(self.group, step)

    # --- what goes wrong ----------------------------------------------------------------------------------------

    def abandon_at_request(self, part: GroupOperation, reason: str) -> None:
        """Stop: from this request on nothing can be decided."""
        self.abandon(f"request {part.operation.handle - 1}", reason)
        self.trace.records.of(part.operation.handle).undecided_reason = reason

    def abandon(self, where: str, reason: str) -> None:
        """Stop, and say where and why."""
        self.commit_history()
        self.stop_reason = reason
        self.findings.inconclusive.append(f"group {self.group!r}, {where}: {reason}")

    def stop(self, operation: Operation) -> None:
        """Stop: nothing that comes after the violation in doubt can be judged."""
        assert self.doubt is not None
        self.stop_reason = blocked_by(self.doubt)
        self.trace.records.of(operation.handle).undecided_reason = self.stop_reason

    def confirm_state(self) -> None:
        """Take in that a response has an explanation after a violation; in the end the state is known again."""
        worlds = {one.world for one in self.search.configurations}
        self.confirmations = self.confirmations + 1 if len(worlds) == 1 else 0
        if self.confirmations >= CONFIRMATIONS:
            self.doubt = None

    def charge(
        self, part: GroupOperation, mismatch: Mismatch, path: Path | None = None, *, is_explained: bool = False
    ) -> None:
        """Put a mismatch on record after which the state is a guess; in doubt it is undecided, unless it is of a kind
        that was seen before."""
        violation = self.build_violation(part, mismatch, path)
        record = self.trace.records.of(mismatch.handle)
        record.is_explained = is_explained or mismatch.expected is not None
        if self.doubt is None or violation.kind in {each.kind for each in self.findings.violations}:
            self.record_violation(mismatch, violation)
        else:
            record.undecided_reason = blocked_by(self.doubt)
            record.undecided_fields = mismatch.fields if record.is_explained else frozenset()
        self.doubt = self.doubt or violation
        self.guess_reason = self.guess_reason or blocked_by(self.doubt)
        self.doubts, self.confirmations = self.doubts + 1, 0

    def judge_silence(self, alive: GroupOperation) -> None:
        """Charge an operation whose response is overdue, although the coordinator responds to `alive`, sent now."""
        if self.stop_reason:
            return
        time, excuse = alive.operation.sent_at, self.excuse
        for one, overdue in self.silence.overdue_operations(alive, self.last_time):
            part, mismatch = one.part, missing_response(one, overdue)
            record = self.trace.records.of(part.operation.handle)
            if excuse is None or not (excuse(part, None, time) or excuse(part, mismatch, time)):
                self.commit_history()
                for rule in rules_of(overdue.configuration.path, part.operation.handle):
                    record.add_rule(rule)
                self.charge(part, mismatch)
                del self.silence.unanswered[part.operation.handle]
            return

    def diagnose(self, part: GroupOperation, time: int) -> None:
        """No configuration is left: find the response that is wrong, and go on after it or stop."""
        search, operation = self.search, part.operation
        if self.excuse is not None and self.excuse(part, None, time):
            return
        reason = self.trace.protocol.excuse_for(part)
        if reason:
            self.abandon_at_request(part, reason)
            return
        diagnosis = Diagnoser(search).diagnose(part, time)
        if self.excuse is not None and self.excuse(part, diagnosis.mismatch, time):
            return
        belief = self.trace.protocol.believe(diagnosis, part, search, time)
        if belief is not None and belief.is_certain and self.doubt is None:
            for mismatch in diagnosis.mismatches:
                tolerated = mismatch in belief.tolerated
                self.record_violation(
                    mismatch, self.build_violation(part, mismatch, diagnosis.path, tolerated=tolerated)
                )
        else:
            is_explained = belief is not None and belief.is_explained
            self.charge(part, diagnosis.mismatch, diagnosis.path, is_explained=is_explained)
            self.leave_undecided(part, diagnosis, belief)
        # Of a group that the trace does not show in full, too little is known to guess.
        is_followed = belief is not None and (belief.is_certain or self.excuse is None)
        is_lost = self.doubt is not None and self.doubts > MAX_DOUBTS
        if belief is None or not is_followed or is_lost:
            self.commit_history()
            self.stop(operation)
            return
        if not belief.is_certain:
            self.commit_history()  # what leads to a guess may never have happened
        before = [one.decisions for one in search.configurations]
        found = (self.without_error(one, before, belief.is_certain) for one in belief.configurations)
        search.configurations = list(dict.fromkeys(found))
        search.open_operations.pop(operation.handle, None)
        self.commit_history()

    @staticmethod
    def without_error(believed: Configuration, before: Iterable[Decisions], is_certain: bool) -> Configuration:
        """A believed configuration to go on from.

        A wrong response decides nothing, and a difference that is left open again allows more, never less.
        """
        known = tuple(each for each in believed.decisions if all(each in decisions for decisions in before))
        one = evolve(believed, decisions=known, mismatches=())
        return one if is_certain else replace_history(one, None, NO_FIELDS)

    def leave_undecided(self, part: GroupOperation, diagnosis: Diagnosis, belief: Belief | None) -> None:
        """Leave open what else has no explanation beside the response that is wrong first."""
        assert self.doubt is not None
        believed = (each for one in (belief.configurations if belief is not None else ()) for each in one.mismatches)
        for handle in {part.operation.handle, *(each.handle for each in (*diagnosis.mismatches, *believed))}:
            record = self.trace.records.of(handle)
            if record.violation is None and not record.tolerated and not record.undecided_reason:
                record.undecided_reason = blocked_by(self.doubt)

    def build_violation(
        self, part: GroupOperation, mismatch: Mismatch, path: Path | None = None, *, tolerated: bool = False
    ) -> Violation:
        """The violation that a mismatch is, at the end of a path that is not settled; a tolerated one leaves what else
        the response shows as it is."""
        rules = self.trace.records.of(mismatch.handle).rules | rules_of(path, mismatch.handle)
        wrong = self.search.open_operations.get(mismatch.handle, part)
        violation = self.trace.protocol.build_violation(self.group, wrong, mismatch, rules)
        return evolve(violation, tolerated=tolerated, timers=timers_on(path))

    def record_violation(self, mismatch: Mismatch, violation: Violation) -> None:
        """Put a violation on record."""
        record = self.trace.records.of(mismatch.handle)
        self.findings.violations.append(violation)
        self.search.max_configurations = min(self.search.max_configurations, MAX_CONFIGURATIONS_IN_DOUBT)
        self.trace.found.append(violation)
        if violation.tolerated:
            record.tolerated += (violation,)
        else:
            record.violation = violation


def name_blocker(violation: Violation) -> str:
    """Why nothing is decided that the violation leaves open."""
    return "blocked by " + (", ".join(violation.requirements) or "a violation that no requirement speaks of")


def blocked_by(violation: Violation) -> str:
    """Why nothing is decided that may follow from a violation."""
    return f"{name_blocker(violation)} at request {violation.sequence}"


def timers_on(path: Path | None) -> tuple[str, ...]:
    """The rules of the timers that fired on a path, each once, the first one first."""
    fired: list[str] = []
    while path is not None:
        if path.request is None and path.rule:
            fired.append(path.rule)
        path = path.previous
    return tuple(dict.fromkeys(reversed(fired)))
