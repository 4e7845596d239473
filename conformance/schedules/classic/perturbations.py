"""Perturbed requests: the options by which a request differs from that of a well-behaved member, as strategies."""

from hypothesis import strategies as st

from fencepost.conformance.schedules.classic.moves.cast import LONG, SHORT
from fencepost.conformance.schedules.schedule import Value

OFFERS = ("a", "a", "a", "ab", "ba", "b", "abc", "c", "")
IDENTITY: tuple[tuple[str, tuple[Value, ...]], ...] = (
    ("as", ("nobody", "stranger", "former", 0, 1, 2)),
    ("generation", ("none", -1, 1, -2)),
    ("instance", ("none", "stranger", 0, 1, 2)),
)
PERTURBATIONS: dict[str, tuple[tuple[str, tuple[Value, ...]], ...]] = {
    "join": (
        *IDENTITY[::2],
        ("version", tuple(range(9))),
        ("type", ("none", "other")),
        ("session", ("too-short", "too-long", SHORT, LONG)),
        ("rebalance", (SHORT, LONG, "zero")),
        ("offer", OFFERS),
        ("metadata", (0, 1, 2, 3, 4)),
    ),
    "sync": (
        *IDENTITY,
        ("version", tuple(range(5))),
        ("type", ("none", "other")),
        ("protocol", ("none", "other")),
        ("plan", ("none", "part", "stranger", "twice", "full")),
    ),
    "heartbeat": (*IDENTITY, ("version", tuple(range(4)))),
    "leave": (
        *IDENTITY[::2],
        ("version", tuple(range(5))),
        ("with", (0, 1, 2)),
        ("entries", ("none", "twice")),
    ),
    "commit": (
        *IDENTITY,
        ("version", tuple(range(9))),
        ("partition", (0, 1, 2, 3, 9)),
        ("offset", (0, 7, 9)),
        ("further", (1, 2, 9)),
        ("note", ("long", "note")),
        ("retention", (-1, 2_000)),
        ("topic", ("absent",)),
    ),
    "fetch": (
        ("partition", (0, 1, 9)),
        ("stable", (1,)),
        ("groups", (1,)),
        ("version", tuple(range(1, 10))),
        ("topic", ("absent",)),
    ),
    "describe": (("version", tuple(range(6))), ("groups", (1,))),
    "list": (
        ("version", tuple(range(5))),
        ("states", ("Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "nonsense")),
        ("types", ("classic", "consumer")),
    ),
    "delete": (("version", (0, 1)), ("groups", (1,))),
    "delete-offsets": (("partition", (0, 1, 9)), ("topic", ("absent",))),
}
"""For each kind of request, options with the values that differ from those of a well-behaved member."""


def perturbed_options(kind: str, most: int = 2) -> st.SearchStrategy[tuple[tuple[str, Value], ...]]:
    """One to `most` options of a kind of request."""
    one = st.sampled_from(PERTURBATIONS[kind]).flatmap(
        lambda found: st.tuples(st.just(found[0]), st.sampled_from(found[1]))
    )
    return st.lists(one, min_size=1, max_size=most, unique_by=lambda pair: pair[0]).map(
        lambda pairs: tuple(sorted(pairs, key=str))
    )


PERTURBED = st.sampled_from(sorted(PERTURBATIONS)).flatmap(
    lambda kind: st.tuples(st.just(kind), perturbed_options(kind))
)
MEMBER_PERTURBED = st.sampled_from(("join", "sync", "heartbeat", "leave", "commit")).flatmap(
    lambda kind: st.tuples(st.just(kind), perturbed_options(kind))
)
