"""Faults of real coordinators, put back into the bundled one from outside.

Each is a bug that some implementation shipped, under its number in the collection that it was taken from. A fault
replaces named methods for as long as the monkeypatch lives; the shipped code knows nothing of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytest import MonkeyPatch

from fencepost.adapters.bundled.commits import Commit, Commits
from fencepost.adapters.bundled.group import Group, Member, State
from fencepost.adapters.bundled.joining import Joining
from fencepost.adapters.bundled.leaving import Leaving
from fencepost.adapters.bundled.messages import Error, JoinGroup
from fencepost.adapters.bundled.rounds import Rounds
from fencepost.adapters.bundled.runtime import Runtime
from fencepost.adapters.bundled.statics import Statics
from fencepost.adapters.bundled.syncing import Syncing
from fencepost.adapters.bundled.timers import Timers

STORE_MS = 200
"""How long a slow log takes to store the leader's assignment."""
COARSE_TICK_MS = 30_000

PutBack = Callable[[MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """A bug, what it does in a sentence, and the requirements that have to be found broken with it."""

    bug: str
    sentence: str
    breaks: tuple[str, ...]
    put_back: PutBack
    slow_store: bool = False


FAULTS: list[Fault] = []


def fault(bug: str, *breaks: str, slow_store: bool = False) -> Callable[[PutBack], PutBack]:
    """Enter a function among the faults; its docstring says what the coordinator does wrong."""

    def enter(put_back: PutBack) -> PutBack:
        FAULTS.append(Fault(bug, " ".join((put_back.__doc__ or "").split()), breaks, put_back, slow_store))
        return put_back

    return enter


# --- the join phase ------------------------------------------------------------------------------------------------


@fault("BUG-35", "GEN-05", "JOIN-37")
def every_member_leads(patch: MonkeyPatch) -> None:
    """Where the old leader is gone, the leader is chosen anew for each answer, so that everybody is told to lead."""
    confirm = Rounds.confirm_join

    def remove_but_keep_the_lead(group: Group, member_id: str) -> None:
        group.members.pop(member_id, None)
        group.instances = {instance: each for instance, each in group.instances.items() if each != member_id}
        group.pending.discard(member_id)
        group.unsynced.discard(member_id)

    def choose_nobody(group: Group) -> bool:
        if group.leader not in group.members or not group.members[group.leader].has_rejoined:
            group.leader = None
        return group.rejoined_count > 0

    def confirm_as_leader(rounds: Rounds, group: Group, member: Member) -> None:
        gone = group.leader is None
        group.leader = member.member_id if gone else group.leader
        confirm(rounds, group, member)
        if gone and member is not list(group.members.values())[-1]:
            group.leader = None

    patch.setattr(Group, "remove", remove_but_keep_the_lead)
    patch.setattr(Group, "choose_leader", choose_nobody)
    patch.setattr(Rounds, "confirm_join", confirm_as_leader)


@fault("BUG-53", "JOIN-25")
def newcomer_joins_the_running_generation(patch: MonkeyPatch) -> None:
    """Who joins while the leader's assignment is awaited is let into that very generation."""
    add = Rounds.add_member

    def add_without_a_round(rounds: Rounds, group: Group, member_id: str, join: JoinGroup) -> None:
        if group.state is not State.COMPLETING:
            add(rounds, group, member_id, join)
            return
        with MonkeyPatch.context() as quiet:
            quiet.setattr(rounds, "trigger_round", lambda group: None)
            add(rounds, group, member_id, join)
        member = group.members[member_id]
        member.is_new = False
        rounds.touch_session(group, member)
        rounds.confirm_join(group, member)

    patch.setattr(Rounds, "add_member", add_without_a_round)


@fault("BUG-10", "LEAVE-10")
def pending_id_blocks_the_join_phase(patch: MonkeyPatch) -> None:
    """The owner of a handed-out id may not leave, and when the id expires nobody asks whether the round is complete."""

    def expire(rounds: Rounds, group_id: str, member_id: str) -> None:
        if (group := runtime_of(rounds).groups.get(group_id)) is not None:
            group.pending.discard(member_id)

    patch.setattr(Leaving, "forget_pending", lambda leaving, group, member_id: Error.UNKNOWN_MEMBER_ID)
    patch.setattr(Rounds, "on_pending_timer", expire)


@fault("BUG-12", "STATIC-05")
def instance_is_replaced_in_stable_only(patch: MonkeyPatch) -> None:
    """An instance id that comes back while a round is under way makes a second member."""
    join_static = Statics.join

    def join_twice(statics: Statics, group: Group, join: JoinGroup) -> None:
        if group.state is not State.STABLE:
            group.instances.pop(join.instance_id or "", None)
        join_static(statics, group, join)

    patch.setattr(Statics, "join", join_twice)


@fault("BUG-56", "COMMIT-02")
def generation_is_raised_too_early(patch: MonkeyPatch) -> None:
    """The generation goes up when a rebalance begins, not when its join phase completes."""
    prepare, begin = Rounds.prepare_rebalance, Group.begin_generation

    def raise_and_prepare(rounds: Rounds, group: Group) -> None:
        group.generation += 1
        prepare(rounds, group)

    def begin_without_raising(group: Group, now: int) -> None:
        group.generation -= 1
        begin(group, now)

    patch.setattr(Rounds, "prepare_rebalance", raise_and_prepare)
    patch.setattr(Group, "begin_generation", begin_without_raising)


@fault("BUG-32", "GEN-09", "GEN-10")
def protocol_is_the_first_of_a_map(patch: MonkeyPatch) -> None:
    """The first common protocol of a sorted map is chosen, whatever the members prefer."""
    patch.setattr(Group, "select_protocol", lambda group: min(group.candidates()))


@fault("BUG-37", "GEN-06")
def absent_leader_stays_leader(patch: MonkeyPatch) -> None:
    """Members that did not rejoin are erased from the map and from nothing else, so a leader may lead from outside."""

    def erase(rounds: Rounds, group: Group) -> None:
        for member in list(group.members.values()):
            if not member.has_rejoined and not member.is_static:
                del group.members[member.member_id]

    patch.setattr(Rounds, "drop_absent_members", erase)
    patch.setattr(Group, "choose_leader", lambda group: group.rejoined_count > 0)


@fault("BUG-21", "TIMER-09")
def rejoin_keeps_the_old_timeouts(patch: MonkeyPatch) -> None:
    """A rejoin brings new protocols, but its timeouts are not taken over."""

    def renew_protocols(member: Member, join: JoinGroup) -> None:
        member.protocols = join.protocols
        member.parked_join = join.request

    patch.setattr(Member, "renew", renew_protocols)


# --- the timers of a round -----------------------------------------------------------------------------------------


@fault("BUG-19", "TIMER-11", "TIMER-13", "HB-13")
def nobody_has_to_sync(patch: MonkeyPatch) -> None:
    """There is no timer for the sync phase, so a member that only heartbeats holds up the group for ever."""
    patch.setattr(Rounds, "start_sync_timer", lambda rounds, group: None)


@fault("BUG-38", "TIMER-15")
def join_timer_outlives_its_phase(patch: MonkeyPatch) -> None:
    """When all have joined early the join timer runs on, and throws out members in the middle of normal operation."""
    cancel = Timers.cancel

    def complete(rounds: Rounds, group_id: str) -> None:
        if (group := runtime_of(rounds).groups.get(group_id)) is not None:
            rounds.complete_join(group)

    patch.setattr(Timers, "cancel", lambda timers, key: None if key[0] == "join" else cancel(timers, key))
    patch.setattr(Rounds, "on_join_timer", complete)


@fault("BUG-41", "TIMER-17", "TIMER-18")
def initial_delay_is_cut_short(patch: MonkeyPatch) -> None:
    """The first round of a group ends as soon as all members known so far have joined, that is with the first one."""
    patch.setattr(Rounds, "try_complete_join", Rounds.complete_join_if_all_joined)


@fault("BUG-48", "JOIN-27", "JOIN-44")
def every_join_phase_lasts_the_same(patch: MonkeyPatch) -> None:
    """Every round lasts as long as the initial delay, whether all have joined or some need longer."""

    def start_fixed_timer(rounds: Rounds, group: Group) -> None:
        runtime, group_id = runtime_of(rounds), group.group_id
        deadline = runtime.now + runtime.settings.initial_rebalance_delay
        runtime.timers.arm(("join", group_id), deadline, lambda: rounds.on_join_timer(group_id))

    patch.setattr(Group, "all_joined", False)
    patch.setattr(Rounds, "start_join_timer", start_fixed_timer)


# --- sessions ------------------------------------------------------------------------------------------------------


@fault("BUG-27", "TIMER-03", "TIMER-04")
def session_runs_while_parked(patch: MonkeyPatch) -> None:
    """Members that wait for an answer are expelled for not sending heartbeats."""

    def expel(rounds: Rounds, group_id: str, member_id: str) -> None:
        group = runtime_of(rounds).groups.get(group_id)
        if group is not None and member_id in group.members:
            rounds.expel(group, group.members[member_id])

    patch.setattr(Rounds, "on_member_timer", expel)


@fault("BUG-04", "TIMER-05")
def parked_sync_ends_the_timing(patch: MonkeyPatch) -> None:
    """The answer to a parked SyncGroup starts no session, so one that ran out meanwhile never runs again."""

    def answer_without_a_session(syncing: Syncing, group: Group, member: Member) -> None:
        with MonkeyPatch.context() as quiet:
            quiet.setattr(Rounds, "touch_session", lambda rounds, group, member: None)
            answer_parked(syncing, group, member)

    answer_parked = Syncing.answer_parked
    patch.setattr(Syncing, "answer_parked", answer_without_a_session)


@fault("BUG-08", "HB-05")
def dropped_member_keeps_its_timer(patch: MonkeyPatch) -> None:
    """The session timer of a member that did not rejoin runs on, and starts a rebalance for nobody."""

    def drop(rounds: Rounds, group: Group) -> None:
        def rebalance() -> None:
            if group.members:
                rounds.trigger_round(group)

        runtime = runtime_of(rounds)
        for member in list(group.members.values()):
            if not member.has_rejoined and not member.is_static:
                rounds.remove_member(group, member)
                key = ("dropped", group.group_id, member.member_id)
                runtime.timers.arm(key, runtime.now + member.session_timeout, rebalance)

    patch.setattr(Rounds, "drop_absent_members", drop)


@fault("BUG-14", "TIMER-05")
def new_member_timer_runs_on(patch: MonkeyPatch) -> None:
    """The five minutes that a first JoinGroup may take go on afterwards, and end a member that is alive."""
    start = Rounds.start_new_member_timer

    def start_both(rounds: Rounds, group: Group, member: Member) -> None:
        def end() -> None:
            if member.member_id in group.members:
                rounds.expel(group, member)

        runtime = runtime_of(rounds)
        start(rounds, group, member)
        runtime.timers.arm(
            ("new member", group.group_id, member.member_id), runtime.now + runtime.settings.new_member_timeout, end
        )

    patch.setattr(Rounds, "start_new_member_timer", start_both)


@fault("BUG-15", "TIMER-01")
def new_member_gets_no_session(patch: MonkeyPatch) -> None:
    """When a member's first join phase completes it still counts as alive, so that no timer is armed for it."""
    touch = Rounds.touch_session

    def touch_unless_new(rounds: Rounds, group: Group, member: Member) -> None:
        if member.is_new:
            rounds.stop_member_timer(group, member.member_id)
        else:
            touch(rounds, group, member)

    patch.setattr(Rounds, "touch_session", touch_unless_new)


@fault("BUG-36", "TIMER-08")
def pending_ids_never_expire(patch: MonkeyPatch) -> None:
    """An id that was handed out and not used holds up every round for as long as the round may take."""
    patch.setattr(Rounds, "start_pending_timer", lambda rounds, group, member_id, session_timeout: None)


@fault("BUG-54", "TIMER-01")
def sessions_end_on_a_coarse_tick(patch: MonkeyPatch) -> None:
    """Sessions are looked at every 30 s only, however short they are."""
    arm = Timers.arm

    def arm_on_a_tick(timers: Timers, key: tuple[str, ...], deadline: int, action: Callable[[], None]) -> None:
        tick = -(-deadline // COARSE_TICK_MS) * COARSE_TICK_MS
        arm(timers, key, tick if key[0] == "member" else deadline, action)

    patch.setattr(Timers, "arm", arm_on_a_tick)


@fault("BUG-06", "COMMIT-19")
def commit_is_no_sign_of_life(patch: MonkeyPatch) -> None:
    """A member that commits and sends no heartbeats is expelled."""
    patch.setattr(Commits, "extend_session", lambda commits, group, commit: None)


# --- commits -------------------------------------------------------------------------------------------------------


@fault("BUG-44", "COMMIT-06")
def commit_looks_at_the_state_first(patch: MonkeyPatch) -> None:
    """While the assignment is awaited, strangers and stale members are told of a rebalance, not that they are wrong."""
    check = Commits.check

    def check_state_first(commits: Commits, group: Group, commit: Commit) -> Error:
        if group.state is State.COMPLETING and not commit.is_transactional:
            return Error.REBALANCE_IN_PROGRESS
        return check(commits, group, commit)

    patch.setattr(Commits, "check", check_state_first)


# --- storage -------------------------------------------------------------------------------------------------------


def store_slowly(patch: MonkeyPatch, *, for_any_generation: bool) -> None:
    """The leader's assignment is stored in the background, as on a real broker; what happens once it is stored
    may or may not ask whether the generation is still the same."""

    def accept_later(syncing: Syncing, group: Group, assignments: Mapping[str, bytes]) -> None:
        runtime, generation = runtime_of(syncing), group.generation
        record = syncing.assigned_record(group, assignments)

        def stored() -> None:
            runtime.write(record)
            if group.state is State.COMPLETING and (for_any_generation or group.generation == generation):
                syncing.distribute(group, {each: assignments.get(each, b"") for each in group.members})

        runtime.timers.arm(("store", group.group_id, generation), runtime.now + STORE_MS, stored)

    patch.setattr(Syncing, "accept_assignment", accept_later)


@fault("BUG-03", "SYNC-19", "GEN-16", slow_store=True)
def old_plan_reaches_a_new_generation(patch: MonkeyPatch) -> None:
    """An assignment that is stored late is handed out in whatever generation is waiting for one by then."""
    store_slowly(patch, for_any_generation=True)


@fault("BUG-33", "FAILOVER-07")
def restarted_group_is_stable(patch: MonkeyPatch) -> None:
    """Every departure is stored, and a restarted group is Stable with whoever is left, though it was rebalancing."""
    go_on = Leaving.go_on

    def store_and_go_on(leaving: Leaving, group: Group) -> None:
        runtime_of(leaving).write(group.record())
        go_on(leaving, group)

    patch.setattr(Leaving, "go_on", store_and_go_on)


def runtime_of(part: Rounds | Syncing | Leaving | Joining) -> Runtime:
    """What the parts of a coordinator share."""
    return part._runtime
