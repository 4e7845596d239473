"""Saved traces of clients: judged once more without the client, or played again with one."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fencepost.conformance.analysis.failures import Origin, failure_in
from fencepost.conformance.analysis.report_builder import ReportBuilder
from fencepost.conformance.analysis.trace_report import MALFORMED_ERRORS, describe_unreadable
from fencepost.conformance.clients.protocol import ClientProtocol, schedule_in
from fencepost.conformance.clients.stage import ClientFacts, ClientPlayer, ClientStage, facts_in, run_in_trace
from fencepost.conformance.events import Progress
from fencepost.conformance.plan import ReplayResult
from fencepost.conformance.results import Ending, EndKind, Report
from fencepost.conformance.run.falsify import Player
from fencepost.conformance.run.play import discard_if_lagging
from fencepost.conformance.run.provenance import record_judging
from fencepost.conformance.run.replay import replay_scenario
from fencepost.conformance.subject import Scenario
from fencepost.traces.client_judge.judge import is_client_trace, is_driven_trace
from fencepost.traces.events import Event, Header
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.verdict import violations_in

# -- judging once more ------------------------------------------------------------------------------------------------


def find_client_traces(paths: Sequence[Path]) -> dict[Path, bool]:
    """The traces of clients among some traces, and whether each has an application in it; a file that cannot be read is
    none, and standard input is not looked at."""
    found = {}
    for path in paths:
        try:
            header = open_trace(path)[0] if path.is_file() else None
        except (TraceError, OSError):
            continue
        if header is not None and is_client_trace(header):
            found[path] = is_driven_trace(header)
    return found


def judge_client_files(paths: Sequence[Path], progress: Callable[[Progress], None], protocol: ClientProtocol) -> Report:
    """The report on traces of clients. A file that cannot be read is told in the report; it is a `TraceError` if it is
    the only one. Interrupted, report on those judged so far."""
    requirements = protocol.specification.requirements
    left_out = protocol.requirements_out_of_reach(requirements.values())
    judging = ClientTraces(protocol, ReportBuilder(requirements, left_out, specification=protocol.specification))
    provenance, begun = record_judging(), time.monotonic()
    ended: Ending | None = None
    done = 0
    try:
        for path in paths:
            judging.add(path)
            done += 1
            violated = len(judging.violated)
            progress(Progress(done, len(paths), time.monotonic() - begun, violated, path.name))
    except KeyboardInterrupt:
        ended = Ending(EndKind.INTERRUPTED, "interrupted", time.monotonic() - begun)
    errors = judging.errors
    if len(errors) == len(paths):
        raise errors[0]
    if errors:
        judging.builder.undecided += (f"not judged: {error}" for error in errors)
        ended = ended or Ending(
            EndKind.UNREADABLE, describe_unreadable(len(errors), len(paths), errors[0]), time.monotonic() - begun
        )
    report = judging.builder.build(
        target=judging.target(),
        schedules=done - len(errors),
        events=judging.events,
        seconds=time.monotonic() - begun,
        ended=ended,
    )
    return replace(report, provenance=provenance)


async def play_nothing(stage: ClientStage) -> None:
    """A scenario that is known by its trace alone."""


@dataclass(slots=True)
class ClientTraces:
    """Traces of clients while they are judged one after the other."""

    protocol: ClientProtocol
    builder: ReportBuilder
    events: int = 0
    violated: set[str] = field(default_factory=set)
    errors: list[TraceError] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """Those of the clients."""

    def add(self, path: Path) -> None:
        """Judge a trace, or keep the error that it is."""
        try:
            header, stream = open_trace(path)
            events = tuple(stream)
            verdict = self.protocol.judge(header, events)
        except TraceError as error:
            self.errors.append(error)
            return
        except MALFORMED_ERRORS as error:
            self.errors.append(TraceError(str(path), 0, f"a message has not the form of its API: {error}"))
            return
        run = discard_if_lagging(run_in_trace(header, events, verdict, self._scenario_of(header)))
        self.events += len(events)
        self.names.add(header.implementation.get("name", header.source))
        self.violated |= run.verdict.violated
        for result in violations_in(run.verdict):
            failure = failure_in(run, result, self.protocol.subject, Origin(str(path), ""), replayed=False)
            self.builder.add_failure(result.requirement, failure)
        self.builder.add_watched_run(run)

    def _scenario_of(self, header: Header) -> Scenario:
        """The scenario that a trace names; without requirements for a random schedule, or an unknown one."""
        name = header.implementation.get("scenario", "")
        known = (each for each in self.protocol.scenarios if each.name == name)
        return next(known, Scenario(name, (), play_nothing))

    def target(self) -> dict[str, str]:
        """The description of the client, or of the traces of several."""
        return {"name": next(iter(self.names)) if len(self.names) == 1 else f"{len(self.names)} clients"}


# -- playing again ----------------------------------------------------------------------------------------------------


async def replay_client(path: Path, player: ClientPlayer, protocol: ClientProtocol) -> ReplayResult:
    """Play what is in a trace again, and say whether what it was saved for fails again. Raises `TraceError` and
    `TargetError`."""

    def prepare(header: Header, events: tuple[Event, ...]) -> tuple[Scenario, Player]:
        scenario = scenario_in(path, header, events, protocol)
        return scenario, replace(player, facts=facts_in(events) or ClientFacts())

    return await replay_scenario(path, protocol.subject, prepare, path.stem)


def scenario_in(path: Path, header: Header, events: Sequence[Event], protocol: ClientProtocol) -> Scenario:
    """The schedule in a trace, or the scenario that it names. Raises `TraceError`."""
    try:
        schedule = schedule_in(events)
    except ValueError as error:
        raise TraceError(str(path), 0, str(error)) from None
    if schedule is not None and protocol.schedules is not None:
        try:
            return protocol.schedules.scenario_of(schedule)
        except KeyError as error:
            raise TraceError(str(path), 0, f"a schedule of another version: no move {error}") from None
    name = header.implementation.get("scenario", "")
    found = next((each for each in protocol.scenarios if each.name == name), None)
    if found is None:
        raise TraceError(str(path), 0, f"no schedule, and no scenario named {name!r}; was it written by test-client?")
    return found
