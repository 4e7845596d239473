"""Calm groups, in which members do no more than show that they are alive and commit offsets.

What a request of such a group comes to is remembered (`learn_step`) until something arrives that changes the group in
more than deadlines and offsets, or a deadline comes near. What was repeated since is put into the state when somebody
looks at it. A request is learned when it is met for the second time: learning costs as much as handling it twice.
What a commit does for its sender and what becomes of its offsets have nothing to do with each other, and are remembered
apart.
"""

from collections.abc import Hashable
from math import inf
from typing import cast

from fencepost.model.classic.coordinator.internal_actions import armed_deadlines
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Slot
from fencepost.model.classic.messages.parsing import read_requests
from fencepost.model.classic.messages.requests import Heartbeat
from fencepost.model.frozen import evolve, evolver
from fencepost.model.groups.messages import Offset, OffsetCommit, Partition
from fencepost.traces.events import Body, Operation, Order
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

MAX_REMEMBERED_WORDS = 1_000
"""How much of what requests said is remembered of one group."""
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
        """What requests said, of their senders and of offsets."""
        self.steps: dict[Hashable, CalmStep | None] = {}
        """What was learned of a sender's requests; None if what comes of them depends on more."""
        self.responses: dict[Hashable, Body | None] = {}
        """The responses to heartbeats, and to commits of certain partitions that are stored as they come."""

    def follow(self, configuration: Configuration) -> bool:
        """Go on from this configuration; false if it is another one in more than times."""
        known = self.configuration
        if configuration.decisions != known.decisions or configuration.unseen != known.unseen:
            return False
        if configuration.world is known.world:
            self.configuration = configuration
            return True
        if not differs_in_times_alone(known.world, configuration.world):
            return False
        self.advance_to(configuration)
        return True

    def advance_to(self, configuration: Configuration) -> None:
        """Go on from a configuration that differs in times alone."""
        self.configuration = configuration
        self.earliest = earliest_deadline(configuration.world)

    # --- learning -----------------------------------------------------------------------------------------------

    def meet(
        self, stepper: CoordinatorStepper, before: Configuration, part: GroupOperation, after: Configuration
    ) -> None:
        """Take in what came of a request; learn it if it was met before."""
        if not isinstance(part.request, Heartbeat | OffsetCommit) or after.path is None:
            return
        words, response = words_of(part), part.operation.response
        if words.sender in self.steps and words.offsets in self.responses:
            if self.responses[words.offsets] != response:
                self.responses[words.offsets] = None
        elif self.met.issuperset(words):
            step = learn_step(stepper, before, part, after.path)
            self.steps.setdefault(words.sender, step)
            self.responses.setdefault(words.offsets, response if step is not None else None)
        elif len(self.met) < MAX_REMEMBERED_WORDS:
            self.met.update(words)

    # --- repeating ----------------------------------------------------------------------------------------------

    def repeat(self, stepper: CoordinatorStepper, operation: Operation) -> CalmStep | None:
        """Take the step that was learned of such a request; None if there is none, or anything else may happen."""
        if operation.sent_at >= self.earliest or operation.responded_at is None:
            return None
        offsets: tuple[tuple[Partition, Offset], ...] = ()
        try:
            if operation.api == "Heartbeat":
                words = heartbeat_words(operation)
            elif stepper.order is Order.INTERVALS:
                return None  # a commit does not commute with others
            else:
                names = stepper.cluster.names
                (request,) = read_requests(operation.api, operation.version, operation.body, 0, (), names)
                words, offsets = commit_words(cast(OffsetCommit, request)), cast(OffsetCommit, request).offsets
            step, response = self.steps.get(words.sender), self.responses.get(words.offsets)
        except (AttributeError, KeyError, TypeError):
            return None  # it is not well formed
        if step is None or response != operation.response or step.body not in (None, operation.body):
            return None
        now = stepper.handling_time(self.configuration, operation)
        if stepper.is_late(operation, now):
            return None
        for place, later in step.renewals:
            self.renew(place, now + later, 2 * stepper.grace)
        for where, offset in offsets:
            self.offsets[where] = offset, now
        if isinstance(now, int):
            self.clock = now
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
        self.advance_to(evolve(before, world=state, clock=max(before.clock, self.clock)))
        self.deadlines.clear()
        self.offsets.clear()
        return self.configuration
