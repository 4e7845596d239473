"""The theorems about the consistent region: proved as they are, refuted without a repair, and never vacuous."""

from fencepost.model.proofs.induction import Lemma, findings
from fencepost.model.proofs.results import kernel_results
from fencepost.model.region.kernel import invariants
from fencepost.model.region.proofs import FALSE_THEOREMS, REGION_THEOREMS, SENTENCES, any_events, any_kernel


def test_every_theorem_of_the_region_has_a_result() -> None:
    verdicts = {one.id: one.verdict for one in kernel_results(REGION_THEOREMS, 0, lambda *_: None)}
    assert verdicts == dict.fromkeys(SENTENCES, "proved") | dict.fromkeys(FALSE_THEOREMS, "false, as it should be")


def test_invariants_of_the_region_are_needed() -> None:
    """Without it some event breaks another one: the induction hypothesis is no larger than it has to be."""
    kernel = any_kernel()
    needed = set()
    for left_out in ("modes", "group", "values", "base", "hand", "written", "reset"):
        known = tuple(claim for name, claim in invariants(kernel).items() if name != left_out)
        lemmas = [
            Lemma("", f"{name} after {event.name}", (*known, event.guard), claim)
            for event in any_events(kernel)
            for name, claim in invariants(event.after).items()
            if name != left_out
        ]
        if any(one.verdict == "refuted" for one in findings(lemmas)):
            needed.add(left_out)
    assert needed == {"modes", "group", "values", "base", "hand", "written", "reset"}
