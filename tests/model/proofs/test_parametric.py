"""The kernel's theorems for any number of members, partitions and generations, and which guards they rest on."""

from time import process_time

import pytest

from fencepost.model.classic.kernel.actions import ACTIONS
from fencepost.model.classic.kernel.invariants import LEMMAS, THEOREMS
from fencepost.model.classic.proofs.kernel_proofs import ActionCase, action_cases, kernel_lemmas
from fencepost.model.proofs.induction import findings

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
