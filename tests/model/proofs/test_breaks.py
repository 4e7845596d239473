"""The proof refutes the core with a mistake made by hand."""

import pytest

from fencepost.model.classic.proofs.induction import (
    STATEMENTS,
    ProofSize,
    decode_refutation,
    prove_event,
    replay_handler,
)
from fencepost.model.classic.proofs.proof_events import coordinator_events, member_events
from tests.model.proofs.breaks import BREAKS, Break
from tests.support.edits import mutant

EVENTS = {event.name: event for event in (*coordinator_events(2), *member_events())}
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
