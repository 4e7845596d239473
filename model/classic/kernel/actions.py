"""The kernel of the protocol: twelve actions on relations between members, partitions and generations.

It leaves out how a coordinator works and keeps what safety rests on: who joined which generation, what each claimed,
what was assigned, what members believe and commit. Part of the state can be read off a coordinator and its members;
the rest is history. The actions run on finite relations, where they check that the model refines them, and on
symbolic ones, where they are proved for any number of members, partitions and generations.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fencepost.model.frozen import evolve
from fencepost.model.logic import Token, Truth, not_, or_
from fencepost.model.relations import FiniteRelation, Relation, is_exclusive
from fencepost.model.statement import implies


@dataclass(frozen=True, slots=True)
class Kernel:
    """What is true now, and all that ever was. g is a generation, m a member, p a partition."""

    current: Token = 0
    """The group's generation."""
    open: Truth = False
    """The assignment of the current generation is awaited."""
    registered: Relation = field(default_factory=FiniteRelation)
    """(m): is a member of the group."""
    owned: Relation = field(default_factory=FiniteRelation)
    """(m, p): m believes that it owns p."""
    syncing: Relation = field(default_factory=FiniteRelation)
    """(m): was told its generation and awaits its assignment."""
    stable: Relation = field(default_factory=FiniteRelation)
    """(m): was told its assignment."""
    believed: Relation = field(default_factory=FiniteRelation)
    """(m, g): m believes that it is in g."""
    joined: Relation = field(default_factory=FiniteRelation)
    """(g, m): m was a member when the join phase of g completed."""
    led: Relation = field(default_factory=FiniteRelation)
    """(g, m): m was named leader of g."""
    claimed: Relation = field(default_factory=FiniteRelation)
    """(g, m, p): m said that it owned p when it joined g."""
    published: Relation = field(default_factory=FiniteRelation)
    """(g): the assignment of g is known."""
    assigned: Relation = field(default_factory=FiniteRelation)
    """(g, m, p): g gives p to m."""
    sent: Relation = field(default_factory=FiniteRelation)
    """(m, g, p): m sent a commit for p in g."""
    accepted: Relation = field(default_factory=FiniteRelation)
    """(m, g, p): such a commit was accepted."""


@dataclass(frozen=True, slots=True)
class KernelStep:
    """An action with its arguments: the kernel after it, and the guards by name."""

    after: Kernel
    guards: Mapping[str, Truth] = field(default_factory=dict)


def adopt(kernel: Kernel, generation: Token, leader: Token, members: Relation, assignment: Relation) -> KernelStep:
    """A coordinator begins its term with a group that is Stable, and with no other past (coordinator.md 5.2)."""
    after = evolve(
        kernel,
        current=generation,
        registered=members,
        joined=kernel.joined.plus_all((generation,), members),
        led=kernel.led.plus(generation, leader),
        published=kernel.published.plus(generation),
        assigned=kernel.assigned.plus_all((generation,), assignment),
    )
    guards = {
        "no partition goes to two": is_exclusive(assignment),
        "members get them": assignment.every(lambda m, p: members.has(m)),
    }
    return KernelStep(after, guards)


def complete(kernel: Kernel, generation: Token, leader: Token, members: Relation, claims: Relation) -> KernelStep:
    """The join phase completes: a new generation, its members and what each claims to own."""
    after = evolve(
        kernel,
        current=generation,
        open=True,
        registered=members,
        joined=kernel.joined.plus_all((generation,), members),
        led=kernel.led.plus(generation, leader),
        claimed=kernel.claimed.plus_all((generation,), claims),
    )
    guards = {
        "the generation is new": generation > kernel.current,
        "the leader is a member": members.has(leader),
        "members claim": claims.every(lambda m, p: members.has(m)),
    }
    return KernelStep(after, guards)


def complete_empty(kernel: Kernel, generation: Token) -> KernelStep:
    """The join phase ends with nobody; the generation counts it."""
    after = evolve(kernel, current=generation, open=False, registered=kernel.registered.empty())
    return KernelStep(after, {"the generation is new": generation > kernel.current})


def prepare(kernel: Kernel) -> KernelStep:
    """A rebalance begins; if the assignment was awaited, it is not any more."""
    return KernelStep(evolve(kernel, open=False))


def register(kernel: Kernel, members: Relation) -> KernelStep:
    """Newcomers are added."""
    return KernelStep(evolve(kernel, registered=kernel.registered.plus_all((), members)))


def unregister(kernel: Kernel, members: Relation) -> KernelStep:
    """Members leave or are removed, which ends the wait for an assignment."""
    return KernelStep(evolve(kernel, registered=kernel.registered.minus(members), open=False))


def publish(kernel: Kernel, leader: Token, assignment: Relation) -> KernelStep:
    """The leader hands in the assignment of the current generation."""
    current = kernel.current
    claimed = kernel.claimed.suffixes(current)
    after = evolve(
        kernel,
        open=False,
        published=kernel.published.plus(current),
        assigned=kernel.assigned.plus_all((current,), assignment),
    )
    guards = {
        "the assignment is awaited": kernel.open,
        "the leader hands it in": kernel.led.has(current, leader),
        "no partition goes to two": is_exclusive(assignment),
        "members get them": assignment.every(lambda m, p: kernel.joined.has(current, m)),
        "claims are respected": assignment.every(lambda m, p: claimed.every(lambda x, q: implies(q == p, x == m))),
    }
    return KernelStep(after, guards)


def join_answered(kernel: Kernel, member: Token, generation: Token) -> KernelStep:
    """A member takes the response to its JoinGroup; it owns only partitions that it claimed in the request."""
    after = evolve(
        kernel,
        syncing=kernel.syncing.plus(member),
        stable=kernel.stable.without(member),
        believed=kernel.believed.without(member).plus(member, generation),
    )
    guards = {
        "the member joined": kernel.joined.has(generation, member),
        "it claimed what it owns": kernel.owned.suffixes(member).every(
            lambda p: kernel.claimed.has(generation, member, p)
        ),
    }
    return KernelStep(after, guards)


def sync_answered(kernel: Kernel, member: Token, generation: Token) -> KernelStep:
    """A member takes its assignment; what it gives up it may commit, in the new generation (onPartitionsRevoked)."""
    given = kernel.assigned.suffixes(generation, member)
    lost = kernel.owned.suffixes(member).minus(given)
    after = evolve(
        kernel,
        owned=kernel.owned.without(member).plus_all((member,), given),
        syncing=kernel.syncing.without(member),
        stable=kernel.stable.plus(member),
        sent=kernel.sent.plus_all((member, generation), lost),
    )
    guards = {
        "the member awaits it": kernel.syncing.has(member),
        "in this generation": kernel.believed.has(member, generation),
        "the assignment is known": kernel.published.has(generation),
    }
    return KernelStep(after, guards)


def commit(kernel: Kernel, member: Token, generation: Token, partition: Token) -> KernelStep:
    """A member commits a partition that it believes to own, in the generation that it believes in."""
    after = evolve(kernel, sent=kernel.sent.plus(member, generation, partition))
    guards = {
        "the member has a generation": or_(kernel.stable.has(member), kernel.syncing.has(member)),
        "this one": kernel.believed.has(member, generation),
        "the member owns the partition": kernel.owned.has(member, partition),
    }
    return KernelStep(after, guards)


def accept(kernel: Kernel, member: Token, generation: Token, partition: Token) -> KernelStep:
    """The coordinator accepts a commit."""
    after = evolve(kernel, accepted=kernel.accepted.plus(member, generation, partition))
    guards = {
        "it was sent": kernel.sent.has(member, generation, partition),
        "its generation is current": generation == kernel.current,
        "no assignment is awaited": not_(kernel.open),
        "its sender is a member": kernel.registered.has(member),
    }
    return KernelStep(after, guards)


def shrink(kernel: Kernel, member: Token, keeps: Relation) -> KernelStep:
    """A member gives partitions up before it joins again, or all if it keeps none."""
    kept = kernel.owned.suffixes(member).minus(kernel.owned.suffixes(member).minus(keeps))
    after = evolve(
        kernel,
        owned=kernel.owned.without(member).plus_all((member,), kept),
        syncing=kernel.syncing.without(member),
        stable=kernel.stable.without(member),
    )
    return KernelStep(after)


def lose(kernel: Kernel, member: Token) -> KernelStep:
    """A member learns that it is none, stops, or has its place taken by another process under its instance id."""
    after = evolve(
        kernel,
        owned=kernel.owned.without(member),
        syncing=kernel.syncing.without(member),
        stable=kernel.stable.without(member),
        believed=kernel.believed.without(member),
    )
    return KernelStep(after)


ACTIONS: Mapping[str, Callable[..., KernelStep]] = {
    action.__name__.replace("_", "-"): action
    for action in (
        complete,
        complete_empty,
        prepare,
        register,
        unregister,
        publish,
        join_answered,
        sync_answered,
        commit,
        accept,
        shrink,
        lose,
    )
}
"""Every action by name; a kernel begins empty or with `adopt`."""
