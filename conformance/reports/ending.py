"""How a run ended early, in words."""

from fencepost.conformance.reports.progress import format_duration
from fencepost.conformance.results import Ending, EndKind


def describe_ending(ended: Ending) -> str:
    """When a run ended early, during what, and why; without a full stop."""
    if ended.kind is EndKind.NOT_STARTED:
        return f"the run did not start: {ended.reason}"
    if ended.kind in (EndKind.UNREADABLE, EndKind.QUARANTINED):
        return ended.reason
    during = f", during {ended.during}" if ended.during else ""
    heard = f"; its last response came after {format_duration(ended.last_sign)}" if ended.last_sign is not None else ""
    return f"the run ended after {format_duration(ended.seconds)}{during}: {ended.reason}{heard}"
