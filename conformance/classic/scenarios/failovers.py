"""Groups after a kill of their coordinator, and after a move to another node while the old coordinator stays up.

All that was stored is recovered, and nothing else. Scenarios share the restart, which takes a while, so members have
sessions that outlast it. A move takes other groups along, so each scenario of a move is played alone.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from fencepost.conformance.classic.scenarios.commits import is_commit_accepted
from fencepost.conformance.classic.scenarios.lookups import find_coordinator, is_offsets_topic_known
from fencepost.conformance.classic.scenarios.neighbours import coordinator_of
from fencepost.conformance.classic.scenarios.statics import replace_static_member, static_member
from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Call, Member
from fencepost.model.errors import COORDINATOR_NOT_READY, Error
from fencepost.traces.events import Kind
from fencepost.traces.judge.diagnosis.diagnosis import errors_in

failovers = ScenarioFamily()
RESTART = ("restart",)


# --- a settled group -----------------------------------------------------------------------------------------------


@failovers.add("FAILOVER-02", needs=RESTART)
async def stable_group_comes_back(group: ScenarioContext) -> None:
    """State, members, protocol, generation and assignments are recovered."""
    leader, follower = await group.form_stable_group(group.member("A"), group.member("B"))

    await group.restart()
    await group.check("FAILOVER-02", group.describe_groups())
    for member in (leader, follower):
        for call in (group.heartbeat(member), group.sync(member)):
            await group.check("FAILOVER-02", call)


@failovers.add("FAILOVER-03", needs=RESTART)
async def failover_starts_no_rebalance(group: ScenarioContext) -> None:
    """No member has to rejoin, right after the failover or later."""
    members = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.restart()
    for _ in range(2):
        for member in members:
            await group.check("FAILOVER-03", group.heartbeat(member))
        await group.sleep(group.rebalance_timeout)


@failovers.add("FAILOVER-13", needs=RESTART)
async def unchanged_follower_starts_no_rebalance(group: ScenarioContext) -> None:
    """A follower that rejoins unchanged gets the stored generation at once."""
    leader, follower = await group.form_stable_group(group.member("A"), group.member("B"))

    await group.restart()
    await group.check("FAILOVER-13", group.join(follower), fields=("error", "generation", "time"))
    await group.check("FAILOVER-13", group.heartbeat(leader))


@failovers.add("FAILOVER-10", needs=RESTART)
async def generation_goes_on(group: ScenarioContext) -> None:
    """The next generation follows the last stored one."""
    (a,) = await group.form_stable_group(group.member("A"))
    for call in await group.rebalance(a):
        await call
    await group.sync_all(a)

    await group.restart()
    await group.check("FAILOVER-10", group.join(a), fields="generation")


@failovers.add("FAILOVER-05", needs=RESTART)
async def sync_repeated_after_storing(group: ScenarioContext) -> None:
    """Once the leader's SyncGroup is stored, leader and follower get their assignments at once."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    await group.sync(leader, {member.id: member.label.encode() for member in (leader, follower)})
    await group.restart()

    for member in (follower, leader):
        await group.check("FAILOVER-05", group.sync(member), fields=("error", "assignment", "time"))


# --- timers --------------------------------------------------------------------------------------------------------


@failovers.add("FAILOVER-04", needs=RESTART)
async def full_session_after_loading(group: ScenarioContext) -> None:
    """Loading starts a full session: it outlasts the end of the session before."""
    a = group.member("A")
    a.session_timeout //= 2
    await group.form_stable_group(a)

    last = group.heartbeat(a)
    await last
    started = group.now_ms
    await group.sleep(a.session_timeout // 4)
    await group.restart()
    await group.sleep(max(0, started + a.session_timeout + group.short_pause - group.now_ms))
    in_time = group.now_ms < started + a.session_timeout * 5 // 4

    await group.check("FAILOVER-04", group.heartbeat(a), reached=in_time, note="the restart took longer than a session")


@failovers.add("FAILOVER-19", needs=RESTART)
async def rebalance_timeout_survives(group: ScenarioContext) -> None:
    """A join phase waits for an absent member by the rebalance timeout from before the failover."""
    a, b = group.member("A"), group.member("B")
    a.rebalance_timeout, b.rebalance_timeout = 1_000, 3_000
    await group.form_stable_group(a, b)

    await group.restart()
    await group.check("FAILOVER-19", group.join_with_new_metadata(a), fields="time")


# --- a round that was under way ------------------------------------------------------------------------------------


@failovers.add("FAILOVER-06", needs=RESTART)
async def unsynced_round_is_lost(group: ScenarioContext) -> None:
    """The generation of a rebalance without SyncGroup is unknown."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.join(a)
    await group.restart()

    await group.check("FAILOVER-06", group.sync(a, {a.id: b"late"}))


@failovers.add("FAILOVER-06", needs=RESTART)
async def first_round_is_lost(group: ScenarioContext) -> None:
    """A group without a stored assignment has no members."""
    (a,) = await group.form_generation(group.member("A"))
    await group.restart()
    await group.check("FAILOVER-06", group.sync(a, {a.id: b"late"}))


@failovers.add("FAILOVER-07", needs=RESTART)
async def members_of_a_lost_round(group: ScenarioContext) -> None:
    """Members of the generation before are known under it; the newcomer is not."""
    (a,) = await group.form_stable_group(group.member("A"))

    stored, newcomer = a.generation, group.member("B")
    parked = await group.join_new(newcomer)
    await group.sleep(group.short_pause)
    await group.join(a)
    await parked
    await group.restart()

    await group.check("FAILOVER-07", group.heartbeat(a, generation_id=stored))
    await group.check("FAILOVER-07", group.heartbeat(newcomer), reached=newcomer.generation > stored)


@failovers.add("FAILOVER-07", needs=RESTART)
async def join_phase_is_lost(group: ScenarioContext) -> None:
    """If the coordinator dies while requests are parked, the members of the generation before are known."""
    members = await group.form_stable_group(group.member("A"), group.member("B"))

    for member in members:
        member.rebalance_timeout = group.long_session_timeout
    parked = group.join_with_new_metadata(members[0])
    await group.sleep(group.short_pause)
    group.require(not parked.done, "the round did not wait")
    await group.restart()

    for member in members:
        await group.check("FAILOVER-07", group.heartbeat(member))


@failovers.add("FAILOVER-07", needs=RESTART)
async def departure_is_lost(group: ScenarioContext) -> None:
    """A departure that was not stored is undone, and the member's session expires again."""
    a, leaver = (
        group.member("A"),
        group.member("B", session_timeout=max(group.session_timeout, 5_000)),
    )
    a.rebalance_timeout = leaver.rebalance_timeout = group.long_session_timeout
    await group.form_stable_group(a, leaver)

    await group.leave(leaver)
    await group.restart()

    await group.check("FAILOVER-07", group.describe_groups(), fields="members")
    await group.sleep_past(leaver.session_timeout)
    await group.check("FAILOVER-07", group.heartbeat(a))


@failovers.add("FAILOVER-21", needs=RESTART)
async def share_of_a_leaver_is_given_away(group: ScenarioContext) -> None:
    """After a failover, the others have to rejoin once the session of a departed member would have expired."""
    a, leaver = (
        group.member("A"),
        group.member("B", session_timeout=max(group.session_timeout, 5_000)),
    )
    a.rebalance_timeout = leaver.rebalance_timeout = group.long_session_timeout
    await group.form_stable_group(a, leaver)

    await group.leave(leaver)
    await group.restart()
    await group.sleep_past(leaver.session_timeout)

    await group.check("FAILOVER-21", group.heartbeat(a))


@failovers.add("FAILOVER-08", needs=RESTART)
async def pending_ids_are_lost(group: ScenarioContext) -> None:
    """A member id that was issued but not used is unknown."""
    await group.form_stable_group(group.member("A"))

    x = group.member("X")
    issued = group.join(x, version=group.highest_version("JoinGroup", at_least=4))
    await issued
    await group.restart()

    await group.check("FAILOVER-08", group.join(x), reached=issued.error == Error.MEMBER_ID_REQUIRED)


# --- groups without members ----------------------------------------------------------------------------------------


@failovers.add("FAILOVER-12", needs=RESTART)
async def offsets_survive(group: ScenarioContext) -> None:
    """Committed offsets are recovered with their metadata."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.commit(a, {0: 5, 1: {"committed_offset": 7, "committed_metadata": "kept"}})
    await group.restart()

    await group.check_versions("FAILOVER-12", group.fetch((0, 1, 2)))


@failovers.add("FAILOVER-12", needs=RESTART)
async def lost_commit_stays_lost(group: ScenarioContext) -> None:
    """A commit in flight at the kill is stored or lost, once and for all."""
    await group.commit(None, {0: 5})
    group.commit(None, {0: 7})
    await group.restart()

    for _ in range(2):
        await group.check("FAILOVER-12", group.fetch(), fields="offset")
        await group.sleep(4 * group.short_pause)


@failovers.add("FAILOVER-14", "FAILOVER-10", needs=RESTART)
async def emptied_group_comes_back(group: ScenarioContext) -> None:
    """A group that its members have left is Empty, and its generations go on."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.commit(a, {0: 5})
    await group.leave(a)
    await group.restart()

    await group.check("FAILOVER-14", group.describe_groups(), fields="state")
    await group.check(("FAILOVER-14", "FAILOVER-10"), await group.join_new(group.member("B")), fields="generation")


@failovers.add("FAILOVER-14", needs=RESTART)
async def simple_group_comes_back(group: ScenarioContext) -> None:
    """A group that only held offsets is recovered."""
    await group.commit(None, {0: 5})
    await group.restart()
    await group.check("FAILOVER-14", group.describe_groups(), fields="state")


@failovers.add("FAILOVER-15", needs=RESTART)
async def deleted_group_stays_deleted(group: ScenarioContext) -> None:
    """A deleted group is not recovered, nor are its offsets."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.commit(a, {0: 5})
    await group.leave(a)
    await group.delete_groups()
    await group.restart()

    await group.check("FAILOVER-15", group.describe_groups(), fields="error state")
    await group.check("FAILOVER-15", group.fetch(), fields="offset")


@failovers.add("FAILOVER-22", needs=RESTART)
async def deleted_offset_stays_deleted(group: ScenarioContext) -> None:
    """An offset that was deleted is not recovered, the one beside it is."""
    stored = await is_commit_accepted(group.commit(None, {0: 5, 1: 7}))
    deleted = group.delete_offsets([0])
    group.require((await deleted)["error_code"] == 0, "no offset was deleted")
    await group.restart()

    await group.check_versions("FAILOVER-22", group.fetch([0, 1]), fields="offset", reached=stored)


# --- Further failovers: static members, a smaller size limit, and requests while the coordinator is down.


@failovers.add("FAILOVER-16", needs=RESTART)
async def instance_ids_survive(group: ScenarioContext) -> None:
    """The replacement of a static member is recognised after a failover."""
    a, old = group.member("A"), static_member(group, "B")
    await group.form_stable_group(a, old)

    await group.restart()
    await group.check("FAILOVER-16", group.join(group.replacement_of(old)), fields=("error", "generation", "time"))
    await group.check("FAILOVER-16", group.heartbeat(a))


@failovers.add("STATIC-28", needs=RESTART)
async def replacement_survives(group: ScenarioContext) -> None:
    """The id of a replacement is recovered, and that of its predecessor is not."""
    (old,) = await group.form_stable_group(static_member(group, "A"))

    replacement = await replace_static_member(group, old)
    await group.restart()

    await group.check("STATIC-28", group.sync(replacement))
    await group.check("STATIC-28", group.heartbeat(old))


@failovers.add("FAILOVER-19", needs=RESTART)
async def session_timeout_survives(group: ScenarioContext) -> None:
    """A member that is silent after the failover expires at its own session timeout."""
    a = group.member("A", session_timeout=max(group.session_timeout, 6_000))
    await group.form_stable_group(a)

    await poll_until_restarted(group, asyncio.ensure_future(group.restart()), (lambda: group.heartbeat(a),))
    first = group.heartbeat(a)
    await first
    group.require(first.error == 0, "the member was not known")
    await group.sleep(a.session_timeout - 500)

    await group.check("FAILOVER-19", group.heartbeat(a))
    await group.sleep_past(a.session_timeout)
    await group.check("FAILOVER-19", group.heartbeat(a))


@failovers.add("FAILOVER-17", needs=("restart", "resize"))
async def group_above_the_limit(group: ScenarioContext) -> None:
    """In a group above its new size limit, the member that rejoins last is refused."""
    members = await group.form_stable_group(*(group.member(label) for label in "ABC"))

    await group.restart(max_group_size=2)
    await group.check("FAILOVER-17", group.heartbeat(members[0]))
    calls = [group.join(member) for member in members]
    for call in reversed(calls):
        await group.check("FAILOVER-17", call)


@failovers.add("FAILOVER-01", "HB-12", needs=RESTART)
async def answers_from_the_first_moment(group: ScenarioContext) -> None:
    """A coordinator that has not loaded its groups yet refuses as not ready, or lets heartbeats succeed."""
    (a,) = await group.form_stable_group(group.member("A"))

    await group.commit(a, {0: 5})
    requests: tuple[Callable[[], Call], ...] = (
        lambda: group.heartbeat(a, member_id="nobody"),
        lambda: group.heartbeat(a),
        group.fetch,
    )
    responded = await poll_until_restarted(group, asyncio.ensure_future(group.restart()), requests)
    fetch = group.fetch()
    await fetch
    first = next((call for call in responded if call.api == "OffsetFetch"), fetch)

    await group.check("FAILOVER-01", first)
    for call in responded:
        unready = bool(errors_in(call.body) & COORDINATOR_NOT_READY)
        is_member = call.api == "Heartbeat" and is_sent_by(call, a)
        if is_member or (unready and call is not first):
            await group.check("FAILOVER-01", call)
        if call.api == "Heartbeat" and not is_member and (unready or call.error == 0):
            await group.check("HB-12", call)
    await group.check("FAILOVER-01", group.fetch(stable=True))
    await group.check(
        "HB-12", first, fields="time", reached=False, note="the coordinator may have been ready all the time"
    )


async def poll_until_restarted(
    group: ScenarioContext, restart: "asyncio.Future[None]", requests: tuple[Callable[[], Call], ...]
) -> tuple[Call, ...]:
    """Send the requests again and again until the restart is done; returns the calls with a response after it.

    The pauses get shorter once the target is down, as it may be ready soon after it is up.
    """
    calls: list[Call] = []
    pause = group.short_pause
    while not restart.done():
        for send in requests:
            call = send()
            either: set[asyncio.Future[Any]] = {call.exchange.response, restart}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            calls.append(call)
        if not has_response(calls[-1]):
            pause = group.short_pause // 10
        await group.sleep(pause)
    await restart
    restarted_at = max(
        event.sequence for event in group.recorder.events if event.kind is Kind.FAULT and event.api == "restart"
    )
    return tuple(call for call in calls if has_response(call) and is_sent_after(call, restarted_at))


def is_sent_by(call: Call, member: Member) -> bool:
    """Whether the call carries the id of the member."""
    request = call.exchange.request
    return request is not None and request.body.get("member_id") == member.id


def has_response(call: Call) -> bool:
    """Whether the call has a response."""
    return call.done and call.exchange.response.result() is not None


def is_sent_after(call: Call, sequence: int) -> bool:
    """Whether the request was sent after the event with this sequence number."""
    request = call.exchange.request
    return request is not None and request.sequence > sequence


# --- Groups that are moved to another node while their old coordinator stays up: the responses of both nodes.

MOVE = ("second-node", "graceful-move")
NOT_PARKED = "the request had its response before the group was moved"


@failovers.add("FAILOVER-11", needs=MOVE)
async def parked_join_ends_with_a_move(group: ScenarioContext) -> None:
    """JoinGroup that waits for another member does not succeed when the group is moved."""
    members = await group.form_stable_group(group.member("A"), group.member("B"))

    for member in members:
        member.rebalance_timeout = group.long_session_timeout
    parked = group.join_with_new_metadata(members[0])
    await group.wait_for_state(PREPARING)
    reached = not parked.done
    await group.move()
    await group.check_refused_or_closed("FAILOVER-11", parked, reached=reached, note=NOT_PARKED)


@failovers.add("FAILOVER-11", needs=MOVE)
async def parked_sync_ends_with_a_move(group: ScenarioContext) -> None:
    """SyncGroup that waits for the leader's assignment does not succeed when the group is moved."""
    members = group.member("A"), group.member("B")
    for member in members:
        member.rebalance_timeout = group.long_session_timeout
    _, follower = await group.form_generation(*members)

    parked = group.sync(follower)
    await group.sleep(group.short_pause)
    reached = not parked.done
    await group.move()
    await group.check_refused_or_closed("FAILOVER-11", parked, reached=reached, note=NOT_PARKED)


@failovers.add("FAILOVER-18", needs=MOVE, smoke=True)
async def old_coordinator_rejects_requests(group: ScenarioContext) -> None:
    """The node that coordinated the group refuses the requests of its members; the new one takes them."""
    leader, follower = await group.form_stable_group(group.member("A"), group.member("B"))
    old = await coordinator_of(group, group.group_id)

    await group.move()
    await group.heartbeat(leader)
    with group.sending_to(old):
        await group.check("FAILOVER-18", group.heartbeat(leader), fields="error")
        await group.check("FAILOVER-18", group.sync(follower), fields="error")
        await group.check("FAILOVER-18", group.fetch(), fields="error")
        await group.check("FAILOVER-18", group.leave(follower), fields="error")
    await group.heartbeat(follower)


@failovers.add("FAILOVER-20", needs=MOVE)
async def old_coordinator_accepts_no_commit(group: ScenarioContext) -> None:
    """Once the new coordinator responds, the old one takes no offsets, neither of a member nor of anybody else."""
    (a,) = await group.form_stable_group(group.member("A"))
    old = await coordinator_of(group, group.group_id)
    await group.commit(a, {0: 5})

    await group.move()
    await group.heartbeat(a)
    with group.sending_to(old):
        commits = group.commit(a, {0: 7}), group.commit(None, {0: 9})
    for commit in commits:
        await group.check("FAILOVER-20", commit, fields="accepted")
    if not any([await is_commit_accepted(commit) for commit in commits]):
        await group.fetch()  # what was refused is not stored either


@failovers.add("FIND-04", needs=MOVE)
async def lookup_follows_a_move(group: ScenarioContext) -> None:
    """After a move, each node names the new leader of the partition of the offsets topic."""
    await group.commit(None, {0: 5})
    await group.move()
    known = await is_offsets_topic_known(group)
    for broker in group.description.brokers:
        call = find_coordinator(group, group.group_id, broker=broker)
        await group.check("FIND-04", call, fields="home", reached=known)
