"""The interface of a protocol to the judge of a trace."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from fencepost.model.catalogue.specification import Specification
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Event, Header, Operation
from fencepost.traces.judge.diagnosis.diagnosis import format_field, format_observed
from fencepost.traces.judge.groups.group_judge import (
    GroupFindings,
    GroupJudge,
    GroupProtocol,
    OperationRecord,
    TraceContext,
)
from fencepost.traces.judge.search.configuration import GroupOperation, Mismatch, Path, Request, State
from fencepost.traces.judge.search.stepper import Stepper
from fencepost.traces.verdict import CheckResult, FieldDifference, TransitionFields, Violation

# --- Groups in a trace that does not show everything: from a gap on their state is not known.

UNKNOWN_STATE_REASON = "the state of the group is not known"


@dataclass(slots=True)
class TraceGap:
    """The latest moment before which the trace does not show everything."""

    settings_assumed: bool = False
    time: int = 0


class PartialGroup:
    """One group of such a trace: a judge follows it up to a gap, and nothing is said about it afterwards.

    A protocol that can tell the state of a group from what it shows derives from this class, and follows it again.
    """

    def __init__(self, trace: TraceContext, group: str, gap: TraceGap, judge: GroupJudge | None = None) -> None:
        self.trace = trace
        self.group = group
        self.gap = gap
        self.judge = judge
        """Follows the group as long as its state is known."""
        self.findings = GroupFindings()
        """What came to light before the state was last known."""

    def on_gap(self) -> None:
        """Nothing that was known of the group holds any more."""
        if self.judge is not None:
            self.untrack(self.judge)

    def untrack(self, judge: GroupJudge, reason: str = "") -> None:
        """Stop following the group; what came to light stays, and so does the reason, if there is one."""
        judge.commit_history()
        judge.stop_reason = UNKNOWN_STATE_REASON
        if reason:
            judge.findings.inconclusive.append(f"group {self.group!r}: {reason}")
        self.findings.add(judge.findings)
        self.judge = None

    def undecided_reason(self) -> str:
        """Why nothing can be said about the group in the end; empty if something can."""
        return f"group {self.group!r}: {UNKNOWN_STATE_REASON}" if self.judge is None else ""

    def defer(self, part: GroupOperation) -> bool:
        """Take in a request that cannot be judged: its group is not known, or its response is not."""
        if self.judge is not None:
            return False
        self.trace.records.of(part.operation.handle).undecided_reason = UNKNOWN_STATE_REASON
        return True

    def on_request(self, part: GroupOperation) -> None:
        """Take in a request that can be judged."""
        assert self.judge is not None
        self.judge.on_request(part)

    def on_response(self, operation: Operation, time: int) -> None:
        """Take in a response."""
        if self.judge is not None:
            self.judge.on_response(operation, time)

    def on_connection_lost(self, operation: Operation) -> None:
        """A request lost its connection: what came of it is not known."""


# --- The interface of protocols in which a coordinator speaks first: an event is no operation of a group, and the
# protocol says what the search of the group is to observe in it.


class TraceFollower(Protocol):
    """Follows one trace, event by event, with a search for each group."""

    findings: GroupFindings
    """Counts of the rules that explain what was seen, and open questions; violations are yielded instead."""

    def on_event(self, event: Event) -> Iterable[Violation]:
        """The violations that an event shows."""
        ...

    def finish(self) -> Iterable[Violation]:
        """The violations that show at the end: what is overdue by then."""
        ...


class JudgedProtocol(GroupProtocol, Protocol):
    """Reads one trace for its judge, and learns from it what concerns no single group.

    Protocols derive from it: what they do not define is as here.
    """

    header: Header
    """That of the trace."""
    specification: ClassVar[Specification] = Specification()
    """The requirements and the rules of the protocol."""
    stepper: ClassVar[type[Stepper]]
    """Takes the steps of a group: the class, unless `new_stepper` makes one in another way."""
    varying_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields whose unusual values are no reason for a remark."""
    independent_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields that may be wrong by themselves: all else that the response shows means the same."""
    collective_apis: ClassVar[frozenset[str]] = frozenset()
    """APIs whose responses come when all members are there, so that their time is a matter of nobody in particular."""

    def __init__(self, header: Header) -> None:
        self.header = header

    def new_stepper(self, group: str, settings: Settings) -> Stepper:
        """A stepper for a group of which nothing was seen yet."""
        return self.stepper(group, self.header.order, self.header.grace)

    def new_follower(self) -> TraceFollower | None:
        """What follows the whole trace by itself; None for a protocol whose groups are searched for explanations."""
        return None

    def build_violation(self, group: str, part: GroupOperation, mismatch: Mismatch, rules: frozenset[str]) -> Violation:
        """The mismatch of a body in words, with the requirements that its rule has for the fields that differ."""
        operation, expected = part.operation, mismatch.expected
        rule = self.specification.rules.get(mismatch.rule)
        return Violation(
            sequence=operation.handle - 1,
            group=group,
            api=operation.api,
            fields=tuple(sorted(mismatch.fields)),
            observed=format_observed(operation.response or {}) or "no response",
            allowed=("no response yet" if expected is None else format_observed(expected),),
            rule=mismatch.rule,
            guard=rule.guard if rule is not None else "",
            requirements=rule.requirements_for(mismatch.fields) if rule is not None else (),
            kind=f"{mismatch.rule} {sorted(mismatch.fields)}",
            differences=tuple(body_differences(expected, operation.response)),
        )

    def transition_of(self, step: Path) -> TransitionFields | None:
        """The transition of the model that a step is, by the labels of its states; None if it is not one."""
        if step.start is None or step.outcome is None:
            return None
        event = "by itself" if step.request is None else type(step.request).__name__
        return self.state_label(step.start), event, step.rule, self.state_label(step.outcome.state)

    def state_label(self, state: State) -> str:
        """The kind of a state, as text."""
        return type(state).__name__

    def repeatable_group(self, operation: Operation) -> str | None:
        """The group of a request that may be the same as an earlier one; None if it has to be read anyway."""
        return None

    # --- the trace ----------------------------------------------------------------------------------------------

    def check_message(self, event: Event) -> None:
        """Hold a request or response against the wire format. Raises ValueError if it does not fit it."""

    def is_sent_elsewhere(self, operation: Operation, request: Request) -> bool:
        """The request went to another node than the one that coordinates its group."""
        return False

    def check_response(self, operation: Operation, record: OperationRecord) -> Iterable[Violation]:
        """The violations of a response that concern no single group; its unusual fields are added to `record`."""
        yield from ()

    def on_unpaired_response(self, body: Body) -> None:
        """A response to a request of a group that is judged elsewhere."""

    def on_annotation(self, event: Event) -> Iterator[Violation]:
        """What an annotation shows to be wrong apart from any group."""
        yield from ()

    def on_restart(self) -> None:
        """The target was killed and started again."""

    def on_move(self) -> None:
        """Another node is about to coordinate groups."""

    def on_moved(self, event: Event) -> None:
        """Another node coordinates a group."""

    def on_gap(self) -> None:
        """The trace does not show what was before."""

    def check_results(self) -> tuple[CheckResult, ...]:
        """What was checked apart from any group, and holds."""
        return ()

    def partial_group(
        self, trace: TraceContext, group: str, gap: TraceGap, judge: GroupJudge | None = None
    ) -> PartialGroup:
        """A group that is in doubt from `gap` on; `judge` followed it up to there, None if it is new."""
        return PartialGroup(trace, group, gap, judge)

    # --- checks -------------------------------------------------------------------------------------------------

    def is_check_affected(self, fields: frozenset[str], violation: Violation) -> bool:
        """Whether a check of these fields (all if empty) is affected by a tolerated violation."""
        return not fields or bool(fields & set(violation.fields))

    def is_check_excused(self, requirement: str, rules: frozenset[str]) -> bool:
        """Whether a response by these rules says nothing of a requirement that a scenario checks by it."""
        return False


def body_differences(expected: Body | None, observed: Body | None) -> Iterator[FieldDifference]:
    """The fields of a body that differ from those expected, in words; None stands for no body at all."""
    if expected is None or observed is None:
        seen = format_observed(observed) if observed is not None else "none"
        told = format_observed(expected) if expected is not None else "no response yet"
        yield FieldDifference("early" if expected is None else "response", told, seen)
        return
    for name, value in expected.items():
        if observed.get(name) != value:
            yield FieldDifference(name, format_field(name, value), format_field(name, observed.get(name)))
