"""The way most requests are explained: handled as they come, no timer due, and responded to at once as the model says.

It is the only thing that the search finds then, found without one; where anything at all is open, it is left to it.
"""

from typing import cast

from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.internal_actions import armed_deadlines
from fencepost.model.classic.coordinator.state import Reply
from fencepost.model.classic.core.state import Choices, Phase
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages.requests import Heartbeat
from fencepost.model.frozen import evolver
from fencepost.model.groups.messages import OffsetCommit
from fencepost.traces.events import Operation, Order
from fencepost.traces.judge.classic.matching import compare_with_choices
from fencepost.traces.judge.classic.nondeterminism import DialectProbe
from fencepost.traces.judge.classic.observed_response import ObservedResponse
from fencepost.traces.judge.classic.stepping import CoordinatorStepper
from fencepost.traces.judge.classic.unseen import unseen_of
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Path
from fencepost.traces.judge.search.time_interval import TimeInterval

FAST_PATH_REQUESTS = (Heartbeat, OffsetCommit)
"""Requests that are responded to at once and elect no leader."""
NO_CHOICES = Choices()
replace_after_step = evolver(Configuration, "world", "clock", "path")


def take_fast_path(
    stepper: CoordinatorStepper, configuration: Configuration, part: GroupOperation
) -> Configuration | None:
    """The configuration after a request seen at the coordinator, if it is plain that there is no other."""
    if not is_plain(stepper, configuration, part):
        return None
    operation, state, now = part.operation, configuration.world, part.operation.sent_at
    probe = DialectProbe(configuration.decisions)
    context = stepper.step_context(now, NO_CHOICES, cast(Dialect, probe))
    outcome = handle_request(state, part.request, context, stepper.cluster)
    after = outcome.state.group
    if probe.open_questions or after is None or after.phase is not state.group.phase or len(outcome.replies) != 1:
        return None
    if not is_exact(stepper, operation, outcome.replies[0]):
        return None
    # The response is right, so there is nothing left to compare when it comes.
    del stepper.open_operations[operation.handle]
    path = Path(outcome.rule, operation.handle, configuration.path, state, outcome, part.request)
    explained: Configuration = replace_after_step(configuration, outcome.state, max(configuration.clock, now), path)
    return explained


def is_plain(stepper: CoordinatorStepper, configuration: Configuration, part: GroupOperation) -> bool:
    """The request is handled at its event, no timer is due, and nothing else can have happened."""
    operation, state = part.operation, configuration.world
    if type(part.request) not in FAST_PATH_REQUESTS or operation.response is None or operation.responded_at is None:
        return False
    if state.group is None or state.group.phase is Phase.EMPTY:
        return False
    if stepper.order is not Order.TOTAL or stepper.was_restarted or stepper.allow_mismatches:
        return False
    unseen = unseen_of(configuration)
    if unseen.loading or unseen.maybe_expired:
        return False
    now = operation.sent_at
    if operation.responded_at > now + stepper.grace:
        return False
    due = armed_deadlines(state)
    return TimeInterval not in map(type, due) and now < min(due, default=now + 1)


def is_exact(stepper: CoordinatorStepper, operation: Operation, reply: Reply) -> bool:
    """The reply is to this request, and the response seen is the very same."""
    if reply.handle != operation.handle or operation.response is None:
        return False
    seen = ObservedResponse(
        operation.api, operation.version, operation.body, operation.response, stepper.group, stepper.cluster.names
    )
    difference = compare_with_choices(reply.response, seen, ())
    return not (difference.required or difference.advisory or difference.fresh_ids or difference.choice_points)
