"""Tours: they take every transition, from the initial state on, and detect a wrong handler."""

from collections import Counter
from dataclasses import replace

import pytest

from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.core.membership import heartbeat, respond_to_commit
from fencepost.model.classic.core.state import Context, Group, HeartbeatRequest, Step
from fencepost.model.classic.explore import coordinator_tour
from fencepost.model.classic.explore.coordinator_inputs import Input, Universe, joinings
from fencepost.model.classic.explore.coordinator_tour import coordinator_machine
from fencepost.model.classic.explore.member_tour import member_machine
from fencepost.model.classic.explore.state_layout import untimed_member
from fencepost.model.errors import Error
from fencepost.model.explore.tours import cover_transitions, first_difference, transition_graph
from fencepost.model.groups.messages import CommitRequest


def test_a_tour_takes_every_transition() -> None:
    machine = coordinator_machine(Universe(2, 1, joinings(1)))
    tours = cover_transitions(machine)
    assert (tours.states, tours.transitions) == (213, 7713)
    taken: Counter[tuple[coordinator_tour.TourState, Input]] = Counter()
    for tour in tours.tours:
        state = machine.initial
        for step in tour:
            reaction = machine.react(state, step.input)
            assert reaction is not None and (reaction.rule, reaction.milliseconds) == (step.rule, step.milliseconds)
            taken[state, step.input] += 1
            state = reaction.state
    assert len(taken) == tours.transitions
    assert {step.rule for tour in tours.tours for step in tour} <= set(RULES)


def test_every_state_is_asked_everything() -> None:
    machine = coordinator_machine(Universe(1, 2, joinings(2)))
    graph, beyond = transition_graph(machine)
    assert graph.number_of_edges() + beyond == graph.number_of_nodes() * len(machine.inputs)
    assert (graph.number_of_nodes(), len(machine.inputs)) == (24, 34)


def test_a_coordinator_does_the_same_at_any_time() -> None:
    (early, _), (late, _) = (
        transition_graph(
            coordinator_machine(Universe(1, 2, joinings(2), odd=True, fires=True, rests=True, clock=clock))
        )
        for clock in (0, 43_200_000)
    )
    assert list(early.nodes(data=True)) == list(late.nodes(data=True))
    assert list(early.edges(data=True)) == list(late.edges(data=True))


def test_a_deadline_that_forgets_the_time_is_seen_when_the_clock_shows_some(monkeypatch: pytest.MonkeyPatch) -> None:
    for clock in (0, 43_200_000):
        machine = coordinator_machine(Universe(1, 1, joinings(1), clock=clock))
        tours = cover_transitions(machine)
        with monkeypatch.context() as patch:
            patch.setattr(coordinator_tour, "heartbeat", clockless_heartbeat)
            assert any(first_difference(machine, tour) is not None for tour in tours.tours) is (clock > 0)


def clockless_heartbeat(group: Group, request: HeartbeatRequest, context: Context) -> Step:
    """Heartbeat, as if the clock had just started."""
    return heartbeat(group, request, replace(context, now=0))


@pytest.mark.parametrize(
    ("cooperative", "states", "transitions"),
    [(True, 148, 30044), (False, 106, 21518)],
)
def test_tours_of_a_member(cooperative: bool, states: int, transitions: int) -> None:
    machine = member_machine(untimed_member(cooperative))
    tours = cover_transitions(machine)
    assert (tours.states, tours.transitions, tours.out_of_bounds) == (states, transitions, 0)
    assert tours.transitions == tours.states * len(machine.inputs)
    rules = {step.rule for tour in tours.tours for step in tour}
    assert rules >= {"member.join.answered", "member.sync.refused", "member.late-answer", "member.unknown-member"}


def test_a_tour_sees_a_coordinator_that_forgets_generations(monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(group: Group, request: CommitRequest, context: Context) -> Step:
        return respond_to_commit(group, request, Error.NONE, "commit.stable")

    machine = coordinator_machine(Universe(1, 1, joinings(1)))
    tours = cover_transitions(machine)
    assert [first_difference(machine, tour) for tour in tours.tours] == [None] * len(tours.tours)
    monkeypatch.setattr(coordinator_tour, "commit", lenient)
    assert any(first_difference(machine, tour) is not None for tour in tours.tours)
