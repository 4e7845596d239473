"""`python -m tests.acceptance.cluster_table`: what a cluster executes, on paper, from the rates in the results.

The table is in docs/how-to/clusters.md. No cluster of that size was tried: the rates are those of two cores.
"""

import json
from collections.abc import Mapping

from tests.acceptance.driver_growth import MEMORY, SECONDS
from tests.acceptance.framework import RESULTS

MEASURED_CORES, CORES = 2, 100 * 16
VOLUMES = {"10^9 events": 10**9, "10^11 events": 10**11}
GROUP_EVENTS = 10**8
"""The events of a large group, which are judged one after the other."""


def read_figures(check: str) -> dict[str, float]:
    """The figures of a check by name."""
    bars = json.loads((RESULTS / "pipeline.json").read_text(encoding="utf-8"))["bars"]
    return {figure["what"]: figure["value"] for figure in bars[check]["figures"]}


def table_rows(figures: Mapping[str, float]) -> list[str]:
    """The rows of the table, from the figures of the check `volume`."""
    rates = {
        "ingest": figures["ingest: events a second"],
        "judge": figures["judge: events a second, in all"],
        "queries of the three invariants": figures["the three, the corpus read once: events a second"],
    }
    rows = [f"| | events a second and core | {' | '.join(VOLUMES)} |", "|---|---|---|---|"]
    for what, rate in rates.items():
        times = (format_seconds(events * MEASURED_CORES / rate / CORES) for events in VOLUMES.values())
        rows.append(f"| {what} | {rate / MEASURED_CORES:,.0f} | {' | '.join(times)} |")
    alone = figures["judge: events a second, one plain process"]
    group = format_seconds(GROUP_EVENTS / alone)
    return [*rows, f"| one group of 10^8 events, on one core | {alone:,.0f} | {group} | {group} |"]


def driver_rows(figures: Mapping[str, float]) -> list[str]:
    """What the driver of a judge takes for 10^6 traces, from the figures of the check `driver`."""
    rows = ["| 10^6 traces, each of | memory of the driver's Python | planning |", "|---|---|---|"]
    for events in (1_000, 100_000, 1_000_000):
        name = f"for 10^6 traces of {events} events, on this line"
        memory, seconds = figures[f"MiB {name}"], figures[f"seconds {name}"]
        rows.append(f"| {events:,} events | {memory / 1024:.1f} GiB | {format_seconds(seconds)} |")
    return rows


def growth_rows(figures: Mapping[str, float]) -> list[str]:
    """What drivers take for 10^6 small traces, from the figures of the check `driver-growth`."""
    rows = ["| 10^6 small traces | memory of the driver's Python | its processor time |", "|---|---|---|"]
    for stage in ("ingest", "judge"):
        memory, seconds = (figures[f"{stage}: {what} for 10^6 traces, on this line"] for what in (MEMORY, SECONDS))
        rows.append(f"| {stage} | {memory / 1024:.1f} GiB | {format_seconds(seconds)} |")
    return rows


def format_seconds(seconds: float) -> str:
    """A time with two or three digits that count."""
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:.1f} h"


if __name__ == "__main__":
    tables = (
        table_rows(read_figures("volume")),
        driver_rows(read_figures("driver")),
        growth_rows(read_figures("driver-growth")),
    )
    print("\n\n".join("\n".join(rows) for rows in tables))
