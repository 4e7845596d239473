"""The world of one group id: all that a coordinator holds about it, and the result of an input."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fencepost.model.classic.core.state import Group
from fencepost.model.classic.messages import Request, Response, handle_of
from fencepost.model.frozen import fast_frozen
from fencepost.model.groups.messages import Offset, Partition
from fencepost.model.groups.protocol import NOTHING_DELETED, DeletedOffsets, PendingOffsets
from fencepost.model.logic import Time


@fast_frozen
@dataclass(frozen=True, slots=True)
class GroupState:
    """Everything a coordinator holds about one group id. Times in milliseconds."""

    group: Group | None = None
    subscribed: frozenset[str] | None = None
    """Topics of the last completed generation; None while unknown."""
    offsets: Mapping[Partition, Offset] = field(default_factory=dict)
    pending: PendingOffsets = field(default_factory=dict)
    ended_transactions: tuple[tuple[int, bool, int], ...] = ()
    """Transactions whose end was accepted but not yet applied: producer, committed, since when."""
    emptied_at: Time = 0
    """When the group last became Empty."""
    stored: Group | None = None
    """The group as its log has it (coordinator.md 5.1)."""
    epochs: Mapping[int, int] = field(default_factory=dict)
    """By producer id, the latest epoch by which the group knows the producer."""
    deleted: DeletedOffsets = NOTHING_DELETED
    """Offsets that were deleted in open transactions; the log of the older coordinator still has them (DIV-22)."""

    def __hash__(self) -> int:
        """The hash of what distinguishes most states; all of a state takes too long."""
        group = self.group
        if group is None:
            return 0
        slots = tuple((slot.id, slot.join, slot.sync, slot.deadline) for slot in group.slots)
        return hash((group.phase, group.generation, group.join_deadline, slots))


@fast_frozen
@dataclass(frozen=True, slots=True)
class Reply:
    """An answer for the request `handle`."""

    handle: int
    response: Response


@fast_frozen
@dataclass(frozen=True, slots=True)
class StepResult:
    """What came of one input: the world after it, the replies, the rule that applied."""

    state: GroupState
    replies: tuple[Reply, ...]
    rule: str


def respond(state: GroupState, request: Request, reply: Response, rule: str) -> StepResult:
    """An outcome that leaves the world as it is given and answers this request alone."""
    return StepResult(state, (Reply(handle_of(request), reply),), rule)
