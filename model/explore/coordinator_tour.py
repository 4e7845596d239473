"""The coordinator as a machine for tours: the shipped core on a clock, under every request of a small universe."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from fencepost.model.core.join import join
from fencepost.model.core.session import commit, heartbeat, leave
from fencepost.model.core.sync import sync
from fencepost.model.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.core.values import (
    FREE,
    Choices,
    CommitRequest,
    Context,
    Group,
    HeartbeatRequest,
    JoinRequest,
    LeaveRequest,
    Protocol,
    Slot,
    Step,
    SyncRequest,
)
from fencepost.model.explore.tours import Machine, Reaction
from fencepost.model.explore.world import absent_group


@dataclass(frozen=True, slots=True)
class Input:
    """A request, or "wait": let time pass until some timer fires.

    `member` is 0 for none, else which of the ids handed out so far, one more for an id that nobody has; `variant` tells
    a JoinGroup's metadata and a SyncGroup's assignments apart (0: none; n: all to the n-th member).
    """

    kind: str
    member: int = 0
    generation: int = -1
    variant: int = 0


@dataclass(frozen=True, slots=True)
class Universe:
    """What a tour tries. Times in milliseconds; the defaults suit a target whose bounds allow them."""

    ids: int = 2
    generations: int = 2
    metadata: int = 2
    session_timeout: int = 6_000
    rebalance_timeout: int = 9_000
    initial_delay: int = 3_000
    new_member_timeout: int = 300_000


@dataclass(frozen=True, slots=True)
class Local:
    """The machine's state: the group, its times counted from now, and how many ids were handed out."""

    group: Group
    ids: int = 0


PARKED = 1
"""The handle of every request: whose it is makes no difference to the coordinator."""
RANGE = "range"


def coordinator_machine(universe: Universe) -> Machine[Local, Input]:
    """The coordinator under every request of the universe."""
    group = Group(slots=(FREE,) * (universe.ids + 1))
    return Machine(Local(group), tuple(inputs(universe)), Coordinating(universe))


def inputs(universe: Universe) -> Iterator[Input]:
    """Every input."""
    somebody = range(1, universe.ids + 2)
    generations = range(universe.generations + 1)
    for member, variant in product((0, *somebody), range(universe.metadata)):
        yield Input("join", member, variant=variant)
    for member, generation in product(somebody, generations):
        yield Input("heartbeat", member, generation)
        yield Input("commit", member, generation)
        for variant in range(universe.ids + 1):
            yield Input("sync", member, generation, variant)
    for member in somebody:
        yield Input("leave", member)
    yield Input("wait")


@dataclass(frozen=True, slots=True)
class Coordinating:
    """What the coordinator makes of an input."""

    universe: Universe

    def __call__(self, state: Local, given: Input) -> Reaction[Local] | None:
        passed = 0
        if given.kind == "wait":
            times = deadlines(state.group)
            if not times:
                return None
            passed = min(times)
            step = self.fired(state, passed)
        elif due(state.group, 0):
            return None  # the timer is first
        else:
            step = self.handled(state, given)
        ids = state.ids + any(slot.id == state.ids + 1 for slot in step.group.slots)
        after = Local(counted_from(step.group, passed), ids)
        full = all(slot != FREE for slot in after.group.slots)
        if full or ids > self.universe.ids or after.group.generation > self.universe.generations:
            return None
        return Reaction(after, step.rule, passed)

    def context(self, state: Local, now: int) -> Context:
        """The moment of a step, with the first choices."""
        universe = self.universe
        return Context(
            now,
            Choices(member_id=state.ids + 1),
            initial_rebalance_delay=universe.initial_delay,
            new_member_timeout=universe.new_member_timeout,
        )

    def handled(self, state: Local, given: Input) -> Step:
        """A request, at once."""
        group, context = state.group, self.context(state, 0)
        member = given.member or None
        match given.kind:
            case "join":
                return join(group, self.join_request(member, given.variant), context)
            case "sync":
                owners = tuple(
                    (one, b"all" if one == given.variant else b"") for one in range(1, self.universe.ids + 1)
                )
                assigned = owners if given.variant else ()
                syncing = SyncRequest(PARKED, member, None, given.generation, "consumer", RANGE, assigned)
                return absent_group(group, syncing) or sync(group, syncing, context)
            case "heartbeat":
                beating = HeartbeatRequest(PARKED, member, None, given.generation)
                return absent_group(group, beating) or heartbeat(group, beating, context)
            case "commit":
                return commit(group, CommitRequest(PARKED, member, None, given.generation), context)
            case _:
                return leave(group, LeaveRequest(PARKED, ((member, None),)), context)

    def join_request(self, member: int | None, variant: int) -> JoinRequest:
        """JoinGroup of a dynamic member that speaks version 4 or later."""
        universe = self.universe
        return JoinRequest(
            handle=PARKED,
            member=member,
            instance=None,
            protocol_type="consumer",
            protocols=(Protocol(RANGE, variant),),
            session_timeout=universe.session_timeout,
            rebalance_timeout=universe.rebalance_timeout,
            requires_id=True,
            can_skip=True,
        )

    def fired(self, state: Local, now: int) -> Step:
        """All timers that are due, those of members first; the rule of the last one."""
        group, rules = state.group, []
        while due(group, now):
            context = self.context(replace(state, group=group), now)
            for index, slot in enumerate(group.slots):
                if slot.armed and slot.deadline <= now:
                    step = expire_member(group, index, context)
                    break
            else:
                join_due = group.join_armed and group.join_deadline <= now
                step = expire_join(group, context) if join_due else expire_sync(group, context)
            group = step.group
            rules.append(step.rule)
        return Step(group, (), rules[-1])


def deadlines(group: Group) -> list[int]:
    """The deadlines of all timers that are armed."""
    times = [slot.deadline for slot in group.slots if slot.armed]
    times += [group.join_deadline] * group.join_armed
    times += [group.sync_deadline] * group.sync_armed
    return times


def due(group: Group, now: int) -> bool:
    """Some timer is due."""
    return any(time <= now for time in deadlines(group))


def counted_from(group: Group, now: int) -> Group:
    """The group with its times counted from `now`, and none where nothing is armed."""

    def slot_from(slot: Slot) -> Slot:
        return replace(slot, deadline=slot.deadline - now if slot.armed else 0)

    return replace(
        group,
        slots=tuple(slot_from(slot) for slot in group.slots),
        join_deadline=group.join_deadline - now if group.join_armed else 0,
        sync_deadline=group.sync_deadline - now if group.sync_armed else 0,
    )
