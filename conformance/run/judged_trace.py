"""A recorded trace with its verdict, as far as a replay is compared with it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fencepost.conformance.analysis.trace_report import TraceJudging
from fencepost.conformance.protocols.description import ProtocolDescription
from fencepost.conformance.protocols.registry import DEFAULT_PROTOCOL
from fencepost.traces.events import Body, Event, Header, Kind, Lookahead
from fencepost.traces.judge.judge import Judge
from fencepost.traces.verdict import TraceVerdict


@dataclass(frozen=True, slots=True)
class JudgedTrace:
    """A trace with its verdict; `rules` are those that explain the response to each request."""

    events: tuple[Event, ...]
    verdict: TraceVerdict
    rules: Mapping[int, frozenset[str]]

    def responses(self) -> dict[int | None, Body]:
        """The responses by the sequence number of their request."""
        return {event.of: event.body for event in self.events if event.kind is Kind.RESPONSE}


def judge_trace(
    path: Path, header: Header, events: Iterable[Event], protocol: ProtocolDescription = DEFAULT_PROTOCOL
) -> JudgedTrace:
    """Judge a trace, keeping what is needed to compare it with its replay. Raises `TraceError`."""
    kept = tuple(events)
    reading = TraceJudging(path, Judge(header, protocol=protocol.judged), files=(path,))
    for moment in Lookahead(kept).pair_operations():
        reading.judge_event(moment)
    verdict = reading.finish()  # where several explanations are left at the end, it settles the rules
    rules = {handle - 1: frozenset(record.rules) for handle, record in reading.judge.records.items()}
    return JudgedTrace(kept, verdict, rules)
