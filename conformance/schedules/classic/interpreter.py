"""Plays a schedule on a stage: every move becomes requests of actors that go by what they were told, or time passes.

Whatever the target does, the next move can be made: what cannot be answered is not waited for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fencepost.conformance.scenario.actors import RANGE, Blocked, Call, Member, Unsupported
from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenarios.classic.transactions import Producer
from fencepost.conformance.schedules.schedule import LONG, SHORT, Move, Role, Schedule, actor_label
from fencepost.model.settings import NEW_MEMBER_TIMEOUT_MS
from fencepost.traces.events import Body

PROTOCOLS: Mapping[str, str] = {"a": RANGE, "b": "roundrobin", "c": "sticky"}
"""The protocol behind each letter of an offer."""
UNKNOWN_ID = "nobody"
"""A member id that no coordinator hands out."""
UNKNOWN_MEMBER_ID = 25
BEFORE_DEADLINE_MS = 100
"""How long before a deadline "just before" is."""
MAX_WAIT_MS = 25_000
"""How long a schedule waits in all for deadlines and answers of a target on real time."""
ABSENT_TOPIC = "absent"
"""A topic that does not exist."""


@dataclass(slots=True)
class Actor:
    """A member of the cast at play: what it offers and knows, and what it has sent."""

    member: Member
    metadata: int = 0
    offer: str = "a"
    previous_id: str = ""
    last_contact: int = 0
    """When it last sent a request or got an answer."""
    pending_calls: list[Call] = field(default_factory=list)
    """Requests still without an answer."""
    sent_requests: dict[str, list[tuple[int, Body]]] = field(default_factory=dict)
    """Every request so far by API: version and body."""


class ScheduleInterpreter:
    """A schedule at play."""

    def __init__(self, context: ScenarioContext, cast: tuple[Role, ...]) -> None:
        self.context = context
        self.actors = [self.create_actor(number, role) for number, role in enumerate(cast)]
        self.wait_budget = MAX_WAIT_MS
        self.producer: Producer | None = None
        self.joining_since: dict[int, int] = {}
        """Since when each actor's JoinGroup is in flight."""
        self.last_join_response = 0
        """When somebody last got an answer to JoinGroup."""
        self.handlers: Mapping[str, Callable[[Move], Awaitable[None]]] = {
            "join": self.join,
            "sync": self.sync,
            "heartbeat": self.heartbeat,
            "leave": self.leave,
            "commit": self.commit,
            "fetch": self.fetch,
            "transact": self.commit_in_transaction,
            "end": self.end_transaction,
            "describe": self.describe,
            "list": self.list_groups,
            "delete": self.delete,
            "delete-offsets": self.delete_offsets,
            "again": self.repeat_request,
            "drop": self.drop_connection,
            "crash": self.crash,
            "wait": self.wait,
            "restart": self.restart,
        }

    def create_actor(self, number: int, role: Role) -> Actor:
        """An actor as it begins."""
        member = self.context.member(
            actor_label(number),
            session_timeout=self.timeout_named(
                role.session, self.context.session_timeout, self.context.long_session_timeout
            ),
            rebalance_timeout=self.timeout_named(
                role.rebalance, self.context.rebalance_timeout, 3 * self.context.rebalance_timeout
            ),
            instance=f"i{role.instance}" if role.instance else None,
        )
        actor = Actor(member, offer=role.offer)
        self.update_protocols(actor)
        return actor

    @staticmethod
    def timeout_named(name: str, short: int, long: int) -> int:
        """A timeout by its name."""
        return {
            SHORT: short,
            LONG: long,
            "endless": 2 * NEW_MEMBER_TIMEOUT_MS,
            "zero": 0,
            "too-short": 1,
            "too-long": 2_147_483_647,
        }[name]

    def update_protocols(self, actor: Actor) -> None:
        """Have the member offer what the actor means to offer."""
        metadata = self.metadata_of(actor)
        actor.member.protocols = tuple((PROTOCOLS[letter], metadata) for letter in actor.offer)

    def metadata_of(self, actor: Actor) -> bytes:
        """One of the subscriptions of an actor: 3 is to a topic that does not exist, 4 is no subscription at all."""
        name = actor.member.label
        match actor.metadata:
            case 0:
                return self.context.metadata(name)
            case 3:
                return self.context.metadata(name, ABSENT_TOPIC)
            case 4:
                return b""
            case variant:
                return self.context.metadata(f"{name} {variant}")

    async def make_move(self, move: Move) -> None:
        """Make one move; one that the target offers no way to make is left out."""
        self.context.share = move.number("sent") or None
        with suppress(Unsupported):
            await self.handlers[move.kind](move)
        self.context.share = None

    # --- sending ------------------------------------------------------------------------------------------------

    def version_for(self, api: str, move: Move) -> int:
        """The version asked for, as near as the target has it."""
        asked = move.get("version", None)  # type: ignore[arg-type]
        if not isinstance(asked, int):
            return self.context.highest_version(api)
        lowest, highest = self.context.description.versions.get(api, (0, -1))
        return self.context.highest_version(api, at_most=max(lowest, min(asked, highest)))

    async def track_request(self, call: Call, actor: Actor | None, body: Body) -> None:
        """A request was sent: give the target time to answer it."""
        if call.exchange.request is None and call.done:
            return  # only a part of it was
        if actor is not None:
            actor.last_contact = self.context.now_ms
            actor.pending_calls.append(call)
            actor.sent_requests.setdefault(call.api, []).append((call.version, body))
            call.exchange.response.add_done_callback(lambda _: self.on_response(actor, call))
        if call.done:
            await asyncio.sleep(0)  # for the actor to learn from the answer
        else:
            await asyncio.wait([call.exchange.response], timeout=self.context.short_pause / 1000)

    def on_response(self, actor: Actor, call: Call) -> None:
        """An answer came, or never will."""
        actor.last_contact = self.context.now_ms
        actor.pending_calls = [each for each in actor.pending_calls if each is not call]

    def identity_fields(self, actor: Actor, move: Move, generation_field: str = "") -> dict[str, Any]:
        """The fields of a request that say who sends it, where they are not the actor's own."""
        changes: dict[str, Any] = {}
        match move.get("as"):
            case "":
                pass
            case "nobody":
                changes["member_id"] = ""
            case "stranger":
                changes["member_id"] = UNKNOWN_ID
            case "former":
                changes["member_id"] = actor.previous_id
            case other:
                changes["member_id"] = self.actor_at(other).member.id
        match move.get("instance"):
            case "":
                pass
            case "none":
                changes["group_instance_id"] = None
            case "stranger":
                changes["group_instance_id"] = f"{UNKNOWN_ID}-{self.context.group_id}"
            case other:
                changes["group_instance_id"] = self.actor_at(other).member.instance
        offset = move.get("generation")
        if generation_field and offset == "none":
            changes[generation_field] = -1
        elif generation_field and isinstance(offset, int):
            changes[generation_field] = actor.member.generation + offset
        return changes

    def actor_at(self, number: object) -> Actor:
        """An actor by number."""
        return self.actors[number % len(self.actors) if isinstance(number, int) else 0]

    # --- members ------------------------------------------------------------------------------------------------

    async def join(self, move: Move) -> None:
        """JoinGroup; what it offers and its timeouts are changed for good."""
        actor, stage = self.actor_at(move.who), self.context
        actor.offer = str(move.get("offer", actor.offer))
        actor.metadata = move.number("metadata", actor.metadata)
        self.update_protocols(actor)
        changes = self.identity_fields(actor, move)
        session, rebalance = str(move.get("session")), str(move.get("rebalance"))
        if session in (SHORT, LONG):
            actor.member.session_timeout = self.timeout_named(
                session, stage.session_timeout, stage.long_session_timeout
            )
        elif session:
            changes["session_timeout_ms"] = self.timeout_named(session, 0, 0)
        if rebalance:
            actor.member.rebalance_timeout = self.timeout_named(
                rebalance, stage.rebalance_timeout, 3 * stage.rebalance_timeout
            )
        if "type" in dict(move.options):
            changes["protocol_type"] = "" if move.get("type") == "none" else "other"
        if actor.member.id and changes.get("member_id") == "":
            actor.previous_id = actor.member.id
        version = self.version_for("JoinGroup", move)
        await self.track_join(actor, stage.join(actor.member, version=version, **changes))

    async def track_join(self, actor: Actor, call: Call) -> None:
        """A JoinGroup was sent."""
        number = self.actors.index(actor)
        before = actor.member.id
        self.joining_since.setdefault(number, self.context.now_ms)

        def over(response: "asyncio.Future[Body | None]") -> None:
            self.joining_since.pop(number, None)
            self.last_join_response = self.context.now_ms
            told = {} if response.cancelled() else response.result() or {}
            if told.get("error_code") == UNKNOWN_MEMBER_ID and self.sent_body(call).get("member_id") == actor.member.id:
                actor.member.id = ""  # as members do that want to go on
            if before and before != actor.member.id:
                actor.previous_id = before

        call.exchange.response.add_done_callback(over)
        await self.track_request(call, actor, self.sent_body(call))

    @staticmethod
    def sent_body(call: Call) -> Body:
        """The body of a request; nothing as long as it is not on its way."""
        return call.exchange.request.body if call.exchange.request is not None else {}

    async def sync(self, move: Move) -> None:
        """SyncGroup: with assignments if the actor was told that it leads."""
        actor = self.actor_at(move.who)
        member = actor.member
        changes = self.identity_fields(actor, move, "generation_id")
        plan = [(row["member_id"], f"{row['member_id']}@{member.generation}".encode()) for row in member.members]
        match move.get("plan"):
            case "none":
                plan = []
            case "part":
                plan = plan[1:]
            case "stranger":
                plan.append((UNKNOWN_ID, b"nothing"))
            case "twice":
                plan += [(name, given + b" again") for name, given in plan[:1]]
            case "full":
                plan = [(each.member.id, each.member.label.encode()) for each in self.actors if each.member.id]
        for name, wrong in (("type", "protocol_type"), ("protocol", "protocol_name")):
            if move.get(name):
                changes[wrong] = None if move.get(name) == "none" else "other"
        call = self.context.sync(member, plan, version=self.version_for("SyncGroup", move), **changes)
        await self.track_request(call, actor, self.sent_body(call))

    async def heartbeat(self, move: Move) -> None:
        """Heartbeat."""
        actor = self.actor_at(move.who)
        changes = self.identity_fields(actor, move, "generation_id")
        call = self.context.heartbeat(actor.member, version=self.version_for("Heartbeat", move), **changes)
        await self.track_request(call, actor, self.sent_body(call))

    async def leave(self, move: Move) -> None:
        """LeaveGroup: of the actor, of another one `with` it, or of nobody (`entries` none)."""
        actor = self.actor_at(move.who)
        rows = [self.leave_entry(actor, move)]
        if "with" in dict(move.options):
            rows.append(self.leave_entry(self.actor_at(move.get("with")), Move("leave")))
        if move.get("entries") == "none":
            rows = []
        elif move.get("entries") == "twice":
            rows += rows[:1]
        version = self.version_for("LeaveGroup", move)
        call = self.context.leave(*rows, version=version)
        await self.track_request(call, actor, self.sent_body(call))

    def leave_entry(self, actor: Actor, move: Move) -> Body:
        """The entry of somebody who leaves."""
        own = {"member_id": actor.member.id, "group_instance_id": actor.member.instance, "reason": None}
        return own | self.identity_fields(actor, move)

    # --- offsets ------------------------------------------------------------------------------------------------

    async def commit(self, move: Move) -> None:
        """OffsetCommit, of one partition and maybe a `further` one."""
        actor = self.actor_at(move.who)
        changes = self.identity_fields(actor, move, "generation_id_or_member_epoch")
        if "retention" in dict(move.options):
            changes["retention_time_ms"] = move.number("retention")
        row: dict[str, Any] = {"committed_offset": move.number("offset", 1)}
        if move.get("note") == "long":
            row["committed_metadata"] = "x" * (self.context.settings.max_offset_metadata + 1)
        elif move.get("note"):
            row["committed_metadata"] = str(move.get("note"))
        partition = self.partition_of(move)
        rows: dict[tuple[str, int] | int, int | Body] = {partition: row}
        if "further" in dict(move.options):
            rows[move.number("further")] = move.number("offset", 1) + 1
        call = self.context.commit(actor.member, rows, version=self.version_for("OffsetCommit", move), **changes)
        await self.track_request(call, actor, self.sent_body(call))

    def partition_of(self, move: Move) -> tuple[str, int] | int:
        """The partition that a move is about."""
        number = move.number("partition")
        return (ABSENT_TOPIC, number) if move.get("topic") == "absent" else number

    async def fetch(self, move: Move) -> None:
        """OffsetFetch, of all partitions unless one is named."""
        asked = None if "partition" not in dict(move.options) else [self.partition_of(move)]
        version = self.version_for("OffsetFetch", move)
        if asked is None and version < 2:
            asked = [0, 1]
        groups = None if "groups" not in dict(move.options) else [self.context.group_id, self.absent_group]
        call = self.context.fetch(asked, stable=bool(move.get("stable")), groups=groups, version=version)
        await self.track_request(call, None, {})

    @property
    def absent_group(self) -> str:
        """A group that does not exist."""
        return f"{self.context.group_id}-nothing"

    async def commit_in_transaction(self, move: Move) -> None:
        """TxnOffsetCommit, in the one transaction of the schedule."""
        actor = self.actor_at(move.who)
        try:
            if self.producer is None:
                producer = Producer(self.context)
                await producer.begin()
                self.producer = producer
        except Blocked:
            return
        row = {"committed_offset": move.number("offset", 1), "committed_metadata": "", "committed_leader_epoch": -1}
        body: dict[str, Any] = {
            **self.producer.producer_fields(),
            "group_id": self.context.group_id,
            "topics": self.context.partitions_by_topic({move.number("partition"): row}, {}),
            "generation_id": actor.member.generation,
            "member_id": actor.member.id,
            "group_instance_id": actor.member.instance,
        }
        body |= self.identity_fields(actor, move, "generation_id")
        version = self.context.highest_version("TxnOffsetCommit", at_least=3, at_most=4)
        await self.track_request(self.context.send("TxnOffsetCommit", body, version=version), None, body)

    async def end_transaction(self, move: Move) -> None:
        """EndTxn."""
        if self.producer is not None:
            producer, self.producer = self.producer, None
            with suppress(Blocked):
                await producer.end(committed=not move.get("abort"))

    # --- administrators -----------------------------------------------------------------------------------------

    def groups_of(self, move: Move) -> tuple[str, ...]:
        """The groups that a call is about."""
        return (self.context.group_id, self.absent_group) if move.get("groups") else (self.context.group_id,)

    async def describe(self, move: Move) -> None:
        """DescribeGroups."""
        call = self.context.describe_groups(*self.groups_of(move), version=self.version_for("DescribeGroups", move))
        await self.track_request(call, None, {})

    async def list_groups(self, move: Move) -> None:
        """ListGroups."""
        states, types = ([str(move.get(name))] if move.get(name) else [] for name in ("states", "types"))
        call = self.context.list_groups(states, types, version=self.version_for("ListGroups", move))
        await self.track_request(call, None, {})

    async def delete(self, move: Move) -> None:
        """DeleteGroups."""
        call = self.context.delete_groups(*self.groups_of(move), version=self.version_for("DeleteGroups", move))
        await self.track_request(call, None, {})

    async def delete_offsets(self, move: Move) -> None:
        """OffsetDelete."""
        await self.track_request(self.context.delete_offsets([self.partition_of(move)]), None, {})

    # --- what happens -------------------------------------------------------------------------------------------

    async def repeat_request(self, move: Move) -> None:
        """A request that was sent before is sent once more, as it was."""
        actor, api = self.actor_at(move.who), str(move.get("api", "JoinGroup"))
        known = actor.sent_requests.get(api, [])
        if not known:
            return
        version, body = known[-min(1 + move.number("depth"), len(known))]
        if not body:
            return
        member = actor.member
        call = self.context.send(api, body, version=version, member=member.label)
        if api == "JoinGroup":
            call.exchange.response.add_done_callback(lambda response: self.context.learn_from_join(member, response))
        await self.track_request(call, actor, body)

    async def drop_connection(self, move: Move) -> None:
        """The connection of an actor's latest request without an answer is cut."""
        actor, api = self.actor_at(move.who), str(move.get("api"))
        for call in reversed(actor.pending_calls):
            if not api or call.api == api:
                call.drop_connection()
                break

    async def crash(self, move: Move) -> None:
        """The actor's process ends, and another one begins that knows nothing."""
        actor = self.actor_at(move.who)
        for call in tuple(actor.pending_calls):
            call.drop_connection()
        member = actor.member
        actor.previous_id = member.id or actor.previous_id
        member.id, member.generation, member.protocol, member.leader, member.members = "", -1, None, None, ()

    async def wait(self, move: Move) -> None:
        """Let time pass: until just before (`side` -1) or for certain after a deadline, or so many milliseconds."""
        if move.get("for") == "answers":
            await self.wait_for_joins()
            return
        side = move.number("side", 1)
        begun = self.timer_start(move)
        if begun is None:
            pause = move.number("ms", self.context.short_pause)
        else:
            ahead = begun + self.timer_length(move) - self.context.now_ms
            pause = (
                ahead - BEFORE_DEADLINE_MS if side < 0 else ahead + 2 * self.context.grace + self.context.short_pause
            )
        if self.context.description.clock != "virtual":
            pause = min(pause, max(self.wait_budget, 0))
            self.wait_budget -= max(pause, 0)
        await self.context.sleep(max(pause, 0))

    async def wait_for_joins(self) -> None:
        """Wait until nobody's JoinGroup is in flight, at most as long as a join phase can last."""
        last = max((self.actor_at(number).member.rebalance_timeout for number in self.joining_since), default=0)
        limit = self.context.settings.initial_rebalance_delay + last + 2 * self.context.grace + self.context.short_pause
        joins = [
            call.exchange.response for actor in self.actors for call in actor.pending_calls if call.api == "JoinGroup"
        ]
        if joins:
            begun = self.context.now_ms
            await asyncio.wait(joins, timeout=min(limit, max(self.wait_budget, self.context.short_pause)) / 1000)
            if self.context.description.clock != "virtual":
                self.wait_budget -= self.context.now_ms - begun

    def timer_start(self, move: Move) -> int | None:
        """When what is waited for began."""
        match move.get("for"):
            case "session":
                return self.actor_at(move.who).last_contact
            case "rebalance":
                return min(self.joining_since.values(), default=self.last_join_response)
            case "delay" | "new-member":
                return min(self.joining_since.values(), default=None)
            case "retention":
                return self.context.now_ms
        return None

    def timer_length(self, move: Move) -> int:
        """How long what is waited for lasts."""
        stage = self.context
        match move.get("for"):
            case "session":
                return self.actor_at(move.who).member.session_timeout
            case "rebalance":
                return max(actor.member.rebalance_timeout for actor in self.actors)
            case "new-member":
                return NEW_MEMBER_TIMEOUT_MS
            case "retention":
                return stage.settings.offsets_retention + stage.settings.retention_check_interval
        return stage.settings.initial_rebalance_delay

    async def restart(self, move: Move) -> None:
        """The target is killed and started again; `at-once` nobody waits until it is ready."""
        if move.get("at-once") and self.context.restart_hook is not None:
            await self.context.restart_hook()
        else:
            await self.context.restart()


def scenario_of(schedule: Schedule) -> Scenario:
    """The schedule as a scenario, which gives evidence of nothing in particular."""
    needs = ("restart",) if any(move.kind == "restart" for move in schedule.moves) else ()
    return Scenario(schedule.name, (), InterpretedSchedule(schedule), needs)


@dataclass(frozen=True, slots=True)
class InterpretedSchedule:
    """Plays one schedule as a scenario is played."""

    schedule: Schedule

    async def __call__(self, context: ScenarioContext) -> None:
        """Make every move."""
        player = ScheduleInterpreter(context, self.schedule.cast)
        for move in self.schedule.moves:
            await player.make_move(move)
