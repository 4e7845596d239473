"""The step of a member of a KIP-848 group, in plain Python, for one member and the sum of all others.

`next_step` is what a heartbeat makes of a member: it gives up what is no longer in its target, waits until it has
confirmed that, and takes what nobody else holds. The others are one set of partitions, however many they are. The same
function runs for any member, so what is proved of one and all others holds of a group of any number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import NewType, TypeAlias

from fencepost.model.frozen import evolve

Partition = NewType("Partition", str)
Partitions: TypeAlias = frozenset[Partition]
NOTHING: Partitions = frozenset()
MemberState = IntEnum("MemberState", ("STABLE", "UNREVOKED", "UNRELEASED"))
STABLE, UNREVOKED, UNRELEASED = MemberState


@dataclass(frozen=True, slots=True)
class Member:
    """A member: its epoch and the one before, what it is assigned and what it has yet to give up. The epoch of a
    partition is the one in which it was assigned."""

    epoch: int
    previous: int
    state: MemberState
    assigned: Partitions
    revoking: Partitions
    subscribed: Partitions
    epochs: dict[Partition, int]


@dataclass(frozen=True, slots=True)
class Window:
    """A group as one member sees it: what the other members hold together, and what is meant for them."""

    group_epoch: int
    target_epoch: int
    target: Partitions
    member: Member
    others_hold: Partitions
    others_target: Partitions


@dataclass(frozen=True, slots=True)
class Targets:
    """A target assignment: what is meant for the member, and what for all others."""

    member: Partitions
    others: Partitions


Assignor: TypeAlias = Callable[[Partitions, int], Targets]


def held(member: Member) -> Partitions:
    """What no other member may have yet."""
    return member.assigned | member.revoking


def next_step(member: Member, target: Partitions, epoch: int, reported: Partitions | None, taken: Partitions) -> Member:
    """NEXT: revoke, else move to the epoch of the target with all that is free. `taken` is what the others hold."""
    due = target & member.subscribed
    kept, vacated, wanted = member.assigned & due, member.assigned - due, due - member.assigned
    if vacated and (reported is None or not reported.isdisjoint(vacated)):
        return evolve(member, previous=member.epoch, state=UNREVOKED, assigned=kept, revoking=vacated)
    gained = wanted - taken
    return evolve(
        member,
        previous=member.epoch,
        epoch=epoch,
        state=STABLE if gained == wanted else UNRELEASED,
        assigned=kept | gained,
        revoking=NOTHING,
        epochs=member.epochs | dict.fromkeys(gained, epoch),
    )


def narrow(member: Member, reported: Partitions | None) -> Member:
    """A member in the epoch of its target gives up what it is no longer subscribed to."""
    lost = member.assigned - member.subscribed
    if not lost:
        return member
    rest = evolve(member, assigned=member.assigned - lost)
    if reported is not None and reported.isdisjoint(lost):
        return rest
    return evolve(rest, previous=member.epoch, state=UNREVOKED, revoking=lost)


def step_member(
    member: Member, target: Partitions, epoch: int, reported: Partitions | None, taken: Partitions
) -> Member:
    """A regular heartbeat, by the state of the member."""
    if member.state == STABLE and member.epoch == epoch:
        return narrow(member, reported)
    if member.state == UNREVOKED and (reported is None or not reported.isdisjoint(member.revoking)):
        return member
    return next_step(member, target, epoch, reported, taken)


# --- What happens to a group.


def heartbeat(window: Window, reported: Partitions | None, subscribed: Partitions) -> Window:
    """The member reports what it owns, and what it subscribes to now."""
    member = evolve(window.member, subscribed=subscribed)
    stepped = step_member(member, window.target, window.target_epoch, reported, window.others_hold)
    return evolve(window, member=stepped)


def obey(window: Window) -> Window:
    """The member gives up what it has to, reports what is left, and keeps its subscription."""
    return heartbeat(window, window.member.assigned, window.member.subscribed)


def join(window: Window, subscribed: Partitions) -> Window:
    """The member comes, or comes again, with nothing."""
    newcomer = Member(0, 0, UNRELEASED, NOTHING, NOTHING, subscribed, {})
    fits = evolve(window, target=window.target & subscribed, member=newcomer)
    return evolve(fits, member=next_step(newcomer, fits.target, window.target_epoch, NOTHING, window.others_hold))


def fence(window: Window) -> Window:
    """The member is removed: what it held is free."""
    gone = evolve(window.member, epoch=0, previous=0, state=UNRELEASED, assigned=NOTHING, revoking=NOTHING)
    return evolve(window, member=gone)


def other_heartbeat(
    window: Window, other: Member, target: Partitions, rest: Partitions, reported: Partitions | None
) -> Window:
    """Any other member takes its step; for it, this member and the `rest` are the others."""
    stepped = step_member(other, target, window.target_epoch, reported, held(window.member) | rest)
    return evolve(window, others_hold=rest | held(stepped))


def other_is_fenced(window: Window, rest: Partitions) -> Window:
    """Some other member is removed; the `rest` hold what they held."""
    return evolve(window, others_hold=rest)


def bump(window: Window) -> Window:
    """Something changed of which the next target has to take account."""
    return evolve(window, group_epoch=window.group_epoch + 1)


def assign(window: Window, assignor: Assignor) -> Window:
    """A target for the group's epoch is there."""
    made = assignor(window.member.subscribed, window.group_epoch)
    return evolve(window, target_epoch=window.group_epoch, target=made.member, others_target=made.others)


def retry(window: Window, reported: Partitions | None, subscribed: Partitions) -> tuple[Window, Window]:
    """The member's heartbeat, and the one that it sends again because the answer was lost."""
    once = heartbeat(window, reported, subscribed)
    return once, heartbeat(once, reported, subscribed)
