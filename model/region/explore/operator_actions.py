"""What an operator does by itself: callbacks within polls, records, the process thread."""

from collections.abc import Callable
from functools import partial

from fencepost.model.classic.core.state import Group
from fencepost.model.explore.transition_system import Action, Gate, Transition
from fencepost.model.frozen import evolve
from fencepost.model.region import operator as handlers
from fencepost.model.region.controller import (
    CheckpointStore,
    Downstream,
    GroupBean,
    Offsets,
    Region,
    RegionMode,
    contribute,
    has_permit,
    keys_of,
    register,
    request_reset,
    take_tuple,
)
from fencepost.model.region.explore.row import (
    BEAN,
    DOWNSTREAM,
    KAFKA,
    NOTHING,
    REGION,
    STORE,
    VARIABLES,
    Kafka,
    RegionBounds,
    Transitions,
    Write,
)
from fencepost.model.region.group import assignment_of, has_member, join_group, must_rejoin
from fencepost.model.region.operator import ClientState, Membership, Operator, OperatorStep, Polling


def operator_actions(bounds: RegionBounds, name: str) -> list[Action]:
    """The actions of one operator."""
    column = bounds.column(name)

    def action(what: str, columns: tuple[int, ...], transitions: Callable[..., Transitions]) -> Action:
        return Action(f"{name} {what}", columns, partial(transitions, bounds, name))

    return [
        action("joins", (REGION, KAFKA, column), join),
        action("is assigned", (REGION, STORE, KAFKA, VARIABLES, column), be_assigned),
        action("fetches", (column,), fetch),
        action("takes", (REGION, column), take),
        action("submits", (REGION, DOWNSTREAM, column), submit),
        Action(
            f"{name} registers",
            (REGION, STORE, BEAN, column),
            partial(register_again, bounds, name),
            gate=Gate(BEAN, lambda bean: name not in bean.registered),
        ),
        action("hears of the merge", (BEAN, column), hear),
    ]


def write_step(bounds: RegionBounds, name: str, step: OperatorStep, region: Region) -> tuple[Write, ...]:
    """What an operator's step writes."""
    writes: tuple[Write, ...] = ((bounds.column(name), step.operator),)
    if step.variables is not None:
        writes += ((VARIABLES, step.variables),)
    return writes + (((REGION, request_reset(region, bounds.dialect)),) if step.requests_reset else ())


def polls(own: Operator) -> bool:
    """Whether the event thread polls."""
    return own.is_up and own.polling is not Polling.OFF


def join(bounds: RegionBounds, name: str, region: Region, kafka: Kafka, own: Operator) -> Transitions:
    """A poll finds that it has to join: for the first time, again, or because the membership has ended."""
    if not polls(own):
        return NOTHING
    is_in = has_member(kafka.group, name)
    if own.membership is Membership.MEMBER and kafka.has_news and kafka.group.leader == name:
        why = "sees a change of the topic and joins again"
    elif own.membership is Membership.OUT:
        why = "joins"
    elif must_rejoin(kafka.group, name):
        why = "joins again"
    elif not is_in:
        why = "finds that its membership has ended, and joins"
    else:
        return NOTHING
    keeps = not bounds.dialect.assigns_eagerly and own.membership is Membership.MEMBER and is_in
    if keeps:
        step = OperatorStep(evolve(own, membership=Membership.JOINING), "revoke.cooperative")
    elif own.membership is Membership.MEMBER:
        step = handlers.on_revoked(own)
    else:
        step = OperatorStep(evolve(own, membership=Membership.JOINING), "client.joined")
    has_news = kafka.has_news and kafka.group.leader != name
    writes = write_step(bounds, name, step, region)
    return tuple(
        Transition(
            ": ".join((f"{name} {why}", *describe_assignments(bounds, group))),
            ((KAFKA, evolve(kafka, group=group, has_news=has_news)), *writes),
            step.rule,
        )
        for group in join_group(kafka.group, name, kafka.partitions)
    )


def describe_assignments(bounds: RegionBounds, group: Group) -> tuple[str, ...]:
    """The assignments of a stable group in words, as one text; none while it is not stable."""
    shares = {name: assignment_of(group, name) for name in bounds.names}
    told = [
        f"{name} gets {', '.join(f'p{one}' for one in share) or 'nothing'}"
        for name, share in shares.items()
        if share is not None
    ]
    return (", ".join(told),) if told else ()


def be_assigned(
    bounds: RegionBounds,
    name: str,
    region: Region,
    store: CheckpointStore,
    kafka: Kafka,
    variables: Offsets,
    own: Operator,
) -> Transitions:
    """The same poll or a later one gets the assignment."""
    waits = own.membership is Membership.JOINING and own.is_up
    partitions = assignment_of(kafka.group, name) if waits else None
    # A poll that called back for the revocation may last until the assignment.
    if partitions is None or not (polls(own) or own.state is ClientState.RESET_PENDING):
        return NOTHING
    held = keys_of(own.positions)
    if not bounds.dialect.assigns_eagerly and held:
        kept = tuple(each for each in held if each in partitions)
        own = evolve(own, membership=Membership.MEMBER, positions=keep(own.positions, kept))
        added = tuple(each for each in partitions if each not in held)
        step = handlers.on_added(own, added) if added else OperatorStep(own, "assign.kept")
    else:
        step = handlers.on_assigned(own, partitions, variables, bounds.dialect)
    words = ", ".join(f"p{each}" for each in partitions) or "nothing"
    violates = "" if name in region.todo else sought_by_old_map(store, own, step)
    return (
        Transition(f"{name} is assigned {words}", write_step(bounds, name, step, region), step.rule, violates=violates),
    )


def keep(positions: Offsets, kept: tuple[int, ...]) -> Offsets:
    """The positions of these partitions alone."""
    return tuple(offset if partition in kept else None for partition, offset in enumerate(positions))


def sought_by_old_map(store: CheckpointStore, before: Operator, step: OperatorStep) -> str:
    """Whether the assignment seeks an offset before that of the last complete checkpoint (H13)."""
    if step.rule != "assign.sought" or not before.is_map_old:
        return ""
    after = step.operator.positions
    due = store.snapshot.next
    return "H13" if any(offset is not None and offset < due[one] for one, offset in enumerate(after)) else ""


def fetch(bounds: RegionBounds, name: str, own: Operator) -> Transitions:
    """A poll brings a record. A fetch is not checked against the group."""
    if not polls(own) or len(own.queue) + len(own.drained) >= bounds.capacity:
        return NOTHING
    found = []
    for partition in keys_of(own.positions):
        offset = own.positions[partition]
        if offset is not None and 0 <= offset < bounds.records:
            step = handlers.fetch(own, partition)
            label = f"{name} fetches {offset} of p{partition}"
            found.append(Transition(label, ((bounds.column(name), step.operator),), step.rule))
    return tuple(found)


def take(bounds: RegionBounds, name: str, region: Region, own: Operator) -> Transitions:
    """The process thread takes a message."""
    step = handlers.take_message(own, has_permit(region, name), bounds.dialect) if own.is_up else None
    if step is None or step.operator.hand is None:
        return NOTHING
    partition, offset = step.operator.hand
    return (Transition(f"{name} takes {offset} of p{partition}", ((bounds.column(name), step.operator),), step.rule),)


def submit(bounds: RegionBounds, name: str, region: Region, downstream: Downstream, own: Operator) -> Transitions:
    """The process thread submits it. A reset throws away what is submitted before it ends."""
    step = handlers.submit_message(own, has_permit(region, name), bounds.dialect)
    if step is None or own.hand is None:
        return NOTHING
    writes: tuple[Write, ...] = ((bounds.column(name), step.operator),)
    if step.submitted is not None and region.mode is not RegionMode.RESET:
        writes += ((DOWNSTREAM, take_tuple(downstream, step.submitted)),)
    partition, offset = own.hand
    what = "drops" if step.submitted is None else "submits"
    return (Transition(f"{name} {what} {offset} of p{partition}", writes, step.rule),)


def register_again(
    bounds: RegionBounds, name: str, region: Region, store: CheckpointStore, bean: GroupBean, own: Operator
) -> Transitions:
    """The operator is connected and not registered; repaired, it repeats its contribution to the reset under way, for
    which others may wait."""
    if not own.is_up or name in bean.registered:
        return NOTHING
    after, rule = register(bean, name)
    part = store.of(name)
    if bounds.dialect.contributes_again and name in region.contributed and part is not None:
        after, rule = contribute(after, region.last, part, bounds.job, bounds.dialect)
    return (Transition(f"{name} registers", ((BEAN, after),), rule),)


def hear(bounds: RegionBounds, name: str, bean: GroupBean, own: Operator) -> Transitions:
    """The notification arrives."""
    if name not in bean.unheard or bean.merged is None:
        return NOTHING
    after = evolve(own, notice=(bean.checkpoint, bean.merged)) if own.is_up else own
    writes = ((BEAN, evolve(bean, unheard=bean.unheard - {name})), (bounds.column(name), after))
    return (Transition(f"{name} hears that merge {bean.checkpoint} is complete", writes, "merge.heard"),)
