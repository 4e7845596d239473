"""How members in recordings are judged where no protocol is named."""

from fencepost.traces.client_judge.classic.ownership import Ownership, OwnershipHistory
from fencepost.traces.client_judge.classic.recorded import RecordedMembers, ShownViolation

__all__ = ["Ownership", "OwnershipHistory", "RecordedMembers", "ShownViolation"]
