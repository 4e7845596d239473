"""What the zoo's hunts came to, as a table: for each specimen what found it, how fast, and how short."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from fencepost.conformance.zoo.faulty import Specimen
from fencepost.conformance.zoo.hunt import Find
from fencepost.conformance.zoo.strategies import METHODS

BUGS, MUTANTS = (Path(__file__).parent / name for name in ("results.json", "mutants.json"))
"""The records that are shipped, of known bugs and of systematic mutants."""


@dataclass(frozen=True, slots=True)
class Hunts:
    """What came of all hunts of one specimen by one method. Medians are of those that found something."""

    found: int
    of: int
    median_seconds: float = 0.0
    median_schedules: float = 0.0
    median_requests: float = 0.0


@dataclass(frozen=True, slots=True)
class Row:
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
    hunts: Mapping[str, Hunts] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """The rows, and how the hunts were done. Of a table that was cut short, only what came to an end is there."""

    seeds: int
    baseline_seeds: int
    seconds: float
    rows: tuple[Row, ...]
    cut_short: bool = False


def row(specimen: Specimen, finds: Sequence[Find], reason: str = "") -> Row:
    """All hunts of a specimen in one row."""
    methods = dict.fromkeys(find.task.method for find in finds)
    by_method = {method: [find for find in finds if find.task.method == method] for method in methods}
    best = next((of for name in METHODS if (of := found(by_method.get(name, ())))), [])
    first = min(best, key=lambda find: find.schedules, default=None)
    shortest = min(best, key=lambda find: find.requests, default=None)
    named = Counter(find.requirement for find in best).most_common(1)
    return Row(
        specimen.name,
        specimen.sentence,
        specimen.source,
        specimen.breaks,
        "" if first is None else first.task.method,
        named[0][0] if named else "",
        first.task.seed if first is not None else 0,
        first.chunk if first is not None else 0,
        shortest.by if shortest is not None else (),
        {method: summed(each) for method, each in by_method.items()},
        "" if best else reason,
    )


def found(finds: Iterable[Find]) -> list[Find]:
    """Those that found something."""
    return [find for find in finds if find.found]


def summed(finds: Sequence[Find]) -> Hunts:
    """The hunts by one method."""
    good = found(finds)
    if not good:
        return Hunts(0, len(finds))
    return Hunts(
        len(good),
        len(finds),
        round(median(find.seconds for find in good), 2),
        median(find.schedules for find in good),
        median(find.requests for find in good),
    )


def to_json(table: Table) -> str:
    """The table for machines, a row a line."""
    head = json.dumps({"fencepost": 1, **asdict(replace(table, rows=()))})
    rows = ",\n".join(json.dumps(asdict(one)) for one in table.rows)
    return head.replace('"rows": []', f'"rows": [\n{rows}\n]') + "\n"


def from_json(text: str) -> Table:
    """The table that `to_json` wrote. Raises `ValueError`, `KeyError` or `TypeError` on anything else."""
    data: dict[str, Any] = json.loads(text)
    rows = tuple(
        Row(
            **{
                **one,
                "breaks": tuple(one["breaks"]),
                "shortest": tuple(one["shortest"]),
                "hunts": {method: Hunts(**hunts) for method, hunts in one["hunts"].items()},
            }
        )
        for one in data["rows"]
    )
    return Table(data["seeds"], data["baseline_seeds"], data["seconds"], rows, data["cut_short"])


def recorded(file: Path = BUGS) -> Table:
    """What a record says; nothing if there is none yet."""
    return from_json(file.read_text(encoding="utf-8")) if file.exists() else Table(0, 0, 0.0, ())


def merged(old: Table, new: Table, names: Iterable[str]) -> Table:
    """The new table, with the rows of the old one that it says nothing of; only what has one of these names, in their
    order."""
    rows = {one.name: one for one in (*old.rows, *new.rows)}
    return Table(new.seeds, new.baseline_seeds, new.seconds, tuple(rows[name] for name in names if name in rows))


def supplemented(old: Table, new: Table) -> Table:
    """The new table, hunted by some methods only, with what the old one says of the others."""
    known = {one.name: one for one in old.rows}
    return replace(new, rows=tuple(supplement(known[one.name], one) if one.name in known else one for one in new.rows))


def supplement(old: Row, new: Row) -> Row:
    """One row with what was known of it: a method that found it before is not overtaken by a less plain one."""
    order = (*METHODS, "")
    counts = old.found_by in new.hunts or order.index(new.found_by) <= order.index(old.found_by)
    return replace(new if counts else old, hunts={**old.hunts, **new.hunts})


def lost(then: Table, now: Table) -> list[str]:
    """What was found then and is not found now."""
    known = {one.name for one in then.rows if one.found_by}
    return [one.name for one in now.rows if one.name in known and not one.found_by]
