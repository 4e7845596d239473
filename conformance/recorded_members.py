"""How members in recordings are judged where no protocol is named."""

from fencepost.traces.classic.client.client import RecordedMembers, ShownViolation
from fencepost.traces.classic.client.plans import Ownership, OwnershipHistory

__all__ = ["Ownership", "OwnershipHistory", "RecordedMembers", "ShownViolation"]
