"""Random schedules for clients of the classic protocol, as the schedule engine sees them, and how they are drawn:
interactions of a few moves each, of several families.

An interaction puts the client into a situation on purpose: an error where it is asked something, a response that comes
late across a rebalance, a leader that is gone when its plan is due. Waits of random length lie between interactions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from fencepost.conformance.classic.clients.schedules.moves import KINDS, ScheduleUnderWay
from fencepost.conformance.clients.protocol import SCHEDULE, schedule_body
from fencepost.conformance.clients.stage import ClientStage
from fencepost.conformance.run.schedule import GeneratedSchedule, Move, Schedule, ScheduleProtocol, Value
from fencepost.conformance.subject import Scenario
from fencepost.model.errors import Error

# -- drawing ----------------------------------------------------------------------------------------------------------

GROUP_APIS = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "FindCoordinator")
MOVED = (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE)
LOADING = Error.COORDINATOR_LOAD_IN_PROGRESS
THROWN_OUT = (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID)
MILD_ERRORS: dict[str, tuple[Error, ...]] = {
    "FindCoordinator": (Error.COORDINATOR_NOT_AVAILABLE,),
    "JoinGroup": (*MOVED, LOADING, Error.REBALANCE_IN_PROGRESS, Error.UNKNOWN_MEMBER_ID),
    "SyncGroup": (*MOVED, Error.REBALANCE_IN_PROGRESS, *THROWN_OUT),
    "Heartbeat": (*MOVED, Error.REBALANCE_IN_PROGRESS, *THROWN_OUT),
    "OffsetCommit": (*MOVED, LOADING, Error.REBALANCE_IN_PROGRESS, *THROWN_OUT, Error.REQUEST_TIMED_OUT),
    "OffsetFetch": (*MOVED, LOADING),
}
"""The errors that no client tells its application of as fatal, by API."""
HARD_ERRORS: dict[str, tuple[Error, ...]] = {
    "FindCoordinator": (Error.GROUP_AUTHORIZATION_FAILED, Error.INVALID_GROUP_ID),
    "JoinGroup": (
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_SESSION_TIMEOUT,
        Error.INVALID_GROUP_ID,
        Error.FENCED_INSTANCE_ID,
        Error.UNKNOWN_SERVER_ERROR,
    ),
    "SyncGroup": (
        LOADING,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.FENCED_INSTANCE_ID,
        Error.UNKNOWN_SERVER_ERROR,
    ),
    "Heartbeat": (LOADING, Error.GROUP_AUTHORIZATION_FAILED, Error.FENCED_INSTANCE_ID, Error.UNKNOWN_SERVER_ERROR),
    "OffsetCommit": (
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.FENCED_INSTANCE_ID,
        Error.OFFSET_METADATA_TOO_LARGE,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_SERVER_ERROR,
    ),
    "OffsetFetch": (Error.GROUP_AUTHORIZATION_FAILED, Error.UNKNOWN_SERVER_ERROR),
}
"""The errors that an application may be told of, by API: only one that is driven lives on."""
SHORT_WAITS_MS = (0, 0, 100, 300, 600, 1_000)
LONG_WAITS_MS = (1_500, 2_500, 4_000)
LATE_MS = (300, 1_200, 2_500)
MAX_INTERACTIONS = 7


@dataclass(slots=True)
class ScheduleDrawing:
    """A schedule that is drawn. An application that `is_driven` takes part, and survives every error."""

    random: Random
    is_driven: bool
    moves: list[Move] = field(default_factory=list)

    def add(self, kind: str, who: int = 0, **options: Value) -> None:
        """Add a move."""
        self.moves.append(Move(kind, who, tuple(options.items())))

    def wait(self, *, is_long: bool = False) -> None:
        """Let some time pass, or none."""
        milliseconds = self.random.choice(LONG_WAITS_MS if is_long else SHORT_WAITS_MS)
        if milliseconds:
            self.add("wait", ms=milliseconds)

    def error_for(self, api: str) -> str:
        """An error that the client may get from an API."""
        errors = MILD_ERRORS[api]
        if self.is_driven and self.random.random() < 0.35:
            errors = HARD_ERRORS[api]
        return self.random.choice(errors).name

    def provoke(self) -> None:
        """Have the client join again, in one way or another."""
        match self.random.randrange(4):
            case 0:
                self.add("refuse", api="Heartbeat", error=Error.REBALANCE_IN_PROGRESS.name)
            case 1:
                self.add("join", self.random.choice((1, 2)))
            case 2:
                self.add("grow")
            case _:
                self.add("evict", api="Heartbeat")


Interaction = Callable[[ScheduleDrawing], None]


def refuse_something(drawing: ScheduleDrawing) -> None:
    """An error in the next response of an API, once or several times."""
    api = drawing.random.choice(GROUP_APIS)
    times = drawing.random.choice((1, 1, 1, 2, 3))
    drawing.add("refuse", api=api, error=drawing.error_for(api), **({"times": times} if times > 1 else {}))
    if drawing.random.random() < 0.5:
        drawing.provoke()
    drawing.wait()


def fail_a_rebalance(drawing: ScheduleDrawing) -> None:
    """The client joins again, and its JoinGroup or SyncGroup fails."""
    api = drawing.random.choice(("JoinGroup", "SyncGroup"))
    kind = drawing.random.choice(("refuse", "refuse", "hang-up", "evict", "lose"))
    if kind == "refuse":
        drawing.add("refuse", api=api, error=drawing.error_for(api))
    elif kind == "hang-up":
        drawing.add("hang-up", api=api, handled=drawing.random.choice((0, 1)))
    else:
        drawing.add(kind, api=api)
    drawing.provoke()
    drawing.wait(is_long=True)


def answer_late(drawing: ScheduleDrawing) -> None:
    """A response, right or wrong, is held back while the group rebalances."""
    api = drawing.random.choice(("Heartbeat", "Heartbeat", "OffsetCommit", "OffsetCommit", "JoinGroup", "SyncGroup"))
    late = drawing.random.choice(LATE_MS)
    if drawing.random.random() < 0.6:
        error = drawing.random.choice(THROWN_OUT).name if api != "JoinGroup" else drawing.error_for(api)
        drawing.add("refuse", api=api, error=error, late=late)
    else:
        drawing.add("delay", api=api, ms=late)
    drawing.wait()
    drawing.provoke()
    drawing.wait(is_long=True)


def change_meanwhile(drawing: ScheduleDrawing) -> None:
    """Something changes while the client waits for the response to JoinGroup or SyncGroup, or for offsets."""
    apis = "JoinGroup", "SyncGroup", "OffsetFetch", "ListOffsets"
    drawing.add("delay", api=drawing.random.choice(apis), ms=2_500)
    drawing.add("refuse", api="Heartbeat", error=Error.REBALANCE_IN_PROGRESS.name)
    drawing.add("wait", ms=drawing.random.choice((700, 1_000)))
    changes = ["grow", "cut", "forget", "move"] + (["subscribe", "idle", "commit", "seek"] if drawing.is_driven else [])
    match drawing.random.choice(changes):
        case "subscribe":
            drawing.add("subscribe", topics=drawing.random.randrange(3))
        case "idle":
            drawing.add("idle")
            drawing.wait(is_long=True)
            drawing.add("poll")
        case "seek":
            drawing.add("seek", partition=drawing.random.randrange(4), offset=drawing.random.choice((0, 3, 17)))
        case kind:
            drawing.add(kind)
    drawing.wait(is_long=True)


def disturb_the_network(drawing: ScheduleDrawing) -> None:
    """Connections end, and responses are lost or come twice."""
    api = drawing.random.choice((*GROUP_APIS, "Fetch", "ListOffsets", "Metadata"))
    match drawing.random.randrange(5):
        case 0:
            drawing.add("lose", api=api)
        case 1:
            drawing.add("double", api=api)
        case 2:
            drawing.add("hang-up", api=api, handled=drawing.random.choice((0, 1)))
        case 3:
            drawing.add("delay", api=api, ms=drawing.random.choice(LATE_MS))
        case _:
            drawing.add("cut")
    drawing.wait()


def disturb_fetches(drawing: ScheduleDrawing) -> None:
    """Fetches take long, or are lost, while records are written."""
    drawing.add("produce", records=drawing.random.choice((3, 20)))
    match drawing.random.randrange(3):
        case 0:
            drawing.add("delay", api="Fetch", ms=drawing.random.choice(LATE_MS), times=drawing.random.choice((1, 3)))
        case 1:
            drawing.add("lose", api="Fetch")
        case _:
            drawing.add("hang-up", api="Fetch", handled=drawing.random.choice((0, 1)))
    drawing.wait()
    drawing.add("produce", records=drawing.random.choice((3, 20)))
    drawing.wait(is_long=True)


def move_the_group(drawing: ScheduleDrawing) -> None:
    """Another node coordinates, perhaps while the client joins."""
    if drawing.random.random() < 0.5:
        drawing.provoke()
        drawing.wait()
    drawing.add("move")
    drawing.wait()


def have_a_member_come(drawing: ScheduleDrawing) -> None:
    """Another member takes part, for good or for a while."""
    who = drawing.random.choice((1, 1, 2))
    drawing.add("join", who)
    drawing.wait(is_long=True)
    if drawing.random.random() < 0.6:
        drawing.add(drawing.random.choice(("leave", "vanish")), who)
        drawing.wait(is_long=drawing.random.random() < 0.5)


def have_the_leader_crash(drawing: ScheduleDrawing) -> None:
    """The client comes back to a group that another member leads, which falls silent before its SyncGroup."""
    drawing.add("join", 1)
    drawing.wait(is_long=True)
    drawing.add("evict", api="Heartbeat")
    drawing.wait(is_long=True)
    drawing.add("vanish", 1)
    drawing.wait()
    drawing.add("join", 1, stalls=1)
    drawing.wait(is_long=True)


def change_the_topic(drawing: ScheduleDrawing) -> None:
    """The topic grows, and records are written."""
    drawing.add("grow", by=drawing.random.choice((1, 2)))
    drawing.add("produce", records=drawing.random.choice((3, 20)))
    drawing.wait(is_long=True)


def write_records(drawing: ScheduleDrawing) -> None:
    """Records are written."""
    drawing.add("produce", records=drawing.random.choice((1, 5, 40)))
    drawing.wait()


def forget_the_member(drawing: ScheduleDrawing) -> None:
    """The coordinator forgets the client."""
    drawing.add("forget")
    drawing.wait(is_long=drawing.random.random() < 0.5)


def unsettle_offsets(drawing: ScheduleDrawing) -> None:
    """Offsets are unstable after a rebalance."""
    drawing.add("unstable", times=drawing.random.choice((1, 2)))
    drawing.provoke()
    drawing.wait(is_long=True)


def commit_by_hand(drawing: ScheduleDrawing) -> None:
    """The application commits, perhaps while the group rebalances."""
    drawing.add("produce", records=5)
    drawing.wait()
    if drawing.random.random() < 0.4:
        drawing.provoke()
    if drawing.random.random() < 0.5:
        drawing.add("refuse", api="OffsetCommit", error=drawing.error_for("OffsetCommit"))
    drawing.add("commit")
    drawing.wait()


def stop_polling(drawing: ScheduleDrawing) -> None:
    """The application does not poll for a while, perhaps for longer than its poll interval."""
    drawing.add("idle")
    if drawing.random.random() < 0.5:
        drawing.provoke()
    drawing.add("wait", ms=drawing.random.choice((500, 2_000, 8_000)))
    drawing.add("poll")
    drawing.wait()


def pause_and_seek(drawing: ScheduleDrawing) -> None:
    """The application pauses partitions, sets positions and resumes while records come."""
    partition = drawing.random.randrange(4)
    drawing.add("produce", records=drawing.random.choice((5, 40)))
    for _ in range(drawing.random.choice((1, 2, 3))):
        match drawing.random.randrange(3):
            case 0:
                drawing.add("pause", partition=partition)
            case 1:
                drawing.add("seek", partition=partition, offset=drawing.random.choice((0, 3, 17)))
            case _:
                drawing.add("resume", partition=partition)
        drawing.wait()
    drawing.add("resume", partition=partition)


def change_the_subscription(drawing: ScheduleDrawing) -> None:
    """The application subscribes to other topics, perhaps while it joins."""
    if drawing.random.random() < 0.5:
        drawing.provoke()
        drawing.wait()
    drawing.add("subscribe", topics=drawing.random.randrange(3))
    drawing.wait(is_long=drawing.random.random() < 0.5)


FOR_ALL: tuple[tuple[Interaction, int], ...] = (
    (refuse_something, 5),
    (fail_a_rebalance, 4),
    (answer_late, 4),
    (change_meanwhile, 4),
    (disturb_the_network, 3),
    (disturb_fetches, 2),
    (move_the_group, 2),
    (have_a_member_come, 3),
    (have_the_leader_crash, 1),
    (change_the_topic, 2),
    (write_records, 2),
    (forget_the_member, 1),
    (unsettle_offsets, 1),
)
"""The interactions, each with its weight."""
FOR_APPLICATIONS: tuple[tuple[Interaction, int], ...] = (
    (commit_by_hand, 3),
    (stop_polling, 2),
    (pause_and_seek, 2),
    (change_the_subscription, 2),
)
"""Those that take an application, each with its weight."""


def draw_moves(random: Random, *, is_driven: bool) -> tuple[Move, ...]:
    """The moves of a schedule."""
    drawing = ScheduleDrawing(random, is_driven)
    chosen = (*FOR_ALL, *FOR_APPLICATIONS) if is_driven else FOR_ALL
    interactions, weights = [each for each, _ in chosen], [weight for _, weight in chosen]
    if random.random() < 0.25:
        drawing.add("join", 1)
        drawing.wait()
    if random.random() < 0.3:
        api = random.choice(GROUP_APIS)
        drawing.add("refuse", api=api, error=drawing.error_for(api))
    drawing.add("start")
    if random.random() < 0.8:
        drawing.wait(is_long=True)
    for interaction in random.choices(interactions, weights, k=random.randint(1, MAX_INTERACTIONS)):
        interaction(drawing)
    return tuple(drawing.moves)


# -- the protocol of schedules ----------------------------------------------------------------------------------------

SETTLING_S = 2.0
"""How long a client may take beyond its patience to do what it owes."""
MIN_PATIENCE_S = 6.0
MAX_QUIET_S = 20.0
SHORTEST_WAIT_MS = 100


@dataclass(frozen=True, slots=True)
class ClassicClientSchedules(ScheduleProtocol):
    """Schedules for a client; an application takes part that `is_driven`."""

    is_driven: bool = False

    def generate(self, seed: int, batch: int, size: int) -> list[GeneratedSchedule]:
        """As `ScheduleProtocol.generate`."""
        schedules = []
        for number in range(size):
            random = Random(f"client {seed} {batch} {number} {self.is_driven}")
            moves = draw_moves(random, is_driven=self.is_driven)
            schedules.append(GeneratedSchedule(Schedule(f"schedule-{seed}-{batch}-{number}", (), moves), {}))
        return schedules

    def scenario_of(self, schedule: Schedule) -> Scenario:
        """A scenario that makes the moves, has the faults stop, and gives the client time to do what it owes."""

        async def play(stage: ClientStage) -> None:
            stage.cluster.annotate(SCHEDULE, schedule_body(schedule))
            under_way = ScheduleUnderWay(stage)
            for move in schedule.moves:
                await KINDS[move.kind](under_way, move)
            await KINDS["start"](under_way, Move("start"))
            stage.cluster.script.cues.clear()
            stage.cluster.annotate("script", {"step": "the faults stop"})
            patience = max(stage.facts.rebalance_timeout, stage.facts.session_timeout) / 1000 + 1
            await stage.watch(min(max(patience, MIN_PATIENCE_S) + SETTLING_S, MAX_QUIET_S))
            await stage.ask_to_end()

        return Scenario(schedule.name, (), play)

    def simpler_moves(self, move: Move) -> Iterator[Move]:
        """A short wait in the place of a long one, and a wait in the place of anything else."""
        is_short = move.kind == "wait" and move.number("ms", 0) <= SHORTEST_WAIT_MS
        if move.kind != "start" and not is_short:
            yield Move("wait", 0, (("ms", SHORTEST_WAIT_MS),))
