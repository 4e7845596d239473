"""Moves of group members: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

import asyncio

from fencepost.conformance.classic.schedules.moves.cast import LONG, SHORT, UNKNOWN_ID, Actor, Cast, sent_body
from fencepost.conformance.classic.schedules.moves.registry import SENDER_OPTIONS, move_kind
from fencepost.conformance.run.requests import Call
from fencepost.conformance.run.schedule import Move
from fencepost.model.errors import Error
from fencepost.traces.events import Body


@move_kind("join", *SENDER_OPTIONS, "type", "session", "rebalance", "offer", "metadata", "client")
async def join(cast: Cast, move: Move) -> None:
    """JoinGroup. Later requests keep the offer, the metadata, the client and timeouts that a target can accept."""
    actor = cast.actor_at(move.who)
    actor.offer = str(move.get("offer", actor.offer))
    actor.metadata = move.number("metadata", actor.metadata)
    actor.client = str(move.get("client", actor.client))
    cast.update_protocols(actor)
    changes = cast.identity_fields(actor, move)
    session, rebalance = str(move.get("session")), str(move.get("rebalance"))
    if session in (SHORT, LONG):
        actor.member.session_timeout = cast.session_timeout(session)
    elif session:
        changes["session_timeout_ms"] = cast.session_timeout(session)
    if rebalance:
        actor.member.rebalance_timeout = cast.rebalance_timeout(rebalance)
    if "type" in dict(move.options):
        changes["protocol_type"] = "" if move.get("type") == "none" else "other"
    if actor.member.id and changes.get("member_id") == "":
        actor.previous_id = actor.member.id
    version = cast.version_for("JoinGroup", move, actor)
    await track_join(cast, actor, actor.context.join(actor.member, version=version, **changes))


async def track_join(cast: Cast, actor: Actor, call: Call) -> None:
    """Remember a JoinGroup that was sent, until it gets its response."""
    number = cast.actors.index(actor)
    before = actor.member.id
    cast.joining_since.setdefault(number, cast.context.now_ms)

    def on_join_response(response: "asyncio.Future[Body | None]") -> None:
        cast.joining_since.pop(number, None)
        cast.last_join_response[actor.group] = cast.context.now_ms
        body = {} if response.cancelled() else response.result() or {}
        is_unknown = body.get("error_code") == Error.UNKNOWN_MEMBER_ID
        if is_unknown and sent_body(call).get("member_id") == actor.member.id:
            actor.member.id = ""  # as members do before they join again
        if before and before != actor.member.id:
            actor.previous_id = before

    call.exchange.response.add_done_callback(on_join_response)
    await cast.track_request(call, actor, sent_body(call))


@move_kind("sync", *SENDER_OPTIONS, "type", "protocol", "plan")
async def sync(cast: Cast, move: Move) -> None:
    """SyncGroup, with assignments if the actor leads the generation."""
    actor = cast.actor_at(move.who)
    member = actor.member
    changes = cast.identity_fields(actor, move, "generation_id")
    plan = [(row["member_id"], f"{row['member_id']}@{member.generation}".encode()) for row in member.members]
    match move.get("plan"):
        case "none":
            plan = []
        case "part":
            plan = plan[1:]
        case "last":
            plan = plan[:-1]
        case "stranger":
            plan.append((UNKNOWN_ID, b"nothing"))
        case "twice":
            plan += [(name, assignment + b" again") for name, assignment in plan[:1]]
        case "full":
            plan = [
                (each.member.id, each.member.label.encode())
                for each in cast.actors
                if each.member.id and each.group == actor.group
            ]
    for name, field in (("type", "protocol_type"), ("protocol", "protocol_name")):
        if move.get(name):
            changes[field] = None if move.get(name) == "none" else "other"
    call = actor.context.sync(member, plan, version=cast.version_for("SyncGroup", move, actor), **changes)
    await cast.track_request(call, actor, sent_body(call))


@move_kind("heartbeat", *SENDER_OPTIONS)
async def heartbeat(cast: Cast, move: Move) -> None:
    """Heartbeat with the actor's generation."""
    actor = cast.actor_at(move.who)
    changes = cast.identity_fields(actor, move, "generation_id")
    version = cast.version_for("Heartbeat", move, actor)
    call = actor.context.heartbeat(actor.member, version=version, **changes)
    await cast.track_request(call, actor, sent_body(call))


@move_kind("leave", "as", "instance", "version", "with", "entries", "sent")
async def leave(cast: Cast, move: Move) -> None:
    """LeaveGroup of the actor, `with` another one, or with its `entries` "none" or "twice"."""
    actor = cast.actor_at(move.who)
    rows = [leave_entry(cast, actor, move)]
    if "with" in dict(move.options):
        rows.append(leave_entry(cast, cast.actor_at(move.get("with")), Move("leave")))
    if move.get("entries") == "none":
        rows = []
    elif move.get("entries") == "twice":
        rows += rows[:1]
    call = actor.context.leave(*rows, version=cast.version_for("LeaveGroup", move, actor))
    await cast.track_request(call, actor, sent_body(call))


def leave_entry(cast: Cast, actor: Actor, move: Move) -> Body:
    """The entry of an actor in LeaveGroup."""
    own = {"member_id": actor.member.id, "group_instance_id": actor.member.instance, "reason": None}
    return own | cast.identity_fields(actor, move)
