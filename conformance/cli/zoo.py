"""`fencepost zoo`: hunt everything that is asked for, and say what was found, how fast and how short."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace

from fencepost.conformance.reports.progress import ProgressDisplay
from fencepost.conformance.results import Exit
from fencepost.conformance.zoo.faulty import known, mutants
from fencepost.conformance.zoo.hunt_plan import Expedition
from fencepost.conformance.zoo.results import BUGS, MUTANTS, Table, lost, merged, recorded, supplemented, to_json
from fencepost.conformance.zoo.results_table import lines, markdown
from fencepost.conformance.zoo.strategies import METHODS


def run(options: argparse.Namespace, show: Callable[[str], None]) -> int:
    """Do what the command line asks; 1 if something that is recorded as found is not found any more, 3 if cut short."""
    patterns = tuple(options.only) or ("BUG-*",)
    methods = tuple(each for each in METHODS if each in options.by)
    expedition = Expedition(patterns, options.seeds, options.baseline_seeds, options.seconds, options.jobs, methods)
    display = ProgressDisplay(sys.stderr, live=sys.stderr.isatty())
    try:
        table = expedition.run(display)
    finally:
        display.close()
    if methods != METHODS:
        table = supplemented(merged(recorded(BUGS), recorded(MUTANTS), (row.name for row in table.rows)), table)
    show("\n".join(lines(table)) + "\n")
    if options.json is not None:
        options.json.write_text(to_json(table), encoding="utf-8")
    missing = [name for file in (BUGS, MUTANTS) for name in lost(recorded(file), table)]
    if missing:
        show(f"Recorded as found, and not found this time: {', '.join(missing)}\n")
    if options.record:
        record(table)
    if missing:
        return Exit.VIOLATION
    return Exit.INCONCLUSIVE if table.cut_short else Exit.CONFORMANT


def record(table: Table) -> None:
    """Put what was found into the records; the one of the bugs has a page for people beside it."""
    for file, specimens in ((BUGS, known()), (MUTANTS, mutants())):
        rows = tuple(row for row in table.rows if row.name in specimens)
        if rows:
            whole = merged(recorded(file), replace(table, rows=rows), specimens)
            file.write_text(to_json(whole), encoding="utf-8")
            if file is BUGS:
                file.with_suffix(".md").write_text(markdown(whole), encoding="utf-8")
