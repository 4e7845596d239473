"""Scenarios for the comparison of mutants: groups of three to six members, and the initial delay."""

from collections.abc import Awaitable, Callable

from fencepost.conformance.scenario.context import Member, ScenarioContext

Change = Callable[..., Awaitable[None]]
GROUP_SIZES = (3, 4, 5, 6)


async def look(group: ScenarioContext, *members: Member) -> None:
    """Look at all that the group holds; heartbeats show who is a member."""
    for call in (group.describe_groups(), group.fetch(None), group.fetch([0, 1, 2, 3], stable=True)):
        await call
    await group.send("ListGroups", {"states_filter": [], "types_filter": []})
    for member in members:
        await group.heartbeat(member)


async def leave_one(group: ScenarioContext, *members: Member) -> None:
    """The last member leaves, and the others come back."""
    await group.leave(members[-1])
    await rejoin(group, *members[:-1])


async def rejoin(group: ScenarioContext, *members: Member) -> None:
    """All members rejoin, and sync as far as they can."""
    calls = [group.join(member) for member in members]
    for call in calls:
        await call
    leader = next((member for member in members if member.is_leader), members[0])
    rest = [member for member in members if member is not leader]
    for call in [*(group.sync(member) for member in rest), group.sync_leader(leader, *rest)]:
        await call


async def lose_two(group: ScenarioContext, *members: Member) -> None:
    """Two members are silent until the join phase ends without them."""
    await rejoin(group, *members[:-2])
    await group.sleep_past(members[0].rebalance_timeout)


async def sync_partly(group: ScenarioContext, *members: Member) -> None:
    """In the next generation the leader and one follower sync, the others do not in time."""
    calls = [group.join(member) for member in members]
    for call in calls:
        await call
    leader = next((member for member in members if member.is_leader), members[0])
    rest = [member for member in members if member is not leader]
    await group.sync_leader(leader, *rest)
    await group.sync(rest[0])
    await group.sleep_past(leader.rebalance_timeout)


async def restart_twice(group: ScenarioContext, *members: Member) -> None:
    """The coordinator restarts, all rejoin, and it restarts again."""
    await group.restart()
    await look(group, *members)
    await rejoin(group, *members)
    await group.restart()


async def crowd(group: ScenarioContext, *members: Member) -> None:
    """Newcomers come until the group is full, one of them in vain."""
    for label in "UVWXYZ":
        group.join(group.member_without_heartbeats(label))
        await group.sleep(group.short_pause)
    await rejoin(group, *members)


async def replace_statics(group: ScenarioContext, *members: Member) -> None:
    """Every static member is replaced, the leader last, and the old ones look in."""
    for member in reversed(members):
        new = group.replacement_of(member)
        group.join(new)
        await group.sleep(group.short_pause)
        await group.sync(new)
    await group.sleep_past(members[0].rebalance_timeout)


async def expire_in_turn(group: ScenarioContext, *members: Member) -> None:
    """The members have sessions of different lengths, and nobody heartbeats."""
    for _ in members:
        await group.sleep(group.session_timeout // 2)
        await look(group)


CHANGES_OF_MEMBERS: tuple[Change, ...] = (
    leave_one,
    lose_two,
    sync_partly,
    restart_twice,
    crowd,
    replace_statics,
    expire_in_turn,
)


async def change_members(size: int, change: Change, group: ScenarioContext) -> None:
    """Form a group of this size, let something happen to it, and look."""
    members = [group.member_without_heartbeats(label) for label in "ABCDEF"[:size]]
    for number, member in enumerate(members):
        if change is replace_statics or number % 2:
            member.instance = f"{member.label}-{group.group_id}"
        member.rebalance_timeout = 2_000 + 500 * number
        if change is expire_in_turn:
            member.session_timeout = group.session_timeout + 700 * number
    formed = await group.form_stable_group(*members)
    await group.commit(formed[0], {0: 7, 1: 8})
    await change(group, *formed)
    await look(group, *formed)
    await group.sleep_past(members[-1].rebalance_timeout)
    await look(group, *formed)


async def extend_initial_delay(steps: int, group: ScenarioContext) -> None:
    """So many members come one after the other during the initial delay, with a short rebalance timeout."""
    delay = group.initial_delay
    members = [group.member_without_heartbeats(label) for label in "ABCDEF"[:steps]]
    for member in members:
        member.rebalance_timeout = delay * 5 // 2
    calls = []
    for member in members:
        calls.append(await group.join_new(member))
        await group.sleep(delay * 3 // 4)
    await group.sleep(4 * delay)
    for call in calls:
        await call
    await look(group, *members)
