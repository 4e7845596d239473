"""Before JoinGroup: whether the client has to join, and the partitions that it gives up first (member.md 1.2, 2.2)."""

from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import (
    CallbackKind,
    CallbackPlace,
    Client,
    ClientContext,
    Problem,
    assigned_partitions,
    counts_of,
    end_poll,
    flags_of,
    has_generation,
)
from fencepost.model.classic.member.commits import commit_before_rebalance, give_up_commit_before_rebalance
from fencepost.model.classic.member.completion import call_listener
from fencepost.model.classic.member.step import ClientStep, RaiseFailure, then
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import Partition


def notice_changes(client: Client, context: ClientContext) -> ClientStep:
    """The member has to join where the subscription is not the one it joined with, or where a leader sees other
    partition counts than it planned with (MEMBER-21, MEMBER-27, MEMBER-28)."""
    if client.member.rejoins or is_exchanging(client):
        return ClientStep(client)
    if client.joined is None or client.joined.topics != client.topics:
        rule, reason = "client.rejoin.subscription", "the subscription has changed"
    elif client.leads and counts_of(client, client.group_topics) != client.planned:
        rule, reason = "client.rejoin.metadata", "cached metadata has changed"
    else:
        return ClientStep(client)
    return ClientStep(evolve(client, member=core.ask_rejoin(client.member).member, reason=reason), (), (rule,))


def is_exchanging(client: Client) -> bool:
    """Whether a JoinGroup or SyncGroup is unanswered, or its answer has not been read."""
    return bool(client.member.waiting) or client.synced is not None


def lost_partitions(client: Client) -> tuple[Partition, ...]:
    """The partitions that are lost since the generation or the member id was reset (CALLBACK-05)."""
    return () if has_generation(client) else assigned_partitions(client)


def prepare(client: Client, context: ClientContext) -> ClientStep:
    """The commit and the callback before JoinGroup; the client is prepared when no callback is left to run."""
    lost = lost_partitions(client)
    if lost:
        return call_listener(client, CallbackKind.LOST, lost, CallbackPlace.PREPARE, "client.prepare.lost")
    if client.is_prepared:
        return ClientStep(client)
    if not client.is_committed:
        step = then(ClientStep(client), context, give_up_commit_before_rebalance)
        step = step if step.client.is_committed else then(step, context, commit_before_rebalance)
        if not step.client.is_committed:
            return step
        return then(step, context, prepare)
    # A listener that raises is not called again for the same rebalance (CALLBACK-13).
    client = end_preparation(client)
    if not has_generation(client):
        return ClientStep(client, (), ("client.prepare.nothing",))
    if not client.settings.is_cooperative:
        everything = assigned_partitions(client)
        return call_listener(
            client, CallbackKind.REVOKED, everything, CallbackPlace.PREPARE, "client.prepare.revoke-all"
        )
    dropped = unsubscribed_partitions(client)
    if not dropped:
        return ClientStep(client, (), ("client.prepare.keep",))
    return call_listener(
        client, CallbackKind.REVOKED, dropped, CallbackPlace.PREPARE, "client.prepare.revoke-unsubscribed"
    )


def end_preparation(client: Client) -> Client:
    """The client that may send JoinGroup; a commit that is still unanswered holds no rebalance up."""
    return evolve(client, is_prepared=True, prepare_commit=0, clocks=evolve(client.clocks, prepare=0))


def unsubscribed_partitions(client: Client) -> tuple[Partition, ...]:
    """The assigned partitions whose topic has left the subscription (CALLBACK-04)."""
    return tuple(one for one in assigned_partitions(client) if one[0] not in client.topics)


def on_prepare_callback(
    client: Client, given_up: tuple[Partition, ...], raised: bool, context: ClientContext
) -> ClientStep:
    """The listener returned from a call before JoinGroup, and the partitions are given up, also if it raised."""
    positions = tuple(one for one in client.positions if one.partition not in given_up)
    client = evolve(client, positions=positions, leads=False, group_topics=frozenset())
    owned = flags_of(client, assigned_partitions(client))
    client = end_preparation(evolve(client, member=evolve(client.member, owned=owned)))
    if not raised:
        return ClientStep(client, (), ("client.prepare.given-up",))
    return ClientStep(end_poll(client, context), (RaiseFailure(Problem.LISTENER),), ("client.prepare.raised",))
