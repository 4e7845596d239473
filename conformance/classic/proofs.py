"""The output of `fencepost prove`: a line for each theorem, with its coverage and its limits."""

import argparse
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from fencepost.conformance.cli.console import Console, UsageError
from fencepost.conformance.cli.files import check_outputs
from fencepost.conformance.results import ExitCode
from fencepost.conformance.run.workers import WorkerPool
from fencepost.model.classic.explore.history import ViolationPath, ViolationSearchResult, find_violations
from fencepost.model.classic.explore.state_layout import COORDINATOR
from fencepost.model.classic.proofs.induction import STATEMENTS, ProofSize
from fencepost.model.classic.proofs.results import (
    LEMMA_ROOMS,
    REPORTS,
    false_draining_results,
    false_theorem_results,
    prove_room,
    share_sentence,
    start_inductions,
    theorem_sentences,
)
from fencepost.model.classic.theorems.non_theorems import FALSE_THEOREMS
from fencepost.model.draining.non_theorems import FALSE_CLAIMS
from fencepost.model.explore.engine import PathStep
from fencepost.model.proofs.induction import Progress, TheoremResult

WORKER_PROCESSES = max(2, os.cpu_count() or 1)
"""An event is proved in one of them."""
_EXPECTED_VERDICTS = ("proved", "false, as it should be")


@dataclass(frozen=True, slots=True)
class Proof:
    """The results of one run, its size and seed, and how long it took in seconds.

    `search` says which counterexamples to induction are real; there is none where there are no counterexamples. A proof
    that was `cut_short` has the results so far.
    """

    size: ProofSize
    seed: int
    results: tuple[TheoremResult, ...]
    seconds: float
    search: ViolationSearchResult | None = None
    cut_short: bool = False

    @property
    def longest(self) -> float:
        """The seconds of the longest query."""
        return max((result.longest for result in self.results), default=0.0)

    def exit_code(self) -> ExitCode:
        """1 if anything is refuted, vacuous or not broken, 3 if the solver gave up or the proof was cut short, else
        0."""
        verdicts = {result.verdict for result in self.results}
        if not verdicts <= {*_EXPECTED_VERDICTS, "undecided"}:
            return ExitCode.VIOLATION
        return ExitCode.INCONCLUSIVE if self.cut_short or "undecided" in verdicts else ExitCode.CONFORMANT


def prove(
    size: ProofSize, seed: int, limit: int, progress: Progress, show: Callable[[str], None], theorem: str = ""
) -> Proof:
    """Prove everything or one theorem, showing each result as soon as it is there. Ctrl-C ends it early and keeps what
    was proved.

    What is refuted is searched for real breaches at the end, in each small instance among `limit` states at most.
    """
    began = perf_counter()
    results: list[TheoremResult] = []
    found, cut_short = None, True
    try:
        with closing(prove_all(size, seed, progress, theorem)) as proving:
            for result in proving:
                results.append(result)
                show(result_line(result))
        found = search_counterexamples(results, limit, progress)
        cut_short = False
    except KeyboardInterrupt:
        pass
    if found is not None:
        show(describe_search(results, found))
    return Proof(size, seed, tuple(results), perf_counter() - began, found, cut_short)


def refuted_statements(results: Iterable[TheoremResult]) -> set[str]:
    """The statements that have counterexamples to induction."""
    return {example.statement for result in results for example in result.counterexamples}


def search_counterexamples(
    results: Iterable[TheoremResult], limit: int, progress: Progress
) -> ViolationSearchResult | None:
    """Counterexamples to induction, each with a search for a run from the start that breaks the same statement."""
    broken = refuted_statements(results)
    return find_violations([one for one in STATEMENTS if one.id in broken], limit, progress) if broken else None


def describe_search(results: Iterable[TheoremResult], found: ViolationSearchResult) -> str:
    """Which of the counterexamples are real, and the shortest run that shows it."""
    lines: list[str] = []
    for name in sorted(refuted_statements(results)):
        breach = found.violation_of(name)
        real = "no real trace" if breach is None else f"a real trace of {len(breach.steps)} steps"
        lines.append(f"{name}: {real} within {found.states:,} states")
    if not found.violations:
        return "\n".join(
            [*lines, "A counterexample to induction is not yet a bug: its first state may never come about."]
        )
    shortest = found.violations[0]
    lines.append(f"From the start to a state that breaks {shortest.statement}, with {shortest.instance.name}:")
    return "\n".join([*lines, *run_lines(shortest)])


def run_lines(breach: ViolationPath) -> Iterator[str]:
    """The run, a step in each line, with the group after it."""
    for number, step in enumerate(breach.steps, 1):
        after = group_summary(step)
        yield f"  {number:2}. {step.label}  (generation {after['generation']}, {after['phase']})"


def group_summary(step: PathStep) -> dict[str, int | str]:
    """Where the group stands after a step."""
    group = step.row[COORDINATOR].group
    return {"generation": group.generation, "phase": group.phase.name.capitalize()}


def prove_all(
    size: ProofSize, seed: int, progress: Progress, theorem: str = ""
) -> Generator[TheoremResult, None, None]:
    """The results in the order in which they are shown, the quick ones first; those of the theorem if there is one."""
    chosen = [name for name, room in LEMMA_ROOMS.items() if not theorem or theorem in room.sentences]
    reports = REPORTS if not theorem else tuple(filter(None, (report.only(theorem) for report in REPORTS)))
    with WorkerPool(WORKER_PROCESSES) as pool:
        # Nothing is proved in this process: Ctrl-C in the middle of one of the solver's objects may get lost.
        rooms = {name: pool.submit(prove_room, name, seed) for name in chosen}
        started = start_inductions(size, seed, pool.map, reports)
        for number, (name, room) in enumerate(rooms.items(), 1):
            progress(name, number, len(rooms))
            yield from (result for result in room.result() if theorem in ("", result.id))
        for induction in started:
            yield from induction.results(progress)
    for false in (*false_theorem_results(), *false_draining_results()):
        if theorem in ("", false.id):
            yield false


def provable_names() -> set[str]:
    """What `--theorem` may name: every statement, theorem or lemma, and every wording that is false."""
    statements = {report.name_of(one) for report in REPORTS for one in report.induction.statements}
    false = {one.statement.id for one in FALSE_THEOREMS} | {one.id for one in FALSE_CLAIMS}
    return statements | theorem_sentences().keys() | false


def result_line(result: TheoremResult) -> str:
    """One result in one line, and a counterexample below it."""
    if result.rests_on:
        return f"{result.verdict}  {result.id}: {result.sentence} It rests on {', '.join(result.rests_on)}."
    text = f"{result.verdict}  {result.id}: {result.sentence} Covers {result.covers}."
    if result.excludes:
        text += f" Not: {result.excludes}."
    if result.counterexamples:
        example = result.counterexamples[0]
        text += (
            f"\n  {len(result.counterexamples)} counterexamples to induction, the first"
            f" at {example.event} ({example.result.rule})\n  before: {example.subject}\n  with: {example.arguments}"
        )
    return text


def summary(proof: Proof) -> str:
    """The last line."""
    proved = sum(result.verdict == "proved" for result in proof.results)
    false = sum(result.verdict == _EXPECTED_VERDICTS[1] for result in proof.results)
    rest = len(proof.results) - proved - false
    text = f"{proved} theorems proved, {false} false wordings shown false"
    if rest:
        text += f", {rest} in doubt"
    refuted = [result.id for result in proof.results if result.verdict == "refuted"]
    if refuted:
        text += f" (refuted: {', '.join(refuted)})"
    if proof.cut_short:
        text = f"interrupted: {text}"
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
            "rests_on": list(result.rests_on),
            "counterexamples": [
                {
                    "event": example.event,
                    "statement": example.statement,
                    "before": repr(example.subject),
                    "arguments": repr(example.arguments),
                    "after": repr(example.result),
                    "real_steps": real_run_length(proof.search, example.statement),
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
    if proof.cut_short:
        report["cut_short"] = True
    if proof.search is not None:
        report["search"] = {
            "states": proof.search.states,
            "breaches": [
                {
                    "statement": breach.statement,
                    "instance": breach.instance.name,
                    "steps": [{"event": step.label, **group_summary(step)} for step in breach.steps],
                }
                for breach in proof.search.violations
            ],
        }
    return json.dumps(report, indent=2) + "\n"


def real_run_length(found: ViolationSearchResult | None, statement: str) -> int | None:
    """How many steps from the start break the statement; None if no such run was found."""
    breach = None if found is None else found.violation_of(statement)
    return None if breach is None else len(breach.steps)


def prove_classic(options: argparse.Namespace, console: Console) -> int:
    """Prove every theorem, print each result as it comes, and write them to a file."""
    check_outputs({"--json": options.json})
    if options.theorem is not None and options.theorem not in provable_names():
        raise UsageError("prove", f"no theorem is called {options.theorem!r}; `fencepost prove` tells all names")
    status = console.status_line()

    def show_progress(doing: str, number: int, total: int) -> None:
        status.show(f"{doing} ({number} of {total})")

    def show_result(line: str) -> None:
        status.clear()
        console.print_line(line)

    size = ProofSize(options.slots, options.partitions, options.protocols)
    proof = prove(size, options.seed, options.states, show_progress, show_result, options.theorem or "")
    status.clear()
    if not proof.cut_short and not options.theorem:
        console.print_line(share_sentence())
    console.print_line(summary(proof))
    if options.json is not None:
        options.json.write_text(to_json(proof), encoding="utf-8")
    return proof.exit_code()
