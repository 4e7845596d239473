"""The results of the theorems about the kernels of repaired designs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fencepost.model.proofs.obligations import Lemma, LemmaResult, findings
from fencepost.model.proofs.registry.results import worst_verdict
from fencepost.model.proofs.registry.theorem_result import Progress, TheoremResult
from fencepost.model.push import proofs as push
from fencepost.model.region import proofs as region


@dataclass(frozen=True, slots=True)
class DesignTheorems:
    """The theorems of a design: those that hold, the wordings that are false, and the lemmas of both."""

    true: dict[str, str]
    false: dict[str, str]
    lemmas: Callable[[], Iterator[Lemma]]
    covers: str
    excludes: str


DESIGNS = {
    "push": DesignTheorems(
        push.SENTENCES,
        push.FALSE_THEOREMS,
        push.push_lemmas,
        "the repaired push coordinator reduced to who may fetch, for any number of consumers and partitions",
        "the handlers themselves: tests tie each step of their search to the kernel",
    ),
    "region": DesignTheorems(
        region.SENTENCES,
        region.FALSE_THEOREMS,
        region.region_lemmas,
        "the repaired region reduced to what one partition's offsets are, for any number of operators and records",
        "the handlers themselves: tests hold the kernel's invariants in every state of their search",
    ),
}


def design_results(protocol: str, seed: int, progress: Progress) -> Iterator[TheoremResult]:
    """One result for each theorem, then one for each false wording; the lemmas below them count for all theorems."""
    design = DESIGNS[protocol]
    lemmas = list(design.lemmas())
    found: list[LemmaResult] = []
    for number, finding in enumerate(findings(lemmas, seed), 1):
        if number % 20 == 1:
            progress(protocol, number, len(lemmas))
        found.append(finding)
    below = [one for one in found if one.lemma.theorem not in {*design.true, *design.false}]
    for theorem, sentence in {**design.true, **design.false}.items():
        own = [one for one in found if one.lemma.theorem == theorem]
        counted = own if theorem in design.false else [*own, *below]
        verdict = worst_verdict(counted) if own else "vacuous"
        if theorem in design.false and verdict == "proved":
            verdict = "false, as it should be"
        elif theorem in design.false and verdict == "refuted":
            verdict = "not broken"
        longest = max((one.longest for one in counted), default=0.0)
        seconds = sum(one.seconds for one in own)
        yield TheoremResult(theorem, sentence, verdict, design.covers, design.excludes, seconds, longest)
