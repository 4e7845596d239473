"""The options that write a report to files, of every command that makes one."""

import argparse
from pathlib import Path

_FORMS = {
    "--json": "as JSON",
    "--junit": "as JUnit XML",
    "--html": "as one HTML page",
    "--markdown": "as Markdown, for the summary of a job",
}


BADGE = "--badge"
"""The option of `fencepost test` that writes a badge: only whole runs have one that says something."""


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that write the report."""
    for option, form in _FORMS.items():
        parser.add_argument(option, metavar="F", type=Path, help=f"write the report {form} (-: to standard output)")


def report_paths(options: argparse.Namespace) -> dict[str, Path | None]:
    """The files for the report by their options; None for one that was not given."""
    return {option: getattr(options, option.removeprefix("--"), None) for option in (*_FORMS, BADGE)}
