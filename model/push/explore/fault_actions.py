"""The faults, each within its bound, and the wait that times out because of one."""

from functools import partial

from fencepost.model.explore.transition_system import Action, Transition
from fencepost.model.frozen import evolve
from fencepost.model.push import coordinator as handlers
from fencepost.model.push.consumer import ConsumerPhase, PushConsumer, handle_start, new_consumer
from fencepost.model.push.coordinator import PushCoordinator, Role, apply_step, running_step
from fencepost.model.push.explore.broker_actions import NOTHING, Transitions, writes_of
from fencepost.model.push.explore.consumer_actions import without_channel
from fencepost.model.push.explore.row import FAULTS, ZOOKEEPER, Faults, Link, PushBounds, Zookeeper, is_live
from fencepost.model.push.group import PingRequest, PushRebalance, StartRequest
from fencepost.model.push.rebalance import WAIT_START, WAIT_STOP, time_out_wait


def fault_actions(bounds: PushBounds) -> list[Action]:
    """What nobody wants to happen; a run without end does not need any of it."""
    found = [Action("partition", (FAULTS, ZOOKEEPER, *brokers(bounds)), partial(add_partition, bounds))]
    for broker in range(bounds.brokers):
        column = bounds.broker_column(broker)
        expiring = (FAULTS, ZOOKEEPER, column, *bounds.links)
        found += [
            Action(f"K{broker} dies", (FAULTS, column), partial(crash_broker, bounds, broker)),
            Action(f"K{broker} expires", expiring, partial(expire, bounds, broker)),
            Action(
                f"K{broker} waits too long", (FAULTS, column, *bounds.links), partial(time_out, bounds, broker, True)
            ),
        ]
        for consumer in range(bounds.consumers):
            pinged = (FAULTS, column, bounds.link_column(consumer))
            found.append(Action(f"K{broker} pings c{consumer}", pinged, partial(ping, bounds, broker, consumer)))
    for consumer in range(bounds.consumers):
        link = bounds.link_column(consumer)
        columns = (FAULTS, link)
        name = bounds.names[consumer]
        found += [
            Action(f"{name} dies", columns, partial(crash_consumer, bounds, consumer)),
            Action(f"{name} restarts", (link,), partial(restart_consumer, bounds, consumer)),
            Action(f"{name} half starts", columns, partial(half_start, bounds, consumer)),
            Action(f"{name} stalls", columns, partial(stall, bounds, consumer)),
        ]
    return found


def waiting_actions(bounds: PushBounds) -> list[Action]:
    """The waits that time out because a response cannot come any more: these must happen."""
    return [
        Action(
            f"K{broker} waits in vain",
            (FAULTS, bounds.broker_column(broker), *bounds.links),
            partial(time_out, bounds, broker, False),
        )
        for broker in range(bounds.brokers)
    ]


def brokers(bounds: PushBounds) -> tuple[int, ...]:
    """The columns of all brokers."""
    return tuple(map(bounds.broker_column, range(bounds.brokers)))


def spend(faults: Faults, name: str) -> tuple[int, object]:
    """The write of one fault fewer."""
    return FAULTS, evolve(faults, **{name: getattr(faults, name) - 1})


def add_partition(bounds: PushBounds, faults: Faults, zookeeper: Zookeeper, *own: PushCoordinator) -> Transitions:
    """The topic gets one more partition; brokers that have subscribed will hear of it."""
    if not faults.partitions:
        return NOTHING
    listening = frozenset(broker for broker, one in enumerate(own) if one.role is Role.ELECTED and one.has_session)
    more = evolve(zookeeper, partitions=zookeeper.partitions + 1, unheard=zookeeper.unheard | listening)
    return (Transition("a partition is added", (spend(faults, "partitions"), (ZOOKEEPER, more))),)


def crash_broker(bounds: PushBounds, broker: int, faults: Faults, own: PushCoordinator) -> Transitions:
    """F1: the elected broker dies, and does not come back."""
    if not faults.broker_crashes or own.role is not Role.ELECTED:
        return NOTHING
    dead = handlers.crash_broker(own)
    return (Transition(f"K{broker} dies", (spend(faults, "broker_crashes"), *writes_of(bounds, broker, dead))),)


def expire(
    bounds: PushBounds, broker: int, faults: Faults, zookeeper: Zookeeper, own: PushCoordinator, *links: Link
) -> Transitions:
    """F3: ZooKeeper ends the session of the elected broker, whose process lives."""
    if not faults.expiries or zookeeper.leader != broker or own.role is not Role.ELECTED:
        return NOTHING
    gone = evolve(zookeeper, leader=None, unheard=zookeeper.unheard - {broker})
    after, rule = handlers.expire_session(own, bounds.dialect)
    closed: list[tuple[int, object]] = []
    if bounds.dialect.steps_down_in_time:
        closed = [
            (column, evolve(link, is_closed=True))
            for column, link in zip(bounds.links, links, strict=True)
            if link.is_at(broker)
        ]
    writes = (spend(faults, "expiries"), (ZOOKEEPER, gone), *closed, *writes_of(bounds, broker, after))
    return (Transition(f"the session of K{broker} expires", writes, rule),)


def time_out(
    bounds: PushBounds, broker: int, early: bool, faults: Faults, own: PushCoordinator, *links: Link
) -> Transitions:
    """RB5t: a wait times out, too `early` or because some response cannot come."""
    run = running_wait(own)
    if run is None or (early and not faults.timeouts):
        return NOTHING
    in_vain = any(is_lost(bounds, broker, own, registration, links) for registration in run.pending)
    if in_vain == early:
        return NOTHING
    found = running_step(own, lambda group: time_out_wait(group, bounds.retries, bounds.dialect))
    if found is None:
        return NOTHING
    writes = writes_of(bounds, broker, apply_step(own, *found))
    writes = (spend(faults, "timeouts"), *writes) if early else writes
    violates = "L3" if found[1].ends_thread else ""
    label = f"the wait of K{broker} times out{' early' if early else ''}"
    return (Transition(label, writes, found[1].rule, violates=violates),)


def running_wait(own: PushCoordinator) -> PushRebalance | None:
    """The rebalance that waits for responses."""
    runs = [group.run for group in own.groups if group is not None and group.run is not None]
    return next((run for run in runs if run.phase in (WAIT_STOP, WAIT_START)), None)


def is_lost(
    bounds: PushBounds, broker: int, own: PushCoordinator, registration: tuple[str, int], links: tuple[Link, ...]
) -> bool:
    """Whether the registration is taken for dead, or nothing that it could respond to, or has responded, is under
    way."""
    consumer = bounds.names.index(registration[0])
    link = links[consumer]
    if not own.holds(bounds.group_of(consumer), *registration):
        return True
    numbered = not bounds.dialect.numbers_registrations or link.consumer.number == registration[1]
    return not link.is_at(broker) or not numbered or link.is_silent


def ping(
    bounds: PushBounds, broker: int, consumer: int, faults: Faults, own: PushCoordinator, link: Link
) -> Transitions:
    """SC2.1: a ping, unless the channel is held for a rebalance. Pings change nothing but the order of responses."""
    number, name = bounds.group_of(consumer), bounds.names[consumer]
    if not faults.pings or own.role is not Role.ELECTED or not link.is_at(broker):
        return NOTHING
    group = own.groups[number]
    held = group is not None and group.run is not None and (name, link.consumer.number) in group.run.pending
    registered = link.consumer.phase is ConsumerPhase.REGISTERED and own.holds(number, name, link.consumer.number)
    if held or not registered or len(link.requests) >= bounds.capacity:
        return NOTHING
    after = evolve(link, requests=(*link.requests, PingRequest()))
    writes = (spend(faults, "pings"), (bounds.link_column(consumer), after))
    return (Transition(f"K{broker} pings {name}", writes, "scheduler.ping"),)


def crash_consumer(bounds: PushBounds, consumer: int, faults: Faults, link: Link) -> Transitions:
    """The process of a consumer dies, and its channel with it."""
    if not faults.consumer_crashes or not is_live(link):
        return NOTHING
    gone = without_channel(link)
    dead = PushConsumer(ConsumerPhase.DOWN, number=gone.number)
    writes = (spend(faults, "consumer_crashes"), (bounds.link_column(consumer), Link(dead)))
    return (Transition(f"{bounds.names[consumer]} dies", writes),)


def restart_consumer(bounds: PushBounds, consumer: int, link: Link) -> Transitions:
    """It comes back under its id."""
    if is_live(link):
        return NOTHING
    fresh = evolve(new_consumer(bounds.dialect), number=link.consumer.number)
    name = bounds.names[consumer]
    return (Transition(f"{name} restarts", ((bounds.link_column(consumer), Link(fresh)),)),)


def half_start(bounds: PushBounds, consumer: int, faults: Faults, link: Link) -> Transitions:
    """PUSH-H08: the fetchers after the first one fail to start, and no response is sent."""
    registered = link.consumer.phase is ConsumerPhase.REGISTERED and link.requests
    request = link.requests[0] if registered else None
    if not faults.half_starts or not isinstance(request, StartRequest) or len(request.partitions) < 2:
        return NOTHING
    step = handle_start(link.consumer, request, bounds.dialect, fails_after=1)
    if step.rule != "start.failed":
        return NOTHING
    after = evolve(link, consumer=step.consumer, requests=link.requests[1:])
    writes = (spend(faults, "half_starts"), (bounds.link_column(consumer), after))
    label = f"{bounds.names[consumer]} starts the fetcher of {request.partitions[0]} and fails to start the next"
    return (Transition(label, writes, step.rule),)


def stall(bounds: PushBounds, consumer: int, faults: Faults, link: Link) -> Transitions:
    """Where removal waits for the lease: a live consumer stalls, and stops by itself before anyone removes it."""
    if not bounds.dialect.removal_waits_for_lease or not faults.suspicions or not link.consumer.is_attached:
        return NOTHING
    writes = (spend(faults, "suspicions"), (bounds.link_column(consumer), Link(without_channel(link))))
    return (Transition(f"{bounds.names[consumer]} stalls until its lease is over", writes, "consumer.gave-up"),)
