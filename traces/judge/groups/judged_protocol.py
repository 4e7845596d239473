"""The interface of a protocol to the judge of a trace."""

from collections.abc import Iterator
from typing import ClassVar, Protocol

from fencepost.model.catalogue.specification import Specification
from fencepost.traces.events import Body, Event
from fencepost.traces.judge.groups.group_judge import GroupJudge, TraceContext
from fencepost.traces.judge.groups.partial_group import PartialGroup, TraceGap
from fencepost.traces.judge.groups.protocol import GroupProtocol
from fencepost.traces.judge.groups.records import OperationRecord
from fencepost.traces.judge.search.configuration import Request
from fencepost.traces.operations import Operation
from fencepost.traces.verdict import CheckResult, Violation


class JudgedProtocol(GroupProtocol, Protocol):
    """Reads one trace for its judge, and learns from it what concerns no single group.

    Protocols derive from it: what they do not define is as here.
    """

    specification: ClassVar[Specification] = Specification()
    """The requirements and the rules of the protocol."""
    varying_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields whose unusual values are no reason for a remark."""

    def is_sent_elsewhere(self, operation: Operation, request: Request) -> bool:
        """The request went to another node than the one that coordinates its group."""
        return False

    def check_response(self, operation: Operation, record: OperationRecord) -> Iterator[Violation]:
        """The violations of a response that concern no single group; its unusual fields are added to `record`."""
        yield from ()

    def on_unpaired_response(self, body: Body) -> None:
        """A response to a request of a group that is judged elsewhere."""

    def on_annotation(self, event: Event) -> Iterator[Violation]:
        """What an annotation shows to be wrong apart from any group."""
        yield from ()

    def on_restart(self) -> None:
        """The target was killed and started again."""

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
