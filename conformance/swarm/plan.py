"""The plan of a swarm: how many members of which kind, and what happens to them when."""

from dataclasses import dataclass
from enum import StrEnum
from random import Random

from fencepost.model.classic.member.settings import COOPERATIVE_STICKY, RANGE, Strategy

UPGRADE: tuple[tuple[Strategy, ...], ...] = ((RANGE,), (COOPERATIVE_STICKY, RANGE), (COOPERATIVE_STICKY,))
"""The assignors before, between and after two rolling restarts from eager to cooperative (KIP-429)."""
WAVES = 10
"""A rolling restart comes to a tenth of the processes at once: the group may settle before the next."""


class SwarmKind(StrEnum):
    """How the members of a swarm rebalance."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"
    MIXED = "mixed"
    """In the middle of an upgrade: members offer range alone, or both; each restart is a step of the upgrade."""
    UPGRADE = "upgrade"
    """A whole upgrade: all begin with range, each is restarted to offer both, then each to offer the other alone."""


class SwarmEventKind(StrEnum):
    """What happens to a process."""

    CRASH = "crash"
    CLOSE = "close"
    FREEZE = "freeze"
    DISCONNECT = "disconnect"


@dataclass(frozen=True, slots=True)
class SwarmEvent:
    """Something that happens to a process, at a time in seconds; it is over `lasts` seconds later."""

    at: float
    kind: SwarmEventKind
    process: int
    lasts: float


@dataclass(frozen=True, slots=True)
class SwarmPlan:
    """A swarm of so many `members` on a topic of so many `partitions`. Members start within the first sixth of the
    `seconds`; in the next four things happen, so many of them, and records are written."""

    members: int = 30
    kind: SwarmKind = SwarmKind.EAGER
    partitions: int = 30
    seconds: float = 60.0
    events: int = 12
    records: int = 20
    """How many are written to each partition, ten times."""
    seed: int = 0
    settle_seconds: float = 60.0
    """How long the group may take at the end until every record was returned."""

    def strategies_of(self, process: int, restarts: int, step: int = 0) -> tuple[Strategy, ...]:
        """The assignors of a process that was restarted so many times, and that has come to this step of an upgrade."""
        match self.kind:
            case SwarmKind.EAGER:
                return UPGRADE[0]
            case SwarmKind.COOPERATIVE:
                return UPGRADE[2]
            case SwarmKind.UPGRADE:
                return UPGRADE[step]
            case _:
                # Nobody leaves range behind while others have nothing else: that takes the second round of restarts.
                return UPGRADE[min(process % 2 + restarts, 1)]

    def starts(self) -> list[float]:
        """When each process starts."""
        return [number * self.seconds / 6 / self.members for number in range(self.members)]

    def upgrade_times(self, step: int) -> list[float]:
        """When each process is restarted for a step of the upgrade, the first or the second."""
        lasts = self.seconds / 3
        waves = (number * WAVES // self.members for number in range(self.members))
        return [self.seconds / 6 + lasts * (step - 1 + wave / WAVES) for wave in waves]

    def draw_events(self, session_seconds: float) -> list[SwarmEvent]:
        """What happens, in the order of time. Freezing lasts longer than a session, anything else not as long."""
        random = Random(f"swarm {self.seed}")
        drawn = []
        for _ in range(self.events):
            kind = random.choice(list(SwarmEventKind))
            lasts = session_seconds * 1.5 if kind is SwarmEventKind.FREEZE else random.uniform(0.1, session_seconds / 2)
            at = random.uniform(self.seconds / 6, self.seconds * 5 / 6)
            drawn.append(SwarmEvent(at, kind, random.randrange(self.members), lasts))
        return sorted(drawn, key=lambda event: event.at)
