"""The results of the theorems about the push coordinator."""

from collections.abc import Iterator

from fencepost.model.proofs.obligations import LemmaResult, findings
from fencepost.model.proofs.push.theorems import FALSE_THEOREMS, SENTENCES, push_lemmas
from fencepost.model.proofs.registry.results import worst_verdict
from fencepost.model.proofs.registry.theorem_result import Progress, TheoremResult

COVERS = "the repaired push coordinator reduced to who may fetch, for any number of consumers and partitions"
EXCLUDES = "the handlers themselves: tests tie each step of their search to the kernel"


def push_results(seed: int, progress: Progress) -> Iterator[TheoremResult]:
    """One result for each theorem, then one for each false wording; the lemmas below them count for all theorems."""
    lemmas = list(push_lemmas())
    found: list[LemmaResult] = []
    for number, finding in enumerate(findings(lemmas, seed), 1):
        if number % 20 == 1:
            progress("push", number, len(lemmas))
        found.append(finding)
    below = [one for one in found if one.lemma.theorem not in {*SENTENCES, *FALSE_THEOREMS}]
    for theorem, sentence in {**SENTENCES, **FALSE_THEOREMS}.items():
        own = [one for one in found if one.lemma.theorem == theorem]
        counted = own if theorem in FALSE_THEOREMS else [*own, *below]
        verdict = worst_verdict(counted) if own else "vacuous"
        if theorem in FALSE_THEOREMS and verdict == "proved":
            verdict = "false, as it should be"
        elif theorem in FALSE_THEOREMS and verdict == "refuted":
            verdict = "not broken"
        longest = max((one.longest for one in counted), default=0.0)
        yield TheoremResult(theorem, sentence, verdict, COVERS, EXCLUDES, sum(one.seconds for one in own), longest)
