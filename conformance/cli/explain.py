"""`fencepost explain`: ids of requirements in, what they ask for and how they are tested out."""

import argparse

from fencepost.conformance.cli.console import Console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost explain`."""
    parser.add_argument("patterns", metavar="ID", nargs="+", help="JOIN-29 or a pattern such as 'JOIN-*'")


def run(options: argparse.Namespace, console: Console) -> int:
    """Print sentence, source, needs, rules, scenarios and an example of each requirement."""
    from fencepost.conformance.clients.classic import DRIVEN_CLIENTS
    from fencepost.conformance.reports.layout import line_width
    from fencepost.conformance.reports.requirements import (
        explain_client_requirement,
        explain_read_requirement,
        explain_requirement,
    )
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.run.example import example_schedule
    from fencepost.conformance.specification import (
        CLIENT_SPECIFICATION,
        DEFAULT_SPECIFICATION,
        holes_that_break,
        select_from_all,
        specification_of,
    )

    chosen = select_from_all(options.patterns)
    with line_width(console.width()):
        for number, each in enumerate(chosen):
            if each.id in DEFAULT_SPECIFICATION.requirements:
                text = explain_requirement(each, example_schedule(each))
            elif (specification := specification_of(each)).subject != CLIENT_SPECIFICATION.subject:
                text = explain_read_requirement(each, specification, holes_that_break(each))
            else:
                scenarios = (one.name for one in DRIVEN_CLIENTS.scenarios if each.id in one.requirements)
                text = explain_client_requirement(each, DRIVEN_CLIENTS.specification, DRIVEN_CLIENTS.needs, scenarios)
            console.print(("\n" if number else "") + text)
    return ExitCode.CONFORMANT
