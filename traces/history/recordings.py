"""What recordings of groups show beside the verdict: their states, who has which partitions, what members do.

Each is followed by a part of the protocol; here is what its parts are, and what they tell.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.protocols import default_protocol, load_part
from fencepost.traces.events import Event, Header, Operation
from fencepost.traces.judge.groups.group_judge import GroupJudge
from fencepost.traces.verdict import CheckStatus, Violation

# --- The states that groups are seen in while a trace is judged.


class StateChange(NamedTuple):
    """A change of a group's phase or generation: time in milliseconds, the new state, and its cause `by`."""

    time: int
    sequence: int
    group: str
    phase: str
    generation: int
    members: int
    by: str


class StateFollower(Protocol):
    """Follows the states of all groups, as far as all explanations agree."""

    state_changes: list[StateChange]

    def record_state(self, judge: GroupJudge, operation: Operation, time: int) -> None:
        """Record the state of a group after an operation."""


# --- Who has which partitions of a topic, and when.


class OwnershipEnd(StrEnum):
    """What ended the time in which a member has partitions."""

    JOINED = "joined"
    """It joined again, and gave everything up before."""
    REASSIGNED = "reassigned"
    LEFT = "left"
    OVER = "over"
    """It was told that its membership is over."""
    REPLACED = "replaced"
    """Another client joined as the same static member."""
    EXPELLED = "expelled"
    """A generation began without it: until then it was not heard for a while."""
    GAP = "gap"
    """Messages are missing in the trace."""
    TRACE = "trace"
    """The trace ends."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """A member had partitions (`topic/number`) from one time to another, in milliseconds since the trace began."""

    group: str
    member_id: str
    generation: int
    partitions: tuple[str, ...]
    since: int
    until: int
    end: OwnershipEnd
    sequence: int
    """Of the SyncGroup response that brought them."""


class OwnerFollower(Protocol):
    """Follows who has what in the groups of a trace; each period is yielded when it is over."""

    def on_event(self, event: Event, operation: Operation | None) -> Iterator[Ownership]:
        """Take the next event."""
        ...

    def finish(self) -> Iterator[Ownership]:
        """The periods that last until the end of the trace."""
        ...


# --- What members do wrong.

ShownViolation: TypeAlias = tuple[Violation, tuple[Event, ...]]
"""A violation, and the member's events until then."""


class MemberFollower(Protocol):
    """Judges the members in a recording, of all groups or of those that are chosen."""

    checks: Counter[tuple[str, CheckStatus]]
    """How often a requirement was kept, by its id, and how."""
    notes: dict[str, str]
    """The first remark on a requirement."""

    def on_event(self, event: Event, operation: Operation | None) -> Iterator[ShownViolation]:
        """Take the next event of the recording, and yield what it shows to be wrong."""
        ...


@dataclass(frozen=True, slots=True)
class RecordingParts:
    """What follows states, owners and members. Of owners and members those of chosen groups, or of all."""

    states: Callable[[], StateFollower]
    owners: Callable[[Callable[[str], bool] | None], OwnerFollower]
    members: Callable[[Header, Callable[[str], bool] | None], MemberFollower]
    requirements: Mapping[str, Requirement]
    """Those that members are held against."""


def recording_parts() -> RecordingParts:
    """What the protocol has for it that is meant where none is named."""
    parts: RecordingParts = load_part(default_protocol().recordings)
    return parts
