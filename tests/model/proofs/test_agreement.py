"""The executable step, the symbolic relation and the explored graph agree, and a deviation of any one is caught."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fencepost.model.classic.core import join_phase, membership
from fencepost.model.classic.explore.group_system import group_system
from fencepost.model.classic.explore.state_layout import Bounds, ModelConfig, untimed_member
from fencepost.model.classic.member import member
from fencepost.model.classic.proofs.induction import ProofSize
from fencepost.model.classic.proofs.proof_events import coordinator_events
from fencepost.model.classic.proofs.transition_relation import OutOfDomain, TransitionRelation
from fencepost.model.explore.search import PlainSearch
from fencepost.model.explore.transition_tables import TransitionTables
from fencepost.model.proofs import symbolic_values
from fencepost.model.proofs.symbolic_execution import PathDecisions
from fencepost.model.proofs.terms import Term
from tests.model.proofs.agreement import Agreement, Disagreement, agree, compare
from tests.model.proofs.mutation import mutant

ONE = ModelConfig((untimed_member(),))
ONE_STATIC = ModelConfig((untimed_member(instance="one"),))
TWO = ModelConfig((untimed_member(), untimed_member()), heartbeats=False)
LONG, TINY = Bounds(ids=2, generations=2, requests=4, slots=1), Bounds(ids=1, generations=1, requests=2, slots=1)
INSTANCES = ((ONE, LONG), (ONE_STATIC, LONG), (TWO, replace(TINY, requests=3)))
ENOUGH = 10_000


@pytest.fixture(scope="module")
def agreement() -> Agreement:
    found = Agreement()
    for setting, bounds in INSTANCES:
        agree(setting, bounds, agreement=found)
    return found


@pytest.mark.slow
def test_three_engines_agree_on_every_state(agreement: Agreement) -> None:
    assert agreement.states >= ENOUGH
    assert agreement.transitions > 3 * agreement.states
    assert agreement.paths > 70


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        (membership.commit, "request.generation != group.generation", "False"),
        (membership.respond_to_commit, "CommitResponse(error)", "CommitResponse(Error.NONE)"),
        (join_phase.complete_join, "group.generation + 1", "group.generation"),
        (member.lose_membership, "id=None", "id=member.id"),
    ],
)
def test_a_handler_that_strays_is_caught(
    agreement: Agreement, function: Callable[..., Any], before: str, after: str
) -> None:
    """The relations are those of the shipped handlers."""
    with mutant(function, before, after), pytest.raises(Disagreement, match="symbolic"):
        agree(ONE, LONG, agreement=Agreement(relations=agreement.relations))


def test_an_executor_that_misses_a_branch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = PathDecisions.decide

    def hasty(path: PathDecisions, term: Term) -> bool:
        chosen = decide(path, term)
        path.others.clear()
        return chosen

    monkeypatch.setattr(PathDecisions, "decide", hasty)
    with pytest.raises(Disagreement, match=r"symbolic: \[\]"):
        agree(ONE, TINY)


@pytest.mark.slow
def test_an_executor_that_merges_wrongly_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic_values, "alternative", lambda condition, then, otherwise: otherwise)
    with pytest.raises(Disagreement, match="symbolic"):
        agree(ONE, TINY)


@pytest.mark.parametrize("tampered", [lambda effects: effects[1:], lambda effects: (*effects, (0, 0))])
def test_a_search_that_misses_or_adds_an_edge_is_caught(
    tampered: Callable[[tuple[tuple[int, int], ...]], tuple[tuple[int, int], ...]],
) -> None:
    system = group_system(ONE, TINY, reduced=False)
    search = PlainSearch(TransitionTables(system))
    search.run()
    compare(search, system, Agreement())
    for table in search.tables.actions:
        for local, effects in table.effects.items():
            if len(effects) > 1:
                with pytest.raises(Disagreement, match="successors, explored"):
                    table.effects[local] = tampered(effects)
                    compare(search, system, Agreement())
                return
    raise AssertionError("nowhere are there two things to do")


def test_what_the_proof_is_not_about_is_refused() -> None:
    (event,) = (event for event in coordinator_events(1) if event.name == "expire-join")
    relation = TransitionRelation(event, ProofSize(slots=1, partitions=1))
    group = group_system(ONE, replace(TINY, slots=2)).initial[0].group
    with pytest.raises(OutOfDomain, match="2 are more than 1"):
        relation.steps(group, ())
