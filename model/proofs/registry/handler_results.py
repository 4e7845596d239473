"""The results of the inductions about the handlers: within one term of a coordinator, and across fail-overs."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from fencepost.model.classic.proofs.induction import (
    ALONE,
    DISPATCH,
    EARLY_FAILOVERS,
    KAFKA_FAILOVERS,
    ONE_TERM,
    EventOutcome,
    EventProof,
    Induction,
    ProofSize,
    initially_false,
    prove_named_event,
)
from fencepost.model.classic.theorems.dispatch_statements import DISPATCH_THEOREMS
from fencepost.model.classic.theorems.failover import FAILOVER_THEOREMS, KEPT_BY_KAFKA, assignment_is_stored
from fencepost.model.classic.theorems.member_statements import MEMBER_THEOREMS
from fencepost.model.classic.theorems.registry import REGISTRY
from fencepost.model.proofs.registry.theorem_result import Progress, TheoremResult
from fencepost.model.statement import Statement

Mapper = Callable[[Callable[[EventProof], EventOutcome], Sequence[EventProof]], Iterable[EventOutcome]]
"""Applies a function to what is to be proved, in order, as `map` does; perhaps in several processes."""


@dataclass(frozen=True, slots=True)
class InductionReport:
    """The theorems that people read of an induction, the prefix of their names, and their scope."""

    induction: Induction
    theorems: tuple[Statement, ...]
    prefix: str = ""
    dialect: str = ""
    excludes: str = "deletion"
    covers: str = ""
    """What its proofs are about, where it does not depend on their size."""

    def name_of(self, one: Statement) -> str:
        """The name under which the statement is told."""
        return f"{self.prefix}{one.id}"

    def limits_of(self, one: Statement) -> str:
        """What its proof leaves out; nothing is said of a lemma."""
        if self.prefix:
            return self.excludes if one in self.theorems else ""
        return next((theorem.excludes for theorem in REGISTRY if theorem.id == one.id), "")


IN_ONE_TERM = InductionReport(ONE_TERM, tuple(theorem.statement for theorem in REGISTRY))
KAFKA = InductionReport(
    KAFKA_FAILOVERS,
    (*(theorem.statement for theorem in REGISTRY if theorem.statement in KEPT_BY_KAFKA), assignment_is_stored),
    "failover.",
    "across fail-overs, in Kafka's dialects, ",
)
EARLY = InductionReport(
    EARLY_FAILOVERS,
    FAILOVER_THEOREMS,
    "early.",
    "across fail-overs, in the dialect that stores a generation before it answers JoinGroup, ",
    "deletion; Kafka's dialects, in which T1 is false",
)


DISPATCHER = InductionReport(
    DISPATCH,
    DISPATCH_THEOREMS,
    "dispatch.",
    excludes="transactions, the topics of subscriptions, requests of tools",
    covers=(
        "the shipped dispatcher in front of the core, whatever clients send, in any state of a group with a table of 2"
        " slots, full or not, and of an unknown one"
    ),
)


REPORTS = (IN_ONE_TERM, KAFKA, EARLY, DISPATCHER)


def dispatch_sentences() -> dict[str, str]:
    """The theorems about the dispatcher: their ids and sentences."""
    return {DISPATCHER.name_of(one): one.sentence for one in DISPATCHER.theorems}


def handler_sentences() -> dict[str, str]:
    """The theorems within one term: their ids and sentences."""
    return {IN_ONE_TERM.name_of(one): one.sentence for one in IN_ONE_TERM.theorems}


def failover_sentences() -> dict[str, str]:
    """The theorems across fail-overs: their ids and sentences."""
    return {report.name_of(one): one.sentence for report in (KAFKA, EARLY) for one in report.theorems}


@dataclass(frozen=True, slots=True)
class StartedInduction:
    """An induction that goes on in other processes, perhaps: its events, and what will come of them, in order."""

    report: InductionReport
    size: ProofSize
    events: tuple[str, ...]
    outcomes: Iterator[EventOutcome]

    def results(self, progress: Progress) -> Iterator[TheoremResult]:
        """The results, once everything is proved."""
        induction = self.report.induction
        labels = [event if induction is ONE_TERM else f"{induction.name}: {event}" for event in self.events]
        found: list[EventOutcome] = []
        progress(labels[0], 1, len(labels))
        for outcome in self.outcomes:
            found.append(outcome)
            number = min(len(found), len(labels) - 1)
            progress(labels[number], number + 1, len(labels))
        return told_once(self.report, found, self.size)


def start_inductions(
    chosen: ProofSize, seed: int, mapper: Mapper = map, reports: Iterable[InductionReport] = REPORTS
) -> list[StartedInduction]:
    """Begin with the proof of the theorems about handlers: one induction for all that holds within a term, over
    everything that can happen, and one across fail-overs for each design."""
    started: list[StartedInduction] = []
    for report in reports:
        size = report.induction.own_size or chosen
        events = tuple(report.induction.event_names(size))
        proofs = [EventProof(report.induction.name, event, size, seed) for event in events]
        started.append(StartedInduction(report, size, events, iter(mapper(prove_named_event, proofs))))
    return started


def told_once(report: InductionReport, outcomes: Sequence[EventOutcome], size: ProofSize) -> Iterator[TheoremResult]:
    """Each refuted statement under its own name, a theorem or not; then every other theorem."""
    statements = report.induction.statements
    examples = [example for one in outcomes for example in one.counterexamples]
    refuted = {*initially_false(statements, size), *(example.statement for example in examples)}
    seconds, longest = sum(one.seconds for one in outcomes), max(one.longest for one in outcomes)

    def result(one: Statement, verdict: str, rests_on: Iterable[str] = ()) -> TheoremResult:
        mine = tuple(example for example in examples if example.statement == one.id)
        name, covers, excludes = report.name_of(one), coverage(one, report, size), report.limits_of(one)
        rest = tuple(sorted(rests_on))
        return TheoremResult(name, one.sentence, verdict, covers, excludes, seconds, longest, mine, rest)

    yield from (result(one, "refuted") for one in statements if one.id in refuted)
    known = {one.id for one in statements}
    for theorem in report.theorems:
        if theorem.id not in refuted:
            base = known & ALONE if theorem.id in ALONE else known
            yield result(theorem, verdict_of(base, known, outcomes, refuted), base & refuted)


def verdict_of(base: Set[str], known: Set[str], outcomes: Sequence[EventOutcome], refuted: Set[str]) -> str:
    """What became of a theorem that is not refuted and is proved together with the statements of `base`; all that the
    induction is about is `known`."""
    if base & refuted:
        return "unproved"
    if not all(one.possible for one in outcomes):
        return "vacuous"
    undecided = {name for one in outcomes for name in one.undecided}
    return "undecided" if undecided & base or undecided - known else "proved"


def coverage(one: Statement, report: InductionReport, size: ProofSize) -> str:
    """What the proof of a statement is about."""
    if report.covers:
        return report.covers
    if one in MEMBER_THEOREMS:
        return (
            f"the shipped member core whatever it hears, {size.protocols} protocols, partitions: {size.partitions}; any"
            " ids, generations and times"
        )
    clients = "whatever clients send" if one.id in ALONE else "with clients that behave like the shipped member core"
    return (
        f"the shipped coordinator core {report.dialect}{clients}, up to {size.slots} members and pending ids,"
        f" {size.protocols} protocols each, partitions: {size.partitions}; any ids, generations, times and processes,"
        " messages lost, late, twice or in any order, static members"
    )
