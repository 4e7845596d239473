"""The scenarios for the push coordinator: they bring it into the situations that requirements are about."""

from collections.abc import Callable, Coroutine
from typing import Any

from fencepost.conformance.push.context import PushContext
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.subject import Scenario, ScenarioRegistry
from fencepost.model.push.group import Interest

# How scenarios of push are registered.


PushPlay = Callable[[PushContext], Coroutine[Any, Any, None]]


class PushScenarios(ScenarioRegistry[PushPlay]):
    """The scenarios of one module."""

    def add(self, *requirements: str, smoke: bool = False) -> Callable[[PushPlay], PushPlay]:
        """Register a function as a scenario that shows the requirements, given by their numbers."""
        ids = tuple(f"PUSH-{number}" for number in requirements)
        return self.register(lambda name, play: Scenario(name, ids, playable(play), (), smoke))


def playable(play: PushPlay) -> Callable[[ScenarioContext], Coroutine[Any, Any, None]]:
    """The scenario as a run plays it."""

    async def play_here(context: ScenarioContext) -> None:
        push = PushContext(context)
        try:
            await play(push)
        finally:
            push.close()

    return play_here


scenarios = PushScenarios()


# Scenarios of lookups and registrations (draft, 5).


@scenarios.add("23", "24", smoke=True)
async def every_broker_answers_a_lookup(context: PushContext) -> None:
    for address in context.channel.bootstrap:
        connection = await context.channel.open("A", address)
        if connection is not None:
            await connection.ask("ClusterMetadata", {})
            connection.drop()


@scenarios.add("17", "25", "29", "34", "37", "50", "51", smoke=True)
async def consumer_alone_gets_everything(context: PushContext) -> None:
    await context.group_of("a")
    await context.sleep(context.short_timeout)


@scenarios.add("34", "35", "38", "39", smoke=True)
async def consumers_share_partitions(context: PushContext) -> None:
    await context.group_of("a", "b", "c")
    await context.sleep(context.short_timeout)


@scenarios.add("18", "34", "35", "38")
async def consumers_join_at_once(context: PushContext) -> None:
    for name in "abc":
        await context.consumer(name).join()
    await context.sleep(2 * context.short_timeout)


@scenarios.add("26")
async def live_id_is_refused(context: PushContext) -> None:
    await context.group_of("a")
    await context.consumer("a").register()
    await context.settle()


@scenarios.add("27")
async def session_timeout_at_the_minimum_is_refused(context: PushContext) -> None:
    least = context.limit("min_session_timeout")
    for place, timeout in enumerate((least - 1, least, context.limit("max_session_timeout") + 1)):
        await context.consumer(f"c{place}", timeout).register()
    await context.consumer("a", least + 1).register()
    await context.settle()


@scenarios.add("33")
async def last_consumer_returns(context: PushContext) -> None:
    (only,) = await context.group_of("a")
    only.crash()
    await context.sleep(2 * context.short_timeout + 4 * context.base.grace)
    await context.group_of("b")


@scenarios.add("36")
async def consumer_comes_back_with_its_id(context: PushContext) -> None:
    first, other = await context.group_of("a", "b")
    first.crash()
    await context.sleep(2 * context.short_timeout + 4 * context.base.grace)
    again = context.consumer("a")
    await again.join()
    await again.await_start()
    await other.await_start()
    await context.settle()


@scenarios.add("36")
async def consumer_comes_back_alone_with_its_id(context: PushContext) -> None:
    (first,) = await context.group_of("a")
    first.crash()
    await context.sleep(2 * context.short_timeout + 4 * context.base.grace)
    again = context.consumer("a")
    await again.join()
    await again.await_start()


@scenarios.add("13", "30")
async def topic_comes_after_its_consumer(context: PushContext) -> None:
    topic = f"{context.topic}-later"
    assert topic not in context.hooks.topics()
    early = await context.consumer("a", interest=Interest(((topic, 1),))).join()
    await context.settle()
    context.add_partition(topic)
    await early.await_start()
    await context.settle()


@scenarios.add("13")
async def new_topic_fits_a_wildcard(context: PushContext) -> None:
    wild = await context.consumer("a", interest=Interest(pattern=f"{context.topic}.*")).join()
    await wild.await_start()
    context.add_partition(f"{context.topic}-wild")
    await wild.await_requests("Start")
    await context.settle()


# Scenarios of pings and of consumers that fall silent (draft, 3 scheduler and 6).


@scenarios.add("07", "08", smoke=True)
async def pings_come_by_thirds(context: PushContext) -> None:
    await context.group_of("a")
    await context.sleep(3 * context.short_timeout)


@scenarios.add("07", "08")
async def pings_follow_each_timeout(context: PushContext) -> None:
    await context.consumer("a", context.short_timeout).join()
    await context.consumer("b", 2 * context.short_timeout).join()
    await context.sleep(4 * context.short_timeout)


@scenarios.add("12")
async def retries_are_numbered(context: PushContext) -> None:
    (slow,) = await context.group_of("a", timeout_ms=3 * context.short_timeout)
    await slow.await_requests("Ping")
    slow.is_paused = True
    await slow.await_requests("Ping", 2)
    slow.resume()
    await context.sleep(3 * context.short_timeout)


@scenarios.add("11")
async def silent_consumer_is_removed(context: PushContext) -> None:
    silent, other = await context.group_of("a", "b")
    silent.is_paused = True
    await silent.await_end()
    await other.await_start()
    await context.sleep(context.short_timeout)


@scenarios.add("09")
async def held_channel_gets_no_ping(context: PushContext) -> None:
    held, _ = await context.group_of("a", "b", timeout_ms=context.long_timeout)
    held.pauses_at = "Stop"
    await context.consumer("c", context.short_timeout).join()
    await held.await_requests("Stop")
    await context.sleep(min(context.short_timeout, context.limits.get("response_timeout_ms", 1_000) // 2))
    held.resume()
    await context.sleep(context.short_timeout)


@scenarios.add("07", "08")
async def consumer_that_answers_stays(context: PushContext) -> None:
    await context.group_of("a", "b")
    await context.sleep(5 * context.short_timeout)


# Scenarios of rebalances that meet changes, slow consumers and crashes (draft, 6 and 7).


@scenarios.add("15", "19")
async def consumer_joins_during_a_rebalance(context: PushContext) -> None:
    slow, _ = await context.group_of("a", "b", timeout_ms=context.long_timeout)
    slow.pauses_at = "Stop"
    await context.consumer("c", context.long_timeout).join()
    await slow.await_requests("Stop")
    late = await context.consumer("d", context.long_timeout).join()
    slow.resume()
    await late.await_start()
    await context.settle()


@scenarios.add("15", "19")
async def consumer_joins_while_starts_are_awaited(context: PushContext) -> None:
    slow = await context.consumer("a", context.long_timeout).join()
    slow.pauses_at = "Start"
    await slow.await_requests("Start")
    late = await context.consumer("b", context.long_timeout).join()
    slow.resume()
    await late.await_start()
    await context.settle()


@scenarios.add("14", "15")
async def partition_comes_during_a_rebalance(context: PushContext) -> None:
    slow, other = await context.group_of("a", "b", timeout_ms=context.long_timeout)
    slow.pauses_at = "Stop"
    context.add_partition()
    await slow.await_requests("Stop")
    context.add_partition()
    slow.resume()
    await other.await_requests("Start", 2)
    await context.settle()


@scenarios.add("14")
async def partition_comes(context: PushContext) -> None:
    first, _ = await context.group_of("a", "b")
    context.add_partition()
    await first.await_requests("Start")
    await context.settle()
    context.add_partition(f"{context.topic}-strange")
    await context.sleep(context.short_timeout)


@scenarios.add("20", "21", "41")
async def consumer_never_stops(context: PushContext) -> None:
    retries, wait = context.limit("maximum_retries"), context.limit_over_grace("response_timeout_ms")
    stuck, other = await context.group_of("a", "b", timeout_ms=context.long_timeout)
    stuck.pauses_at = "Stop"
    await context.consumer("c", context.long_timeout).join()
    await other.await_requests("Stop", retries + 2)
    stuck.resume()
    await context.sleep(2 * wait)


@scenarios.add("21", "41")
async def consumer_is_late_to_start(context: PushContext) -> None:
    context.limit("response_timeout_ms")
    slow, other = await context.group_of("a", "b", timeout_ms=context.long_timeout)
    slow.pauses_at = "Start"
    await context.consumer("c", context.long_timeout).join()
    await other.await_requests("Stop", 2)
    slow.resume()
    await other.await_start()
    await context.settle()


@scenarios.add("39")
async def answer_to_an_earlier_attempt_does_not_count(context: PushContext) -> None:
    context.limit("response_timeout_ms")
    slow, other = await context.group_of("a", "b", timeout_ms=context.long_timeout)
    slow.pauses_at = "Stop"
    await context.consumer("c", context.long_timeout).join()
    await other.await_requests("Stop", 2)
    while slow.waiting and slow.waiting[0].api == "Ping":
        slow.handle_next()
    slow.handle_next()
    await context.sleep(context.limit("response_timeout_ms") // 3)
    slow.resume()
    await context.sleep(context.limit("response_timeout_ms"))


@scenarios.add("38", "41")
async def consumer_dies_during_a_rebalance(context: PushContext) -> None:
    dying, other = await context.group_of("a", "b")
    dying.pauses_at = "Stop"
    await context.consumer("c").join()
    await dying.await_requests("Stop")
    dying.crash()
    await other.await_start()
    await context.sleep(3 * context.short_timeout)


@scenarios.add("46")
async def next_owner_begins_where_the_last_one_stopped(context: PushContext) -> None:
    (first,) = await context.group_of("a")
    first.consume(41)
    await context.group_of("b")
    first.consume(7)
    await context.consumer("c").join()
    await context.sleep(context.short_timeout)


@scenarios.add("46")
async def next_owner_begins_where_a_ping_told(context: PushContext) -> None:
    committing = await context.consumer("a", auto_commit=True).join()
    await committing.await_start()
    await committing.await_requests("Ping")
    committing.consume(5)
    await committing.await_requests("Ping")
    await context.settle()
    committing.crash()
    await context.group_of("b")


@scenarios.add("52")
async def slow_group_holds_up_others_for_a_while(context: PushContext) -> None:
    retries, wait = context.limit("maximum_retries"), context.limit("response_timeout_ms")
    bound = (retries + 1) * (wait + context.limit("backoff_ms"))
    stuck, _ = await context.group_of("a", "b", timeout_ms=context.long_timeout)
    stuck.pauses_at = "Stop"
    await context.consumer("c", context.long_timeout).join()
    await stuck.await_requests("Stop")
    group = context.group_id
    for number in range(4):
        context.group_id = f"{group}-{number}"
        await context.consumer("x", context.long_timeout).join()
    context.group_id = group
    await context.sleep(bound)
    stuck.resume()
    await context.sleep(wait)


# Scenarios in which a coordinator loses its place (draft, 8). They need a target in this process.


@scenarios.add("03", "23", "42", "43")
async def coordinator_dies(context: PushContext) -> None:
    hooks = context.hooks
    first, second = await context.group_of("a", "b")
    await hooks.kill_coordinator()
    await context.settle()
    again = [context.consumer("a"), context.consumer("b")]
    for each in again:
        await each.join()
    for each in again:
        await each.await_start()
    await first.await_end()
    await second.await_end()
    await context.settle()


@scenarios.add("02", "05", "06", "44")
async def session_expires_twice(context: PushContext) -> None:
    hooks = context.hooks
    for _ in range(2):
        (only,) = await context.group_of("a")
        await hooks.expire_session()
        await only.await_end()
        await context.settle()
    (last,) = await context.group_of("b")
    context.add_partition()
    await last.await_requests("Start")
    await context.settle()


@scenarios.add("44")
async def session_expires_during_a_rebalance(context: PushContext) -> None:
    hooks = context.hooks
    slow, _ = await context.group_of("a", "b", timeout_ms=context.long_timeout)
    slow.pauses_at = "Stop"
    await context.consumer("c").join()
    await slow.await_requests("Stop")
    await hooks.expire_session()
    slow.resume()
    await slow.await_end()
    await context.group_of("d")


ALL: tuple[Scenario, ...] = tuple(scenarios.scenarios)
"""All of them. They check nothing themselves: the judge says what a trace shows."""
