"""Groups in a trace that does not show everything: from a gap on their state is not known."""

from dataclasses import dataclass

from fencepost.traces.events import Operation
from fencepost.traces.judge.groups.group_judge import GroupJudge, TraceContext
from fencepost.traces.judge.groups.records import GroupFindings
from fencepost.traces.judge.search.configuration import GroupOperation

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
