"""The stage of a scenario: its group, its members, and the requests they send.

A stage only sends and remembers; what the answers are worth is the judge's business. A mark says that an answer is
evidence of a requirement, and the judge weighs it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.adapters.target import Channel, Description, Exchange, Recorder
from fencepost.model.errors import error_name
from fencepost.model.wire.codec import fitted
from fencepost.traces.events import Body, Kind
from fencepost.traces.judge.explanation import errors_in
from fencepost.traces.judge.search import NOT_READY

CONSUMER, RANGE = "consumer", "range"
PATIENCE_MS = 10_000
"""How long a scenario waits for an answer that should have come; silence is never a verdict."""


READY_TRIES = 120
"""How often a target is asked whether it is ready again."""


class Blocked(Exception):
    """The scenario cannot go on; its remaining requirements stay undecided."""


class Unsupported(Exception):
    """The target does not offer what the scenario needs."""


def subscription(*topics: str) -> bytes:
    """Consumer metadata, version 0, for these topics and no user data."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


@dataclass(slots=True)
class Member:
    """An actor of the schedule: what it offers, and what it was last told. Times in milliseconds."""

    label: str
    protocols: tuple[tuple[str, bytes], ...]
    session: int
    rebalance: int
    instance: str | None = None
    protocol_type: str = CONSUMER
    id: str = ""
    generation: int = -1
    protocol: str | None = None
    leader: str | None = None
    members: tuple[Body, ...] = ()

    @property
    def leads(self) -> bool:
        """It was told that it is the leader."""
        return self.leader is not None and self.leader == self.id


@dataclass(slots=True)
class Call:
    """A request that was sent; awaiting it gives the body of the answer."""

    api: str
    version: int
    exchange: Exchange
    patience: int
    learn: Callable[[Body], None] = field(default=lambda body: None)

    def __await__(self) -> Generator[Any, None, Body]:
        return self._answered().__await__()

    async def _answered(self) -> Body:
        try:
            body = await asyncio.wait_for(asyncio.shield(self.exchange.answer), self.patience / 1000)
        except TimeoutError:
            raise Blocked(f"no answer to {self.api} within {self.patience} ms") from None
        if body is None:
            raise Blocked(f"the connection ended without an answer to {self.api}")
        return body

    @property
    def done(self) -> bool:
        """The answer is there, or will never come."""
        return self.exchange.answer.done()

    @property
    def body(self) -> Body:
        """The answer, which has to be there."""
        body = self.exchange.answer.result() if self.done else None
        if body is None:
            raise Blocked(f"no answer to {self.api} yet")
        return body

    @property
    def error(self) -> int:
        """The error code of the answer."""
        return int(self.body.get("error_code", 0))

    def drop(self) -> None:
        """Close the connection that carries this request."""
        self.exchange.drop()


@dataclass(frozen=True, slots=True)
class Mark:
    """An answer is evidence of a requirement, as far as `fields` go (all of them if empty); see `Stage.shows`."""

    requirement: str
    call: Call
    fields: tuple[str, ...]
    met: bool
    note: str


class Stage:
    """One scenario's group and what its members do. Every scenario has a group id of its own."""

    def __init__(
        self,
        description: Description,
        channel: Channel,
        recorder: Recorder,
        group: str,
        *,
        grace: int = 0,
        restart: Callable[..., Awaitable[None]] | None = None,
    ) -> None:
        self.grace = grace
        self.description = description
        self.settings = description.settings
        self.topic = description.topic
        self.group = group
        self.channel = channel
        self.recorder = recorder
        self.marks: list[Mark] = []
        self._restart = restart
        recorder.record(Kind.INTERNAL, "topics", 0, {"topics": {description.topic: 4}})

    # --- time ---------------------------------------------------------------------------------------------------

    @property
    def delay(self) -> int:
        """The initial rebalance delay."""
        return self.settings.initial_rebalance_delay

    @property
    def session(self) -> int:
        """A session timeout that is short and allowed, and longer than a round takes."""
        return max(self.settings.min_session_timeout, 1_500)

    @property
    def long_session(self) -> int:
        """A session timeout that outlasts the scenario: its member may be silent."""
        return min(max(self.session, 60_000), self.settings.max_session_timeout)

    @property
    def rebalance(self) -> int:
        """A rebalance timeout that is short, and long enough for members that come back."""
        return max(2 * self.session, 4_000)

    @property
    def step(self) -> int:
        """A while: long enough that what should happen at once has happened."""
        return 150

    @property
    def clock(self) -> int:
        """Milliseconds since the trace began."""
        return self.recorder.now()

    async def sleep(self, milliseconds: int) -> None:
        """Let time pass."""
        await asyncio.sleep(milliseconds / 1000)

    async def sleep_past(self, milliseconds: int) -> None:
        """Let a deadline so far ahead pass for certain: the judge grants the target its grace, twice over."""
        await self.sleep(milliseconds + 2 * self.grace + self.step)

    async def restart(self, **settings: int) -> None:
        """Kill the target without warning and wait until it is back and has loaded the group.

        `settings` change with it where the target can do that (capability `resize`).
        """
        if self._restart is None:
            raise Unsupported("restart")
        await self._restart(**settings)
        await self.until_ready()

    async def until_ready(self) -> None:
        """Wait until the group's coordinator answers for it again."""
        for _ in range(READY_TRIES):
            probe = self.fetch()
            await asyncio.wait([probe.exchange.answer], timeout=probe.patience / 1000)
            if probe.done and probe.exchange.answer.result() and not errors_in(probe.body) & NOT_READY:
                return
            await self.sleep(250)
        raise Blocked("the coordinator was not ready again in time")

    # --- what the target offers ---------------------------------------------------------------------------------

    def version(self, api: str, at_least: int = 0, at_most: int = 99) -> int:
        """The highest version within bounds that the target and the kit know."""
        lowest, highest = self.description.versions.get(api, (0, -1))
        best = min(highest, at_most)
        if best < max(lowest, at_least):
            wanted = f"{at_least} to {at_most}" if at_most < 99 else f"{at_least} or later"
            raise Unsupported(f"{api} version {wanted}" if highest >= 0 else api)
        return best

    def need(self, condition: bool, what: str) -> None:
        """The scenario cannot go on unless this holds."""
        if not condition:
            raise Blocked(what)

    # --- sending ------------------------------------------------------------------------------------------------

    def send(
        self,
        api: str,
        body: Body,
        *,
        version: int | None = None,
        member: str = "",
        client_id: str = "fencepost",
        broker: int | None = None,
        patience: int = PATIENCE_MS,
    ) -> Call:
        """Send any request, in the highest version unless one is given; fields that it does not have are left out."""
        number = self.version(api) if version is None else self.version(api, version, version)
        carried = fitted(f"{api}Request", number, body)
        exchange = self.channel.send(api, number, carried, member=member, client_id=client_id, broker=broker)
        return Call(api, number, exchange, patience)

    def shows(self, requirement: str, call: Call, *fields: str, met: bool = True, note: str = "") -> None:
        """Mark the answer of a call as evidence of a requirement.

        The judge passes the evidence if the model allows the answer. `fields` limits it to differences in these
        fields of `fencepost.model.comparison` ("error", "generation", "members", "time", ...). `met` says whether the
        schedule got to the point the requirement is about; if not, it counts as not observed, never as a failure.
        """
        self.marks.append(Mark(requirement, call, fields, met, note))

    def write_marks(self) -> None:
        """Put the marks into the trace, behind the answers they speak of."""
        for mark in self.marks:
            request = mark.call.exchange.request
            if request is not None:
                body = {
                    "requirement": mark.requirement,
                    "fields": list(mark.fields),
                    "met": mark.met,
                    "note": mark.note,
                }
                self.recorder.record(Kind.INTERNAL, "evidence", 0, body, of=request.sequence)

    # --- members ------------------------------------------------------------------------------------------------

    def member(
        self,
        label: str,
        *protocols: tuple[str, bytes] | str,
        session: int | None = None,
        rebalance: int | None = None,
        instance: str | None = None,
        protocol_type: str = CONSUMER,
    ) -> Member:
        """A new actor; it offers `range` with a subscription to the kit's topic unless protocols are given."""
        offered = tuple(
            (each, self.metadata(label)) if isinstance(each, str) else each for each in protocols or (RANGE,)
        )
        length = self.session if session is None else session
        wait = max(2 * length, self.rebalance) if rebalance is None else rebalance
        name = f"{instance}-{self.group}" if instance else None
        return Member(label, offered, length, wait, name, protocol_type)

    def silent(
        self,
        label: str,
        *protocols: tuple[str, bytes] | str,
        instance: str | None = None,
        protocol_type: str = CONSUMER,
    ) -> Member:
        """A new actor that need not heartbeat, in rounds that wait no longer for it than for others."""
        return self.member(
            label,
            *protocols,
            session=self.long_session,
            rebalance=self.rebalance,
            instance=instance,
            protocol_type=protocol_type,
        )

    def metadata(self, label: str, *topics: str) -> bytes:
        """A subscription that tells the members apart by their user data."""
        return subscription(*(topics or (self.topic,)))[:-4] + len(label).to_bytes(4, "big") + label.encode()

    def join(self, member: Member, *, version: int | None = None, **changes: Any) -> Call:
        """Send JoinGroup for a member; `changes` override fields of the body. The member learns from a success."""
        number = self.version("JoinGroup") if version is None else version
        body = {
            "group_id": self.group,
            "session_timeout_ms": member.session,
            "rebalance_timeout_ms": member.rebalance,
            "member_id": member.id,
            "group_instance_id": member.instance,
            "protocol_type": member.protocol_type,
            "protocols": [{"name": name, "metadata": metadata} for name, metadata in member.protocols],
            "reason": None,
        }
        patience = PATIENCE_MS + member.rebalance + self.delay
        call = self.send("JoinGroup", body | changes, version=number, member=member.label, patience=patience)
        call.exchange.answer.add_done_callback(lambda answer: self._joined(member, answer))
        return call

    def join_changed(self, member: Member, label: str = "changed") -> Call:
        """Send JoinGroup with metadata changed for good: it begins a rebalance, whoever sends it (JOIN-30, JOIN-33)."""
        member.protocols = tuple((name, self.metadata(label)) for name, _ in member.protocols)
        return self.join(member)

    @staticmethod
    def _joined(member: Member, answer: "asyncio.Future[Body | None]") -> None:
        """Learn from a JoinGroup answer: the id from a 79, the rest from a success."""
        body = None if answer.cancelled() else answer.result()
        if body is None:
            return
        if body.get("error_code") == 79:
            member.id = body.get("member_id") or ""
        elif body.get("error_code") == 0:
            member.id = body.get("member_id") or member.id
            member.generation = body.get("generation_id", -1)
            member.protocol = body.get("protocol_name")
            member.leader = body.get("leader")
            member.members = tuple(body.get("members") or ())

    def heir(self, member: Member) -> Member:
        """Another actor that claims the instance id of a static member, as its process does after a crash."""
        return replace(member, label=f"{member.label}'", id="", generation=-1, protocol=None, leader=None, members=())

    async def enter(self, member: Member, *, version: int | None = None) -> Call:
        """Join as a new member, asking for an id first where the version needs it; returns the JoinGroup to await."""
        number = self.version("JoinGroup") if version is None else version
        member.id = ""
        first = self.join(member, version=number)
        if number < 4 or member.instance is not None:
            return first
        body = await first
        if body["error_code"] != 79:
            if body["error_code"] == 0:
                return first
            raise Blocked(f"JoinGroup got {error_name(body['error_code'])} instead of MEMBER_ID_REQUIRED")
        return self.join(member, version=number)

    def sync(
        self,
        member: Member,
        assignments: Mapping[str, bytes] | Sequence[tuple[str, bytes]] = (),
        *,
        version: int | None = None,
        **changes: Any,
    ) -> Call:
        """Send SyncGroup for a member, with assignments by member id."""
        pairs = assignments.items() if isinstance(assignments, Mapping) else assignments
        body = {
            "group_id": self.group,
            "generation_id": member.generation,
            "member_id": member.id,
            "group_instance_id": member.instance,
            "protocol_type": member.protocol_type,
            "protocol_name": member.protocol,
            "assignments": [{"member_id": each, "assignment": given} for each, given in pairs],
        }
        patience = PATIENCE_MS + member.rebalance
        return self.send("SyncGroup", body | changes, version=version, member=member.label, patience=patience)

    def heartbeat(self, member: Member, *, version: int | None = None, **changes: Any) -> Call:
        """Send Heartbeat for a member."""
        body = {
            "group_id": self.group,
            "generation_id": member.generation,
            "member_id": member.id,
            "group_instance_id": member.instance,
        }
        return self.send("Heartbeat", body | changes, version=version, member=member.label)

    def leave(self, *members: Member | Body, version: int | None = None, **changes: Any) -> Call:
        """Send LeaveGroup for members, or for entries given as bodies."""
        number = self.version("LeaveGroup") if version is None else version
        entries = [
            {"member_id": one.id, "group_instance_id": one.instance, "reason": None} if isinstance(one, Member) else one
            for one in members
        ]
        single = entries[0]["member_id"] if entries else ""
        body = {"group_id": self.group, "member_id": single, "members": entries} | changes
        label = members[0].label if members and isinstance(members[0], Member) else ""
        return self.send(
            "LeaveGroup", without(body, "member_id" if number >= 3 else "members"), version=number, member=label
        )

    # --- offsets ------------------------------------------------------------------------------------------------

    def commit(
        self,
        member: Member | None,
        offsets: Mapping[tuple[str, int] | int, int | Body],
        *,
        version: int | None = None,
        **changes: Any,
    ) -> Call:
        """Send OffsetCommit, for a member or (None) for nobody. Keys are partitions of the kit's topic or
        (topic, partition); values are offsets or bodies of a partition."""
        number = self.version("OffsetCommit", at_most=9) if version is None else version
        body = {
            "group_id": self.group,
            "generation_id_or_member_epoch": member.generation if member else -1,
            "member_id": member.id if member else "",
            "group_instance_id": member.instance if member else None,
            "retention_time_ms": -1,
            "topics": self.partitions(
                {
                    where: value if isinstance(value, Mapping) else {"committed_offset": value}
                    for where, value in offsets.items()
                },
                {"committed_leader_epoch": -1, "committed_metadata": ""},
            ),
        }
        return self.send("OffsetCommit", body | changes, version=number, member=member.label if member else "")

    def partitions(self, rows: Mapping[tuple[str, int] | int, Body], defaults: Body) -> list[Body]:
        """Topics with their partitions, as messages hold them."""
        topics: dict[str, list[Body]] = {}
        for where, row in rows.items():
            topic, index = (self.topic, where) if isinstance(where, int) else where
            topics.setdefault(topic, []).append({"partition_index": index, **defaults, **row})
        return [{"name": topic, "partitions": found} for topic, found in topics.items()]

    def fetch(
        self,
        partitions: Iterable[tuple[str, int] | int] | None = (0,),
        *,
        groups: Sequence[str] | None = None,
        stable: bool = False,
        version: int | None = None,
        **changes: Any,
    ) -> Call:
        """Send OffsetFetch for partitions (None: all), of this group or of several (v8)."""
        number = self.version("OffsetFetch", at_most=9) if version is None else version
        topics: list[Body] | None = None
        if partitions is not None:
            found: dict[str, list[int]] = {}
            for where in partitions:
                topic, index = (self.topic, where) if isinstance(where, int) else where
                found.setdefault(topic, []).append(index)
            topics = [{"name": topic, "partition_indexes": indexes} for topic, indexes in found.items()]
        asked = groups if groups is not None else [self.group]
        if number >= 8:
            rows = [{"group_id": group, "topics": topics} for group in asked]
            body: dict[str, Any] = {"groups": rows, "require_stable": stable}
        else:
            body = {"group_id": asked[0], "topics": topics, "require_stable": stable}
        return self.send("OffsetFetch", body | changes, version=number)

    # --- admin --------------------------------------------------------------------------------------------------

    def describe(self, *groups: str, version: int | None = None, **changes: Any) -> Call:
        """Send DescribeGroups for this group or others; below v6 unless a version is given."""
        number = self.version("DescribeGroups", at_most=5) if version is None else version
        body = {"groups": list(groups) or [self.group], "include_authorized_operations": False}
        return self.send("DescribeGroups", body | changes, version=number)

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = (), *, version: int | None = None) -> Call:
        """Send ListGroups."""
        body = {"states_filter": list(states), "types_filter": list(types)}
        return self.send("ListGroups", body, version=version)

    def delete(self, *groups: str, version: int | None = None) -> Call:
        """Send DeleteGroups for this group or others."""
        return self.send("DeleteGroups", {"groups_names": list(groups) or [self.group]}, version=version)

    def delete_offsets(self, partitions: Iterable[tuple[str, int] | int], **changes: Any) -> Call:
        """Send OffsetDelete."""
        topics = self.partitions({where: {} for where in partitions}, {})
        return self.send("OffsetDelete", {"group_id": self.group, "topics": topics} | changes)

    # --- rounds -------------------------------------------------------------------------------------------------

    async def completing(self, *members: Member) -> tuple[Member, ...]:
        """Bring new members into one generation that waits for SyncGroup; the leader comes first."""
        calls = await asyncio.gather(*(self.enter(member) for member in members))
        for _ in range(3 * len(members)):
            if all(call.done for call in calls) and len({member.generation for member in members}) == 1:
                break
            waiting = [call.exchange.answer for call in calls if not call.done]
            if waiting:
                await asyncio.wait(waiting, timeout=(self.delay + 500) / 1000, return_when=asyncio.FIRST_COMPLETED)
            await self.sleep(self.step)
            behind = [index for index, call in enumerate(calls) if call.done and self.is_behind(members, index, calls)]
            for index in behind:
                calls[index] = self.join(members[index])
        for call in calls:
            body = await call
            self.need(body["error_code"] == 0, f"JoinGroup got {error_name(body['error_code'])} while forming a group")
        self.need(len({member.generation for member in members}) == 1, "the members did not reach one generation")
        self.need(sum(member.leads for member in members) == 1, "not exactly one member was told that it leads")
        return tuple(sorted(members, key=lambda member: not member.leads))

    @staticmethod
    def is_behind(members: Sequence[Member], index: int, calls: Sequence[Call]) -> bool:
        """A newer round has begun without this member."""
        newest = max(member.generation for member in members)
        return members[index].generation < newest or any(not call.done for call in calls)

    async def stable(self, *members: Member, plan: Mapping[str, bytes] | None = None) -> tuple[Member, ...]:
        """Bring new members into one Stable generation; the leader comes first. Assignments are the labels."""
        ordered = await self.completing(*members)
        await self.settle(*ordered, plan=plan)
        return ordered

    async def settle(self, leader: Member, *followers: Member, plan: Mapping[str, bytes] | None = None) -> None:
        """All members of a completed join phase sync, the leader last; assignments are the labels but for a plan."""
        given = plan if plan is not None else {one.id: one.label.encode() for one in (leader, *followers)}
        calls = [self.sync(follower) for follower in followers]
        if followers:
            await self.sleep(self.step)
        calls.append(self.sync(leader, given))
        for call in calls:
            body = await call
            self.need(body["error_code"] == 0, f"SyncGroup got {error_name(body['error_code'])}")

    async def regroup(self, leader: Member, *followers: Member) -> list[Call]:
        """A further join phase of a Stable group, begun by its leader; the answered calls in the order given."""
        calls = [self.join(leader)]
        await self.sleep(self.step)
        calls += [self.join(follower) for follower in followers]
        for call in calls:
            await call
        return calls

    async def alive(self, members: Iterable[Member], milliseconds: int) -> None:
        """Let time pass while members heartbeat often enough to stay."""
        left = milliseconds
        while left > 0:
            pause = min(left, max(100, self.session // 4))
            await self.sleep(pause)
            left -= pause
            for call in [self.heartbeat(member) for member in members]:
                await call


def without(body: Body, name: str) -> dict[str, Any]:
    """A body without one field."""
    return {key: value for key, value in body.items() if key != name}
