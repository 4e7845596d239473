"""What holds of a KIP-848 group of any number of members, and the events that keep it."""

from fencepost.model.logic import Truth
from fencepost.model.proofs.arbitrary_values import Contract
from fencepost.model.proofs.induction import HandlerEvent
from fencepost.model.statement import statement
from tests.support.consumer import next_step as steps
from tests.support.consumer.next_step import UNREVOKED, Member, Partitions, Targets, Window, held


@statement("OWN", "What a member holds is held by no other.")
def own(window: Window) -> Truth:
    return held(window.member).isdisjoint(window.others_hold)


@statement("WINDOW", "A member in the epoch of the target holds nothing that is meant for another.")
def window_of_target(window: Window) -> Truth:
    return window.member.epoch != window.target_epoch or held(window.member).isdisjoint(window.others_target)


@statement("apart", "What a member has to give up is not assigned to it, and it has to only while it is unrevoked.")
def apart(window: Window) -> Truth:
    member = window.member
    return member.assigned.isdisjoint(member.revoking) and (not member.revoking or member.state == UNREVOKED)


@statement("targets", "What is meant for a member is meant for no other.")
def targets_are_apart(window: Window) -> Truth:
    return window.target.isdisjoint(window.others_target)


@statement("epochs", "A member's epoch is at most the target's, and that at most the group's.")
def epochs_are_ordered(window: Window) -> Truth:
    member = window.member
    return 0 <= member.previous <= member.epoch <= window.target_epoch <= window.group_epoch


@statement("partition-epochs", "A partition was assigned in an epoch that its member has reached.")
def partition_epochs(window: Window) -> Truth:
    member = window.member
    return all(part in member.epochs and 0 <= member.epochs[part] <= member.epoch for part in held(member))


@statement("epochs-grow", "No epoch of the group goes back.")
def epochs_grow(before: Window, after: Window) -> Truth:
    return after.group_epoch >= before.group_epoch and after.target_epoch >= before.target_epoch


@statement("revoked-first", "A member gets a later epoch only when it holds nothing outside of its target.")
def revoked_first(before: Window, after: Window) -> Truth:
    return after.member.epoch <= before.member.epoch or held(after.member) <= after.target


STATEMENTS = (
    own,
    window_of_target,
    apart,
    targets_are_apart,
    epochs_are_ordered,
    partition_epochs,
    epochs_grow,
    revoked_first,
)


def keeps_contract(subscribed: Partitions, epoch: int, made: Targets) -> Truth:
    """What every assignor has to: nothing for two members, nothing that was not subscribed."""
    return made.member.isdisjoint(made.others) and made.member <= subscribed


def is_other(window: Window, other: Member, target: Partitions, rest: Partitions, reported: Partitions | None) -> Truth:
    """One of the others: it and the rest hold together what the others hold, each its own."""
    return (
        window.others_hold == held(other) | rest
        and held(other).isdisjoint(rest)
        and other.assigned.isdisjoint(other.revoking)
        and target <= window.others_target
    )


def is_smaller(window: Window, rest: Partitions) -> Truth:
    return rest <= window.others_hold


def has_changed(window: Window, assignor: object) -> Truth:
    return window.group_epoch > window.target_epoch


EVENTS = (
    HandlerEvent("heartbeat", steps.heartbeat, (Partitions | None, Partitions)),
    HandlerEvent("join", steps.join, (Partitions,)),
    HandlerEvent("fence", steps.fence, ()),
    HandlerEvent(
        "other-heartbeat", steps.other_heartbeat, (Member, Partitions, Partitions, Partitions | None), is_other
    ),
    HandlerEvent("other-is-fenced", steps.other_is_fenced, (Partitions,), is_smaller),
    HandlerEvent("bump", steps.bump, ()),
    HandlerEvent("assign", steps.assign, (Contract(Targets, keeps_contract),), has_changed),
)
RETRY = HandlerEvent("retry", steps.retry, (Partitions | None, Partitions))


@statement("idempotent", "A heartbeat that is sent again gives and takes nothing more.")
def idempotent(before: Window, after: tuple[Window, Window]) -> Truth:
    once, twice = after[0].member, after[1].member
    is_where_it_was = once.epoch == twice.epoch and once.state == twice.state
    return is_where_it_was and once.assigned == twice.assigned and once.revoking == twice.revoking


# --- Progress: a rank that a fair step lowers and no other raises, so that the number of fair steps is bounded by it.

OBEY = HandlerEvent("obey", steps.obey, ())


def distance(window: Window) -> int:
    """How many heartbeats a member that obeys is away from the epoch of the target, while the target stands."""
    member = window.member
    settled = member.epoch == window.target_epoch and member.state != UNREVOKED
    revoked = member.state == UNREVOKED and member.assigned <= window.target & member.subscribed
    return 0 if settled else 1 if revoked else 2


@statement("approaches", "A heartbeat of a member that obeys brings it nearer to the epoch of its target.")
def approaches(before: Window, after: Window) -> Truth:
    return distance(before) == 0 or distance(after) < distance(before)


@statement("undisturbed", "A step that leaves the target as it is takes nobody else further away from it.")
def is_undisturbed(before: Window, after: Window) -> Truth:
    return distance(after) <= distance(before)
