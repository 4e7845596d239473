"""What `fencepost pipeline judge` tells of a corpus besides the report: rebalances, lag, waits, what the queries found.

Workers fold the rows of some tables into an `Overview`. Overviews add up, and their size does not depend on the number
of rows.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, TypeAlias

from fencepost.traces.pipeline.judge_corpus import Finding
from fencepost.traces.pipeline.queries import EXAMINED, INVARIANTS

MAX_SHOWN = 5
"""How many rows of each kind are shown; the tables have all of them."""
MAX_HELD = 500
Row: TypeAlias = Mapping[str, Any]
OVERVIEW_KINDS = ("rebalance", "stuck", "lag", "longest-wait", "unowned", "owned-twice", EXAMINED, *INVARIANTS)
"""The kinds of findings and the queries that are looked at."""


@dataclass(slots=True)
class FirstRows:
    """The first rows of one kind, and how many there are in all."""

    count: int = 0
    held: list[tuple[tuple[Any, ...], Row]] = field(default_factory=list)
    """With their places in the order."""

    def add(self, place: tuple[Any, ...], row: Row) -> None:
        """Add a row; no two have the same place."""
        self.count += 1
        self.held.append((place, row))
        if len(self.held) > MAX_HELD:
            self.held = self.first()

    def add_rows(self, others: "FirstRows") -> None:
        """Add rows of the same kind."""
        self.count += others.count
        self.held += others.held
        self.held = self.first()

    def first(self) -> list[tuple[tuple[Any, ...], Row]]:
        """The first rows with their places, in order."""
        return nsmallest(MAX_SHOWN, self.held, key=lambda each: each[0])

    def list_rows(self) -> Sequence[Row]:
        """The first rows, in order."""
        return [row for _, row in self.first()]


def place_of(kind: str) -> Callable[[Row], int]:
    """The place of a row among those of its kind: long rebalances, large lags and long waits are first."""
    return {
        "rebalance": lambda row: -int(row["duration"]),
        "lag": lambda row: -int(row["lag"]),
        "longest-wait": lambda row: -int(row["polls"]),
        "unowned": lambda row: -int(row["longest"]),
        "owned-twice": lambda row: -int(row["both"]),
    }.get(kind, lambda row: 0)


@dataclass(slots=True)
class Overview:
    """What is told of some traces of a corpus."""

    durations: Counter[int] = field(default_factory=Counter)
    """How many rebalances took so many milliseconds."""
    unknown_lags: int = 0
    known_lags: int = 0
    followed: int = 0
    """The number of partitions whose owners are known."""
    examined: Counter[str] = field(default_factory=Counter)
    """The number of responses that each invariant looked at, and of assignments that name no partition as `unnamed`."""
    rows: dict[str, FirstRows] = field(default_factory=lambda: {kind: FirstRows() for kind in OVERVIEW_KINDS})
    """By kind: rebalances, stuck ones, lags above 0, waits, and violations of invariants."""

    def add(self, finding: Finding) -> None:
        """Add a row of one of `OVERVIEW_KINDS`."""
        row, kind = json.loads(finding.value), finding.kind
        if kind == EXAMINED:
            self.examined.update(row)
            return
        if kind == "rebalance":
            row["duration"] = row["ended"] - row["began"]
            self.durations[row["duration"]] += 1
        elif kind == "lag":
            self.known_lags += row["lag"] is not None
            self.unknown_lags += row["lag"] is None
            if not row["lag"]:
                return
        elif kind == "unowned":
            self.followed += 1
            if not row["unowned"]:
                return
        place = (place_of(kind)(row), finding.trace, row.get("sequence") or 0, finding.value)
        self.rows[kind].add(place, row)

    def add_overview(self, other: "Overview") -> None:
        """Add what is told of other traces."""
        self.durations.update(other.durations)
        self.unknown_lags += other.unknown_lags
        self.known_lags += other.known_lags
        self.followed += other.followed
        self.examined.update(other.examined)
        for kind, rows in other.rows.items():
            self.rows[kind].add_rows(rows)

    @property
    def is_violated(self) -> bool:
        """Whether a query found a violation."""
        return any(self.rows[name].count for name in INVARIANTS)
