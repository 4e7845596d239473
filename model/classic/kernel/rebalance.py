"""Why a group settles: a rebalance reduced to who is still awaited, for any number of members.

From some moment on the members stop changing: the `living` act when they have to and are quicker than timers, the dead
never act. Each action lowers a rank, and while the group is not settled some action is possible. The rank is a row of
sets and the phase between them, compared from the first on; a set is lower than another one if it is a part of it and
not all of it. A finite set can lose members finitely often only, so every run ends, and it ends settled.

Messages, timers and responses are within the actions; who does nothing but repeat a request changes nothing here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.frozen import evolve
from fencepost.model.logic import Token, Truth, and_, not_, or_
from fencepost.model.relations import FiniteRelation, Relation
from fencepost.model.statement import implies


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Who is awaited. Each relation is a set of members; `preparing` and `completing` are never both true."""

    preparing: Truth = False
    """The join phase goes on."""
    completing: Truth = False
    """The leader's assignment is awaited."""
    leader: Token = None
    members: Relation = field(default_factory=FiniteRelation)
    living: Relation = field(default_factory=FiniteRelation)
    """Of members and others: who acts when it has to."""
    joined: Relation = field(default_factory=FiniteRelation)
    """Whose JoinGroup waits."""
    synced: Relation = field(default_factory=FiniteRelation)
    """Whose SyncGroup waits."""
    told: Relation = field(default_factory=FiniteRelation)
    """Who has the assignment of the stable group."""
    may_revoke: Relation = field(default_factory=FiniteRelation)
    """Who may have to give a partition up, and then joins again: each once after the last change of the members."""
    owes_join: Relation = field(default_factory=FiniteRelation)
    """Who gave a partition up and has not joined again (KIP-429)."""


@dataclass(frozen=True, slots=True)
class RebalanceStep:
    """An action with its arguments: the rebalance after it, and whether it is possible."""

    after: Rebalance
    guard: Truth


def is_stable(rebalance: Rebalance) -> Truth:
    """The assignment is known."""
    return and_(not_(rebalance.preparing), not_(rebalance.completing))


def is_needed(rebalance: Rebalance, member: Token) -> Truth:
    """A living member of the group."""
    return and_(rebalance.members.has(member), rebalance.living.has(member))


def begin_join_phase(rebalance: Rebalance, **changes: Any) -> Rebalance:
    """The group in a join phase; parked SyncGroups were answered with REBALANCE_IN_PROGRESS."""
    empty = rebalance.members.empty()
    begun: dict[str, Any] = {"preparing": True, "completing": False, "joined": empty, "synced": empty, "told": empty}
    return evolve(rebalance, **(begun | changes))


def arrive(rebalance: Rebalance, member: Token) -> RebalanceStep:
    """A newcomer is added, its JoinGroup parked. From here on every member may have to give something up."""
    joined = rebalance.joined.plus(member)
    after = begin_join_phase(
        rebalance,
        members=rebalance.members.plus(member),
        joined=joined,
        may_revoke=rebalance.living,
    )
    return RebalanceStep(after, and_(rebalance.living.has(member), not_(rebalance.members.has(member))))


def remove(rebalance: Rebalance, gone: Token) -> RebalanceStep:
    """A dead member is removed by a timer; if no join phase goes on, one begins."""
    rest = rebalance.members.without(gone)
    after = begin_join_phase(
        rebalance, members=rest, joined=rebalance.joined.without(gone), may_revoke=rebalance.living
    )
    return RebalanceStep(after, and_(rebalance.members.has(gone), not_(rebalance.living.has(gone))))


def join(rebalance: Rebalance, member: Token) -> RebalanceStep:
    """A member joins in the join phase."""
    after = evolve(rebalance, joined=rebalance.joined.plus(member), owes_join=rebalance.owes_join.without(member))
    guard = and_(rebalance.preparing, is_needed(rebalance, member), not_(rebalance.joined.has(member)))
    return RebalanceStep(after, guard)


def rejoin(rebalance: Rebalance, member: Token) -> RebalanceStep:
    """A member that gave a partition up joins again, and begins the second rebalance."""
    waiting = rebalance.members.empty().plus(member)
    after = begin_join_phase(rebalance, joined=waiting, owes_join=rebalance.owes_join.without(member))
    guard = and_(not_(rebalance.preparing), is_needed(rebalance, member), rebalance.owes_join.has(member))
    return RebalanceStep(after, guard)


def complete(rebalance: Rebalance, leader: Token, dropped: Relation) -> RebalanceStep:
    """The join phase ends once the living have joined: by itself, or by its timer, which drops absent members.

    Every parked JoinGroup is answered.
    """
    empty = rebalance.members.empty()
    after = evolve(
        rebalance,
        preparing=False,
        completing=True,
        leader=leader,
        members=rebalance.members.minus(dropped),
        joined=empty,
        synced=empty,
    )
    everyone = rebalance.members.every(lambda m: implies(rebalance.living.has(m), rebalance.joined.has(m)))
    absent = dropped.every(lambda m: not_(rebalance.living.has(m)))
    return RebalanceStep(after, and_(rebalance.preparing, is_needed(rebalance, leader), everyone, absent))


def sync(rebalance: Rebalance, member: Token) -> RebalanceStep:
    """A SyncGroup is parked until the leader's comes."""
    after = evolve(rebalance, synced=rebalance.synced.plus(member))
    guard = and_(
        rebalance.completing,
        is_needed(rebalance, member),
        not_(member == rebalance.leader),
        not_(rebalance.synced.has(member)),
    )
    return RebalanceStep(after, guard)


def publish(rebalance: Rebalance) -> RebalanceStep:
    """The leader's SyncGroup brings the assignment and answers every parked one."""
    told = rebalance.synced.plus(rebalance.leader)
    after = evolve(rebalance, completing=False, synced=rebalance.members.empty(), told=told)
    return RebalanceStep(after, and_(rebalance.completing, is_needed(rebalance, rebalance.leader)))


def tell(rebalance: Rebalance, member: Token) -> RebalanceStep:
    """A SyncGroup in a stable group is answered at once."""
    after = evolve(rebalance, told=rebalance.told.plus(member))
    guard = and_(is_stable(rebalance), is_needed(rebalance, member), not_(rebalance.told.has(member)))
    return RebalanceStep(after, guard)


def revoke(rebalance: Rebalance, member: Token) -> RebalanceStep:
    """A member that got its assignment gives a partition up, and has to join again."""
    after = evolve(
        rebalance,
        may_revoke=rebalance.may_revoke.without(member),
        owes_join=rebalance.owes_join.plus(member),
    )
    guard = and_(is_needed(rebalance, member), rebalance.may_revoke.has(member), not_(rebalance.joined.has(member)))
    return RebalanceStep(after, guard)


REBALANCE_ACTIONS: Mapping[str, Callable[..., RebalanceStep]] = {
    action.__name__: action for action in (arrive, remove, join, rejoin, complete, sync, publish, tell, revoke)
}
"""Every action by name."""


def is_awaited(rebalance: Rebalance, member: Token) -> Truth:
    """The phase cannot end, or the group is not settled, before this living member acts."""
    return and_(
        is_needed(rebalance, member),
        or_(
            and_(rebalance.preparing, not_(rebalance.joined.has(member))),
            and_(rebalance.completing, not_(rebalance.synced.has(member))),
            and_(is_stable(rebalance), not_(rebalance.told.has(member))),
        ),
    )


SetOfRank = Callable[[Rebalance, Token], Truth]
"""Whether a member is in a set."""


def is_newcomer(rebalance: Rebalance, member: Token) -> Truth:
    """The member lives and has not been added."""
    return and_(rebalance.living.has(member), not_(rebalance.members.has(member)))


def is_dead_member(rebalance: Rebalance, member: Token) -> Truth:
    """The group has the member, which does not live."""
    return and_(rebalance.members.has(member), not_(rebalance.living.has(member)))


def may_revoke(rebalance: Rebalance, member: Token) -> Truth:
    """The member may have to give something up."""
    return rebalance.may_revoke.has(member)


def owes_join(rebalance: Rebalance, member: Token) -> Truth:
    """The member has to join again."""
    return rebalance.owes_join.has(member)


BEFORE_PHASE: tuple[SetOfRank, ...] = (is_newcomer, is_dead_member, may_revoke, owes_join)
"""The sets of the rank that come before the phase; who is awaited comes behind it."""


def phase_rank(rebalance: Rebalance) -> tuple[Truth, Truth]:
    """The phase as two digits, the first one counting more."""
    return rebalance.preparing, rebalance.completing


def is_settled(rebalance: Rebalance, member: Token) -> Truth:
    """Nothing is left to do for, or because of, this member; a group is settled if that is so of everyone."""
    return and_(
        is_stable(rebalance),
        not_(is_newcomer(rebalance, member)),
        not_(is_dead_member(rebalance, member)),
        not_(and_(rebalance.members.has(member), owes_join(rebalance, member))),
        not_(is_awaited(rebalance, member)),
        not_(rebalance.joined.has(member)),
        not_(rebalance.synced.has(member)),
    )
