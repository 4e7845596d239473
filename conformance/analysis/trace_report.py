"""Judging recorded traces of any length, without a target.

Memory stays flat: of the past only the last requests are kept, to show the schedule of a failure.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from fencepost.conformance.analysis.failures import Origin, build_failure, excerpt_of
from fencepost.conformance.analysis.report_builder import ReportBuilder, TraceSummary, summarize_trace
from fencepost.conformance.events import Progress
from fencepost.conformance.results import Ending, EndKind, Failure, Report, Verdict
from fencepost.conformance.specification import CLIENT_SPECIFICATION, specification_named
from fencepost.model.catalogue.specification import Specification
from fencepost.traces.client_judge.judge import is_client_trace, is_recording
from fencepost.traces.events import Event, Header, Kind, Lookahead, Operation, PairedEvent
from fencepost.traces.files.rotating_writer import RecordingReader, recording_part_of
from fencepost.traces.files.trace_files import RequestFormError, TraceError, check_request_form, open_trace
from fencepost.traces.history.builder import TraceHistory, TraceObserver
from fencepost.traces.history.recorder import NoHistory, make_recorder
from fencepost.traces.history.recordings import MemberFollower, ShownViolation, recording_parts
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol
from fencepost.traces.judge.judge import Judge, UnknownProtocol
from fencepost.traces.judge.minimize import is_annotation, minimize_trace
from fencepost.traces.verdict import CheckResult, CheckStatus, TraceVerdict, violations_in

# -- what the members of recorded groups did --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemberChecks:
    """How often members kept a requirement, in the usual way or not, and broke it; with the first remark on how they
    keep it."""

    passes: int = 0
    unusual: int = 0
    violations: int = 0
    remark: str = ""

    def with_checks(self, other: "MemberChecks") -> "MemberChecks":
        """Both together."""
        return MemberChecks(
            self.passes + other.passes,
            self.unusual + other.unusual,
            self.violations + other.violations,
            self.remark or other.remark,
        )


@dataclass(slots=True)
class MemberFindings:
    """What members did in some traces. Findings add up; `recordings` counts the traces that show members."""

    recordings: int = 0
    checks: dict[str, MemberChecks] = field(default_factory=dict)
    """By requirement."""

    def add_checks(self, checks: Mapping[str, MemberChecks]) -> None:
        """Add those of a trace, or of a part of it."""
        for id, each in checks.items():
            self.checks[id] = self.checks.get(id, MemberChecks()).with_checks(each)

    def add_findings(self, other: "MemberFindings") -> None:
        """Add those of other traces."""
        self.recordings += other.recordings
        self.add_checks(other.checks)

    def violated_ids(self) -> set[str]:
        """The requirements that members violate."""
        return {id for id, each in self.checks.items() if each.violations}

    def add_to(self, report: Report, failures: Iterable[tuple[str, Failure]]) -> Report:
        """The report on coordinators, with that on members if a trace shows any; `failures` are the violations to show,
        each with its requirement."""
        if not self.recordings:
            return report
        builder = ReportBuilder(recording_parts().requirements, specification=CLIENT_SPECIFICATION)
        for id, each in self.checks.items():
            found = builder.findings[id]
            found.counts.update({CheckStatus.PASS: each.passes, CheckStatus.FAIL: each.violations})
            if each.unusual:
                found.add_check(CheckStatus.UNUSUAL, each.remark)
                found.counts[CheckStatus.UNUSUAL] = each.unusual
        for id, failure in failures:
            builder.show_failure(id, failure)
        members = builder.build(
            target={"name": f"members of {report.target['name']}"},
            schedules=self.recordings,
            events=report.events,
            seconds=report.seconds,
        )
        counted = (
            replace(each, more_failures=max(0, self.checks[each.id].violations - len(each.failures)))
            if each.failures
            else each
            for each in members.results
        )
        return replace(report, members=replace(members, results=tuple(counted)))


def count_member_checks(members: MemberFollower, violations: Mapping[str, int]) -> dict[str, MemberChecks]:
    """The counts of a trace by requirement; `violations` counts those that were found."""
    found: dict[str, MemberChecks] = {}
    for id in recording_parts().requirements:
        passes, unusual = (members.checks[id, status] for status in (CheckStatus.PASS, CheckStatus.UNUSUAL))
        if passes or unusual or id in violations:
            found[id] = MemberChecks(passes, unusual, violations.get(id, 0), members.notes.get(id, ""))
    return found


def build_member_failure(header: Header, trace: str, found: ShownViolation) -> Failure:
    """A violation of a member in a trace, with its last requests as the schedule."""
    violation, events = found
    result = CheckResult(violation.requirement, violation.sequence, CheckStatus.FAIL, violation=violation)
    return build_failure(events, result, Origin(trace, ""), replayed=False, excerpt=find_excerpt(header, found))


def find_excerpt(header: Header, found: ShownViolation) -> str:
    """The last events of the member as a trace, "" if it is too long or does not show the violation."""
    violation, events = found
    text = excerpt_of(header, events)
    members = recording_parts().members(header, None)
    again = Counter(
        each.requirement
        for moment in Lookahead(events).pair_operations()
        for each, _ in members.on_event(moment.event, moment.operation)
    )
    return text if again[violation.requirement] else ""


# -- judging recorded traces of any length ----------------------------------------------------------------------------

MAX_SHOWN_EVENTS = 500
"""How many of the last requests, responses and faults are kept to show a schedule."""
PROGRESS_INTERVAL = 1_000
"""Progress is reported every so many events."""
MAX_DETAILED = 100
"""How many violations of one trace are shown with all events before them."""
MAX_MEMBER_FAILURES = 20
"""How many violations of a requirement by members of one trace are shown."""
MAX_MINIMIZED = 3
"""How many violations of one trace are shown with the events they depend on alone."""
MALFORMED_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of the judge that a message outside the wire format can cause."""
COMMON_FAULTS = frozenset({"restart", "move", "moved"})
"""Faults that concern every group."""
SHOWN_KINDS = frozenset({Kind.REQUEST, Kind.RESPONSE, Kind.FAULT})


@dataclass(frozen=True, slots=True)
class TraceFindings:
    """All that a report has of one trace; `path` is its first file."""

    path: Path
    files: int
    events: int
    subject: str
    """What the requirements of its protocol are about."""
    protocol: str
    summary: TraceSummary
    doubts: tuple[str, ...]
    checks: tuple[CheckResult, ...]
    failures: tuple[tuple[str, Failure], ...]
    members: dict[str, MemberChecks] | None
    member_failures: tuple[tuple[str, Failure], ...]


@dataclass(frozen=True, slots=True)
class JudgedPart:
    """What was found in some of the files: traces, their histories if they are told, and what could not be read."""

    traces: list[TraceFindings]
    histories: list[TraceHistory]
    errors: list[tuple[str, int, str]]


JudgeParts = Callable[[Sequence[Sequence[Path]], bool], Iterable[JudgedPart]]
"""Judges parts of the files in other processes, and yields what was found in their order; with histories on demand."""


def judge_files(
    paths: Sequence[Path],
    progress: Callable[[Progress], None],
    histories: list[TraceHistory] | None = None,
    judge_parts: JudgeParts | None = None,
) -> Report:
    """Judge traces one after the other, or parts of them at once with `judge_parts`; `histories` get those of groups. A
    file that cannot be read, or not to its end, is told in the report.

    Raises `TraceError` if nothing was checked then, or if it is the only file and shows no violation. Interrupted,
    report on what was judged so far.
    """
    report = TraceReport(len(paths), progress, histories)
    try:
        if judge_parts is None:
            report.read_files(paths)
        else:
            for found in judge_parts(split_files(paths), histories is not None):
                report.add_part(found)
    except KeyboardInterrupt:
        report.cut_short = True
    places = {str(path): place for place, path in enumerate(paths)}
    report.errors.sort(key=lambda error: places.get(error.path, len(places)))
    built = report.build_report()
    members = built.members.results if built.members is not None else ()
    checked = {result.verdict for result in (*built.results, *members)} - {Verdict.NOT_OBSERVED}
    if report.errors and (not checked or (len(paths) == 1 and checked == {Verdict.PASS})):
        raise report.errors[0]
    return built


PARTS = 64
"""Into how many parts files are split, so that no process waits long for the others at the end."""


def split_files(paths: Sequence[Path]) -> list[list[Path]]:
    """The files in parts of about one size, in order; the parts of a recording stay together."""
    sizes = [path.stat().st_size if path.is_file() else 0 for path in paths]
    parts: list[list[Path]] = []
    filled, room = 0, sum(sizes) / PARTS
    before = ""
    for path, size in zip(paths, sizes, strict=True):
        recording = recording_at(path)
        if not parts or (filled >= room and not (recording and recording == before)):
            parts.append([])
            filled = 0
        parts[-1].append(path)
        filled, before = filled + size, recording
    return parts


def recording_at(path: Path) -> str:
    """The recording that a file is a part of; "" if it is none, or cannot be read."""
    try:
        return recording_part_of(open_trace(path)[0])[0]
    except TraceError:
        return ""


def judge_part(paths: Sequence[Path], has_histories: bool) -> JudgedPart:
    """Judge some of the files, in a process of its own."""
    found = JudgedPart([], [], [])
    report = TraceReport(len(paths), lambda _: None, found.histories if has_histories else None, found.traces.append)
    report.read_files(paths)
    found.errors.extend((error.path, error.line, error.reason) for error in report.errors)
    return found


class MalformedMessageError(TraceError):
    """A message of a trace has not the form of its API; `sequence` is that of its event."""

    def __init__(self, path: str, sequence: int, reason: str) -> None:
        super().__init__(path, 0, f"event {sequence}: {reason}")
        self.sequence = sequence


@dataclass(slots=True)
class TraceJudging:
    """One trace while it is judged, with its last events; `path` is its first file."""

    path: Path
    judge: Judge
    observer: TraceObserver | None = None
    minimized: int = 0
    events: int = 0
    numbers: int = 0
    """How many numbers events have up to the last one, those that none has included."""
    files: Sequence[Path] = ()
    """The files of the trace that were read so far, if it can be read again."""
    later: Iterable[PairedEvent] = ()
    """The events that are still to be judged, if it cannot."""
    recent_events: deque[Event] = field(default_factory=lambda: deque(maxlen=MAX_SHOWN_EVENTS))
    annotations: list[Event] = field(default_factory=list)
    """What the trace states of the time before it."""
    events_before: dict[int, tuple[Event, ...]] = field(default_factory=dict)
    """The last events when a violation was found, by the sequence number of its request."""
    found_at: dict[int, int] = field(default_factory=dict)
    """The sequence numbers of the events at which violations were found, by those of their requests."""
    members: MemberFollower | None = None
    """The members in a recording; other traces have none to judge."""
    member_failures: list[tuple[str, Failure]] = field(default_factory=list)
    """What the members did wrong, by requirement; of many the first."""
    member_violations: Counter[str] = field(default_factory=Counter)
    """How often they did, by requirement."""

    def judge_event(self, moment: PairedEvent) -> None:
        """Judge one event. Raises `MalformedMessageError` if its body is not one that can be judged."""
        event = moment.event
        self.events, self.numbers = self.events + 1, event.sequence + 1
        if event.kind is Kind.REQUEST:
            self.check_request(event)
        if event.kind in SHOWN_KINDS:
            self.recent_events.append(event)
        elif is_annotation(event) and event.api != "step":
            self.annotations.append(event)
        faults = self.judge.found
        known = len(faults)
        if self.observer is not None:
            self.observer.before_event(moment, self.judge)
        try:
            self.judge.on_event(event, moment.operation)
            self.judge_members(moment)
        except MALFORMED_ERRORS:
            self.check_messages()
            raise
        if self.observer is not None:
            self.observer.after_event(moment, self.judge)
        for fault in faults[known:]:
            self.found_at.setdefault(fault.sequence, event.sequence)
            if len(self.events_before) < MAX_DETAILED:
                self.events_before[fault.sequence] = tuple(self.recent_events)

    def judge_members(self, moment: PairedEvent) -> None:
        """Judge the member whose event this is."""
        if self.members is None:
            return
        for found in self.members.on_event(moment.event, moment.operation):
            requirement = found[0].requirement
            self.member_violations[requirement] += 1
            if self.member_violations[requirement] <= MAX_MEMBER_FAILURES:
                failure = build_member_failure(self.judge.header, str(self.path), found)
                self.member_failures.append((requirement, failure))

    def member_checks(self) -> dict[str, MemberChecks] | None:
        """What the members kept and broke, by requirement; None if the trace shows no members to judge."""
        return None if self.members is None else count_member_checks(self.members, self.member_violations)

    def check_request(self, event: Event) -> None:
        """Raises `MalformedMessageError` for a request that has not the form of its API: the trace is wrong, not the
        target."""
        try:
            check_request_form(event.api, event.version, event.body)
        except RequestFormError as error:
            raise MalformedMessageError(str(self.path), event.sequence, str(error)) from None

    def check_messages(self) -> None:
        """Raises `MalformedMessageError` for the first message that does not fit the wire format: of all files of the
        trace, else of its last events and the later ones."""
        if self.files and all(path.is_file() for path in self.files):
            events: Iterable[Event] = read_files(self.files)
        else:  # what comes through a pipe cannot be read twice
            events = chain(self.recent_events, (moment.event for moment in self.later))
        check_wire_format(str(self.path), events, self.judge.protocol)

    def implementation(self) -> dict[str, str]:
        """What the trace says of the implementation, and of a recording how many numbers no event has: lines may be
        missing, for recorders skip none."""
        header, skipped = self.judge.header, self.numbers - self.events
        told = {"skipped": f"{skipped} numbers of events"} if skipped > 0 and is_recording(header) else {}
        return {**header.implementation, **told}

    def finish(self) -> TraceVerdict:
        """The verdict on the trace as far as it was read. Raises as `judge_event`."""
        try:
            return self.judge.finish()
        except MALFORMED_ERRORS:
            self.check_messages()
            raise

    def failures(self, verdict: TraceVerdict) -> Iterator[tuple[CheckResult, Failure]]:
        """Yield each violation of a requirement in the verdict on the trace, with the failure that shows it."""
        origin = Origin(str(self.path), "")
        for violation in violations_in(verdict):
            events = self.events_leading_to(violation)
            yield (
                violation,
                build_failure(
                    events,
                    violation,
                    origin,
                    replayed=False,
                    header=self.judge.header,
                    specification=self.judge.protocol.specification,
                ),
            )

    def events_leading_to(self, violation: CheckResult) -> list[Event]:
        """The last events of the group up to a violation; of a short trace only those that it depends on."""
        events = self.events_before.get(violation.sequence, tuple(self.recent_events))
        is_short = len(events) < MAX_SHOWN_EVENTS and self.judge.follower is None
        if violation.violation is not None and is_short and self.minimized < MAX_MINIMIZED:
            self.minimized += 1
            whole = sorted((*self.annotations, *events), key=lambda event: event.sequence)
            events = minimize_trace(self.judge.header, whole, violation.violation, protocol=self.judge.make_protocol)
        group = violation.violation.group if violation.violation is not None else ""
        mine = {event.sequence for event in events if event.kind is Kind.REQUEST and self.concerns_group(event, group)}
        return [event for event in events if event.sequence in mine or event.of in mine or event.api in COMMON_FAULTS]

    def concerns_group(self, request: Event, group: str) -> bool:
        """The request names this group; every request does if `group` is ""."""
        operation = Operation(
            0,
            request.api,
            request.version,
            request.member,
            request.body,
            request.time,
            connection=request.connection,
        )
        try:
            read = list(self.judge.protocol.requests_in(operation, (group,)))
        except (KeyError, TypeError, AttributeError):
            return False
        return not group or any(each.group == group for each in read)


def check_wire_format(name: str, events: Iterable[Event], protocol: JudgedProtocol) -> None:
    """Hold the messages of a trace against the wire format. Raises `MalformedMessageError` for the first that does not
    fit it; `name` is the trace's."""
    for event in events:
        if event.kind in (Kind.REQUEST, Kind.RESPONSE):
            try:
                protocol.check_message(event)
            except MALFORMED_ERRORS as error:
                raise MalformedMessageError(name, event.sequence, str(error)) from None


def read_files(paths: Iterable[Path]) -> Iterator[Event]:
    """Yield the events of some files, of each up to the first line that is none."""
    for path in paths:
        with suppress(TraceError):
            yield from open_trace(path)[1]


def describe_unreadable(count: int, total: int, first: object) -> str:
    """Why a report is not on all of `total` files, in words: so many could not be read, of which this is the first."""
    return f"{count} of {total} files could not be read to the end; the first: {first}"


class TraceReport:
    """The report on recorded traces while they are judged; `total` is the number of their files."""

    def __init__(
        self,
        total: int,
        progress: Callable[[Progress], None],
        histories: list[TraceHistory] | None = None,
        take: Callable[[TraceFindings], None] | None = None,
    ) -> None:
        self.total = total
        self.progress = progress
        self.histories = histories
        self.take = take or self.take_trace
        """Gets each trace when it is judged."""
        self.started_at = time.monotonic()
        self.done = 0
        self.events = 0
        self.cut_short = False
        self.errors: list[TraceError] = []
        """Of the files that could not be read, or not to their end."""
        self.builder = ReportBuilder()
        self.members = MemberFindings()
        self.member_failures: list[tuple[str, Failure]] = []
        self.protocol = ""
        """That of all traces so far."""

    def read_files(self, paths: Sequence[Path]) -> None:
        """Judge the traces in these files. Raises `KeyboardInterrupt`."""
        reader = RecordingReader(paths, self.errors.append)
        for path, header, events in reader.traces():
            known = len(self.errors)
            try:
                self.add_trace(path, header, events, reader.files)
            except TraceError as error:  # a message outside the wire format
                self.errors.append(error)
                continue
            self.done += len(reader.files)
            if len(self.errors) == known:
                self.report_progress(path)

    def add_part(self, part: JudgedPart) -> None:
        """Add what another process found in some of the files."""
        for trace in part.traces:
            try:
                self.take_protocol(trace.path, trace.protocol, specification_named(trace.subject))
            except TraceError as error:
                self.errors.append(error)
                continue
            self.take(trace)
            self.events += trace.events
            self.done += trace.files
            self.report_progress(trace.path)
        self.errors += (TraceError(*error) for error in part.errors)
        if self.histories is not None:
            self.histories += part.histories

    def report_progress(self, path: Path) -> None:
        """Report how far the judging has come; `path` is being judged."""
        seconds = time.monotonic() - self.started_at
        violated = len(self.builder.violated_ids() | self.members.violated_ids())
        self.progress(Progress(self.done, self.total, seconds, violated, f"{path.name}, {self.events} events"))

    def add_trace(self, path: Path, header: Header, events: Iterable[Event], files: Sequence[Path]) -> None:
        """Judge a trace; `files` get those that it is read from. Raises `TraceError`; interrupted, keep what was judged
        and raise `KeyboardInterrupt`."""
        if is_client_trace(header):
            raise TraceError(str(path), 0, "the trace of a client; name its file alone, or with others of clients")
        observer = self.observer_of(path, header)
        try:
            judge = Judge(header, on_step=observer.on_step if observer is not None else None)
        except UnknownProtocol as error:
            raise TraceError(str(path), 1, str(error)) from None
        self.take_protocol(path, header.protocol, judge.protocol.specification)
        moments = Lookahead(events).pair_operations()
        judging, before = TraceJudging(path, judge, observer, files=files, later=moments), self.events
        judging.members = recording_parts().members(header, None) if is_recording(header) else None
        try:
            for moment in moments:
                judging.judge_event(moment)
                self.events += 1
                if self.events % PROGRESS_INTERVAL == 0:
                    self.report_progress(path)
            self.finish_trace(judging)
        except KeyboardInterrupt:
            self.finish_trace(judging)
            raise
        except TraceError:
            self.events = before
            raise

    def observer_of(self, path: Path, header: Header) -> TraceObserver | None:
        """What records the history of a trace, if histories are told. Raises `TraceError`."""
        try:
            return make_recorder(str(path), header, self.histories) if self.histories is not None else None
        except NoHistory as error:
            raise TraceError(str(path), 1, str(error)) from None

    def take_protocol(self, path: Path, protocol: str, specification: Specification) -> None:
        """Report on the protocol of the first trace. Raises `TraceError` for a trace of another one."""
        if self.protocol not in ("", protocol):
            told = f"of the protocol {protocol}, the traces before of {self.protocol}; judge them apart"
            raise TraceError(str(path), 1, told)
        if not self.protocol:
            self.protocol = protocol
            self.builder = ReportBuilder(specification=specification)

    def finish_trace(self, judging: TraceJudging) -> None:
        """Hand on the findings of a trace, as far as it was read."""
        verdict, header = judging.finish(), judging.judge.header
        if judging.observer is not None:
            judging.observer.finish()
        self.take(
            TraceFindings(
                judging.path,
                len(judging.files),
                judging.events,
                judging.judge.protocol.specification.subject,
                header.protocol,
                summarize_trace(replace(header, implementation=judging.implementation()), verdict),
                tuple(f"{judging.path}: {reason}" for reason in sorted(verdict.inconclusive)),
                verdict.check_results,
                tuple((violation.requirement, failure) for violation, failure in judging.failures(verdict)),
                judging.member_checks(),
                tuple(judging.member_failures),
            )
        )

    def take_trace(self, trace: TraceFindings) -> None:
        """Add the findings of a trace."""
        self.builder.add_trace(trace.summary)
        if trace.members is not None:
            self.members.add_findings(MemberFindings(1, trace.members))
            self.member_failures += trace.member_failures
        self.builder.undecided += trace.doubts
        for requirement, failure in trace.failures:
            self.builder.show_failure(requirement, failure)
        self.builder.add_checks(trace.checks)

    def build_report(self) -> Report:
        """The report on everything judged so far."""
        ended = None
        if self.errors:
            self.builder.undecided += (f"not judged: {error}" for error in self.errors)
            reason = describe_unreadable(len(self.errors), self.total, self.errors[0])
            ended = Ending(EndKind.UNREADABLE, reason, time.monotonic() - self.started_at)
        elif self.cut_short:
            ended = Ending(EndKind.INTERRUPTED, "interrupted", time.monotonic() - self.started_at)
        report = self.builder.build(
            schedules=self.done,
            events=self.events,
            seconds=time.monotonic() - self.started_at,
            cut_short=self.cut_short or self.done < self.total,
            ended=ended,
        )
        return self.members.add_to(report, self.member_failures)
