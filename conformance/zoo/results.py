"""What the zoo's hunts came to, as a table: for each specimen what found it, how fast, and how short."""

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
"""The records that are shipped, of known bugs and of systematic mutants."""


@dataclass(frozen=True, slots=True)
class HuntSummary:
    """What came of all hunts of one specimen by one method. Medians are of those that found something."""

    found: int
    of: int
    median_seconds: float = 0.0
    median_schedules: float = 0.0
    median_requests: float = 0.0


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A specimen. `found_by` is a method, with what it was where no schedule found it, or "" with a `reason`;
    `requirement` is the one that was named most often; `seed` is the one that finds it after the fewest schedules, and
    `chunk` says where among them."""

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
    """The rows, and how the hunts were done. Of a table that was cut short, only what came to an end is there."""

    seeds: int
    baseline_seeds: int
    seconds: float
    rows: tuple[ResultRow, ...]
    cut_short: bool = False


def result_row(coordinator: FaultyCoordinator, results: Sequence[HuntResult], reason: str = "") -> ResultRow:
    """All hunts of a specimen in one row."""
    methods = dict.fromkeys(find.task.strategy for find in results)
    by_method = {method: [find for find in results if find.task.strategy == method] for method in methods}
    best = next((of for name in STRATEGIES if (of := successful(by_method.get(name, ())))), [])
    first = min(best, key=lambda find: find.schedules, default=None)
    shortest = min(best, key=lambda find: find.requests, default=None)
    named = Counter(find.requirement for find in best).most_common(1)
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
        {method: summarize_hunts(each) for method, each in by_method.items()},
        "" if best else reason,
    )


def successful(results: Iterable[HuntResult]) -> list[HuntResult]:
    """Those that found something."""
    return [find for find in results if find.is_found]


def summarize_hunts(results: Sequence[HuntResult]) -> HuntSummary:
    """The hunts by one method."""
    good = successful(results)
    if not good:
        return HuntSummary(0, len(results))
    return HuntSummary(
        len(good),
        len(results),
        round(median(find.seconds for find in good), 2),
        median(find.schedules for find in good),
        median(find.requests for find in good),
    )


def to_json(table: ResultTable) -> str:
    """The table for machines, a row a line."""
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
    """What a record says; nothing if there is none yet."""
    return from_json(file.read_text(encoding="utf-8")) if file.exists() else ResultTable(0, 0, 0.0, ())


def merge_tables(old: ResultTable, new: ResultTable, names: Iterable[str]) -> ResultTable:
    """The new table, with the rows of the old one that it says nothing of; only what has one of these names, in their
    order."""
    rows = {one.name: one for one in (*old.rows, *new.rows)}
    return ResultTable(new.seeds, new.baseline_seeds, new.seconds, tuple(rows[name] for name in names if name in rows))


def supplement_table(old: ResultTable, new: ResultTable) -> ResultTable:
    """The new table, hunted by some methods only, with what the old one says of the others."""
    known = {one.name: one for one in old.rows}
    return replace(
        new, rows=tuple(supplement_row(known[one.name], one) if one.name in known else one for one in new.rows)
    )


def supplement_row(old: ResultRow, new: ResultRow) -> ResultRow:
    """One row with what was known of it: a method that found it before is not overtaken by a less plain one."""
    order = (*STRATEGIES, "")
    counts = old.found_by in new.hunts or order.index(new.found_by) <= order.index(old.found_by)
    return replace(new if counts else old, hunts={**old.hunts, **new.hunts})


def no_longer_found(then: ResultTable, now: ResultTable) -> list[str]:
    """What was found then and is not found now."""
    known = {one.name for one in then.rows if one.found_by}
    return [one.name for one in now.rows if one.name in known and not one.found_by]
