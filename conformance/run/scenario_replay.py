"""Replaying a trace as a scenario: what the kit did is done again, and what is violated is compared, requirement by
requirement. So are clients replayed, and protocols in which the target speaks first."""

from collections.abc import Callable, Iterable
from pathlib import Path

from fencepost.adapters.target import Target
from fencepost.conformance.analysis.failures import Origin, build_failure
from fencepost.conformance.execution.play import play_scenario
from fencepost.conformance.execution.saving import saved_requirements
from fencepost.conformance.plan import ReplayOutcome, ReplayResult
from fencepost.conformance.protocols.description import ProtocolDescription
from fencepost.conformance.results import Failure
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.model.catalogue.specification import Specification
from fencepost.traces.events import Event
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import CheckResult, TraceVerdict, violations_in

NEVER_FAILED = "nothing fails in the trace, so there is nothing to be fixed; nothing failed this time either"


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
    wanted = requirements_to_replay(judge(header, events, protocol=protocol.judged), events)
    description = await target.open()
    try:
        run = await play_scenario(scenario, target, description, group, grace=grace)
    finally:
        await target.close()

    def build(shown: CheckResult, again: bool) -> Failure:
        origin, specification = Origin(str(path), ""), protocol.specification
        return build_failure(run.events, shown, origin, replayed=again, specification=specification)

    doubt = run.unsupported or run.blocked or next(iter(run.verdict.inconclusive), "")
    return compare_scenario(run, wanted, protocol.specification, build, doubt)


def requirements_to_replay(recorded: TraceVerdict, events: Iterable[Event]) -> frozenset[str]:
    """The requirements that a trace violates, of those that it was saved for if it names any."""
    return saved_requirements(events) & recorded.violated or recorded.violated


def compare_scenario(
    run: ScenarioRun,
    wanted: frozenset[str],
    specification: Specification,
    build: Callable[[CheckResult, bool], Failure],
    doubt: str,
) -> ReplayResult:
    """Whether what a trace violates, `wanted`, is fixed in this run of its scenario; `doubt` says why that is not sure.
    `build` makes the failure of a violation that may have come again."""
    violated = run.verdict.violated
    again = violated & wanted
    shown = next((each for each in violations_in(run.verdict) if each.requirement in (again or violated)), None)
    if shown is not None:
        return ReplayResult(
            ReplayOutcome.STILL_FAILS if again else ReplayOutcome.DIFFERENT,
            shown.requirement,
            build(shown, bool(again)),
            specification=specification,
            others=tuple(sorted(violated - {shown.requirement})),
            gone=() if again else tuple(sorted(wanted - violated)),
        )
    doubt = doubt or ("" if wanted else NEVER_FAILED)
    outcome = ReplayOutcome.INCONCLUSIVE if doubt else ReplayOutcome.FIXED
    return ReplayResult(outcome, note=doubt, specification=specification)
