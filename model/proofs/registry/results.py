"""The results of the proofs for readers: each theorem, the code it is about, and its bounds."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from fencepost.model.classic.theorems.non_theorems import FALSE_THEOREMS
from fencepost.model.classic.theorems.registry import REGISTRY
from fencepost.model.proofs.assignors.theorems import assignor_lemmas
from fencepost.model.proofs.classic import kernel_proofs
from fencepost.model.proofs.classic.counterexample import InductionCounterexample, decode_refutation
from fencepost.model.proofs.classic.induction import ALONE, STATEMENTS, ProofSize, initially_false, prove_event
from fencepost.model.proofs.classic.proof_events import coordinator_events, member_events
from fencepost.model.proofs.draining import theorems
from fencepost.model.proofs.obligations import Lemma, LemmaResult, findings
from fencepost.model.statement import Statement

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
    yield from told_once(outcomes, initially_false(STATEMENTS, size), size)


def told_once(
    outcomes: Sequence[EventOutcome], initially_broken: tuple[str, ...], size: ProofSize
) -> Iterator[TheoremResult]:
    """Each refuted statement under its own name, a theorem or not; then every other theorem."""
    examples = [example for one in outcomes for example in one.counterexamples]
    refuted = {*initially_broken, *(example.statement for example in examples)}
    theorems = {theorem.id: theorem for theorem in REGISTRY}
    seconds, longest = sum(one.seconds for one in outcomes), max(one.longest for one in outcomes)

    def result(one: Statement, verdict: str, rests_on: Iterable[str] = ()) -> TheoremResult:
        excludes = theorems[one.id].excludes if one.id in theorems else ""
        mine = tuple(example for example in examples if example.statement == one.id)
        covers = coverage(one, size)
        return TheoremResult(
            one.id, one.sentence, verdict, covers, excludes, seconds, longest, mine, tuple(sorted(rests_on))
        )

    yield from (result(one, "refuted") for one in STATEMENTS if one.id in refuted)
    for theorem in REGISTRY:
        if theorem.id not in refuted:
            base = ALONE if theorem.id in ALONE else {one.id for one in STATEMENTS}
            yield result(theorem.statement, verdict_of(base, outcomes, refuted), base & refuted)


def verdict_of(base: Set[str], outcomes: Sequence[EventOutcome], refuted: Set[str]) -> str:
    """What became of a theorem that is not refuted and is proved together with these statements."""
    if base & refuted:
        return "unproved"
    if not all(one.possible for one in outcomes):
        return "vacuous"
    known = {one.id for one in STATEMENTS}
    undecided = {name for one in outcomes for name in one.undecided}
    return "undecided" if undecided & base or undecided - known else "proved"


def coverage(one: Statement, size: ProofSize) -> str:
    """What the proof of a statement is about."""
    clients = "whatever clients send" if one.id in ALONE else "with clients that behave like the shipped member core"
    return (
        f"the shipped coordinator core {clients}, up to {size.slots} members and pending ids, {size.protocols}"
        f" protocols each, partitions: {size.partitions}; any ids, generations, times and processes, messages lost,"
        " late, twice or in any order, static members"
    )


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
