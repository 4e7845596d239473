"""How many partitions each member gets under equal subscriptions (member.md 5.4, uniform branch).

These functions run on plain numbers and, in the proofs of `model/proofs/assignors`, on symbolic ones.
"""

from dataclasses import dataclass

from fencepost.model.frozen import evolve
from fencepost.model.logic import Truth, and_, ite


@dataclass(frozen=True, slots=True)
class Quota:
    """The sizes of a balanced assignment: `low` for each member, and one more for as many as `extra` says.

    `extra` counts the members that may still get one more; each that does takes 1 off.
    """

    low: int
    extra: int


def kept_claims(quota: Quota, claims: int) -> int:
    """How many of its claims a member keeps: up to `low`, and one more if it has it and somebody may."""
    most = ite(and_(claims > quota.low, quota.extra > 0), quota.low + 1, quota.low)
    return ite(claims < most, claims, most)


def is_below(quota: Quota, size: int) -> Truth:
    """Whether a member of this size is still owed partitions."""
    return size < quota.low


def may_grow(quota: Quota, size: int) -> Truth:
    """Whether a member of this size may get the partition that only some get."""
    return and_(size == quota.low, quota.extra > 0)


def quota_after(quota: Quota, size: int) -> Quota:
    """The quota after a member has come to this size."""
    return evolve(quota, extra=quota.extra - ite(size > quota.low, 1, 0))
