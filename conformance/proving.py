"""`fencepost prove`: the theorems, each in a line that says what it covers and what it does not."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from fencepost.conformance.results import Exit
from fencepost.model.proofs.prover import Size
from fencepost.model.proofs.theorems import Progress, Result, drained, false_ones, inductive, parametrical

_GOOD = ("proved", "false, as it should be")


@dataclass(frozen=True, slots=True)
class Proof:
    """The results of one run, its size and seed, and how long it took in seconds."""

    size: Size
    seed: int
    results: tuple[Result, ...]
    seconds: float

    @property
    def longest(self) -> float:
        """The seconds of the longest query."""
        return max((result.longest for result in self.results), default=0.0)

    def exit_code(self) -> Exit:
        """1 if anything is refuted, vacuous or not broken, 3 if the solver gave up, else 0."""
        verdicts = {result.verdict for result in self.results}
        if verdicts <= set(_GOOD):
            return Exit.CONFORMANT
        return Exit.INCONCLUSIVE if verdicts <= {*_GOOD, "undecided"} else Exit.VIOLATION


def prove(size: Size, seed: int, progress: Progress, show: Callable[[str], None]) -> Proof:
    """Prove everything, showing each result as soon as it is there."""
    began = perf_counter()
    results: list[Result] = []
    for result in every_result(size, seed, progress):
        results.append(result)
        show(line(result))
    return Proof(size, seed, tuple(results), perf_counter() - began)


def every_result(size: Size, seed: int, progress: Progress) -> Iterator[Result]:
    """The results in the order in which they are shown, the quick ones first."""
    yield from drained(seed, progress)
    yield from parametrical(seed, progress)
    yield from inductive(size, seed, progress)
    yield from false_ones()


def line(result: Result) -> str:
    """One result in one line, and a counterexample below it."""
    text = f"{result.verdict}  {result.id}: {result.sentence} Covers {result.covers}."
    if result.excludes:
        text += f" Not: {result.excludes}."
    if result.counterexamples:
        example = result.counterexamples[0]
        text += (
            f"\n  {len(result.counterexamples)} counterexamples to induction; the first breaks {example.statement}"
            f" at {example.event} ({example.result.rule})\n  before: {example.subject}\n  with: {example.arguments}"
        )
    return text


def summary(proof: Proof) -> str:
    """The last line."""
    proved = sum(result.verdict == "proved" for result in proof.results)
    false = sum(result.verdict == _GOOD[1] for result in proof.results)
    rest = len(proof.results) - proved - false
    text = f"{proved} theorems proved, {false} false wordings shown false"
    if rest:
        text += f", {rest} in doubt"
    return f"{text}, in {proof.seconds:.1f} s, the longest query {proof.longest:.2f} s"


def to_json(proof: Proof) -> str:
    """The proof as JSON."""
    theorems = [
        {
            "id": result.id,
            "sentence": result.sentence,
            "verdict": result.verdict,
            "covers": result.covers,
            "excludes": result.excludes,
            "seconds": round(result.seconds, 3),
            "longest_query_seconds": round(result.longest, 3),
            "counterexamples": [
                {
                    "event": example.event,
                    "statement": example.statement,
                    "before": repr(example.subject),
                    "arguments": repr(example.arguments),
                    "after": repr(example.result),
                }
                for example in result.counterexamples
            ],
        }
        for result in proof.results
    ]
    report: dict[str, Any] = {
        "fencepost": 1,
        "slots": proof.size.slots,
        "partitions": proof.size.partitions,
        "protocols": proof.size.protocols,
        "seed": proof.seed,
        "theorems": theorems,
        "seconds": round(proof.seconds, 3),
        "longest_query_seconds": round(proof.longest, 3),
    }
    return json.dumps(report, indent=2) + "\n"
