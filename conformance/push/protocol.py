"""The push coordinator as runs, replays and reports see it."""

from collections.abc import Sequence

from fencepost.adapters.address import TargetError, parse_bootstrap
from fencepost.adapters.push.target import TOPIC, BundledPushTarget, PushTarget
from fencepost.conformance.profile import Profile
from fencepost.conformance.push.context import KitConsumer, PushContext
from fencepost.conformance.push.scenarios import ALL, playable
from fencepost.conformance.push.schedules import make_push_schedules
from fencepost.conformance.reports.incident_words import HistoryWords
from fencepost.conformance.run.protocol import ProtocolDescription
from fencepost.conformance.run.requests import Blocked
from fencepost.conformance.subject import Scenario
from fencepost.model.push.group import UnusableInterest, parse_interest
from fencepost.model.push.specification import PUSH as SPECIFICATION
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind
from fencepost.traces.push.judge import PushProtocol

# Playing a trace again: what the kit's consumers did in it, at the same times.


PATIENCE_S = 3.0
"""How long a request is waited for that a consumer answered in the trace."""


def repeat_trace(events: Sequence[Event]) -> Scenario:
    """The scenario that plays a trace again. Raises ValueError if nobody registers in it."""
    steps = [event for event in events if is_step(event)]
    if not any(step.api == "RegisterConsumer" for step in steps):
        raise ValueError("no consumer registers, so there is nothing to replay")

    async def play(context: PushContext) -> None:
        consumers: dict[int, KitConsumer] = {}
        groups = list(dict.fromkeys(step.body["group"] for step in steps if step.api == "RegisterConsumer"))
        begun = context.base.now_ms - steps[0].time
        for step in steps:
            await context.sleep(max(0, begun + step.time - context.base.now_ms))
            await take_step(context, step, consumers, groups)
        await context.sleep(max(0, begun + events[-1].time - context.base.now_ms))

    return Scenario("replay", (), playable(play))


def is_step(event: Event) -> bool:
    """Whether the kit did this in the trace."""
    if event.kind is Kind.REQUEST:
        return event.api == "RegisterConsumer"
    if event.kind is Kind.RESPONSE:
        return event.api not in ("RegisterConsumer", "ClusterMetadata")
    return (event.kind, event.api) in ((Kind.FAULT, "drop"), *((Kind.INTERNAL, api) for api in HOOKED))


HOOKED = ("partitions", "lost-coordinator")
"""What the kit did beside the wire."""


async def take_step(
    context: PushContext, step: Event, consumers: dict[int, KitConsumer], groups: Sequence[str]
) -> None:
    """Do again what the kit did in one event."""
    consumer = consumers.get(step.connection)
    if step.api == "RegisterConsumer":
        consumers[step.connection] = await register_again(context, step, groups.index(step.body["group"]))
    elif step.api == "partitions":
        add_partitions(context, step)
    elif step.api == "lost-coordinator":
        hooks = context.hooks
        await (hooks.kill_coordinator() if step.body.get("how") == "killed" else hooks.expire_session())
    elif consumer is None:
        return
    elif step.kind is Kind.FAULT:
        consumer.crash()
    else:
        await respond_again(context, consumer, step)


async def register_again(context: PushContext, step: Event, place: int) -> KitConsumer:
    """Register the consumer of a request, in the group of this replay that stands at this place."""
    body = step.body
    try:
        interest = parse_interest(body["topic_count"])
    except UnusableInterest as error:
        raise Blocked(str(error)) from error
    consumer = context.consumer(body["consumer"], body["session_timeout_ms"], interest, auto_commit=body["auto_commit"])
    consumer.label, consumer.is_paused = step.member, True
    consumer.group += f"-{place}" if place else ""
    await consumer.register()
    return consumer


def add_partitions(context: PushContext, step: Event) -> None:
    """Add the partitions that are not there yet."""
    if step.body["topics"] == context.channel.known:
        return
    for topic, names in step.body["topics"].items():
        while len(context.hooks.topics().get(topic, ())) < len(names):
            context.add_partition(topic)


async def respond_again(context: PushContext, consumer: KitConsumer, step: Event) -> None:
    """Give the response that the consumer gave, once there is a request of that kind, if one comes."""
    try:
        await context.until(lambda: bool(consumer.waiting) or not consumer.is_connected, "", PATIENCE_S)
    except Blocked:
        return
    if consumer.waiting:
        told = step.body.get("partitions", ())
        if step.api in ("Ping", "Stop") and consumer.waiting[0].api == step.api:
            offsets = {(entry["topic"], entry["partition"]): entry["offset"] for entry in told}
            known = consumer.positions.items()
            consumer.positions = {partition: offsets.get(partition, offset) for partition, offset in known}
        consumer.handle_next()


# The push coordinator as runs, replays and reports see it.


SCHEME = "push://"


def push_target(address: str, profile: Profile) -> PushTarget:
    """The brokers at `push://host:port`, with the topic and the limits of the profile. Raises `TargetError`."""
    found = parse_bootstrap(address.strip()[len(SCHEME) :])
    if found is None or found.wants_tls:
        raise TargetError(f"{address!r} is no target: write push://host:port, or push://bundled")
    return PushTarget(found.addresses, profile.topic or TOPIC, profile.limits)


def make_bundled(settings: Settings) -> BundledPushTarget:
    """The bundled coordinator in this process."""
    return BundledPushTarget()


PUSH = ProtocolDescription(
    SPECIFICATION,
    PushProtocol,
    ALL,
    make_schedules=make_push_schedules,
    make_target=push_target,
    make_bundled=make_bundled,
    repeat=repeat_trace,
)
PHASES = {"Preparing": "Stopping", "Completing": "Starting", "Stable": "Fetching"}
WORDS = HistoryWords(
    phases=("Stop", "Start"),
    round="attempt",
    round_mark="#",
    last="answered last",
    states=PHASES,
    bands=PHASES,
    seen_by={"clients": "messages between consumers and a push coordinator"},
)
