"""Hunts of all known bugs of clients, and the table of what found each."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from typing import Any

from fencepost.conformance.events import Progress
from fencepost.conformance.execution.workers import MAX_MEMORY_BYTES, WorkerPool, run_tasks
from fencepost.conformance.zoo.classic.clients.bug import ClientBug
from fencepost.conformance.zoo.classic.clients.registry import CLIENT_BUGS, NOT_PUT_BACK
from fencepost.conformance.zoo.client_hunts import hunt_client, strategies_for
from fencepost.conformance.zoo.hunt import HuntResult, HuntTask
from fencepost.conformance.zoo.strategies import GROUPS, STRATEGIES

CLIENT_RESULTS = Path(__file__).parent / "clients.json"
"""The shipped results."""


@dataclass(frozen=True, slots=True)
class ClientRow:
    """The hunts of one bug: the strategy that found it, "" if none did, and in how many of the hunts by that; the
    requirement that was violated most often, medians, and the shortest schedule or the scenario."""

    name: str
    side: str
    sentence: str
    source: str
    breaks: tuple[str, ...]
    found_by: str
    found: int
    of: int
    requirement: str = ""
    seconds: float = 0.0
    schedules: float = 0.0
    requests: float = 0.0
    shortest: tuple[str, ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether the requirement is one that forbids the bug."""
        return self.requirement in self.breaks


def matching_clients(patterns: Sequence[str]) -> tuple[ClientBug, ...]:
    """The bugs of clients whose numbers match one of the patterns."""
    return tuple(bug for bug in CLIENT_BUGS.values() if any(fnmatchcase(bug.number, each) for each in patterns))


def row_of(bug: ClientBug, results: Sequence[HuntResult]) -> ClientRow:
    """The row of a bug by the results of its hunts."""
    by_strategy = {name: [one for one in results if one.task.strategy == name] for name in strategies_for(bug)}
    chosen = next((name for name, each in by_strategy.items() if any(one.is_found for one in each)), "")
    found = [one for one in by_strategy.get(chosen, ()) if one.is_found]
    about = (bug.number, bug.side.value, bug.sentence, bug.source, bug.breaks)
    if not found:
        return ClientRow(*about, "", 0, len(results))
    named = [one.requirement for one in found]
    requirement = max(dict.fromkeys(named), key=lambda id: (named.count(id), id in bug.breaks))
    shortest = min(found, key=lambda one: (one.requests, one.schedules))
    return ClientRow(
        *about,
        chosen,
        len(found),
        len(by_strategy[chosen]),
        requirement,
        round(median(one.seconds for one in found), 2),
        median(one.schedules for one in found),
        median(one.requests for one in found),
        shortest.found_with,
    )


def hunt_clients(
    bugs: Sequence[ClientBug],
    seeds: int,
    seconds: float,
    jobs: int,
    show: Callable[[Progress], None],
    by: Sequence[str] = STRATEGIES,
) -> tuple[tuple[ClientRow, ...], bool]:
    """Hunt each bug by so many seeds of its plainest strategy, and by the others where none finds it; members and
    fetchers by the strategies in `by` alone. Returns the rows, and whether Ctrl-C ended the hunts: then there are rows
    of the bugs found so far. Raises `WorkerEnded`."""
    results: dict[str, list[HuntResult]] = {bug.number: [] for bug in bugs}
    done: list[HuntTask] = []
    cut_short = True
    try:
        with WorkerPool(jobs, MAX_MEMORY_BYTES) as pool:
            for number in range(max(len(strategies_for(bug)) for bug in bugs)):
                left = [bug for bug in bugs if not any(one.is_found for one in results[bug.number])]
                tasks = [task for bug in left for task in tasks_of(bug, number, seeds, seconds)]
                tasks = [task for task in tasks if task.strategy in (GROUPS, *by)]
                for task, result in run_tasks(pool, jobs, hunt_client, tasks, lambda each: each.name):
                    done.append(task)
                    results[task.name].append(result)
                    found = sum(any(one.is_found for one in each) for each in results.values())
                    show(Progress(len(done), len(tasks), 0.0, found, task.name, "bugs found"))
        cut_short = False
    except KeyboardInterrupt:
        pass
    rows = (row_of(bug, results[bug.number]) for bug in bugs if results[bug.number])
    return tuple(row for row in rows if row.found_by or not cut_short), cut_short


def tasks_of(bug: ClientBug, number: int, seeds: int, seconds: float) -> list[HuntTask]:
    """The hunts of a bug by its strategy with this number."""
    strategies = strategies_for(bug)
    if number >= len(strategies):
        return []
    return [HuntTask(bug.number, strategies[number], seed, seconds) for seed in range(1, (1 if number else seeds) + 1)]


def supplement_rows(
    recorded: Sequence[ClientRow], rows: Sequence[ClientRow], by: Sequence[str]
) -> tuple[ClientRow, ...]:
    """The rows, with the recorded one where nothing was found and the strategy that has found it is not in `by`."""
    kept = {row.name: row for row in recorded if row.found_by and row.found_by not in (GROUPS, *by)}
    return tuple(row if row.found_by else kept.get(row.name, row) for row in rows)


def add_client_rows(text: str, rows: Sequence[ClientRow]) -> str:
    """The JSON of a table of coordinators, or `{}`, with the rows of clients under `clients`."""
    return json.dumps({**json.loads(text), "clients": [asdict(row) for row in rows]}, indent=1) + "\n"


def client_table_lines(rows: Sequence[ClientRow]) -> list[str]:
    """The table in plain text, with a summary."""
    figures = f"{'seeds':>6} {'seconds':>8} {'schedules':>10} {'requests':>9}"
    head = f"{'bug':8} {'side':9} {'found by':10} {figures}  requirement"
    return [head, *map(_line, rows), *summary_lines(rows)]


def _line(row: ClientRow) -> str:
    if not row.found_by:
        return f"{row.name:8} {row.side:9} not found  {row.sentence}"
    figures = f"{f'{row.found}/{row.of}':>6} {row.seconds:8.2f} {row.schedules:10.0f} {row.requests:9.0f}"
    return f"{row.name:8} {row.side:9} {row.found_by:10} {figures}  {row.requirement}"


def summary_lines(rows: Sequence[ClientRow]) -> list[str]:
    """How many bugs of each side were found."""
    found = [row for row in rows if row.found_by]
    sides = dict.fromkeys(row.side for row in rows)
    parts = [
        f"{sum(row.side == side for row in found)} of {sum(row.side == side for row in rows)} of {side}s"
        for side in sides
    ]
    named = sum(row.is_named for row in found)
    lines = [
        f"clients: {len(found)} of {len(rows)} found ({', '.join(parts)}), {named} by a requirement that forbids them"
    ]
    if len(rows) == len(CLIENT_BUGS):
        lines.append(f"{len(NOT_PUT_BACK)} more bugs of clients are known and not put back")
    return lines


def load_client_rows(file: Path | None = None) -> tuple[ClientRow, ...]:
    """The rows recorded in `file`, by default `CLIENT_RESULTS`; none if there is no file."""
    file = file or CLIENT_RESULTS
    if not file.exists():
        return ()
    data: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return tuple(
        ClientRow(**{**row, "breaks": tuple(row["breaks"]), "shortest": tuple(row["shortest"])}) for row in data
    )


def record_client_rows(rows: Sequence[ClientRow], file: Path | None = None) -> None:
    """Write the rows to `file`, by default `CLIENT_RESULTS`, with those recorded of other bugs, and their page."""
    file = file or CLIENT_RESULTS
    known = {row.name: row for row in (*load_client_rows(file), *rows)}
    merged = [known[name] for name in CLIENT_BUGS if name in known]
    lines = ",\n".join(json.dumps(asdict(row)) for row in merged)
    file.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    file.with_suffix(".md").write_text(render_client_page(merged), encoding="utf-8")


def render_client_page(rows: Sequence[ClientRow]) -> str:
    """The table as a page in Markdown, with the bugs that are not put back."""
    columns = ("bug", "side", "what it does", "forbidden by", "found by", "seeds", "s", "schedules", "violated")
    page = [
        "# The zoo of clients",
        "",
        "Bugs that clients, their assignors and their fetchers shipped, put back into the reference client, and what",
        "finds them, seen by `fencepost zoo`. The generator of schedules was written with the list at hand.",
        "",
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *map(_page_row, rows),
        "",
        *(f"{line}." for line in summary_lines(rows)),
        "",
        "Not put back:",
        "",
        *(f"- {number}: {reason}" for number, reason in NOT_PUT_BACK.items()),
    ]
    return "\n".join(page) + "\n"


def _page_row(row: ClientRow) -> str:
    by = row.found_by or "not found"
    figures = [f"{row.found}/{row.of}", f"{row.seconds:.1f}", f"{row.schedules:.0f}"] if row.found_by else ["", "", ""]
    cells = [row.name, row.side, row.sentence, ", ".join(row.breaks), by, *figures, row.requirement]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
