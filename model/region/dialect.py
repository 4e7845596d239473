"""The dialect of a consistent region: where the design page has a hole, as documented or repaired."""

from dataclasses import dataclass

from fencepost.model.frozen import evolve


@dataclass(frozen=True, slots=True)
class RegionDialect:
    """Every repair, true where it is made. The defaults are the repaired design; `DOCUMENTED` has none."""

    checkpoints_seek_map: bool = True
    """REGION-H01: a checkpoint has the seek map below the offsets of what is assigned."""
    fixes_names: bool = True
    """REGION-H02: the names of the group are those of the job's operators, and do not depend on who has registered."""
    takes_with_permit: bool = True
    """REGION-H03: the process thread gets its permit before it takes a message, not after."""
    vetoes_checkpoint: bool = True
    """REGION-H04: an operator that waits for a reset, is between callbacks or lacks an offset refuses a checkpoint."""
    checks_membership: bool = True
    """REGION-H05: an operator whose membership has ended refuses a checkpoint."""
    fails_on_commit: bool = True
    """REGION-H05: a failed commit restarts the operator. The page says so; releases of the toolkit only log it."""
    notifies_again: bool = True
    """REGION-H06: the bean notifies on each contribution to a merge that is complete."""
    queues_requests: bool = True
    """REGION-H07: a reset requested during another follows it. The page does not say; the runtime forgot it."""
    creates_first: bool = True
    """REGION-H08: an operator creates the control variable if there is none, and then seeks what it reads there."""
    assigns_eagerly: bool = True
    """REGION-H09: the group's assignors are eager, so that every assignment follows a revocation."""
    drops_late_messages: bool = True
    """REGION-H10: a message whose partition is assigned no longer is not submitted."""
    contributes_again: bool = True
    """REGION-H11: an operator that registers again during a reset repeats its contribution."""
    counts_forced_resets: bool = True
    """REGION-H12: only a complete checkpoint sets the count of attempts back."""
    outdates_seek_map: bool = True
    """REGION-H13: a map older than the last complete checkpoint is not sought from: its operator requests a reset."""
    starts_new_partitions_first: bool = True
    """REGION-H14: a partition that did not exist at subscription is read from its beginning."""
    checks_position: bool = True
    """REGION-H15: a position that differs from the offset sought fails the reset."""
    waits_for_region: bool = True
    """REGION-H16: the wait for a merge lasts as long as the region's reset may, and polling lasts longer than both."""
    names_group_exactly: bool = True
    """REGION-H17: the name of the bean contains the group id, and not a hash of it."""
    counts_present_operators: bool = True
    """REGION-H17: a merge waits for the operators of the present job, and not for those of the checkpoint's."""
    refuses_operator_driven: bool = True
    """REGION-H17: a group of several operators is refused in a region that they drive."""


REPAIRED = RegionDialect()
"""Every hole repaired."""
DOCUMENTED = RegionDialect(
    **{name: name == "fails_on_commit" for name in RegionDialect.__dataclass_fields__},
)
"""The page as it is written; where it says nothing, what loses more."""


def undo_repairs(*names: str) -> RegionDialect:
    """The repaired dialect with these repairs taken back."""
    return evolve(REPAIRED, **dict.fromkeys(names, False))
