"""Subscribing, unsubscribing and closing, and assigning by hand (member.md 1.4, 2.5)."""

from re import fullmatch

from fencepost.model.classic.member.client import (
    CallbackKind,
    CallbackPlace,
    Client,
    ClientContext,
    Closing,
    CommitPurpose,
    Position,
    Problem,
    TopicCounts,
    assigned_partitions,
    has_generation,
    new_client,
)
from fencepost.model.classic.member.commits import call_listener, local_failure, offsets_to_commit, start_commit
from fencepost.model.classic.member.heartbeats import leave_group
from fencepost.model.classic.member.lookup import finish_commit, tell_reports
from fencepost.model.classic.member.member import MemberState
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.model.classic.member.step import (
    AssignManually,
    ClientStep,
    RaiseFailure,
    Subscribe,
    then,
)
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import Partition

CLOSED_REASON = "the consumer is being closed"
UNSUBSCRIBED_REASON = "the consumer unsubscribed from all topics"


def subscribe(client: Client, given: Subscribe) -> ClientStep:
    """The application subscribes; nothing is sent before the next poll (MEMBER-27)."""
    if client.closing is not Closing.OPEN:
        return ClientStep(client, (RaiseFailure(Problem.CLOSED),), ("client.poll.closed",))
    topics = given.topics if given.pattern is None else matching_topics(given.pattern, client.metadata)
    return ClientStep(evolve(client, topics=topics, pattern=given.pattern, is_manual=False), (), ("client.subscribe",))


def matching_topics(pattern: str, metadata: TopicCounts) -> frozenset[str]:
    """The existing topics whose name matches the pattern."""
    return frozenset(topic for topic, _ in metadata if fullmatch(pattern, topic))


def assign_manually(client: Client, given: AssignManually) -> ClientStep:
    """The application assigns partitions itself: there is no group and no callback (MEMBER-26, CALLBACK-18)."""
    kept = {position.partition: position for position in client.positions}
    positions = tuple(kept.get(one, Position(one)) for one in sorted(set(given.partitions)))
    manual = evolve(client, positions=positions, is_manual=True, topics=frozenset(), pattern=None)
    return ClientStep(manual, (), ("client.assign",))


def receive_metadata(client: Client, topics: TopicCounts) -> ClientStep:
    """Store the topics of the cluster; the next poll compares them with those of the last JoinGroup."""
    client = evolve(client, metadata=tuple(sorted(topics)))
    if client.pattern is None:
        return ClientStep(client, (), ("client.metadata",))
    return ClientStep(
        evolve(client, topics=matching_topics(client.pattern, client.metadata)), (), ("client.metadata.pattern",)
    )


def unsubscribe(client: Client, context: ClientContext) -> ClientStep:
    """The application unsubscribes: callback, LeaveGroup, and no commit."""
    if client.closing is not Closing.OPEN:
        return ClientStep(client, (RaiseFailure(Problem.CLOSED),), ("client.poll.closed",))
    step = ClientStep(evolve(client, closing=Closing.UNSUBSCRIBING), (), ("client.unsubscribe",))
    return then(step, context, give_up_before_leaving)


def close(client: Client, context: ClientContext) -> ClientStep:
    """The application closes the client: last commit, callback, LeaveGroup (MCOMMIT-07)."""
    if client.closing is not Closing.OPEN:
        return ClientStep(client, (), ("client.close.again",))
    client = evolve(client, closing=Closing.COMMITTING, callback=None, completion=None)
    step = ClientStep(client, (), ("client.close",))
    if client.settings.auto_commit and local_failure(client) is None:
        offsets = offsets_to_commit(client, None)
        committing = start_commit(client, CommitPurpose.CLOSE, offsets, context)
        step = ClientStep(
            committing.client, committing.outputs, ("client.close", "client.close.commit", *committing.rules)
        )
    return then(step, context, continue_closing)


def continue_closing(client: Client, context: ClientContext) -> ClientStep:
    """The client goes on closing once its last commit is over, whatever came of it."""
    if client.closing is not Closing.COMMITTING:
        return ClientStep(client)
    last = [commit for commit in client.commits if commit.purpose is CommitPurpose.CLOSE]
    if last and context.now < last[0].deadline:
        return ClientStep(client)
    step = finish_commit(client, last[0], None, context) if last else ClientStep(client)
    told = tell_reports(evolve(step.client, closing=Closing.CLOSING))
    return then(ClientStep(told.client, told.outputs), context, give_up_before_leaving)


def give_up_before_leaving(client: Client, context: ClientContext) -> ClientStep:
    """The callback before LeaveGroup: revoked in a stable member, lost in any other (CALLBACK-11)."""
    everything = assigned_partitions(client)
    if client.is_manual or not everything:
        return then(ClientStep(client, (), ("client.leave.nothing-owned",)), context, leave_after_callback)
    if has_generation(client) and client.member.state == MemberState.STABLE:
        return call_listener(client, CallbackKind.REVOKED, everything, CallbackPlace.LEAVE, "client.leave.revoke")
    return call_listener(client, CallbackKind.LOST, everything, CallbackPlace.LEAVE, "client.leave.lose")


def on_leave_callback(client: Client, raised: bool, context: ClientContext) -> ClientStep:
    """The listener returned; the client leaves, also if the listener raised (MEMBER-22)."""
    step = then(ClientStep(client, (), ("client.leave.given-up",)), context, leave_after_callback)
    if not raised:
        return step
    return ClientStep(
        step.client, (*step.outputs, RaiseFailure(Problem.LISTENER)), (*step.rules, "client.leave.raised")
    )


def leave_after_callback(client: Client, context: ClientContext) -> ClientStep:
    """LeaveGroup if the member may send it, and nothing is left of subscription and assignment."""
    is_closing = client.closing is Closing.CLOSING
    emptied = give_up_everything(client)
    step = ClientStep(emptied)
    if not client.is_manual and not (is_closing and not client.settings.leaves_on_close):
        reason, rule = (
            (CLOSED_REASON, "client.close.leave") if is_closing else (UNSUBSCRIBED_REASON, "client.unsubscribe.leave")
        )
        step = leave_group(emptied, reason, rule)
    after = Closing.CLOSED if is_closing else Closing.OPEN
    gone = evolve(step.client, closing=after, topics=frozenset(), pattern=None, joined=None, is_manual=False)
    return ClientStep(gone, step.outputs, step.rules)


def give_up_everything(client: Client) -> Client:
    """The client without partitions."""
    nothing: tuple[Partition, ...] = ()
    owned = tuple(False for _ in client.known)
    member = evolve(client.member, owned=owned)
    return evolve(client, positions=nothing, member=member, leads=False, group_topics=frozenset(), completion=None)


def restart(client: Client, settings: ClientSettings | None) -> ClientStep:
    """The process ends without a word and starts again, perhaps with other assignors (MEMBER-36)."""
    fresh = new_client(settings or client.settings)
    # The responses to what the old process sent must not meet a request of the new one.
    return ClientStep(evolve(fresh, last_handle=client.last_handle), (), ("member.restart",))
