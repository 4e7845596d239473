"""The commands `prove` and `explore` for designs: theorems about a kernel, and searches for the holes of a text."""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.files import check_outputs
from fencepost.conformance.cli.options import refuse_options
from fencepost.conformance.results import ExitCode
from fencepost.model.catalogue.specification import Hole
from fencepost.model.explore.hole_search import HoleSearch, SearchOutcome
from fencepost.model.explore.search import NO_LIMIT
from fencepost.model.protocols import load_part, registered_protocols

if TYPE_CHECKING:
    from fencepost.model.proofs.induction import TheoremResult

# --- The output of `fencepost prove` for a design: a line for each theorem, and for each wording that is false.

EXPECTED = ("proved", "false, as it should be")


def theorem_line(result: "TheoremResult") -> str:
    """A result in one line."""
    text = f"{result.verdict}  {result.id}: {result.sentence}"
    return f"{text} Covers {result.covers}. Not: {result.excludes}." if result.verdict == "proved" else text


def summarize_proofs(results: "tuple[TheoremResult, ...]") -> str:
    """The last line."""
    proved, false = (sum(one.verdict == verdict for one in results) for verdict in EXPECTED)
    rest = len(results) - proved - false
    longest = max((one.longest for one in results), default=0.0)
    text = f"{proved} theorems proved, {false} false wordings shown false"
    return f"{text}{f', {rest} in doubt' if rest else ''}, the longest query {longest:.2f} s"


def proofs_exit_code(results: "tuple[TheoremResult, ...]") -> ExitCode:
    """1 if anything is refuted, vacuous or not broken, 3 if the solver gave up, else 0."""
    verdicts = {one.verdict for one in results} - set(EXPECTED)
    if not verdicts:
        return ExitCode.CONFORMANT
    return ExitCode.INCONCLUSIVE if verdicts == {"undecided"} else ExitCode.VIOLATION


def proofs_to_json(results: "tuple[TheoremResult, ...]", protocol: str, seed: int) -> str:
    """The results as JSON."""
    rows = [
        {
            "id": one.id,
            "sentence": one.sentence,
            "verdict": one.verdict,
            "covers": one.covers,
            "excludes": one.excludes,
            "seconds": round(one.seconds, 3),
            "longest_query_seconds": round(one.longest, 3),
        }
        for one in results
    ]
    return json.dumps({"protocol": protocol, "seed": seed, "theorems": rows}, indent=2) + "\n"


# --- The output of `fencepost explore` for a design: each of its holes with its shortest run, and what its repair
# does.


@dataclass(frozen=True, slots=True)
class HoleResult:
    """A hole, and what came of both searches."""

    hole: HoleSearch
    title: str
    drafted: SearchOutcome
    repaired: SearchOutcome

    @property
    def verdict(self) -> str:
        """closed: found, and gone within the bounds once repaired; not found; not closed; open: cut short."""
        if self.repaired.is_broken:
            return "not closed"
        if not self.drafted.is_broken:
            return "not found" if self.drafted.is_complete else "open"
        return "closed" if self.repaired.is_complete else "open"


def search_holes(
    holes: Iterable[HoleSearch],
    known: Mapping[str, Hole],
    limit: int,
    doing: Callable[[str], None],
    show: Callable[[str], None],
) -> tuple[HoleResult, ...]:
    """Search for each hole of the `known` ones, and show it as soon as it is there."""
    results: list[HoleResult] = []
    for hole in holes:
        doing(f"{hole.id} {hole.property}, as drafted")
        drafted = hole.drafted(limit)
        doing(f"{hole.id} {hole.property}, repaired")
        results.append(HoleResult(hole, known[hole.id].title, drafted, hole.repaired(limit)))
        show("\n".join(hole_lines(results[-1])))
    return tuple(results)


def hole_lines(result: HoleResult) -> Iterator[str]:
    """A hole in words: what breaks, the shortest run, the repair."""
    hole, drafted, repaired = result.hole, result.drafted, result.repaired
    yield f"{hole.id}  {result.title}: {result.verdict}"
    yield f"  {hole.property}: {hole.sentence}"
    if drafted.is_broken:
        steps = f"{len(drafted.run)} step{'s' * (len(drafted.run) > 1)}"
        yield f"  Breaks as drafted, {steps}, after {drafted.states:,} {drafted.unit} ({hole.bounds}):"
        yield from (f"    {number:2}. {label}" for number, label in enumerate(drafted.run, 1))
    else:
        yield f"  Holds as drafted in {drafted.states:,} {drafted.unit} ({hole.bounds})."
    what = "Breaks" if repaired.is_broken else "Holds"
    whole = "all" if repaired.is_complete else "the first"
    yield f"  {what} with {hole.repair}: {whole} {repaired.states:,} {repaired.unit}, {repaired.seconds:.1f} s"


def summarize(results: tuple[HoleResult, ...]) -> str:
    """The last line."""
    closed = {one.hole.id for one in results} - {one.hole.id for one in results if one.verdict != "closed"}
    return f"{len(closed)} of {len({one.hole.id for one in results})} holes found and closed"


def holes_exit_code(results: tuple[HoleResult, ...]) -> ExitCode:
    """1 if a repair does not close its hole, 3 if a hole was not found or a search was cut short, else 0."""
    verdicts = {one.verdict for one in results}
    if "not closed" in verdicts:
        return ExitCode.VIOLATION
    return ExitCode.CONFORMANT if verdicts <= {"closed"} else ExitCode.INCONCLUSIVE


def holes_to_json(results: tuple[HoleResult, ...], protocol: str) -> str:
    """The results as JSON."""

    def outcome(one: SearchOutcome) -> dict[str, object]:
        return {"run": list(one.run), "states": one.states, "complete": one.is_complete, "seconds": one.seconds}

    rows = [
        {
            "id": one.hole.id,
            "property": one.hole.property,
            "sentence": one.hole.sentence,
            "repair": one.hole.repair,
            "bounds": one.hole.bounds,
            "verdict": one.verdict,
            "drafted": outcome(one.drafted),
            "repaired": outcome(one.repaired),
        }
        for one in results
    ]
    return json.dumps({"protocol": protocol, "holes": rows}, indent=2) + "\n"


def prove_kernel(options: argparse.Namespace, console: Console) -> int:
    """Prove every theorem, print each result, and write them to a file."""
    from fencepost.model.proofs.induction import kernel_results

    refuse_options(options, "prove", frozenset({"seed", "json"}))
    check_outputs({"--json": options.json})
    status = console.status_line()

    def doing(what: str, number: int, total: int) -> None:
        status.show(f"{what} ({number} of {total})")

    theorems = load_part(registered_protocols()[options.protocol].theorems)
    results = tuple(kernel_results(theorems, options.seed, doing))
    status.clear()
    for result in results:
        console.print_line(theorem_line(result))
    console.print_line(summarize_proofs(results))
    if options.json is not None:
        options.json.write_text(proofs_to_json(results, options.protocol, options.seed), encoding="utf-8")
    return proofs_exit_code(results)


def explore_holes(options: argparse.Namespace, console: Console) -> int:
    """Search for every hole of the text, print each as it comes, and write them to a file."""
    refuse_options(options, "explore", frozenset({"limit", "json"}))
    check_outputs({"--json": options.json})
    status = console.status_line()

    def show(text: str) -> None:
        status.clear()
        console.print_line(text)

    limit = NO_LIMIT if options.limit is None else options.limit
    entry = registered_protocols()[options.protocol]
    results = search_holes(load_part(entry.hole_searches)(), load_part(entry.holes), limit, status.show, show)
    show(summarize(results))
    if options.json is not None:
        options.json.write_text(holes_to_json(results, options.protocol), encoding="utf-8")
    return holes_exit_code(results)
