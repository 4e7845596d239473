"""The results of the proofs for readers: each theorem, the code it is about, and its bounds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

from fencepost.model.classic.theorems.non_theorems import FALSE_THEOREMS
from fencepost.model.classic.theorems.registry import REGISTRY, Theorem
from fencepost.model.proofs.classic import kernel_proofs
from fencepost.model.proofs.classic.counterexample import InductionCounterexample, decode_refutation
from fencepost.model.proofs.classic.induction import STATEMENTS, EventVerdict, ProofSize, initially_false, prove_event
from fencepost.model.proofs.classic.proof_events import coordinator_events, member_events
from fencepost.model.proofs.draining import theorems
from fencepost.model.proofs.obligations import Lemma, LemmaResult, findings

Progress = Callable[[str, int, int], None]
"""Told what is being proved, its number and how many there are."""


@dataclass(frozen=True, slots=True)
class TheoremResult:
    """What became of a theorem: "proved", "refuted", "undecided" (the solver gave up) or "vacuous"."""

    id: str
    sentence: str
    verdict: str
    covers: str
    excludes: str
    seconds: float
    longest: float = 0.0
    """The seconds of the longest query."""
    counterexamples: tuple[InductionCounterexample, ...] = ()


def inductive_results(size: ProofSize, seed: int, progress: Progress) -> Iterator[TheoremResult]:
    """The theorems about the handlers: one induction for all of them, over everything that can happen."""
    events = [*coordinator_events(size.slots), *member_events()]
    verdicts: list[EventVerdict] = []
    for number, event in enumerate(events, 1):
        progress(event.name, number, len(events))
        verdicts.append(prove_event(event, STATEMENTS, size, seed))
    broken = initially_false(STATEMENTS, size)
    seconds = sum(verdict.seconds for verdict in verdicts)
    for theorem in REGISTRY:
        yield result_of(theorem, verdicts, broken, size, seconds)


def result_of(
    theorem: Theorem, verdicts: Sequence[EventVerdict], broken: tuple[str, ...], size: ProofSize, seconds: float
) -> TheoremResult:
    """The theorem is proved if the whole induction is; it is only as good as the statements that it rests on."""
    examples = tuple(decode_refutation(one.event, refuted) for one in verdicts for refuted in one.refutations)
    outcome = "proved"
    if any(verdict.undecided for verdict in verdicts):
        outcome = "undecided"
    if not all(verdict.possible for verdict in verdicts):
        outcome = "vacuous"
    if examples or broken:
        outcome = "refuted"
    bounds = (
        f"up to {size.slots} members and pending ids, {size.protocols} protocols each, partitions: {size.partitions}"
    )
    covers = (
        f"the shipped coordinator core with clients that behave like the shipped member core, {bounds};"
        " any ids, generations, times and processes, messages lost, late, twice or in any order, static members"
    )
    mine = sorted(examples, key=lambda example: example.statement != theorem.id)
    longest = max(verdict.longest for verdict in verdicts)
    return TheoremResult(theorem.id, theorem.sentence, outcome, covers, theorem.excludes, seconds, longest, tuple(mine))


_KERNEL = {one.kernel_id: one.sentence for one in REGISTRY if one.kernel_id}
_DRAINING = {
    "draining.after": "Going on after the partition visited last serves every buffered partition within n polls.",
    "draining.after-unrefilled": "Going on after it serves whatever is buffered, also if nothing is fetched again.",
    "draining.at-unrefilled": "Going on at it serves every partition, if none is refilled ahead of it.",
    "draining.at-refilled-when-empty": "Going on at it serves every partition, if none is refilled before it is empty.",
}


def theorem_sentences() -> dict[str, str]:
    """Every theorem that people read: its id and its sentence."""
    return {one.id: one.sentence for one in REGISTRY} | _KERNEL | _DRAINING


def kernel_results(seed: int, progress: Progress) -> Iterator[TheoremResult]:
    """The theorems about the kernel."""
    covers = "the kernel, for any number of members, partitions and generations"
    excludes = "the handlers themselves: tests tie them to the kernel, step by step"
    yield from lemma_results("kernel", list(kernel_proofs.kernel_lemmas()), _KERNEL, covers, excludes, seed, progress)


def draining_results(seed: int, progress: Progress) -> Iterator[TheoremResult]:
    """The theorems about draining."""
    covers = "the draining rules of KIP-41, for any number of partitions, records and any max.poll.records"
    excludes = "what a fetch returns and when"
    yield from lemma_results("draining", list(theorems.draining_lemmas()), _DRAINING, covers, excludes, seed, progress)


def lemma_results(
    room: str,
    lemmas: list[Lemma],
    sentences: dict[str, str],
    covers: str,
    excludes: str,
    seed: int,
    progress: Progress,
) -> Iterator[TheoremResult]:
    """One result for each theorem that people read; the lemmas below them count for all."""
    found: list[LemmaResult] = []
    for number, finding in enumerate(findings(lemmas, seed), 1):
        if number % 20 == 1:
            progress(room, number, len(lemmas))
        found.append(finding)
    below = [one for one in found if one.lemma.theorem not in sentences]
    for theorem, sentence in sentences.items():
        own = [one for one in found if one.lemma.theorem == theorem]
        verdict = worst_verdict([*own, *below]) if own else "vacuous"
        longest = max((one.longest for one in (*own, *below)), default=0.0)
        yield TheoremResult(theorem, sentence, verdict, covers, excludes, sum(one.seconds for one in own), longest)


def worst_verdict(found: list[LemmaResult]) -> str:
    """Proved only if every lemma is what it should be."""
    wrong = {one.verdict for one in found if not one.as_expected}
    if not wrong:
        return "proved"
    return "undecided" if wrong == {"unknown"} else "vacuous" if "vacuous" in wrong else "refuted"


def false_theorem_results() -> Iterator[TheoremResult]:
    """The plain wordings that are false, each broken by its story once more."""
    for false in FALSE_THEOREMS:
        began = perf_counter()
        story = false.script()
        verdict = "false, as it should be" if story.violations_of(false.statement) else "not broken"
        covers = f"a run of {len(story.log)} steps: {false.reason}"
        yield TheoremResult(false.statement.id, false.statement.sentence, verdict, covers, "", perf_counter() - began)
