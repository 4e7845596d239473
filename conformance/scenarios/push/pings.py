"""Scenarios of pings and of consumers that fall silent (draft, 3 scheduler and 6)."""

from fencepost.conformance.scenarios.push.context import PushContext
from fencepost.conformance.scenarios.push.registry import PushScenarios

pings = PushScenarios()


@pings.add("07", "08", smoke=True)
async def pings_come_by_thirds(context: PushContext) -> None:
    await context.group_of("a")
    await context.sleep(3 * context.short_timeout)


@pings.add("07", "08")
async def pings_follow_each_timeout(context: PushContext) -> None:
    await context.consumer("a", context.short_timeout).join()
    await context.consumer("b", 2 * context.short_timeout).join()
    await context.sleep(4 * context.short_timeout)


@pings.add("12")
async def retries_are_numbered(context: PushContext) -> None:
    (slow,) = await context.group_of("a", timeout_ms=3 * context.short_timeout)
    await slow.await_requests("Ping")
    slow.is_paused = True
    await slow.await_requests("Ping", 2)
    slow.resume()
    await context.sleep(3 * context.short_timeout)


@pings.add("11")
async def silent_consumer_is_removed(context: PushContext) -> None:
    silent, other = await context.group_of("a", "b")
    silent.is_paused = True
    await silent.await_end()
    await other.await_start()
    await context.sleep(context.short_timeout)


@pings.add("09")
async def held_channel_gets_no_ping(context: PushContext) -> None:
    held, _ = await context.group_of("a", "b", timeout_ms=context.long_timeout)
    held.pauses_at = "Stop"
    await context.consumer("c", context.short_timeout).join()
    await held.await_requests("Stop")
    await context.sleep(min(context.short_timeout, context.limits.get("response_timeout_ms", 1_000) // 2))
    held.resume()
    await context.sleep(context.short_timeout)


@pings.add("07", "08")
async def consumer_that_answers_stays(context: PushContext) -> None:
    await context.group_of("a", "b")
    await context.sleep(5 * context.short_timeout)
