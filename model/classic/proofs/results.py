"""The results of all proofs of `fencepost prove`: inductions about the handlers, and lemmas about everything else."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from time import perf_counter

from fencepost.model.assignors.proofs import assignor_lemmas
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
from fencepost.model.classic.proofs.kernel_proofs import cooperative_lemmas, kernel_lemmas, rebalance_lemmas
from fencepost.model.classic.theorems.dispatch_statements import DISPATCH_THEOREMS
from fencepost.model.classic.theorems.failover import (
    FAILOVER_THEOREMS,
    KEPT_BY_KAFKA,
    LOADING_THEOREMS,
    assignment_is_stored,
)
from fencepost.model.classic.theorems.member_statements import MEMBER_THEOREMS
from fencepost.model.classic.theorems.non_theorems import FALSE_THEOREMS
from fencepost.model.classic.theorems.registry import REGISTRY
from fencepost.model.draining.non_theorems import FALSE_CLAIMS
from fencepost.model.draining.proofs import draining_lemmas
from fencepost.model.proofs.induction import Lemma, Progress, TheoremResult, findings, worst_verdict
from fencepost.model.statement import Statement

# --- The results of the inductions about the handlers: within one term of a coordinator, and across fail-overs.

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
    is_of_one: bool = False
    """One theorem is proved alone, from all other statements."""

    def name_of(self, one: Statement) -> str:
        """The name under which the statement is told."""
        return f"{self.prefix}{one.id}"

    def limits_of(self, one: Statement) -> str:
        """What its proof leaves out; nothing is said of a lemma."""
        if self.prefix:
            return self.excludes if one in self.theorems else ""
        return next((theorem.excludes for theorem in REGISTRY if theorem.id == one.id), "")

    def only(self, name: str) -> "InductionReport | None":
        """This report of the one statement that is told under a name; None if there is none."""
        found = tuple(one for one in self.induction.statements if self.name_of(one) == name)
        return replace(self, theorems=found, is_of_one=True) if found else None


IN_ONE_TERM = InductionReport(ONE_TERM, tuple(theorem.statement for theorem in REGISTRY))
KAFKA = InductionReport(
    KAFKA_FAILOVERS,
    (
        *(theorem.statement for theorem in REGISTRY if theorem.statement in KEPT_BY_KAFKA),
        assignment_is_stored,
        *LOADING_THEOREMS,
    ),
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


@dataclass(frozen=True, slots=True)
class StartedInduction:
    """An induction that goes on in other processes, perhaps: its events, and what will come of them, in order."""

    report: InductionReport
    size: ProofSize
    events: tuple[str, ...]
    outcomes: Iterator[EventOutcome]
    term: "StartedInduction | None" = None
    """The induction of one term, if it shows that steps keep statements of this one; its results come first."""
    found: list[EventOutcome] = field(default_factory=list)
    """What came of events so far."""

    def results(self, progress: Progress) -> Iterator[TheoremResult]:
        """The results, once everything is proved."""
        induction = self.report.induction
        labels = [event if induction is ONE_TERM else f"{induction.name}: {event}" for event in self.events]
        progress(labels[0], 1, len(labels))
        for outcome in self.outcomes:
            self.found.append(outcome)
            number = min(len(self.found), len(labels) - 1)
            progress(labels[number], number + 1, len(labels))
        shared = () if self.term is None else (about(induction.of_term, one) for one in self.term.found)
        return told_once(self.report, [*self.found, *shared], self.size)


def about(statements: Set[str], outcome: EventOutcome) -> EventOutcome:
    """What came of an event of another induction, as far as it is about these statements; its time counts there."""
    examples = tuple(example for example in outcome.counterexamples if example.statement in statements)
    undecided = tuple(name for name in outcome.undecided if name in statements)
    return replace(outcome, counterexamples=examples, undecided=undecided, seconds=0.0, longest=0.0)


def start_inductions(
    chosen: ProofSize, seed: int, mapper: Mapper = map, reports: Iterable[InductionReport] = REPORTS
) -> list[StartedInduction]:
    """Begin with the proof of the theorems about handlers: one induction for all that holds within a term, over
    everything that can happen, and one across fail-overs for each design."""
    started: list[StartedInduction] = []
    for report in reports:
        size = report.induction.own_size or chosen
        events = tuple(report.induction.event_names(size))
        statement = report.theorems[0].id if report.is_of_one else ""
        rests_on_term = bool(report.induction.of_term) and not report.is_of_one
        term = next((one for one in started if rests_on_term and one.report is IN_ONE_TERM), None)
        proofs = [EventProof(report.induction.name, one, size, seed, statement, term is not None) for one in events]
        started.append(StartedInduction(report, size, events, iter(mapper(prove_named_event, proofs)), term))
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
            base = {theorem.id} if report.is_of_one else known & ALONE if theorem.id in ALONE else known
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
    if report.is_of_one:
        return (
            f"{coverage(one, replace(report, is_of_one=False), size)}; the other statements are assumed before a step"
        )
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


# --- The results of the proofs that are no induction over handlers, and the sentences of all theorems.

_KERNEL = {one.kernel_id: one.kernel_sentence for one in REGISTRY if one.kernel_id}
_DRAINING = {
    "draining.after": "Going on after the partition visited last serves every buffered partition within n polls.",
    "draining.after-unrefilled": "Going on after it serves whatever is buffered, also if nothing is fetched again.",
    "draining.at-unrefilled": "Going on at it serves every partition, if none is refilled ahead of it.",
    "draining.at-refilled-when-empty": "Going on at it serves every partition, if none is refilled before it is empty.",
    "draining.start": "Beginning with the first partition always starves one while a poll's limit is ahead of it.",
    "draining.total": "Fetching below the limit in total sends no fetch while the limit or more is retained.",
    "draining.share": "Fetching below the share of a poll fetches each empty partition at once.",
    "draining.integer-share": "With that share in integers, more partitions than the limit are never fetched.",
    "draining.memory": "Fetching below the share retains fewer than the limit and one fetch of each partition.",
    "draining.total-memory": "Fetching below the limit in total retains fewer than that as well.",
    "draining.in-flight": "A fetch that waits for another one to its leader changes no bound on what is retained.",
    "draining.no-limit": "A poll without a limit returns everything that is buffered.",
    "draining.ring-change": "Going on after serves a partition within n polls, and one more for each that comes.",
    "draining.equal-share": "Of m records in a greedy poll, at most m - ceil(m / k) differ from equal shares of k.",
}
_ASSIGNORS = {
    "assignors.range": "Range splits a topic into blocks that cover it and differ by at most one partition.",
    "assignors.round-robin": "Under equal subscriptions, round robin gives sizes that differ by at most 1.",
    "assignors.quota": "Under equal subscriptions, sticky gives P div N partitions each, and P mod N members one more.",
    "assignors.retention": "Under equal subscriptions, sticky keeps as many valid claims as these sizes allow.",
    "assignors.improvement": "Under differing ones, sticky ends, and no partition could go to a member with two fewer.",
}


_SETTLING = {
    "settles.rank": "Once the members stop changing, each step of a rebalance lowers a rank that cannot fall for ever.",
    "settles.progress": "Until the group is settled, there is a step for a living member or a timer to take.",
    "settles.end": "A settled group is stable, its members are the living, each knows its assignment, nobody waits.",
    "cooperative.unmoved": "A partition that a cooperative rebalance does not move is owned by its member throughout.",
    "cooperative.apart": "The plan of a cooperative rebalance gives no partition to two members.",
    "cooperative.converges": "If the second plan keeps what the first one gave, it withholds and takes nothing.",
}


def theorem_sentences() -> dict[str, str]:
    """Every theorem that people read: its id and its sentence."""
    of_handlers = {report.name_of(one): one.sentence for report in REPORTS for one in report.theorems}
    return of_handlers | _KERNEL | _SETTLING | _DRAINING | _ASSIGNORS


@dataclass(frozen=True, slots=True)
class LemmaRoom:
    """Lemmas about one subject, with the sentences of the theorems among them that people read."""

    sentences: Mapping[str, str]
    lemmas: Callable[[], Iterable[Lemma]]
    covers: str
    excludes: str


LEMMA_ROOMS = {
    "draining": LemmaRoom(
        _DRAINING,
        draining_lemmas,
        "the draining rules of KIP-41, for any number of partitions, records and any max.poll.records",
        "which records a fetch returns, and when",
    ),
    "assignors": LemmaRoom(
        _ASSIGNORS,
        assignor_lemmas,
        "how many partitions each member gets, for any number of members and partitions and any claims",
        "which partitions these are",
    ),
    "kernel": LemmaRoom(
        _KERNEL,
        kernel_lemmas,
        "the kernel, for any number of members, partitions and generations",
        "the handlers themselves: tests tie them to the kernel, step by step",
    ),
    "settling": LemmaRoom(
        _SETTLING,
        lambda: (*rebalance_lemmas(), *cooperative_lemmas()),
        "rebalances reduced to who is awaited and who owns what, for any number of members and partitions",
        "messages that are lost, and the handlers themselves: tests tie the quiet runs of the search to it",
    ),
}
"""All lemmas that are not about handlers; each room is proved in less than a second."""


def prove_room(name: str, seed: int) -> tuple[TheoremResult, ...]:
    """One result for each theorem of a room that people read; the lemmas below them count for all."""
    room = LEMMA_ROOMS[name]
    found = list(findings(room.lemmas(), seed))
    below = [one for one in found if one.lemma.theorem not in room.sentences]
    results: list[TheoremResult] = []
    for theorem, sentence in room.sentences.items():
        own = [one for one in found if one.lemma.theorem == theorem]
        verdict = worst_verdict([*own, *below]) if own else "vacuous"
        longest, seconds = max((one.longest for one in (*own, *below)), default=0.0), sum(one.seconds for one in own)
        results.append(TheoremResult(theorem, sentence, verdict, room.covers, room.excludes, seconds, longest))
    return tuple(results)


def false_draining_results() -> Iterator[TheoremResult]:
    """What is said of KIP-41's rules and is false, each broken by its schedule once more."""
    for false in FALSE_CLAIMS:
        began = perf_counter()
        shown = false.show()
        verdict = "false, as it should be" if shown else "not broken"
        covers = f"{shown or 'no schedule'}, as {false.reason}"
        yield TheoremResult(false.id, false.sentence, verdict, covers, "", perf_counter() - began)


def false_theorem_results() -> Iterator[TheoremResult]:
    """The plain wordings that are false, each broken by its story once more."""
    for false in FALSE_THEOREMS:
        began = perf_counter()
        try:
            story = false.script()
        except Exception as error:  # a changed core answers something else, at which a script may break in any way
            verdict, covers = "not broken", f"no run, for its script ends with {type(error).__name__}: {false.reason}"
        else:
            verdict = "false, as it should be" if story.violations_of(false.statement) else "not broken"
            covers = f"a run of {len(story.log)} steps: {false.reason}"
        yield TheoremResult(false.statement.id, false.statement.sentence, verdict, covers, "", perf_counter() - began)


# --- What share of the judge is inside the proofs about handlers. The numbers are measured, and tests measure them
# again.
#
# A rule is inside if it applies on a path of some proof, a step if its rule is, a line if the proofs run its function.

INSIDE_RULES, RULES = 71, 115
"""Rules of the coordinator. Outside: transactions, fetching and deleting offsets, requests of tools, failed writes, the
gate of a coordinator that loads or is not there, clean-up."""
STEPS_PERCENT = 80
"""Of the steps that the judge settles on in the scenarios of `fencepost test bundled`."""
LINES_PERCENT = 16
"""Of the code that judges: the model of the coordinator, the reading of messages, the search for an explanation."""


def share_sentence() -> str:
    """The share, for people."""
    return (
        f"Inside the proofs about handlers: {STEPS_PERCENT} % of the steps that the judge takes in"
        f" `fencepost test bundled`, {INSIDE_RULES} of {RULES} rules, {LINES_PERCENT} % of the lines of the code that"
        " judges."
    )
