"""Moves that are no ordinary request: requests sent twice, cut connections, crashes, restarts."""

from fencepost.conformance.classic.schedules.moves.cast import Cast
from fencepost.conformance.classic.schedules.moves.registry import move_kind
from fencepost.conformance.run.schedule import Move


@move_kind("again", "api", "depth")
async def repeat_request(cast: Cast, move: Move) -> None:
    """Send the actor's last request of an API once more as it was, or with a `depth` an earlier one."""
    actor, api = cast.actor_at(move.who), str(move.get("api", "JoinGroup"))
    sent = actor.sent_requests.get(api, [])
    if not sent:
        return
    version, body = sent[-min(1 + move.number("depth"), len(sent))]
    if not body:
        return
    member = actor.member
    call = actor.context.send(api, body, version=version, member=member.label)
    if api == "JoinGroup":
        call.exchange.response.add_done_callback(lambda response: actor.context.learn_from_join(member, response))
    await cast.track_request(call, actor, body)


@move_kind("drop", "api")
async def drop_connection(cast: Cast, move: Move) -> None:
    """Cut the connection of the actor's latest request that has no response, of one API if it is named."""
    actor, api = cast.actor_at(move.who), str(move.get("api"))
    for call in reversed(actor.pending_calls):
        if not api or call.api == api:
            call.drop_connection()
            break


@move_kind("crash")
async def crash(cast: Cast, move: Move) -> None:
    """End the actor's process, and begin another one that knows nothing."""
    actor = cast.actor_at(move.who)
    for call in tuple(actor.pending_calls):
        call.drop_connection()
    member = actor.member
    actor.previous_id = member.id or actor.previous_id
    member.id, member.generation, member.protocol, member.leader, member.members = "", -1, None, None, ()


@move_kind("restart", "at-once")
async def restart(cast: Cast, move: Move) -> None:
    """Kill the target and start it again; with `at-once`, go on before it is ready."""
    if move.get("at-once") and cast.context.restart_hook is not None:
        await cast.context.restart_hook()
    else:
        await cast.context.restart()
