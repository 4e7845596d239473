"""Random schedules as plain data, with their items for the shrinker, and the interface between their engine and a
protocol."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, ClassVar, Protocol, TypeAlias

from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.subject import Scenario
from fencepost.model.settings import Settings
from fencepost.traces.events import Event
from fencepost.traces.verdict import Transition

# -- schedules as plain data ------------------------------------------------------------------------------------------

Value = int | str
Role: TypeAlias = Any
"""How an actor begins: a value of the protocol's own, hashable and comparable."""


@dataclass(frozen=True, slots=True)
class Move:
    """One move of the actor with number `who`. The protocol defines the kinds of moves and their options."""

    kind: str
    who: int = 0
    options: tuple[tuple[str, Value], ...] = ()

    def get(self, name: str, default: Value = "") -> Value:
        """The value of an option, `default` if it is not given."""
        return next((value for key, value in self.options if key == name), default)

    def number(self, name: str, default: int = 0) -> int:
        """The value of an option, `default` if it is not given or not a number."""
        value = self.get(name, default)
        return value if isinstance(value, int) else default

    def without(self, name: str) -> "Move":
        """The move without one of its options."""
        return replace(self, options=tuple(pair for pair in self.options if pair[0] != name))

    def __str__(self) -> str:
        options = ", ".join(f"{name} {value}" for name, value in self.options)
        return f"{actor_label(self.who)} {self.kind}" + (f" ({options})" if options else "")


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cast (the role of each actor, by number) and its moves."""

    name: str
    cast: tuple[Role, ...]
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class GeneratedSchedule:
    """A schedule with the model's prediction: the transitions it takes, with counts; its duration, and the time of the
    first restart of the target (0: none), in milliseconds."""

    schedule: Schedule
    transitions: Mapping[Transition, int]
    duration: int = 0
    restart_at: int = 0

    @property
    def rules(self) -> frozenset[str]:
        """The rules of the predicted transitions."""
        return frozenset(each.rule for each in self.transitions)


def actor_label(who: int) -> str:
    """The label of an actor in traces: "A" for number 0."""
    return chr(ord("A") + who)


# -- the limits that a target sets ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScheduleScope:
    """What a target allows schedules to do; its timers may be `grace` milliseconds late.

    With `cuts`, connections are cut while requests are sent; the schedules of a seed depend on it.
    """

    settings: Settings
    restarts: bool = True
    transactions: bool = True
    virtual_time: bool = True
    grace: int = 0
    cuts: bool = False


# -- the interface between the schedule engine and a protocol ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CoverageGoals:
    """What coverage is measured against: the transitions that the model is known to take, and the guard of each rule.

    The guard of a rule that applies only after a failure of the target is "".
    """

    transitions: frozenset[Transition] = frozenset()
    rules: Mapping[str, str] = field(default_factory=dict)


class ScheduleProtocol(Protocol):
    """A protocol as the engine sees it. Implementations are immutable, hashable by value, and can be pickled.

    For one that derives from it, actors are all alike and no move has a simpler one, unless it says otherwise.
    """

    def __hash__(self) -> int:
        return hash(type(self))

    @property
    def default_role(self) -> Role:
        """The simplest role of an actor; shrinking puts it in the place of others."""
        return None

    def generate(self, seed: int, batch: int, size: int) -> list[GeneratedSchedule]:
        """`size` schedules with names of their own; the same for the same arguments."""
        ...

    def scenario_of(self, schedule: Schedule) -> Scenario:
        """A scenario that plays the schedule and checks no requirement; it needs "restart" if the schedule does."""
        ...

    def shortcuts(self, schedule: Schedule, events: Sequence[Event], sequence: int) -> Sequence[Schedule]:
        """Shorter schedules with the same cast, the shortest first: each may fail as the run of `schedule` with these
        events did at request `sequence`. Shrinking begins with the first that does."""
        return ()

    def simpler_moves(self, move: Move) -> Iterable[Move]:
        """Moves to try in the place of this one when shrinking, beside the move with fewer options."""
        return ()

    def simpler_roles(self, role: Role) -> Iterable[Role]:
        """Roles to try in the place of this one when shrinking, the simplest first."""
        return ()


# -- batches of schedules ---------------------------------------------------------------------------------------------

BATCH_SIZE = 20
"""How many schedules are generated at a time."""


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """A batch of schedules to generate and play: its number and its size.

    `decisions` are the reference differences (DIV-nn) that are settled for the target.
    """

    protocol: ScheduleProtocol
    seed: int
    batch: int
    size: int
    decisions: tuple[tuple[str, bool], ...] = ()


def generate_batch(spec: BatchSpec) -> list[GeneratedSchedule]:
    """The schedules of a batch; the same for the same spec."""
    return spec.protocol.generate(spec.seed, spec.batch, spec.size)


# -- schedules as sequences of items for the shrinker -----------------------------------------------------------------

Item = tuple[int, Role] | Move
"""An actor's number with its role, or a move."""


def shrinkable_items(protocol: ScheduleProtocol, schedule: Schedule) -> tuple[Item, ...]:
    """The items that shrinking may remove: roles other than the default one, then all moves."""
    special = [(number, role) for number, role in enumerate(schedule.cast) if role != protocol.default_role]
    return (*special, *schedule.moves)


def build_schedule(protocol: ScheduleProtocol, schedule: Schedule, kept: Sequence[Item]) -> Schedule:
    """The schedule with these items only; an actor whose role was removed has the default role."""
    roles = {each[0]: each[1] for each in kept if not isinstance(each, Move)}
    cast = tuple(roles.get(number, protocol.default_role) for number in range(len(schedule.cast)))
    return replace(schedule, cast=cast, moves=tuple(each for each in kept if isinstance(each, Move)))


def related_items(items: Sequence[Item]) -> Iterator[list[int]]:
    """Yield the indices of items to remove together: all of an actor, then all moves of a kind, the most first."""
    actors: dict[object, list[int]] = {}
    kinds: dict[object, list[int]] = {}
    for place, item in enumerate(items):
        actors.setdefault(item.who if isinstance(item, Move) else item[0], []).append(place)
        if isinstance(item, Move):
            kinds.setdefault(item.kind, []).append(place)
    yield from sorted(actors.values(), key=len, reverse=True)
    yield from sorted(kinds.values(), key=len, reverse=True)


def simplifications(protocol: ScheduleProtocol, item: Item) -> Iterator[Item]:
    """Items to try in the place of this one, the simplest first: fewer options, then what the protocol suggests."""
    if isinstance(item, Move):
        if len(item.options) > 1:
            yield replace(item, options=())
        for name, _ in item.options:
            yield item.without(name)
        yield from protocol.simpler_moves(item)
        return
    number, role = item
    for simpler in protocol.simpler_roles(role):
        yield number, simpler


# -- schedules of independent random moves ----------------------------------------------------------------------------

RANDOM_MOVES = 12
"""How many moves a schedule has."""
WAIT = "wait"
"""The kind of moves in which nothing is done for the milliseconds in their option "ms"."""


@dataclass(frozen=True, slots=True)
class RandomMoves(ScheduleProtocol):
    """Draws each move from `moves`, and plays one after the other. Without an option a wait lasts `wait_ms`."""

    moves: ClassVar[Sequence[Move]]
    wait_ms: ClassVar[int]

    @abstractmethod
    async def play_move(self, context: ScenarioContext, move: Move, memory: dict[int, Any]) -> None:
        """Make one move that is no wait; `memory` has what actors keep until their next moves, by number."""

    def generate(self, seed: int, batch: int, size: int) -> list[GeneratedSchedule]:
        """`size` schedules without predictions of the model."""
        random = Random(f"{seed} {batch}")
        drawn = [tuple(random.choices(self.moves, k=RANDOM_MOVES)) for _ in range(size)]
        schedules = (Schedule(f"random-{seed}-{batch}-{number}", (), moves) for number, moves in enumerate(drawn))
        return [GeneratedSchedule(schedule, {}) for schedule in schedules]

    def scenario_of(self, schedule: Schedule) -> Scenario:
        """A scenario that plays the moves."""

        async def play(context: ScenarioContext) -> None:
            memory: dict[int, Any] = {}
            for move in schedule.moves:
                if move.kind == WAIT:
                    await context.sleep(move.number("ms", self.wait_ms))
                else:
                    await self.play_move(context, move, memory)

        return Scenario(schedule.name, (), play)
