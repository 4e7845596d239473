"""The coordinator: how a client finds it, loses it, and gives up its unanswered requests (member.md 1.2, 1.5)."""

from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import (
    Client,
    ClientContext,
    FindCoordinator,
    FindCoordinatorResponse,
    SentKind,
    Unanswered,
    is_unanswered,
    next_handle,
)
from fencepost.model.classic.member.commit_results import fail_retriably
from fencepost.model.classic.member.step import ClientStep, SendRequest, join_steps
from fencepost.model.classic.messages import Request
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve

COORDINATOR_MOVED = frozenset({Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE})
"""Errors after which the client looks the coordinator up again."""
LOOKUP_RETRIED = COORDINATOR_MOVED | {Error.COORDINATOR_LOAD_IN_PROGRESS, Error.REQUEST_TIMED_OUT}
"""Errors after which a lookup is repeated; all others reach the application."""


def add_unanswered(client: Client, request: Unanswered) -> Client:
    """The client that waits for the response to one more request, whose handle was the next one."""
    return evolve(client, unanswered=(*client.unanswered, request), last_handle=request.handle)


def without_unanswered(client: Client, handle: int) -> Client:
    """The client that no longer waits for the response to the request of this handle."""
    return evolve(client, unanswered=tuple(request for request in client.unanswered if request.handle != handle))


def send_request(client: Client, request: Request, sent: Unanswered, rule: str, reason: str = "") -> ClientStep:
    """The client sends a request whose handle is the next one."""
    return ClientStep(add_unanswered(client, sent), (SendRequest(sent.handle, request, reason),), (rule,))


def find_coordinator(client: Client, context: ClientContext) -> ClientStep:
    """FindCoordinator, unless the client knows the coordinator, waits for a response, or for its turn."""
    if client.coordinator is not None:
        return ClientStep(client)
    if is_unanswered(client, SentKind.FIND):
        return ClientStep(client, (), ("client.lookup.waiting",))
    if context.now < client.clocks.lookup_retry:
        return ClientStep(client, (), ("client.lookup.backoff",))
    handle = next_handle(client)
    sent = Unanswered(handle, SentKind.FIND, context.now + client.settings.request_timeout)
    request = FindCoordinator(client.settings.group, handle)
    return ClientStep(add_unanswered(client, sent), (SendRequest(handle, request),), ("client.lookup.send",))


def on_find_response(client: Client, response: FindCoordinatorResponse, context: ClientContext) -> ClientStep:
    """FindCoordinator is answered; what a lookup may not fail with reaches the application in a poll."""
    if response.error == Error.NONE:
        session = context.now + client.settings.session_timeout
        clocks = evolve(client.clocks, session=session, lookup_retry=0)
        found = evolve(client, coordinator=response.node, lookup_failures=0, clocks=clocks)
        return ClientStep(found, (), ("client.lookup.found",))
    if response.error in LOOKUP_RETRIED:
        return lookup_failed(client, context)
    return ClientStep(evolve(client, failure=response.error), (), ("client.lookup.fatal",))


def lookup_failed(client: Client, context: ClientContext) -> ClientStep:
    """The lookup is repeated after a backoff that doubles each time."""
    settings = client.settings
    backoff = min(settings.retry_backoff * 2**client.lookup_failures, settings.max_retry_backoff)
    clocks = evolve(client.clocks, lookup_retry=context.now + backoff)
    return ClientStep(
        evolve(client, lookup_failures=client.lookup_failures + 1, clocks=clocks), (), ("client.lookup.failed",)
    )


def lose_coordinator(client: Client, context: ClientContext) -> ClientStep:
    """The coordinator is unknown, and whatever it was asked for has failed; the membership stays (MEMBER-14)."""
    exchange = any(request.kind in (SentKind.JOIN, SentKind.SYNC) for request in client.unanswered)
    kept = tuple(one for one in client.unanswered if one.kind in (SentKind.FIND, SentKind.LIST_OFFSETS))
    asked = {request.handle for request in client.unanswered if request.kind is SentKind.FETCH_OFFSETS}
    positions = tuple(
        evolve(position, asked=0) if position.asked in asked else position for position in client.positions
    )
    lost = evolve(client, coordinator=None, unanswered=kept, positions=positions)
    rules: tuple[str, ...] = ("client.coordinator.lost",)
    if exchange:
        lost = back_off_join(evolve(lost, member=core.disconnect(lost.member).member), context)
        rules = (*rules, "member.lost")
    step = ClientStep(lost, (), rules)
    for commit in client.commits:
        if commit.handle:
            step = join_steps(step, fail_retriably(step.client, commit, context))
    return step


def back_off_join(client: Client, context: ClientContext) -> Client:
    """The client that waits before it joins again (MEMBER-17)."""
    retry = context.now + client.settings.retry_backoff
    return evolve(client, clocks=evolve(client.clocks, join_retry=retry))


def on_disconnect(client: Client, context: ClientContext) -> ClientStep:
    """The connection to the coordinator is lost."""
    return lose_coordinator(client, context)
