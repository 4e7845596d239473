"""Judging recorded traces: no target, no schedule of our own, and as many events as there are.

Memory stays flat: of the past only the last requests are kept, to show the schedule of a failure.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fencepost.conformance.analysis.aggregation import Findings, Origin, coverage, decide, failure
from fencepost.conformance.analysis.reference_differences import agreed, noted
from fencepost.conformance.analysis.root_cause import Violation, violations
from fencepost.conformance.analysis.together import count_rules, watched
from fencepost.conformance.reports.progress import Progress
from fencepost.conformance.results import Report, RequirementResult
from fencepost.model.catalogue.classic import CATALOGUE
from fencepost.model.classic.messages.parsing import read_requests
from fencepost.model.wire.codec import encode_body
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.files.rotating_writer import Shelf
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.minimize import excerpt, is_remark
from fencepost.traces.operations import Lookahead, Moment
from fencepost.traces.verdict import Standing, TraceVerdict

SHOWN = 500
"""How many of the last requests, answers and faults are kept to show a schedule."""
STRIDE = 1_000
"""After how many events the progress is told."""
DETAILED = 100
"""How many faults of one trace are shown with all that came before them."""
SHORTENED = 3
"""How many violations of one trace are shown with no more than what matters."""
SENSELESS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of the judge that are the trace's fault if there is a message in it that no message can be."""
SHOWN_KINDS = frozenset({Kind.REQUEST, Kind.ANSWER, Kind.FAULT})


def judge_files(paths: Sequence[Path], progress: Callable[[Progress], None]) -> Report:
    """Judge traces one after the other. Raises `TraceError`; interrupted, the report is about what came before."""
    pile, shelf = Pile(len(paths), progress), Shelf(paths)
    try:
        for path, header, events in shelf.traces():
            pile.add(path, header, events)
            pile.done += len(shelf.read)
            pile.tell(path)
    except KeyboardInterrupt:
        pile.cut_short = True
    return pile.report()


@dataclass(slots=True)
class Reading:
    """One trace while it is judged, and the last things seen in it."""

    path: Path
    judge: Judge
    shortened: int = 0
    last: deque[Event] = field(default_factory=lambda: deque(maxlen=SHOWN))
    told: list[Event] = field(default_factory=list)
    """What the trace says was known before it."""
    before: dict[int, tuple[Event, ...]] = field(default_factory=dict)
    """What was last seen when a fault was found, by its request."""

    def take(self, moment: Moment) -> None:
        """Judge one event. Raises `TraceError` if its body is not one that can be judged."""
        event = moment.event
        if event.kind in SHOWN_KINDS:
            self.last.append(event)
        elif is_remark(event) and event.api != "step":
            self.told.append(event)
        faults = self.judge.faults
        known = len(faults)
        try:
            self.judge.take(event, moment.operation)
        except SENSELESS:
            check(self.path)
            raise
        if len(faults) > known and len(self.before) < DETAILED:
            self.before.update((fault.sequence, tuple(self.last)) for fault in faults[known:])

    def finish(self) -> TraceVerdict:
        """What was found, once the trace is over or as far as it was read. Raises as `take`."""
        try:
            return self.judge.finish()
        except SENSELESS:
            check(self.path)
            raise

    def schedule(self, violation: Violation) -> list[Event]:
        """The last things that happened in the group, up to what was violated; of a short trace what matters of it."""
        events = self.before.get(violation.sequence, tuple(self.last))
        if violation.fault is not None and len(events) < SHOWN and self.shortened < SHORTENED:
            self.shortened += 1
            whole = sorted((*self.told, *events), key=lambda event: event.sequence)
            events = excerpt(self.judge.header, whole, violation.fault)
        group = violation.fault.group if violation.fault is not None else ""
        mine = {event.sequence for event in events if event.kind is Kind.REQUEST and concerns(event, group)}
        return [event for event in events if event.sequence in mine or event.of in mine or event.api == "restart"]


def concerns(request: Event, group: str) -> bool:
    """The request is about this group; everything is about "", which is none."""
    try:
        read = read_requests(request.api, request.version, request.body, 0, (group,))
    except (KeyError, TypeError, AttributeError):
        return False
    return not group or any(each.group == group for each in read)


def check(path: Path) -> None:
    """Hold all messages of a trace against the wire format. Raises `TraceError` for the first that does not fit it."""
    if not path.is_file():
        return  # what comes through a pipe cannot be read twice
    for event in open_trace(path)[1]:
        kind = {Kind.REQUEST: "Request", Kind.ANSWER: "Response"}.get(event.kind)
        if kind is not None:
            message = {name: value for name, value in event.body.items() if not name.startswith("_")}
            try:
                encode_body(event.api + kind, event.version, message)
            except ValueError as error:
                raise TraceError(str(path), 0, f"event {event.sequence}: {error}") from None


@dataclass(slots=True)
class Pile:
    """What all traces judged so far say."""

    total: int
    progress: Callable[[Progress], None]
    begun: float = field(default_factory=time.monotonic)
    done: int = 0
    events: int = 0
    cut_short: bool = False
    headers: list[Header] = field(default_factory=list)
    verdicts: list[TraceVerdict] = field(default_factory=list)
    findings: dict[str, Findings] = field(default_factory=lambda: {id: Findings() for id in CATALOGUE})

    def tell(self, path: Path) -> None:
        """Tell how far things are."""
        violated = sum(1 for found in self.findings.values() if found.standings[Standing.FAIL])
        seconds = time.monotonic() - self.begun
        self.progress(Progress(self.done, self.total, seconds, violated, f"{path.name}, {self.events} events"))

    def add(self, path: Path, header: Header, events: Iterable[Event]) -> None:
        """Judge a trace. Raises `TraceError`; interrupted, keep what was judged and raise `KeyboardInterrupt`."""
        reading = Reading(path, Judge(header))
        self.headers.append(header)
        try:
            for moment in Lookahead(events).moments():
                reading.take(moment)
                self.events += 1
                if self.events % STRIDE == 0:
                    self.tell(path)
        except KeyboardInterrupt:
            self.close(reading)
            raise
        self.close(reading)

    def close(self, reading: Reading) -> None:
        """Count what a trace shows, as far as it was read."""
        verdict = reading.finish()
        self.verdicts.append(verdict)
        origin = Origin(str(reading.path), "")
        found = violations(verdict)
        for violation in found:
            if violation.requirement in self.findings:
                shown = failure(reading.schedule(violation), violation, origin, replayed=False)
                self.findings[violation.requirement].fail(shown)
        for mark in verdict.evidence:
            if mark.requirement in self.findings and mark.standing is not Standing.FAIL:
                self.findings[mark.requirement].weigh(mark.standing, mark.note)
        count_rules(self.findings, verdict.rules, {violation.requirement for violation in found})

    def report(self) -> Report:
        """Everything that is known so far."""
        return Report(
            target=watched([one.source for one in self.headers], [one.implementation for one in self.headers]),
            seed=0,
            results=tuple(noted(self.results(), agreed(verdict.decisions for verdict in self.verdicts))),
            rules=coverage(verdict.rules for verdict in self.verdicts),
            schedules=self.done,
            events=self.events,
            seconds=round(time.monotonic() - self.begun, 3),
            undecided=tuple(line for one in self.verdicts for line in one.inconclusive),
            cut_short=self.cut_short or self.done < self.total or any(one.inconclusive for one in self.verdicts),
        )

    def results(self) -> Iterator[RequirementResult]:
        """One result for each requirement."""
        for id, found in self.findings.items():
            yield decide(id, found, {}, {})
