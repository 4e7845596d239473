"""Faults of a push coordinator: each replaces functions of the bundled one."""

import asyncio
from collections.abc import Awaitable, Mapping
from functools import partial

from fencepost.adapters.push.broker import ConsumerChannel, GroupRebalancer, PushBroker, Shares
from fencepost.adapters.push.zookeeper import MemoryZookeeper
from fencepost.conformance.zoo.fault import INVENTED, Fault, FaultFamily, Injection, Patch, Shipped, Side, instead_of
from fencepost.model.push.wire import Body

Channels = dict[str, ConsumerChannel]
TRAINING: FaultFamily[None] = FaultFamily(Side.COORDINATOR, None)
"""The judge was written with these in mind."""
HELD_OUT: FaultFamily[None] = FaultFamily(Side.COORDINATOR, None)
"""These were written after the judge, and the judge was not changed for them; the random schedules got consumers with a
wildcard for `ignore_new_topics`."""


# -- rebalances --------------------------------------------------------------------------------------------------------


@TRAINING.add("", INVENTED, "PUSH-38")
@instead_of(GroupRebalancer.ask)
async def start_before_all_stopped(
    shipped: Shipped[Awaitable[dict[str, Body] | None]],
    group: GroupRebalancer,
    channels: Channels,
    name: str,
    bodies: dict[str, Body],
) -> dict[str, Body] | None:
    """Start is sent without waiting for the responses to Stop."""
    if name == "Start":
        return await shipped(group, channels, name, bodies)
    for who, channel in channels.items():
        channel.send(name, {"attempt": group.attempts, **bodies[who]})
    return {}


@TRAINING.add("", INVENTED, "PUSH-15", "PUSH-29", "PUSH-14")
def forget_changes(patch: Patch) -> None:
    """Changes while a rebalance is under way are ignored."""
    request, attempt = GroupRebalancer.request, GroupRebalancer.attempt
    busy: set[GroupRebalancer] = set()

    async def attempt_and_note(group: GroupRebalancer) -> bool:
        busy.add(group)
        try:
            return await attempt(group)
        finally:
            busy.remove(group)

    patch.replace(GroupRebalancer, "request", lambda group: None if group in busy else request(group))
    patch.replace(GroupRebalancer, "attempt", attempt_and_note)


@TRAINING.add("", INVENTED, "PUSH-36", "PUSH-33", "PUSH-41", "PUSH-43")
@instead_of(GroupRebalancer.attempt)
async def believe_recorded_map(shipped: Shipped[Awaitable[bool]], group: GroupRebalancer) -> bool:
    """Nothing is done where the recorded owners are those computed, whoever wrote them."""
    shares = group.assign(dict(sorted(group.members.items())))
    owners = {partition: name for name, share in shares.items() for partition in share}
    assert isinstance(group.zookeeper, MemoryZookeeper)
    return group.zookeeper.owners.get(group.name) == owners or await shipped(group)


@TRAINING.add("", INVENTED, "PUSH-20")
@instead_of(GroupRebalancer.run)
async def give_up_for_good(shipped: Shipped[Awaitable[None]], group: GroupRebalancer) -> None:
    """The handler of a group dies once the retries are used up."""
    while True:
        await group.requested.wait()
        await asyncio.sleep(max(0.0, group.quiet_until - asyncio.get_running_loop().time()))
        if not await group.rebalance_with_retries():
            return


@TRAINING.add("", INVENTED, "PUSH-39")
@instead_of(GroupRebalancer.ask)
async def count_stale_responses(
    shipped: Shipped[Awaitable[dict[str, Body] | None]],
    group: GroupRebalancer,
    channels: Channels,
    name: str,
    bodies: dict[str, Body],
) -> dict[str, Body] | None:
    """The oldest response that a member owes is taken for that to the present attempt."""
    owed = {
        who: next((future for api, future in channel._awaited if api == name), None)
        for who, channel in channels.items()
    }
    sent = {who: channel.send(name, {"attempt": group.attempts, **bodies[who]}) for who, channel in channels.items()}
    futures = {who: owed[who] or sent[who] for who in channels}
    for who, future in sent.items() if name == "Stop" else ():
        future.add_done_callback(partial(group.on_stopped, who))
    if not futures:
        return {}
    await asyncio.wait(futures.values(), timeout=group.wait)
    if not all(future.done() and not future.cancelled() for future in futures.values()):
        return None
    return {who: future.result() for who, future in futures.items()}


@TRAINING.add("", INVENTED, "PUSH-34")
@instead_of(GroupRebalancer.assign)
def leave_last_out(shipped: Shipped[Shares], group: GroupRebalancer, channels: Channels) -> Shares:
    """The last partition is given to nobody."""
    shares = shipped(group, channels)
    last = max((partition for share in shares.values() for partition in share), default=None)
    return {name: tuple(each for each in share if each != last) for name, share in shares.items()}


@TRAINING.add("", INVENTED, "PUSH-35")
@instead_of(GroupRebalancer.start_body)
def give_all_to_each(shipped: Shipped[Body], group: GroupRebalancer, share: object) -> Body:
    """The whole map is sent to every member."""
    return shipped(group, tuple(partition for each in group.shares.values() for partition in each))


@TRAINING.add("", INVENTED, "PUSH-46")
@instead_of(GroupRebalancer.record_offsets)
def ignore_last_offsets(shipped: Shipped[None], group: GroupRebalancer, stopped: dict[str, Body]) -> None:
    """No offset of a response to Stop is recorded."""
    if len(stopped) == 1 and not any(channel.is_held for channel in group.members.values()):
        shipped(group, stopped)


@HELD_OUT.add("", INVENTED, "PUSH-21")
@instead_of(GroupRebalancer.rebalance_with_retries)
async def back_off_never(shipped: Shipped[Awaitable[bool]], group: GroupRebalancer) -> bool:
    """A retry comes nearly at once, without waiting for the responses to the end."""
    group.backoff, group.wait = 0.005, min(group.wait, 0.2)
    return await shipped(group)


@HELD_OUT.add("", INVENTED, "PUSH-41", "PUSH-20", "PUSH-21")
@instead_of(GroupRebalancer.rebalance_with_retries)
async def retry_never(shipped: Shipped[Awaitable[bool]], group: GroupRebalancer) -> bool:
    """A failed attempt is taken for done."""
    group.requested.clear()
    await group.attempt()
    return True


@HELD_OUT.add("", INVENTED, "PUSH-37", "PUSH-41")
def stop_once(patch: Patch) -> None:
    """A retry sends Start alone."""
    ask = GroupRebalancer.ask
    stopped: set[GroupRebalancer] = set()

    async def ask_unless_stopped(
        group: GroupRebalancer, channels: Channels, name: str, bodies: dict[str, Body]
    ) -> dict[str, Body] | None:
        if name == "Stop" and group in stopped:
            return {}
        found = await ask(group, channels, name, bodies)
        (stopped.add if name == "Stop" or found is None else stopped.discard)(group)
        return found

    patch.replace(GroupRebalancer, "ask", ask_unless_stopped)


# -- brokers -----------------------------------------------------------------------------------------------------------


@TRAINING.add("", INVENTED, "PUSH-42")
@instead_of(PushBroker.new_group)
def keep_no_quiet_period(shipped: Shipped[GroupRebalancer], broker: PushBroker, name: str) -> GroupRebalancer:
    """A broker rebalances at once after an election."""
    group = shipped(broker, name)
    group.quiet_until = 0.0
    return group


@TRAINING.add("", INVENTED, "PUSH-44", "PUSH-02")
@instead_of(PushBroker.step_down)
def keep_channels(shipped: Shipped[None], broker: PushBroker) -> None:
    """A broker goes on when its session is over."""
    broker.election = None


def accept_registrations_with(error: int) -> Injection:
    """Accept what should be refused with this error."""
    shipped = PushBroker.registration_error

    def registration_error(broker: PushBroker, body: Body) -> int:
        found = shipped(broker, body)
        return 0 if found == error else found

    return lambda patch: patch.replace(PushBroker, "registration_error", registration_error)


@TRAINING.add("", INVENTED, "PUSH-26")
def accept_duplicates(patch: Patch) -> None:
    """A second consumer may have the id of a live one."""
    accept_registrations_with(2)(patch)


@TRAINING.add("", INVENTED, "PUSH-27")
def accept_any_timeout(patch: Patch) -> None:
    """Session timeouts have no minimum."""
    accept_registrations_with(3)(patch)


@TRAINING.add("", INVENTED, "PUSH-14", "PUSH-13", "PUSH-05", "PUSH-30")
@instead_of(PushBroker.on_topic)
def ignore_topics(shipped: Shipped[None], broker: PushBroker, topic: str) -> None:
    """A broker hears nothing of new topics and partitions."""


@HELD_OUT.add("", INVENTED, "PUSH-13", "PUSH-30")
@instead_of(PushBroker.on_topic)
def ignore_new_topics(shipped: Shipped[None], broker: PushBroker, topic: str) -> None:
    """A broker hears of new partitions alone."""
    if len(broker.zookeeper.topics[topic]) > 1:
        shipped(broker, topic)


@HELD_OUT.add("", INVENTED, "PUSH-14")
@instead_of(PushBroker.on_topic)
def rebalance_everybody(shipped: Shipped[None], broker: PushBroker, topic: str) -> None:
    """A broker rebalances every group at each change."""
    for group in broker.groups.values():
        group.completed = None
        group.request()


@HELD_OUT.add("", INVENTED, "PUSH-23")
@instead_of(PushBroker.describe)
def name_itself(shipped: Shipped[Body], broker: PushBroker) -> Body:
    """A broker takes itself for the coordinator."""
    return {**shipped(broker), "coordinator_id": 70_000}


# -- pings -------------------------------------------------------------------------------------------------------------


def ping_otherwise(
    share: float = 3.0,
    removes_after: float = 1.0,
    respects_held: bool = True,
    counts_retries: bool = True,
    confirms_all: bool = False,
) -> Injection:
    """Ping consumers by another schedule: so many times in a session, and with other rules for those that are held."""

    async def ping_consumers(broker: PushBroker) -> None:
        while True:
            now = asyncio.get_running_loop().time()
            for group in list(broker.groups.values()):
                for channel in list(group.members.values()):
                    if now > channel.heard_at + removes_after * channel.session_timeout:
                        channel.close()
                        group.remove(channel)
                    elif now >= channel.ping_due and not (channel.is_held and respects_held):
                        channel.ping_due = now + channel.session_timeout / share
                        channel.retries *= counts_retries
                        channel.confirmed = channel.pings if confirms_all else channel.confirmed
                        channel.ping()
            await asyncio.sleep(broker.settings.tick_ms / 1000)

    return lambda patch: patch.replace(PushBroker, "ping_consumers", ping_consumers)


TRAINING.add("ping_held_channels", INVENTED, "PUSH-09")(ping_otherwise(respects_held=False))
TRAINING.add("ping_too_often", INVENTED, "PUSH-08")(ping_otherwise(share=6.0))
TRAINING.add("ping_too_rarely", INVENTED, "PUSH-08", "PUSH-07")(ping_otherwise(share=1.5))
HELD_OUT.add("remove_early", INVENTED, "PUSH-11")(ping_otherwise(removes_after=0.5))
HELD_OUT.add("remove_never", INVENTED, "PUSH-11")(ping_otherwise(removes_after=1e9))
HELD_OUT.add("number_no_retry", INVENTED, "PUSH-12")(ping_otherwise(counts_retries=False))
HELD_OUT.add("confirm_unanswered", INVENTED, "PUSH-42")(ping_otherwise(confirms_all=True))
FAULTS: Mapping[str, Fault[None]] = {fault.id: fault for fault in (*TRAINING.faults, *HELD_OUT.faults)}
