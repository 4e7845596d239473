"""The smallest part of a recorded trace that shows its fault: causal, and wrong in the same way."""

from functools import cache, partial

from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.classic.schedules.generation import generate_schedules
from fencepost.conformance.classic.schedules.protocol import ClassicSchedules
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.falsify import target_bench
from fencepost.conformance.run.schedule import ScheduleScope
from fencepost.conformance.subject import ScenarioRun
from fencepost.traces.events import Kind
from fencepost.traces.judge.judge import judge
from fencepost.traces.judge.minimize import id_issuers, member_ids_in, minimize_trace
from tests.support.faulty_coordinators import EagerSyncCoordinator


@cache
def premature_sync_trace() -> ScenarioRun:
    """Followers are answered before the leader has assigned anything."""
    scope = ScheduleScope(BUNDLED_SETTINGS)
    make_target = partial(InProcessTarget, BUNDLED_SETTINGS, make_coordinator=EagerSyncCoordinator)
    bench = target_bench(ClassicSchedules(scope), make_target)
    played = [bench.play(each.schedule) for each in generate_schedules(scope, 4, 0, 8)]
    failed = [run for run in played if run.verdict.violations and len(run.events) > 60]
    return min(failed, key=lambda run: run.verdict.violations[0].sequence)  # the one with the least before the fault


def test_a_trace_becomes_as_short_as_its_fault_allows() -> None:
    played = premature_sync_trace()
    fault = played.verdict.violations[0]
    part = minimize_trace(played.header, played.events, fault, seconds=60)
    requests = [event for event in part if event.kind is Kind.REQUEST]
    assert len(requests) <= 6
    assert fault.sequence == requests[-1].sequence
    (again, *_) = judge(played.header, part).violations
    assert (again.sequence, again.kind) == (fault.sequence, fault.kind)


def test_what_is_left_is_part_of_the_trace_and_causal() -> None:
    played = premature_sync_trace()
    part = minimize_trace(played.header, played.events, played.verdict.violations[0], seconds=60)
    assert [event for event in played.events if event in part] == list(part)
    kept = {event.sequence for event in part}
    assert all(event.of in kept for event in part if event.of is not None)
    givers = id_issuers(played.events)
    named = {
        each for event in part if event.kind is Kind.REQUEST for each in member_ids_in(event.body) if each in givers
    }
    assert {givers[each] for each in named} <= kept


def test_without_time_the_trace_stays_whole_up_to_the_fault() -> None:
    played = premature_sync_trace()
    fault = played.verdict.violations[0]
    part = minimize_trace(played.header, played.events, fault, seconds=0)
    assert part == played.events[: len(part)]
    assert any(event.of == fault.sequence for event in part)
