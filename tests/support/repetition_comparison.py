"""Verdicts with steps of calm groups repeated, with each of them taken anew beside, and without any."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from fencepost.traces.classic.protocol import ClassicProtocol
from fencepost.traces.events import Event, Header, Operation
from fencepost.traces.judge.judge import Judge

BEAM_WIDTH, MAX_CONFIGURATIONS = 12, 2_000


class WithoutRepetition(ClassicProtocol):
    """The classic protocol, each request of which is handled anew."""

    def repeatable_group(self, operation: Operation) -> None:
        """None."""
        return None


@dataclass(slots=True)
class RepetitionComparison:
    """How many traces and events were judged, how many requests repeated an earlier step, and how many traces were
    judged differently."""

    traces: int = 0
    events: int = 0
    repeated: int = 0
    with_violations: int = 0
    different: int = 0

    def add(self, header: Header, events: Sequence[Event]) -> None:
        """Judge one more trace. Raises `RepetitionError` for a step that comes to something else when taken anew."""
        quick = Judge(header, None, BEAM_WIDTH, max_configurations=MAX_CONFIGURATIONS)
        checked = Judge(header, None, BEAM_WIDTH, max_configurations=MAX_CONFIGURATIONS, check_repetitions=True)
        plain = Judge(header, None, BEAM_WIDTH, max_configurations=MAX_CONFIGURATIONS, protocol=WithoutRepetition)
        verdict = plain.judge_events(events)
        self.different += not quick.judge_events(events) == checked.judge_events(events) == verdict
        self.traces += 1
        self.events += len(events)
        self.repeated += quick.trace.repeated_steps
        self.with_violations += bool(verdict.violations)

    def include(self, other: "RepetitionComparison") -> None:
        """Add what was found on other traces."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


def compare_repetitions(traces: Iterable[tuple[Header, Sequence[Event]]]) -> RepetitionComparison:
    """Judge the traces in all three ways."""
    compared = RepetitionComparison()
    for header, events in traces:
        compared.add(header, events)
    return compared
