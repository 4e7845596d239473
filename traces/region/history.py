"""The history of a job in a region: its operators, checkpoints and resets.

A reset waits for the merge of what operators contribute, and then until each of them has sought.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from fencepost.traces.events import RESPONSE, Event, Operation
from fencepost.traces.history.builder import (
    EMPTY,
    NOT_SHOWN,
    STABLE,
    CauseKind,
    ChangeCause,
    HoldKind,
    PhaseHold,
    TimelineBuilder,
)
from fencepost.traces.history.recorder import MessageRecorder
from fencepost.traces.region.judge import JOB

DRAINING, WRITING = "Draining", "Writing"
FIRST_STATE = 0
"""The number of the state before any checkpoint."""


@dataclass(slots=True)
class RegionRecorder(MessageRecorder):
    """Records the history of a trace of a region. Times are those of responses: requests come one by one."""

    awaited: dict[str, None] = field(default_factory=dict)
    """Operators whose part in the present reset is not over."""
    merged_at: int | None = None
    """When the first operator sought in the present reset."""
    written: set[str] = field(default_factory=set)
    """Operators that have written the checkpoint that is being made."""
    checkpoint: int = FIRST_STATE
    """The last one that all wrote."""
    cause: ChangeCause = NOT_SHOWN
    """Why the next reset begins."""

    def tell(self, event: Event, operation: Operation | None) -> None:
        """As `MessageRecorder.tell`."""
        if event.kind is not RESPONSE or operation is None or "error" in event.body:
            return
        builder, name = self.builder_of(JOB), str(operation.body.get("operator", ""))
        if event.body.get("asks"):
            self.cause = ChangeCause(CauseKind.OTHER, (name,), detail=f"{name} asked for it")
        match operation.api:
            case "launch" if not event.body.get("refused"):
                builder.add_member(event.time, name)
                if builder.phase in ("", EMPTY) and builder.open is None:
                    builder.change_phase(event.time, STABLE)
                    builder.generation = self.checkpoint
            case "crash":
                self.on_gone(builder, name, event.time)
            case "drain" if event.body.get("fails"):
                self.on_gone(builder, name, event.time)
            case "drain" | "checkpoint" | "resume" if builder.open is None:
                self.on_checkpoint(builder, operation, event)
            case "reset":
                self.on_reset(builder, name, operation.body["number"], event)
            case "finish" if event.body.get("done"):
                self.on_sought(builder, name, operation.body["number"], event.time)

    def on_gone(self, builder: TimelineBuilder, name: str, time: int) -> None:
        """The process of an operator died."""
        self.cause = ChangeCause(CauseKind.CRASHED, (name,))
        builder.remove_member(time, name, self.cause)
        self.awaited.pop(name, None)
        if not builder.members and builder.open is None:
            builder.set_phase(time, EMPTY, self.checkpoint)

    def on_checkpoint(self, builder: TimelineBuilder, operation: Operation, event: Event) -> None:
        """An operator drains, writes its part, or goes on."""
        if operation.api == "drain":
            if builder.phase != DRAINING:
                self.written.clear()
            builder.set_phase(event.time, DRAINING, self.checkpoint)
        elif operation.api == "resume":
            builder.set_phase(event.time, STABLE, self.checkpoint)
        elif event.body.get("written") is not None:
            builder.set_phase(event.time, WRITING, self.checkpoint)
            self.written.add(str(operation.body["operator"]))
            if self.written >= builder.members.keys():
                self.checkpoint = operation.body["number"]

    def on_reset(self, builder: TimelineBuilder, name: str, number: int, event: Event) -> None:
        """An operator is reset; to the first state at once, to a checkpoint with the others."""
        if builder.open is None or name not in self.awaited:
            builder.begin_rebalance(event.time, self.cause)
            assert builder.open is not None
            builder.open.old_generation = None  # it leads back, not on
            self.awaited, self.merged_at, self.cause = dict.fromkeys(builder.members), None, NOT_SHOWN
        builder.mark_back(event.time, name)
        if event.body.get("done"):
            self.on_sought(builder, name, number, event.time)

    def on_sought(self, builder: TimelineBuilder, name: str, number: int, time: int) -> None:
        """The reset of an operator is over; with the last one, that of the region."""
        if builder.open is None or name not in self.awaited:
            return
        if self.merged_at is None:
            self.merged_at = time
            builder.end_join_phase(time, number)
        del self.awaited[name]
        if not self.awaited:
            self.checkpoint = number
            builder.end_rebalance(time, STABLE, PhaseHold(HoldKind.LAST_TO_JOIN, (name,), time - self.merged_at))

    def awaited_members(self, group: str) -> Iterable[str]:
        """As `MessageRecorder.awaited_members`."""
        return self.awaited
