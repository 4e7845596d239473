"""Judging recorded traces: no target, no schedule of our own, and as many events as there are.

Memory stays flat: of the past only the last requests are kept, to show the schedule of a failure.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fencepost.conformance.analysis.aggregation import (
    Origin,
    RequirementFindings,
    build_failure,
    requirement_verdict,
    rule_coverage,
)
from fencepost.conformance.analysis.reference_differences import common_decisions, note_ambiguities
from fencepost.conformance.analysis.root_cause import RequirementViolation, violations_in
from fencepost.conformance.analysis.together import count_rule_checks, describe_target
from fencepost.conformance.events import Progress
from fencepost.conformance.results import Report, RequirementResult
from fencepost.model.catalogue.classic import CATALOGUE
from fencepost.model.classic.messages.parsing import read_requests
from fencepost.model.wire.codec import encode_body
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.files.rotating_writer import RecordingReader
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.minimize import is_annotation, minimize_trace
from fencepost.traces.operations import Lookahead, PairedEvent
from fencepost.traces.verdict import CheckStatus, TraceVerdict

MAX_SHOWN_EVENTS = 500
"""How many of the last requests, answers and faults are kept to show a schedule."""
PROGRESS_INTERVAL = 1_000
"""After how many events the progress is told."""
MAX_DETAILED = 100
"""How many faults of one trace are shown with all that came before them."""
MAX_MINIMIZED = 3
"""How many violations of one trace are shown with no more than what matters."""
MALFORMED_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of the judge that are the trace's fault if there is a message in it that no message can be."""
SHOWN_KINDS = frozenset({Kind.REQUEST, Kind.RESPONSE, Kind.FAULT})


def judge_files(paths: Sequence[Path], progress: Callable[[Progress], None]) -> Report:
    """Judge traces one after the other. Raises `TraceError`; interrupted, the report is about what came before."""
    pile, shelf = TraceReport(len(paths), progress), RecordingReader(paths)
    try:
        for path, header, events in shelf.traces():
            pile.add_trace(path, header, events)
            pile.done += len(shelf.files)
            pile.report_progress(path)
    except KeyboardInterrupt:
        pile.cut_short = True
    return pile.build_report()


@dataclass(slots=True)
class TraceJudging:
    """One trace while it is judged, and the last things seen in it."""

    path: Path
    judge: Judge
    minimized: int = 0
    recent_events: deque[Event] = field(default_factory=lambda: deque(maxlen=MAX_SHOWN_EVENTS))
    annotations: list[Event] = field(default_factory=list)
    """What the trace says was known before it."""
    events_before: dict[int, tuple[Event, ...]] = field(default_factory=dict)
    """What was last seen when a fault was found, by its request."""

    def judge_event(self, moment: PairedEvent) -> None:
        """Judge one event. Raises `TraceError` if its body is not one that can be judged."""
        event = moment.event
        if event.kind in SHOWN_KINDS:
            self.recent_events.append(event)
        elif is_annotation(event) and event.api != "step":
            self.annotations.append(event)
        faults = self.judge.found
        known = len(faults)
        try:
            self.judge.on_event(event, moment.operation)
        except MALFORMED_ERRORS:
            check_wire_format(self.path)
            raise
        if len(faults) > known and len(self.events_before) < MAX_DETAILED:
            self.events_before.update((fault.sequence, tuple(self.recent_events)) for fault in faults[known:])

    def finish(self) -> TraceVerdict:
        """What was found, once the trace is over or as far as it was read. Raises as `judge_event`."""
        try:
            return self.judge.finish()
        except MALFORMED_ERRORS:
            check_wire_format(self.path)
            raise

    def events_leading_to(self, violation: RequirementViolation) -> list[Event]:
        """The last things that happened in the group, up to what was violated; of a short trace what matters of it."""
        events = self.events_before.get(violation.sequence, tuple(self.recent_events))
        if violation.violation is not None and len(events) < MAX_SHOWN_EVENTS and self.minimized < MAX_MINIMIZED:
            self.minimized += 1
            whole = sorted((*self.annotations, *events), key=lambda event: event.sequence)
            events = minimize_trace(self.judge.header, whole, violation.violation)
        group = violation.violation.group if violation.violation is not None else ""
        mine = {event.sequence for event in events if event.kind is Kind.REQUEST and concerns_group(event, group)}
        return [event for event in events if event.sequence in mine or event.of in mine or event.api == "restart"]


def concerns_group(request: Event, group: str) -> bool:
    """The request is about this group; everything is about "", which is none."""
    try:
        read = read_requests(request.api, request.version, request.body, 0, (group,))
    except (KeyError, TypeError, AttributeError):
        return False
    return not group or any(each.group == group for each in read)


def check_wire_format(path: Path) -> None:
    """Hold all messages of a trace against the wire format. Raises `TraceError` for the first that does not fit it."""
    if not path.is_file():
        return  # what comes through a pipe cannot be read twice
    for event in open_trace(path)[1]:
        kind = {Kind.REQUEST: "Request", Kind.RESPONSE: "Response"}.get(event.kind)
        if kind is not None:
            message = {name: value for name, value in event.body.items() if not name.startswith("_")}
            try:
                encode_body(event.api + kind, event.version, message)
            except ValueError as error:
                raise TraceError(str(path), 0, f"event {event.sequence}: {error}") from None


@dataclass(slots=True)
class TraceReport:
    """What all traces judged so far say."""

    total: int
    progress: Callable[[Progress], None]
    started_at: float = field(default_factory=time.monotonic)
    done: int = 0
    events: int = 0
    cut_short: bool = False
    headers: list[Header] = field(default_factory=list)
    verdicts: list[TraceVerdict] = field(default_factory=list)
    findings: dict[str, RequirementFindings] = field(
        default_factory=lambda: {id: RequirementFindings() for id in CATALOGUE}
    )

    def report_progress(self, path: Path) -> None:
        """Tell how far things are."""
        violated = sum(1 for found in self.findings.values() if found.counts[CheckStatus.FAIL])
        seconds = time.monotonic() - self.started_at
        self.progress(Progress(self.done, self.total, seconds, violated, f"{path.name}, {self.events} events"))

    def add_trace(self, path: Path, header: Header, events: Iterable[Event]) -> None:
        """Judge a trace. Raises `TraceError`; interrupted, keep what was judged and raise `KeyboardInterrupt`."""
        reading = TraceJudging(path, Judge(header))
        self.headers.append(header)
        try:
            for moment in Lookahead(events).pair_operations():
                reading.judge_event(moment)
                self.events += 1
                if self.events % PROGRESS_INTERVAL == 0:
                    self.report_progress(path)
        except KeyboardInterrupt:
            self.finish_trace(reading)
            raise
        self.finish_trace(reading)

    def finish_trace(self, reading: TraceJudging) -> None:
        """Count what a trace shows, as far as it was read."""
        verdict = reading.finish()
        self.verdicts.append(verdict)
        origin = Origin(str(reading.path), "")
        found = violations_in(verdict)
        for violation in found:
            if violation.requirement in self.findings:
                shown = build_failure(reading.events_leading_to(violation), violation, origin, replayed=False)
                self.findings[violation.requirement].add_failure(shown)
        for mark in verdict.check_results:
            if mark.requirement in self.findings and mark.status is not CheckStatus.FAIL:
                self.findings[mark.requirement].add_check(mark.status, mark.note)
        count_rule_checks(self.findings, verdict.rules, {violation.requirement for violation in found})

    def build_report(self) -> Report:
        """Everything that is known so far."""
        return Report(
            target=describe_target([one.source for one in self.headers], [one.implementation for one in self.headers]),
            seed=0,
            results=tuple(
                note_ambiguities(self.results(), common_decisions(verdict.decisions for verdict in self.verdicts))
            ),
            rules=rule_coverage(verdict.rules for verdict in self.verdicts),
            schedules=self.done,
            events=self.events,
            seconds=round(time.monotonic() - self.started_at, 3),
            undecided=tuple(line for one in self.verdicts for line in one.inconclusive),
            cut_short=self.cut_short or self.done < self.total or any(one.inconclusive for one in self.verdicts),
        )

    def results(self) -> Iterator[RequirementResult]:
        """One result for each requirement."""
        for id, found in self.findings.items():
            yield requirement_verdict(id, found, {}, {})
