"""Bugs of timers: timers that do not fire, fire too late, or outlive their purpose."""

from collections.abc import Callable

from fencepost.adapters.bundled.classic.commits import Commits
from fencepost.adapters.bundled.classic.group import Group, Member
from fencepost.adapters.bundled.classic.rebalance import Rebalancer
from fencepost.adapters.bundled.classic.syncing import Syncing
from fencepost.adapters.bundled.classic.timers import Timers
from fencepost.conformance.zoo.classic.bug import BugFamily
from fencepost.conformance.zoo.mutation.patching import Patch

sessions = BugFamily()
COARSE_TICK_MS = 30_000


@sessions.add("BUG-04", "Apache Kafka PR 451, https://github.com/apache/kafka/commit/83fb7346033", "TIMER-05")
def parked_sync_ends_the_timing(patch: Patch) -> None:
    """The answer to a parked SyncGroup starts no session, so one that ran out meanwhile never runs again."""
    answer_parked = Syncing.confirm_sync

    def answer_without_a_session(syncing: Syncing, group: Group, member: Member) -> None:
        with Patch() as quiet:
            quiet.replace(Rebalancer, "touch_session", lambda rounds, group, member: None)
            answer_parked(syncing, group, member)

    patch.replace(Syncing, "confirm_sync", answer_without_a_session)


@sessions.add("BUG-06", "KAFKA-3470, https://github.com/apache/kafka/commit/f4d3d286589", "COMMIT-19")
def commit_is_no_sign_of_life(patch: Patch) -> None:
    """A member that commits and sends no heartbeats is expelled."""
    patch.replace(Commits, "extend_session", lambda commits, group, commit: None)


@sessions.add("BUG-08", "KAFKA-7196, https://github.com/apache/kafka/commit/260b07a6da0", "TIMER-25")
def dropped_member_keeps_its_timer(patch: Patch) -> None:
    """The session timer of a member that did not rejoin runs on, and starts a rebalance for nobody."""

    def drop(rounds: Rebalancer, group: Group) -> None:
        def rebalance() -> None:
            if group.members:
                rounds.trigger_rebalance(group)

        runtime = rounds._runtime
        for member in list(group.members.values()):
            if not member.has_rejoined and not member.is_static:
                rounds.remove_member(group, member)
                key = ("dropped", group.group_id, member.member_id)
                runtime.timers.arm(key, runtime.now + member.session_timeout, rebalance)

    patch.replace(Rebalancer, "drop_absent_members", drop)


@sessions.add("BUG-09", "KAFKA-7610, https://github.com/apache/kafka/commit/20069b39063", "TIMER-06")
def first_join_waits_for_ever(patch: Patch) -> None:
    """A member whose first JoinGroup is parked is not timed, so that every request sent again leaves a ghost."""
    patch.replace(Rebalancer, "start_new_member_timer", lambda rounds, group, member: None)


@sessions.add("BUG-14", "KAFKA-9232, https://github.com/apache/kafka/pull/7753", "TIMER-05")
def new_member_timer_runs_on(patch: Patch) -> None:
    """The five minutes that a first JoinGroup may take go on afterwards, and end a member that is alive."""
    start = Rebalancer.start_new_member_timer

    def start_both(rounds: Rebalancer, group: Group, member: Member) -> None:
        def end() -> None:
            if member.member_id in group.members:
                rounds.expel(group, member)

        runtime = rounds._runtime
        start(rounds, group, member)
        key = ("new member", group.group_id, member.member_id)
        runtime.timers.arm(key, runtime.now + runtime.settings.new_member_timeout, end)

    patch.replace(Rebalancer, "start_new_member_timer", start_both)


@sessions.add("BUG-15", "KAFKA-9752, https://github.com/apache/kafka/commit/ef1cd3490a5", "TIMER-01", "TIMER-05")
def new_member_gets_no_session(patch: Patch) -> None:
    """When a member's first join phase completes it still counts as alive, so that no timer is armed for it."""
    touch = Rebalancer.touch_session

    def touch_unless_new(rounds: Rebalancer, group: Group, member: Member) -> None:
        if member.is_new:
            rounds.stop_member_timer(group, member.member_id)
        else:
            touch(rounds, group, member)

    patch.replace(Rebalancer, "touch_session", touch_unless_new)


@sessions.add(
    "BUG-19", "KAFKA-12890, https://github.com/apache/kafka/commit/d294b946ca7", "TIMER-11", "TIMER-13", "HB-13"
)
def nobody_has_to_sync(patch: Patch) -> None:
    """There is no timer for the sync phase, so a member that only heartbeats holds up the group for ever."""
    patch.replace(Rebalancer, "start_sync_timer", lambda rounds, group: None)


@sessions.add(
    "BUG-27",
    "librdkafka mock cluster, https://github.com/confluentinc/librdkafka/commit/6a026086f",
    "TIMER-03",
    "TIMER-04",
)
def session_runs_while_parked(patch: Patch) -> None:
    """Members that wait for an answer are expelled for not sending heartbeats."""

    def expel(rounds: Rebalancer, group_id: str, member_id: str) -> None:
        group = rounds._runtime.groups.get(group_id)
        if group is not None and member_id in group.members:
            rounds.expel(group, group.members[member_id])

    patch.replace(Rebalancer, "on_member_timer", expel)


@sessions.add("BUG-36", "Redpanda, https://github.com/redpanda-data/redpanda/commit/6a11f7c4a2", "TIMER-08")
def pending_ids_never_expire(patch: Patch) -> None:
    """An id that was handed out and not used holds up every round for as long as the round may take."""
    patch.replace(Rebalancer, "start_pending_timer", lambda rounds, group, member_id, session_timeout: None)


@sessions.add("BUG-38", "Redpanda, https://github.com/redpanda-data/redpanda/commit/263eef619e", "TIMER-26")
def join_timer_outlives_its_phase(patch: Patch) -> None:
    """When all have joined early the join timer runs on, and throws out members in the middle of normal operation."""
    cancel = Timers.cancel

    def complete(rounds: Rebalancer, group_id: str) -> None:
        if (group := rounds._runtime.groups.get(group_id)) is not None:
            rounds.complete_join(group)

    patch.replace(Timers, "cancel", lambda timers, key: None if key[0] == "join" else cancel(timers, key))
    patch.replace(Rebalancer, "on_join_timer", complete)


@sessions.add("BUG-41", "Redpanda, https://github.com/redpanda-data/redpanda/commit/a90cd758c7", "TIMER-17", "TIMER-18")
def initial_delay_is_cut_short(patch: Patch) -> None:
    """The first round of a group ends as soon as all members known so far have joined, that is with the first one."""
    patch.replace(Rebalancer, "try_complete_join", Rebalancer.complete_join_if_all_joined)


@sessions.add("BUG-48", "HStream, https://github.com/hstreamdb/hstream/commit/3309ba71", "JOIN-27", "JOIN-44")
def every_join_phase_lasts_the_same(patch: Patch) -> None:
    """Every round lasts as long as the initial delay, whether all have joined or some need longer."""

    def start_fixed_timer(rounds: Rebalancer, group: Group) -> None:
        runtime, group_id = rounds._runtime, group.group_id
        deadline = runtime.now + runtime.settings.initial_rebalance_delay
        runtime.timers.arm(("join", group_id), deadline, lambda: rounds.on_join_timer(group_id))

    patch.replace(Group, "all_joined", False)
    patch.replace(Rebalancer, "start_join_timer", start_fixed_timer)


@sessions.add("BUG-54", "SeaweedFS, https://github.com/seaweedfs/seaweedfs/commit/3f5b4814b", "TIMER-01")
def sessions_end_on_a_coarse_tick(patch: Patch) -> None:
    """Sessions are looked at every 30 s only, however short they are."""
    arm = Timers.arm

    def arm_on_a_tick(timers: Timers, key: tuple[str, ...], deadline: int, action: Callable[[], None]) -> None:
        tick = -(-deadline // COARSE_TICK_MS) * COARSE_TICK_MS
        arm(timers, key, tick if key[0] == "member" else deadline, action)

    patch.replace(Timers, "arm", arm_on_a_tick)
