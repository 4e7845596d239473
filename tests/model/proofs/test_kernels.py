"""The theorems about kernels of designs: proved as they are, refuted without a repair, and never vacuous."""

from dataclasses import replace
from typing import Any

import pytest

from fencepost.model.logic import and_
from fencepost.model.proofs.induction import Lemma, LemmaResult, findings, kernel_results
from fencepost.model.proofs.symbolic_values import formula
from fencepost.model.push import proofs as push
from fencepost.model.push.kernel import invariants
from fencepost.model.region import proofs as region

KERNELS = pytest.mark.parametrize(
    ("design", "theorems", "needed"),
    [
        (push, push.PUSH_THEOREMS, ("plans", "members", "stopping", "push.stopped-first")),
        (region, region.REGION_THEOREMS, ("modes", "group", "values", "base", "hand", "written", "reset")),
    ],
    ids=["push", "region"],
)


@KERNELS
def test_every_lemma_is_what_it_should_be(design: Any, theorems: Any, needed: tuple[str, ...]) -> None:
    results = list(findings(theorems.lemmas()))
    assert [(one.lemma.theorem, one.lemma.name, one.verdict) for one in results if not one.as_expected] == []
    assert {one.lemma.theorem for one in results} == {*design.SENTENCES, *design.FALSE_THEOREMS, design.BELOW}


@KERNELS
def test_every_theorem_has_a_result(design: Any, theorems: Any, needed: tuple[str, ...]) -> None:
    verdicts = {one.id: one.verdict for one in kernel_results(theorems, 0, lambda *_: None)}
    false = dict.fromkeys(design.FALSE_THEOREMS, "false, as it should be")
    assert verdicts == dict.fromkeys(design.SENTENCES, "proved") | false


@KERNELS
def test_each_invariant_but_the_plain_ones_is_needed(design: Any, theorems: Any, needed: tuple[str, ...]) -> None:
    """Without it some event breaks another one: the induction hypothesis is no larger than it has to be."""
    kernel = design.any_kernel()
    for left_out in needed:
        known = tuple(formula(claim) for name, claim in design.invariants(kernel).items() if name != left_out)
        lemmas = [
            Lemma("", f"{name} after {event.name}", (*known, formula(event.guard)), formula(claim))
            for event in design.any_events(kernel)
            for name, claim in design.invariants(event.after).items()
            if design is push or name != left_out
        ]
        assert any(one.verdict == "refuted" for one in findings(lemmas)), left_out


def sending_starts(**changes: Any) -> LemmaResult:
    """Whether the invariants hold after the event that sends Starts, if these fields of its kernel are others."""
    kernel = push.any_kernel()
    (event,) = (one for one in push.any_events(kernel) if one.name == "send starts")
    known = and_(event.guard, *invariants(kernel).values())
    after = and_(*invariants(replace(event.after, **changes)).values())
    (result,) = findings([Lemma("", "", (formula(known),), formula(after))])
    return result


def test_starts_of_another_plan_are_not_what_the_attempt_gave() -> None:
    assert sending_starts(last_plan=push.any_kernel().last_plan).verdict == "refuted"


def test_starts_that_nobody_gets_break_nothing_and_are_possible() -> None:
    assert sending_starts(start_sent=push.any_kernel().start_sent.empty()).verdict == "proved"
