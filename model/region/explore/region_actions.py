"""What the region has its operators do: drain, checkpoint, resume, reset."""

from collections.abc import Callable
from functools import partial

from fencepost.model.classic.core.state import Phase
from fencepost.model.explore.transition_system import Action, Gate, Transition
from fencepost.model.frozen import evolve
from fencepost.model.region import draining
from fencepost.model.region.controller import (
    CheckpointStore,
    Downstream,
    GroupBean,
    Offsets,
    Region,
    RegionMode,
    contribute,
    finish_checkpoint,
    finish_drain,
    finish_reset,
    keys_of,
    merge_offsets,
    retire,
    start_drain,
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
    reset_region,
    restore_checkpoint,
)
from fencepost.model.region.group import accepts_commit, has_member
from fencepost.model.region.operator import Membership, Operator, OperatorStep, crash


def region_actions(bounds: RegionBounds) -> list[Action]:
    """The actions of the region, and those that it asks of each operator."""
    runs = in_mode(RegionMode.RUN)
    found = [
        Action("region drains", (REGION, *bounds.columns), partial(begin_drain, bounds), gate=runs),
        Action("region resets", (REGION, STORE), partial(begin_reset, bounds)),
    ]
    for name in bounds.names:
        column = bounds.column(name)

        def action(
            what: str, columns: tuple[int, ...], transitions: Callable[..., Transitions], gate: Gate, name: str = name
        ) -> Action:
            return Action(f"{name} {what}", columns, partial(transitions, bounds, name), gate=gate)

        checkpointed = (REGION, STORE, DOWNSTREAM, BEAN, KAFKA, VARIABLES, column)
        found += [
            action("drains", (REGION, STORE, KAFKA, column), drain, in_mode(RegionMode.DRAIN, name)),
            action("checkpoints", checkpointed, checkpoint, in_mode(RegionMode.CHECKPOINT, name)),
            action("resumes", (REGION, column), resume, runs),
            action("is reset", (REGION, STORE, VARIABLES, column), be_reset, in_mode(RegionMode.RESET, name)),
            action("contributes", (REGION, STORE, BEAN, column), send_contribution, in_mode(RegionMode.RESET, name)),
        ]
    return found


def in_mode(mode: RegionMode, name: str = "") -> Gate:
    """Only in this mode of the region, and only while the operator of this name has yet to do what the mode is for."""
    return Gate(REGION, lambda region: region.mode is mode and (not name or name in region.todo))


def begin_drain(bounds: RegionBounds, region: Region, *operators: Operator) -> Transitions:
    """The region's timer."""
    can = region.mode is RegionMode.RUN and region.last < bounds.checkpoints
    if not can or any(not one.is_up or one.is_drained for one in operators):
        return NOTHING
    return (Transition("the region begins to drain", ((REGION, start_drain(region, bounds.job)),), "region.drains"),)


def begin_reset(bounds: RegionBounds, region: Region, store: CheckpointStore) -> Transitions:
    """An operator's request arrives (X0)."""
    if not region.is_requested or region.mode is RegionMode.RESET:
        return NOTHING
    writes = reset_region(bounds, region, store)
    return (Transition("the region begins the reset that was requested", writes, "region.resets"),)


def drain(
    bounds: RegionBounds, name: str, region: Region, store: CheckpointStore, kafka: Kafka, own: Operator
) -> Transitions:
    """D1 to D4: with nothing in hand, put the queue aside and commit."""
    if region.mode is not RegionMode.DRAIN or name not in region.todo or own.hand is not None:
        return NOTHING
    step = draining.drain(own)
    # A member that has sent JoinGroup commits for the generation that it had.
    is_present = own.membership is Membership.MEMBER or kafka.group.phase is Phase.PREPARING
    commits = keys_of(draining.offsets_to_commit(own))
    is_committed = not commits or accepts_commit(kafka.group, name, is_present)
    if not is_committed and bounds.dialect.fails_on_commit:
        # Its process ends; the group still has whatever member it had, which is none of this name.
        gone = ((bounds.column(name), crash(own)), *reset_region(bounds, region, store))
        return (Transition(f"{name} fails to commit, and its PE restarts", gone, "drain.commit-failed"),)
    writes = ((REGION, finish_drain(region, name, bounds.job)), (bounds.column(name), step.operator))
    if is_committed:
        return (Transition(f"{name} drains", writes, step.rule),)
    return (Transition(f"{name} drains, and logs that its commit has failed", writes, "drain.commit-logged"),)


def checkpoint(
    bounds: RegionBounds,
    name: str,
    region: Region,
    store: CheckpointStore,
    downstream: Downstream,
    bean: GroupBean,
    kafka: Kafka,
    variables: Offsets,
    own: Operator,
) -> Transitions:
    """K1, K2; an operator that refuses has the region reset."""
    if region.mode is not RegionMode.CHECKPOINT or name not in region.todo:
        return NOTHING
    resets = reset_region(bounds, region, store)
    if not draining.is_fit_for_checkpoint(own, has_member(kafka.group, name), bounds.dialect):
        return (Transition(f"{name} refuses the checkpoint", resets, "checkpoint.refused"),)
    names = bounds.job if bounds.dialect.fixes_names else bean.registered
    partial_parts = (*store.partial, draining.write_checkpoint(own, name, names, bounds.dialect))
    parts = tuple(sorted(partial_parts, key=lambda one: one.name))
    after = finish_checkpoint(region, name)
    label = f"{name} writes checkpoint {region.last + 1}"
    if after.mode is RegionMode.CHECKPOINT:
        return (Transition(label, ((REGION, after), (STORE, evolve(store, partial=parts))), "checkpoint.written"),)
    whole = CheckpointStore(parts, downstream)
    violates = broken_checkpoint(whole, variables)
    writes = ((REGION, after), (STORE, whole), (BEAN, retire(bean, region.last)))
    return tuple(
        Transition(f"{label}, which is complete", writes, "checkpoint.complete", violates=one)
        for one in violates or ("",)
    )


def broken_checkpoint(store: CheckpointStore, variables: Offsets) -> tuple[str, ...]:
    """G4 to G7 of a complete checkpoint: its merged offsets are what downstream has yet to see."""
    broken = set()
    owned = [partition for one in store.complete for partition in keys_of(one.offsets)]
    if len(owned) > len(set(owned)):
        broken.add("G6")
    merged = merge_offsets(store.complete)
    for partition, initial in enumerate(variables):
        if initial is None:
            continue
        offset = merged[partition]
        if offset is None:
            broken.add("G7")
        start, due = initial if offset is None else offset, store.snapshot.next[partition]
        if start != due:
            broken.add("G5" if start < due else "G4")
    if store.snapshot.has_duplicate:
        broken |= {"G5", "H04-twice"}
    if store.snapshot.has_gap:
        broken.add("G4")
    return tuple(sorted(broken))


def resume(bounds: RegionBounds, name: str, region: Region, own: Operator) -> Transitions:
    """K2: the region runs again."""
    if region.mode is not RegionMode.RUN or not own.is_drained:
        return NOTHING
    step = draining.resume(own)
    return (Transition(f"{name} resumes", ((bounds.column(name), step.operator),), step.rule),)


def be_reset(
    bounds: RegionBounds, name: str, region: Region, store: CheckpointStore, variables: Offsets, own: Operator
) -> Transitions:
    """X1, or X4 once the merge is known."""
    if region.mode is not RegionMode.RESET or name not in region.todo or not own.is_up:
        return NOTHING
    if not draining.may_be_reset(own, bounds.dialect):
        return NOTHING
    step: OperatorStep | None
    if region.last == 0:
        step, what = draining.reset_to_initial(own, variables, bounds.dialect), "the initial state"
    elif name in region.contributed:
        step, what = draining.reset_to_merge(own, region.last, variables, bounds.dialect), f"checkpoint {region.last}"
    else:
        return NOTHING
    if step is None:
        return NOTHING
    after = finish_reset(region, name, bounds.job)
    writes: tuple[Write, ...] = ((bounds.column(name), step.operator), (REGION, after))
    if step.variables is not None:
        writes += ((VARIABLES, step.variables),)
    if after.mode is RegionMode.RESET and after.todo == bounds.job:
        writes += restore_checkpoint(store)
    return (Transition(f"{name} is reset to {what}", writes, step.rule),)


def send_contribution(
    bounds: RegionBounds, name: str, region: Region, store: CheckpointStore, bean: GroupBean, own: Operator
) -> Transitions:
    """X2: send what the operator's checkpoint says to the bean."""
    waits = region.mode is RegionMode.RESET and region.last > 0 and name in region.todo - region.contributed
    part = store.of(name)
    if not waits or not own.is_up or part is None:
        return NOTHING
    after, rule = contribute(bean, region.last, part, bounds.job, bounds.dialect)
    writes = ((BEAN, after), (REGION, evolve(region, contributed=region.contributed | {name})))
    return (Transition(f"{name} contributes to merge {region.last}", writes, rule),)
