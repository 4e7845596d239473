"""Errors that a user of the kit can cause and correct. The message of each is one line: place, problem, remedy."""

from fencepost.adapters.address import TargetError
from fencepost.conformance.profile import ProfileError
from fencepost.conformance.reports.json_report import ReportError
from fencepost.model.catalogue.requirement import UnknownRequirement
from fencepost.model.errors import FencepostError
from fencepost.traces.files.trace_files import TraceError

__all__ = ["FencepostError", "ProfileError", "ReportError", "TargetError", "TraceError", "UnknownRequirement"]
