"""The former place of the options that write a report."""

import argparse

from fencepost.conformance.cli.options import REPORT_FILES, report_paths

__all__ = ["add_report_options", "report_paths"]


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that write the report."""
    for option in REPORT_FILES:
        option.add_to(parser)
