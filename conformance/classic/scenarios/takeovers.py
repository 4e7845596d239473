"""Further failovers: static members, a smaller size limit, and requests while the coordinator is down."""

import asyncio
from collections.abc import Callable
from typing import Any

from fencepost.conformance.classic.scenarios.statics import replace_static_member, static_member
from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Call, Member
from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.events import Kind
from fencepost.traces.judge.diagnosis.wording import errors_in

takeovers = ScenarioFamily()
RESTART = ("restart",)


@takeovers.add("FAILOVER-16", needs=RESTART)
async def instance_ids_survive(group: ScenarioContext) -> None:
    """The replacement of a static member is recognised after a failover."""
    a, old = group.member_without_heartbeats("A"), static_member(group, "B")
    await group.form_stable_group(a, old)

    await group.restart()
    await group.check("FAILOVER-16", group.join(group.replacement_of(old)), fields=("error", "generation", "time"))
    await group.check("FAILOVER-16", group.heartbeat(a))


@takeovers.add("STATIC-28", needs=RESTART)
async def replacement_survives(group: ScenarioContext) -> None:
    """The id of a replacement is recovered, and that of its predecessor is not."""
    (old,) = await group.form_stable_group(static_member(group, "A"))

    replacement = await replace_static_member(group, old)
    await group.restart()

    await group.check("STATIC-28", group.sync(replacement))
    await group.check("STATIC-28", group.heartbeat(old))


@takeovers.add("FAILOVER-19", needs=RESTART)
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


@takeovers.add("FAILOVER-17", needs=("restart", "resize"))
async def group_above_the_limit(group: ScenarioContext) -> None:
    """In a group above its new size limit, the member that rejoins last is refused."""
    members = await group.form_stable_group(*(group.member_without_heartbeats(label) for label in "ABC"))

    await group.restart(max_group_size=2)
    await group.check("FAILOVER-17", group.heartbeat(members[0]))
    calls = [group.join(member) for member in members]
    for call in reversed(calls):
        await group.check("FAILOVER-17", call)


@takeovers.add("FAILOVER-01", "HB-12", needs=RESTART)
async def answers_from_the_first_moment(group: ScenarioContext) -> None:
    """A coordinator that has not loaded its groups yet refuses as not ready, or lets heartbeats succeed."""
    (a,) = await group.form_stable_group(group.member_without_heartbeats("A"))

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
