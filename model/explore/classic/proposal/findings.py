"""The shortest runs in which the two groups differ: what Kafka gave up, and what it spared itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

from fencepost.model.errors import Error
from fencepost.model.explore.classic.proposal.moves import (
    Pair,
    moves_from,
    new_groups,
    stable_groups,
    synchronizing_groups,
)
from fencepost.model.explore.classic.proposal.world import Side
from fencepost.model.explore.engine import replay_path
from fencepost.model.explore.search import NO_LIMIT, PlainSearch, SearchProgress
from fencepost.model.explore.transition_system import (
    Action,
    Check,
    Column,
    PropertyKind,
    Transition,
    TransitionSystem,
)
from fencepost.model.explore.transition_tables import TransitionTables

REFUSED = (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID)


@dataclass(frozen=True, slots=True)
class Difference:
    """A way in which the groups differ: what Kafka's does, what the proposal's does, and the pairs that show it.
    `is_given_up` tells what Kafka gave up from what it spared itself."""

    name: str
    kafka: str
    proposal: str
    shows: Callable[[Pair], bool]
    start: Callable[[], Pair] = stable_groups
    is_given_up: bool = True


@dataclass(frozen=True, slots=True)
class FoundDifference:
    """A difference with its shortest run, None if the search found none."""

    difference: Difference
    run: tuple[str, ...] | None


def errors_of(side: Side, kind: str) -> dict[int, Error]:
    """The errors of responses of this kind to the last move, by member."""
    return {index: error for index, api, error in side.errors if api == kind}


def has_two_leaders(side: Side) -> bool:
    """Whether members were told of two leaders of one generation."""
    return any(one[0] == other[0] for one, other in combinations(side.told, 2))


def has_two_owners(side: Side) -> bool:
    """Whether two members were given a partition in one generation."""
    return any(one[:2] == other[:2] for one, other in combinations(side.given, 2))


def is_sync_refused(pair: Pair, error: Error) -> bool:
    """Whether a SyncGroup after a loss gets the error from Kafka, and none from the proposal."""
    if not pair.is_lost or not pair.last.endswith("syncs"):
        return False
    kafka, proposal = errors_of(pair.kafka, "SyncGroup"), errors_of(pair.proposal, "SyncGroup")
    return error in kafka.values() and not any(proposal.values())


def is_stopped_by_growth(pair: Pair) -> bool:
    """Whether the growth of a topic has the other member rejoin in Kafka's group, and ask once more in the other."""
    kafka, proposal = (side.actors[1] for side in (pair.kafka, pair.proposal))
    has_to_join = kafka.member.rejoins and not kafka.member.waiting
    return pair.is_grown and pair.joins == (0, 0) and has_to_join and proposal.request is not None


def is_failure_told(pair: Pair) -> bool:
    """Whether a leader's failure reaches the other member in the proposal's group alone."""
    kafka, proposal = errors_of(pair.kafka, "SyncGroup"), errors_of(pair.proposal, "SyncGroup")
    return pair.last.endswith("cannot assign") and len(proposal) > 1 and not kafka


def is_aborted(pair: Pair) -> bool:
    """Whether a JoinGroup that comes again costs the other member its synchronization in the proposal's group alone."""
    kafka, proposal = errors_of(pair.kafka, "SyncGroup"), errors_of(pair.proposal, "SyncGroup")
    return pair.last.endswith("joins") and Error.REBALANCE_IN_PROGRESS in proposal.values() and not kafka


DIFFERENCES = (
    Difference(
        "two leaders",
        "A generation whose assignment was not stored is forgotten, and its number is given again, to another leader.",
        "The generation is stored before anybody is told of it.",
        lambda pair: has_two_leaders(pair.kafka) and not has_two_leaders(pair.proposal),
        new_groups,
    ),
    Difference(
        "a member is forgotten",
        "A member whose first assignment was not stored is unknown to the next coordinator, and has to join anew.",
        "Its SyncGroup is taken up.",
        lambda pair: is_sync_refused(pair, Error.UNKNOWN_MEMBER_ID),
        new_groups,
    ),
    Difference(
        "a generation is forgotten",
        "A SyncGroup of the lost generation is refused, and the member rejoins.",
        "The synchronization goes on.",
        lambda pair: is_sync_refused(pair, Error.ILLEGAL_GENERATION),
    ),
    Difference(
        "a topic grows",
        "The leader rejoins, and every other member has to: all give up what they own.",
        "The leader sends another assignment, the others ask for theirs, and all keep what they own.",
        is_stopped_by_growth,
    ),
    Difference(
        "an assignment fails",
        "The leader cannot say so; the other member waits for the sync timer.",
        "The other member gets the leader's error.",
        is_failure_told,
        synchronizing_groups,
    ),
    Difference(
        "two owners",
        "A further SyncGroup of the leader changes nothing, so that a partition has one owner in a generation.",
        "A leader may give a partition to another member in the same generation, while its owner still commits.",
        lambda pair: has_two_owners(pair.proposal) and not has_two_owners(pair.kafka),
        is_given_up=False,
    ),
    Difference(
        "a repeated JoinGroup",
        "A JoinGroup that comes again gets its generation again.",
        "It aborts the synchronization, and who waits has to rejoin.",
        is_aborted,
        is_given_up=False,
    ),
)


STARTS: Mapping[Callable[[], Pair], str] = MappingProxyType(
    {
        new_groups: "the group is new",
        synchronizing_groups: "A and B have heard of generation 1",
        stable_groups: "A and B are stable",
    }
)
"""How the groups may begin, in words."""


def pair_system(start: Pair, differences: Sequence[Difference]) -> TransitionSystem:
    """The system of two groups that begin so, with a witness of each difference."""

    def transitions(pair: Pair) -> tuple[Transition, ...]:
        return tuple(Transition(label, ((0, after),)) for label, after in moves_from(pair))

    checks = tuple(Check(one.name, (0,), one.shows, PropertyKind.SOMETIMES) for one in differences)
    columns = (Column("two groups", "two groups"),)
    return TransitionSystem(columns, (start,), (Action("move", (0,), transitions),), (), checks)


def find_differences(limit: int = NO_LIMIT) -> Iterator[FoundDifference]:
    """Every difference with its shortest run, in the order of the table; a search ends when all of its are found."""
    for start in STARTS:
        yield from search_from(start(), [one for one in DIFFERENCES if one.start is start], limit)


def search_from(start: Pair, differences: Sequence[Difference], limit: int) -> Iterator[FoundDifference]:
    """The differences of two groups that begin so, each with its shortest run."""
    search = PlainSearch(TransitionTables(pair_system(start, differences)), limit)

    def is_missing(progress: SearchProgress) -> bool:
        return len(search.result.discoveries) < len(differences)

    result = search.run(is_missing)
    runs = {one.name: tuple(step.label for step in replay_path(result.tables, one)) for one in result.discoveries}
    yield from (FoundDifference(one, runs.get(one.name)) for one in differences)
