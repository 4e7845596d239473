"""The handlers of the consistent region: what a requirement says of one step."""

from itertools import permutations, product

import pytest

from fencepost.model.frozen import evolve
from fencepost.model.region import operator, settings
from fencepost.model.region.controller import (
    GroupBean,
    OperatorCheckpoint,
    Region,
    RegionMode,
    contribute,
    has_permit,
    merge_offsets,
    register,
    request_reset,
    retire,
)
from fencepost.model.region.operator import (
    ClientState,
    DrainTimes,
    Membership,
    Operator,
    Polling,
    assignment_metrics,
    count_drain,
    fetch,
    new_operator,
    on_assigned,
    on_revoked,
    start_offsets,
    submit_message,
    take_message,
)
from fencepost.model.region.settings import DOCUMENTED, REPAIRED, merge_wait_ms

NOTHING = (None, None)
JOB = frozenset("AB")


def part(name: str, *offsets: int | None, base: tuple[int | None, ...] = NOTHING) -> OperatorCheckpoint:
    return OperatorCheckpoint(name, JOB, offsets, base)


def owner() -> Operator:
    """An operator that has both partitions, sought to 0."""
    return on_assigned(evolve(new_operator(2), membership=Membership.JOINING), (0, 1), NOTHING, REPAIRED).operator


@pytest.mark.parametrize(("records", "capacity"), [(1, 100), (500, 50_000), (10_000, 1_000_000)])
def test_capacity_of_the_queue(records: int, capacity: int) -> None:  # REGION-07, REGION-08
    assert settings.queue_capacity(records) == capacity
    assert settings.must_pause(capacity - records + 1, records)
    assert not settings.must_pause(capacity - records, records)


@pytest.mark.parametrize(
    ("reset", "poll", "wait"), [(180_000, 300_000, 15_000), (20_000, 300_000, 10_000), (180_000, 16_000, 8_000)]
)
def test_time_to_wait_for_a_merge(reset: int, poll: int, wait: int) -> None:  # REGION-38
    assert merge_wait_ms(reset, poll, DOCUMENTED) == wait


def test_settings_that_are_refused() -> None:  # REGION-05, REGION-06
    assert settings.accepts_control_port(False) and not settings.accepts_control_port(True)
    assert all(map(settings.accepts_start_position, ("Beginning", "End", "Default", "Time")))
    assert not settings.accepts_start_position("Offset")


def test_metrics() -> None:  # REGION-22, REGION-27
    times = DrainTimes()
    for took in (5, 9, 3):
        times = count_drain(times, took)
    assert times == DrainTimes(3, 9)
    assert assignment_metrics([("t", 0), ("t", 1), ("u", 0)]) == (3, 2)


@pytest.mark.parametrize(("seek", "variable"), list(product((None, 7), (None, 4))))
def test_order_of_start_offsets(seek: int | None, variable: int | None) -> None:  # REGION-18, REGION-20
    found, made = start_offsets((seek, None), (variable, None), (0,))
    assert found[0] == (seek if seek is not None else variable if variable is not None else 0)
    assert made[0] == (variable if seek is not None or variable is not None else 0)
    assert start_offsets((seek, None), (variable, None), ())[0] == NOTHING


@pytest.mark.parametrize("state", [ClientState.SUBSCRIBED, ClientState.RESET_COMPLETE])
def test_a_revocation_that_needs_no_reset(state: ClientState) -> None:  # REGION-12
    step = on_revoked(evolve(owner(), state=state))
    assert not step.requests_reset and step.operator.state is state


def test_a_revocation_after_a_fetch() -> None:  # REGION-13, REGION-14, REGION-19
    step = on_revoked(fetch(owner(), 0).operator)
    pending = step.operator
    assert step.requests_reset
    assert (pending.queue, pending.polling, pending.state) == ((), Polling.OFF, ClientState.RESET_PENDING)
    assigned = on_assigned(pending, (0,), NOTHING, REPAIRED).operator
    assert assigned.positions == (-1, None) and assigned.offsets == (0, None)
    dropped = fetch(assigned, 0)
    assert (dropped.rule, dropped.operator.queue) == ("poll.dropped", ())
    assert on_revoked(assigned).rule == "revoke.pending"


def test_an_assignment_after_a_fetch() -> None:  # REGION-51
    fetched = fetch(owner(), 0).operator
    assert on_assigned(fetched, (1,), NOTHING, DOCUMENTED).rule == "assign.no-rule"
    assert on_assigned(fetched, (1,), NOTHING, REPAIRED).requests_reset


def test_messages_and_permits() -> None:  # REGION-10, REGION-11, REGION-42
    fetched = fetch(owner(), 0).operator
    assert take_message(fetched, False, REPAIRED) is None
    early = take_message(fetched, False, DOCUMENTED)
    assert early is not None and submit_message(early.operator, False, DOCUMENTED) is None
    taken = take_message(fetched, True, REPAIRED)
    assert taken is not None
    submitted = submit_message(taken.operator, True, REPAIRED)
    assert submitted is not None and (submitted.submitted, submitted.operator.offsets) == ((0, 0), (1, 0))
    late = evolve(taken.operator, offsets=(None, 0))
    dropped = submit_message(late, True, REPAIRED)
    assert dropped is not None and dropped.submitted is None and dropped.operator.offsets == (None, 0)


def test_drain_and_resume() -> None:  # REGION-24, REGION-25, REGION-28
    fetched = fetch(owner(), 1).operator
    drained = operator.drain(fetched).operator
    assert (drained.queue, drained.drained, drained.polling) == ((), ((1, 0),), Polling.OFF)
    assert operator.offsets_to_commit(drained) == (0, 0)
    written = operator.write_checkpoint(drained, "A", JOB, DOCUMENTED)
    assert written == part("A", 0, 0)
    resumed = operator.resume(drained).operator
    assert (resumed.queue, resumed.drained, resumed.polling) == (((1, 0),), (), Polling.FULL)


def test_state_after_a_reset() -> None:  # REGION-41, REGION-43, REGION-44, REGION-36
    fetched = fetch(owner(), 0).operator
    after = operator.reset_to_initial(fetched, (3, 4), REPAIRED).operator
    assert after.positions == after.offsets == (3, 4) and after.queue == ()
    assert (after.state, after.polling) == (ClientState.RESET_COMPLETE, Polling.THROTTLED)
    told = evolve(fetched, notice=(2, (5, None)))
    assert operator.reset_to_merge(told, 1, (3, 4), REPAIRED) is None
    merged = operator.reset_to_merge(told, 2, (3, 4), REPAIRED)
    assert merged is not None and merged.operator.positions == (5, 4)


@pytest.mark.parametrize("order", list(permutations("ABC")))
def test_a_merge(order: tuple[str, ...]) -> None:  # REGION-33, REGION-34
    job = frozenset("ABC")
    parts = {"A": part("A", 3, None), "B": part("B", None, 4), "C": part("C", None, None, base=(1, 1))}
    bean, rules = GroupBean(job), []
    for name in (order[0], *order):
        bean, rule = contribute(bean, 1, parts[name], job, REPAIRED)
        rules.append(rule)
    assert rules == ["merge.waiting", "merge.waiting", "merge.waiting", "merge.complete"]
    assert bean.merged == (3, 4) and bean.unheard == job
    assert merge_offsets((parts["C"],)) == (1, 1)
    assert contribute(bean, 1, parts["A"], job, REPAIRED)[1] == "merge.repeated"
    assert contribute(bean, 1, parts["A"], job, evolve(REPAIRED, notifies_again=False))[1] == "merge.silent"
    assert contribute(bean, 2, parts["A"], job, REPAIRED)[0].merged is None


def test_bean_and_retirement() -> None:  # REGION-03, REGION-40
    bean, _ = register(GroupBean(), "A")
    assert bean.registered == {"A"}
    later, _ = contribute(bean, 3, part("A", 1, 1), frozenset("A"), REPAIRED)
    assert retire(later, 2) == later
    assert retire(later, 3).merged is None and retire(later, 3).registered == {"A"}


def test_requests_and_permits_of_the_region() -> None:  # REGION-10, REGION-15
    resetting = Region(RegionMode.RESET, JOB)
    assert request_reset(resetting, REPAIRED).is_requested
    assert not request_reset(resetting, DOCUMENTED).is_requested
    assert request_reset(Region(), DOCUMENTED).is_requested
    draining_region = Region(RegionMode.DRAIN, frozenset("A"))
    assert has_permit(Region(), "A") and has_permit(draining_region, "A")
    assert not has_permit(draining_region, "B") and not has_permit(resetting, "A")
