"""The theorems about the push coordinator: proved as they are, refuted without a guard, and never vacuous."""

from dataclasses import replace

from fencepost.model.proofs.induction import Lemma, findings
from fencepost.model.proofs.results import kernel_results
from fencepost.model.push.kernel import invariants
from fencepost.model.push.proofs import (
    FALSE_THEOREMS,
    PUSH_THEOREMS,
    SENTENCES,
    any_events,
    any_kernel,
    can_happen,
    push_lemmas,
)


def test_every_lemma_is_what_it_should_be() -> None:
    results = list(findings(push_lemmas()))
    assert [(one.lemma.theorem, one.lemma.name, one.verdict) for one in results if not one.as_expected] == []
    assert {one.lemma.theorem for one in results} == {*SENTENCES, *FALSE_THEOREMS, "push.kernel"}


def test_every_theorem_has_a_result() -> None:
    verdicts = {one.id: one.verdict for one in kernel_results(PUSH_THEOREMS, 0, lambda *_: None)}
    assert verdicts == dict.fromkeys(SENTENCES, "proved") | dict.fromkeys(FALSE_THEOREMS, "false, as it should be")


def test_each_invariant_but_the_plain_ones_is_needed() -> None:
    """Without it some event breaks another one: the induction hypothesis is no larger than it has to be."""
    kernel = any_kernel()
    needed = set()
    for left_out in ("plans", "members", "stopping", "push.stopped-first"):
        known = tuple(claim for name, claim in invariants(kernel).items() if name != left_out)
        lemmas = [
            Lemma("", f"{name} after {event.name}", (*known, event.guard), claim)
            for event in any_events(kernel)
            if can_happen(event)
            for name, claim in invariants(event.after).items()
        ]
        if any(one.verdict == "refuted" for one in findings(lemmas)):
            needed.add(left_out)
    assert needed == {"plans", "members", "stopping", "push.stopped-first"}


def test_an_event_that_sends_starts_to_nobody_breaks_nothing_and_is_possible() -> None:
    kernel = any_kernel()
    (event,) = (one for one in any_events(kernel) if one.name == "send starts")
    silent = replace(event.after, start_sent=kernel.logic.nobody)
    (result,) = findings([Lemma("", "", (*invariants(kernel).values(), event.guard), invariants(silent)["starting"])])
    assert result.verdict == "proved"
