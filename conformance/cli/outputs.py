"""The former place of what writes files."""

from fencepost.conformance.cli.files import ReportFiles, check_outputs

__all__ = ["ReportFiles", "check_outputs"]
