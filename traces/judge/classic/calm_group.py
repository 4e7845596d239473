"""Calm groups, in which members do no more than show that they are alive and commit offsets.

What a request of such a group comes to is remembered (`learn_step`) until something arrives that changes the group in
more than deadlines and offsets, or a deadline comes near. What was repeated since is put into the state when somebody
looks at it. A request is learned when it is met for the second time: learning costs as much as handling it twice.
"""

from collections.abc import Hashable
from math import inf
from typing import cast

from fencepost.model.classic.coordinator.internal_actions import armed_deadlines
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Slot
from fencepost.model.classic.messages.parsing import read_requests
from fencepost.model.classic.messages.requests import Heartbeat, Offset, OffsetCommit, Partition
from fencepost.model.frozen import evolve, evolver
from fencepost.traces.events import Order
from fencepost.traces.judge.classic.calm_steps import (
    CalmStep,
    commit_words,
    differs_in_times_alone,
    heartbeat_words,
    learn_step,
    words_of,
)
from fencepost.traces.judge.classic.reduction import extend_deadline
from fencepost.traces.judge.classic.stepping import CoordinatorStepper
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation
from fencepost.traces.judge.search.time_interval import Instant, TimeInterval, low
from fencepost.traces.operations import Operation

MAX_REMEMBERED_REQUESTS = 1_000
"""How many different requests of one group are remembered."""
replace_deadline = evolver(Slot, "deadline")
replace_commit_time = evolver(Offset, "committed")


def earliest_deadline(state: GroupState) -> float:
    """No timer is due before this moment, in milliseconds."""
    return min(map(low, armed_deadlines(state)), default=inf)


class CalmGroup:
    """What is known of one group from a configuration on, the only one, with the topics as they are then."""

    def __init__(self, configuration: Configuration, topics_revision: int) -> None:
        self.configuration = configuration
        """The latest, without the steps that were repeated since."""
        self.topics_revision = topics_revision
        self.earliest = earliest_deadline(configuration.world)
        """No timer is due before, in milliseconds."""
        self.clock = 0
        """When the last step was repeated that was seen at the coordinator."""
        self.deadlines: dict[int, Instant] = {}
        """By place in the member table, the deadlines set since."""
        self.offsets: dict[Partition, tuple[Offset, Instant]] = {}
        """The offsets committed since, and when."""
        self.met: set[Hashable] = set()
        """The words of the requests that were met."""
        self.steps: dict[Hashable, CalmStep | None] = {}
        """What was learned, by the words of the request; None if what comes of it depends on more."""

    def follow(self, configuration: Configuration) -> bool:
        """Go on from this configuration; false if it is another one in more than times."""
        known = self.configuration
        if configuration.decisions != known.decisions or configuration.unseen != known.unseen:
            return False
        if configuration.world is not known.world:
            if not differs_in_times_alone(known.world, configuration.world):
                return False
            self.earliest = earliest_deadline(configuration.world)
        self.configuration = configuration
        return True

    # --- learning -----------------------------------------------------------------------------------------------

    def meet(
        self, stepper: CoordinatorStepper, before: Configuration, part: GroupOperation, after: Configuration
    ) -> None:
        """Take in what came of a request; learn it if it was met before."""
        if not isinstance(part.request, Heartbeat | OffsetCommit) or after.path is None:
            return
        words = words_of(part)
        if words in self.steps:
            step = self.steps[words]
            if step is not None and not step.fits(part.operation):
                self.steps[words] = None
        elif words in self.met:
            self.steps[words] = learn_step(stepper, before, part, after.path)
        elif len(self.met) < MAX_REMEMBERED_REQUESTS:
            self.met.add(words)

    # --- repeating ----------------------------------------------------------------------------------------------

    def repeat(self, stepper: CoordinatorStepper, operation: Operation) -> CalmStep | None:
        """Take the step that was learned of such a request; None if there is none, or anything else may happen."""
        if operation.sent_at >= self.earliest or operation.responded_at is None:
            return None
        offsets: tuple[tuple[Partition, Offset], ...] = ()
        try:
            if operation.api == "Heartbeat":
                step = self.steps.get(heartbeat_words(operation))
            elif stepper.order is Order.INTERVALS:
                return None  # a commit does not commute with others
            else:
                names = stepper.cluster.names
                (request,) = read_requests(operation.api, operation.version, operation.body, 0, (), names)
                offsets = cast(OffsetCommit, request).offsets
                step = self.steps.get(commit_words(cast(OffsetCommit, request)))
        except (AttributeError, KeyError, TypeError):
            return None  # it is not well formed
        if step is None or not step.fits(operation):
            return None
        now = stepper.handling_time(self.configuration, operation)
        if stepper.is_late(operation, now):
            return None
        for place, later in step.renewals:
            self.renew(place, now + later, 2 * stepper.grace)
        for where, offset in offsets:
            self.offsets[where] = offset, now
        if stepper.order is Order.TOTAL:
            self.clock = operation.sent_at
        return step

    def renew(self, place: int, deadline: Instant, slack: int) -> None:
        """Set the deadline of a slot, as `normalize_members` leaves it."""
        if isinstance(deadline, TimeInterval):
            before = self.deadlines.get(place) or self.configuration.world.group.slots[place].deadline
            deadline = extend_deadline(deadline, before, slack)
        self.deadlines[place] = deadline
        self.earliest = min(self.earliest, low(deadline))

    def catch_up(self) -> Configuration:
        """The configuration after the steps that were repeated."""
        before = self.configuration
        state, group = before.world, before.world.group
        slots = list(group.slots)
        for place, deadline in self.deadlines.items():
            slots[place] = replace_deadline(slots[place], deadline)
        committed = {where: replace_commit_time(offset, now) for where, (offset, now) in self.offsets.items()}
        state = evolve(
            state,
            group=evolve(group, slots=tuple(slots)),
            offsets={**state.offsets, **committed} if committed else state.offsets,
        )
        self.configuration = evolve(before, world=state, clock=max(before.clock, self.clock))
        self.earliest = earliest_deadline(state)
        self.deadlines.clear()
        self.offsets.clear()
        return self.configuration
