"""Replaying a trace as a scenario, for protocols in which the target speaks first: what the kit did is done again, and
the verdicts are compared requirement by requirement."""

from pathlib import Path

from fencepost.adapters.target import Target
from fencepost.conformance.analysis.failures import Origin, build_failure
from fencepost.conformance.execution.play import play_scenario
from fencepost.conformance.execution.saving import saved_requirements
from fencepost.conformance.plan import ReplayOutcome, ReplayResult
from fencepost.conformance.protocols.description import ProtocolDescription
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import CheckResult, violations_in


async def replay_scenario(
    path: Path, protocol: ProtocolDescription, target: Target, group: str, grace: int
) -> ReplayResult:
    """Play a trace again on a target, in this group, and compare. Raises `TraceError` and `TargetError`."""
    header, stream = open_trace(path)
    events = tuple(stream)
    assert protocol.repeat is not None
    try:
        scenario = protocol.repeat(events)
    except ValueError as error:
        raise TraceError(str(path), 0, str(error)) from None
    recorded = {each.requirement for each in violations_in(judge(header, events, protocol=protocol.judged))}
    wanted = recorded & saved_requirements(events) or recorded
    description = await target.open()
    try:
        run = await play_scenario(scenario, target, description, group, grace=grace)
    finally:
        await target.close()
    return compare_scenario(run, frozenset(wanted), str(path), protocol)


def compare_scenario(
    run: ScenarioRun, wanted: frozenset[str], trace: str, protocol: ProtocolDescription
) -> ReplayResult:
    """Whether what the trace violates, `wanted`, is fixed in this run of its scenario."""
    fails = violations_in(run.verdict)
    again = [each for each in fails if each.requirement in wanted]
    if fails:
        outcome = ReplayOutcome.STILL_FAILS if again else ReplayOutcome.DIFFERENT
        return failed_replay(run, outcome, (again or fails)[0], wanted, trace, protocol)
    doubt = run.unsupported or run.blocked or next(iter(run.verdict.inconclusive), "")
    if not doubt and not wanted:
        doubt = "nothing fails in the trace, so there is nothing to be fixed; nothing failed this time either"
    outcome = ReplayOutcome.INCONCLUSIVE if doubt else ReplayOutcome.FIXED
    return ReplayResult(outcome, note=doubt, specification=protocol.specification)


def failed_replay(
    run: ScenarioRun,
    outcome: ReplayOutcome,
    shown: CheckResult,
    wanted: frozenset[str],
    trace: str,
    protocol: ProtocolDescription,
) -> ReplayResult:
    """The result of a replay that violates something."""
    violated = {each.requirement for each in violations_in(run.verdict)}
    again = outcome is ReplayOutcome.STILL_FAILS
    failure = build_failure(run.events, shown, Origin(trace, ""), replayed=again, specification=protocol.specification)
    return ReplayResult(
        outcome,
        shown.requirement,
        failure,
        specification=protocol.specification,
        others=tuple(sorted(violated - {shown.requirement})),
        gone=() if again else tuple(sorted(wanted - violated)),
    )
