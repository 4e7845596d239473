"""Results of hunts as a table: for each faulty coordinator the strategy that found it, how fast, and with how few
requests."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from fencepost.conformance.zoo.faulty import FaultyCoordinator
from fencepost.conformance.zoo.hunt import HuntResult
from fencepost.conformance.zoo.strategies import STRATEGIES

BUG_RESULTS, MUTANT_RESULTS = (Path(__file__).parent / name for name in ("results.json", "mutants.json"))
"""The shipped results, of known bugs and of systematic mutants."""


@dataclass(frozen=True, slots=True)
class HuntSummary:
    """The hunts of one faulty coordinator by one strategy. Medians are of those that found a violation."""

    found: int
    of: int
    median_seconds: float = 0.0
    median_schedules: float = 0.0
    median_requests: float = 0.0


@dataclass(frozen=True, slots=True)
class ResultRow:
    """The results of one faulty coordinator. `found_by` is the plainest strategy that found it, or "" with a `reason`;
    `requirement` is the one violated most often; `seed` is the one with the fewest schedules, and `chunk` the number of
    the batch."""

    name: str
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


def result_row(coordinator: FaultyCoordinator, results: Sequence[HuntResult], reason: str = "") -> ResultRow:
    """The row of a faulty coordinator by the results of all its hunts."""
    strategies = dict.fromkeys(result.task.strategy for result in results)
    by_strategy = {name: [result for result in results if result.task.strategy == name] for name in strategies}
    best = next((found for name in STRATEGIES if (found := successful(by_strategy.get(name, ())))), [])
    first = min(best, key=lambda result: result.schedules, default=None)
    shortest = min(best, key=lambda result: result.requests, default=None)
    named = Counter(result.requirement for result in best).most_common(1)
    return ResultRow(
        coordinator.name,
        coordinator.sentence,
        coordinator.source,
        coordinator.breaks,
        "" if first is None else first.task.strategy,
        named[0][0] if named else "",
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
    order = (*STRATEGIES, "")
    counts = old.found_by in new.hunts or order.index(new.found_by) <= order.index(old.found_by)
    return replace(new if counts else old, hunts={**old.hunts, **new.hunts})


def no_longer_found(old: ResultTable, new: ResultTable) -> list[str]:
    """The names that are found in the old table and not in the new one."""
    known = {one.name for one in old.rows if one.found_by}
    return [one.name for one in new.rows if one.name in known and not one.found_by]
