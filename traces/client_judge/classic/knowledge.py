"""The knowledge of a client of its membership: a standing after each piece of news, and those that it may have by now.

News is a response that has left the cluster. It may be on its way for as long as the grace of the trace: until then,
the client may act by it or by what it knew before. A request that only fits later news shows that it has arrived. For
all requests but JoinGroup, which a client sends because of some news, it takes a sign besides that the client was not
held up meanwhile.
"""

from dataclasses import dataclass, field
from enum import Enum, auto

from fencepost.model.assignors.group import TopicPartition

NO_GENERATION = -1


class Phase(Enum):
    """How far a client is with its membership."""

    OUT = auto()
    """In no group, or thrown out."""
    JOINED = auto()
    """Told a generation, not yet an assignment."""
    STABLE = auto()
    """Told an assignment."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A membership as a client knows it after some news.

    The next JoinGroup carries `member_id`, whatever it likes if that is None; `requirement` says so, "" if none does.
    `sequence` and `time` are those of the news, and `news` tells it in words.
    """

    member_id: str | None
    generation: int = NO_GENERATION
    phase: Phase = Phase.OUT
    assignment: frozenset[TopicPartition] = frozenset()
    requirement: str = ""
    news: str = "it has just started"
    sequence: int = 0
    time: int = 0


@dataclass(slots=True)
class Knowledge:
    """The standings of a client in the order of the news, as far as they still matter. `grace` in milliseconds."""

    grace: int
    standings: list[Standing] = field(default_factory=lambda: [Standing("", requirement="MEMBER-02")])
    former: list[Standing] = field(default_factory=list)
    """Standings that the client has certainly left behind, with a generation."""

    @property
    def latest(self) -> Standing:
        """The standing after the latest news."""
        return self.standings[-1]

    def learn(self, standing: Standing) -> None:
        """There is news."""
        self.standings.append(standing)

    def settle(self, time: int) -> None:
        """Everything that is older than the grace has arrived."""
        arrived = sum(standing.time + self.grace <= time for standing in self.standings[1:])
        self._leave_behind(arrived)

    def show(self, sequence: int) -> None:
        """A request shows that the news with this sequence number, and all before it, has arrived."""
        arrived = sum(standing.sequence <= sequence for standing in self.standings[1:])
        self._leave_behind(arrived)

    def find(self, member_id: str, generation: int) -> Standing | None:
        """The latest standing with this membership that the client may have, None if there is none."""
        fitting = (each for each in reversed(self.standings) if has_membership(each, member_id, generation))
        return next(fitting, None)

    def had(self, member_id: str, generation: int) -> Standing | None:
        """The former standing with this membership, None if the client was never told of it."""
        return next((each for each in reversed(self.former) if has_membership(each, member_id, generation)), None)

    def allowed_partitions(self) -> frozenset[TopicPartition]:
        """All partitions that the client may hold to be its own."""
        return frozenset[TopicPartition]().union(*(standing.assignment for standing in self.standings))

    def _leave_behind(self, count: int) -> None:
        self.former += (each for each in self.standings[:count] if each.generation != NO_GENERATION)
        del self.standings[:count]


def has_membership(standing: Standing, member_id: str, generation: int) -> bool:
    """Whether a standing has this member id and this generation."""
    return standing.member_id in (None, member_id) and standing.generation == generation != NO_GENERATION
