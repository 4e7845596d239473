"""`fencepost zoo`: hunt everything that is asked for, and say what was found, how fast and how short."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace

from fencepost.conformance.reports.progress import ProgressDisplay
from fencepost.conformance.results import ExitCode
from fencepost.conformance.zoo.faulty import known_bugs, mutants_by_name
from fencepost.conformance.zoo.hunt_plan import HuntPlan
from fencepost.conformance.zoo.results import (
    BUG_RESULTS,
    MUTANT_RESULTS,
    ResultTable,
    load_results,
    merge_tables,
    no_longer_found,
    supplement_table,
    to_json,
)
from fencepost.conformance.zoo.results_table import render_markdown, table_lines
from fencepost.conformance.zoo.strategies import STRATEGIES


def run(options: argparse.Namespace, show: Callable[[str], None]) -> int:
    """Do what the command line asks; 1 if something that is recorded as found is not found any more, 3 if cut short."""
    patterns = tuple(options.only) or ("BUG-*",)
    methods = tuple(each for each in STRATEGIES if each in options.by)
    expedition = HuntPlan(patterns, options.seeds, options.baseline_seeds, options.seconds, options.jobs, methods)
    display = ProgressDisplay(sys.stderr, live=sys.stderr.isatty())
    try:
        table = expedition.run(display)
    finally:
        display.close()
    if methods != STRATEGIES:
        table = supplement_table(
            merge_tables(load_results(BUG_RESULTS), load_results(MUTANT_RESULTS), (row.name for row in table.rows)),
            table,
        )
    show("\n".join(table_lines(table)) + "\n")
    if options.json is not None:
        options.json.write_text(to_json(table), encoding="utf-8")
    missing = [name for file in (BUG_RESULTS, MUTANT_RESULTS) for name in no_longer_found(load_results(file), table)]
    if missing:
        show(f"Recorded as found, and not found this time: {', '.join(missing)}\n")
    if options.record:
        save_results(table)
    if missing:
        return ExitCode.VIOLATION
    return ExitCode.INCONCLUSIVE if table.cut_short else ExitCode.CONFORMANT


def save_results(table: ResultTable) -> None:
    """Put what was found into the records; the one of the bugs has a page for people beside it."""
    for file, specimens in ((BUG_RESULTS, known_bugs()), (MUTANT_RESULTS, mutants_by_name())):
        rows = tuple(row for row in table.rows if row.name in specimens)
        if rows:
            whole = merge_tables(load_results(file), replace(table, rows=rows), specimens)
            file.write_text(to_json(whole), encoding="utf-8")
            if file is BUG_RESULTS:
                file.with_suffix(".md").write_text(render_markdown(whole), encoding="utf-8")
