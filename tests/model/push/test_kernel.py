"""The handlers do what the kernel of the proofs allows: each step of the search is an event of it, or none."""

from typing import Any

import pytest

from fencepost.model.explore.engine import apply_transition, explore_system, transitions_from
from fencepost.model.push.dialect import undo_repairs
from fencepost.model.push.explore.properties import kernel_logic, kernel_state, kernel_view
from fencepost.model.push.explore.row import Faults, PushBounds
from fencepost.model.push.explore.system import push_system
from fencepost.model.push.kernel import initial_kernel, invariants, kernel_events


def mismatches(bounds: PushBounds) -> tuple[set[str], set[str], set[str]]:
    """The labels of steps that are no event, the invariants that some state breaks, and the events that were seen."""
    system = push_system(bounds)
    exploration, _ = explore_system(system)
    assert exploration.finished
    logic = kernel_logic(bounds)
    strange: set[str] = set()
    broken: set[str] = set()
    seen: set[str] = set()
    known: dict[Any, tuple[str, ...]] = {}
    for state in exploration.reached_states():
        row = exploration.tables.values(state)
        before = kernel_view(bounds, logic, row)
        broken |= {name for name, holds in invariants(before).items() if not holds}
        for move in transitions_from(system, row):
            after = kernel_view(bounds, logic, apply_transition(row, move))
            pair = kernel_state(before), kernel_state(after)
            if pair not in known:
                known[pair] = events_between(before, after)
            seen |= set(known[pair])
            if not known[pair]:
                strange.add(move.label)
    return strange, broken, seen


def events_between(before: Any, after: Any) -> tuple[str, ...]:
    """The events that lead from one kernel to the other; "nothing" where they are alike."""
    if kernel_state(before) == kernel_state(after):
        return ("nothing",)
    wanted = kernel_state(after)
    return tuple(
        {
            event.name
            for one in before.logic.elements
            for event in kernel_events(before, one, after.plan, after.snapshot)
            if event.guard and kernel_state(event.after) == wanted
        }
    )


def test_the_first_state_is_that_of_the_kernel() -> None:
    bounds = PushBounds(registrations=1)
    logic = kernel_logic(bounds)
    assert kernel_state(kernel_view(bounds, logic, bounds.initial())) == kernel_state(initial_kernel(logic))


SMALL = (
    PushBounds(registrations=1),
    PushBounds(1, registrations=3, capacity=2, faults=Faults(consumer_crashes=1)),
    PushBounds(1, registrations=2, faults=Faults(expiries=1)),
    PushBounds(1, registrations=2, brokers=2, faults=Faults(broker_crashes=1)),
    PushBounds(1, registrations=1, retries=2, faults=Faults(half_starts=1, timeouts=2)),
)


def test_each_step_is_an_event_of_the_kernel() -> None:
    found = [mismatches(bounds) for bounds in SMALL]
    assert [(strange, broken) for strange, broken, _ in found] == [(set(), set())] * len(SMALL)
    kernel = initial_kernel(kernel_logic(SMALL[0]))
    events = kernel_events(kernel, ("c0", 1), kernel.plan, kernel.member)
    names = {event.name for event in events if event.repair != "attempt numbers"}
    assert set().union(*(seen for _, _, seen in found)) == {*names, "nothing"}


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "faults",
    [Faults(expiries=1), Faults(half_starts=1, timeouts=1), Faults(suspicions=1), Faults(pings=1, partitions=1)],
    ids=str,
)
def test_each_step_of_two_consumers_is_an_event_of_the_kernel(faults: Faults) -> None:
    strange, broken, _ = mismatches(PushBounds(registrations=3, capacity=2, faults=faults))
    assert (strange, broken) == (set(), set())


def test_without_the_barrier_a_step_is_none() -> None:
    strange, broken, _ = mismatches(PushBounds(registrations=1, dialect=undo_repairs("command")))
    assert strange and "push.one-owner" in broken
