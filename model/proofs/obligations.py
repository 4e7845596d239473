"""A claim with its hypotheses, and the verdict of the solver."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import z3

from fencepost.model.proofs.solver import LimitedSolver


@dataclass(frozen=True, slots=True)
class Lemma:
    """From the hypotheses follows the goal. A lemma with `holds` false is a false theorem that has to be refuted."""

    theorem: str
    name: str
    hypotheses: tuple[Any, ...]
    goal: Any
    holds: bool = True


@dataclass(frozen=True, slots=True)
class KernelTheorems:
    """The theorems about the kernel of a protocol: those that hold, the wordings that are false, and the lemmas of
    both."""

    name: str
    true: dict[str, str]
    false: dict[str, str]
    lemmas: Callable[[], Iterator[Lemma]]
    covers: str
    excludes: str


@dataclass(frozen=True, slots=True)
class LemmaResult:
    """What became of a lemma: "proved", "refuted" (with a model), "vacuous" or "unknown"."""

    lemma: Lemma
    verdict: str
    seconds: float
    longest: float
    """The seconds of the longest query so far that shares the hypotheses."""
    model: Any = None

    @property
    def as_expected(self) -> bool:
        """The verdict is "proved" for a lemma that should hold, and "refuted" for one that should not."""
        return self.verdict == ("proved" if self.lemma.holds else "refuted")


def findings(lemmas: Iterable[Lemma], seed: int = 0) -> Iterator[LemmaResult]:
    """Ask the solver whether the hypotheses can hold at all, and then whether the goal can fail.

    Lemmas in a row that share their hypotheses, as one tuple, share a solver and the first question.
    """
    solver, possible, shared = LimitedSolver(seed), z3.unknown, None
    for lemma in lemmas:
        started = perf_counter()
        if lemma.hypotheses is not shared:
            shared, solver = lemma.hypotheses, LimitedSolver(seed)
            solver.add(*lemma.hypotheses)
            possible = solver.check()
        verdict, model = "vacuous" if possible == z3.unsat else "unknown", None
        if possible == z3.sat:
            with solver.scope():
                solver.add(z3.Not(lemma.goal))
                response = solver.check()
                verdict = "proved" if response == z3.unsat else "refuted" if response == z3.sat else "unknown"
                model = solver.model() if response == z3.sat else None
        yield LemmaResult(lemma, verdict, perf_counter() - started, solver.longest, model)
