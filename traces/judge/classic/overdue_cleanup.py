"""Groups that a clean-up pass has to have removed by now: Empty, without offsets and transactions (ADMIN-35)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Phase
from fencepost.model.frozen import evolve
from fencepost.model.settings import Settings
from fencepost.traces.events import Header, Operation
from fencepost.traces.judge.classic.stepping import CoordinatorStepper
from fencepost.traces.judge.classic.unseen import unseen_of
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Mismatch
from fencepost.traces.judge.search.time_interval import Instant, high, low

MAX_CLEANUP_PASSES = 3
"""By how many clean-up intervals a group that may go is gone."""
MAX_PASS_DELAY_MS = 5_000
"""How late a pass may be where time is not virtual, beyond the grace of the trace."""
READING_APIS = frozenset({"DescribeGroups", "ListGroups", "Heartbeat", "OffsetFetch"})
"""Requests that do not keep a group."""


@dataclass(slots=True)
class CleanupWatch:
    """Until when each group of a trace was in use, in milliseconds."""

    header: Header
    last_use: dict[str, float] = field(default_factory=dict)
    restarted_at: float = -inf

    def observe(self, group: str, operation: Operation) -> None:
        """Take in a request that keeps a group; one without a response may be handled at any time."""
        until = inf if operation.responded_at is None else operation.responded_at
        self.last_use[group] = max(self.last_use.get(group, -inf), until)

    def is_overdue(self, configuration: Configuration, group: str, settings: Settings, now: Instant) -> bool:
        """Whether the group, if it is as this configuration has it, has to be gone by now.

        Who told the period of clean-up passes told another than the default one.
        """
        is_virtual = self.header.clock == "virtual"
        if not is_virtual and settings.retention_check_interval == Settings().retention_check_interval:
            return False
        state = configuration.world
        if not can_be_removed(state):
            return False
        cleanup = unseen_of(configuration).last_cleanup
        idle_since = max(
            self.last_use.get(group, inf),
            self.restarted_at,
            high(state.emptied_at),
            -inf if cleanup is None else cleanup,
        )
        late = self.header.grace if is_virtual else 2 * self.header.grace + MAX_PASS_DELAY_MS
        return low(now) > idle_since + MAX_CLEANUP_PASSES * settings.retention_check_interval + late


def can_be_removed(state: GroupState) -> bool:
    """Whether nothing keeps the group: no member, no offset, no transaction."""
    group = state.group
    if group is None or group.phase is not Phase.EMPTY:
        return False
    return not (state.offsets or state.pending or state.ended_transactions)


def keep_overdue_group(
    stepper: CoordinatorStepper, configuration: Configuration, part: GroupOperation, now: Instant
) -> Iterator[Configuration]:
    """For a diagnosis: the configuration in which the group is still there, and the response is wrong for that."""
    gone = evolve(configuration, world=GroupState(deleted=configuration.world.deleted))
    for after in stepper.step_request(gone, part, part.request, now):
        for mismatch in after.mismatches[len(configuration.mismatches) :]:
            wrong = Mismatch(
                part.operation.handle,
                mismatch.fields,
                mismatch.expected,
                "clean-up.overdue",
                configuration.world,
                is_certain=True,
            )
            unseen = evolve(unseen_of(configuration), last_cleanup=low(now))
            yield evolve(configuration, mismatches=(*configuration.mismatches, wrong), unseen=unseen)
            return
