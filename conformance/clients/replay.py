"""Replaying the saved trace of a client: its schedule or scenario is played again with a client, and compared."""

from collections.abc import Sequence
from pathlib import Path

from fencepost.adapters.client.cluster import CLIENT_LABEL
from fencepost.conformance.clients.failures import build_client_failure
from fencepost.conformance.clients.play import ClientPlay, facts_of
from fencepost.conformance.clients.protocol import ClientProtocol
from fencepost.conformance.clients.schedule_protocol import schedule_in
from fencepost.conformance.clients.stage import ClientFacts
from fencepost.conformance.execution.saving import saved_requirements
from fencepost.conformance.plan import ReplayOutcome, ReplayResult
from fencepost.conformance.scenario.scenario import Scenario, ScenarioRun
from fencepost.traces.client_judge.judge import judge_client
from fencepost.traces.events import Event, Header
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.verdict import PASSING

ATTEMPTS = 2
"""How often a schedule is played that does not fail."""
NEVER_FAILED = "nothing fails in the trace, so there is nothing to be fixed; nothing failed this time either"


async def replay_client(path: Path, playing: ClientPlay, protocol: ClientProtocol) -> ReplayResult:
    """Play what is in a trace again, and say whether what it was saved for fails again. Raises `TraceError` and
    `TargetError`."""
    header, stream = open_trace(path)
    events = tuple(stream)
    recorded = judge_client(header, events, CLIENT_LABEL, protocol.follow)
    wanted = saved_requirements(events) & recorded.violated or recorded.violated
    scenario = scenario_in(path, header, events, protocol)
    before = ScenarioRun(scenario, header, events, recorded)
    runs: list[ScenarioRun] = []
    for _ in range(ATTEMPTS):
        runs.append(await playing.play(scenario, facts_of(before) or ClientFacts()))
        if runs[-1].verdict.violated & (wanted or runs[-1].verdict.violated):
            break
    return compare_runs(path, wanted, runs, protocol)


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


def compare_runs(
    path: Path, wanted: frozenset[str], runs: Sequence[ScenarioRun], protocol: ClientProtocol
) -> ReplayResult:
    """The outcome of the runs of a trace's schedule, of which `wanted` was violated in the trace."""
    last = runs[-1]
    violated = last.verdict.violated
    shown = next(
        (each for each in last.verdict.violations if each.requirement in (violated & wanted or violated)), None
    )
    if shown is not None:
        again = shown.requirement in wanted
        failure = build_client_failure(
            last.header, last.events, shown, protocol.follow, str(path), "again" if again else ""
        )
        return ReplayResult(
            ReplayOutcome.STILL_FAILS if again else ReplayOutcome.DIFFERENT,
            shown.requirement,
            failure,
            specification=protocol.specification,
            others=tuple(sorted(violated - {shown.requirement})),
            gone=() if again else tuple(sorted(wanted - violated)),
        )
    kept = {check.requirement for run in runs for check in run.verdict.check_results if check.status in PASSING}
    doubt = next((run.misconduct or run.blocked for run in runs if run.misconduct or run.blocked), "")
    if not doubt and (missing := sorted(wanted - kept)):
        doubt = f"the client did not come to where {', '.join(missing)} shows"
    doubt = doubt or ("" if wanted else NEVER_FAILED)
    outcome = ReplayOutcome.INCONCLUSIVE if doubt else ReplayOutcome.FIXED
    return ReplayResult(outcome, note=doubt, specification=protocol.specification)
