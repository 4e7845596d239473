"""`fencepost zoo`: hunt everything that is asked for, and say what was found, how fast and how short."""

import argparse
import sys
from collections.abc import Callable

from fencepost.conformance.progress import ProgressDisplay
from fencepost.conformance.results import Exit
from fencepost.conformance.zoo.expedition import Expedition
from fencepost.conformance.zoo.record import FILE, Table, lost, merged, recorded, to_json
from fencepost.conformance.zoo.table import lines, markdown


def run(options: argparse.Namespace, show: Callable[[str], None]) -> int:
    """Do what the command line asks; 1 if something that is recorded as found is not found any more, 3 if cut short."""
    patterns = tuple(options.only) or ("BUG-*",)
    expedition = Expedition(patterns, options.seeds, options.baseline_seeds, options.seconds, options.jobs)
    display = ProgressDisplay(sys.stderr, live=sys.stderr.isatty())
    try:
        table = expedition.run(display)
    finally:
        display.close()
    show("\n".join(lines(table)) + "\n")
    if options.json is not None:
        options.json.write_text(to_json(table), encoding="utf-8")
    missing = lost(recorded(), table)
    if missing:
        show(f"Recorded as found, and not found this time: {', '.join(missing)}\n")
    if options.record:
        write(merged(recorded(), table))
    if missing:
        return Exit.VIOLATION
    return Exit.INCONCLUSIVE if table.cut_short else Exit.CONFORMANT


def write(table: Table) -> None:
    """Make this the record."""
    FILE.write_text(to_json(table), encoding="utf-8")
    FILE.with_suffix(".md").write_text(markdown(table), encoding="utf-8")
