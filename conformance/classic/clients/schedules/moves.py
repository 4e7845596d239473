"""The kinds of moves in schedules for clients, and how each is made.

A fault is a cue: it happens to the next requests to an API, whenever these come. Everything else happens at once. No
move waits for the client, so that any sequence of moves can be played.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.client.cluster import (
    Fault,
    InterceptedRequest,
    ScriptedCluster,
    delay,
    double,
    edit,
    hang_up,
    lose,
    refusal_of,
    refuse,
)
from fencepost.adapters.client.program import ScriptedMember
from fencepost.conformance.clients.stage import ClientStage
from fencepost.conformance.run.schedule import Move, actor_label
from fencepost.model.assignors.consumer_protocol import ConsumerProtocolError, decode_assignment, decode_subscription
from fencepost.model.assignors.group import ClusterTopics, GroupMember
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body
from fencepost.traces.events import Kind

# -- scripted members -------------------------------------------------------------------------------------------------

HEARTBEAT_S = 0.3
SESSION_MS = 3_000
"""That of scripted members: a silent one is gone soon."""
REBALANCE_MS = 6_000


def partition_counts(cluster: ScriptedCluster) -> dict[str, int]:
    """The topics of the cluster with their numbers of partitions."""
    counts: dict[str, int] = {}
    for event in cluster.events:
        if event.kind is Kind.INTERNAL and event.api == "topics":
            counts |= event.body["topics"]
    return counts


class GroupParticipant:
    """A scripted member with a life of its own. `stalls` has it join the next time and never sync."""

    def __init__(self, stage: ClientStage, label: str) -> None:
        self.stage = stage
        self.member = ScriptedMember(stage.cluster, label, stage.place.group, [stage.place.topic], offered(stage))
        self.stalls = False
        self.life: asyncio.Task[Any] | None = None

    @property
    def is_alive(self) -> bool:
        """Whether it takes part, or waits for something."""
        return self.life is not None and not self.life.done()

    def start(self, *, stalls: bool = False) -> None:
        """Take part from now on, or join and fall silent before SyncGroup."""
        self.stalls = stalls
        if not self.is_alive:
            self.life = self.stage.start_task(self._live())

    def vanish(self) -> None:
        """Fall silent."""
        if self.life is not None:
            self.life.cancel()

    async def leave(self) -> None:
        """Leave the group."""
        self.vanish()
        if self.member.id:
            await self.member.leave()
        self._forget()

    def _forget(self) -> None:
        self.member.id, self.member.generation, self.member.owned = "", -1, ()

    async def _live(self) -> None:
        while True:
            response = await self.member.join(SESSION_MS, REBALANCE_MS)
            if response["error_code"] == Error.UNKNOWN_MEMBER_ID:
                self._forget()
            if response["error_code"] == Error.NONE and self.stalls:
                return
            if response["error_code"] == Error.NONE and await self._sync(response):
                await self._heartbeat()
            await asyncio.sleep(HEARTBEAT_S)

    async def _sync(self, response: Body) -> bool:
        """SyncGroup; whether it brought an assignment."""
        plan = plan_for(response, partition_counts(self.stage.cluster)) if self.member.leads else None
        synced = await self.member.sync(plan)
        if synced["error_code"]:
            if synced["error_code"] != Error.REBALANCE_IN_PROGRESS:
                self._forget()
            return False
        before = self.member.owned
        assigned = decode_assignment(synced["assignment"])
        is_cooperative = ASSIGNORS[str(response["protocol_name"])].is_cooperative
        self.member.owned = assigned if is_cooperative else ()
        return not is_cooperative or set(before) <= set(assigned)  # who gives something up joins again

    async def _heartbeat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            error = await self.member.heartbeat()
            if error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
                self._forget()
            if error != Error.NONE:
                return


def offered(stage: ClientStage) -> tuple[str, ...]:
    """The protocols of the client that a scripted member can plan for; all of them if there is none."""
    known = tuple(name for name in stage.facts.protocols if name in ASSIGNORS)
    return known or stage.facts.protocols


def plan_for(response: Body, partitions: dict[str, int]) -> dict[str, tuple[tuple[str, int], ...]]:
    """The plan of a leader, by the assignor that its JoinGroup response names; of members that nobody understands, none
    gets anything."""
    members = []
    for row in response["members"]:
        try:
            subscription = decode_subscription(row["metadata"])
        except ConsumerProtocolError:
            continue
        members.append(GroupMember(row["member_id"], subscription, row.get("group_instance_id")))
    assignor = ASSIGNORS.get(str(response["protocol_name"]))
    return {} if assignor is None else dict(assignor.assign(members, ClusterTopics(partitions)))


# -- the kinds of moves in schedules for clients ----------------------------------------------------------------------

MAX_PARTITIONS = 12


@dataclass(slots=True)
class ScheduleUnderWay:
    """A schedule under way: the stage, and the scripted members by their numbers."""

    stage: ClientStage
    participants: dict[int, GroupParticipant] = field(default_factory=dict)

    def participant(self, who: int) -> GroupParticipant:
        """The scripted member with a number."""
        if who not in self.participants:
            self.participants[who] = GroupParticipant(self.stage, actor_label(max(who, 1)))
        return self.participants[who]

    def command(self, name: str, **fields: Any) -> None:
        """Have the application do something, in its turn; a client without one is left alone."""
        running = self.stage.running
        if running is not None and running.application is not None and not running.application.is_closing:
            self.stage.start_task(running.application.do(name, **fields))


Make = Callable[[ScheduleUnderWay, Move], Awaitable[None]]
KINDS: dict[str, Make] = {}
"""How each kind of move is made."""


def kind(name: str) -> Callable[[Make], Make]:
    """Register how a kind of move is made."""

    def register(make: Make) -> Make:
        KINDS[name] = make
        return make

    return register


@kind("start")
async def start(play: ScheduleUnderWay, move: Move) -> None:
    """The client starts, and asks for the coordinator: until then nothing can happen to it."""
    if play.stage.running is None:
        await play.stage.start()
    await play.stage.request("FindCoordinator", seconds=play.stage.start_seconds)


@kind("wait")
async def wait(play: ScheduleUnderWay, move: Move) -> None:
    """Time passes."""
    await play.stage.watch(move.number("ms", 300) / 1000)


# -- faults ---------------------------------------------------------------------------------------------------------


def add_cue(play: ScheduleUnderWay, move: Move, fault: Fault, note: str, default_api: str = "Heartbeat") -> None:
    """Have a fault happen to the next requests of the client to an API."""
    api = str(move.get("api", default_api))
    play.stage.play(api, fault, note.format(api), times=move.number("times", 1))


@kind("refuse")
async def refuse_next(play: ScheduleUnderWay, move: Move) -> None:
    """The next requests to an API get an error, which may be late."""
    error = Error[str(move.get("error", Error.NOT_COORDINATOR.name))]
    late = move.number("late", 0)
    if not late:
        add_cue(play, move, refuse(error), f"the next {{}} gets {error.name}")
        return

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        await asyncio.sleep(late / 1000)
        return refusal_of(intercepted.request, error)

    add_cue(play, move, respond, f"the next {{}} gets {error.name} after {late} ms")


@kind("delay")
async def delay_next(play: ScheduleUnderWay, move: Move) -> None:
    """The next response to an API is late."""
    milliseconds = move.number("ms", 1_000)
    add_cue(play, move, delay(milliseconds / 1000), f"the response to the next {{}} takes {milliseconds} ms")


@kind("lose")
async def lose_next(play: ScheduleUnderWay, move: Move) -> None:
    """The next response to an API never comes, nor anything else on its connection."""
    add_cue(play, move, lose(), "nothing more comes on the connection of the next {}")


@kind("double")
async def double_next(play: ScheduleUnderWay, move: Move) -> None:
    """The next response to an API comes twice."""
    add_cue(play, move, double(), "the response to the next {} comes twice")


@kind("hang-up")
async def hang_up_next(play: ScheduleUnderWay, move: Move) -> None:
    """The connection of the next request to an API is closed, before or after that was handled."""
    is_handled = bool(move.number("handled", 0))
    when = "after it was handled" if is_handled else "unhandled"
    add_cue(play, move, hang_up(after_handling=is_handled), f"the connection of the next {{}} is closed, {when}")


@kind("unstable")
async def make_unstable(play: ScheduleUnderWay, move: Move) -> None:
    """The offsets of the next OffsetFetch are unstable."""
    fault = edit(with_partition_error(Error.UNSTABLE_OFFSET_COMMIT))
    add_cue(play, move, fault, "the next {} gets UNSTABLE_OFFSET_COMMIT", "OffsetFetch")


def with_partition_error(error: Error) -> Callable[[Body], Body]:
    """Put an error into each partition of a response."""

    def change(value: Any) -> Any:
        if isinstance(value, Mapping):
            row = {name: change(each) for name, each in value.items()}
            return row | {"error_code": error} if "partition_index" in row else row
        return [change(each) for each in value] if isinstance(value, list | tuple) else value

    return change


@kind("evict")
async def evict(play: ScheduleUnderWay, move: Move) -> None:
    """The coordinator forgets the client when its next request to an API comes."""
    play.stage.evict(str(move.get("api", "Heartbeat")))


# -- the cluster ----------------------------------------------------------------------------------------------------


@kind("forget")
async def forget(play: ScheduleUnderWay, move: Move) -> None:
    """The coordinator forgets the client now."""
    cluster = play.stage.cluster
    sent = (event.body for event in reversed(cluster.events) if event.connection and event.kind is Kind.REQUEST)
    member = next((str(body["member_id"]) for body in sent if body.get("member_id")), "")
    if member:
        cluster.annotate("script", {"step": "the coordinator forgets the member"})
        await play.stage.remove(member)


@kind("cut")
async def cut(play: ScheduleUnderWay, move: Move) -> None:
    """Every connection of the client is closed."""
    play.stage.cluster.hang_up()


@kind("move")
async def move_group(play: ScheduleUnderWay, move: Move) -> None:
    """The other node coordinates from now on."""
    await play.stage.cluster.move()


@kind("grow")
async def grow(play: ScheduleUnderWay, move: Move) -> None:
    """The topic gets another partition, or several."""
    topic, cluster = play.stage.place.topic, play.stage.cluster
    counts = partition_counts(cluster)
    if topic in counts:
        await cluster.grow_topic(topic, min(counts[topic] + move.number("by", 1), MAX_PARTITIONS))


@kind("produce")
async def produce(play: ScheduleUnderWay, move: Move) -> None:
    """Records are written to every partition."""
    for topic, count in partition_counts(play.stage.cluster).items():
        for number in range(count):
            await play.stage.cluster.produce(topic, number, list(map(str, range(move.number("records", 5)))))


# -- other members --------------------------------------------------------------------------------------------------


@kind("join")
async def join(play: ScheduleUnderWay, move: Move) -> None:
    """A scripted member takes part from now on; it may fall silent between JoinGroup and SyncGroup."""
    play.participant(move.who).start(stalls=bool(move.number("stalls", 0)))


@kind("leave")
async def leave(play: ScheduleUnderWay, move: Move) -> None:
    """A scripted member leaves the group."""
    await play.participant(move.who).leave()


@kind("vanish")
async def vanish(play: ScheduleUnderWay, move: Move) -> None:
    """A scripted member falls silent."""
    play.participant(move.who).vanish()


# -- the application ------------------------------------------------------------------------------------------------


@kind("commit")
async def commit(play: ScheduleUnderWay, move: Move) -> None:
    """The application commits."""
    play.command("commit")


@kind("pause")
async def pause(play: ScheduleUnderWay, move: Move) -> None:
    """The application pauses a partition that it owns."""
    await with_partition(play, move, lambda partition: play.command("pause", partitions=[partition]))


@kind("resume")
async def resume(play: ScheduleUnderWay, move: Move) -> None:
    """The application resumes a partition that it owns."""
    await with_partition(play, move, lambda partition: play.command("resume", partitions=[partition]))


@kind("seek")
async def seek(play: ScheduleUnderWay, move: Move) -> None:
    """The application sets a position."""
    offset = move.number("offset", 3)
    await with_partition(
        play, move, lambda partition: play.command("seek", topic=partition[0], partition=partition[1], offset=offset)
    )


async def with_partition(play: ScheduleUnderWay, move: Move, act: Callable[[list[Any]], None]) -> None:
    """Do something with one of the partitions that the application has, if it has any."""
    owned = owned_partitions(play.stage)
    if owned:
        act(owned[move.number("partition", 0) % len(owned)])


def owned_partitions(stage: ClientStage) -> list[list[Any]]:
    """The partitions of the application, as its last callback told them."""
    told = (event for event in reversed(stage.cluster.events) if event.kind is Kind.CALLBACK)
    last = next(told, None)
    if last is None or last.api != "assigned":
        return []
    return [list(each) for each in last.body.get("assignment") or last.body["partitions"]]


@kind("idle")
async def idle(play: ScheduleUnderWay, move: Move) -> None:
    """The application stops polling."""
    running = play.stage.running
    if running is not None and running.application is not None:
        running.application.stop_polling()


@kind("poll")
async def poll(play: ScheduleUnderWay, move: Move) -> None:
    """The application polls again."""
    running = play.stage.running
    if running is not None and running.application is not None:
        running.application.go_on_polling()


@kind("subscribe")
async def subscribe(play: ScheduleUnderWay, move: Move) -> None:
    """The application subscribes to its topic, to another one, or to both."""
    topic = play.stage.place.topic
    other = f"{topic}-other"
    if other not in partition_counts(play.stage.cluster):
        await play.stage.cluster.create_topic(other, 2, 5)
    play.command("subscribe", topics=(([topic], [other], [topic, other])[move.number("topics", 0) % 3]))
