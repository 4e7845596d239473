"""A toy protocol goes through runs: schedules played, judged, confirmed, shrunk, saved, replayed and reported."""

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fencepost.conformance.plan import Plan, ReplayOutcome, ReplayResult
from fencepost.conformance.profile import Profile
from fencepost.conformance.reports.json_report import ReportError, from_json, to_json
from fencepost.conformance.reports.junit import to_junit
from fencepost.conformance.reports.report import render_replay, render_report
from fencepost.conformance.results import Report, Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.play import Bench, Counterexample, NoCounterexample, falsify, target_bench
from fencepost.conformance.run.replay import replay_in_process
from fencepost.conformance.run.stream import TraceSaver, consume, stream_events
from fencepost.conformance.subject import TraceJudge
from fencepost.model.frozen import evolve
from fencepost.traces.events import Body, Event, Header
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict
from tests.support.lease.protocol import (
    HANDLERS,
    LEASE,
    REQUIREMENTS,
    SPECIFICATION,
    Lease,
    LeaseError,
    LeaseProtocol,
    LeaseSchedules,
    LeaseStep,
    Request,
    handle_request,
    lease_target,
)

SCHEDULES = 60
Handler = Callable[[Lease, str, Body, int], LeaseStep]
judge_lease = partial(judge, protocol=LeaseProtocol)


def reuse_tokens(lease: Lease, api: str, body: Body, now: int) -> LeaseStep:
    """Every lease has the same token."""
    step = handle_request(lease, api, body, now)
    granted = api == "acquire" and step.error is LeaseError.NONE
    return evolve(step, token=1, lease=evolve(step.lease, token=1)) if granted else step


def never_expire(lease: Lease, api: str, body: Body, now: int) -> LeaseStep:
    """The deadline never comes."""
    return HANDLERS[api](lease, Request(**body), now)


FAULTS = pytest.mark.parametrize(("handle", "requirement"), [(reuse_tokens, "LEASE-01"), (never_expire, "LEASE-02")])


def bench_with(handle: Handler = handle_request, judge: TraceJudge = judge_lease) -> Bench:
    """A bench with lease servers that handle requests so."""
    return target_bench(LeaseSchedules(), partial(lease_target, handle), judge=judge)


def run_schedules(handle: Handler, folder: Path) -> Report:
    """The report of a run of random schedules alone, on servers that handle requests so."""
    plan = Plan("lease", schedules=SCHEDULES, save=folder)
    run = BundledRun(plan, Profile(), lambda settings: lease_target(handle), can_configure=False, protocol=LEASE)
    requirements = tuple(REQUIREMENTS.values())
    return asyncio.run(consume(stream_events(lambda emit: run.run(requirements, emit)), TraceSaver(folder)))


def saved_trace(folder: Path) -> Path:
    """The only trace in a folder."""
    (trace,) = folder.iterdir()
    return trace


def replay(trace: Path, handle: Handler) -> ReplayResult:
    """The result of replaying a trace on a server that handles requests so."""
    return asyncio.run(replay_in_process(trace, lambda settings: lease_target(handle), LEASE))


def test_correct_lease_shows_no_violation(tmp_path: Path) -> None:
    report = run_schedules(handle_request, tmp_path)
    assert (report.schedules, [*tmp_path.iterdir()]) == (SCHEDULES, [])
    assert not any(result.failures for result in report.results)
    assert report.coverage is not None
    assert (report.coverage.undecided, report.coverage.missed) == ({}, {})
    assert report.coverage.rules == {}
    assert "free / Request / acquire.free / held" in report.coverage.transitions
    assert {name for name, rule in report.rules.items() if rule.seen} == set(SPECIFICATION.rules)


@FAULTS
def test_faulty_lease_is_reported_with_its_requirement(handle: Handler, requirement: str, tmp_path: Path) -> None:
    report = run_schedules(handle, tmp_path)
    (failed,) = (result for result in report.results if result.verdict is Verdict.FAIL)
    (failure,) = failed.failures
    assert (failed.id, failure.replayed) == (requirement, True)
    assert [line.split()[4] for line in failure.schedule] in (["acquire", "acquire"], ["acquire", "renew"])
    trace = saved_trace(tmp_path)
    assert failure.trace == str(trace)
    header, events = open_trace(trace)
    (violation,) = judge_lease(header, tuple(events), {}).violations
    assert violation.requirements == (requirement,)


@FAULTS
def test_counterexample_has_the_fewest_moves(handle: Handler, requirement: str) -> None:
    bench = bench_with(handle)
    found = falsify(bench, seed=1, seconds=60)
    assert isinstance(found, Counterexample)
    assert found.requirement == requirement
    assert [move.kind for move in found.shrunk.moves][:-1] == ["acquire", "wait"]
    assert not any(move.options for move in found.shrunk.moves)
    assert bench.violated_by(found.shrunk) == {requirement}
    assert bench_with().violated_by(found.shrunk) == frozenset()


@FAULTS
def test_saved_trace_is_replayed(handle: Handler, requirement: str, tmp_path: Path) -> None:
    run_schedules(handle, tmp_path)
    trace = saved_trace(tmp_path)
    again, fixed = replay(trace, handle), replay(trace, handle_request)
    assert (again.outcome, again.requirement) == (ReplayOutcome.STILL_FAILS, requirement)
    assert render_replay(again).startswith(f"FAIL {requirement} MUST: {SPECIFICATION.requirements[requirement].title}")
    assert fixed.outcome is ReplayOutcome.FIXED


def test_replay_shows_another_violation(tmp_path: Path) -> None:
    run_schedules(reuse_tokens, tmp_path)
    result = replay(saved_trace(tmp_path), never_expire)
    assert (result.outcome, result.requirement) == (ReplayOutcome.DIFFERENT, "LEASE-02")


def test_report_of_a_lease_in_every_format(tmp_path: Path) -> None:
    report = run_schedules(never_expire, tmp_path)
    text = render_report(report)
    assert "FAIL LEASE-02 MUST: Leases expire" in text
    assert "A lease is free once its deadline has come." in text and "  LEASE " in text
    document = json.loads(to_json(report))
    assert [each["title"] for each in document["requirements"]] == [each.title for each in REQUIREMENTS.values()]
    assert from_json(to_json(report), SPECIFICATION) == report
    suites = ElementTree.fromstring(to_junit(report))
    assert [suite.get("name") for suite in suites.iterfind("testsuite")] == ["LEASE"]
    (failure,) = suites.iterfind("testsuite/testcase/failure")
    message = "acquire response has the wrong error_code and token. A lease is free once its deadline has come."
    assert failure.get("message") == message


def test_report_of_a_lease_is_none_of_the_default_protocol(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="there is no requirement 'LEASE-01'"):
        from_json(to_json(run_schedules(handle_request, tmp_path)))


def test_violation_that_no_replay_shows_is_no_counterexample() -> None:
    seen: list[Header] = []

    def judge_once(header: Header, events: tuple[Event, ...], decisions: Mapping[str, bool]) -> TraceVerdict:
        verdict = judge_lease(header, events, decisions)
        if not verdict.violations or seen:
            return TraceVerdict((), (), {})
        seen.append(header)
        return verdict

    found = falsify(bench_with(never_expire, judge_once), seed=1, seconds=0.5)
    assert isinstance(found, NoCounterexample)
    assert seen
