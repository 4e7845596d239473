"""The transition system of the consistent region within its bounds: what the region, operators and faults do."""

from typing import Any

from fencepost.model.explore.rows import NOTHING, Transitions, spend_fault
from fencepost.model.explore.transition_system import Action, Column, Gate, Transition, TransitionSystem
from fencepost.model.frozen import evolve
from fencepost.model.region import operator as handlers
from fencepost.model.region.controller import (
    CheckpointStore,
    GroupBean,
    Offsets,
    RegionMode,
    contribute,
    finish_checkpoint,
    finish_drain,
    finish_reset,
    has_permit,
    keys_of,
    merge_offsets,
    register,
    request_reset,
    retire,
    start_drain,
    take_tuple,
)
from fencepost.model.region.explore.row import (
    BEAN,
    FAULTS,
    REGION,
    RegionBounds,
    RegionView,
    actions_about,
    operator_symmetry,
    region_checks,
)
from fencepost.model.region.group import (
    KafkaGroup,
    accepts_commit,
    assignment_of,
    awaits_members,
    expire,
    has_member,
    join_group,
    member_slot,
    must_rejoin,
    rename_member,
)
from fencepost.model.region.operator import ClientState, Membership, Operator, OperatorStep, Polling, crash, relaunch


def region_system(bounds: RegionBounds) -> TransitionSystem:
    """The system: operators, the region, the bean and the group, and faults within their bounds."""
    actions = region_actions(bounds)
    for name in bounds.names:
        actions += operator_actions(bounds, name)
    actions += [*following_actions(bounds), *fault_actions(bounds)]
    names = ("faults left", "region", "checkpoints", "downstream", "bean", "Kafka", "control variables")
    columns = (*(Column(name, name) for name in names), *(Column(name, "operator") for name in bounds.names))
    return TransitionSystem(
        columns,
        bounds.initial(),
        tuple(actions),
        checks=region_checks(bounds),
        symmetry=operator_symmetry(bounds),
    )


# What the region has its operators do: drain, checkpoint, resume, reset.


def region_actions(bounds: RegionBounds) -> list[Action]:
    """The actions of the region, and those that it asks of each operator."""
    runs, make = in_mode(RegionMode.RUN), actions_about(bounds).action
    found = [
        make("region drains", "region operators", begin_drain, runs),
        make("region resets", "region store", begin_reset),
    ]
    for name in bounds.names:
        make = actions_about(bounds, name).action
        resets = in_mode(RegionMode.RESET, name)
        found += [
            make(f"{name} drains", "region store kafka own", drain, in_mode(RegionMode.DRAIN, name)),
            make(
                f"{name} checkpoints",
                "region store downstream bean kafka variables own",
                checkpoint,
                in_mode(RegionMode.CHECKPOINT, name),
            ),
            make(f"{name} resumes", "region own", resume, runs),
            make(f"{name} is reset", "region store variables own", be_reset, resets),
            make(f"{name} contributes", "region store bean own", send_contribution, resets),
        ]
    return found


def in_mode(mode: RegionMode, name: str = "") -> Gate:
    """Only in this mode of the region, and only while the operator of this name has yet to do what the mode is for."""
    return Gate(REGION, lambda region: region.mode is mode and (not name or name in region.todo))


def begin_drain(at: RegionView) -> Transitions:
    """The region's timer."""
    can = at.region.mode is RegionMode.RUN and at.region.last < at.bounds.checkpoints
    if not can or any(not one.is_up or one.is_drained for one in at.operators):
        return NOTHING
    return at.does("the region begins to drain", "region.drains", region=start_drain(at.region, at.bounds.job))


def begin_reset(at: RegionView) -> Transitions:
    """An operator's request arrives (X0)."""
    if not at.region.is_requested or at.region.mode is RegionMode.RESET:
        return NOTHING
    return at.does("the region begins the reset that was requested", "region.resets", **at.reset())


def drain(at: RegionView) -> Transitions:
    """D1 to D4: with nothing in hand, put the queue aside and commit."""
    if at.region.mode is not RegionMode.DRAIN or at.name not in at.region.todo or at.own.hand is not None:
        return NOTHING
    step = handlers.drain(at.own)
    # A member that has sent JoinGroup commits for the generation that it had.
    is_present = at.own.membership is Membership.MEMBER or awaits_members(at.kafka.group)
    commits = keys_of(handlers.offsets_to_commit(at.own))
    is_committed = not commits or accepts_commit(at.kafka.group, at.name, is_present)
    if not is_committed and at.bounds.dialect.fails_on_commit:
        # Its process ends; the group still has whatever member it had, which is none of this name.
        label = f"{at.name} fails to commit, and its PE restarts"
        return at.does(label, "drain.commit-failed", own=crash(at.own), **at.reset())
    drained = finish_drain(at.region, at.name, at.bounds.job)
    if is_committed:
        return at.does(f"{at.name} drains", step.rule, region=drained, own=step.operator)
    label = f"{at.name} drains, and logs that its commit has failed"
    return at.does(label, "drain.commit-logged", region=drained, own=step.operator)


def checkpoint(at: RegionView) -> Transitions:
    """K1, K2; an operator that refuses has the region reset."""
    if at.region.mode is not RegionMode.CHECKPOINT or at.name not in at.region.todo:
        return NOTHING
    dialect = at.bounds.dialect
    if not handlers.is_fit_for_checkpoint(at.own, has_member(at.kafka.group, at.name), dialect):
        return at.does(f"{at.name} refuses the checkpoint", "checkpoint.refused", **at.reset())
    names = at.bounds.job if dialect.fixes_names else at.bean.registered
    written = (*at.store.partial, handlers.write_checkpoint(at.own, at.name, names, dialect))
    parts = tuple(sorted(written, key=lambda one: one.name))
    after = finish_checkpoint(at.region, at.name)
    label = f"{at.name} writes checkpoint {at.region.last + 1}"
    if after.mode is RegionMode.CHECKPOINT:
        return at.does(label, "checkpoint.written", region=after, store=evolve(at.store, partial=parts))
    whole = CheckpointStore(parts, at.downstream)
    writes = at.writes(region=after, store=whole, bean=retire(at.bean, at.region.last))
    return tuple(
        Transition(f"{label}, which is complete", writes, "checkpoint.complete", violates=one)
        for one in broken_checkpoint(whole, at.variables) or ("",)
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


def resume(at: RegionView) -> Transitions:
    """K2: the region runs again."""
    if at.region.mode is not RegionMode.RUN or not at.own.is_drained:
        return NOTHING
    step = handlers.resume(at.own)
    return at.does(f"{at.name} resumes", step.rule, own=step.operator)


def be_reset(at: RegionView) -> Transitions:
    """X1, or X4 once the merge is known."""
    region, dialect = at.region, at.bounds.dialect
    if region.mode is not RegionMode.RESET or at.name not in region.todo or not at.own.is_up:
        return NOTHING
    # A process thread that got its permit first lets what it has in hand go first (H03).
    if at.own.hand is not None and dialect.takes_with_permit:
        return NOTHING
    step: OperatorStep | None = None
    if region.last == 0:
        step, what = handlers.reset_to_initial(at.own, at.variables, dialect), "the initial state"
    elif at.name in region.contributed:
        step, what = handlers.reset_to_merge(at.own, region.last, at.variables, dialect), f"checkpoint {region.last}"
    if step is None:
        return NOTHING
    after = finish_reset(region, at.name, at.bounds.job)
    values: dict[str, Any] = {"own": step.operator, "region": after}
    if step.variables is not None:
        values["variables"] = step.variables
    if after.mode is RegionMode.RESET and after.todo == at.bounds.job:
        values |= at.restore()
    return at.does(f"{at.name} is reset to {what}", step.rule, **values)


def send_contribution(at: RegionView) -> Transitions:
    """X2: send what the operator's checkpoint says to the bean."""
    region, part = at.region, at.store.of(at.name)
    waits = region.mode is RegionMode.RESET and region.last > 0 and at.name in region.todo - region.contributed
    if not waits or not at.own.is_up or part is None:
        return NOTHING
    bean, rule = contribute(at.bean, region.last, part, at.bounds.job, at.bounds.dialect)
    contributed = evolve(region, contributed=region.contributed | {at.name})
    return at.does(f"{at.name} contributes to merge {region.last}", rule, bean=bean, region=contributed)


# What an operator does by itself: callbacks within polls, records, the process thread.


def operator_actions(bounds: RegionBounds, name: str) -> list[Action]:
    """The actions of one operator."""
    make = actions_about(bounds, name).action
    is_unknown = Gate(BEAN, lambda bean: name not in bean.registered)
    return [
        make(f"{name} joins", "region kafka own", join),
        make(f"{name} is assigned", "region store kafka variables own", be_assigned),
        make(f"{name} fetches", "own", fetch),
        make(f"{name} takes", "region own", take),
        make(f"{name} submits", "region downstream own", submit),
        make(f"{name} registers", "region store bean own", register_again, is_unknown),
        make(f"{name} hears of the merge", "bean own", hear),
    ]


def values_of(at: RegionView, step: OperatorStep) -> dict[str, Any]:
    """The values after an operator's step."""
    values: dict[str, Any] = {"own": step.operator}
    if step.variables is not None:
        values["variables"] = step.variables
    if step.requests_reset:
        values["region"] = request_reset(at.region, at.bounds.dialect)
    return values


def polls(own: Operator) -> bool:
    """Whether the event thread polls."""
    return own.is_up and own.polling is not Polling.OFF


def join(at: RegionView) -> Transitions:
    """A poll finds that it has to join: for the first time, again, or because the membership has ended."""
    own, kafka, name = at.own, at.kafka, at.name
    if not polls(own):
        return NOTHING
    is_in, leads = has_member(kafka.group, name), kafka.group.leader == name
    if own.membership is Membership.MEMBER and kafka.has_news and leads:
        why = "sees a change of the topic and joins again"
    elif own.membership is Membership.OUT:
        why = "joins"
    elif must_rejoin(kafka.group, name):
        why = "joins again"
    elif not is_in:
        why = "finds that its membership has ended, and joins"
    else:
        return NOTHING
    if own.membership is Membership.MEMBER and (at.bounds.dialect.assigns_eagerly or not is_in):
        step = handlers.on_revoked(own)
    else:
        rule = "revoke.cooperative" if own.membership is Membership.MEMBER else "client.joined"
        step = OperatorStep(evolve(own, membership=Membership.JOINING), rule)
    values = values_of(at, step)
    return tuple(
        Transition(
            ": ".join((f"{name} {why}", *describe_assignments(at.bounds, group))),
            at.writes(kafka=evolve(kafka, group=group, has_news=kafka.has_news and not leads), **values),
            step.rule,
        )
        for group in join_group(kafka.group, name, kafka.partitions)
    )


def describe_assignments(bounds: RegionBounds, group: KafkaGroup) -> tuple[str, ...]:
    """The assignments of a stable group in words, as one text; none while it is not stable."""
    shares = {name: assignment_of(group, name) for name in bounds.names}
    told = [
        f"{name} gets {', '.join(f'p{one}' for one in share) or 'nothing'}"
        for name, share in shares.items()
        if share is not None
    ]
    return (", ".join(told),) if told else ()


def be_assigned(at: RegionView) -> Transitions:
    """The poll that joined, or a later one, gets the assignment."""
    own, dialect = at.own, at.bounds.dialect
    waits = own.membership is Membership.JOINING and own.is_up
    partitions = assignment_of(at.kafka.group, at.name) if waits else None
    # A poll that called back for the revocation may last until the assignment.
    if partitions is None or not (polls(own) or own.state is ClientState.RESET_PENDING):
        return NOTHING
    held = keys_of(own.positions)
    if not dialect.assigns_eagerly and held:
        kept = tuple(offset if one in partitions else None for one, offset in enumerate(own.positions))
        own = evolve(own, membership=Membership.MEMBER, positions=kept)
        added = tuple(each for each in partitions if each not in held)
        step = handlers.on_added(own, added) if added else OperatorStep(own, "assign.kept")
    else:
        step = handlers.on_assigned(own, partitions, at.variables, dialect)
    words = ", ".join(f"p{each}" for each in partitions) or "nothing"
    violates = "" if at.name in at.region.todo else sought_by_old_map(at.store, own, step)
    return at.does(f"{at.name} is assigned {words}", step.rule, violates, **values_of(at, step))


def sought_by_old_map(store: CheckpointStore, before: Operator, step: OperatorStep) -> str:
    """Whether the assignment seeks an offset before that of the last complete checkpoint (H13)."""
    if step.rule != "assign.sought" or not before.is_map_old:
        return ""
    after = step.operator.positions
    due = store.snapshot.next
    return "H13" if any(offset is not None and offset < due[one] for one, offset in enumerate(after)) else ""


def fetch(at: RegionView) -> Transitions:
    """A poll brings a record. A fetch is not checked against the group."""
    own = at.own
    if not polls(own) or len(own.queue) + len(own.drained) >= at.bounds.capacity:
        return NOTHING
    found: Transitions = NOTHING
    for partition in keys_of(own.positions):
        offset = own.positions[partition]
        if offset is not None and 0 <= offset < at.bounds.records:
            step = handlers.fetch(own, partition)
            found += at.does(f"{at.name} fetches {offset} of p{partition}", step.rule, own=step.operator)
    return found


def take(at: RegionView) -> Transitions:
    """The process thread takes a message."""
    permit = has_permit(at.region, at.name)
    step = handlers.take_message(at.own, permit, at.bounds.dialect) if at.own.is_up else None
    if step is None or step.operator.hand is None:
        return NOTHING
    partition, offset = step.operator.hand
    return at.does(f"{at.name} takes {offset} of p{partition}", step.rule, own=step.operator)


def submit(at: RegionView) -> Transitions:
    """The process thread submits it. A reset throws away what is submitted before it ends."""
    step = handlers.submit_message(at.own, has_permit(at.region, at.name), at.bounds.dialect)
    if step is None or at.own.hand is None:
        return NOTHING
    values: dict[str, Any] = {"own": step.operator}
    if step.submitted is not None and at.region.mode is not RegionMode.RESET:
        values["downstream"] = take_tuple(at.downstream, step.submitted)
    partition, offset = at.own.hand
    what = "drops" if step.submitted is None else "submits"
    return at.does(f"{at.name} {what} {offset} of p{partition}", step.rule, **values)


def register_again(at: RegionView) -> Transitions:
    """The operator is connected and not registered; repaired, it repeats its contribution to the reset under way, for
    which others may wait."""
    if not at.own.is_up or at.name in at.bean.registered:
        return NOTHING
    after, rule = register(at.bean, at.name)
    part, dialect = at.store.of(at.name), at.bounds.dialect
    if dialect.contributes_again and at.name in at.region.contributed and part is not None:
        after, rule = contribute(after, at.region.last, part, at.bounds.job, dialect)
    return at.does(f"{at.name} registers", rule, bean=after)


def hear(at: RegionView) -> Transitions:
    """The notification arrives."""
    bean, own = at.bean, at.own
    if at.name not in bean.unheard or bean.merged is None:
        return NOTHING
    after = evolve(own, notice=(bean.checkpoint, bean.merged)) if own.is_up else own
    heard = evolve(bean, unheard=bean.unheard - {at.name})
    return at.does(f"{at.name} hears that merge {bean.checkpoint} is complete", "merge.heard", bean=heard, own=after)


# The faults, each within its bound, and what must follow on them.


def fault_actions(bounds: RegionBounds) -> list[Action]:
    """What nobody wants to happen."""
    make = actions_about(bounds).action
    found = [
        make("downstream fails", "faults region store", fail_downstream, is_left("failures")),
        make("control plane restarts", "faults bean", restart_control_plane),
        make("topic changes", "faults kafka", change_topic),
    ]
    for name in bounds.names:
        make = actions_about(bounds, name).action
        found += [
            make(f"{name} dies", "faults region store bean kafka own", crash_operator, is_left("crashes")),
            make(f"{name} is expelled", "faults kafka own", expel, is_left("expulsions")),
        ]
    return found


def is_left(fault: str) -> Gate:
    """Only while a fault may still happen."""
    return Gate(FAULTS, lambda faults: getattr(faults, fault) > 0)


def following_actions(bounds: RegionBounds) -> list[Action]:
    """What follows on a fault in the end: the PE is launched again, the session of its old member expires."""
    found = []
    for name in bounds.names:
        found.append(actions_about(bounds, name).action(f"{name} comes back", "own", relaunch_operator))
        for dead in dead_names(bounds, name):
            found.append(actions_about(bounds, dead).action(f"{dead} is missed", "kafka", miss))
    return found


def dead_names(bounds: RegionBounds, name: str) -> tuple[str, ...]:
    """The names that members of dead processes of an operator can have."""
    return tuple(f"{name}-dead{number}" for number in range(bounds.faults.crashes))


def fail_downstream(at: RegionView) -> Transitions:
    """A PE downstream fails, and the region is reset."""
    if not at.faults.failures:
        return NOTHING
    return at.does("a PE downstream fails", "region.resets", faults=spend_fault(at.faults, "failures"), **at.reset())


def restart_control_plane(at: RegionView) -> Transitions:
    """The bean is lost with all that is in it; operators connect again."""
    if not at.faults.restarts:
        return NOTHING
    spent = spend_fault(at.faults, "restarts")
    return at.does("the job control plane restarts", "bean.created", faults=spent, bean=GroupBean())


def change_topic(at: RegionView) -> Transitions:
    """A partition is added, or the leader sees another reason to join again."""
    found: Transitions = NOTHING
    if at.faults.partitions:
        more = evolve(at.kafka, partitions=at.kafka.partitions + 1, has_news=True)
        found += at.does("a partition is added", faults=spend_fault(at.faults, "partitions"), kafka=more)
    if at.faults.rebalances and not at.kafka.has_news:
        news = evolve(at.kafka, has_news=True)
        found += at.does("the topic changes", faults=spend_fault(at.faults, "rebalances"), kafka=news)
    return found


def crash_operator(at: RegionView) -> Transitions:
    """The PE dies: the group keeps its member until the session ends, the region is reset."""
    if not at.faults.crashes or not at.own.is_up:
        return NOTHING
    group = at.kafka.group
    if has_member(group, at.name):
        free = next(dead for dead in dead_names(at.bounds, at.name) if not has_member(group, dead))
        group = rename_member(group, at.name, free)
    return at.does(
        f"{at.name}'s PE dies",
        "region.resets",
        faults=spend_fault(at.faults, "crashes"),
        **at.reset(),
        bean=evolve(at.bean, unheard=at.bean.unheard - {at.name}),
        kafka=evolve(at.kafka, group=group),
        own=crash(at.own),
    )


def relaunch_operator(at: RegionView) -> Transitions:
    """The PE comes back."""
    if at.own.is_up:
        return NOTHING
    return at.does(f"{at.name}'s PE comes back", "operator.relaunched", own=relaunch(at.own))


def miss(at: RegionView) -> Transitions:
    """The session of a dead process's member ends."""
    if not has_member(at.kafka.group, at.name):
        return NOTHING
    return end_session(at, f"the session of {at.name} ends", "operator.missed")


def expel(at: RegionView) -> Transitions:
    """Kafka ends the membership of a live operator, which has not polled or heartbeaten for too long."""
    slot = member_slot(at.kafka.group, at.name)
    if not at.faults.expulsions or not at.own.is_up or slot is None or slot.join:
        return NOTHING
    spent = spend_fault(at.faults, "expulsions")
    return end_session(at, f"Kafka expels {at.name}", "operator.expelled", faults=spent)


def end_session(at: RegionView, label: str, rule: str, **values: object) -> Transitions:
    """What comes of the end of a member's session: any assignment of the partitions to those who are left."""
    groups = expire(at.kafka.group, at.name, at.kafka.partitions)
    return tuple(Transition(label, at.writes(**values, kafka=evolve(at.kafka, group=group)), rule) for group in groups)
