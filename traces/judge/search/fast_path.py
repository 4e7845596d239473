"""The way most requests are explained: handled as they come, no timer due, and answered at once as the model says.

It is the only thing that the search finds then, found without one; where anything at all is open, it is left to it.
"""

from typing import TYPE_CHECKING, cast

from fencepost.model.classic.coordinator.dispatch import handle
from fencepost.model.classic.coordinator.internal_actions import deadlines
from fencepost.model.classic.core.state import Choices, Dialect, Phase
from fencepost.model.classic.messages.requests import Commit, Heartbeat
from fencepost.model.frozen import changer
from fencepost.traces.events import Order
from fencepost.traces.judge.classic.matching import Seen, compared
from fencepost.traces.judge.classic.nondeterminism import Probe
from fencepost.traces.judge.search.configuration import Configuration, Part, Trail
from fencepost.traces.judge.search.time_interval import Span

if TYPE_CHECKING:
    from fencepost.traces.judge.search.search import Search

PLAIN = (Heartbeat, Commit)
"""Requests that are answered at once and elect nobody."""
NO_CHOICES = Choices()
moved_on = changer(Configuration, "world", "clock", "trail")


def straight(search: "Search", one: Configuration, part: Part) -> Configuration | None:
    """The configuration after a request seen at the coordinator, if it is plain that there is no other."""
    operation, world = part.operation, one.world
    seen, now, group = operation.answer, operation.sent, world.group
    if type(part.request) not in PLAIN or seen is None or group is None or group.phase is Phase.EMPTY:
        return None
    if search.order is not Order.TOTAL or search.was_restarted or search.lenient or one.loading or one.doubtful:
        return None
    if operation.answered is None or operation.answered > now + search.grace:
        return None
    due = deadlines(world)
    if Span in map(type, due) or now >= min(due, default=now + 1):
        return None
    probe = Probe(one.decisions)
    outcome = handle(world, part.request, search.context(now, NO_CHOICES, cast(Dialect, probe)), search.cluster)
    after = outcome.world.group
    if probe.asked or after is None or after.phase is not group.phase or len(outcome.replies) != 1:
        return None
    (reply,) = outcome.replies
    if reply.handle != operation.handle:
        return None
    shown = Seen(operation.api, operation.version, operation.body, seen, search.group, search.cluster.names)
    difference = compared(reply.answer, shown, ())
    if difference.hard or difference.soft or difference.shown or difference.forks:
        return None
    # The answer is right, so there is nothing left to hold against it when it comes.
    del search.parts[operation.handle]
    step = Trail(outcome.rule, operation.handle, one.trail, world, outcome, part.request)
    explained: Configuration = moved_on(one, outcome.world, max(one.clock, now), step)
    return explained
