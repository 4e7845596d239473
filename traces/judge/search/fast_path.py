"""The way most requests are explained: handled as they come, no timer due, and answered at once as the model says.

It is the only thing that the search finds then, found without one; where anything at all is open, it is left to it.
"""

from typing import TYPE_CHECKING, cast

from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.internal_actions import armed_deadlines
from fencepost.model.classic.core.state import Choices, Phase
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages.requests import Heartbeat, OffsetCommit
from fencepost.model.frozen import evolver
from fencepost.traces.events import Order
from fencepost.traces.judge.classic.matching import ObservedResponse, compare_with_choices
from fencepost.traces.judge.classic.nondeterminism import DialectProbe
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Path
from fencepost.traces.judge.search.time_interval import TimeInterval

if TYPE_CHECKING:
    from fencepost.traces.judge.search.search import Search

FAST_PATH_REQUESTS = (Heartbeat, OffsetCommit)
"""Requests that are answered at once and elect nobody."""
NO_CHOICES = Choices()
replace_after_step = evolver(Configuration, "world", "clock", "path")


def take_fast_path(search: "Search", configuration: Configuration, part: GroupOperation) -> Configuration | None:
    """The configuration after a request seen at the coordinator, if it is plain that there is no other."""
    operation, world = part.operation, configuration.world
    seen, now, group = operation.response, operation.sent_at, world.group
    if type(part.request) not in FAST_PATH_REQUESTS or seen is None or group is None or group.phase is Phase.EMPTY:
        return None
    if (
        search.order is not Order.TOTAL
        or search.was_restarted
        or search.allow_mismatches
        or configuration.loading
        or configuration.maybe_expired
    ):
        return None
    if operation.responded_at is None or operation.responded_at > now + search.grace:
        return None
    due = armed_deadlines(world)
    if TimeInterval in map(type, due) or now >= min(due, default=now + 1):
        return None
    probe = DialectProbe(configuration.decisions)
    outcome = handle_request(
        world, part.request, search.step_context(now, NO_CHOICES, cast(Dialect, probe)), search.cluster
    )
    after = outcome.state.group
    if probe.open_questions or after is None or after.phase is not group.phase or len(outcome.replies) != 1:
        return None
    (reply,) = outcome.replies
    if reply.handle != operation.handle:
        return None
    shown = ObservedResponse(operation.api, operation.version, operation.body, seen, search.group, search.cluster.names)
    difference = compare_with_choices(reply.response, shown, ())
    if difference.required or difference.advisory or difference.fresh_ids or difference.choice_points:
        return None
    # The answer is right, so there is nothing left to hold against it when it comes.
    del search.open_operations[operation.handle]
    step = Path(outcome.rule, operation.handle, configuration.path, world, outcome, part.request)
    explained: Configuration = replace_after_step(configuration, outcome.state, max(configuration.clock, now), step)
    return explained
