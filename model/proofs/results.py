"""The results of theorems, for readers, and those about the kernel of a protocol."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fencepost.model.proofs.induction import KernelTheorems, LemmaResult, findings

# --- The result of a theorem, for readers.

Progress = Callable[[str, int, int], None]
"""Told what is being proved, its number and how many there are."""


@dataclass(frozen=True, slots=True)
class InductionCounterexample:
    """A counterexample to induction in plain values: before the event all statements hold, after it one does not."""

    event: str
    statement: str
    subject: Any
    """The group, its record or the member before the event."""
    arguments: tuple[Any, ...]
    result: Any
    """What the proof says comes of it."""
    about: tuple[Any, ...]
    """What the statement is broken for."""


@dataclass(frozen=True, slots=True)
class TheoremResult:
    """What became of a theorem: "proved", "refuted", "undecided" (the solver gave up) or "vacuous"; or "unproved",
    where it was not refuted itself but a statement that it rests on."""

    id: str
    sentence: str
    verdict: str
    covers: str
    excludes: str
    seconds: float
    longest: float = 0.0
    """The seconds of the longest query."""
    counterexamples: tuple[InductionCounterexample, ...] = ()
    rests_on: tuple[str, ...] = ()
    """The refuted statements that leave it unproved."""


def worst_verdict(found: list[LemmaResult]) -> str:
    """Proved only if every lemma is what it should be."""
    wrong = {one.verdict for one in found if not one.as_expected}
    if not wrong:
        return "proved"
    return "undecided" if wrong == {"unknown"} else "vacuous" if "vacuous" in wrong else "refuted"


# --- The results of the theorems about the kernel of a protocol.


def kernel_results(theorems: KernelTheorems, seed: int, progress: Progress) -> Iterator[TheoremResult]:
    """One result for each theorem, then one for each false wording; the lemmas below them count for all theorems."""
    lemmas = list(theorems.lemmas())
    found: list[LemmaResult] = []
    for number, finding in enumerate(findings(lemmas, seed), 1):
        if number % 20 == 1:
            progress(theorems.name, number, len(lemmas))
        found.append(finding)
    below = [one for one in found if one.lemma.theorem not in {*theorems.true, *theorems.false}]
    for theorem, sentence in {**theorems.true, **theorems.false}.items():
        own = [one for one in found if one.lemma.theorem == theorem]
        counted = own if theorem in theorems.false else [*own, *below]
        verdict = worst_verdict(counted) if own else "vacuous"
        if theorem in theorems.false and verdict == "proved":
            verdict = "false, as it should be"
        elif theorem in theorems.false and verdict == "refuted":
            verdict = "not broken"
        longest = max((one.longest for one in counted), default=0.0)
        seconds = sum(one.seconds for one in own)
        yield TheoremResult(theorem, sentence, verdict, theorems.covers, theorems.excludes, seconds, longest)
