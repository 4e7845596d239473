"""Interactions of members: rebalances, losses, static members, clients of several versions."""

from fencepost.conformance.classic.schedules.cast import CLIENTS, NEWEST
from fencepost.conformance.classic.schedules.interactions import Family, interaction
from fencepost.conformance.classic.schedules.schedule_builder import PLANS, ScheduleBuilder

# --- losses -----------------------------------------------------------------------------------------------------


@interaction(Family.LOSSES)
def rejoin_without_one(builder: ScheduleBuilder) -> None:
    """All members but one rejoin; that one stays silent, leaves or crashes in the join phase."""
    lose_one_in_join_phase(builder, builder.draw.choose(("silent", "leave", "crash")))


def lose_one_in_join_phase(builder: ScheduleBuilder, how: str) -> None:
    """A newcomer and all members but one join; what that one sends afterwards is as before."""
    absent = builder.pick_member()
    others = [builder.pick_newcomer(), *(each for each in builder.members() if each != absent)]
    for each in others:
        builder.join_until_member(each)
    if how != "silent":
        builder.make_move(how, absent)
    builder.wait_for_joins(others)
    builder.sync_all(others)
    for kind in ("commit", "heartbeat", "sync"):
        builder.make_move(kind, absent)


@interaction(Family.LOSSES)
def outlive_session_of_lost(builder: ScheduleBuilder) -> None:
    """A member that did not rejoin is removed, and then its session would have ended."""
    lose_one_in_join_phase(builder, "silent")
    builder.act("wait", {"ms": 2_000})
    builder.heartbeat_all()


@interaction(Family.LOSSES)
def commit_under_former_id(builder: ScheduleBuilder) -> None:
    """An actor commits, and commits again under its former member id."""
    who = builder.pick_actor()
    builder.make_move("commit", who, {"offset": 5})
    builder.make_move("commit", who, {"as": "former", "offset": 6})
    builder.act("fetch", {"partition": 0})


@interaction(Family.LOSSES)
def leave_together(builder: ScheduleBuilder) -> None:
    """One or two members leave; the others heartbeat."""
    gone, pair = builder.pick_member(), builder.pick_member()
    builder.make_move("leave", gone, {"with": pair} if pair != gone else {})
    builder.heartbeat_all()


@interaction(Family.LOSSES)
def leave_one_by_one(builder: ScheduleBuilder) -> None:
    """All members leave, and the empty group gets a commit."""
    for each in tuple(builder.members()):
        builder.make_move("leave", each)
    builder.act("commit", {"as": "nobody", "generation": "none", "offset": 3})
    builder.act("fetch")


# --- generations ------------------------------------------------------------------------------------------------


@interaction(Family.GENERATIONS)
def rejoin(builder: ScheduleBuilder) -> None:
    """All members and some newcomers join and sync."""
    builder.rebalance(builder.pick_actors(), builder.flag())


@interaction(Family.GENERATIONS)
def admit_newcomers(builder: ScheduleBuilder) -> None:
    """Some actors join; the members do not rejoin."""
    for each in builder.pick_actors(3):
        builder.join_until_member(each)


@interaction(Family.GENERATIONS)
def sync_some(builder: ScheduleBuilder) -> None:
    """Some actors sync, one after the other."""
    for each in builder.pick_actors():
        builder.make_move("sync", each)


@interaction(Family.GENERATIONS)
def assign_to_some(builder: ScheduleBuilder) -> None:
    """In two generations the leader's plan may leave a member out; then all members ask for their assignments."""
    for _ in range(2):
        wanted = tuple(builder.members())
        builder.make_move("join", wanted[0], {"metadata": builder.draw.number(0, 2)})
        for each in wanted:
            builder.join_until_member(each)
        builder.wait_for_joins(wanted)
        builder.sync_all(wanted, builder.flag(), builder.draw.choose(("part", "last", "none", "")))
    for each in builder.settled_members():
        builder.make_move("sync", each)


@interaction(Family.GENERATIONS)
def change_protocol(builder: ScheduleBuilder) -> None:
    """The members change to another protocol, one after the other."""
    for offer in (builder.draw.choose(("ab", "ba")), builder.draw.choose(("b", "ba", "c"))):
        for each in builder.members():
            builder.make_move("join", each, {"offer": offer})
        builder.rebalance(())


@interaction(Family.GENERATIONS)
def change_subscription(builder: ScheduleBuilder) -> None:
    """A member subscribes to other topics, and an offset of the kit's topic is deleted as far as that is allowed."""
    builder.make_move("join", builder.pick_member(), {"metadata": builder.draw.choose((0, 3, 5))})
    builder.rebalance(())
    builder.act("delete-offsets", {"partition": builder.draw.number(0, 2)})
    builder.fetch_all()


@interaction(Family.GENERATIONS)
def change_leader(builder: ScheduleBuilder) -> None:
    """Another member leads the next generation."""
    replace_leader(builder)
    ask_variously(builder)


def replace_leader(builder: ScheduleBuilder) -> None:
    """The leader leaves, crashes, is replaced or is absent; the others rebalance, and it may come back."""
    leader = next((each for each in builder.members() if builder.simulation.is_leader(each)), builder.members()[0])
    others = [each for each in builder.members() if each != leader]
    is_static = builder.roles[leader].instance != 0
    how = builder.draw.choose(("leave", "crash", "absent", *(["replace"] * 3 if is_static else [])))
    if how == "replace":
        builder.make_move("crash", leader)
        builder.make_move("join", leader)
        builder.make_move("sync", leader)
        return
    if how == "absent":
        for each in others:
            builder.make_move("join", each, {"metadata": builder.draw.number(0, 2)})
        builder.wait_for_joins(others)
        builder.sync_all(others)
        return
    builder.make_move(how, leader)
    if how == "crash":
        builder.make_move("leave", leader, {"as": "former"})
    builder.rebalance(())
    if builder.flag():
        builder.rebalance((leader,))


def ask_variously(builder: ScheduleBuilder) -> None:
    """Each member joins again, asks for its assignment or heartbeats; a join phase that begins is ended."""
    for each in builder.settled_members():
        builder.make_move(builder.draw.choose(("join", "sync", "heartbeat")), each)
    builder.wait_for_joins(builder.members())
    builder.sync_all(builder.members())


# --- static members ---------------------------------------------------------------------------------------------


@interaction(Family.STATIC_MEMBERS)
def restart_member(builder: ScheduleBuilder) -> None:
    """A member's process crashes and starts again without its id, as that of a static member does."""
    lost = builder.pick_member()
    builder.make_move("crash", lost)
    builder.join_until_member(lost)
    if builder.flag():
        builder.make_move("sync", lost)


@interaction(Family.STATIC_MEMBERS)
def restart_members_in_turn(builder: ScheduleBuilder) -> None:
    """The members crash and start again one after the other."""
    for each in tuple(builder.members())[:3]:
        builder.make_move("crash", each)
        builder.join_until_member(each)
        builder.make_move("sync", each)


@interaction(Family.STATIC_MEMBERS)
def replace_static_member(builder: ScheduleBuilder) -> None:
    """Another process claims a static member's instance id; the old one sends requests as before."""
    old = builder.pick_member()
    builder.make_move("join", old, {"as": "nobody"})
    for kind in ("heartbeat", "commit", "sync"):
        builder.make_move(kind, old, {"as": "former"})
    builder.make_move("join", old, {"as": "former"})


@interaction(Family.STATIC_MEMBERS)
def replace_static_member_without_others(builder: ScheduleBuilder) -> None:
    """A static member is replaced by one with another offer, which begins a rebalance; another member is absent."""
    old, absent = builder.pick_member(), builder.pick_member()
    builder.make_move("crash", old)
    builder.make_move("join", old, {"offer": builder.draw.choose(("b", "ba", "ab")), "metadata": 2})
    for each in builder.members():
        if each not in (old, absent):
            builder.join_until_member(each)
    builder.wait_for_joins(builder.members())
    builder.sync_all(builder.members(), plan=builder.draw.choose(PLANS))
    builder.heartbeat_all()


# --- clients of several versions --------------------------------------------------------------------------------


@interaction(Family.CLIENT_VERSIONS)
def rebalance_with_old_clients(builder: ScheduleBuilder) -> None:
    """Some members get an old client and form a generation; then another one joins."""
    client, who = builder.draw.choose(tuple(CLIENTS)), builder.pick_actors()
    for each in who:
        builder.make_move("join", each, {"client": client})
    builder.rebalance(())
    builder.make_move("join", builder.pick_newcomer(), {"client": client})
    builder.heartbeat_all()


@interaction(Family.CLIENT_VERSIONS)
def upgrade_clients_in_turn(builder: ScheduleBuilder) -> None:
    """The members get another client, one after the other, as in a rolling upgrade."""
    client = builder.draw.choose((NEWEST, NEWEST, *CLIENTS))
    for each in tuple(builder.members())[:3]:
        builder.make_move(builder.draw.choose(("leave", "crash", "heartbeat")), each)
        builder.make_move("join", each, {"client": client})
        builder.rebalance((each,))


@interaction(Family.CLIENT_VERSIONS)
def send_in_version(builder: ScheduleBuilder) -> None:
    """A member sends each of its requests in one version."""
    who, version = builder.pick_member(), builder.draw.number(0, 9)
    for kind in builder.draw.choose_some(("join", "sync", "heartbeat", "commit", "leave"), 3):
        builder.make_move(kind, who, {"version": version})
    builder.act("fetch", {"version": version})
