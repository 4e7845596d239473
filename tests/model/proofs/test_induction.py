"""Every theorem is inductive, and every guard that carries one is missed."""

from collections.abc import Callable
from time import process_time
from typing import Any

import pytest
import z3

from fencepost.model.classic.core import join_phase, membership, sync
from fencepost.model.classic.core.state import Group, JoinRequest, MemberView, Phase, SyncRequest
from fencepost.model.classic.kernel import rebalance
from fencepost.model.classic.kernel.actions import ACTIONS
from fencepost.model.classic.member import member
from fencepost.model.classic.member.member import PartitionCommit, claimed_partitions, gets_partition
from fencepost.model.classic.proofs import induction
from fencepost.model.classic.proofs.induction import (
    STATEMENTS,
    ProofSize,
    decode_refutation,
    initially_false,
    prove_event,
    replay_handler,
)
from fencepost.model.classic.proofs.kernel_proofs import (
    ActionCase,
    action_cases,
    cooperative_lemmas,
    kernel_lemmas,
    plan_lemmas,
    rebalance_lemmas,
)
from fencepost.model.classic.proofs.proof_events import ProofEvent, coordinator_events, member_events
from fencepost.model.classic.theorems.ghost_state import Process
from fencepost.model.classic.theorems.kernel_statements import LEMMAS, THEOREMS
from fencepost.model.classic.theorems.non_theorems import one_assigned_id, one_leader_id, one_writer
from fencepost.model.classic.theorems.statements import WHATEVER_CLIENTS_SEND, one_assignee
from fencepost.model.logic import Truth
from fencepost.model.proofs.induction import findings
from fencepost.model.statement import Statement, statement
from tests.model.proofs.breaks import BREAKS, Break
from tests.support.edits import mutant
from tests.support.plain_values import build

SMALL = ProofSize(slots=2, partitions=1)
EVENTS = {event.name: event for event in (*coordinator_events(SMALL.slots), *member_events())}

MUTANTS: list[tuple[Callable[..., Any], str, str, str, set[str]]] = [
    (membership.commit, "request.generation != group.generation", "False", "commit", {"T2"}),
    (sync.sync, "request.generation != group.generation", "False", "sync", {"sync-response"}),
    (join_phase.complete_join, "group.generation + 1", "group.generation", "expire-join", {"T1", "join-response"}),
    (join_phase.complete_join, "join=0, is_new", "is_new", "expire-join", {"group-parked"}),
    (join_phase.prepare_rebalance, "evolve(cleared, sync=0)", "cleared", "expire-sync", {"group-parked"}),
    (member.on_sync_response, "handle != member.waiting", "False", "member-sync-response", {"member-owns"}),
    (member.gets_partition, "plan[partition] == view.id", "True", "member-join-response", {"sync-request"}),
    (member.gets_partition, " and not claimed[partition]", "", "member-join-response", {"sync-request-claims"}),
    (sync.sync, "group.phase == Phase.PREPARING", "False", "sync", {"T4", "stable-claims"}),
    (
        member.on_sync_response,
        "member.state != MemberState.COMPLETING_REBALANCE",
        "False",
        "member-sync-response",
        {"T4-belief"},
    ),
    (member.lose_generation, "generation=NO_GENERATION, ", "", "member-heartbeat-response", {"T4-belief"}),
    (member.lose_membership, "id=None", "id=member.settings.instance", "member-leave", {"member-id"}),
]


def test_every_statement_holds_at_the_beginning() -> None:
    assert initially_false(STATEMENTS, SMALL) == ()
    broken = statement("never", "No group is ever empty.")(never_empty)
    assert initially_false((broken,), SMALL) == ("never",)


def never_empty(group: Group) -> Truth:
    return group.phase != Phase.EMPTY


@pytest.mark.slow
@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_every_event_keeps_every_statement(event: ProofEvent) -> None:
    verdict = prove_event(event, STATEMENTS, SMALL)
    assert verdict.possible
    assert [(one.statement.id, one.happened.result.rule) for one in verdict.refutations] == []
    assert verdict.undecided == ()


@pytest.mark.parametrize("event", tuple(coordinator_events(SMALL.slots)), ids=lambda event: event.name)
def test_the_coordinator_alone_keeps_one_leader_no_stale_commit_and_what_is_said_of_steps(event: ProofEvent) -> None:
    """Whatever clients send: nothing is assumed of requests."""
    assert prove_event(event, WHATEVER_CLIENTS_SEND, SMALL).refutations == ()


def test_no_statement_that_is_proved_whatever_clients_send_is_about_clients() -> None:
    about = {kind for one in WHATEVER_CLIENTS_SEND for kind in one.subjects}
    assert about.isdisjoint({Process, JoinRequest, SyncRequest, PartitionCommit})


def test_what_holds_whatever_clients_send_rests_on_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement about clients that is asked of the weaker assumptions is refuted."""
    assert prove_event(EVENTS["sync"], STATEMENTS, SMALL).refutations == ()
    monkeypatch.setattr(induction, "ALONE", induction.ALONE | {one_assignee.id})
    verdict = prove_event(EVENTS["sync"], STATEMENTS, SMALL)
    assert {one.statement.id for one in verdict.refutations} == {one_assignee.id}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("false", "event"), [(one_leader_id, "join"), (one_assigned_id, "sync"), (one_writer, "commit")]
)
def test_false_theorems_are_not_inductive(false: Statement, event: str) -> None:
    verdict = prove_event(EVENTS[event], (*STATEMENTS, false), SMALL)
    assert {one.statement.id for one in verdict.refutations} == {false.id}


@pytest.mark.slow
@pytest.mark.parametrize(("function", "before", "after", "event", "broken"), MUTANTS)
def test_mutants_are_refuted_and_every_counterexample_replays(
    function: Callable[..., Any], before: str, after: str, event: str, broken: set[str]
) -> None:
    with mutant(function, before, after):
        verdict = prove_event(EVENTS[event], STATEMENTS, SMALL)
        assert broken <= {one.statement.id for one in verdict.refutations}
        for refutation in verdict.refutations:
            example = decode_refutation(EVENTS[event], refutation)
            assert replay_handler(EVENTS[event], example) == example.result


# --- The proof refutes the core with a mistake made by hand.

UNNOTICED = ("12 assignments outlive an interrupted generation",)
"""No statement is broken: a new assignment overwrites each old one before anybody is handed it."""
TWO_PROTOCOLS = ("37 the vote ignores what others offer",)


@pytest.mark.slow
@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.name.split()[0])
def test_the_proof_refutes_each_break_and_its_counterexamples_replay(broken: Break) -> None:
    event = EVENTS[broken.event]
    with mutant(broken.function, broken.before, broken.after):
        verdict = prove_event(event, STATEMENTS, ProofSize(2, 1, 2 if broken.name in TWO_PROTOCOLS else 1))
        assert broken.theorems <= {one.statement.id for one in verdict.refutations}
        assert bool(verdict.refutations) == (broken.name not in UNNOTICED)
        for refutation in verdict.refutations:
            example = decode_refutation(event, refutation)
            assert replay_handler(event, example) == example.result


def test_breaks_are_39_and_one_goes_unnoticed() -> None:
    names = [one.name for one in BREAKS]
    assert len(set(names)) == len(names) == 39 and set(UNNOTICED) < set(names)


# --- A group settles, for any number of members, and each part of an action that this rests on is missed.


@pytest.mark.parametrize("seed", [0, 7, 19])
def test_every_lemma_is_proved(seed: int) -> None:
    found = list(findings((*rebalance_lemmas(), *cooperative_lemmas()), seed))
    assert [each for each in found if not each.as_expected] == []


SETTLING_MUTANTS: list[tuple[Callable[..., Any], str, str, str]] = [
    (rebalance.revoke, "may_revoke=rebalance.may_revoke.without(member),", "", "revoke lowers the rank"),
    (rebalance.complete, "is_needed(rebalance, leader)", "rebalance.living.has(leader)", "complete keeps"),
    (rebalance.join, "not_(rebalance.joined.has(member))", "True", "join lowers the rank"),
    (rebalance.join, "rebalance.joined.plus(member)", "rebalance.joined", "join lowers the rank"),
    (rebalance.tell, "told=rebalance.told.plus(member)", "told=rebalance.told", "tell lowers the rank"),
    (rebalance.rejoin, ", owes_join=rebalance.owes_join.without(member)", "", "rejoin lowers the rank"),
    (rebalance.publish, "synced=rebalance.members.empty(), ", "", "publish keeps"),
    (rebalance.publish, "is_needed(rebalance, rebalance.leader)", "False", "some action is possible"),
    (rebalance.remove, "not_(rebalance.living.has(gone))", "False", "some action is possible"),
    (rebalance.rejoin, "rebalance.owes_join.has(member)", "False", "some action is possible"),
]


@pytest.mark.parametrize(("function", "before", "after", "broken"), SETTLING_MUTANTS)
def test_other_actions_are_refuted(function: Callable[..., Any], before: str, after: str, broken: str) -> None:
    with mutant(function, before, after):
        wrong = [each.lemma.name for each in findings(rebalance_lemmas()) if not each.as_expected]
    assert any(name.startswith(broken) for name in wrong)


def test_a_plan_that_is_not_sticky_needs_a_third_rebalance() -> None:
    found = list(findings(plan_lemmas(lambda second, first: z3.BoolVal(True))))
    assert {each.lemma.theorem for each in found if not each.as_expected} == {"cooperative.converges"}


@pytest.mark.parametrize("claims", [(False, False), (True, False), (False, True), (True, True)])
def test_the_shipped_member_withholds_as_the_theorem_has_it(claims: tuple[bool, bool]) -> None:
    views = tuple(build(MemberView, name, None, (claim,)) for name, claim in zip("ab", claims, strict=True))
    for owner in ("a", "b", None):
        claimed = claimed_partitions(views, (owner,))  # type: ignore[arg-type]
        given = [gets_partition(claimed, view, (owner,), 0) for view in views]  # type: ignore[arg-type]
        others = [claims[1], claims[0]]
        assert given == [view.id == owner and not other for view, other in zip(views, others, strict=True)]


# --- The kernel's theorems for any number of members, partitions and generations, and which guards they rest on.

BUDGET_SECONDS = 5.0

NOT_NEEDED = {
    ("adopt", "members get them"),
    ("complete", "the leader is a member"),
    ("complete", "members claim"),
    ("publish", "the leader hands it in"),
    ("publish", "members get them"),
    ("accept", "no assignment is awaited"),
}
"""Guards that no theorem needs: any assignment that is exclusive and respects claims is safe, whoever hands it in."""

SCENES = list(action_cases())


@pytest.mark.parametrize("seed", [0, 11])
def test_every_invariant_survives_every_action(seed: int) -> None:
    begun = process_time()
    found = list(findings(kernel_lemmas(), seed))
    assert process_time() - begun <= BUDGET_SECONDS
    assert [(each.lemma.theorem, each.lemma.name, each.verdict) for each in found if not each.as_expected] == []
    assert len(found) == (len(ACTIONS) + 2) * len((*THEOREMS, *LEMMAS)) + len(ACTIONS) * 2


@pytest.mark.parametrize(
    ("scene", "guard"),
    [(scene, guard) for scene in SCENES for guard in scene.guards],
    ids=lambda each: getattr(each, "action", each),
)
def test_without_a_guard_an_invariant_breaks(scene: ActionCase, guard: str) -> None:
    verdicts = {each.verdict for each in findings(scene.lemmas(guard))}
    assert verdicts == ({"proved"} if (scene.action, guard) in NOT_NEEDED else {"proved", "refuted"})


@pytest.mark.parametrize("claim", LEMMAS, ids=lambda claim: claim.__name__)
def test_theorems_are_not_inductive_without_their_strengthenings(claim: object) -> None:
    """Each strengthening is used: with it alone left out, some action breaks what remains or the theorem it serves."""
    from fencepost.model.classic.proofs import kernel_proofs

    rest = tuple(each for each in (*THEOREMS, *LEMMAS) if each is not claim)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_proofs, "INVARIANTS", rest)
        found = findings(each for scene in action_cases() for each in scene.lemmas())
        assert any(each.verdict == "refuted" for each in found)
