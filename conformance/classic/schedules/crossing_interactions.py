"""Interactions in which one operation is held open while others take place: the product of both.

What is held open begins before its `yield` and ends after it. What crosses it is any of `CROSSINGS`, or another
operation that is held open.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from fencepost.conformance.classic.schedules.cast import SHORT
from fencepost.conformance.classic.schedules.interactions import Condition, Family, interaction
from fencepost.conformance.classic.schedules.offset_interactions import (
    PRODUCERS,
    WITHOUT_MEMBER,
    draw_offset,
    draw_sender,
    leave_all,
    transact,
)
from fencepost.conformance.classic.schedules.schedule_builder import ScheduleBuilder
from fencepost.conformance.classic.schedules.time_interactions import has_minutes_left, is_virtual, retain
from fencepost.conformance.run.schedule import Value

MAX_CROSSINGS = 2
"""How many operations cross one that is held open."""
RETENTION_VERSIONS = (2, 3, 4)
"""The versions of OffsetCommit that name a retention time."""
RETENTIONS_MS = (-1, 2_000, 30_000)
"""Retention times of commits; -1 is the target's own."""


@dataclass(frozen=True, slots=True)
class HeldOpen:
    """What an operation that is held open is about: an actor, and perhaps a partition and a producer."""

    who: int
    partition: int = 0
    producer: int = 0


HeldOperation = Callable[[ScheduleBuilder], AbstractContextManager[HeldOpen]]
HELD: dict[HeldOperation, Condition] = {}
"""The operations that are held open, and when each is possible."""


def hold_open(
    family: Family, when: Condition = lambda builder: True
) -> Callable[[Callable[[ScheduleBuilder], Iterator[HeldOpen]]], HeldOperation]:
    """Register an operation that is held open, and the interaction of the family in which others cross it."""

    def register(begin_and_end: Callable[[ScheduleBuilder], Iterator[HeldOpen]]) -> HeldOperation:
        held = contextmanager(begin_and_end)

        def cross_held(builder: ScheduleBuilder) -> None:
            with held(builder) as subject:
                for _ in range(builder.draw.number(1, MAX_CROSSINGS)):
                    cross(builder, held, subject)
            builder.draw.choose((builder.heartbeat_all, builder.fetch_all))()

        cross_held.__name__ = f"cross_{begin_and_end.__name__}"
        interaction(family, when)(cross_held)
        HELD[held] = when
        return held

    return register


def cross(builder: ScheduleBuilder, held: HeldOperation, subject: HeldOpen) -> None:
    """Make a crossing beside the operation that is held open: as often as not a second one is held open."""
    further = [each for each, when in HELD.items() if each is not held and when(builder)]
    if builder.draw.number(0, 3) == 0:
        with builder.draw.choose(further)(builder) as second:
            make_crossing(builder, builder.draw.choose((subject, second)))
    else:
        make_crossing(builder, subject)


def make_crossing(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """Make one of the crossings that are possible."""
    builder.draw.choose([each for each, when in CROSSINGS.items() if when(builder)])(builder, subject)


# --- what is held open ------------------------------------------------------------------------------------------


@hold_open(Family.LOSSES)
def parked_join(builder: ScheduleBuilder) -> Iterator[HeldOpen]:
    """Some members or newcomers wait in the join phase for one that is absent."""
    absent = builder.pick_member()
    for each in builder.pick_actors(3):
        if each != absent:
            builder.make_move("join", each, {"metadata": builder.draw.number(0, 2)})
            builder.join_until_member(each)
    yield HeldOpen(builder.draw.choose((absent, builder.pick_member())))
    builder.wait_for_joins(builder.members())
    builder.sync_all(builder.members())


@hold_open(Family.GENERATIONS)
def pending_id(builder: ScheduleBuilder) -> Iterator[HeldOpen]:
    """A newcomer has an id and does not use it, or only later."""
    owner = builder.pick_newcomer()
    builder.make_move("join", owner, {"as": "nobody", "session": SHORT})
    yield HeldOpen(owner)
    if builder.flag():
        builder.rebalance((owner,))


@hold_open(Family.GENERATIONS)
def sync_phase(builder: ScheduleBuilder) -> Iterator[HeldOpen]:
    """A generation waits for the SyncGroup of its leader; those of followers are parked, or nobody has sent any."""
    wanted = tuple(builder.members())
    for each in wanted:
        builder.make_move("join", each, {"metadata": builder.draw.number(0, 2)})
        builder.join_until_member(each)
    builder.wait_for_joins(wanted)
    followers = [each for each in wanted if not builder.simulation.is_leader(each)]
    if builder.flag():
        builder.sync_all(followers)
    yield HeldOpen(builder.draw.choose(wanted))
    builder.sync_all(builder.members())


@hold_open(Family.STATIC_MEMBERS)
def absent_member(builder: ScheduleBuilder) -> Iterator[HeldOpen]:
    """The others go on without a member, which stays if it is static; then it sends a request, or comes back."""
    absent = next((each for each in builder.members() if builder.roles[each].instance), builder.pick_member())
    others = [each for each in builder.members() if each != absent] or [builder.pick_newcomer()]
    for each in others:
        builder.make_move("join", each, {"metadata": builder.draw.number(0, 2)})
        builder.join_until_member(each)
    builder.wait_for_joins(others)
    builder.sync_all(others)
    yield HeldOpen(absent)
    builder.make_move(builder.draw.choose(("join", "sync", "heartbeat", "commit", "leave", "crash")), absent)


@hold_open(Family.OFFSETS)
def group_without_members(builder: ScheduleBuilder) -> Iterator[HeldOpen]:
    """A group has offsets and no members; then it may be joined again."""
    who, options = builder.pick_member(), draw_offset(builder)
    builder.make_move("commit", who, {**options, **draw_sender(builder)})
    leave_all(builder)
    yield HeldOpen(who, int(options["partition"]))
    if builder.flag():
        builder.rebalance(builder.pick_actors(2))


@hold_open(Family.OFFSETS, has_minutes_left)
def ageing_offset(builder: ScheduleBuilder) -> Iterator[HeldOpen]:
    """A part of the retention of an offset has passed, be it that of its commit or the target's."""
    who, options = builder.pick_member(), draw_offset(builder)
    builder.make_move("commit", who, {**options, **draw_sender(builder), **draw_retention(builder)})
    retain(builder)
    yield HeldOpen(who, int(options["partition"]))
    retain(builder)


@hold_open(Family.TRANSACTIONS, lambda builder: builder.scope.transactions)
def open_transaction(builder: ScheduleBuilder) -> Iterator[HeldOpen]:
    """A transaction has an offset of a partition that may have a committed one; it ends, or its producer is fenced."""
    who, options, producer = builder.pick_member(), draw_offset(builder), builder.draw.number(0, PRODUCERS - 1)
    if builder.flag():
        sender = builder.draw.choose(({}, WITHOUT_MEMBER))
        builder.make_move("commit", who, {**options, **sender, "offset": builder.draw.number(0, 90)})
    transact(builder, producer, options)
    yield HeldOpen(who, int(options["partition"]), producer)
    builder.act("fetch", {"stable": 1, "partition": options["partition"]})
    match builder.draw.choose(("commit", "commit", "abort", "fence", "stay")):
        case "fence":
            builder.act("init-producer", {"producer": producer})
            transact(builder, producer, {**options, "epoch": -1})
        case "commit" | "abort" as how:
            builder.act("end", {"producer": producer, **({"abort": 1} if how == "abort" else {})})


# --- what crosses it --------------------------------------------------------------------------------------------


def draw_retention(builder: ScheduleBuilder) -> Mapping[str, Value]:
    """Every second time the options of a commit that names its retention time."""
    version, retention = builder.draw.choose(RETENTION_VERSIONS), builder.draw.choose(RETENTIONS_MS)
    return {"version": version, "retention": retention} if builder.flag() else {}


def pick_one(builder: ScheduleBuilder, subject: HeldOpen) -> int:
    """The actor that the operation is about, or any member."""
    return builder.draw.choose((subject.who, builder.pick_member()))


def delete_group(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """An administrator deletes the group; its members may have left."""
    if builder.flag():
        leave_all(builder)
    builder.act("delete")


def delete_offset(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """An administrator deletes the offset."""
    builder.act("delete-offsets", {"partition": subject.partition})


def restart(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """The target restarts."""
    builder.act("restart")


def pass_retention(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """The retention of offsets passes, in part or as a whole."""
    if builder.flag():
        retain(builder)
    else:
        builder.pass_time("retention", 1)


def clean_up(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """A clean-up takes place, or several."""
    builder.act("wait", {"ms": builder.scope.settings.retention_check_interval * builder.draw.number(1, 3)})


def pass_deadline(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """A deadline of the rebalance or of the initial delay is near or over."""
    builder.pass_time(builder.draw.choose(("rebalance", "delay")), builder.draw.choose((-1, 1)))


def pass_session(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """A session is nearly or quite over."""
    who = pick_one(builder, subject)
    if builder.can_wait_for_session(who):
        builder.make_move("wait", who, {"for": "session", "side": builder.draw.choose((-1, 1))})


def admit_newcomer(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """A newcomer joins; the others may rejoin."""
    newcomer = builder.pick_newcomer()
    builder.join_until_member(newcomer)
    if builder.flag():
        builder.rebalance((newcomer,))


def lose_member(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """A member leaves or crashes, or all leave."""
    how = builder.draw.choose(("leave", "crash", "all"))
    if how == "all":
        leave_all(builder)
    else:
        builder.make_move(how, pick_one(builder, subject))


def replace_member(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """A member starts again without its id; its former self may go on."""
    who = pick_one(builder, subject)
    builder.make_move("crash", who)
    builder.join_until_member(who)
    if builder.flag():
        builder.make_move(builder.draw.choose(("heartbeat", "commit", "sync", "join")), who, {"as": "former"})


def ask_again(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """A member joins, syncs or heartbeats once more."""
    builder.make_move(builder.draw.choose(("join", "sync", "heartbeat")), pick_one(builder, subject))


def commit(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """The offset is committed, perhaps with a retention time of its own."""
    options = {"partition": subject.partition, "offset": builder.draw.number(0, 90)}
    sender = {**draw_sender(builder), **draw_retention(builder)}
    builder.make_move("commit", pick_one(builder, subject), {**options, **sender})


def transact_beside(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """A producer commits the offset in its transaction, which may end."""
    producer = builder.draw.number(0, PRODUCERS - 1)
    transact(builder, producer, {"partition": subject.partition, "offset": builder.draw.number(0, 90)})
    if builder.flag():
        builder.act("end", {"producer": producer, **({"abort": 1} if builder.flag() else {})})


def restart_producer(builder: ScheduleBuilder, subject: HeldOpen) -> None:
    """The producer starts again, which aborts its transaction."""
    builder.act("init-producer", {"producer": subject.producer})


CROSSINGS: Mapping[Callable[[ScheduleBuilder, HeldOpen], None], Condition] = {
    delete_group: lambda builder: True,
    delete_offset: lambda builder: True,
    restart: lambda builder: builder.can_restart(),
    pass_retention: has_minutes_left,
    clean_up: is_virtual,
    pass_deadline: lambda builder: True,
    pass_session: lambda builder: True,
    admit_newcomer: lambda builder: True,
    lose_member: lambda builder: True,
    replace_member: lambda builder: True,
    ask_again: lambda builder: True,
    commit: lambda builder: True,
    transact_beside: lambda builder: builder.scope.transactions,
    restart_producer: lambda builder: builder.scope.transactions,
}
"""What may happen while an operation is held open, and when it is possible."""
