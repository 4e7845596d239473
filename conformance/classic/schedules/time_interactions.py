"""Interactions in which time passes: sessions, deadlines of rebalances, retention, restarts of the target."""

from fencepost.conformance.classic.schedules.cast import SHORT
from fencepost.conformance.classic.schedules.interactions import Family, interaction
from fencepost.conformance.classic.schedules.membership_interactions import ask_variously, replace_leader
from fencepost.conformance.classic.schedules.schedule_builder import ScheduleBuilder
from fencepost.model.settings import NEW_MEMBER_TIMEOUT_MS

RETENTION_SHARES = (25, 40, 55, 70)
"""Parts of the retention of offsets that pass at a time, in percent."""
MAX_WAITS = 16
"""How many waits a schedule may have before one of minutes."""


def is_virtual(builder: ScheduleBuilder) -> bool:
    """Whether any time can be waited for."""
    return builder.is_virtual


def has_minutes_left(builder: ScheduleBuilder) -> bool:
    """Whether time is virtual and the schedule has not waited for minutes yet."""
    return builder.is_virtual and builder.count_moves("wait") < MAX_WAITS


# --- sessions and rebalances ------------------------------------------------------------------------------------


@interaction(Family.TIME)
def wait_for_session(builder: ScheduleBuilder) -> None:
    """A member is silent until just before the end of its session or past it, then sends a request."""
    who = builder.pick_member()
    if builder.can_wait_for_session(who):
        builder.make_move("wait", who, {"for": "session", "side": builder.draw.choose((-1, 1))})
    builder.make_move(builder.draw.choose(("heartbeat", "commit", "join", "sync")), who)


@interaction(Family.TIME)
def extend_session(builder: ScheduleBuilder) -> None:
    """A member extends its session several times just before it ends."""
    who, kind = builder.pick_member(), builder.draw.choose(("heartbeat", "commit"))
    if builder.can_wait_for_session(who):
        for _ in range(builder.draw.number(2, 3)):
            builder.make_move("wait", who, {"for": "session", "side": -1})
            builder.make_move(kind, who)
        builder.make_move("heartbeat", who)


@interaction(Family.TIME)
def wait_for_deadline(builder: ScheduleBuilder) -> None:
    """Time passes until just before a deadline or past it."""
    builder.pass_time(builder.draw.choose(("rebalance", "delay", "step")), builder.draw.choose((-1, 1)))
    builder.make_move("heartbeat", builder.pick_member())


@interaction(Family.TIME)
def outlive_timers(builder: ScheduleBuilder) -> None:
    """The members rebalance, and timers that may still be armed come due."""
    builder.rebalance(builder.pick_actors())
    builder.pass_time(builder.draw.choose(("rebalance", "session", "delay")), 1)
    builder.heartbeat_all()


@interaction(Family.TIME)
def outlive_session_in_join_phase(builder: ScheduleBuilder) -> None:
    """Members wait in the join phase for longer than their sessions last."""
    absent = builder.pick_member()
    for each in builder.pick_actors():
        if each != absent:
            builder.make_move("join", each, {"session": SHORT, "metadata": 2})
            builder.join_until_member(each)
    builder.pass_time(builder.draw.choose(("session", "rebalance")), 1)
    builder.join_until_member(absent)
    builder.heartbeat_all()


@interaction(Family.TIME, has_minutes_left)
def outlive_new_member_timeout(builder: ScheduleBuilder) -> None:
    """A member stays in the group for longer than the time limit of a first JoinGroup."""
    who = builder.pick_newcomer()
    builder.make_move("join", who, {"version": builder.draw.number(0, 9), "session": "long"})
    builder.rebalance((who,))
    builder.keep_alive_for(NEW_MEMBER_TIMEOUT_MS + 20_000)


@interaction(Family.TIME, has_minutes_left)
def prolong_join_phase(builder: ScheduleBuilder) -> None:
    """A join phase lasts for more than five minutes: the leader has that timeout, and only heartbeats."""
    leader = builder.pick_member()
    builder.make_move("join", leader, {"rebalance": "endless", "session": "long", "metadata": 3})
    builder.rebalance(())
    builder.make_move("commit", leader, {"offset": 4})
    late = builder.pick_newcomer()
    builder.make_move("join", late, {"as": "nobody", "version": 3})
    if builder.flag():
        builder.make_move("drop", late)
    builder.keep_alive_for(NEW_MEMBER_TIMEOUT_MS + 20_000)
    builder.act("fetch")
    builder.rebalance(())


@interaction(Family.TIME, is_virtual)
def wait_for_new_member_timeout(builder: ScheduleBuilder) -> None:
    """The time limit of a first JoinGroup passes."""
    builder.pass_time("new-member", 1)


# --- retention --------------------------------------------------------------------------------------------------


def retain(builder: ScheduleBuilder) -> None:
    """A part of the retention passes; if there are members, they may heartbeat in the meantime."""
    settings, share = builder.scope.settings, builder.draw.choose(RETENTION_SHARES)
    if builder.simulation.members(builder.group) and builder.draw.number(0, 2):
        builder.keep_alive_for((settings.offsets_retention + settings.retention_check_interval) * share // 100)
    else:
        builder.pass_time("retention", builder.draw.choose((-1, 1)), share)


@interaction(Family.TIME, is_virtual)
def wait_for_retention(builder: ScheduleBuilder) -> None:
    """The retention of offsets passes, as a whole or in part."""
    builder.pass_time("retention", 1, builder.draw.choose((*RETENTION_SHARES, 100)))
    builder.in_each_group(builder.fetch_all)


# --- restarts ---------------------------------------------------------------------------------------------------


@interaction(Family.RESTARTS, lambda builder: builder.can_restart())
def restart_target(builder: ScheduleBuilder) -> None:
    """The target is killed and started again; members send requests as before."""
    builder.act("restart")
    builder.in_each_group(lambda: builder.act("describe"))
    builder.in_each_group(builder.fetch_all)
    builder.in_each_group(lambda: ask_variously(builder))


@interaction(Family.RESTARTS, lambda builder: builder.can_restart())
def restart_after_request(builder: ScheduleBuilder) -> None:
    """The target is killed right after a request; members send requests as before and after a timer."""
    who = builder.pick_member()
    builder.make_move(builder.draw.choose(("leave", "commit", "join", "sync")), who)
    builder.act("restart", {"at-once": 1} if builder.flag() and builder.is_virtual else {})
    for each in tuple(builder.members())[:2]:
        builder.make_move("heartbeat", each)
    builder.act("fetch", {"stable": 1})
    builder.make_move("commit", builder.pick_member(), {"offset": 8})
    builder.make_move("wait", who, {"for": builder.draw.choose(("session", "step", "rebalance")), "side": 1})
    builder.act("wait")
    builder.heartbeat_all()
    builder.act("fetch")


@interaction(Family.RESTARTS, lambda builder: builder.can_restart())
def restart_after_leave(builder: ScheduleBuilder) -> None:
    """A member with a short session leaves, the target restarts, and that session would end."""
    lost = builder.pick_newcomer()
    builder.make_move("join", lost, {"session": SHORT})
    builder.rebalance((lost,))
    builder.make_move("leave", lost)
    builder.act("restart")
    if builder.flag():
        builder.heartbeat_all()
    builder.act("wait", {"ms": 2_000})
    builder.heartbeat_all()


@interaction(Family.RESTARTS, lambda builder: builder.can_restart())
def restart_after_change_of_leader(builder: ScheduleBuilder) -> None:
    """Another member leads the group, the target restarts, and the members go on or join again."""
    if len(builder.members()) < 3:
        builder.rebalance(builder.actors()[:3])
    replace_leader(builder)
    builder.act("restart")
    builder.act("describe")
    ask_variously(builder)


@interaction(Family.RESTARTS, lambda builder: builder.can_restart())
def restart_after_rebalance(builder: ScheduleBuilder) -> None:
    """The target restarts when a generation has just become Stable; the members ask for what was stored of them."""
    builder.rebalance(builder.pick_actors(3))
    builder.act("restart")
    builder.act("describe")
    ask_variously(builder)


@interaction(Family.RESTARTS, lambda builder: builder.is_virtual and builder.can_restart(2))
def restart_target_twice(builder: ScheduleBuilder) -> None:
    """An offset is committed between two restarts and fetched after them."""
    builder.rebalance(())
    builder.act("restart")
    builder.make_move("commit", builder.pick_member(), {"offset": 6})
    builder.act("restart")
    builder.act("fetch")
