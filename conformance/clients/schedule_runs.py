"""Runs against a client as the schedule engine takes them."""

from fencepost.adapters.client.cluster import CLIENT_LABEL
from fencepost.conformance.clients.play import ClientScenarioRun
from fencepost.conformance.clients.scenario import ClientScenario
from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.scenario_run import ScenarioRun
from fencepost.traces.client_judge.judge import FollowClient, judge_client
from fencepost.traces.verdict import CheckResult, CheckStatus, TraceVerdict


async def _play_nothing(context: ScenarioContext) -> None:
    """A schedule for a client is not for a target."""


def engine_run(run: ClientScenarioRun) -> ScenarioRun:
    """A run against a client, with its violations as failed checks and the rules that it reached."""
    verdict = run.verdict
    failed = [
        CheckResult(violation.requirement, violation.sequence, CheckStatus.FAIL, violation.title)
        for violation in verdict.violations
    ]
    undecided = run.misconduct or run.blocked
    judged = TraceVerdict(
        (),
        (*failed, *verdict.check_results),
        run.rules,
        inconclusive=(undecided,) if undecided else (),
        events=verdict.events,
        transitions=run.transitions,
    )
    return ScenarioRun(Scenario(run.scenario.name, (), _play_nothing), run.header, run.events, judged)


def client_run(run: ScenarioRun, scenario: ClientScenario, follow: FollowClient) -> ClientScenarioRun:
    """A run of the engine as one against a client again, judged by its trace; `scenario` plays it."""
    verdict = judge_client(run.header, run.events, CLIENT_LABEL, follow)
    return ClientScenarioRun(scenario, run.header, run.events, verdict)
