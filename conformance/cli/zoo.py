"""`fencepost zoo`: patterns of known bugs and mutants in, a table of which were found, how fast and how short, out."""

import argparse
import json
import os
from pathlib import Path

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.options import LOUDNESS, Command, OneOf, Option, count
from fencepost.conformance.zoo.strategies import STRATEGIES

MOST_FREQUENT = 10
"""How many kinds of failures of the kit are told."""


def run_zoo(options: argparse.Namespace, console: Console) -> int:
    """Hunt the bugs and mutants that the patterns match, print the table, and write and record it.

    Exit code 1 if a recorded result was not repeated, 2 if a worker ended, 3 if cut short.
    """
    from fencepost.conformance.cli.files import check_outputs
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.zoo import results
    from fencepost.conformance.zoo.hunt_plan import HuntPlan

    check_outputs({"--json": options.json})
    patterns = tuple(options.only) or ("BUG-*",)
    methods = tuple(each for each in STRATEGIES if each in options.by)
    plan = HuntPlan(patterns, options.seeds, options.baseline_seeds, options.seconds, options.jobs, methods)
    with console.progress() as progress:
        table = plan.run(progress)
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


def run_strangers(options: argparse.Namespace, console: Console) -> int:
    """Test strangers of a seed, and print how often the kit was right.

    Exit code 1 if the kit did anything wrong but to miss a fault, 3 if cut short.
    """
    from fencepost.conformance.cli.files import check_outputs
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.zoo.fault import Side
    from fencepost.conformance.zoo.strangers import RECORDED, count_kit_mistakes, figures_of, measure, row_of
    from fencepost.conformance.zoo.strangers_run import Measurement

    check_outputs({"--json": options.json})
    numbers = tuple(options.only or ())
    side = Side.MEMBER if options.clients else Side.COORDINATOR
    many, schedules = options.clients or options.brokers, options.schedules
    measurement = Measurement(options.seed, many, schedules, options.workers, numbers, options.network, side)
    with console.progress() as progress:
        measurement.run(progress, options.shrink)
    for name, share in measure(measurement.judged).items():
        console.print_line(f"{name:48} {share}")
    failures = count_kit_mistakes(measurement.judged)
    for failure, strangers in failures.most_common(MOST_FREQUENT):
        console.print_line(f"  {strangers:4} x {failure}")
    for failure, stranger in measurement.smallest.items():
        only = f"; --only {' '.join(stranger.only)}" if stranger.only else ""
        console.print_line(f"  smallest stranger for {failure}: {stranger}{only}")
    if options.json is not None:
        rows = list(map(row_of, measurement.judged))
        document = {"figures": figures_of(measurement.judged), "strangers": rows}
        options.json.write_text(json.dumps(document, indent=1), encoding="utf-8")
    if options.record and not measurement.is_cut_short:
        drawn = {"seed": options.seed, "strangers": len(measurement.judged), "schedules": options.schedules}
        document = {**drawn, "figures": figures_of(measurement.judged)}
        RECORDED[side].write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if measurement.is_cut_short:
        return console.interrupt("interrupted: the table has what was measured before")
    return ExitCode.VIOLATION if failures else ExitCode.CONFORMANT


COMMANDS = {
    "zoo": Command(
        run_zoo,
        (
            Option(
                "--only",
                "PATTERN",
                "bugs such as BUG-35 or 'BUG-0*', or mutants such as 'rounds.*' (default: all bugs)",
                nargs="+",
                repeats=True,
            ),
            Option(
                "--by",
                help="search strategies to use, but for assignors (default: all); recorded results of the others are "
                "kept",
                default=list(STRATEGIES),
                nargs="+",
                choices=STRATEGIES,
                tells_default=False,
            ),
            Option("--seeds", "N", "hunts of each by schedules", count, 3),
            Option("--baseline-seeds", "N", "hunts of each coordinator by either baseline", int, 0),
            Option("--seconds", "S", "longest hunt in seconds", count, 60),
            Option("--jobs", "N", "hunts at a time", count, os.cpu_count() or 1, tells_default=False),
            Option("--json", "F", "write the table as JSON", Path),
            Option("--record", help="save the results as the new baseline"),
            LOUDNESS,
        ),
    ),
    "strangers": Command(
        run_strangers,
        (
            OneOf(
                (
                    Option("--brokers", "N", "strange coordinators to test", count, 100),
                    Option("--clients", "N", "test N strange clients", count),
                )
            ),
            Option("--seed", "S", "what they are drawn by", int, 0),
            Option("--only", "K", "the strangers with these numbers alone", int, nargs="+", repeats=True),
            Option("--schedules", "N", "random schedules of each run", int, 10),
            Option("--workers", "N", "runs at a time", count, os.cpu_count() or 1, tells_default=False),
            Option("--network", help="test coordinators over the network, on loopback"),
            Option("--shrink", "N", "shrink the strangers of the N most frequent failures of the kit", int, 0),
            Option("--json", "F", "write the figures and every stranger as JSON", Path),
            Option("--record", help="save the figures as those that README tells"),
            LOUDNESS,
        ),
    ),
}
