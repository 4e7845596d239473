"""The class of requirements, and what they may need of a target."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Level(StrEnum):
    """How binding a requirement is, in the words of RFC 2119."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Verifiability(StrEnum):
    """How a requirement can be seen to hold or fail from outside."""

    CHECKED = "checked"
    """A scenario brings the situation about and looks at the answers."""
    INCIDENTAL = "passing"
    """A property: judged in passing, wherever a run happens to touch it."""
    RESTART = "restart"
    """As checked, but the target has to be killed and started again."""
    UNTESTABLE = "untestable"
    """No answer can show or break it; `Requirement.why` says why."""


CAPABILITIES: Mapping[str, str] = MappingProxyType(
    {
        "restart": "a target that can be killed and started again with its storage",
        "second-node": "a second node beside the coordinator of the group",
        "graceful-move": "a way to move a group to another node while its old one stays up",
        "resize": "a restart with a lower group.max.size",
        "size-limit": "a group.max.size small enough to be reached",
        "initial-delay": "a group.initial.rebalance.delay.ms above 0",
        "no-initial-delay": "a group.initial.rebalance.delay.ms of 0",
        "session-bounds": "bounds of the session timeout that are known",
        "metadata-limit": "an offset.metadata.max.bytes that is known",
        "intrusive": "leave for requests that a faulty broker may carry out on other groups",
        "retention": "a clean-up of expired offsets during the run",
        "transactions": "transactional offset commits",
        "slow": "time for the fixed timer of 300 s",
    }
)
"""Everything in `Requirement.needs`, in words that fit after "needs". APIs and versions are not listed here:
they follow from what the target advertises."""


class Tier(StrEnum):
    """What a target has to offer for a requirement, in steps; a requirement is in the last one that it needs."""

    CORE = "core"
    """Nothing but requests."""
    LIMITS = "limits"
    """Settings with a limit or a time that a run can reach."""
    TRANSACTIONS = "transactions"
    DURABILITY = "durability"
    """Restarts with the storage kept."""
    CLUSTER = "cluster"
    """A second node."""


TIERS: Mapping[str, Tier] = MappingProxyType(
    {
        "restart": Tier.DURABILITY,
        "resize": Tier.DURABILITY,
        "second-node": Tier.CLUSTER,
        "graceful-move": Tier.CLUSTER,
        "transactions": Tier.TRANSACTIONS,
        "intrusive": Tier.CORE,
    }
)
"""The tiers of capabilities; that of all others is `Tier.LIMITS`."""


@dataclass(frozen=True, slots=True)
class Change:
    """The first release of Apache Kafka with a behaviour, such as "3.3.2", and the ticket or commit that brought it."""

    release: str
    source: str

    def __str__(self) -> str:
        return f"Apache Kafka {self.release} ({self.source})"

    def is_after(self, release: str) -> bool:
        """Whether a release such as "3.4.1" came before it in the numbering."""
        return release_numbers(release) < release_numbers(self.release)


def release_numbers(release: str) -> tuple[int, ...]:
    """The numbers in the name of a release, which order releases."""
    return tuple(map(int, release.split(".")))


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that a group coordinator owes its clients.

    `sentence` states it in full, `source` names the proposal, test or source it was read from, and `needs`
    lists capabilities (keys of `CAPABILITIES`) without which it cannot be tested. `since` is there if older releases of
    Apache Kafka with the same APIs are known to do otherwise.
    """

    id: str
    level: Level
    title: str
    sentence: str
    source: str
    testability: Verifiability = Verifiability.CHECKED
    needs: tuple[str, ...] = ()
    why: str = ""
    since: Change | None = None

    @property
    def family(self) -> str:
        """The part of the id before the number, such as "JOIN"."""
        return self.id.partition("-")[0]

    @property
    def tier(self) -> Tier:
        """The last tier of the capabilities that it needs."""
        return max((TIERS.get(need, Tier.LIMITS) for need in self.needs), key=list(Tier).index, default=Tier.CORE)
