"""Swarms of reference clients: one owner for each partition, no commit of a fenced member, every record consumed, and a
group that settles; and for each of these a fault that breaks it."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.model.assignors.consumer_protocol import encode_assignment
from fencepost.model.classic.coordinator import group_protocol
from fencepost.model.classic.core.state import CommitResponse, Output, Step
from fencepost.model.classic.member import commits, heartbeats, joining
from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.settings import Strategy
from fencepost.model.classic.member.step import ClientStep
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import Offset
from tests.support.client_swarm import ClientSwarm, SwarmViolation
from tests.support.swarm_events import KINDS, SwarmEvent
from tests.support.swarm_settings import BOTH, ONLY_COOPERATIVE, ONLY_RANGE

GROUPS: dict[str, tuple[list[tuple[Strategy, ...]], int]] = {
    "eager": ([ONLY_RANGE] * 3, 0),
    "cooperative": ([ONLY_COOPERATIVE] * 3, 0),
    "static": ([ONLY_RANGE] * 3, 2),
    "static cooperative": ([ONLY_COOPERATIVE] * 3, 2),
    "mixed": ([BOTH, BOTH, ONLY_COOPERATIVE], 1),
}
EVENTS = st.builds(
    SwarmEvent, st.sampled_from(KINDS + ("poll", "send", "receive") * 4), st.integers(0, 2), st.integers(1, 8)
)
STARTS = [SwarmEvent("start", index) for index in range(3)]


def run_schedule(name: str, events: list[SwarmEvent]) -> ClientSwarm:
    """The swarm after the events and a fair time."""
    strategies, static = GROUPS[name]
    swarm = ClientSwarm(strategies, static)
    swarm.produce(2)
    for event in (STARTS[0], *events):
        swarm.play(event)
    for event in STARTS[:2]:
        swarm.play(event)
    finish_upgrade(swarm)
    swarm.settle()
    return swarm


def finish_upgrade(swarm: ClientSwarm) -> None:
    """No member may stay on a list that has nothing in common with the others'."""
    lists = {process.client.settings.strategies for process in swarm.processes if process.is_running}
    if ONLY_RANGE in lists and ONLY_COOPERATIVE in lists:
        for index, process in enumerate(swarm.processes):
            while process.is_running and process.client.settings.strategies != ONLY_COOPERATIVE:
                swarm.play(SwarmEvent("upgrade", index))


@pytest.mark.parametrize("name", GROUPS)
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(events=st.lists(EVENTS, max_size=60))
def test_any_swarm_keeps_the_promises(name: str, events: list[SwarmEvent]) -> None:
    run_schedule(name, events)


@pytest.mark.parametrize("name", GROUPS)
def test_a_quiet_swarm_settles_and_commits(name: str) -> None:
    swarm = run_schedule(name, [SwarmEvent("start", 2)])
    assert swarm.accepted_commits > 0
    assert len(swarm.running()) == 3


def test_a_rolling_upgrade_keeps_the_group_at_work() -> None:
    swarm = ClientSwarm([ONLY_RANGE] * 3)
    for event in STARTS:
        swarm.play(event)
    for _ in range(2):
        for index in range(3):
            swarm.produce(2)
            swarm.settle()
            swarm.play(SwarmEvent("upgrade", index))
    swarm.produce(2)
    swarm.settle()
    assert all(client.settings.strategies == ONLY_COOPERATIVE for client in swarm.running())
    assert {client.joined.protocol for client in swarm.running() if client.joined} == {"cooperative-sticky"}


def test_a_restarted_static_member_causes_no_rebalance_of_the_others() -> None:
    swarm = ClientSwarm([ONLY_RANGE] * 3, static=3)
    for event in STARTS:
        swarm.play(event)
    swarm.produce(1)
    swarm.settle()
    generation = swarm.max_generation
    follower = next(index for index, process in enumerate(swarm.processes) if not process.client.leads)
    swarm.play(SwarmEvent("crash", follower))
    swarm.play(SwarmEvent("start", follower))
    swarm.settle()
    assert swarm.max_generation == generation


def test_members_that_crash_are_replaced_and_new_partitions_are_consumed() -> None:
    swarm = ClientSwarm([ONLY_COOPERATIVE] * 3)
    for event in STARTS:
        swarm.play(event)
    swarm.settle()
    swarm.play(SwarmEvent("crash", 0))
    swarm.play(SwarmEvent("grow"))
    swarm.produce(5)
    swarm.settle()
    assert len(swarm.running()) == 2 and swarm.topics["t"] == 4
    swarm.play(SwarmEvent("close", 1))
    swarm.settle()
    assert len(swarm.running()) == 1


# --- each property can fail -----------------------------------------------------------------------------------------


def everything_to_everyone(client: Any, request: Any) -> Any:
    data = encode_assignment(client.known)
    return evolve(request, assignments=tuple((id, data) for id, _ in request.assignments))


def accept_any_commit(group: Any, request: Any, context: Any) -> Step:
    return Step(group, (Output(request.handle, CommitResponse(Error.NONE)),), "commit.stable")


def one_too_many(client: Any, wanted: Any) -> tuple[Any, ...]:
    return tuple((one.partition, Offset(one.offset + 1)) for one in client.positions if one.offset is not None)


def ignore_claims(claimed: Any, view: Any, plan: Any, partition: int) -> bool:
    return view.id is not None and plan[partition] == view.id


FAULTS = [
    ("revoked before assigned", core, "gets_partition", ignore_claims),
    ("one owner", joining, "encode_plan", everything_to_everyone),
    ("no commit of a fenced member", group_protocol, "commit", accept_any_commit),
    ("commits follow records", commits, "offsets_to_commit", one_too_many),
    ("the group settles", heartbeats, "send_join", lambda client, context: ClientStep(client)),
]
HARD = [
    *STARTS,
    *(SwarmEvent(kind, index, 9) for _ in range(12) for index in range(3) for kind in ("poll", "send", "receive")),
    SwarmEvent("wait", 0, 4),
    *(
        SwarmEvent(kind, index, 9)
        for _ in range(12)
        for index in range(3)
        for kind in ("poll", "listener", "send", "receive")
    ),
    SwarmEvent("commit", 0, 1),
    SwarmEvent("poll", 0),
    SwarmEvent("commit", 0, 1),
    *(SwarmEvent(kind, index, 9) for index in (1, 2) for kind in ("crash", "start")),
    *(SwarmEvent(kind, index, 9) for _ in range(6) for index in (1, 2) for kind in ("poll", "send", "receive")),
    SwarmEvent("wait", 0, 28),
    SwarmEvent("send", 0, 9),
]
"""Three members settle; then one commits late, after it was evicted."""
FIRST_ALONE = [SwarmEvent(kind, 0, 9) for _ in range(6) for kind in ("poll", "listener", "send", "receive", "wait")]
SECOND_IS_QUICK = [
    SwarmEvent(kind, index, 4)
    for _ in range(12)
    for index, kinds in ((1, ("receive", "poll", "listener", "send")), (0, ("poll", "listener", "send", "receive")))
    for kind in (*kinds, "wait")
]
HAND_OVER = [*FIRST_ALONE, STARTS[1], *SECOND_IS_QUICK]
"""A member has everything; a second one joins, and takes its assignment before the first one does."""


def test_without_a_fault_these_schedules_keep_the_promises() -> None:
    run_schedule("eager", HARD)
    run_schedule("cooperative", HAND_OVER)


@pytest.mark.parametrize(("violated", "module", "name", "fault"), FAULTS, ids=[row[0] for row in FAULTS])
def test_each_property_has_a_fault_that_breaks_it(
    monkeypatch: pytest.MonkeyPatch, violated: str, module: Any, name: str, fault: Any
) -> None:
    monkeypatch.setattr(module, name, fault)
    with pytest.raises(SwarmViolation, match=f"^{violated}"):
        run_schedule(*(("cooperative", HAND_OVER) if fault is ignore_claims else ("eager", HARD)))
