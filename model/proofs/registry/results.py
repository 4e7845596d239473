"""The results of the proofs for readers: each theorem, the code it is about, and its bounds."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from fencepost.model.classic.theorems.non_theorems import FALSE_THEOREMS
from fencepost.model.classic.theorems.registry import REGISTRY, Theorem
from fencepost.model.proofs.assignors.theorems import assignor_lemmas
from fencepost.model.proofs.classic import kernel_proofs
from fencepost.model.proofs.classic.counterexample import InductionCounterexample, decode_refutation
from fencepost.model.proofs.classic.induction import STATEMENTS, ProofSize, initially_false, prove_event
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


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """The proof of one event in plain values, which another process can hand over; times in seconds."""

    event: str
    possible: bool
    undecided: tuple[str, ...]
    counterexamples: tuple[InductionCounterexample, ...]
    seconds: float
    longest: float


Mapper = Callable[[Callable[[str], EventOutcome], Sequence[str]], Iterable[EventOutcome]]
"""Applies a function to names, in order, as `map` does; perhaps in several processes."""
SLOWEST_FIRST = ("leave-two-settled-each", "leave-two", "join", "leave")


def event_names(size: ProofSize) -> list[str]:
    """The events of the induction. The slowest come first, so that no process is left alone with one at the end."""
    names = [event.name for event in (*coordinator_events(size.slots), *member_events())]
    return [*SLOWEST_FIRST, *(name for name in names if name not in SLOWEST_FIRST)]


def prove_named_event(name: str, size: ProofSize, seed: int) -> EventOutcome:
    """Prove that the event of this name keeps every statement."""
    (event,) = (one for one in (*coordinator_events(size.slots), *member_events()) if one.name == name)
    verdict = prove_event(event, STATEMENTS, size, seed)
    examples = tuple(decode_refutation(event, refuted) for refuted in verdict.refutations)
    return EventOutcome(name, verdict.possible, verdict.undecided, examples, verdict.seconds, verdict.longest)


def inductive_results(size: ProofSize, seed: int, progress: Progress, mapper: Mapper = map) -> Iterator[TheoremResult]:
    """The theorems about the handlers: one induction for all of them, over everything that can happen."""
    names = event_names(size)
    outcomes: list[EventOutcome] = []
    progress(names[0], 1, len(names))
    for outcome in mapper(partial(prove_named_event, size=size, seed=seed), names):
        outcomes.append(outcome)
        following = names[min(len(outcomes), len(names) - 1)]
        progress(following, min(len(outcomes) + 1, len(names)), len(names))
    broken = initially_false(STATEMENTS, size)
    seconds = sum(outcome.seconds for outcome in outcomes)
    for theorem in REGISTRY:
        yield result_of(theorem, outcomes, broken, size, seconds)


def result_of(
    theorem: Theorem, outcomes: Sequence[EventOutcome], broken: tuple[str, ...], size: ProofSize, seconds: float
) -> TheoremResult:
    """The theorem is proved if the whole induction is; it is only as good as the statements that it rests on."""
    examples = tuple(example for one in outcomes for example in one.counterexamples)
    verdict = "proved"
    if any(one.undecided for one in outcomes):
        verdict = "undecided"
    if not all(one.possible for one in outcomes):
        verdict = "vacuous"
    if examples or broken:
        verdict = "refuted"
    bounds = (
        f"up to {size.slots} members and pending ids, {size.protocols} protocols each, partitions: {size.partitions}"
    )
    covers = (
        f"the shipped coordinator core with clients that behave like the shipped member core, {bounds};"
        " any ids, generations, times and processes, messages lost, late, twice or in any order, static members"
    )
    mine = sorted(examples, key=lambda example: example.statement != theorem.id)
    longest = max(one.longest for one in outcomes)
    return TheoremResult(theorem.id, theorem.sentence, verdict, covers, theorem.excludes, seconds, longest, tuple(mine))


_KERNEL = {one.kernel_id: one.sentence for one in REGISTRY if one.kernel_id}
_DRAINING = {
    "draining.after": "Going on after the partition visited last serves every buffered partition within n polls.",
    "draining.after-unrefilled": "Going on after it serves whatever is buffered, also if nothing is fetched again.",
    "draining.at-unrefilled": "Going on at it serves every partition, if none is refilled ahead of it.",
    "draining.at-refilled-when-empty": "Going on at it serves every partition, if none is refilled before it is empty.",
}
_ASSIGNORS = {
    "assignors.range": "Range splits a topic into blocks that cover it and differ by at most one partition.",
    "assignors.round-robin": "Under equal subscriptions, round robin gives sizes that differ by at most 1.",
    "assignors.quota": "Under equal subscriptions, sticky gives P div N partitions each, and P mod N members one more.",
    "assignors.retention": "Under equal subscriptions, sticky keeps as many valid claims as these sizes allow.",
    "assignors.improvement": "Under differing ones, sticky ends, and no partition could go to a member with two fewer.",
}


def theorem_sentences() -> dict[str, str]:
    """Every theorem that people read: its id and its sentence."""
    return {one.id: one.sentence for one in REGISTRY} | _KERNEL | _DRAINING | _ASSIGNORS


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


def assignor_results(seed: int, progress: Progress) -> Iterator[TheoremResult]:
    """The theorems about the assignors."""
    covers = "how many partitions each member gets, for any number of members and partitions and any claims"
    excludes = "which partitions these are"
    yield from lemma_results("assignors", list(assignor_lemmas()), _ASSIGNORS, covers, excludes, seed, progress)


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
