"""The transition system of the push coordinator within its bounds: what brokers, consumers and faults do."""

from collections.abc import Callable
from functools import partial
from typing import Any

from fencepost.model.explore.rows import NOTHING, Transitions, spend_fault
from fencepost.model.explore.transition_system import Action, Column, TransitionSystem
from fencepost.model.frozen import evolve
from fencepost.model.push import coordinator as handlers
from fencepost.model.push.consumer import (
    ConsumerPhase,
    PushConsumer,
    give_up_channel,
    handle_ping,
    handle_start,
    handle_stop,
    new_consumer,
)
from fencepost.model.push.coordinator import PushCoordinator, Role, apply_step, running_step
from fencepost.model.push.dialect import Command
from fencepost.model.push.explore.row import (
    CURRENT,
    INTEREST,
    Link,
    PushBounds,
    PushView,
    actions_about,
    age_messages,
    is_live,
    push_checks,
    record,
    recorded_owners,
    send_all,
    topics_in,
)
from fencepost.model.push.group import (
    WAIT_START,
    WAIT_STOP,
    GroupStep,
    PingRequest,
    PushGroup,
    PushRebalance,
    RegisterRequest,
    RegisterResponse,
    StartRequest,
    StopRequest,
    check_necessity,
    compute_assignment,
    listener_sets,
    partitions_changed,
    receive_response,
    record_owners,
    register_consumer,
    remove_consumer,
    reset_bit,
    send_starts,
    send_stops,
    time_out_wait,
)

Handle = Callable[[PushCoordinator], tuple[PushCoordinator, str] | None]
"""A step of a broker that concerns nobody else, with its rule; None where there is none to take."""


def push_system(bounds: PushBounds) -> TransitionSystem:
    """The system: brokers and consumers with channels of limited length, and faults within their bounds."""
    brokers, consumers = range(bounds.brokers), range(bounds.consumers)
    due = [action for broker in brokers for action in broker_actions(bounds, broker)]
    due += [action for consumer in consumers for action in consumer_actions(bounds, consumer)]
    # Waits that time out because a response cannot come any more: these must happen.
    for broker in brokers:
        make = actions_about(bounds, broker).action
        due.append(make(f"K{broker} waits in vain", "faults own links", partial(time_out, early=False)))
    columns = (
        Column("faults left", "faults"),
        Column("ZooKeeper", "zookeeper"),
        *(Column(f"K{broker}", "broker") for broker in brokers),
        *(Column(name, "link") for name in bounds.names),
    )
    checks = push_checks(bounds, tuple(due))
    return TransitionSystem(columns, bounds.initial(), (*due, *fault_actions(bounds)), checks=checks)


# What a broker does by itself: election, startup, the phases of a rebalance, sessions.


def broker_actions(bounds: PushBounds, broker: int) -> list[Action]:
    """The actions of one broker."""
    make, name = actions_about(bounds, broker).action, f"K{broker}"

    def alone(what: str, handle: Handle) -> Action:
        def transitions(at: PushView) -> Transitions:
            done = handle(at.own)
            return NOTHING if done is None else at.does(f"{name} {what}", done[1], own=done[0])

        return make(f"{name} {what}", "own", transitions)

    return [
        make(f"{name} is elected", "zookeeper own", elect),
        alone("goes on with its startup", handlers.go_on_with_startup),
        alone("takes a rebalance request", handlers.take_next),
        make(f"{name} computes the assignment", "zookeeper own links", compute),
        make(f"{name} compares it with the owners", "zookeeper own", check),
        make(f"{name} sends", "zookeeper own links", send),
        make(f"{name} records the owners", "zookeeper own links", write),
        alone("resets the bit", end_rebalance),
        make(f"{name} hears of a partition", "zookeeper own", hear),
        alone("sets the bit that its listener read as clear", set_read_bit),
        alone("notices its new session", partial(handlers.notice_new_session, dialect=bounds.dialect)),
        make(f"{name} is missed by ZooKeeper", "zookeeper own", miss),
    ]


def elect(at: PushView) -> Transitions:
    """The broker makes the ephemeral node (E1)."""
    if at.zookeeper.leader is not None or at.own.role is not Role.CANDIDATE or not at.own.has_session:
        return NOTHING
    elected, rule = handlers.win_election(at.own, at.bounds.dialect)
    # Startup reads topics and subscribes to them: nothing is left to hear of.
    heard = evolve(at.zookeeper, leader=at.broker, unheard=at.zookeeper.unheard - {at.broker})
    return at.does(f"K{at.broker} is elected", rule, zookeeper=heard, own=elected)


def compute(at: PushView) -> Transitions:
    """Steps 1 to 1.3; repaired, not while a consumer of an earlier coordinator may still fetch."""
    found = running_step(at.own, lambda group: compute_assignment(group, topics_in(at.zookeeper)))
    if found is None:
        return NOTHING
    if at.bounds.dialect.waits_after_election:
        links = [at.links[consumer] for consumer in at.bounds.members(found[0])]
        if any(link.consumer.is_attached and not link.is_at(at.broker) for link in links):
            return NOTHING
    return at.does(f"K{at.broker} computes the assignment", found[1].rule, own=apply_step(at.own, *found))


def check(at: PushView) -> Transitions:
    """Step 3."""
    running = (number for number, group in enumerate(at.own.groups) if group is not None and group.run is not None)
    recorded = recorded_owners(at.zookeeper, next(running, 0))
    found = running_step(at.own, lambda group: check_necessity(group, recorded, at.bounds.dialect))
    if found is None:
        return NOTHING
    words = "is necessary" if found[1].rule == "rebalance.necessary" else "is not necessary"
    label = f"K{at.broker} finds that a rebalance {words}"
    return at.does(label, found[1].rule, own=apply_step(at.own, *found))


def send(at: PushView) -> Transitions:
    """Steps 4.1 and 4.2."""

    def handle(group: PushGroup) -> GroupStep | None:
        stops = send_stops(group, CURRENT, at.bounds.dialect)
        return stops if stops is not None else send_starts(group, CURRENT)

    found = running_step(at.own, handle)
    if found is None:
        return NOTHING
    step = found[1]
    is_first = step.rule == "rebalance.stopping" or at.bounds.dialect.command is Command.RESTART
    links = send_all(at.bounds, at.broker, step, age_messages(at.broker, at.links) if is_first else at.links)
    if links is None:
        return NOTHING
    what = "Stop" if step.rule == "rebalance.stopping" else "Start"
    label = f"K{at.broker} sends {what} to {', '.join(one.consumer for one in step.sendings) or 'nobody'}"
    violates = at.unless_leader("S1") if step.sendings else ""
    return at.does(label, step.rule, violates, links=links, own=apply_step(at.own, *found))


def write(at: PushView) -> Transitions:
    """Step 5."""
    bounds, own = at.bounds, at.own
    found = running_step(own, lambda group: record_owners(group, bounds.retries, bounds.dialect))
    if found is None:
        return NOTHING
    (number, step), after = found, apply_step(own, *found)
    if step.owners is None:
        return at.does(f"K{at.broker} finds a member of the attempt gone", step.rule, own=after)
    violates = at.unless_leader("S7")
    held = own.groups[number]
    run = None if held is None else held.run
    for share in () if run is None else run.shares:
        link = at.links[bounds.names.index(share.consumer)]
        registered = own.holds(number, share.consumer, link.consumer.number)
        if registered and is_live(link) and link.is_at(at.broker) and link.consumer.fetchers != share.partitions:
            violates = violates or "S4"
    recorded = record(at.zookeeper, number, step.owners)
    return at.does(f"K{at.broker} records the owners", step.rule, violates, zookeeper=recorded, own=after)


def end_rebalance(own: PushCoordinator) -> tuple[PushCoordinator, str] | None:
    """The end of a rebalance."""
    found = running_step(own, reset_bit)
    return None if found is None else (apply_step(own, *found), found[1].rule)


def hear(at: PushView) -> Transitions:
    """The listener of the topic fires (TP1)."""
    if at.broker not in at.zookeeper.unheard:
        return NOTHING
    after, rules = at.own, []
    for number, group in enumerate(at.own.groups):
        if group is not None and group.members:
            step = partitions_changed(group, at.bounds.dialect)
            after = apply_step(after, number, step)
            rules.append(step.rule)
    heard = evolve(at.zookeeper, unheard=at.zookeeper.unheard - {at.broker})
    rule = rules[0] if rules else "listener.nobody"
    return at.does(f"K{at.broker} hears of the partition", rule, zookeeper=heard, own=after)


def set_read_bit(own: PushCoordinator) -> tuple[PushCoordinator, str] | None:
    """PUSH-H18 as drafted: the second half of the listener's step."""
    for number, group in enumerate(own.groups):
        step = None if group is None else listener_sets(group)
        if step is not None:
            return apply_step(own, number, step), step.rule
    return None


def miss(at: PushView) -> Transitions:
    """The ephemeral node of a broker that died goes with its session (F1, F2)."""
    if at.zookeeper.leader != at.broker or at.own.role is not Role.DOWN:
        return NOTHING
    return at.does(f"ZooKeeper misses K{at.broker}", "elector.path-gone", zookeeper=at.without_leader())


# What a consumer does, and what a broker does for one consumer: accept, count, remove.


MINIMUM_MS = 1000
"""The least session timeout of the explored brokers; every consumer has a longer one."""


def consumer_actions(bounds: PushBounds, consumer: int) -> list[Action]:
    """The actions of one consumer, and those of each broker that concern it alone."""
    name = bounds.names[consumer]
    found = [actions_about(bounds, consumer=consumer).action(f"{name} reads", "link", read)]
    for broker in range(bounds.brokers):
        make = actions_about(bounds, broker, consumer).action
        found += [
            make(f"{name} connects to K{broker}", "zookeeper own link", connect),
            make(f"{name} is received by K{broker}", "zookeeper own link", receive),
            make(f"{name} is removed by K{broker}", "faults zookeeper own link", remove),
            make(f"{name} gives up K{broker}", "own link", give_up),
        ]
    return found


def connect(at: PushView) -> Transitions:
    """C1 to C4: any broker tells who coordinates; register there."""
    consumer = at.link.consumer
    elected = at.zookeeper.leader == at.broker and at.own.role is Role.ELECTED
    if consumer.phase is not ConsumerPhase.SEARCHING or not elected:
        return NOTHING
    number = consumer.number + 1
    registering = evolve(consumer, phase=ConsumerPhase.REGISTERING, broker=at.broker, number=number)
    after = Link(registering, (), (RegisterRequest(at.name, number, INTEREST),))
    return at.does(f"{at.name} registers with K{at.broker}", cut=number > at.bounds.registrations, link=after)


def read(at: PushView) -> Transitions:
    """C5 and the handlers of requests: the first message in the channel."""
    link, consumer = at.link, at.link.consumer
    if not consumer.is_attached or not link.requests:
        return NOTHING
    request, rest = link.requests[0], evolve(link, requests=link.requests[1:])
    if isinstance(request, RegisterResponse):
        if request.error:
            refused = evolve(consumer, number=consumer.number - 1)
            return at.does(f"{at.name} is refused", "consumer.refused", link=Link(back_to_search(refused)))
        accepted = evolve(rest, consumer=evolve(consumer, phase=ConsumerPhase.REGISTERED))
        return at.does(f"{at.name} knows that it is registered", "consumer.registered", link=accepted)
    if consumer.phase is ConsumerPhase.REGISTERING:
        # PUSH-H19: it blocks on a RegisterResponse, takes this for one, and its type for an error.
        lost = Link(back_to_search(consumer))
        return at.does(f"{at.name} takes a request for a RegisterResponse", violates="L4", link=lost)
    if isinstance(request, PingRequest):
        step, what = handle_ping(consumer, request), "Ping"
    elif isinstance(request, StopRequest):
        step, what = handle_stop(consumer, request, at.bounds.dialect), "Stop"
    else:
        step, what = handle_start(consumer, request, at.bounds.dialect), f"Start {request.partitions}"
    responses = rest.responses if step.response is None else (*rest.responses, step.response)
    if len(responses) > at.bounds.capacity:
        return NOTHING
    violates = "S8" if step.rule == "start.illegal" else ""
    after = evolve(rest, consumer=step.consumer, responses=responses)
    return at.does(f"{at.name} handles {what}", step.rule, violates, link=after)


def back_to_search(consumer: PushConsumer) -> PushConsumer:
    """The consumer without a channel, its fetchers as they are."""
    return evolve(consumer, phase=ConsumerPhase.SEARCHING, broker=None)


def receive(at: PushView) -> Transitions:
    """The broker reads the first message of a consumer."""
    link, number = at.link, at.link.consumer.number
    if not link.is_at(at.broker) or not link.responses or at.own.role is not Role.ELECTED:
        return NOTHING
    message, rest = link.responses[0], evolve(link, responses=link.responses[1:])
    if isinstance(message, RegisterRequest):
        return accept(at, message, rest)
    if at.group is None:
        return at.does(f"K{at.broker} reads from {at.name}", "response.not-awaited", link=rest)
    run = at.group.run
    step = receive_response(at.group, at.name, number, message, at.bounds.dialect)
    counted = step.rule not in ("response.ping", "response.not-awaited")
    # A response that counts belongs to another attempt or registration, or to no request of the attempt.
    is_own = run is not None and (at.name, number) in run.pending and getattr(message, "attempt", None) == run.attempt
    label = f"K{at.broker} {'counts' if counted else 'reads'} the {type(message).__name__} of {at.name}"
    violates = "S10" if counted and run is not None and not is_own else ""
    return at.does(label, step.rule, violates, link=rest, own=at.after(step))


def accept(at: PushView, request: RegisterRequest, rest: Link) -> Transitions:
    """R1 to R4: check the registration, and respond."""
    group, step, rule, error = register_consumer(at.group, request, True, MINIMUM_MS, at.bounds.dialect)
    if step is not None:
        after = at.after(step)
    else:
        groups = at.own.groups
        after = evolve(at.own, groups=(*groups[: at.number], group, *groups[at.number + 1 :]))
    answered = at.bounds.dialect.answers_registration or error
    link = evolve(rest, requests=(RegisterResponse(error),)) if answered else rest
    label = f"K{at.broker} {'refuses' if error else 'accepts'} {at.name}"
    return at.does(label, rule, at.unless_leader("S1"), link=link, own=after)


def remove(at: PushView) -> Transitions:
    """The consumer has missed its pings. A live one has as well if it is only slow, which is a fault."""
    held = None if at.group is None else at.group.member(at.name)
    if at.group is None or held is None or at.own.role is not Role.ELECTED:
        return NOTHING
    # A registration that was accepted is alive as long as its channel is.
    alive = at.link.is_at(at.broker) and held.number == at.link.consumer.number
    if alive and (at.bounds.dialect.removal_waits_for_lease or not at.faults.suspicions):
        return NOTHING
    step = remove_consumer(at.group, at.name, held.number, at.bounds.dialect)
    if step is None:
        return NOTHING
    spent: dict[str, Any] = {"faults": spend_fault(at.faults, "suspicions")} if alive else {}
    label = f"K{at.broker} takes {at.name} for dead{', though it is alive' if alive else ''}"
    return at.does(label, step.rule, at.unless_leader("S1"), **spent, own=at.after(step))


def give_up(at: PushView) -> Transitions:
    """C6: no request for the configured time, as nobody pings it there."""
    link, consumer, role = at.link, at.link.consumer, at.own.role
    if not consumer.is_attached or consumer.broker != at.broker:
        return NOTHING
    pinged = role is not Role.DOWN and at.own.holds(at.number, at.name, consumer.number)
    waiting = role is Role.ELECTED and consumer.phase is ConsumerPhase.REGISTERING and not link.is_silent
    if not link.is_closed and (pinged or waiting):
        return NOTHING
    label = f"{at.name} stops its fetchers and gives K{at.broker} up"
    return at.does(label, "consumer.gave-up", link=Link(without_channel(link)))


def without_channel(link: Link) -> PushConsumer:
    """The consumer that has given up its channel. A registration that nobody read leaves its number free."""
    unread = any(isinstance(one, RegisterRequest) for one in link.responses)
    consumer = give_up_channel(link.consumer)
    return evolve(consumer, number=consumer.number - 1) if unread else consumer


# The faults, each within its bound, and the wait that times out because of one.


def fault_actions(bounds: PushBounds) -> list[Action]:
    """What nobody wants to happen; a run without end does not need any of it."""
    found = [actions_about(bounds).action("partition", "faults zookeeper brokers", add_partition)]
    for broker in range(bounds.brokers):
        make = actions_about(bounds, broker).action
        found += [
            make(f"K{broker} dies", "faults own", crash_broker),
            make(f"K{broker} expires", "faults zookeeper own links", expire),
            make(f"K{broker} waits too long", "faults own links", partial(time_out, early=True)),
        ]
        for consumer in range(bounds.consumers):
            about = actions_about(bounds, broker, consumer)
            found.append(about.action(f"K{broker} pings c{consumer}", "faults own link", ping))
    for consumer, name in enumerate(bounds.names):
        make = actions_about(bounds, consumer=consumer).action
        found += [
            make(f"{name} dies", "faults link", crash_consumer),
            make(f"{name} restarts", "link", restart_consumer),
            make(f"{name} half starts", "faults link", half_start),
            make(f"{name} stalls", "faults link", stall),
        ]
    return found


def add_partition(at: PushView) -> Transitions:
    """The topic gets one more partition; brokers that have subscribed will hear of it."""
    if not at.faults.partitions:
        return NOTHING
    listening = {number for number, one in enumerate(at.brokers) if one.role is Role.ELECTED and one.has_session}
    partitions, unheard = at.zookeeper.partitions + 1, at.zookeeper.unheard | listening
    more = evolve(at.zookeeper, partitions=partitions, unheard=unheard)
    return at.does("a partition is added", faults=spend_fault(at.faults, "partitions"), zookeeper=more)


def crash_broker(at: PushView) -> Transitions:
    """F1: the elected broker dies, and does not come back."""
    if not at.faults.broker_crashes or at.own.role is not Role.ELECTED:
        return NOTHING
    spent = spend_fault(at.faults, "broker_crashes")
    return at.does(f"K{at.broker} dies", faults=spent, own=handlers.crash_broker(at.own))


def expire(at: PushView) -> Transitions:
    """F3: ZooKeeper ends the session of the elected broker, whose process lives."""
    if not at.faults.expiries or at.zookeeper.leader != at.broker or at.own.role is not Role.ELECTED:
        return NOTHING
    after, rule = handlers.expire_session(at.own, at.bounds.dialect)
    links = at.links
    if at.bounds.dialect.steps_down_in_time:
        links = tuple(evolve(link, is_closed=True) if link.is_at(at.broker) else link for link in links)
    values = {"faults": spend_fault(at.faults, "expiries"), "zookeeper": at.without_leader()}
    return at.does(f"the session of K{at.broker} expires", rule, **values, links=links, own=after)


def time_out(at: PushView, *, early: bool) -> Transitions:
    """RB5t: a wait times out, too `early` or because some response cannot come."""
    runs = [group.run for group in at.own.groups if group is not None and group.run is not None]
    waits = (WAIT_STOP, WAIT_START)
    run: PushRebalance | None = next((run for run in runs if run.phase in waits), None)
    if run is None or (early and not at.faults.timeouts):
        return NOTHING
    if any(is_lost(at, *registration) for registration in run.pending) == early:
        return NOTHING
    bounds = at.bounds
    found = running_step(at.own, lambda group: time_out_wait(group, bounds.retries, bounds.dialect))
    if found is None:
        return NOTHING
    spent: dict[str, Any] = {"faults": spend_fault(at.faults, "timeouts")} if early else {}
    violates = "L3" if found[1].ends_thread else ""
    label = f"the wait of K{at.broker} times out{' early' if early else ''}"
    return at.does(label, found[1].rule, violates, **spent, own=apply_step(at.own, *found))


def is_lost(at: PushView, name: str, number: int) -> bool:
    """Whether the registration is taken for dead, or nothing that it could respond to, or has responded, is under
    way."""
    consumer = at.bounds.names.index(name)
    link = at.links[consumer]
    if not at.own.holds(at.bounds.group_of(consumer), name, number):
        return True
    numbered = not at.bounds.dialect.numbers_registrations or link.consumer.number == number
    return not link.is_at(at.broker) or not numbered or link.is_silent


def ping(at: PushView) -> Transitions:
    """SC2.1: a ping, unless the channel is held for a rebalance. Pings change nothing but the order of responses."""
    link, registration = at.link, (at.name, at.link.consumer.number)
    if not at.faults.pings or at.own.role is not Role.ELECTED or not link.is_at(at.broker):
        return NOTHING
    held = at.group is not None and at.group.run is not None and registration in at.group.run.pending
    registered = link.consumer.phase is ConsumerPhase.REGISTERED and at.own.holds(at.number, *registration)
    if held or not registered or len(link.requests) >= at.bounds.capacity:
        return NOTHING
    after = evolve(link, requests=(*link.requests, PingRequest()))
    spent = spend_fault(at.faults, "pings")
    return at.does(f"K{at.broker} pings {at.name}", "scheduler.ping", faults=spent, link=after)


def crash_consumer(at: PushView) -> Transitions:
    """The process of a consumer dies, and its channel with it."""
    if not at.faults.consumer_crashes or not is_live(at.link):
        return NOTHING
    dead = PushConsumer(ConsumerPhase.DOWN, number=without_channel(at.link).number)
    return at.does(f"{at.name} dies", faults=spend_fault(at.faults, "consumer_crashes"), link=Link(dead))


def restart_consumer(at: PushView) -> Transitions:
    """The consumer's process comes back under its id."""
    if is_live(at.link):
        return NOTHING
    fresh = evolve(new_consumer(at.bounds.dialect), number=at.link.consumer.number)
    return at.does(f"{at.name} restarts", link=Link(fresh))


def half_start(at: PushView) -> Transitions:
    """PUSH-H08: the fetchers after the first one fail to start, and no response is sent."""
    link = at.link
    registered = link.consumer.phase is ConsumerPhase.REGISTERED and link.requests
    request = link.requests[0] if registered else None
    if not at.faults.half_starts or not isinstance(request, StartRequest) or len(request.partitions) < 2:
        return NOTHING
    step = handle_start(link.consumer, request, at.bounds.dialect, fails_after=1)
    if step.rule != "start.failed":
        return NOTHING
    after = evolve(link, consumer=step.consumer, requests=link.requests[1:])
    label = f"{at.name} starts the fetcher of {request.partitions[0]} and fails to start the next"
    return at.does(label, step.rule, faults=spend_fault(at.faults, "half_starts"), link=after)


def stall(at: PushView) -> Transitions:
    """Where removal waits for the lease: a live consumer stalls, and stops by itself before anyone removes it."""
    waits = at.bounds.dialect.removal_waits_for_lease
    if not waits or not at.faults.suspicions or not at.link.consumer.is_attached:
        return NOTHING
    spent, gone = spend_fault(at.faults, "suspicions"), Link(without_channel(at.link))
    return at.does(f"{at.name} stalls until its lease is over", "consumer.gave-up", faults=spent, link=gone)
