"""The move in which time passes."""

import asyncio

from fencepost.conformance.classic.schedules.moves.cast import Cast
from fencepost.conformance.classic.schedules.moves.registry import move_kind
from fencepost.conformance.run.schedule import Move
from fencepost.model.settings import NEW_MEMBER_TIMEOUT_MS

BEFORE_DEADLINE_MS = 100
"""How long before a deadline "just before" is."""


@move_kind("wait", "for", "side", "ms", "share")
async def wait(cast: Cast, move: Move) -> None:
    """Wait `for` "answers" (the responses to JoinGroup); until just before (`side` -1) or certainly after the end of a
    "session", a "rebalance", an initial "delay", the time of a "new-member" or of "retention", or of a `share` of that
    time, in percent; or for some `ms`."""
    if move.get("for") == "answers":
        await wait_for_joins(cast, cast.actor_at(move.who).group)
        return
    begun = timer_start(cast, move)
    if begun is None:
        pause = move.number("ms", cast.context.short_pause)
    else:
        pause = begun + timer_length(cast, move) * move.number("share", 100) // 100 - cast.context.now_ms
        if move.number("side", 1) < 0:
            pause -= BEFORE_DEADLINE_MS
        else:
            pause += 2 * cast.context.grace + cast.context.short_pause
    if cast.context.description.clock != "virtual":
        pause = min(pause, max(cast.wait_budget, 0))
        cast.wait_budget -= max(pause, 0)
    await cast.context.sleep(max(pause, 0))


async def wait_for_joins(cast: Cast, group: int) -> None:
    """Wait until no JoinGroup of the group is in flight, at most as long as a join phase can last."""
    context = cast.context
    actors = [actor for actor in cast.actors if actor.group == group]
    longest = max((cast.actors[number].member.rebalance_timeout for number in cast.joining_in(group)), default=0)
    limit = context.settings.initial_rebalance_delay + longest + 2 * context.grace + context.short_pause
    joins = [call.exchange.response for actor in actors for call in actor.pending_calls if call.api == "JoinGroup"]
    if joins:
        begun = context.now_ms
        await asyncio.wait(joins, timeout=min(limit, max(cast.wait_budget, context.short_pause)) / 1000)
        if context.description.clock != "virtual":
            cast.wait_budget -= context.now_ms - begun


def timer_start(cast: Cast, move: Move) -> int | None:
    """When the timer that a move waits for was started, as far as the actors know; None if it is not running."""
    actor = cast.actor_at(move.who)
    first_join = min((cast.joining_since[number] for number in cast.joining_in(actor.group)), default=None)
    match move.get("for"):
        case "session":
            return actor.last_contact
        case "rebalance":
            return cast.last_join_response.get(actor.group, 0) if first_join is None else first_join
        case "delay" | "new-member":
            return first_join
        case "retention":
            return cast.context.now_ms
    return None


def timer_length(cast: Cast, move: Move) -> int:
    """How long the timer that a move waits for runs, in milliseconds."""
    settings = cast.context.settings
    match move.get("for"):
        case "session":
            return cast.actor_at(move.who).member.session_timeout
        case "rebalance":
            group = cast.actor_at(move.who).group
            return max(actor.member.rebalance_timeout for actor in cast.actors if actor.group == group)
        case "new-member":
            return NEW_MEMBER_TIMEOUT_MS
        case "retention":
            return settings.offsets_retention + settings.retention_check_interval
    return settings.initial_rebalance_delay
