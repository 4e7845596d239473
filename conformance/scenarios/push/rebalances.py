"""Scenarios of rebalances that meet changes, slow consumers and crashes (draft, 6 and 7)."""

from fencepost.conformance.scenarios.push.context import PushContext
from fencepost.conformance.scenarios.push.registry import PushScenarios

rebalances = PushScenarios()


@rebalances.add("15", "19")
async def consumer_joins_during_a_rebalance(context: PushContext) -> None:
    slow, _ = await context.group_of("a", "b", timeout_ms=context.long_timeout)
    slow.pauses_at = "Stop"
    await context.consumer("c", context.long_timeout).join()
    await slow.await_requests("Stop")
    late = await context.consumer("d", context.long_timeout).join()
    slow.resume()
    await late.await_start()
    await context.settle()


@rebalances.add("15", "19")
async def consumer_joins_while_starts_are_awaited(context: PushContext) -> None:
    slow = await context.consumer("a", context.long_timeout).join()
    slow.pauses_at = "Start"
    await slow.await_requests("Start")
    late = await context.consumer("b", context.long_timeout).join()
    slow.resume()
    await late.await_start()
    await context.settle()


@rebalances.add("14", "15")
async def partition_comes_during_a_rebalance(context: PushContext) -> None:
    slow, other = await context.group_of("a", "b", timeout_ms=context.long_timeout)
    slow.pauses_at = "Stop"
    context.add_partition()
    await slow.await_requests("Stop")
    context.add_partition()
    slow.resume()
    await other.await_requests("Start", 2)
    await context.settle()


@rebalances.add("14")
async def partition_comes(context: PushContext) -> None:
    first, _ = await context.group_of("a", "b")
    context.add_partition()
    await first.await_requests("Start")
    await context.settle()
    context.add_partition(f"{context.topic}-strange")
    await context.sleep(context.short_timeout)


@rebalances.add("20", "21", "41")
async def consumer_never_stops(context: PushContext) -> None:
    retries, wait = context.limit("maximum_retries"), context.limit_over_grace("response_timeout_ms")
    stuck, other = await context.group_of("a", "b", timeout_ms=context.long_timeout)
    stuck.pauses_at = "Stop"
    await context.consumer("c", context.long_timeout).join()
    await other.await_requests("Stop", retries + 2)
    stuck.resume()
    await context.sleep(2 * wait)


@rebalances.add("21", "41")
async def consumer_is_late_to_start(context: PushContext) -> None:
    context.limit("response_timeout_ms")
    slow, other = await context.group_of("a", "b", timeout_ms=context.long_timeout)
    slow.pauses_at = "Start"
    await context.consumer("c", context.long_timeout).join()
    await other.await_requests("Stop", 2)
    slow.resume()
    await other.await_start()
    await context.settle()


@rebalances.add("39")
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


@rebalances.add("38", "41")
async def consumer_dies_during_a_rebalance(context: PushContext) -> None:
    dying, other = await context.group_of("a", "b")
    dying.pauses_at = "Stop"
    await context.consumer("c").join()
    await dying.await_requests("Stop")
    dying.crash()
    await other.await_start()
    await context.sleep(3 * context.short_timeout)


@rebalances.add("46")
async def next_owner_begins_where_the_last_one_stopped(context: PushContext) -> None:
    (first,) = await context.group_of("a")
    first.consume(41)
    await context.group_of("b")
    first.consume(7)
    await context.consumer("c").join()
    await context.sleep(context.short_timeout)


@rebalances.add("46")
async def next_owner_begins_where_a_ping_told(context: PushContext) -> None:
    committing = await context.consumer("a", auto_commit=True).join()
    await committing.await_start()
    await committing.await_requests("Ping")
    committing.consume(5)
    await committing.await_requests("Ping")
    await context.settle()
    committing.crash()
    await context.group_of("b")


@rebalances.add("52")
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
