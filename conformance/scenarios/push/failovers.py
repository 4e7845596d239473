"""Scenarios in which a coordinator loses its place (draft, 8). They need a target in this process."""

from fencepost.conformance.scenarios.push.context import PushContext
from fencepost.conformance.scenarios.push.registry import PushScenarios

failovers = PushScenarios()


@failovers.add("03", "23", "42", "43")
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


@failovers.add("02", "05", "06", "44")
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


@failovers.add("44")
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
