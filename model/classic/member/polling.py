"""A poll: the join procedure as far as it goes, then auto-commit and positions (member.md 1.2, 4.3)."""

from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import (
    Client,
    ClientContext,
    Closing,
    Problem,
    end_poll,
)
from fencepost.model.classic.member.commit_results import tell_reports
from fencepost.model.classic.member.commits import commit_periodically, send_waiting_commits
from fencepost.model.classic.member.completion import complete_rebalance
from fencepost.model.classic.member.heartbeats import send_heartbeat_in_poll
from fencepost.model.classic.member.joining import send_join
from fencepost.model.classic.member.lookup import find_coordinator
from fencepost.model.classic.member.positions import fetch_offsets
from fencepost.model.classic.member.preparation import is_exchanging, lost_partitions, notice_changes, prepare
from fencepost.model.classic.member.step import ClientStep, Poll, RaiseFailure, then
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve


def poll(client: Client, given: Poll, context: ClientContext) -> ClientStep:
    """The application polls."""
    if client.closing is not Closing.OPEN:
        return ClientStep(client, (RaiseFailure(Problem.CLOSED),), ("client.poll.closed",))
    if client.callback is not None:
        return ClientStep(client, (), ("client.poll.in-callback",))
    clocks = evolve(
        client.clocks,
        poll=context.now + given.timeout + client.settings.max_poll_interval,
        polling_until=context.now + given.timeout if given.timeout else 0,
    )
    told = tell_reports(evolve(client, clocks=clocks))
    return then(ClientStep(told.client, told.outputs, ("client.poll",)), context, continue_poll)


def is_polling(client: Client, context: ClientContext) -> bool:
    """Whether a poll is under way that no callback interrupts."""
    return client.callback is None and context.now < client.clocks.polling_until


def continue_poll(client: Client, context: ClientContext) -> ClientStep:
    """What a poll does, as far as it goes without a response."""
    failure = Error.FENCED_INSTANCE_ID if client.is_fenced else client.failure
    if failure is not None:
        raised = end_poll(evolve(client, failure=None), context)
        return ClientStep(raised, (RaiseFailure(failure),), ("client.poll.raise",))
    if client.is_manual:
        return then(
            ClientStep(client), context, find_if_needed, send_waiting_commits, commit_periodically, fetch_offsets
        )
    if not client.topics and client.pattern is None:
        return ClientStep(client, (), ("client.poll.no-subscription",))
    step = then(ClientStep(client), context, find_coordinator, send_waiting_commits, notice_changes)
    if step.client.coordinator is None:
        return step
    if step.client.member.rejoins or is_exchanging(step.client) or lost_partitions(step.client):
        return then(step, context, rebalance)
    return then(step, context, send_heartbeat_in_poll, commit_periodically, fetch_offsets)


def find_if_needed(client: Client, context: ClientContext) -> ClientStep:
    """FindCoordinator of a client that assigns its partitions itself, if it asks the coordinator for something."""
    wants = client.commits or any(one.offset is None for one in client.positions) or client.settings.auto_commit
    return find_coordinator(client, context) if wants else ClientStep(client)


def rebalance(client: Client, context: ClientContext) -> ClientStep:
    """The join procedure as far as it goes: prepare, send JoinGroup, wait, complete."""
    if client.synced is not None and not lost_partitions(client):
        return complete_rebalance(client, context)
    if is_exchanging(client) and not lost_partitions(client):
        return ClientStep(client, (), ("client.join.waiting",))
    step = prepare(client, context)
    if step.client.callback is not None or not step.client.is_prepared:
        return step
    if is_exchanging(step.client):
        return ClientStep(step.client, step.outputs, (*step.rules, "client.join.waiting"))
    return then(step, context, send_join)


def enforce_rebalance(client: Client, reason: str) -> ClientStep:
    """The application asks for a rebalance, which the next poll begins (MEMBER-37)."""
    step = core.ask_rejoin(client.member)
    asked = evolve(client, member=step.member, reason=reason or "the application asked for a rebalance")
    return ClientStep(asked, (), (step.rule,))
