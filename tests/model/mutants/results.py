"""The verdict on each mutant, and the table of all of them."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fencepost.conformance.zoo.operators import OPERATORS

TOUR, REFUTED, EQUIVALENT, UNEXPLAINED = "tour", "refuted", "equivalent", "unexplained"
UNREACHED = "no transition of the machines reaches it"
FILE = Path(__file__).with_name("core.json")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant.

    "tour": the first tour of `machine` in which it answers differently, the step of it, and the fewest inputs that show
    a difference. If no ordinary tour does, those that go on for `further` inputs after a transition that runs its
    function: `tour` is then the number of the transition among these.
    "refuted": the events whose proof finds a counterexample to induction, with the statements that it breaks.
    "equivalent": `compared` transitions, all that run its function in any machine, and no different answer.
    """

    verdict: str
    machine: str = ""
    tour: int = 0
    step: int = 0
    shortest: int = 0
    further: int = 0
    compared: int = 0
    asked: bool = False
    """The proof was asked as well."""
    proof: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


def read(file: Path = FILE) -> dict[str, Verdict]:
    """The table, by name; empty if there is none."""
    if not file.exists():
        return {}
    rows = json.loads(file.read_text(encoding="utf-8"))["mutants"]
    return {row["mutant"]: Verdict(**{name: value for name, value in row.items() if name != "mutant"}) for row in rows}


def write(verdicts: Mapping[str, Verdict], file: Path = FILE) -> None:
    """Write the table, a line for each mutant; what is empty is left out."""
    lines = [
        json.dumps({"mutant": name, **non_empty_fields(verdict)}, ensure_ascii=False)
        for name, verdict in verdicts.items()
    ]
    body = ",\n".join(lines)
    file.write_text(f'{{"mutants": [\n{body}\n]}}\n', encoding="utf-8")
    file.with_suffix(".md").write_text(render_markdown(verdicts), encoding="utf-8")


def non_empty_fields(verdict: Verdict) -> dict[str, Any]:
    """The fields that say something."""
    return {name: value for name, value in asdict(verdict).items() if value}


def render_markdown(verdicts: Mapping[str, Verdict]) -> str:
    """The table for people: figures by module and operator, and every mutant that no tour finds."""
    further = sum(one.further > 0 for one in verdicts.values())
    lines = [
        f"# {len(verdicts):,} mutants of the core",
        "",
        "Each is found by a tour (input-complete, from the initial state, by its answers and rules), or refuted by the",
        "proof, or equivalent: no different answer in an exhaustive comparison of all machines, within their bounds.",
        f"Of the tours, {further} go on after a transition of the mutated function, with any few inputs.",
        "Of the equivalent ones, it is said where no transition reaches the very line: the core need not have it, or",
        "the machines are too small for it.",
        "",
    ]
    lines += count_table("module", ((name.partition(".")[0], one.verdict) for name, one in verdicts.items()))
    lines += count_table("operator", ((name.split(": ")[1], one.verdict) for name, one in verdicts.items()))
    lines += ["", "| operator | because |", "|---|---|", *(f"| {one.name} | {one.reason} |" for one in OPERATORS)]
    lines += ["", "## Not found by a tour", "", "| mutant | verdict | evidence |", "|---|---|---|"]
    for name, one in verdicts.items():
        if one.verdict != TOUR:
            lines.append(f"| `{name.replace('|', chr(92) + '|')}` | {one.verdict} | {evidence_sentence(one)} |")
    return "\n".join(lines) + "\n"


def count_table(what: str, pairs: Iterable[tuple[str, str]]) -> list[str]:
    """A table of how many mutants got which verdict."""
    counts: dict[str, Counter[str]] = {}
    for group, verdict in pairs:
        counts.setdefault(group, Counter())[verdict] += 1
    total: Counter[str] = sum(counts.values(), Counter())
    columns = [one for one in (TOUR, REFUTED, EQUIVALENT, UNEXPLAINED) if total[one] or one == UNEXPLAINED]
    rows = [*sorted(counts.items()), ("all", total)]
    lines = ["", f"| {what} | mutants | {' | '.join(columns)} |", f"|---|---|{'---|' * len(columns)}"]
    return lines + [
        f"| {group} | {count.total()} | {' | '.join(str(count[one]) for one in columns)} |" for group, count in rows
    ]


def evidence_sentence(verdict: Verdict) -> str:
    """Why a mutant got its verdict, in a sentence."""
    told = []
    if verdict.proof:
        broken = ", ".join(f"{event} breaks {', '.join(names)}" for event, names in verdict.proof.items())
        told.append(broken)
    if verdict.compared or verdict.verdict == EQUIVALENT:
        told.append(f"{verdict.compared:,} transitions that run its function, the same answers")
    return "; ".join([*told, verdict.note] if verdict.note else told)
