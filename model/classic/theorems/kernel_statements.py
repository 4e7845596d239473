"""The invariants of the kernel, for any number of members and partitions.

People should read `THEOREMS`, which is what the protocol promises, within one term of a coordinator and one life of
a group, for commits in generations from 0 on, a static replacement counting as the same member. `LEMMAS`
make the theorems inductive.
"""

from collections.abc import Callable
from inspect import signature
from typing import TypeAlias

from fencepost.model.classic.kernel.actions import Kernel
from fencepost.model.logic import Token, Truth, and_, not_, or_
from fencepost.model.statement import implies

Invariant: TypeAlias = Callable[..., Truth]
"""A claim about a kernel and any elements."""
SORTS = {"g": "generation", "h": "generation", "m": "member", "x": "member", "p": "partition"}


def one_leader(k: Kernel, g: Token, m: Token, x: Token) -> Truth:
    """A generation has one leader."""
    return implies(and_(k.led.has(g, m), k.led.has(g, x)), m == x)


def one_owner(k: Kernel, g: Token, m: Token, x: Token, p: Token) -> Truth:
    """A generation gives a partition to one member at most."""
    return implies(and_(k.assigned.has(g, m, p), k.assigned.has(g, x, p)), m == x)


def no_foreign_commit(k: Kernel, g: Token, m: Token, x: Token, p: Token) -> Truth:
    """A commit is accepted from the member that has the partition in that generation, or nobody has it."""
    return implies(and_(k.accepted.has(m, g, p), k.assigned.has(g, x, p)), m == x)


def one_believer(k: Kernel, g: Token, m: Token, x: Token, p: Token) -> Truth:
    """Two members that know their assignment of the same generation do not both believe that they own a partition."""
    settled = and_(k.stable.has(m), k.stable.has(x), k.believed.has(m, g), k.believed.has(x, g))
    return implies(and_(settled, k.owned.has(m, p), k.owned.has(x, p)), m == x)


def nothing_is_later(k: Kernel, g: Token, m: Token, p: Token) -> Truth:
    """No generation is later than the current one."""
    known = or_(
        k.led.has(g, m),
        k.joined.has(g, m),
        k.claimed.has(g, m, p),
        k.published.has(g),
        k.assigned.has(g, m, p),
        k.sent.has(m, g, p),
        k.believed.has(m, g),
    )
    return implies(known, not_(g > k.current))


def assigned_is_published(k: Kernel, g: Token, m: Token, p: Token) -> Truth:
    """Nothing is assigned in a generation whose assignment is not known."""
    return implies(k.assigned.has(g, m, p), k.published.has(g))


def open_is_unpublished(k: Kernel) -> Truth:
    """An assignment that is awaited is not known yet."""
    return implies(k.open, not_(k.published.has(k.current)))


def claims_are_respected(k: Kernel, g: Token, m: Token, x: Token, p: Token) -> Truth:
    """What a member claimed is assigned to no other."""
    return implies(and_(k.claimed.has(g, x, p), k.assigned.has(g, m, p)), m == x)


def syncing_owns_what_it_claimed(k: Kernel, g: Token, m: Token, p: Token) -> Truth:
    """A member that awaits its assignment owns what it claimed at most."""
    return implies(and_(k.syncing.has(m), k.believed.has(m, g), k.owned.has(m, p)), k.claimed.has(g, m, p))


def stable_owns_what_it_was_given(k: Kernel, g: Token, m: Token, p: Token) -> Truth:
    """A member that knows its assignment owns nothing else."""
    return implies(and_(k.stable.has(m), k.believed.has(m, g), k.owned.has(m, p)), k.assigned.has(g, m, p))


def stable_is_published(k: Kernel, g: Token, m: Token) -> Truth:
    """A member knows its assignment only where it is known."""
    return implies(and_(k.stable.has(m), k.believed.has(m, g)), k.published.has(g))


def sent_was_owned(k: Kernel, g: Token, m: Token, x: Token, p: Token) -> Truth:
    """A commit was sent by who claimed the partition or when the assignment was known, and no other has it then."""
    held = and_(
        or_(k.published.has(g), k.claimed.has(g, m, p)),
        implies(k.assigned.has(g, x, p), m == x),
    )
    return implies(k.sent.has(m, g, p), held)


def accepted_was_sent(k: Kernel, g: Token, m: Token, p: Token) -> Truth:
    """What is accepted was sent."""
    return implies(k.accepted.has(m, g, p), k.sent.has(m, g, p))


def one_belief(k: Kernel, g: Token, h: Token, m: Token) -> Truth:
    """A member believes in one generation at a time."""
    return implies(and_(k.believed.has(m, g), k.believed.has(m, h)), g == h)


def syncing_or_stable(k: Kernel, m: Token) -> Truth:
    """A member does not know the assignment that it awaits."""
    return not_(and_(k.syncing.has(m), k.stable.has(m)))


THEOREMS: tuple[Invariant, ...] = (one_leader, one_owner, no_foreign_commit, one_believer)
LEMMAS: tuple[Invariant, ...] = (
    nothing_is_later,
    assigned_is_published,
    open_is_unpublished,
    claims_are_respected,
    syncing_owns_what_it_claimed,
    stable_owns_what_it_was_given,
    stable_is_published,
    sent_was_owned,
    accepted_was_sent,
    one_belief,
    syncing_or_stable,
)
INVARIANTS = (*THEOREMS, *LEMMAS)


def no_stale_commit(before: Kernel, after: Kernel, g: Token, m: Token, p: Token) -> Truth:
    """A commit is accepted in the current generation only, and from a member of the group."""
    newly = and_(after.accepted.has(m, g, p), not_(before.accepted.has(m, g, p)))
    return implies(newly, and_(g == before.current, before.registered.has(m)))


def never_back(before: Kernel, after: Kernel) -> Truth:
    """The generation never falls."""
    return not_(before.current > after.current)


STEP_THEOREMS: tuple[Invariant, ...] = (no_stale_commit, never_back)
"""What holds of every action, on the kernel before it and after it."""


def element_names(claim: Invariant) -> tuple[str, ...]:
    """The names of the elements that a claim is about."""
    return tuple(name for name in signature(claim).parameters if name in SORTS)
