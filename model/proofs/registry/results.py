"""The results of the proofs that are no induction over handlers, and the sentences of all theorems."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter

from fencepost.model.classic.proofs import kernel_proofs
from fencepost.model.classic.proofs.kernel_proofs import cooperative_lemmas, rebalance_lemmas
from fencepost.model.classic.theorems.non_theorems import FALSE_THEOREMS
from fencepost.model.classic.theorems.registry import REGISTRY
from fencepost.model.draining.non_theorems import FALSE_CLAIMS
from fencepost.model.proofs.assignors.theorems import assignor_lemmas
from fencepost.model.proofs.draining import waiting
from fencepost.model.proofs.induction import Lemma, LemmaResult, findings
from fencepost.model.proofs.registry.handler_results import dispatch_sentences, failover_sentences, handler_sentences
from fencepost.model.proofs.registry.theorem_result import TheoremResult

_KERNEL = {one.kernel_id: one.sentence for one in REGISTRY if one.kernel_id}
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
    of_handlers = handler_sentences() | failover_sentences() | dispatch_sentences()
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
        waiting.draining_lemmas,
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
        kernel_proofs.kernel_lemmas,
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


def worst_verdict(found: list[LemmaResult]) -> str:
    """Proved only if every lemma is what it should be."""
    wrong = {one.verdict for one in found if not one.as_expected}
    if not wrong:
        return "proved"
    return "undecided" if wrong == {"unknown"} else "vacuous" if "vacuous" in wrong else "refuted"


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
        story = false.script()
        verdict = "false, as it should be" if story.violations_of(false.statement) else "not broken"
        covers = f"a run of {len(story.log)} steps: {false.reason}"
        yield TheoremResult(false.statement.id, false.statement.sentence, verdict, covers, "", perf_counter() - began)
