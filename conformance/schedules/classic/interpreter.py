"""Plays a schedule on a stage: every move becomes requests of actors that go by what they were told, or time passes.

Whatever the target does, the next move can be made: what cannot be answered is not waited for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fencepost.conformance.scenario.actors import RANGE, Blocked, Call, Member, Unsupported
from fencepost.conformance.scenario.context import Stage
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenarios.classic.transactions import Producer
from fencepost.conformance.schedules.schedule import LONG, SHORT, Move, Role, Schedule, label
from fencepost.model.settings import NEW_MEMBER_TIMEOUT_MS
from fencepost.traces.events import Body

PROTOCOLS: Mapping[str, str] = {"a": RANGE, "b": "roundrobin", "c": "sticky"}
"""The protocol behind each letter of an offer."""
STRANGER = "nobody"
"""A member id that no coordinator hands out."""
UNKNOWN_MEMBER_ID = 25
BEFORE_MS = 100
"""How long before a deadline "just before" is."""
LONGEST_WAIT_MS = 25_000
"""How long a schedule waits in all for deadlines and answers of a target on real time."""
ABSENT = "absent"
"""A topic that does not exist."""


@dataclass(slots=True)
class Actor:
    """A member of the cast at play: what it offers and knows, and what it has sent."""

    member: Member
    metadata: int = 0
    offer: str = "a"
    former: str = ""
    contact: int = 0
    """When it last sent a request or got an answer."""
    calls: list[Call] = field(default_factory=list)
    """Requests still without an answer."""
    sent: dict[str, list[tuple[int, Body]]] = field(default_factory=dict)
    """Every request so far by API: version and body."""


class Player:
    """A schedule at play."""

    def __init__(self, stage: Stage, cast: tuple[Role, ...]) -> None:
        self.stage = stage
        self.actors = [self.actor(number, role) for number, role in enumerate(cast)]
        self.patience = LONGEST_WAIT_MS
        self.producer: Producer | None = None
        self.joining: dict[int, int] = {}
        """Since when each actor's JoinGroup is in flight."""
        self.joined = 0
        """When somebody last got an answer to JoinGroup."""
        self.moves: Mapping[str, Callable[[Move], Awaitable[None]]] = {
            "join": self.join,
            "sync": self.sync,
            "heartbeat": self.heartbeat,
            "leave": self.leave,
            "commit": self.commit,
            "fetch": self.fetch,
            "transact": self.transact,
            "end": self.end,
            "describe": self.describe,
            "list": self.list_groups,
            "delete": self.delete,
            "delete-offsets": self.delete_offsets,
            "again": self.again,
            "drop": self.drop,
            "crash": self.crash,
            "wait": self.wait,
            "restart": self.restart,
        }

    def actor(self, number: int, role: Role) -> Actor:
        """An actor as it begins."""
        member = self.stage.member(
            label(number),
            session=self.timeout(role.session, self.stage.session, self.stage.long_session),
            rebalance=self.timeout(role.rebalance, self.stage.rebalance, 3 * self.stage.rebalance),
            instance=f"i{role.instance}" if role.instance else None,
        )
        actor = Actor(member, offer=role.offer)
        self.offer(actor)
        return actor

    @staticmethod
    def timeout(name: str, short: int, long: int) -> int:
        """A timeout by its name."""
        return {
            SHORT: short,
            LONG: long,
            "endless": 2 * NEW_MEMBER_TIMEOUT_MS,
            "zero": 0,
            "too-short": 1,
            "too-long": 2_147_483_647,
        }[name]

    def offer(self, actor: Actor) -> None:
        """Have the member offer what the actor means to offer."""
        metadata = self.metadata(actor)
        actor.member.protocols = tuple((PROTOCOLS[letter], metadata) for letter in actor.offer)

    def metadata(self, actor: Actor) -> bytes:
        """One of the subscriptions of an actor: 3 is to a topic that does not exist, 4 is no subscription at all."""
        name = actor.member.label
        match actor.metadata:
            case 0:
                return self.stage.metadata(name)
            case 3:
                return self.stage.metadata(name, ABSENT)
            case 4:
                return b""
            case variant:
                return self.stage.metadata(f"{name} {variant}")

    async def perform(self, move: Move) -> None:
        """Make one move; one that the target offers no way to make is left out."""
        self.stage.share = move.number("sent") or None
        with suppress(Unsupported):
            await self.moves[move.kind](move)
        self.stage.share = None

    # --- sending ------------------------------------------------------------------------------------------------

    def version(self, api: str, move: Move) -> int:
        """The version asked for, as near as the target has it."""
        asked = move.get("version", None)  # type: ignore[arg-type]
        if not isinstance(asked, int):
            return self.stage.version(api)
        lowest, highest = self.stage.description.versions.get(api, (0, -1))
        return self.stage.version(api, at_most=max(lowest, min(asked, highest)))

    async def sent(self, call: Call, actor: Actor | None, body: Body) -> None:
        """A request was sent: give the target time to answer it."""
        if call.exchange.request is None and call.done:
            return  # only a part of it was
        if actor is not None:
            actor.contact = self.stage.clock
            actor.calls.append(call)
            actor.sent.setdefault(call.api, []).append((call.version, body))
            call.exchange.answer.add_done_callback(lambda _: self.answered(actor, call))
        if call.done:
            await asyncio.sleep(0)  # for the actor to learn from the answer
        else:
            await asyncio.wait([call.exchange.answer], timeout=self.stage.step / 1000)

    def answered(self, actor: Actor, call: Call) -> None:
        """An answer came, or never will."""
        actor.contact = self.stage.clock
        actor.calls = [each for each in actor.calls if each is not call]

    def identity(self, actor: Actor, move: Move, claims: str = "") -> dict[str, Any]:
        """The fields of a request that say who sends it, where they are not the actor's own."""
        changes: dict[str, Any] = {}
        match move.get("as"):
            case "":
                pass
            case "nobody":
                changes["member_id"] = ""
            case "stranger":
                changes["member_id"] = STRANGER
            case "former":
                changes["member_id"] = actor.former
            case other:
                changes["member_id"] = self.other(other).member.id
        match move.get("instance"):
            case "":
                pass
            case "none":
                changes["group_instance_id"] = None
            case "stranger":
                changes["group_instance_id"] = f"{STRANGER}-{self.stage.group}"
            case other:
                changes["group_instance_id"] = self.other(other).member.instance
        offset = move.get("generation")
        if claims and offset == "none":
            changes[claims] = -1
        elif claims and isinstance(offset, int):
            changes[claims] = actor.member.generation + offset
        return changes

    def other(self, number: object) -> Actor:
        """An actor by number."""
        return self.actors[number % len(self.actors) if isinstance(number, int) else 0]

    # --- members ------------------------------------------------------------------------------------------------

    async def join(self, move: Move) -> None:
        """JoinGroup; what it offers and its timeouts are changed for good."""
        actor, stage = self.other(move.who), self.stage
        actor.offer = str(move.get("offer", actor.offer))
        actor.metadata = move.number("metadata", actor.metadata)
        self.offer(actor)
        changes = self.identity(actor, move)
        session, rebalance = str(move.get("session")), str(move.get("rebalance"))
        if session in (SHORT, LONG):
            actor.member.session = self.timeout(session, stage.session, stage.long_session)
        elif session:
            changes["session_timeout_ms"] = self.timeout(session, 0, 0)
        if rebalance:
            actor.member.rebalance = self.timeout(rebalance, stage.rebalance, 3 * stage.rebalance)
        if "type" in dict(move.options):
            changes["protocol_type"] = "" if move.get("type") == "none" else "other"
        if actor.member.id and changes.get("member_id") == "":
            actor.former = actor.member.id
        version = self.version("JoinGroup", move)
        await self.joins(actor, stage.join(actor.member, version=version, **changes))

    async def joins(self, actor: Actor, call: Call) -> None:
        """A JoinGroup was sent."""
        number = self.actors.index(actor)
        before = actor.member.id
        self.joining.setdefault(number, self.stage.clock)

        def over(answer: "asyncio.Future[Body | None]") -> None:
            self.joining.pop(number, None)
            self.joined = self.stage.clock
            told = {} if answer.cancelled() else answer.result() or {}
            if told.get("error_code") == UNKNOWN_MEMBER_ID and self.carried(call).get("member_id") == actor.member.id:
                actor.member.id = ""  # as members do that want to go on
            if before and before != actor.member.id:
                actor.former = before

        call.exchange.answer.add_done_callback(over)
        await self.sent(call, actor, self.carried(call))

    @staticmethod
    def carried(call: Call) -> Body:
        """The body of a request; nothing as long as it is not on its way."""
        return call.exchange.request.body if call.exchange.request is not None else {}

    async def sync(self, move: Move) -> None:
        """SyncGroup: with assignments if the actor was told that it leads."""
        actor = self.other(move.who)
        member = actor.member
        changes = self.identity(actor, move, "generation_id")
        plan = [(row["member_id"], f"{row['member_id']}@{member.generation}".encode()) for row in member.members]
        match move.get("plan"):
            case "none":
                plan = []
            case "part":
                plan = plan[1:]
            case "stranger":
                plan.append((STRANGER, b"nothing"))
            case "twice":
                plan += [(name, given + b" again") for name, given in plan[:1]]
            case "full":
                plan = [(each.member.id, each.member.label.encode()) for each in self.actors if each.member.id]
        for name, wrong in (("type", "protocol_type"), ("protocol", "protocol_name")):
            if move.get(name):
                changes[wrong] = None if move.get(name) == "none" else "other"
        call = self.stage.sync(member, plan, version=self.version("SyncGroup", move), **changes)
        await self.sent(call, actor, self.carried(call))

    async def heartbeat(self, move: Move) -> None:
        """Heartbeat."""
        actor = self.other(move.who)
        changes = self.identity(actor, move, "generation_id")
        call = self.stage.heartbeat(actor.member, version=self.version("Heartbeat", move), **changes)
        await self.sent(call, actor, self.carried(call))

    async def leave(self, move: Move) -> None:
        """LeaveGroup: of the actor, of another one `with` it, or of nobody (`entries` none)."""
        actor = self.other(move.who)
        rows = [self.leaver(actor, move)]
        if "with" in dict(move.options):
            rows.append(self.leaver(self.other(move.get("with")), Move("leave")))
        if move.get("entries") == "none":
            rows = []
        elif move.get("entries") == "twice":
            rows += rows[:1]
        version = self.version("LeaveGroup", move)
        call = self.stage.leave(*rows, version=version)
        await self.sent(call, actor, self.carried(call))

    def leaver(self, actor: Actor, move: Move) -> Body:
        """The entry of somebody who leaves."""
        own = {"member_id": actor.member.id, "group_instance_id": actor.member.instance, "reason": None}
        return own | self.identity(actor, move)

    # --- offsets ------------------------------------------------------------------------------------------------

    async def commit(self, move: Move) -> None:
        """OffsetCommit, of one partition and maybe a `further` one."""
        actor = self.other(move.who)
        changes = self.identity(actor, move, "generation_id_or_member_epoch")
        if "retention" in dict(move.options):
            changes["retention_time_ms"] = move.number("retention")
        row: dict[str, Any] = {"committed_offset": move.number("offset", 1)}
        if move.get("note") == "long":
            row["committed_metadata"] = "x" * (self.stage.settings.max_offset_metadata + 1)
        elif move.get("note"):
            row["committed_metadata"] = str(move.get("note"))
        partition = self.partition(move)
        rows: dict[tuple[str, int] | int, int | Body] = {partition: row}
        if "further" in dict(move.options):
            rows[move.number("further")] = move.number("offset", 1) + 1
        call = self.stage.commit(actor.member, rows, version=self.version("OffsetCommit", move), **changes)
        await self.sent(call, actor, self.carried(call))

    def partition(self, move: Move) -> tuple[str, int] | int:
        """The partition that a move is about."""
        number = move.number("partition")
        return (ABSENT, number) if move.get("topic") == "absent" else number

    async def fetch(self, move: Move) -> None:
        """OffsetFetch, of all partitions unless one is named."""
        asked = None if "partition" not in dict(move.options) else [self.partition(move)]
        version = self.version("OffsetFetch", move)
        if asked is None and version < 2:
            asked = [0, 1]
        groups = None if "groups" not in dict(move.options) else [self.stage.group, self.elsewhere]
        call = self.stage.fetch(asked, stable=bool(move.get("stable")), groups=groups, version=version)
        await self.sent(call, None, {})

    @property
    def elsewhere(self) -> str:
        """A group that does not exist."""
        return f"{self.stage.group}-nothing"

    async def transact(self, move: Move) -> None:
        """TxnOffsetCommit, in the one transaction of the schedule."""
        actor = self.other(move.who)
        try:
            if self.producer is None:
                producer = Producer(self.stage)
                await producer.begin()
                self.producer = producer
        except Blocked:
            return
        row = {"committed_offset": move.number("offset", 1), "committed_metadata": "", "committed_leader_epoch": -1}
        body: dict[str, Any] = {
            **self.producer.signature(),
            "group_id": self.stage.group,
            "topics": self.stage.partitions({move.number("partition"): row}, {}),
            "generation_id": actor.member.generation,
            "member_id": actor.member.id,
            "group_instance_id": actor.member.instance,
        }
        body |= self.identity(actor, move, "generation_id")
        version = self.stage.version("TxnOffsetCommit", at_least=3, at_most=4)
        await self.sent(self.stage.send("TxnOffsetCommit", body, version=version), None, body)

    async def end(self, move: Move) -> None:
        """EndTxn."""
        if self.producer is not None:
            producer, self.producer = self.producer, None
            with suppress(Blocked):
                await producer.end(committed=not move.get("abort"))

    # --- administrators -----------------------------------------------------------------------------------------

    def groups(self, move: Move) -> tuple[str, ...]:
        """The groups that a call is about."""
        return (self.stage.group, self.elsewhere) if move.get("groups") else (self.stage.group,)

    async def describe(self, move: Move) -> None:
        """DescribeGroups."""
        call = self.stage.describe(*self.groups(move), version=self.version("DescribeGroups", move))
        await self.sent(call, None, {})

    async def list_groups(self, move: Move) -> None:
        """ListGroups."""
        states, types = ([str(move.get(name))] if move.get(name) else [] for name in ("states", "types"))
        call = self.stage.list_groups(states, types, version=self.version("ListGroups", move))
        await self.sent(call, None, {})

    async def delete(self, move: Move) -> None:
        """DeleteGroups."""
        call = self.stage.delete(*self.groups(move), version=self.version("DeleteGroups", move))
        await self.sent(call, None, {})

    async def delete_offsets(self, move: Move) -> None:
        """OffsetDelete."""
        await self.sent(self.stage.delete_offsets([self.partition(move)]), None, {})

    # --- what happens -------------------------------------------------------------------------------------------

    async def again(self, move: Move) -> None:
        """A request that was sent before is sent once more, as it was."""
        actor, api = self.other(move.who), str(move.get("api", "JoinGroup"))
        known = actor.sent.get(api, [])
        if not known:
            return
        version, body = known[-min(1 + move.number("depth"), len(known))]
        if not body:
            return
        member = actor.member
        call = self.stage.send(api, body, version=version, member=member.label)
        if api == "JoinGroup":
            call.exchange.answer.add_done_callback(lambda answer: self.stage._joined(member, answer))
        await self.sent(call, actor, body)

    async def drop(self, move: Move) -> None:
        """The connection of an actor's latest request without an answer is cut."""
        actor, api = self.other(move.who), str(move.get("api"))
        for call in reversed(actor.calls):
            if not api or call.api == api:
                call.drop()
                break

    async def crash(self, move: Move) -> None:
        """The actor's process ends, and another one begins that knows nothing."""
        actor = self.other(move.who)
        for call in tuple(actor.calls):
            call.drop()
        member = actor.member
        actor.former = member.id or actor.former
        member.id, member.generation, member.protocol, member.leader, member.members = "", -1, None, None, ()

    async def wait(self, move: Move) -> None:
        """Let time pass: until just before (`side` -1) or for certain after a deadline, or so many milliseconds."""
        if move.get("for") == "answers":
            await self.until_joined()
            return
        side = move.number("side", 1)
        begun = self.began(move)
        if begun is None:
            pause = move.number("ms", self.stage.step)
        else:
            ahead = begun + self.length(move) - self.stage.clock
            pause = ahead - BEFORE_MS if side < 0 else ahead + 2 * self.stage.grace + self.stage.step
        if self.stage.description.clock != "virtual":
            pause = min(pause, max(self.patience, 0))
            self.patience -= max(pause, 0)
        await self.stage.sleep(max(pause, 0))

    async def until_joined(self) -> None:
        """Wait until nobody's JoinGroup is in flight, at most as long as a join phase can last."""
        last = max((self.other(number).member.rebalance for number in self.joining), default=0)
        limit = self.stage.settings.initial_rebalance_delay + last + 2 * self.stage.grace + self.stage.step
        joins = [call.exchange.answer for actor in self.actors for call in actor.calls if call.api == "JoinGroup"]
        if joins:
            begun = self.stage.clock
            await asyncio.wait(joins, timeout=min(limit, max(self.patience, self.stage.step)) / 1000)
            if self.stage.description.clock != "virtual":
                self.patience -= self.stage.clock - begun

    def began(self, move: Move) -> int | None:
        """When what is waited for began."""
        match move.get("for"):
            case "session":
                return self.other(move.who).contact
            case "rebalance":
                return min(self.joining.values(), default=self.joined)
            case "delay" | "new-member":
                return min(self.joining.values(), default=None)
            case "retention":
                return self.stage.clock
        return None

    def length(self, move: Move) -> int:
        """How long what is waited for lasts."""
        stage = self.stage
        match move.get("for"):
            case "session":
                return self.other(move.who).member.session
            case "rebalance":
                return max(actor.member.rebalance for actor in self.actors)
            case "new-member":
                return NEW_MEMBER_TIMEOUT_MS
            case "retention":
                return stage.settings.offsets_retention + stage.settings.retention_check_interval
        return stage.settings.initial_rebalance_delay

    async def restart(self, move: Move) -> None:
        """The target is killed and started again; `at-once` nobody waits until it is ready."""
        if move.get("at-once") and self.stage._restart is not None:
            await self.stage._restart()
        else:
            await self.stage.restart()


def scenario_of(schedule: Schedule) -> Scenario:
    """The schedule as a scenario, which gives evidence of nothing in particular."""
    needs = ("restart",) if any(move.kind == "restart" for move in schedule.moves) else ()
    return Scenario(schedule.name, (), Playing(schedule), needs)


@dataclass(frozen=True, slots=True)
class Playing:
    """Plays one schedule as a scenario is played."""

    schedule: Schedule

    async def __call__(self, stage: Stage) -> None:
        """Make every move."""
        player = Player(stage, self.schedule.cast)
        for move in self.schedule.moves:
            await player.perform(move)
