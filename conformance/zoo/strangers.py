"""Strangers: implementations that nobody has met, drawn by a seed, and the worth of a run on one of them.

A stranger is a bundled implementation with differences that are allowed and faults that are not. The kit is right
about it if the run ends, says nothing against what is allowed, finds each fault, and calls it by a name of its own.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any, TypeAlias, TypeVar

from fencepost.conformance.zoo.fault import Fault, Patch, Side
from fencepost.traces.events import Order

# --- a stranger

FaultT = TypeVar("FaultT", bound=Fault[Any])
Value: TypeAlias = int | str
"""How much of a difference there is, such as milliseconds, or in which form."""
Differences: TypeAlias = tuple[tuple[str, Value], ...]
"""The names of differences, each with its value."""


@dataclass(frozen=True, slots=True)
class Stranger:
    """A stranger as plain data: the number under which a seed draws it, its differences with their values, and the ids
    of its faults. It stands in for a coordinator, or for a member. The run on it plays so many random `schedules`, and
    is about the requirements in `only` (none: all), in the process of the stranger, or over the network.
    """

    seed: int
    number: int
    differences: Differences
    faults: tuple[str, ...]
    schedules: int = 0
    only: tuple[str, ...] = ()
    is_remote: bool = False
    side: Side = Side.COORDINATOR

    def __str__(self) -> str:
        told = [f"{name} {value}".strip() for name, value in self.differences]
        return "; ".join((*told, *self.faults)) or "nothing"


@dataclass(slots=True)
class Disguise:
    """What the differences of a stranger add up to: a patch of this process, settings that are not the usual ones, by
    how many milliseconds a target that breaks nothing may be late, and the number of its nodes."""

    patch: Patch
    settings: dict[str, int] = field(default_factory=dict)
    grace: int = 0
    order: Order = Order.TOTAL
    nodes: int = 2

    def delay(self, milliseconds: int) -> None:
        """Allow for responses that come later, and so are not seen in the order in which they were made."""
        self.allow(milliseconds, Order.INTERVALS)

    def allow(self, grace: int, order: Order) -> None:
        """Allow for an environment."""
        self.grace += grace
        if order is not Order.TOTAL:
            self.order = order


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that an implementation may do otherwise, in one of some ways, the most ordinary one first."""

    name: str
    values: tuple[Value, ...]
    put_in: Callable[[Value, Disguise], None]


@dataclass(frozen=True, slots=True)
class FaultNames:
    """The requirements that a run may call something by: those that it breaks by itself, and those that are broken as a
    consequence of that."""

    own: frozenset[str] = frozenset()
    consequences: frozenset[str] = frozenset()

    def __or__(self, other: "FaultNames") -> "FaultNames":
        own = self.own | other.own
        return FaultNames(own, (self.consequences | other.consequences) - own)


@dataclass(frozen=True, slots=True)
class StrangerKind:
    """What a protocol adds: its differences, its faults by their ids in pools of one origin each, whether a fault goes
    together with other faults and differences, a run on a stranger, and the requirements that it is about by id."""

    differences: tuple[Difference, ...]
    pools: Callable[[], Mapping[str, Mapping[str, Fault[Any]]]]
    goes_with: Callable[[Fault[Any], Sequence[Fault[Any]], Sequence[str]], bool]
    play: Callable[[Stranger], "StrangerOutcome"]
    requirements: Callable[[], Collection[str]]
    side: Side = Side.COORDINATOR


DIFFERENCE_SHARE = 0.15
"""How likely each difference is."""
FAULT_COUNTS = (0, 0, 0, 1, 1, 1, 1, 2, 3, 4, 6, 8)
"""How many faults a stranger has; each of these numbers is as likely."""


FULL_POOL = 20
"""A pool with so many faults or more is drawn from as often as any other; a smaller one less often."""


def draw_stranger(kind: StrangerKind, seed: int, number: int, schedules: int, is_remote: bool = False) -> Stranger:
    """The stranger with this number of a seed; it does not depend on any other."""
    chance = Random(f"{seed}/{number}")
    differences = tuple(
        (each.name, chance.choice(each.values)) for each in kind.differences if chance.random() < DIFFERENCE_SHARE
    )
    pools = [tuple(pool.values()) for pool in kind.pools().values()]
    chosen: list[Fault[Any]] = []
    for _ in range(chance.choice(FAULT_COUNTS)):
        fault = chance.choice(chance.choices(pools, [min(len(each), FULL_POOL) for each in pools])[0])
        if fault not in chosen and kind.goes_with(fault, chosen, [name for name, _ in differences]):
            chosen.append(fault)
    return Stranger(seed, number, differences, tuple(each.id for each in chosen), schedules, (), is_remote, kind.side)


def find_fault(pools: Mapping[str, Mapping[str, FaultT]], id: str) -> FaultT:
    """The fault with this id among those of all origins."""
    return next(pool[id] for pool in pools.values() if id in pool)


def put_in_differences(known: Sequence[Difference], drawn: Differences, patch: Patch) -> Disguise:
    """Put differences of a stranger into this process."""
    disguise, by_name = Disguise(patch), {each.name: each for each in known}
    for name, value in drawn:
        by_name[name].put_in(value, disguise)
    return disguise


# --- what a run on it was worth

UNCLASSIFIED = "UNCLASSIFIED"


@dataclass(frozen=True, slots=True)
class StrangerOutcome:
    """What a run on a stranger said.

    `ended` is empty, or says why the run did not end as it should. `failed` are the violated requirements, the one that
    the report names first in front; `undecided` are the others that it left open, each with the reason; `passed` counts
    those that it found to hold; `remarked` are recommendations that its faults keep it from, as the run found; `closed`
    are those that the stranger does not offer. `names` are those of each fault alone, and of all of them together. The
    stranger has no faults that show nowhere. One that `forms_no_group` cannot even bring a single member into a stable
    group: nothing that needs one can be asked of it.
    """

    stranger: Stranger
    ended: str = ""
    failed: tuple[str, ...] = ()
    undecided: Mapping[str, str] = field(default_factory=dict)
    passed: int = 0
    remarked: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    seconds: float = 0.0
    titles: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, FaultNames] = field(default_factory=dict)
    forms_no_group: bool = False

    @property
    def offered(self) -> int:
        """How many requirements were there to be decided."""
        return len(self.failed) + len(self.undecided) + self.passed


TOGETHER, HERE = "together", "here"
"""The keys in `StrangerOutcome.names` of all faults of a stranger together: alone, and beside its differences."""


@dataclass(frozen=True, slots=True)
class Judged:
    """An outcome, held against what the stranger is known to have.

    `hidden` are faults that show in nothing that the stranger offers and a requirement speaks of; they are not counted.
    """

    outcome: StrangerOutcome
    found: tuple[str, ...]
    missed: tuple[str, ...]
    hidden: tuple[str, ...]
    outside: tuple[str, ...]
    """The failed requirements that the faults do not break."""
    consequences: tuple[str, ...]
    """The failed requirements that only follow from what the faults break."""
    is_first_right: bool | None
    """Whether the first name belongs to a fault itself; None if there was no name to give."""

    @property
    def faults(self) -> int:
        """How many faults the stranger could show."""
        return len(self.found) + len(self.missed)


def hold_against(outcome: StrangerOutcome) -> Judged:
    """Hold an outcome against the faults of its stranger."""
    names = {id: outcome.names.get(id, FaultNames()) for id in outcome.stranger.faults}
    everything = FaultNames()
    for each in (*names.values(), *(outcome.names.get(name, FaultNames()) for name in (TOGETHER, HERE))):
        everything |= each
    failed = dict.fromkeys(outcome.failed)
    found = tuple(
        id
        for id, each in names.items()
        if failed.keys() & (each.own | each.consequences) or outcome.remarked & each.own
    )
    hidden = tuple(id for id, each in names.items() if id not in found and each.own <= outcome.closed)
    missed = tuple(id for id in names if id not in (*found, *hidden))
    if names:  # there may be something that no requirement speaks of
        failed.pop(UNCLASSIFIED, None)
    outside = tuple(each for each in failed if each not in everything.own | everything.consequences)
    consequences = tuple(each for each in failed if each in everything.consequences)
    is_right = outcome.failed[0] in everything.own if (found or missed) and outcome.failed else None
    return Judged(outcome, found, missed, hidden, outside, consequences, is_right)


def play_named(
    stranger: Stranger,
    find: Callable[[str], FaultT],
    names_of: Callable[[tuple[FaultT, ...]], FaultNames | None],
    play: Callable[[Stranger, tuple[FaultT, ...]], StrangerOutcome],
    shows_on: Callable[[Stranger, tuple[FaultT, ...], str], bool],
    names_beside: Callable[[Stranger, tuple[FaultT, ...]], FaultNames | None] = lambda stranger, faults: None,
) -> StrangerOutcome:
    """The outcome of a run on a stranger with the names that its faults may have. Beside its differences they may have
    others; that is asked when a name seems to be wrong.

    A recommendation that the stranger does not keep without its faults tells nothing of them. Faults that show nowhere
    are left out: those without names, and those that were missed and change nothing on this very stranger, beside its
    other faults.
    """
    names = {id: measured for id in stranger.faults if (measured := names_of((find(id),))) is not None}
    stranger = replace(stranger, faults=tuple(names))
    faults = tuple(map(find, stranger.faults))
    if len(faults) > 1:
        names[TOGETHER] = names_of(faults) or FaultNames()
    outcome = replace(play(stranger, faults), names=names)
    if faults and outcome.remarked:
        alone = play(replace(stranger, faults=(), only=tuple(sorted(outcome.remarked))), ())
        outcome = replace(outcome, remarked=outcome.remarked - alone.remarked)
    if faults and stranger.differences and hold_against(outcome).outside:
        names[HERE] = names_beside(stranger, faults) or FaultNames()
    missed = hold_against(outcome).missed
    shown = tuple(id for id in stranger.faults if id not in missed or shows_on(stranger, faults, id))
    return replace(outcome, stranger=replace(stranger, faults=shown))


# --- figures

NORMAL_95 = 1.959964


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many, with the interval of Wilson in which the true share is with a confidence of 95 %."""

    hits: int
    total: int

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the interval."""
        if not self.total:
            return 0.0, 1.0
        share, z = self.hits / self.total, NORMAL_95
        weight = 1 + z * z / self.total
        middle = share + z * z / (2 * self.total)
        half = z * sqrt(share * (1 - share) / self.total + z * z / (4 * self.total * self.total))
        return max((middle - half) / weight, 0.0), min((middle + half) / weight, 1.0)

    def __str__(self) -> str:
        if not self.total:
            return "none"
        low, high = self.interval
        return f"{self.hits / self.total:7.2%}  ({low:.1%} to {high:.1%})  {self.hits} of {self.total}"


def measure(judged: Sequence[Judged]) -> dict[str, Share]:
    """The figures of some strangers, by what they count."""
    ended = [each for each in judged if not each.outcome.ended]
    plain = [each for each in ended if not each.outcome.stranger.faults]
    faulty = [each for each in ended if each.outcome.stranger.faults]
    useless = [each for each in faulty if each.outcome.forms_no_group]
    usable = [each for each in faulty if not each.outcome.forms_no_group]
    single = [each for each in ended if len(each.outcome.stranger.faults) == 1 and each.faults]
    several = [each for each in ended if len(each.outcome.stranger.faults) > 1]
    named = [each for each in ended if each.is_first_right is not None]

    def share_of_undecided(some: Sequence[Judged]) -> Share:
        return Share(sum(len(each.outcome.undecided) for each in some), sum(each.outcome.offered for each in some))

    return {
        "runs that ended": Share(len(ended), len(judged)),
        "strangers without a fault that raise an alarm": Share(
            sum(bool(each.outcome.failed) for each in plain), len(plain)
        ),
        "failures outside the faults' own requirements": Share(
            sum(len(each.outside) for each in ended), sum(len(each.outcome.failed) for each in ended)
        ),
        "failures that only follow from the faults": Share(
            sum(len(each.consequences) for each in ended), sum(len(each.outcome.failed) for each in ended)
        ),
        "undecided without a fault": share_of_undecided(plain),
        "undecided with faults": share_of_undecided(usable),
        "strangers that form no group": Share(len(useless), len(faulty)),
        "undecided where no group forms": share_of_undecided(useless),
        "single faults found": Share(sum(len(each.found) for each in single), sum(each.faults for each in single)),
        "of several faults at once found": Share(
            sum(len(each.found) for each in several), sum(each.faults for each in several)
        ),
        "first name right, of a single fault": first_names(named, single),
        "first name right, of several faults": first_names(named, several),
    }


def first_names(named: Sequence[Judged], some: Sequence[Judged]) -> Share:
    """How many first names are right among some strangers."""
    counted = [each for each in some if each in named]
    return Share(sum(bool(each.is_first_right) for each in counted), len(counted))


@dataclass(frozen=True, slots=True, order=True)
class KitMistake:
    """Something that the kit does wrong on a stranger: a false alarm, a wrong name, something undecided or a run that
    does not end, and the requirement that it is about."""

    what: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.about}".strip()


def kit_mistakes(judged: Judged) -> Iterator[KitMistake]:
    """What the kit did wrong on one stranger; that it missed a fault is not among it."""
    outcome = judged.outcome
    if outcome.ended:
        yield KitMistake("did not end")
    for name in judged.outside:
        yield KitMistake("wrong name" if outcome.stranger.faults else "false alarm", name)
    for name in outcome.undecided:
        yield KitMistake("undecided", name)


def count_kit_mistakes(judged: Iterable[Judged]) -> Counter[KitMistake]:
    """What the kit did wrong, and on how many strangers."""
    return Counter(failure for each in judged for failure in set(kit_mistakes(each)))


RECORDED = {
    Side.COORDINATOR: Path(__file__).with_name("strangers.json"),
    Side.MEMBER: Path(__file__).with_name("strange_clients.json"),
}
"""The figures of the last measurement that was recorded."""


def figures_of(judged: Sequence[Judged]) -> dict[str, Any]:
    """The figures, as JSON has them."""
    return {
        name: {"hits": share.hits, "total": share.total, "interval": [round(end, 5) for end in share.interval]}
        for name, share in measure(judged).items()
    }


def row_of(judged: Judged) -> dict[str, Any]:
    """One stranger, as JSON has it."""
    outcome = judged.outcome
    return {
        **{name: value for name, value in asdict(outcome.stranger).items() if name != "only"},
        "ended": outcome.ended,
        "failed": list(outcome.failed),
        "undecided": dict(outcome.undecided),
        "passed": outcome.passed,
        "remarked": sorted(outcome.remarked),
        "forms_no_group": outcome.forms_no_group,
        "seconds": round(outcome.seconds, 2),
        "found": list(judged.found),
        "missed": list(judged.missed),
        "hidden": list(judged.hidden),
        "outside": {name: outcome.titles.get(name, "") for name in judged.outside},
        "consequences": list(judged.consequences),
        "first": outcome.failed[0] if outcome.failed else "",
        "is_first_right": judged.is_first_right,
        "names": {id: sorted(each.own) for id, each in outcome.names.items()},
    }


# --- the smallest stranger


def simpler_strangers(kind: StrangerKind, stranger: Stranger) -> Iterator[Stranger]:
    """Strangers that are simpler by one step: a fault or a difference less, or a value that is more ordinary."""
    for fault in stranger.faults:
        yield replace(stranger, faults=tuple(each for each in stranger.faults if each != fault))
    values = {each.name: each.values for each in kind.differences}
    for place, (name, value) in enumerate(stranger.differences):
        before, after = stranger.differences[:place], stranger.differences[place + 1 :]
        yield replace(stranger, differences=before + after)
        for easier in values[name][: values[name].index(value)][:1]:
            yield replace(stranger, differences=(*before, (name, easier), *after))
    if stranger.schedules:
        yield replace(stranger, schedules=0)


def shrink_stranger(kind: StrangerKind, stranger: Stranger, about: str, shows: Callable[[Stranger], bool]) -> Stranger:
    """The smallest stranger that still `shows` something about a requirement, by steps of which each one does; with the
    run about that requirement alone, if that is enough."""
    alone = replace(stranger, only=(about,))
    if about in kind.requirements() and stranger.only != alone.only and shows(alone):
        stranger = alone
    while True:
        smaller = next((each for each in simpler_strangers(kind, stranger) if shows(each)), None)
        if smaller is None:
            return stranger
        stranger = smaller
