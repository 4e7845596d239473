"""`fencepost zoo`: patterns of known bugs and mutants in, a table of which were found, how fast and how short, out."""

import argparse
import os
from pathlib import Path

from fencepost.conformance.cli.argument_types import add_patterns, count
from fencepost.conformance.cli.console import Console
from fencepost.conformance.zoo.strategies import STRATEGIES


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
    """Hunt the bugs and mutants that the patterns match, print the table, and write and record it.

    Exit code 1 if a recorded result was not repeated, 2 if a worker ended, 3 if cut short.
    """
    from fencepost.conformance.cli.outputs import check_outputs
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.zoo import results
    from fencepost.conformance.zoo.hunt_plan import HuntPlan
    from fencepost.conformance.zoo.registry import UnknownFault

    check_outputs({"--json": options.json})
    patterns = tuple(options.only) or ("BUG-*",)
    methods = tuple(each for each in STRATEGIES if each in options.by)
    plan = HuntPlan(patterns, options.seeds, options.baseline_seeds, options.seconds, options.jobs, methods)
    try:
        with console.progress() as progress:
            table = plan.run(progress)
    except UnknownFault as error:
        return console.fail(str(error))
    if options.baseline_seeds and any(row.subject != "coordinator" for row in table.rows):
        console.print_line("There are no baselines for bugs of clients: --baseline-seeds is for coordinators")
    recorded = results.load_results(results.BUG_RESULTS), results.load_results(results.MUTANT_RESULTS)
    if methods != STRATEGIES:
        table = results.supplement_table(results.merge_tables(*recorded, (row.name for row in table.rows)), table)
    if table.rows or not table.cut_short:
        console.print_line("\n".join(results.table_lines(table)))
    if options.json is not None:
        options.json.write_text(results.to_json(table), encoding="utf-8")
    missing = [name for each in recorded for name in results.no_longer_found(each, table)]
    if missing:
        console.print_line(f"Recorded as found, and not found this time: {', '.join(missing)}")
    if options.record:
        results.record_results(table)
    if plan.ended:
        return console.fail(plan.ended)
    if table.cut_short:
        return console.interrupt(f"interrupted: {'the table has what' if table.rows else 'nothing'} was found before")
    return ExitCode.VIOLATION if missing else ExitCode.CONFORMANT
