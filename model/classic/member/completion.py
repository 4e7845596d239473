"""A rebalance ends: the assignment is checked and installed, and the listener is called (member.md 2.3)."""

from re import fullmatch

from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import (
    Callback,
    CallbackKind,
    CallbackPlace,
    Client,
    ClientContext,
    Completion,
    Position,
    Problem,
    assigned_partitions,
    end_poll,
    position_of,
)
from fencepost.model.classic.member.commits import commit_given_up, complete_core
from fencepost.model.classic.member.step import CallListener, ClientStep, RaiseFailure, then
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import Partition


def call_listener(
    client: Client, kind: CallbackKind, partitions: tuple[Partition, ...], place: CallbackPlace, rule: str
) -> ClientStep:
    """The listener is called; the client goes on when it returns."""
    if kind is CallbackKind.LOST and not client.settings.hears_lost:
        kind = CallbackKind.REVOKED
    callback = Callback(kind, partitions, place)
    return ClientStep(evolve(client, callback=callback), (CallListener(callback),), (rule,))


def complete_rebalance(client: Client, context: ClientContext) -> ClientStep:
    """The poll takes the assignment that SyncGroup brought."""
    synced = client.synced
    assert synced is not None
    client = evolve(client, synced=None)
    named = {topic for topic, _ in synced.partitions}
    if client.pattern is not None:
        client = evolve(client, topics=client.topics | {one for one in named if fullmatch(client.pattern, one)})
    if not named <= client.topics:
        # The exchange is over, so that the step before JoinGroup runs again (MEMBER-20).
        refused = evolve(client, member=core.disconnect(client.member).member, is_prepared=False)
        return ClientStep(refused, (), ("client.complete.foreign-topic",))
    completion = Completion(client.member, synced)
    step = complete_core(client, completion, 0)
    if step.rule != "member.sync.answered":
        return ClientStep(evolve(client, member=step.member), (), (step.rule,))
    completing = evolve(client, member=step.member, completion=completion, remembered=synced.partitions)
    revoked = tuple(sorted(set(assigned_partitions(client)).difference(synced.partitions)))
    if not revoked:
        return then(ClientStep(completing, (), (step.rule,)), context, install_assignment)
    called = call_listener(completing, CallbackKind.REVOKED, revoked, CallbackPlace.COMPLETE, "client.complete.revoke")
    committed = commit_given_up(called.client, revoked, context)
    return ClientStep(
        committed.client, (*committed.outputs, *called.outputs), (step.rule, *committed.rules, *called.rules)
    )


def install_assignment(client: Client, context: ClientContext) -> ClientStep:
    """Install the new assignment: partitions that stay keep their position, new ones have none."""
    assert client.completion is not None
    synced = client.completion.synced
    kept = {one: position_of(client, one) for one in synced.partitions}
    added = tuple(one for one, position in kept.items() if position is None)
    positions = tuple(position or Position(one) for one, position in kept.items())
    clocks = evolve(client.clocks, auto_commit=context.now + client.settings.auto_commit_interval)
    installed = evolve(client, positions=positions, clocks=clocks)
    return call_listener(installed, CallbackKind.ASSIGNED, added, CallbackPlace.COMPLETE, "client.complete.assign")


def on_completion_callback(client: Client, kind: CallbackKind, raised: bool, context: ClientContext) -> ClientStep:
    """The listener returned from a call after SyncGroup; the first failure is raised when all calls were made."""
    assert client.completion is not None
    raised = raised or client.completion.raised
    client = evolve(client, completion=evolve(client.completion, raised=raised))
    if kind is CallbackKind.REVOKED:
        return then(ClientStep(client, (), ("client.complete.revoked",)), context, install_assignment)
    ended = evolve(client, completion=None, is_prepared=False, is_committed=False, reason="")
    if not raised:
        return ClientStep(ended, (), ("client.complete.done",))
    return ClientStep(end_poll(ended, context), (RaiseFailure(Problem.LISTENER),), ("client.complete.raised",))
