"""The class of requirements, and what they may need of a target."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from fnmatch import fnmatchcase
from types import MappingProxyType

from fencepost.model.errors import FencepostError


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


# --- Selects requirements of a catalogue by shell patterns of their ids, and suggests an id where nothing matches.


class UnknownRequirement(FencepostError):
    """A pattern matches no requirement; the message is one clear line."""


def select_requirements(
    catalogue: Collection[Requirement], patterns: Sequence[str] = (), excluded: Sequence[str] = ()
) -> tuple[Requirement, ...]:
    """The requirements whose ids match a pattern and no excluded one, in the order of the catalogue; without patterns
    all but those. Raises `UnknownRequirement` for a pattern that no id matches, and if nothing is left."""
    chosen = matching_ids(catalogue, patterns or ("*",)) - matching_ids(catalogue, excluded)
    if not chosen:
        raise UnknownRequirement("nothing is left to test: every requirement asked for is excluded")
    return tuple(requirement for requirement in catalogue if requirement.id in chosen)


def matching_ids(catalogue: Collection[Requirement], patterns: Sequence[str]) -> set[str]:
    """The ids that match one of the patterns, such as "JOIN-29" or "JOIN-*". Raises `UnknownRequirement` for a pattern
    that no id matches."""
    ids = [requirement.id for requirement in catalogue]
    found: set[str] = set()
    for pattern in patterns:
        matching = [id for id in ids if fnmatchcase(id, pattern)]
        if not matching:
            raise UnknownRequirement(unknown_id_message(pattern, ids))
        found.update(matching)
    return found


def suggest_id(pattern: str, ids: Collection[str]) -> str:
    """The id or pattern that may have been meant by one that matches nothing: its family is spelled right, and its
    number has two digits. "" if there is none."""
    family, _, number = pattern.partition("-")
    families = dict.fromkeys(id.rpartition("-")[0] for id in ids)
    for meant in get_close_matches(family.upper(), families, 1):
        guess = f"{meant}-{number.zfill(2) if number.isdecimal() else number or '*'}"
        if any(fnmatchcase(id, guess) for id in ids):
            return guess
    return ""


def unknown_id_message(pattern: str, ids: Collection[str]) -> str:
    """One line on a pattern that no id matches: what was meant, or the nearest id and its family."""
    guess = suggest_id(pattern, ids)
    if guess:
        return f"no requirement matches {pattern!r}; did you mean {guess!r}?"
    (near,) = get_close_matches(pattern.upper(), ids, n=1, cutoff=0)
    family = near.partition("-")[0]
    return f"no requirement matches {pattern!r}; try an id like {near} or a pattern like '{family}-*'"
