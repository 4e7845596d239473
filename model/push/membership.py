"""Registration, removal and changes of topics and partitions: what makes a group rebalance (draft, 4 to 6)."""

from fencepost.model.frozen import evolve
from fencepost.model.logic import Token
from fencepost.model.push.dialect import PushDialect
from fencepost.model.push.group import GroupStep, PushGroup, PushMember
from fencepost.model.push.messages import DUPLICATE, TIMEOUT_TOO_SMALL, RegisterRequest


def register_consumer(
    group: PushGroup | None, request: RegisterRequest, has_topics: bool, minimum_ms: int, dialect: PushDialect
) -> tuple[PushGroup | None, GroupStep | None, str, int]:
    """The group, the trigger of its rebalance if there is one, the rule, and the error of the response.

    A group that is None is new to the coordinator; `has_topics` says whether one that it wants exists.
    """
    known = PushGroup() if group is None else group
    if known.member(request.consumer) is not None:
        return group, None, "register.duplicate", DUPLICATE
    if request.session_timeout_ms <= minimum_ms:
        return group, None, "register.timeout-too-small", TIMEOUT_TOO_SMALL
    member = PushMember(
        request.consumer, request.number, request.interest, request.session_timeout_ms, request.auto_commit
    )
    members = tuple(sorted((*known.members, member), key=lambda one: str(one.consumer)))
    joined = evolve(known, members=members)
    if group is not None:
        return joined, trigger_rebalance(joined, dialect), "register.accepted", 0
    if not has_topics:
        return joined, None, "register.no-topics", 0
    # 5, handleNewGroup 3.1: the bit is created as true, and the member change that follows finds it set.
    created = evolve(joined, rebalancing=True)
    return created, GroupStep(created, "trigger.new-group", requests=1), "register.accepted", 0


def remove_consumer(group: PushGroup, consumer: Token, number: int, dialect: PushDialect) -> GroupStep | None:
    """The group without a consumer that is taken for dead; None if it has no such member.

    As drafted, whoever has the id now is removed.
    """
    gone = group.member(consumer)
    if gone is None or (dialect.numbers_registrations and gone.number != number):
        return None
    left = evolve(group, members=tuple(one for one in group.members if one is not gone))
    if not left.members:
        return GroupStep(left, "remove.last")
    return trigger_rebalance(left, dialect)


def trigger_rebalance(group: PushGroup, dialect: PushDialect) -> GroupStep:
    """Set the bit and ask for a rebalance; where the bit is set already, remember the change or forget it."""
    if not group.rebalancing:
        return GroupStep(evolve(group, rebalancing=True), "trigger.queued", requests=1)
    if dialect.remembers_changes:
        return GroupStep(evolve(group, changed=True), "trigger.remembered")
    return GroupStep(group, "trigger.forgotten")


def partitions_changed(group: PushGroup, dialect: PushDialect) -> GroupStep:
    """A listener hears of a new topic or partition of the group's (draft, 4): in one step, or reading first."""
    if dialect.compares_and_sets:
        return trigger_rebalance(group, dialect)
    if group.rebalancing:
        if dialect.remembers_changes:
            return GroupStep(evolve(group, changed=True), "trigger.remembered")
        return GroupStep(group, "trigger.forgotten")
    return GroupStep(evolve(group, read_clear=True), "listener.read-clear")


def listener_sets(group: PushGroup) -> GroupStep | None:
    """PUSH-H18 as drafted: the listener that has read the bit as clear sets it, whatever it is by now."""
    if not group.read_clear:
        return None
    return GroupStep(evolve(group, read_clear=False, rebalancing=True), "listener.set", requests=1)
