"""`fencepost explain`: ids of requirements in, what they ask for and how they are tested out."""

import argparse

from fencepost.conformance.cli.console import Console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost explain`."""
    parser.add_argument("patterns", metavar="ID", nargs="+", help="JOIN-29 or a pattern such as 'JOIN-*'")


def run(options: argparse.Namespace, console: Console) -> int:
    """Print sentence, source, needs, rules and scenarios of each requirement."""
    from fencepost.conformance.reports.requirements import explain_requirement
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.scenario.selection import select_requirements

    chosen = select_requirements(options.patterns)
    console.print("\n".join(explain_requirement(each) for each in chosen))
    return ExitCode.CONFORMANT
