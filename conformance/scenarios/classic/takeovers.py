"""More of failovers: static members, a smaller size limit, and what goes on while the coordinator is away."""

import asyncio
from collections.abc import Callable
from typing import Any

from fencepost.conformance.scenario.context import Call, Member, Stage
from fencepost.conformance.scenario.scenario import Collection
from fencepost.conformance.scenarios.classic.statics import replaced, static
from fencepost.traces.events import Kind
from fencepost.traces.judge.classic.failover import NOT_READY
from fencepost.traces.judge.diagnosis.wording import errors_in

takeovers = Collection()
RESTART = ("restart",)


@takeovers.add("FAILOVER-16", needs=RESTART)
async def instance_ids_survive(stage: Stage) -> None:
    """A static member that restarts too is taken for the one of before."""
    a, old = stage.silent("A"), static(stage, "B")
    await stage.stable(a, old)
    await stage.restart()
    taken = stage.join(stage.heir(old))
    await taken
    stage.shows("FAILOVER-16", taken, "error", "generation", "time")
    beaten = stage.heartbeat(a)
    await beaten
    stage.shows("FAILOVER-16", beaten)


@takeovers.add("STATIC-28", needs=RESTART)
async def replacement_survives(stage: Stage) -> None:
    """The id that was given last is the one that counts."""
    (old,) = await stage.stable(static(stage, "A"))
    heir = await replaced(stage, old)
    await stage.restart()
    known = stage.sync(heir)
    await known
    stage.shows("STATIC-28", known)
    fenced = stage.heartbeat(old)
    await fenced
    stage.shows("STATIC-28", fenced)


@takeovers.add("FAILOVER-19", needs=RESTART)
async def session_timeout_survives(stage: Stage) -> None:
    """A member that is silent after the failover expires when its own timeout says so."""
    a = stage.member("A", session=max(stage.session, 6_000))
    await stage.stable(a)
    await polled(stage, asyncio.ensure_future(stage.restart()), (lambda: stage.heartbeat(a),))
    first = stage.heartbeat(a)
    await first
    stage.need(first.error == 0, "the member was not known")
    await stage.sleep(a.session - 500)
    before = stage.heartbeat(a)
    await before
    stage.shows("FAILOVER-19", before)
    await stage.sleep_past(a.session)
    after = stage.heartbeat(a)
    await after
    stage.shows("FAILOVER-19", after)


@takeovers.add("FAILOVER-17", needs=("restart", "resize"))
async def group_above_the_limit(stage: Stage) -> None:
    """The one that rejoins last finds no place any more."""
    members = await stage.stable(*(stage.silent(label) for label in "ABC"))
    await stage.restart(max_group_size=2)
    told = stage.heartbeat(members[0])
    await told
    stage.shows("FAILOVER-17", told)
    calls = [stage.join(member) for member in members]
    for call in reversed(calls):
        await call
        stage.shows("FAILOVER-17", call)


@takeovers.add("FAILOVER-01", "HB-12", needs=RESTART)
async def answers_from_the_first_moment(stage: Stage) -> None:
    """A coordinator that does not know its groups yet says so, or says yes to heartbeats; it never says no."""
    (a,) = await stage.stable(stage.silent("A"))
    await stage.commit(a, {0: 5})
    asked: tuple[Callable[[], Call], ...] = (
        lambda: stage.heartbeat(a, member_id="nobody"),
        lambda: stage.heartbeat(a),
        stage.fetch,
    )
    answered = await polled(stage, asyncio.ensure_future(stage.restart()), asked)
    fetch = stage.fetch()
    await fetch
    first = next((call for call in answered if call.api == "OffsetFetch"), fetch)
    stage.shows("FAILOVER-01", first)
    for call in answered:
        unready = bool(errors_in(call.body) & NOT_READY)
        is_member = call.api == "Heartbeat" and names(call, a)
        if is_member or (unready and call is not first):
            stage.shows("FAILOVER-01", call)
        if call.api == "Heartbeat" and not is_member and (unready or call.error == 0):
            stage.shows("HB-12", call)
    stable = stage.fetch(stable=True)
    await stable
    stage.shows("FAILOVER-01", stable)
    stage.shows("HB-12", first, "time", met=False, note="the coordinator may have been ready all the time")


async def polled(
    stage: Stage, going: "asyncio.Future[None]", asked: tuple[Callable[[], Call], ...]
) -> tuple[Call, ...]:
    """Ask over and over until this is done, more often once the target is down: it may be ready soon after it is up.

    Returns the calls that the restarted target answered.
    """
    calls: list[Call] = []
    pause = stage.step
    while not going.done():
        for ask in asked:
            call = ask()
            either: set[asyncio.Future[Any]] = {call.exchange.answer, going}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            calls.append(call)
        if not is_answered(calls[-1]):
            pause = stage.step // 10
        await stage.sleep(pause)
    await going
    restart = max(
        event.sequence for event in stage.recorder.events if event.kind is Kind.FAULT and event.api == "restart"
    )
    return tuple(call for call in calls if is_answered(call) and sent_after(call, restart))


def names(call: Call, member: Member) -> bool:
    """The request is the member's own."""
    request = call.exchange.request
    return request is not None and request.body.get("member_id") == member.id


def is_answered(call: Call) -> bool:
    """There is an answer."""
    return call.done and call.exchange.answer.result() is not None


def sent_after(call: Call, sequence: int) -> bool:
    """The request left after this event."""
    request = call.exchange.request
    return request is not None and request.sequence > sequence
