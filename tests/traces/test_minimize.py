"""The smallest part of a recorded trace that shows its fault: causal, and wrong in the same way."""

from functools import cache

from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.execution.play import Played
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.schedules.classic.generation import Ground, draw
from fencepost.conformance.schedules.falsify import perform
from fencepost.traces.events import Kind
from fencepost.traces.judge.judge import judge
from fencepost.traces.judge.minimize import excerpt, handed_out, ids_in
from tests.support.faulty_coordinators import Hasty


@cache
def failing() -> Played:
    """Followers are answered before the leader has assigned anything."""
    for drawn in draw(Ground(BUNDLED_SETTINGS), 3, 0, 20):
        played = perform(lambda: InProcessTarget(BUNDLED_SETTINGS, make_coordinator=Hasty), drawn.schedule)
        if played.verdict.faults and len(played.events) > 60:
            return played
    raise AssertionError("no schedule shows it")


def test_a_trace_becomes_as_short_as_its_fault_allows() -> None:
    played = failing()
    fault = played.verdict.faults[0]
    part = excerpt(played.header, played.events, fault, seconds=60)
    requests = [event for event in part if event.kind is Kind.REQUEST]
    assert len(requests) <= 6
    assert fault.sequence == requests[-1].sequence
    (again, *_) = judge(played.header, part).faults
    assert (again.sequence, again.kind) == (fault.sequence, fault.kind)


def test_what_is_left_is_part_of_the_trace_and_causal() -> None:
    played = failing()
    part = excerpt(played.header, played.events, played.verdict.faults[0], seconds=60)
    assert [event for event in played.events if event in part] == list(part)
    kept = {event.sequence for event in part}
    assert all(event.of in kept for event in part if event.of is not None)
    givers = handed_out(played.events)
    named = {each for event in part if event.kind is Kind.REQUEST for each in ids_in(event.body) if each in givers}
    assert {givers[each] for each in named} <= kept


def test_without_time_the_trace_stays_whole_up_to_the_fault() -> None:
    played = failing()
    fault = played.verdict.faults[0]
    part = excerpt(played.header, played.events, fault, seconds=0)
    assert part == played.events[: len(part)]
    assert any(event.of == fault.sequence for event in part)
