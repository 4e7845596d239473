"""`fencepost list`: patterns in, a line for each requirement out."""

import argparse
import json

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.options import requirement_pattern

SUBJECTS = {"coordinator": "", "client": "  of clients"}
"""What is said of a family by the subject of its requirements, if it is not its name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost list`."""
    parser.add_argument(
        "patterns", metavar="PATTERN", nargs="*", type=requirement_pattern, help="JOIN-29 or 'JOIN-*' (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="as JSON, to standard output")


def run(options: argparse.Namespace, console: Console) -> int:
    """List the requirements by family: id, level, tier, what they need, and title."""
    from itertools import groupby

    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.specification import select_from_all, specification_of

    chosen = select_from_all(options.patterns)
    if options.json:
        rows = [
            {
                "id": each.id,
                "subject": specification_of(each).subject,
                "family": each.family,
                "level": str(each.level),
                "tier": str(each.tier),
                "testability": str(each.testability),
                "needs": list(each.needs),
                "title": each.title,
                "sentence": each.sentence,
                "source": each.source,
            }
            for each in chosen
        ]
        console.print_line(json.dumps(rows, indent=2))
        return ExitCode.CONFORMANT
    for (subject, family), members in groupby(chosen, key=lambda each: (specification_of(each).subject, each.family)):
        requirements = list(members)
        console.print_line(f"{family}  {len(requirements)}{SUBJECTS.get(subject, f'  of the {subject}')}")
        for each in requirements:
            needs = f"  [needs {', '.join(each.needs)}]" if each.needs else ""
            console.print_line(f"  {each.id:<12}{each.level:<8}{each.tier:<14}{each.title}{needs}")
    return ExitCode.CONFORMANT
