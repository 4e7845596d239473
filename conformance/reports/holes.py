"""The output of `fencepost explore` for a design: each of its holes with its shortest run, and what its repair does."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from fencepost.conformance.results import ExitCode
from fencepost.model.catalogue.specification import Hole
from fencepost.model.explore.hole_search import HoleSearch, SearchOutcome


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


def explore_holes(
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


def exit_code(results: tuple[HoleResult, ...]) -> ExitCode:
    """1 if a repair does not close its hole, 3 if a hole was not found or a search was cut short, else 0."""
    verdicts = {one.verdict for one in results}
    if "not closed" in verdicts:
        return ExitCode.VIOLATION
    return ExitCode.CONFORMANT if verdicts <= {"closed"} else ExitCode.INCONCLUSIVE


def to_json(results: tuple[HoleResult, ...], protocol: str) -> str:
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
