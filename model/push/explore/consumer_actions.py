"""What a consumer does, and what a broker does for one consumer: accept, count, remove, ping."""

from collections.abc import Callable
from functools import partial

from fencepost.model.explore.transition_system import Action, Transition
from fencepost.model.frozen import evolve
from fencepost.model.push.consumer import (
    ConsumerPhase,
    PushConsumer,
    give_up_channel,
    handle_ping,
    handle_start,
    handle_stop,
)
from fencepost.model.push.coordinator import PushCoordinator, Role, apply_step
from fencepost.model.push.explore.broker_actions import NOTHING, Transitions, writes_of
from fencepost.model.push.explore.row import FAULTS, INTEREST, ZOOKEEPER, Faults, Link, PushBounds, Zookeeper
from fencepost.model.push.group import (
    PingRequest,
    PushRebalance,
    RegisterRequest,
    RegisterResponse,
    StopRequest,
    register_consumer,
    remove_consumer,
)
from fencepost.model.push.rebalance import receive_response

MINIMUM_MS = 1000
"""The least session timeout of the explored brokers; every consumer has a longer one."""


def consumer_actions(bounds: PushBounds, consumer: int) -> list[Action]:
    """The actions of one consumer, and those of each broker that concern it alone."""
    column, name = bounds.link_column(consumer), bounds.names[consumer]

    def action(what: str, columns: tuple[int, ...], transitions: Callable[..., Transitions]) -> Action:
        return Action(f"{name} {what}", columns, transitions)

    found = [action("reads", (column,), partial(read, bounds, consumer))]
    for broker in range(bounds.brokers):
        at, pair = bounds.broker_column(broker), partial
        found += [
            action(f"connects to K{broker}", (ZOOKEEPER, at, column), pair(connect, bounds, consumer, broker)),
            action(f"is received by K{broker}", (ZOOKEEPER, at, column), pair(receive, bounds, consumer, broker)),
            action(f"is removed by K{broker}", (FAULTS, ZOOKEEPER, at, column), pair(remove, bounds, consumer, broker)),
            action(f"gives up K{broker}", (at, column), pair(give_up, bounds, consumer, broker)),
        ]
    return found


def connect(
    bounds: PushBounds, consumer: int, broker: int, zookeeper: Zookeeper, own: PushCoordinator, link: Link
) -> Transitions:
    """C1 to C4: any broker tells who coordinates; register there."""
    elected = zookeeper.leader == broker and own.role is Role.ELECTED
    if link.consumer.phase is not ConsumerPhase.SEARCHING or not elected:
        return NOTHING
    number = link.consumer.number + 1
    request = RegisterRequest(bounds.names[consumer], number, INTEREST)
    registering = evolve(link.consumer, phase=ConsumerPhase.REGISTERING, broker=broker, number=number)
    after = Link(registering, (), (request,))
    label, beyond = f"{bounds.names[consumer]} registers with K{broker}", number > bounds.registrations
    return (Transition(label, ((bounds.link_column(consumer), after),), cut=beyond),)


def read(bounds: PushBounds, consumer: int, link: Link) -> Transitions:
    """C5 and the handlers of requests: the first message in the channel."""
    if not link.consumer.is_attached or not link.requests:
        return NOTHING
    name, column = bounds.names[consumer], bounds.link_column(consumer)
    request, rest = link.requests[0], evolve(link, requests=link.requests[1:])
    if isinstance(request, RegisterResponse):
        return read_registration(name, column, request, rest)
    if link.consumer.phase is ConsumerPhase.REGISTERING:
        # PUSH-H19: it blocks on a RegisterResponse, takes this for one, and its type for an error.
        lost = Link(back_to_search(link.consumer))
        return (Transition(f"{name} takes a request for a RegisterResponse", ((column, lost),), violates="L4"),)
    if isinstance(request, PingRequest):
        step, what = handle_ping(link.consumer, request), "Ping"
    elif isinstance(request, StopRequest):
        step, what = handle_stop(link.consumer, request, bounds.dialect), "Stop"
    else:
        step, what = handle_start(link.consumer, request, bounds.dialect), f"Start {request.partitions}"
    responses = rest.responses if step.response is None else (*rest.responses, step.response)
    if len(responses) > bounds.capacity:
        return NOTHING
    after = evolve(rest, consumer=step.consumer, responses=responses)
    violates = "S8" if step.rule == "start.illegal" else ""
    return (Transition(f"{name} handles {what}", ((column, after),), step.rule, violates=violates),)


def read_registration(name: str, column: int, response: RegisterResponse, rest: Link) -> Transitions:
    """C5: registered, or back to the search."""
    if response.error:
        refused = evolve(rest.consumer, number=rest.consumer.number - 1)
        return (Transition(f"{name} is refused", ((column, Link(back_to_search(refused))),), "consumer.refused"),)
    accepted = evolve(rest, consumer=evolve(rest.consumer, phase=ConsumerPhase.REGISTERED))
    return (Transition(f"{name} knows that it is registered", ((column, accepted),), "consumer.registered"),)


def back_to_search(consumer: PushConsumer) -> PushConsumer:
    """The consumer without a channel, its fetchers as they are."""
    return evolve(consumer, phase=ConsumerPhase.SEARCHING, broker=None)


def receive(
    bounds: PushBounds, consumer: int, broker: int, zookeeper: Zookeeper, own: PushCoordinator, link: Link
) -> Transitions:
    """The broker reads the first message of a consumer."""
    if not link.is_at(broker) or not link.responses or own.role is not Role.ELECTED:
        return NOTHING
    message, rest = link.responses[0], evolve(link, responses=link.responses[1:])
    if isinstance(message, RegisterRequest):
        return accept(bounds, consumer, broker, zookeeper, own, message, rest)
    number, name = bounds.group_of(consumer), bounds.names[consumer]
    group = own.groups[number]
    column = bounds.link_column(consumer)
    if group is None:
        return (Transition(f"K{broker} reads from {name}", ((column, rest),), "response.not-awaited"),)
    run = group.run
    step = receive_response(group, name, link.consumer.number, message, bounds.dialect)
    counted = step.rule not in ("response.ping", "response.not-awaited")
    foreign = counted and run is not None and is_foreign(run, name, link.consumer.number, message)
    writes = ((column, rest), *writes_of(bounds, broker, apply_step(own, number, step)))
    label = f"K{broker} {'counts' if counted else 'reads'} the {response_name(message)} of {name}"
    return (Transition(label, writes, step.rule, violates="S10" if foreign else ""),)


def is_foreign(run: PushRebalance, consumer: str, number: int, message: object) -> bool:
    """Whether a response that counts belongs to another attempt or registration, or to no request of the attempt."""
    return (consumer, number) not in run.pending or getattr(message, "attempt", None) != run.attempt


def response_name(message: object) -> str:
    """The kind of a response."""
    return type(message).__name__


def accept(
    bounds: PushBounds,
    consumer: int,
    broker: int,
    zookeeper: Zookeeper,
    own: PushCoordinator,
    request: RegisterRequest,
    rest: Link,
) -> Transitions:
    """R1 to R4: check the registration, and respond."""
    number, name, dialect = bounds.group_of(consumer), bounds.names[consumer], bounds.dialect
    group, step, rule, error = register_consumer(own.groups[number], request, True, MINIMUM_MS, dialect)
    after = own if step is None else apply_step(own, number, step)
    if step is None and group is not own.groups[number]:
        after = evolve(own, groups=(*own.groups[:number], group, *own.groups[number + 1 :]))
    answered = dialect.answers_registration or error
    link = evolve(rest, requests=(RegisterResponse(error),)) if answered else rest
    violates = "S1" if zookeeper.leader != broker else ""
    label = f"K{broker} {'refuses' if error else 'accepts'} {name}"
    writes = ((bounds.link_column(consumer), link), *writes_of(bounds, broker, after))
    return (Transition(label, writes, rule, violates=violates),)


def remove(
    bounds: PushBounds,
    consumer: int,
    broker: int,
    faults: Faults,
    zookeeper: Zookeeper,
    own: PushCoordinator,
    link: Link,
) -> Transitions:
    """The consumer has missed its pings. A live one has as well if it is only slow, which is a fault."""
    number, name = bounds.group_of(consumer), bounds.names[consumer]
    group = own.groups[number]
    held = None if group is None else group.member(name)
    if group is None or held is None or own.role is not Role.ELECTED:
        return NOTHING
    # A registration that was accepted is alive as long as its channel is.
    alive = link.is_at(broker) and held.number == link.consumer.number
    if alive and (bounds.dialect.removal_waits_for_lease or not faults.suspicions):
        return NOTHING
    step = remove_consumer(group, name, held.number, bounds.dialect)
    if step is None:
        return NOTHING
    writes = writes_of(bounds, broker, apply_step(own, number, step))
    if alive:
        writes = ((FAULTS, evolve(faults, suspicions=faults.suspicions - 1)), *writes)
    violates = "S1" if zookeeper.leader != broker else ""
    label = f"K{broker} takes {name} for dead{', though it is alive' if alive else ''}"
    return (Transition(label, writes, step.rule, violates=violates),)


def give_up(bounds: PushBounds, consumer: int, broker: int, own: PushCoordinator, link: Link) -> Transitions:
    """C6: no request for the configured time, as nobody pings it there."""
    if not link.consumer.is_attached or link.consumer.broker != broker:
        return NOTHING
    name = bounds.names[consumer]
    pinged = (
        not link.is_closed
        and own.role is not Role.DOWN
        and own.holds(bounds.group_of(consumer), name, link.consumer.number)
    )
    waiting = not link.is_closed and own.role is Role.ELECTED and link.consumer.phase is ConsumerPhase.REGISTERING
    if pinged or (waiting and not link.is_silent):
        return NOTHING
    label = f"{name} stops its fetchers and gives K{broker} up"
    return (Transition(label, ((bounds.link_column(consumer), Link(without_channel(link))),), "consumer.gave-up"),)


def without_channel(link: Link) -> PushConsumer:
    """The consumer that has given up its channel. A registration that nobody read leaves its number free."""
    unread = any(isinstance(one, RegisterRequest) for one in link.responses)
    consumer = give_up_channel(link.consumer)
    return evolve(consumer, number=consumer.number - 1) if unread else consumer
