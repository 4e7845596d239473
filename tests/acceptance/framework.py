"""Bars: what has been promised in figures, measured, and written down for people (Markdown) and programs (JSON).

Figures are written as soon as a bar is measured. Bars that are not measured this time keep the figures that they had.
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
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results"

Value = int | float | str


class MeasurementError(Exception):
    """A bar cannot be measured; the message is one clear line."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, what it should be, and whether it is. A figure without a bar is only told."""

    what: str
    value: Value
    bar: str
    kept: bool

    def __str__(self) -> str:
        told = f"{self.what}: {format_value(self.value)}"
        return f"{told} (bar: {self.bar})" if self.bar else told


@dataclass(frozen=True, slots=True)
class Check:
    """Some figures that are measured together, in a folder for the purpose."""

    name: str
    title: str
    measure: Callable[[Path], Iterator[Figure]]


def at_most(what: str, value: float, limit: float) -> Figure:
    """A figure that must not be higher."""
    return Figure(what, value, f"at most {format_value(limit)}", value <= limit)


def at_least(what: str, value: float, limit: float) -> Figure:
    """A figure that must not be lower."""
    return Figure(what, value, f"at least {format_value(limit)}", value >= limit)


def exactly(what: str, value: Value, wanted: Value) -> Figure:
    """A figure that must be just this."""
    return Figure(what, value, format_value(wanted), value == wanted)


def without_threshold(what: str, value: Value) -> Figure:
    """A figure that is only told."""
    return Figure(what, value, "", True)


def format_value(value: Value) -> str:
    """A value for people: thousands apart, no more digits than mean something."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else value


def main(title: str, checks: Sequence[Check], results: Path, arguments: Sequence[str] | None = None) -> int:
    """Measure the bars named (all without names) and write the results; 0 if those measured are kept, else 1."""
    parser = argparse.ArgumentParser(prog=results.name, description=title)
    names = [bar.name for bar in checks]
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"bars to measure: {', '.join(names)} (default: all)")
    chosen = parser.parse_args(arguments).names
    for name in chosen:
        if name not in names:
            parser.error(f"{name}: no such bar; there are {', '.join(names)}")
    # A shell that runs this in the background has it ignore Ctrl-C, and so would everything that it runs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kept = True
    for bar in checks:
        if not chosen or bar.name in chosen:
            entry = measure_check(bar)
            kept = kept and entry["kept"]
            write_results(title, names, results, bar, entry)
    return 0 if kept else 1


def measure_check(check: Check) -> dict[str, Any]:
    """Measure a bar, telling each figure as it comes."""
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
        "figures": [asdict(figure) for figure in figures],
        "seconds": seconds,
        "commit": git_revision(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
    }


def git_revision() -> str:
    """What was measured."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def write_results(title: str, names: Sequence[str], results: Path, check: Check, entry: Mapping[str, Any]) -> None:
    """Put the figures of a bar beside those of the others."""
    file = results.with_suffix(".json")
    known = json.loads(file.read_text())["bars"] if file.exists() else {}
    entries = {
        name: entry if name == check.name else known[name] for name in names if name == check.name or name in known
    }
    file.write_text(json.dumps({"title": title, "bars": entries}, indent=2) + "\n")
    results.with_suffix(".md").write_text(render_markdown(title, entries))


def render_markdown(title: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """The results as a page."""
    lines = [f"# {title}", "", "| bar | figure | measured | should be | |", "|---|---|---|---|---|"]
    for name, entry in entries.items():
        for each in entry["figures"]:
            figure = Figure(**each)
            standing = "" if figure.kept and not figure.bar else "OK" if figure.kept else "MISSED"
            lines.append(f"| {name} | {figure.what} | {format_value(figure.value)} | {figure.bar} | {standing} |")
    lines += ["", "| bar | what | result | took | commit | date | machine |", "|---|---|---|---|---|---|---|"]
    for name, entry in entries.items():
        result = "OK" if entry["kept"] else "MISSED"
        told = [name, entry["title"], result, f"{entry['seconds']} s", entry["commit"], entry["date"], entry["machine"]]
        lines.append(f"| {' | '.join(told)} |")
    return "\n".join(lines) + "\n"
