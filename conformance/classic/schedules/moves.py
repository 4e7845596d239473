"""The moves of classic schedules, registered by kind with their options, and the interpreter that makes them.

Each move becomes requests of an actor that acts on the responses it got, or lets time pass. Every move can be made in
every state, whatever the target responds: a move waits for no response that may not come. What makes a good schedule
does not belong here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fencepost.adapters.target import Description
from fencepost.conformance.classic.schedules.cast import (
    ABSENT_TOPIC,
    LONG,
    SHORT,
    UNKNOWN_ID,
    Actor,
    Cast,
    MemberRole,
    Transaction,
    sent_body,
)
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.requests import Blocked, Call, TransactionalProducer, Unsupported
from fencepost.conformance.run.schedule import Move, Schedule
from fencepost.conformance.subject import Scenario
from fencepost.model.errors import Error
from fencepost.model.settings import NEW_MEMBER_TIMEOUT_MS
from fencepost.traces.events import Body, Order

# --- The registry of moves: their functions and options by kind.

MoveFunction = Callable[[Cast, Move], Awaitable[None]]

SENDER_OPTIONS = ("as", "generation", "instance", "version", "sent")
"""Options of the requests that a member sends about itself.

`as` is the member id: "nobody" for none, "stranger" for an unknown one, "former" for the actor's previous one, a number
for another actor's; `generation` is "none" or the distance from the actor's own; `instance` is "none", "stranger" or
another actor's number; `sent` is the percentage of the request that is sent before its connection is cut.
"""


@dataclass(frozen=True, slots=True)
class MoveKind:
    """A kind of move: the function that makes it, and the options it takes. All options may be left out: then the
    actor acts as a well-behaved member."""

    make: MoveFunction
    options: tuple[str, ...]


KINDS: dict[str, MoveKind] = {}
"""The kinds of moves by name, in the order of their registration."""


def move_kind(name: str, *options: str) -> Callable[[MoveFunction], MoveFunction]:
    """Register a function as the kind of move with this name."""

    def register(make: MoveFunction) -> MoveFunction:
        KINDS[name] = MoveKind(make, options)
        return make

    return register


# --- Moves of group members: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.


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
    if rebalance == "zero":
        changes["rebalance_timeout_ms"] = 0
    elif rebalance:
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


# --- Moves of administrators: DescribeGroups, ListGroups, DeleteGroups.


def has_one_coordinator(target: Description) -> bool:
    """Whether any node answers for all groups: there is one node, or the target is in this process, where the nodes
    share a coordinator. Over the network, several nodes have groups of their own."""
    return len(target.brokers) <= 1 or target.order is Order.TOTAL


def groups_of(cast: Cast, move: Move) -> tuple[str, ...]:
    """The groups that a move is about: the actor's; with `groups` also one that does not exist, or "all" there are. The
    actor's alone if another may have another coordinator."""
    own = cast.actor_at(move.who).context.group_id
    if not has_one_coordinator(cast.context.description):
        return (own,)
    if move.get("groups") == "all":
        return tuple(context.group_id for context in cast.contexts.values())
    return (own, f"{cast.context.group_id}-nothing") if move.get("groups") else (own,)


@move_kind("describe", "version", "groups")
async def describe(cast: Cast, move: Move) -> None:
    """DescribeGroups."""
    version = cast.version_for("DescribeGroups", move)
    await cast.track_request(cast.context.describe_groups(*groups_of(cast, move), version=version), None, {})


@move_kind("list", "version", "states", "types")
async def list_groups(cast: Cast, move: Move) -> None:
    """ListGroups, filtered by one of the `states` and one of the `types`; left out where each node lists groups of its
    own, for a schedule does not ask which node has a group."""
    if not has_one_coordinator(cast.context.description):
        return
    states, types = ([str(move.get(name))] if move.get(name) else [] for name in ("states", "types"))
    call = cast.context.list_groups(states, types, version=cast.version_for("ListGroups", move))
    await cast.track_request(call, None, {})


@move_kind("delete", "version", "groups")
async def delete(cast: Cast, move: Move) -> None:
    """DeleteGroups."""
    version = cast.version_for("DeleteGroups", move)
    await cast.track_request(cast.context.delete_groups(*groups_of(cast, move), version=version), None, {})


# --- Moves around committed offsets: OffsetCommit, OffsetFetch, OffsetDelete.

FIRST_BATCHED_VERSION = 8
"""The first version of OffsetFetch with several groups."""
FIRST_LEADER_EPOCH_VERSION = 6
"""The first version of OffsetCommit with leader epochs."""


@move_kind("commit", *SENDER_OPTIONS, "partition", "offset", "further", "note", "leader-epoch", "retention", "topic")
async def commit(cast: Cast, move: Move) -> None:
    """OffsetCommit of one partition, and of a `further` one; `note` is the metadata, "long" exceeds the
    limit."""
    actor = cast.actor_at(move.who)
    changes = cast.identity_fields(actor, move, "generation_id_or_member_epoch")
    if "retention" in dict(move.options):
        changes["retention_time_ms"] = move.number("retention")
    version = cast.version_for("OffsetCommit", move, actor)
    row: dict[str, Any] = {"committed_offset": move.number("offset", 1)}
    if "leader-epoch" in dict(move.options) and version >= FIRST_LEADER_EPOCH_VERSION:
        row["committed_leader_epoch"] = move.number("leader-epoch")
    if move.get("note") == "long" and cast.context.description.knows("max_offset_metadata"):
        row["committed_metadata"] = "x" * (cast.context.settings.max_offset_metadata + 1)
    elif move.get("note"):
        row["committed_metadata"] = str(move.get("note"))
    rows: dict[tuple[str, int] | int, int | Body] = {partition_of(move): row}
    if "further" in dict(move.options):
        rows[move.number("further")] = move.number("offset", 1) + 1
    call = actor.context.commit(actor.member, rows, version=version, **changes)
    await cast.track_request(call, actor, sent_body(call))


def partition_of(move: Move) -> tuple[str, int] | int:
    """The partition that a move is about, with its topic if that is not the kit's."""
    number = move.number("partition")
    return (ABSENT_TOPIC, number) if move.get("topic") == "absent" else number


@move_kind("fetch", "partition", "further", "stable", "groups", "version", "topic")
async def fetch(cast: Cast, move: Move) -> None:
    """OffsetFetch of all partitions unless one or two are named, or "none"; `groups` are those of `groups_of`."""
    context = cast.actor_at(move.who).context
    partitions = None if "partition" not in dict(move.options) else [partition_of(move)]
    if move.get("partition") == "none":
        partitions = []
    elif partitions is not None and "further" in dict(move.options):
        partitions.append(move.number("further"))
    version = cast.version_for("OffsetFetch", move)
    if partitions is None and version < 2:
        partitions = [0, 1]
    groups = groups_of(cast, move) if version >= FIRST_BATCHED_VERSION else [context.group_id]
    call = context.fetch(partitions, stable=bool(move.get("stable")), groups=groups, version=version)
    await cast.track_request(call, None, {})


@move_kind("delete-offsets", "partition", "further", "topic")
async def delete_offsets(cast: Cast, move: Move) -> None:
    """OffsetDelete of one partition, and of a `further` one."""
    partitions = [partition_of(move)]
    if "further" in dict(move.options):
        partitions.append(move.number("further"))
    await cast.track_request(cast.actor_at(move.who).context.delete_offsets(partitions), None, {})


# --- Moves of transactional producers, each with a number: transactions begin, commit offsets, and end.

TRANSACTION_TIMEOUT_MS = 600_000
"""Longer than any schedule lasts on real time."""


async def initialize_transaction(cast: Cast, number: int) -> Transaction:
    """A producer with an id and no open transaction. Raises `Blocked`."""
    context = cast.context
    name = f"{context.group_id}-producer" + (f"-{number}" if number else "")
    producer = TransactionalProducer(context, context.group_id, name)
    cast.transactions.pop(number, None)
    await producer.begin_epoch(TRANSACTION_TIMEOUT_MS)
    cast.transactions[number] = transaction = Transaction(producer)
    return transaction


@move_kind("init-producer", "producer")
async def initialize_producer(cast: Cast, move: Move) -> None:
    """InitProducerId, as a producer that starts again: its transaction is aborted, and its predecessor is fenced."""
    with suppress(Blocked):
        await initialize_transaction(cast, move.number("producer"))


@move_kind("transact", *SENDER_OPTIONS, "partition", "further", "offset", "note", "leader-epoch", "producer", "epoch")
async def commit_in_transaction(cast: Cast, move: Move) -> None:
    """TxnOffsetCommit in the actor's group of one partition, and of a `further` one; `epoch` is the distance from the
    producer's own. The transaction begins if none is open; left out if it cannot begin."""
    actor, number = cast.actor_at(move.who), move.number("producer")
    group_id = actor.context.group_id
    try:
        transaction = cast.transactions.get(number) or await initialize_transaction(cast, number)
        if actor.group not in transaction.groups:
            await transaction.producer.add_group(group_id)
            transaction.groups.add(actor.group)
    except Blocked:
        return
    rows: dict[tuple[str, int] | int, Body] = {move.number("partition"): {"committed_offset": move.number("offset", 1)}}
    if "further" in dict(move.options):
        rows[move.number("further")] = {"committed_offset": move.number("offset", 1) + 1}
    leader_epoch, note = move.number("leader-epoch", -1), str(move.get("note"))
    defaults = {"committed_leader_epoch": leader_epoch, "committed_metadata": note}
    producer = transaction.producer
    sender: dict[str, Any] = {
        "producer_epoch": producer.epoch + move.number("epoch"),
        "generation_id": actor.member.generation,
        "member_id": actor.member.id,
        "group_instance_id": actor.member.instance,
    }
    sender |= cast.identity_fields(actor, move, "generation_id")
    topics = cast.context.partitions_by_topic(rows, defaults)
    await cast.track_request(producer.send_commit(topics, group_id=group_id, **sender), None, {})


@move_kind("end", "producer", "abort", "version")
async def end_transaction(cast: Cast, move: Move) -> None:
    """EndTxn, if the producer has a transaction open."""
    transaction = cast.transactions.get(move.number("producer"))
    if transaction is not None and transaction.groups:
        transaction.groups.clear()
        with suppress(Blocked):
            await transaction.producer.end(committed=not move.get("abort"))


# --- Moves that are no ordinary request: requests sent twice, cut connections, crashes, restarts.


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


# --- The move in which time passes.

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


class ScheduleInterpreter:
    """Makes the moves of one schedule."""

    def __init__(self, context: ScenarioContext, roles: tuple[MemberRole, ...]) -> None:
        self.cast = Cast(context, roles)

    async def make_move(self, move: Move) -> None:
        """Make one move; a move that the target does not support is left out."""
        self.cast.send_partly(move.number("sent") or None)
        with suppress(Unsupported):
            await KINDS[move.kind].make(self.cast, move)
        self.cast.send_partly(None)


def scenario_of(schedule: Schedule) -> Scenario:
    """A scenario that plays the schedule and checks no requirement."""
    needs = ("restart",) if any(move.kind == "restart" for move in schedule.moves) else ()
    return Scenario(schedule.name, (), InterpretedSchedule(schedule), needs)


@dataclass(frozen=True, slots=True)
class InterpretedSchedule:
    """Plays one schedule as scenarios are played."""

    schedule: Schedule

    async def __call__(self, context: ScenarioContext) -> None:
        """Make every move."""
        interpreter = ScheduleInterpreter(context, self.schedule.cast)
        for move in self.schedule.moves:
            await interpreter.make_move(move)
