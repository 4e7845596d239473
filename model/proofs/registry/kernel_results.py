"""The results of the theorems about the kernel of a protocol."""

from collections.abc import Iterator

from fencepost.model.proofs.induction import KernelTheorems, LemmaResult, findings
from fencepost.model.proofs.registry.results import worst_verdict
from fencepost.model.proofs.registry.theorem_result import Progress, TheoremResult


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
