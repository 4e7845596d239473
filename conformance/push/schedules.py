"""Moves of consumers, and how a scenario plays them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from fencepost.conformance.push.context import KitConsumer, PushContext
from fencepost.conformance.push.scenarios import playable
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.requests import Blocked
from fencepost.conformance.run.schedule import WAIT, Move, RandomMoves, Schedule, ScheduleScope
from fencepost.conformance.subject import Scenario
from fencepost.model.push.group import Interest

CONSUMERS = range(4)
SHORT = (("short", 1),)
"""The option of a consumer that joins with a short session timeout."""
CONSUMER_MOVES = (
    *(Move("join", who) for who in CONSUMERS),
    *(Move("join", who, SHORT) for who in CONSUMERS),
    Move("join-wild", 2),
    Move("join-unwelcome", 3),
    *(Move(kind, who) for kind in ("crash", "pause", "pause-at-stop", "pause-at-start") for who in CONSUMERS),
    *(Move("lag", who) for who in CONSUMERS),
    *(Move(kind, who) for kind in ("resume", "resume", "step", "consume") for who in CONSUMERS),
    *(Move(WAIT, 0, (("ms", milliseconds),)) for milliseconds in (30, 100, 300, 700, 1_200, 2_500)),
)
TARGET_MOVES = (Move("grow"), Move("grow"), Move("new-topic"), Move("kill-coordinator"), Move("expire-session"))
LOOK_MS = 10
"""How often a consumer that is to lag looks whether its Stop has come."""
LAST_WAIT_MS = 4_000
"""How long the consumers go on once all moves are made."""


@dataclass(frozen=True, slots=True)
class PushSchedules(RandomMoves):
    """Consumers of one group, on a target that is reached by its wire alone."""

    moves: ClassVar[tuple[Move, ...]] = CONSUMER_MOVES
    wait_ms: ClassVar[int] = 400

    def scenario_of(self, schedule: Schedule) -> Scenario:
        """A scenario that makes the moves, lets every consumer go on, and waits for what is overdue."""

        async def play(context: PushContext) -> None:
            memory: dict[int, KitConsumer] = {}
            for move in schedule.moves:
                if move.kind == WAIT:
                    await context.sleep(move.number("ms", self.wait_ms))
                else:
                    await make_move(context, move, memory)
            for consumer in memory.values():
                consumer.resume()
            await context.sleep(LAST_WAIT_MS)

        return Scenario(schedule.name, (), playable(play))

    async def play_move(self, context: ScenarioContext, move: Move, memory: dict[int, Any]) -> None:
        """Raises NotImplementedError: the moves of a schedule share one context."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class BundledPushSchedules(PushSchedules):
    """As `PushSchedules`, with what can be done to a target in this process."""

    moves: ClassVar[tuple[Move, ...]] = (*CONSUMER_MOVES, *TARGET_MOVES)


async def make_move(context: PushContext, move: Move, memory: dict[int, KitConsumer]) -> None:
    """Make one move; a consumer that has not joined makes none."""
    consumer = memory.get(move.who)
    if move.kind in ("join", "join-wild"):
        timeout = context.short_timeout if move.number("short") else context.long_timeout
        interest = Interest(pattern=f"{context.topic}.*") if move.kind == "join-wild" else None
        made = context.consumer("abcd"[move.who], timeout, interest, auto_commit=move.who % 2 == 1)
        try:
            refused = await made.register()
        except Blocked:
            return
        if not refused:
            made.consumes = 2
            memory[move.who] = made
    elif move.kind == "join-unwelcome":
        await context.consumer("e", context.limits.get("min_session_timeout", 1)).register()
    elif move.kind == "grow":
        context.add_partition()
    elif move.kind == "new-topic":
        context.add_partition(f"{context.topic}-other")
    elif move.kind == "kill-coordinator":
        if len(context.hooks.brokers) > 1:
            await context.hooks.kill_coordinator()
    elif move.kind == "expire-session":
        await context.hooks.expire_session()
    elif consumer is not None and move.kind == "lag":
        context.start(lag_behind(context, consumer))
    elif consumer is not None:
        move_consumer(consumer, move.kind)


async def lag_behind(context: PushContext, consumer: KitConsumer) -> None:
    """Answer the next Stop once its attempt is over and the next one has begun, and later on the one of that."""
    wait = context.limits.get("response_timeout_ms", 1_000)
    consumer.pauses_at = "Stop"
    while not consumer.is_paused:
        await context.sleep(LOOK_MS)
    await context.sleep(wait + wait // 4)
    while consumer.waiting and consumer.waiting[0].api != "Stop":
        consumer.handle_next()
    if consumer.waiting:
        consumer.handle_next()
    await context.sleep(wait // 4)
    consumer.resume()


def move_consumer(consumer: KitConsumer, kind: str) -> None:
    """Make a move of a consumer that has joined."""
    if kind == "crash":
        consumer.crash()
    elif kind == "pause":
        consumer.is_paused = True
    elif kind in ("pause-at-stop", "pause-at-start"):
        consumer.pauses_at = "Stop" if kind == "pause-at-stop" else "Start"
    elif kind == "resume":
        consumer.resume()
    elif kind == "step" and consumer.waiting:
        consumer.handle_next()
    elif kind == "consume":
        consumer.consume(3)


def make_push_schedules(scope: ScheduleScope) -> PushSchedules:
    """The schedules for a target in this process, or for one over the network."""
    return BundledPushSchedules() if scope.virtual_time else PushSchedules()
