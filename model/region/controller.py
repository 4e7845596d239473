"""The controller of a consistent region: drain, checkpoint, reset, and the requests for resets."""

from dataclasses import dataclass
from enum import StrEnum

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.bean import NOBODY, Names, OperatorCheckpoint
from fencepost.model.region.dialect import RegionDialect
from fencepost.model.region.downstream import Downstream


class RegionMode(StrEnum):
    """What the region is doing."""

    RUN = "run"
    DRAIN = "drain"
    CHECKPOINT = "checkpoint"
    RESET = "reset"


@fast_frozen
@dataclass(frozen=True, slots=True)
class Region:
    """The controller's state. `todo` are the operators that have yet to drain, to checkpoint or to be reset."""

    mode: RegionMode = RegionMode.RUN
    todo: Names = NOBODY
    contributed: Names = NOBODY
    """Those that wait for the merge in the reset under way."""
    last: int = 0
    """The sequence id of the last complete checkpoint, 0 for the initial state."""
    is_requested: bool = False
    """A reset was requested and has yet to begin: at once, or after the one under way."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class CheckpointStore:
    """The last complete checkpoint with the downstream state in it, and what there is of the next one."""

    complete: tuple[OperatorCheckpoint, ...]
    snapshot: Downstream
    partial: tuple[OperatorCheckpoint, ...] = ()

    def of(self, name: str) -> OperatorCheckpoint | None:
        """What an operator wrote into the complete one."""
        return next((one for one in self.complete if one.name == name), None)


def start_drain(region: Region, job: Names) -> Region:
    """Drain every operator."""
    return evolve(region, mode=RegionMode.DRAIN, todo=job)


def finish_drain(region: Region, name: str, job: Names) -> Region:
    """An operator has drained; after the last one all write their checkpoints."""
    rest = region.todo - {name}
    return evolve(region, todo=rest) if rest else evolve(region, mode=RegionMode.CHECKPOINT, todo=job)


def finish_checkpoint(region: Region, name: str) -> Region:
    """An operator has written its checkpoint; with the last one it is complete (K2)."""
    rest = region.todo - {name}
    return evolve(region, todo=rest) if rest else evolve(region, mode=RegionMode.RUN, todo=NOBODY, last=region.last + 1)


def start_reset(region: Region, job: Names) -> Region:
    """Reset every operator to the last complete checkpoint (X0)."""
    return evolve(region, mode=RegionMode.RESET, todo=job, contributed=NOBODY, is_requested=False)


def request_reset(region: Region, dialect: RegionDialect) -> Region:
    """An operator's request: it is on its way to the controller, but in a reset queued or, as documented, forgotten
    (H07)."""
    is_forgotten = region.mode is RegionMode.RESET and not dialect.queues_requests
    return region if is_forgotten else evolve(region, is_requested=True)


def finish_reset(region: Region, name: str, job: Names) -> Region:
    """An operator has been reset; after the last one the region runs, or is reset once more (X5)."""
    rest = region.todo - {name}
    if rest:
        return evolve(region, todo=rest)
    if region.is_requested:
        return start_reset(region, job)
    return evolve(region, mode=RegionMode.RUN, todo=NOBODY, contributed=NOBODY)


def has_permit(region: Region, name: str) -> bool:
    """Whether an operator may submit: while the region runs, and in a drain until its own is done."""
    return region.mode is RegionMode.RUN or (region.mode is RegionMode.DRAIN and name in region.todo)
