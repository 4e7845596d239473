"""How members in recordings are judged where no protocol is named."""

from fencepost.traces.client_judge.classic.client import RecordedMembers, ShownViolation
from fencepost.traces.client_judge.classic.plans import Ownership, OwnershipHistory

__all__ = ["Ownership", "OwnershipHistory", "RecordedMembers", "ShownViolation"]
