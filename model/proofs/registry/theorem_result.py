"""The result of a theorem, for readers."""

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.model.classic.proofs.induction import InductionCounterexample

Progress = Callable[[str, int, int], None]
"""Told what is being proved, its number and how many there are."""


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
