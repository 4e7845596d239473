"""`fencepost zoo`: patterns of known bugs and mutants in, a table of which were found, how fast and how short, out."""

import argparse
import fnmatch
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.argument_types import add_patterns, count
from fencepost.conformance.cli.console import Console
from fencepost.conformance.zoo.strategies import STRATEGIES

if TYPE_CHECKING:
    from fencepost.conformance.zoo.classic.clients.bug import ClientBug
    from fencepost.conformance.zoo.results import ResultTable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost zoo`."""
    add_patterns(parser, "--only", "bugs such as BUG-35 or 'BUG-0*', or mutants such as 'rounds.*' (default: all bugs)")
    parser.add_argument(
        "--by",
        choices=STRATEGIES,
        nargs="+",
        default=list(STRATEGIES),
        help="search strategies to use, but for assignors (default: all); recorded results of the others are kept",
    )
    parser.add_argument("--seeds", metavar="N", type=count, default=3, help="hunts of each by schedules (default: 3)")
    parser.add_argument(
        "--baseline-seeds",
        metavar="N",
        type=int,
        default=0,
        help="hunts of each coordinator by either baseline (default: 0)",
    )
    parser.add_argument("--seconds", metavar="S", type=count, default=60, help="longest hunt in seconds (default: 60)")
    parser.add_argument("--jobs", metavar="N", type=count, default=os.cpu_count() or 1, help="hunts at a time")
    parser.add_argument("--json", metavar="F", type=Path, help="write the table as JSON")
    parser.add_argument("--record", action="store_true", help="save the results as the new baseline")


def run(options: argparse.Namespace, console: Console) -> int:
    """Hunt the bugs and mutants that the patterns match, print the table, and write and record it."""
    from fencepost.conformance.execution.workers import WorkerEnded
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.zoo.client_table import matching_clients
    from fencepost.conformance.zoo.faulty import UnknownFaultyCoordinator, known_bugs

    patterns = tuple(options.only) or ("BUG-*",)
    bugs = matching_clients(patterns)
    try:
        # A pattern that matches bugs of clients alone is none of the coordinator's.
        options.only = [each for each in patterns if fnmatch.filter(known_bugs(), each) or not matching_clients([each])]
        code = hunt(options, console) if options.only else 0
        if not bugs or code == ExitCode.INCONCLUSIVE:  # an interrupted hunt is the last one
            return code
        return hunt_bugs_of_clients(bugs, options, console, code)
    except (UnknownFaultyCoordinator, WorkerEnded) as error:
        return console.fail(str(error))


def hunt_bugs_of_clients(
    bugs: "tuple[ClientBug, ...]", options: argparse.Namespace, console: Console, code: int
) -> int:
    """Hunt the bugs of clients, print their table and record it; the exit code after that of the coordinator's bugs."""
    from fencepost.conformance.cli.outputs import check_outputs
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.zoo.client_table import (
        add_client_rows,
        client_table_lines,
        hunt_clients,
        load_client_rows,
        record_client_rows,
        supplement_rows,
    )

    check_outputs({"--json": options.json})
    if options.baseline_seeds:
        console.print_line("There are no baselines for bugs of clients: --baseline-seeds is for coordinators")
    with console.progress() as progress:
        rows, cut_short = hunt_clients(bugs, options.seeds, options.seconds, options.jobs, progress, tuple(options.by))
    recorded = load_client_rows()
    rows = supplement_rows(recorded, rows, options.by)
    if rows or not cut_short:
        console.print_line("\n".join(client_table_lines(rows)))
    if options.json is not None:
        before = options.json.read_text(encoding="utf-8") if options.only else "{}"
        options.json.write_text(add_client_rows(before, rows), encoding="utf-8")
    known = {row.name for row in recorded if row.found_by}
    missing = [row.name for row in rows if row.name in known and not row.found_by]
    if missing:
        console.print_line(f"Recorded as found, and not found this time: {', '.join(missing)}")
    if options.record:
        record_client_rows(rows)
    if cut_short:
        return interrupt_hunt(console, bool(rows))
    return code or (ExitCode.VIOLATION if missing else ExitCode.CONFORMANT)


def hunt(options: argparse.Namespace, console: Console) -> int:
    """Do the work of `run`: exit code 1 if a recorded result was not repeated, 2 if a worker ended, 3 if cut short.
    Raises `UnknownFaultyCoordinator`."""
    from fencepost.conformance.cli.outputs import check_outputs
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.zoo.hunt_plan import HuntPlan
    from fencepost.conformance.zoo.results import (
        BUG_RESULTS,
        MUTANT_RESULTS,
        load_results,
        merge_tables,
        no_longer_found,
        supplement_table,
        to_json,
    )
    from fencepost.conformance.zoo.results_table import table_lines

    check_outputs({"--json": options.json})
    patterns = tuple(options.only) or ("BUG-*",)
    methods = tuple(each for each in STRATEGIES if each in options.by)
    plan = HuntPlan(patterns, options.seeds, options.baseline_seeds, options.seconds, options.jobs, methods)
    with console.progress() as progress:
        table = plan.run(progress)
    if methods != STRATEGIES:
        recorded = merge_tables(
            load_results(BUG_RESULTS), load_results(MUTANT_RESULTS), (row.name for row in table.rows)
        )
        table = supplement_table(recorded, table)
    if table.rows or not table.cut_short:
        console.print_line("\n".join(table_lines(table)))
    if options.json is not None:
        options.json.write_text(to_json(table), encoding="utf-8")
    missing = [name for file in (BUG_RESULTS, MUTANT_RESULTS) for name in no_longer_found(load_results(file), table)]
    if missing:
        console.print_line(f"Recorded as found, and not found this time: {', '.join(missing)}")
    if options.record:
        save_results(table)
    if plan.ended:
        return console.fail(plan.ended)
    if table.cut_short:
        return interrupt_hunt(console, bool(table.rows))
    return ExitCode.VIOLATION if missing else ExitCode.CONFORMANT


def interrupt_hunt(console: Console, has_found: bool) -> int:
    """Say that Ctrl-C ended a hunt; returns the exit code."""
    return console.interrupt(f"interrupted: {'the table has what' if has_found else 'nothing'} was found before")


def save_results(table: "ResultTable") -> None:
    """Merge the rows of `table` into the recorded results of bugs and mutants, and write the Markdown of the bugs."""
    from fencepost.conformance.zoo.faulty import known_bugs, mutants_by_name
    from fencepost.conformance.zoo.results import BUG_RESULTS, MUTANT_RESULTS, load_results, merge_tables, to_json
    from fencepost.conformance.zoo.results_table import render_markdown

    for file, names in ((BUG_RESULTS, known_bugs()), (MUTANT_RESULTS, mutants_by_name())):
        rows = tuple(row for row in table.rows if row.name in names)
        if rows:
            whole = merge_tables(load_results(file), replace(table, rows=rows), names)
            file.write_text(to_json(whole), encoding="utf-8")
            if file is BUG_RESULTS:
                file.with_suffix(".md").write_text(render_markdown(whole), encoding="utf-8")
