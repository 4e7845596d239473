"""Results of hunts: for each fault the strategy that found it, how fast, and with how few requests.

They are kept as JSON, and shown as plain text and as a page in Markdown.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from fencepost.conformance.zoo.fault import Fault, Side
from fencepost.conformance.zoo.hunt import HuntResult
from fencepost.conformance.zoo.registry import known_bugs, systematic_mutants, zoos
from fencepost.conformance.zoo.strategies import BASELINES, GROUPS, HYPOTHESIS, SCHEDULES, STRATEGIES, WALK

BUG_RESULTS, MUTANT_RESULTS = (Path(__file__).parent / name for name in ("results.json", "mutants.json"))
"""The shipped results, of known bugs and of systematic mutants."""
ORDER = (*STRATEGIES, GROUPS)
"""The kit's strategies, the plainest first."""


@dataclass(frozen=True, slots=True)
class HuntSummary:
    """The hunts for one fault by one strategy. Medians are of those that found a violation."""

    found: int
    of: int
    median_seconds: float = 0.0
    median_schedules: float = 0.0
    median_requests: float = 0.0


@dataclass(frozen=True, slots=True)
class ResultRow:
    """The results of one fault. `found_by` is the plainest strategy that found it, or "" with a `reason`;
    `requirement` is the one violated most often; `seed` is the one with the fewest schedules, and `chunk` the number of
    the batch."""

    name: str
    subject: str
    sentence: str
    source: str
    breaks: tuple[str, ...]
    found_by: str
    requirement: str
    seed: int
    chunk: int
    shortest: tuple[str, ...]
    hunts: Mapping[str, HuntSummary] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """The rows and the limits of the hunts. A table that was cut short has only complete rows."""

    seeds: int
    baseline_seeds: int
    seconds: float
    rows: tuple[ResultRow, ...]
    cut_short: bool = False


def result_row(fault: Fault[Any], results: Sequence[HuntResult], reason: str = "") -> ResultRow:
    """The row of a fault by the results of all its hunts."""
    strategies = dict.fromkeys(result.task.strategy for result in results)
    by_strategy = {name: [result for result in results if result.task.strategy == name] for name in strategies}
    best = next((found for name in ORDER if (found := successful(by_strategy.get(name, ())))), [])
    first = min(best, key=lambda result: result.schedules, default=None)
    shortest = min(best, key=lambda result: (result.requests, result.schedules), default=None)
    named = [result.requirement for result in best]
    return ResultRow(
        fault.id,
        fault.subject.value,
        fault.sentence,
        fault.source,
        fault.breaks,
        "" if first is None else first.task.strategy,
        max(dict.fromkeys(named), key=lambda id: (named.count(id), id in fault.breaks), default=""),
        first.task.seed if first is not None else 0,
        first.chunk if first is not None else 0,
        shortest.found_with if shortest is not None else (),
        {name: summarize_hunts(each) for name, each in by_strategy.items()},
        "" if best else reason,
    )


def successful(results: Iterable[HuntResult]) -> list[HuntResult]:
    """The results with a violation."""
    return [result for result in results if result.is_found]


def summarize_hunts(results: Sequence[HuntResult]) -> HuntSummary:
    """The summary of hunts by one strategy."""
    found = successful(results)
    if not found:
        return HuntSummary(0, len(results))
    return HuntSummary(
        len(found),
        len(results),
        round(median(result.seconds for result in found), 2),
        median(result.schedules for result in found),
        median(result.requests for result in found),
    )


def to_json(table: ResultTable) -> str:
    """The table in JSON, a row a line."""
    head = json.dumps({"fencepost": 1, **asdict(replace(table, rows=()))})
    rows = ",\n".join(json.dumps(asdict(one)) for one in table.rows)
    return head.replace('"rows": []', f'"rows": [\n{rows}\n]') + "\n"


def from_json(text: str) -> ResultTable:
    """The table that `to_json` wrote. Raises `ValueError`, `KeyError` or `TypeError` on anything else."""
    data: dict[str, Any] = json.loads(text)
    rows = tuple(
        ResultRow(
            **{
                **one,
                "breaks": tuple(one["breaks"]),
                "shortest": tuple(one["shortest"]),
                "hunts": {method: HuntSummary(**hunts) for method, hunts in one["hunts"].items()},
            }
        )
        for one in data["rows"]
    )
    return ResultTable(data["seeds"], data["baseline_seeds"], data["seconds"], rows, data["cut_short"])


def load_results(file: Path = BUG_RESULTS) -> ResultTable:
    """The results in a file; an empty table if it does not exist."""
    return from_json(file.read_text(encoding="utf-8")) if file.exists() else ResultTable(0, 0, 0.0, ())


def merge_tables(old: ResultTable, new: ResultTable, names: Iterable[str]) -> ResultTable:
    """The rows of the new table, and those of the old one for other names; only these names, in their order."""
    rows = {one.name: one for one in (*old.rows, *new.rows)}
    return ResultTable(new.seeds, new.baseline_seeds, new.seconds, tuple(rows[name] for name in names if name in rows))


def supplement_table(old: ResultTable, new: ResultTable) -> ResultTable:
    """The new table, of some strategies only, with the results of other strategies in the old one."""
    known = {one.name: one for one in old.rows}
    return replace(
        new, rows=tuple(supplement_row(known[one.name], one) if one.name in known else one for one in new.rows)
    )


def supplement_row(old: ResultRow, new: ResultRow) -> ResultRow:
    """The new row with the results of other strategies in the old one; `found_by` stays the plainest of them."""
    order = (*ORDER, "")
    counts = old.found_by in new.hunts or order.index(new.found_by) <= order.index(old.found_by)
    return replace(new if counts else old, hunts={**old.hunts, **new.hunts})


def no_longer_found(old: ResultTable, new: ResultTable) -> list[str]:
    """The names that are found in the old table and not in the new one."""
    known = {one.name for one in old.rows if one.found_by}
    return [one.name for one in new.rows if one.name in known and not one.found_by]


def record_results(table: ResultTable) -> None:
    """Merge the rows of the table into the recorded results of bugs and mutants, and write the page of the bugs."""
    for file, names in ((BUG_RESULTS, known_bugs()), (MUTANT_RESULTS, systematic_mutants())):
        rows = tuple(row for row in table.rows if row.name in names)
        if rows:
            whole = merge_tables(load_results(file), replace(table, rows=rows), names)
            file.write_text(to_json(whole), encoding="utf-8")
            if file is BUG_RESULTS:
                file.with_suffix(".md").write_text(render_markdown(whole), encoding="utf-8")


# -- as text ---------------------------------------------------------------------------------------------------------

COLUMNS = (
    "bug",
    "what it does",
    "forbidden by",
    "found by",
    "seeds",
    "s",
    "schedules",
    "requests",
    "named",
)
BASELINE_COLUMNS = ("plain Hypothesis", "random walk")
_NONE = HuntSummary(0, 0)


def table_lines(table: ResultTable) -> list[str]:
    """The table in plain text."""
    head = f"{'bug':8} {'found by':10} {'seeds':>6} {'seconds':>8} {'schedules':>10} {'requests':>9}  requirement"
    return [head, *(row_line(each) for each in table.rows), *summary_lines(table.rows)]


def row_line(row: ResultRow) -> str:
    """The line of one fault in plain text."""
    hunts = row.hunts.get(row.found_by, _NONE)
    name = row.name if len(row.name) < 9 else f"{row.name}\n{'':8}"
    if not row.found_by:
        return f"{name:8} not found  {row.reason}"
    return (
        f"{name:8} {row.found_by:10} {f'{hunts.found}/{hunts.of}':>6} {hunts.median_seconds:8.2f} "
        f"{hunts.median_schedules:10.0f} {hunts.median_requests:9.0f}  {row.requirement}"
    )


def summary_lines(rows: Sequence[ResultRow]) -> list[str]:
    """The summary of the rows: of coordinators, and of each part of clients."""
    coordinators, clients = split_rows(rows)
    return [
        *(summarize_coordinators(coordinators) if coordinators or not clients else ()),
        *(summarize_clients(clients) if clients else ()),
    ]


def split_rows(rows: Sequence[ResultRow]) -> tuple[list[ResultRow], list[ResultRow]]:
    """The rows of coordinators, and those of clients."""
    coordinators = [row for row in rows if row.subject == Side.COORDINATOR]
    return coordinators, [row for row in rows if row.subject != Side.COORDINATOR]


def summarize_coordinators(rows: Sequence[ResultRow]) -> list[str]:
    """How many faults of coordinators were found, how fast, and by the baselines."""
    found = [row for row in rows if row.found_by]
    drawn = [row.hunts[SCHEDULES] for row in found if row.found_by == SCHEDULES]
    lines = [f"{len(found)} of {len(rows)} found, {len(drawn)} of them by random schedules"]
    if drawn:
        lines[0] += (
            f"; median {median(each.median_seconds for each in drawn):.1f} s and "
            f"{median(each.median_requests for each in drawn):.0f} requests"
        )
    for method, title in ((HYPOTHESIS, "plain Hypothesis"), (WALK, "a random walk")):
        tried = [row.hunts[method] for row in rows if method in row.hunts]
        if tried:
            lines.append(f"{title} found {sum(each.found > 0 for each in tried)} of {len(tried)}")
    return lines


def not_put_back() -> dict[str, str]:
    """The known bugs that are not put back, with the reason."""
    return {number: reason for zoo in zoos() for number, reason in zoo.not_put_back.items()}


def summarize_clients(rows: Sequence[ResultRow]) -> list[str]:
    """How many faults of each part of clients were found, and how many bugs are not put back."""
    found = [row for row in rows if row.found_by]
    parts = [
        f"{sum(row.subject == side for row in found)} of {sum(row.subject == side for row in rows)} of {side}s"
        for side in dict.fromkeys(row.subject for row in rows)
    ]
    named = sum(row.requirement in row.breaks for row in found)
    lines = [
        f"clients: {len(found)} of {len(rows)} found ({', '.join(parts)}), {named} by a requirement that forbids them"
    ]
    if len(rows) == sum(bug.subject is not Side.COORDINATOR for bug in known_bugs().values()):
        lines.append(f"{len(not_put_back())} more bugs of clients are known and not put back")
    return lines


def render_markdown(table: ResultTable) -> str:
    """The table as a page in Markdown, with the bugs that are not put back."""
    coordinators, clients = split_rows(table.rows)
    page = [
        "# The zoo",
        "",
        "Bugs that coordinators shipped, put back into the bundled one, and what finds them, seen by `fencepost zoo`:",
        f"{table.seeds} seeds each, {table.baseline_seeds} for plain Hypothesis (one request for each rule) and for a",
        f"random walk, each for at most {table.seconds:.0f} s of one core. Medians are of what found something.",
        "",
        *table_in_markdown((*COLUMNS, *BASELINE_COLUMNS), coordinators),
        "",
        *(f"{line}." for line in summarize_coordinators(coordinators)),
    ]
    if clients:
        page += [
            "",
            "## Clients",
            "",
            "Bugs that clients, their assignors and their fetchers shipped, put back into the reference client. The",
            "generator of schedules was written with the list at hand.",
            "",
            *table_in_markdown(("bug", "side", *COLUMNS[1:]), clients),
            "",
            *(f"{line}." for line in summarize_clients(clients)),
            "",
            "Not put back:",
            "",
            *(f"- {number}: {reason}" for number, reason in not_put_back().items()),
        ]
    return "\n".join(page) + "\n"


def table_in_markdown(columns: Sequence[str], rows: Sequence[ResultRow]) -> list[str]:
    """The lines of a table of these rows."""
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *(markdown_row(row) for row in rows)]


def markdown_row(row: ResultRow) -> str:
    """The row of one fault in Markdown: of a coordinator with the baselines, of a client with its side."""
    hunts = row.hunts.get(row.found_by, _NONE)
    is_of_coordinator = row.subject == Side.COORDINATOR
    by = row.found_by if row.found_by in ("", SCHEDULES) else f"{row.found_by}: {' '.join(row.shortest)}"
    figures = [f"{hunts.found}/{hunts.of}", f"{hunts.median_seconds:.1f}", f"{hunts.median_schedules:.0f}"]
    cells = [
        row.name,
        *([] if is_of_coordinator else [row.subject]),
        row.sentence,
        ", ".join(row.breaks),
        by or f"not found: {row.reason}",
        *(figures if row.found_by else ["", "", ""]),
        f"{hunts.median_requests:.0f}" if row.found_by else "",
        row.requirement,
        *([baseline_cell(row.hunts.get(each)) for each in BASELINES] if is_of_coordinator else []),
    ]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def baseline_cell(hunts: HuntSummary | None) -> str:
    """The figures of a baseline."""
    if hunts is None:
        return ""
    return f"{hunts.found}/{hunts.of}" + (f", {hunts.median_seconds:.1f} s" if hunts.found else "")
