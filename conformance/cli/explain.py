"""`fencepost explain`: ids of requirements in, what they ask for and how they are tested out."""

import argparse

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.options import requirement_pattern


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost explain`."""
    parser.add_argument(
        "patterns", metavar="ID", nargs="+", type=requirement_pattern, help="JOIN-29 or a pattern such as 'JOIN-*'"
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Print sentence, source, needs, rules, scenarios and an example of each requirement."""
    from fencepost.conformance.clients.classic import DRIVEN_CLIENTS
    from fencepost.conformance.reports.requirements import describe_capabilities, explain_requirement
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.run.bundled import example_schedule
    from fencepost.conformance.run.registry import DEFAULT_PROTOCOL
    from fencepost.conformance.specification import (
        CLIENT_SPECIFICATION,
        DEFAULT_SPECIFICATION,
        holes_that_break,
        select_from_all,
        specification_of,
    )

    coordinator, width = describe_capabilities(), console.width()
    for number, each in enumerate(select_from_all(options.patterns)):
        specification = specification_of(each)
        if specification is DEFAULT_SPECIFICATION:
            names = [one.name for one in DEFAULT_PROTOCOL.scenarios if each.id in one.requirements]
            example = example_schedule(each)
            text = explain_requirement(each, specification, coordinator, names, example=example, width=width)
        elif specification is CLIENT_SPECIFICATION:
            names = [one.name for one in DRIVEN_CLIENTS.scenarios if each.id in one.requirements]
            text = explain_requirement(each, specification, DRIVEN_CLIENTS.needs, names, width=width)
        else:
            text = explain_requirement(each, specification, coordinator, (), holes_that_break(each), width=width)
        console.print(("\n" if number else "") + text)
    return ExitCode.CONFORMANT
