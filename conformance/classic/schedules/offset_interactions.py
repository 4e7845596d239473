"""Interactions around committed offsets: commits, deletions, transactions, and several groups."""

from collections.abc import Mapping

from fencepost.conformance.classic.schedules.draw import draw_options
from fencepost.conformance.classic.schedules.interactions import Family, interaction
from fencepost.conformance.classic.schedules.schedule_builder import ScheduleBuilder
from fencepost.conformance.run.schedule import Value

PARTITIONS = 3
"""How many partitions of the kit's topic schedules commit offsets of."""
PRODUCERS = 3
WITHOUT_MEMBER: Mapping[str, Value] = {"as": "nobody", "generation": "none", "instance": "none"}
"""The options of a commit without a member."""


def draw_offset(builder: ScheduleBuilder) -> dict[str, Value]:
    """A partition and an offset; sometimes a further partition, or metadata and a leader epoch."""
    options: dict[str, Value] = {
        "partition": builder.draw.number(0, PARTITIONS - 1),
        "offset": builder.draw.number(0, 90),
    }
    match builder.draw.number(0, 3):
        case 0:
            options["further"] = (builder.draw.number(1, PARTITIONS - 1) + int(options["partition"])) % PARTITIONS
        case 1:
            options |= {"note": "note", "leader-epoch": builder.draw.number(0, 9)}
    return options


def leave_all(builder: ScheduleBuilder) -> None:
    """All members leave."""
    for each in builder.simulation.members(builder.group):
        builder.make_move("leave", each)


def draw_sender(builder: ScheduleBuilder) -> Mapping[str, Value]:
    """The options of a commit by a member, or without one."""
    return builder.draw.choose(({}, {}, WITHOUT_MEMBER))


# --- offsets ----------------------------------------------------------------------------------------------------


@interaction(Family.OFFSETS)
def commit_and_fetch(builder: ScheduleBuilder) -> None:
    """Offsets are committed and fetched."""
    options = draw_offset(builder)
    builder.make_move("commit", builder.pick_member(), options)
    builder.act("fetch", {"partition": options["partition"]})


@interaction(Family.OFFSETS)
def commit_without_member(builder: ScheduleBuilder) -> None:
    """A commit without a member id."""
    builder.act("commit", {**WITHOUT_MEMBER, **draw_offset(builder)})
    builder.fetch_all()


@interaction(Family.OFFSETS)
def commit_again(builder: ScheduleBuilder) -> None:
    """An offset is committed twice, lower the second time or not."""
    who, options = builder.pick_member(), draw_offset(builder)
    builder.make_move("commit", who, options)
    builder.make_move("commit", who, {**options, "offset": builder.draw.number(0, 90)})
    builder.act("fetch")


@interaction(Family.OFFSETS)
def send_perturbed_commit(builder: ScheduleBuilder) -> None:
    """A perturbed commit, followed by a fetch of the partition."""
    partition = builder.draw.number(0, PARTITIONS - 1)
    options = {**draw_options(builder.draw, "commit"), "partition": partition}
    builder.make_move("commit", builder.pick_member(), options)
    builder.act("fetch", {"partition": partition, "stable": 1})


@interaction(Family.OFFSETS)
def exceed_metadata(builder: ScheduleBuilder) -> None:
    """A commit whose metadata is too long, followed by a fetch of stable offsets, which need not wait for it."""
    builder.make_move("commit", builder.pick_member(), {**draw_offset(builder), "note": "long"})
    builder.act("fetch", {"partition": 0, "stable": 1})


@interaction(Family.OFFSETS)
def administrate(builder: ScheduleBuilder) -> None:
    """An administrator lists groups, describes the group, and deletes offsets."""
    builder.act("list")
    builder.act("describe")
    partition = builder.draw.number(0, PARTITIONS - 1)
    builder.act("delete-offsets", {"partition": partition, **({"further": 1} if partition != 1 else {})})
    builder.fetch_all()


@interaction(Family.OFFSETS)
def delete_group(builder: ScheduleBuilder) -> None:
    """The members may leave; an administrator deletes the group."""
    if builder.flag():
        leave_all(builder)
    builder.act("delete")
    builder.act("describe")
    builder.act("fetch")


# --- transactions -----------------------------------------------------------------------------------------------


def transact(builder: ScheduleBuilder, producer: int, options: Mapping[str, Value]) -> None:
    """A producer commits offsets of the group in its transaction."""
    sender = draw_sender(builder)
    builder.make_move("transact", builder.pick_member(), {**sender, **options, "producer": producer})


@interaction(Family.TRANSACTIONS)
def commit_in_transaction(builder: ScheduleBuilder) -> None:
    """A producer commits offsets in a transaction that stays open, or goes on."""
    options = draw_offset(builder)
    transact(builder, builder.draw.number(0, PRODUCERS - 1), options)
    builder.act("fetch", {"partition": options["partition"], "stable": 1})


@interaction(Family.TRANSACTIONS, lambda builder: bool(builder.simulation.open_transactions()))
def end_transaction(builder: ScheduleBuilder) -> None:
    """A transaction is committed or aborted, and the offsets are fetched."""
    producer = builder.draw.choose(builder.simulation.open_transactions())
    builder.act("end", {"producer": producer, **({"abort": 1} if builder.flag() else {})})
    builder.in_each_group(builder.fetch_all)


@interaction(Family.TRANSACTIONS)
def transact_with_two_producers(builder: ScheduleBuilder) -> None:
    """Two producers commit an offset of one partition; their transactions end in any order."""
    options, first = draw_offset(builder), builder.draw.number(0, PRODUCERS - 1)
    second = (first + 1) % PRODUCERS
    transact(builder, first, options)
    transact(builder, second, {**options, "offset": builder.draw.number(0, 90)})
    for producer in builder.draw.choose(((first, second), (second, first), (second,))):
        builder.act("end", {"producer": producer, **({"abort": 1} if builder.draw.number(0, 2) == 0 else {})})
        builder.fetch_all()


@interaction(Family.TRANSACTIONS)
def restart_producer(builder: ScheduleBuilder) -> None:
    """A producer starts again, which aborts its transaction alone; its predecessor may go on."""
    producer = builder.draw.number(0, PRODUCERS - 1)
    if is_open := builder.flag():
        transact(builder, producer, draw_offset(builder))
    builder.act("init-producer", {"producer": producer})
    builder.in_each_group(builder.fetch_all)
    if is_open and builder.flag():
        transact(builder, producer, {**draw_offset(builder), "epoch": -1})
        builder.fetch_all()


# --- several groups ---------------------------------------------------------------------------------------------


def has_several_groups(builder: ScheduleBuilder) -> bool:
    """Whether there is more than one group."""
    return len(builder.groups()) > 1


@interaction(Family.GROUPS, has_several_groups)
def commit_in_each_group(builder: ScheduleBuilder) -> None:
    """The same partition is committed in each group; one request fetches it for all of them."""
    partition = builder.draw.number(0, PARTITIONS - 1)

    def commit() -> None:
        options = {"partition": partition, "offset": builder.draw.number(0, 90)}
        builder.make_move("commit", builder.pick_member(), {**options, **draw_sender(builder)})

    builder.in_each_group(commit)
    builder.act("fetch", {"groups": "all", "partition": partition})


@interaction(Family.GROUPS, has_several_groups)
def ask_for_all_groups(builder: ScheduleBuilder) -> None:
    """One request describes all groups, or fetches or lists what all of them have."""
    builder.act(builder.draw.choose(("describe", "fetch")), {"groups": "all"})
    builder.act("list")


@interaction(Family.GROUPS, has_several_groups)
def rebalance_side_by_side(builder: ScheduleBuilder) -> None:
    """A rebalance begins in each group; they go on one after the other."""
    members: dict[int, tuple[int, ...]] = {}

    def begin() -> None:
        members[builder.group] = tuple(builder.members())
        for each in members[builder.group][: builder.draw.number(1, 3)]:
            builder.make_move("join", each, {"metadata": builder.draw.number(0, 2)})

    def go_on() -> None:
        builder.wait_for_joins(members[builder.group])
        builder.sync_all(members[builder.group])
        builder.heartbeat_all()

    builder.in_each_group(begin)
    builder.in_each_group(go_on)


@interaction(Family.GROUPS, has_several_groups)
def delete_one_group(builder: ScheduleBuilder) -> None:
    """The members of one group leave, and it is deleted or gets no more requests; the others are looked at."""
    leave_all(builder)
    if builder.flag():
        builder.act("delete")
    builder.in_each_group(builder.heartbeat_all)
    builder.act("fetch", {"groups": "all"})


@interaction(Family.GROUPS, lambda builder: has_several_groups(builder) and builder.scope.transactions)
def transact_in_each_group(builder: ScheduleBuilder) -> None:
    """A transaction commits offsets of all groups; it may end."""
    producer = builder.draw.number(0, PRODUCERS - 1)
    builder.in_each_group(lambda: transact(builder, producer, draw_offset(builder)))
    builder.act("fetch", {"groups": "all", "stable": 1})
    if builder.flag():
        builder.act("end", {"producer": producer, **({"abort": 1} if builder.flag() else {})})
        builder.in_each_group(builder.fetch_all)
