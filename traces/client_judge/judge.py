"""Judges the client of a trace: requests are paired with their responses, and a protocol follows them."""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from fencepost.traces.events import CLASSIC, Event, Header, Kind, Lookahead, Operation
from fencepost.traces.verdict import TraceVerdict


class FollowedClient(Protocol):
    """A protocol's part of the judge: it follows one client and collects evidence."""

    def on_request(self, operation: Operation, event: Event) -> None:
        """The client sent a request."""

    def on_response(self, operation: Operation, event: Event) -> None:
        """The response left the cluster: from now on the client may know of it."""

    def on_loss(self, operation: Operation, event: Event) -> None:
        """The connection ended before the response."""

    def on_other(self, event: Event) -> None:
        """Something happened beside the client's requests."""

    def on_end(self, time: int) -> None:
        """The trace ends; time in milliseconds."""

    def verdict(self, events: int) -> TraceVerdict:
        """What was found in so many events."""
        ...


FollowClient: TypeAlias = Callable[[Header, str], FollowedClient]
"""Begins to follow the client that has this label in the trace of this header."""


class ClientJudge:
    """Judges one client, event by event."""

    def __init__(self, header: Header, label: str, follow: FollowClient) -> None:
        self._client = follow(header, label)
        self._label = label
        self._pairs = Lookahead(())
        self._events = 0
        self._time = 0

    def on_event(self, event: Event) -> None:
        """Take the next event of the trace."""
        operation = self._pairs.pair_event(event).operation
        self._events += 1
        self._time = event.time
        if operation is None or operation.member != self._label:
            self._client.on_other(event)
        elif event.kind is Kind.REQUEST:
            self._client.on_request(operation, event)
        elif event.kind is Kind.RESPONSE:
            self._client.on_response(operation, event)
        elif event.kind is Kind.FAULT:
            self._client.on_loss(operation, event)

    def finish(self) -> TraceVerdict:
        """The verdict, if nothing more was seen after the last event."""
        self._client.on_end(self._time)
        return self._client.verdict(self._events)


def is_client_trace(header: Header) -> bool:
    """Whether a trace is one of a client under test: its cluster is scripted, and nothing to judge."""
    return header.implementation.get("subject") == "client"


def is_recording(header: Header) -> bool:
    """Whether a trace shows real members of consumer groups: it was recorded, or imported."""
    return "recorder" in header.implementation and header.protocol == CLASSIC


def is_driven_trace(header: Header) -> bool:
    """Whether a trace of a client has its application in it."""
    return "driver" in header.implementation


def judge_client(header: Header, events: Iterable[Event], label: str, follow: FollowClient) -> TraceVerdict:
    """The verdict on the client with this label in a trace, which ends with its last event."""
    judge = ClientJudge(header, label, follow)
    for event in events:
        judge.on_event(event)
    return judge.finish()
