"""Replaying the saved trace of a client: its schedule or scenario is played again with a client, and compared."""

from collections.abc import Sequence
from pathlib import Path

from fencepost.conformance.analysis.failures import Origin
from fencepost.conformance.clients.findings import build_client_failure
from fencepost.conformance.clients.play import ClientPlay, facts_of
from fencepost.conformance.clients.protocol import ClientProtocol
from fencepost.conformance.clients.schedule_protocol import schedule_in
from fencepost.conformance.clients.stage import ClientFacts
from fencepost.conformance.plan import ReplayResult
from fencepost.conformance.results import Failure
from fencepost.conformance.run.scenario_replay import compare_scenario, requirements_to_replay
from fencepost.conformance.scenario.scenario import Scenario, ScenarioRun
from fencepost.traces.events import Event, Header
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.verdict import PASSING, CheckResult

ATTEMPTS = 2
"""How often a schedule is played that does not fail."""


async def replay_client(path: Path, playing: ClientPlay, protocol: ClientProtocol) -> ReplayResult:
    """Play what is in a trace again, and say whether what it was saved for fails again. Raises `TraceError` and
    `TargetError`."""
    header, stream = open_trace(path)
    events = tuple(stream)
    recorded = protocol.judge(header, events)
    wanted = requirements_to_replay(recorded, events)
    scenario = scenario_in(path, header, events, protocol)
    facts = facts_of(ScenarioRun(scenario, header, events, recorded)) or ClientFacts()
    runs: list[ScenarioRun] = []
    for _ in range(ATTEMPTS):
        runs.append(await playing.play(scenario, facts))
        if runs[-1].verdict.violated & (wanted or runs[-1].verdict.violated):
            break

    def build(shown: CheckResult, again: bool) -> Failure:
        return build_client_failure(runs[-1], shown, protocol, Origin(str(path), "again" if again else ""))

    kept = {check.requirement for run in runs for check in run.verdict.check_results if check.status in PASSING}
    doubt = next((run.misconduct or run.blocked for run in runs if run.misconduct or run.blocked), "")
    if not doubt and (missing := sorted(wanted - kept)):
        doubt = f"the client did not come to where {', '.join(missing)} shows"
    return compare_scenario(runs[-1], wanted, protocol.specification, build, doubt)


def scenario_in(path: Path, header: Header, events: Sequence[Event], protocol: ClientProtocol) -> Scenario:
    """The schedule in a trace, or the scenario that it names. Raises `TraceError`."""
    try:
        schedule = schedule_in(events)
    except ValueError as error:
        raise TraceError(str(path), 0, str(error)) from None
    if schedule is not None and protocol.schedules is not None:
        try:
            return protocol.schedules.client_scenario_of(schedule)
        except KeyError as error:
            raise TraceError(str(path), 0, f"a schedule of another version: no move {error}") from None
    name = header.implementation.get("scenario", "")
    found = next((each for each in protocol.scenarios if each.name == name), None)
    if found is None:
        raise TraceError(str(path), 0, f"no schedule, and no scenario named {name!r}; was it written by test-client?")
    return found
