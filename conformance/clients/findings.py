"""Findings about a client, from runs and from saved traces, as results of a report."""

from collections.abc import Iterable, Mapping

from fencepost.conformance.analysis.aggregation import NOT_AGAIN, NOT_REPLAYED_HERE, ViolationStatus
from fencepost.conformance.analysis.failures import Origin, build_failure, shortest_excerpt
from fencepost.conformance.analysis.report_builder import ReportBuilder
from fencepost.conformance.clients.protocol import ClientProtocol
from fencepost.conformance.results import Failure
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.model.catalogue.requirement import Requirement, Verifiability
from fencepost.traces.verdict import PASSING, CheckResult, CheckStatus, violations_in

NOT_CHOSEN = "failed once, see {}, which was not replayed"
"""The note of a violation in a scenario in whose place others that show it were replayed, or none."""


def begin_client_report(
    protocol: ClientProtocol, requirements: tuple[Requirement, ...], deviations: Mapping[str, str] | None = None
) -> ReportBuilder:
    """A report on these requirements, without findings; those that the client cannot show are left out, `deviations`
    are declared."""
    left_out = {each.id: reason for each in requirements if (reason := reason_left_out(protocol, each))}
    return ReportBuilder([each.id for each in requirements], left_out, deviations, specification=protocol.specification)


def reason_left_out(protocol: ClientProtocol, requirement: Requirement) -> str:
    """Why a client of which only requests are seen cannot show that it keeps a requirement, "" if it can."""
    if requirement.testability is Verifiability.UNTESTABLE:
        return requirement.why
    missing = [protocol.needs[need] for need in requirement.needs if need in protocol.out_of_reach]
    return f"needs {' and '.join(missing)}" if missing else ""


def build_client_failure(run: ScenarioRun, result: CheckResult, protocol: ClientProtocol, origin: Origin) -> Failure:
    """A violation in a run as a failure; if `origin` has the command that shows it again, a replay has confirmed it."""
    assert result.violation is not None
    excerpt = shortest_excerpt(run.header, run.events, result.violation, protocol.judge)
    return build_failure(run.events, result, origin, replayed=bool(origin.replay), excerpt=excerpt)


def add_client_run(
    builder: ReportBuilder,
    protocol: ClientProtocol,
    run: ScenarioRun,
    trace: str,
    again: Mapping[str, frozenset[str]],
    command: str,
) -> None:
    """Add a run of a scenario, with its `trace` if that is saved. `again` has the requirements that the replays of
    scenarios violated, by their names; `command` tests one requirement again, with {} in the place of its id."""
    name = run.scenario.name
    confirmed = frozenset[str]().union(*again.values())
    for result in violations_in(run.verdict):
        id = result.requirement
        if id not in builder.findings:
            continue
        if id in again.get(name, ()):
            failure = build_client_failure(run, result, protocol, Origin(trace, command.format(id)))
            builder.add_failure(id, failure)
        elif id in confirmed:
            builder.findings[id].add_violation(ViolationStatus.CONFIRMED_ELSEWHERE, NOT_REPLAYED_HERE)
        else:
            note = (NOT_AGAIN if name in again else NOT_CHOSEN).format(trace or name)
            builder.findings[id].add_violation(ViolationStatus.UNCONFIRMED, note)
    add_client_results(builder, run)


def add_client_results(builder: ReportBuilder, run: ScenarioRun) -> None:
    """Add what a run of a scenario shows beside its violations: checks, and why some were not made."""
    name = run.scenario.name
    if run.misconduct:
        builder.undecided.append(f"{name}: {run.misconduct}")
    add_client_checks(builder, run.verdict.check_results)
    shown = {check.requirement for check in run.verdict.check_results} | run.verdict.violated
    for id in run.scenario.requirements:
        if id not in shown and id not in builder.left_out and (run.blocked or run.not_shown):
            status = CheckStatus.INCONCLUSIVE if run.blocked else CheckStatus.NOT_OBSERVED
            builder.add_check(id, status, f"{name}: {run.blocked or run.not_shown}")


def add_client_checks(builder: ReportBuilder, checks: Iterable[CheckResult]) -> None:
    """Add the results of checks; a requirement that is left out is not said to hold."""
    builder.add_checks(
        check for check in checks if check.requirement not in builder.left_out or check.status not in PASSING
    )
