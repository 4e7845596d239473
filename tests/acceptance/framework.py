"""Thresholds: promised figures, measured and written for people (Markdown) and programs (JSON).

The figures of a check are written as soon as it is measured. Checks that are not measured this time keep theirs.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results"

Value = int | float | str


class MeasurementError(Exception):
    """A check cannot be measured; the message is one clear line."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, its threshold, and whether it keeps it. Without a threshold the figure is for information."""

    what: str
    value: Value
    threshold: str
    kept: bool

    def __str__(self) -> str:
        line = f"{self.what}: {format_value(self.value)}"
        return f"{line} (threshold: {self.threshold})" if self.threshold else line

    def to_json(self) -> dict[str, Value]:
        """The figure as results files have it."""
        return {"what": self.what, "value": self.value, "bar": self.threshold, "kept": self.kept}

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> "Figure":
        """The figure of an entry that `to_json` made."""
        return Figure(entry["what"], entry["value"], entry["bar"], entry["kept"])


@dataclass(frozen=True, slots=True)
class Check:
    """Figures that are measured together, in a temporary folder."""

    name: str
    title: str
    measure: Callable[[Path], Iterator[Figure]]


def at_most(what: str, value: float, limit: float) -> Figure:
    """A figure that must not be above `limit`."""
    return Figure(what, value, f"at most {format_value(limit)}", value <= limit)


def at_least(what: str, value: float, limit: float) -> Figure:
    """A figure that must not be below `limit`."""
    return Figure(what, value, f"at least {format_value(limit)}", value >= limit)


def exactly(what: str, value: Value, wanted: Value) -> Figure:
    """A figure that must equal `wanted`."""
    return Figure(what, value, format_value(wanted), value == wanted)


def without_threshold(what: str, value: Value) -> Figure:
    """A figure for information."""
    return Figure(what, value, "", True)


def format_value(value: Value) -> str:
    """A value for people: thousands separated, two decimals at most."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else value


def main(title: str, checks: Sequence[Check], results: Path, arguments: Sequence[str] | None = None) -> int:
    """Measure the checks named, or all; write the results. Return 0 if every threshold measured holds, else 1."""
    parser = argparse.ArgumentParser(prog=results.name, description=title)
    names = [check.name for check in checks]
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help=f"checks to measure: {', '.join(names)} (default: all)"
    )
    chosen = parser.parse_args(arguments).names
    for name in chosen:
        if name not in names:
            parser.error(f"{name}: no such check; there are {', '.join(names)}")
    # A shell that runs this in the background has it ignore Ctrl-C, and so would everything that it runs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kept = True
    for check in checks:
        if not chosen or check.name in chosen:
            entry = measure_check(check)
            kept = kept and entry["kept"]
            write_results(title, names, results, check, entry)
    return 0 if kept else 1


def measure_check(check: Check) -> dict[str, Any]:
    """Measure a check and print each figure as it comes; return its entry in the results."""
    print(f"{check.name}: {check.title}", flush=True)
    figures: list[Figure] = []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            for figure in check.measure(Path(folder)):
                figures.append(figure)
                print(f"    {'OK    ' if figure.kept else 'MISSED'} {figure}", flush=True)
        except MeasurementError as reason:
            figures.append(Figure("could not be measured", str(reason), "", False))
            print(f"    MISSED {figures[-1]}", flush=True)
    seconds = round(time.monotonic() - begun, 1)
    kept = all(figure.kept for figure in figures)
    print(f"{'OK' if kept else 'MISSED'}: {check.name}, {seconds} s\n", flush=True)
    return {
        "title": check.title,
        "kept": kept,
        "figures": [figure.to_json() for figure in figures],
        "seconds": seconds,
        "commit": git_revision(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
    }


def git_revision() -> str:
    """The commit that is measured, marked where the tree differs from it."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def write_results(title: str, names: Sequence[str], results: Path, check: Check, entry: Mapping[str, Any]) -> None:
    """Write the entry of `check` into the results, beside those of the other checks."""
    file = results.with_suffix(".json")
    known = json.loads(file.read_text())["bars"] if file.exists() else {}
    entries = {
        name: entry if name == check.name else known[name] for name in names if name == check.name or name in known
    }
    file.write_text(json.dumps({"title": title, "bars": entries}, indent=2) + "\n")
    results.with_suffix(".md").write_text(render_markdown(title, entries))


def render_markdown(title: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """The results as a Markdown page."""
    lines = [f"# {title}", "", "| check | figure | measured | threshold | |", "|---|---|---|---|---|"]
    for name, entry in entries.items():
        for each in entry["figures"]:
            figure = Figure.from_json(each)
            standing = "" if figure.kept and not figure.threshold else "OK" if figure.kept else "MISSED"
            lines.append(f"| {name} | {figure.what} | {format_value(figure.value)} | {figure.threshold} | {standing} |")
    lines += ["", "| check | what | result | took | commit | date | machine |", "|---|---|---|---|---|---|---|"]
    for name, entry in entries.items():
        result = "OK" if entry["kept"] else "MISSED"
        cells = [
            name,
            entry["title"],
            result,
            f"{entry['seconds']} s",
            entry["commit"],
            entry["date"],
            entry["machine"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
