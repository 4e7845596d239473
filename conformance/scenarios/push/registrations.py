"""Scenarios of lookups and registrations (draft, 5)."""

from fencepost.conformance.scenarios.push.context import PushContext
from fencepost.conformance.scenarios.push.registry import PushScenarios
from fencepost.model.push.interest import Interest

registrations = PushScenarios()


@registrations.add("23", "24", smoke=True)
async def every_broker_answers_a_lookup(context: PushContext) -> None:
    for address in context.channel.bootstrap:
        connection = await context.channel.open("A", address)
        if connection is not None:
            await connection.ask("ClusterMetadata", {})
            connection.drop()


@registrations.add("17", "25", "29", "34", "37", "50", "51", smoke=True)
async def consumer_alone_gets_everything(context: PushContext) -> None:
    await context.group_of("a")
    await context.sleep(context.short_timeout)


@registrations.add("34", "35", "38", "39", smoke=True)
async def consumers_share_partitions(context: PushContext) -> None:
    await context.group_of("a", "b", "c")
    await context.sleep(context.short_timeout)


@registrations.add("18", "34", "35", "38")
async def consumers_join_at_once(context: PushContext) -> None:
    for name in "abc":
        await context.consumer(name).join()
    await context.sleep(2 * context.short_timeout)


@registrations.add("26")
async def live_id_is_refused(context: PushContext) -> None:
    await context.group_of("a")
    await context.consumer("a").register()
    await context.settle()


@registrations.add("27")
async def session_timeout_at_the_minimum_is_refused(context: PushContext) -> None:
    least = context.limit("min_session_timeout")
    for place, timeout in enumerate((least - 1, least, context.limit("max_session_timeout") + 1)):
        await context.consumer(f"c{place}", timeout).register()
    await context.consumer("a", least + 1).register()
    await context.settle()


@registrations.add("33")
async def last_consumer_returns(context: PushContext) -> None:
    (only,) = await context.group_of("a")
    only.crash()
    await context.sleep(2 * context.short_timeout + 4 * context.base.grace)
    await context.group_of("b")


@registrations.add("36")
async def consumer_comes_back_with_its_id(context: PushContext) -> None:
    first, other = await context.group_of("a", "b")
    first.crash()
    await context.sleep(2 * context.short_timeout + 4 * context.base.grace)
    again = context.consumer("a")
    await again.join()
    await again.await_start()
    await other.await_start()
    await context.settle()


@registrations.add("36")
async def consumer_comes_back_alone_with_its_id(context: PushContext) -> None:
    (first,) = await context.group_of("a")
    first.crash()
    await context.sleep(2 * context.short_timeout + 4 * context.base.grace)
    again = context.consumer("a")
    await again.join()
    await again.await_start()


@registrations.add("13", "30")
async def topic_comes_after_its_consumer(context: PushContext) -> None:
    topic = f"{context.topic}-later"
    assert topic not in context.hooks.topics()
    early = await context.consumer("a", interest=Interest(((topic, 1),))).join()
    await context.settle()
    context.add_partition(topic)
    await early.await_start()
    await context.settle()


@registrations.add("13")
async def new_topic_fits_a_wildcard(context: PushContext) -> None:
    wild = await context.consumer("a", interest=Interest(pattern=f"{context.topic}.*")).join()
    await wild.await_start()
    context.add_partition(f"{context.topic}-wild")
    await wild.await_requests("Start")
    await context.settle()
