"""A toy protocol goes through the schedule engine: played, judged, confirmed, shrunk, saved, replayed and reported."""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from fencepost.conformance.execution.saving import TraceSaver
from fencepost.conformance.plan import Plan
from fencepost.conformance.results import Report, Verdict
from fencepost.conformance.run.run_state import RunState
from fencepost.conformance.scenario.selection import Selection
from fencepost.conformance.schedules.bench import Bench, TraceJudge
from fencepost.conformance.schedules.falsify import Counterexample, NoCounterexample, falsify
from fencepost.conformance.schedules.protocol import CoverageGoals
from fencepost.conformance.schedules.virtual_engine import BatchWorker, VirtualEngine
from fencepost.model.catalogue.requirement import must
from fencepost.model.frozen import evolve
from fencepost.traces.events import Body, Event, Header, Kind
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.model_transitions import Transition
from fencepost.traces.verdict import TraceVerdict, Violation
from tests.support.lease.protocol import HANDLERS, RULES, Lease, LeaseError, LeaseStep, Request
from tests.support.lease.server import LeaseSchedules, LeaseTarget, handle_request

TOKENS_GROW = must("LEASE-01", "Tokens grow", "Each token is larger than every token before it.", "the toy protocol")
LEASES_EXPIRE = must("LEASE-02", "Leases expire", "A lease is free once its deadline has come.", "the toy protocol")
GOALS = CoverageGoals(frozenset({Transition("free", "acquire", "acquire.free", "held")}), RULES)
SCHEDULES = 60


def judge_lease(header: Header, events: tuple[Event, ...], decisions: Mapping[str, bool]) -> TraceVerdict:
    """Hold each response against the model."""
    responses = {event.of: event.body for event in events if event.kind is Kind.RESPONSE}
    lease, violations, rules, transitions = Lease(), [], dict[str, int](), dict[Transition, int]()
    for event in (event for event in events if event.kind is Kind.REQUEST):
        step = handle_request(lease, event.api, event.body, event.time)
        expected, observed = {"error": int(step.error), "token": step.token}, responses[event.sequence]
        transition = Transition(phase(lease), event.api, step.rule, phase(step.lease))
        rules[step.rule] = rules.get(step.rule, 0) + 1
        transitions[transition] = transitions.get(transition, 0) + 1
        lease = step.lease
        if fields := tuple(name for name in expected if expected[name] != observed[name]):
            requirement = LEASES_EXPIRE if "error" in fields else TOKENS_GROW
            violations.append(
                Violation(
                    event.sequence, "lease", event.api, fields, str(observed), (str(expected),), step.rule,
                    RULES[step.rule], (requirement.id,)
                )
            )  # fmt: skip
    return TraceVerdict(tuple(violations), (), rules, events=len(events), transitions=transitions)


def phase(lease: Lease) -> str:
    return "free" if lease.holder is None else "held"


def reuse_tokens(lease: Lease, api: str, body: Body, now: int) -> LeaseStep:
    """Every lease has the same token."""
    step = handle_request(lease, api, body, now)
    granted = api == "acquire" and step.error is LeaseError.NONE
    return evolve(step, token=1, lease=evolve(step.lease, token=1)) if granted else step


def never_expire(lease: Lease, api: str, body: Body, now: int) -> LeaseStep:
    """The deadline never comes."""
    return HANDLERS[api](lease, Request(**body), now)


FAULTS = pytest.mark.parametrize(("handle", "requirement"), [(reuse_tokens, "LEASE-01"), (never_expire, "LEASE-02")])


def bench_with(handle: object = handle_request, judge: TraceJudge = judge_lease) -> Bench:
    """A bench with lease servers that handle requests so."""
    return Bench(LeaseSchedules(), partial(LeaseTarget, handle), judge=judge)  # type: ignore[arg-type]


def run_schedules(bench: Bench, folder: Path) -> Report:
    """The report of a run of random schedules alone."""
    selection = Selection((TOKENS_GROW, LEASES_EXPIRE), (), {})
    plan = Plan("lease", schedules=SCHEDULES, save=folder)
    state = RunState(plan, selection, TraceSaver(folder), goals=GOALS)
    asyncio.run(state.run_schedules(VirtualEngine(BatchWorker(bench), plan.seed, plan.schedules, {})))
    return state.build_report({"name": "lease"})


def test_correct_lease_shows_no_violation(tmp_path: Path) -> None:
    report = run_schedules(bench_with(), tmp_path)
    assert (report.schedules, [*tmp_path.iterdir()]) == (SCHEDULES, [])
    assert not any(result.failures for result in report.results)
    assert report.coverage is not None
    assert (report.coverage.undecided, report.coverage.missed) == ({}, {})
    assert set(report.coverage.rules) == {"expire"}


@FAULTS
def test_faulty_lease_is_reported_with_its_requirement(handle: object, requirement: str, tmp_path: Path) -> None:
    report = run_schedules(bench_with(handle), tmp_path)
    (failed,) = (result for result in report.results if result.verdict is Verdict.FAIL)
    (failure,) = failed.failures
    assert (failed.id, failure.replayed) == (requirement, True)
    assert [line.split()[4] for line in failure.schedule] in (["acquire", "acquire"], ["acquire", "renew"])
    (trace,) = tmp_path.iterdir()
    assert failure.trace == str(trace)
    header, events = open_trace(trace)
    (violation,) = judge_lease(header, tuple(events), {}).violations
    assert violation.requirements == (requirement,)


@FAULTS
def test_counterexample_has_the_fewest_moves(handle: object, requirement: str) -> None:
    bench = bench_with(handle)
    found = falsify(bench, seed=1, seconds=60)
    assert isinstance(found, Counterexample)
    assert found.requirement == requirement
    assert [move.kind for move in found.shrunk.moves][:-1] == ["acquire", "wait"]
    assert not any(move.options for move in found.shrunk.moves)
    assert bench.violated_by(found.shrunk) == {requirement}
    assert bench_with().violated_by(found.shrunk) == frozenset()


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
