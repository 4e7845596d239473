"""The history of groups by what their clients logged: what each asked for, and what it was told.

A step of a client is a message as far as its line tells it, so `MessageSteps` tells the history of the group; here is
what lines do not say: which member a client is, and that one without an id is new.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fencepost.model.errors import Error
from fencepost.traces.classic.told_history import MAX_MEMBERS, SETTLED, MessageSteps, number_of, text_of
from fencepost.traces.events import Body, Operation
from fencepost.traces.history.builder import COMPLETING, STABLE, UNKNOWN, CauseKind, ChangeCause

SHARE = re.compile(r"(?:^\{|\]\), |\}, )([^={}]+)=")
"""A member in the assignment of a Java leader."""
SLOW = "its application did not poll in time"
OWN_REASONS = ("rebalance failed due to", "group is already rebalancing", "encountered")
"""Reasons to join again that lie with the group, not with the member."""


@dataclass(slots=True)
class LoggingClient:
    """One client of a group: its number and its id, and what it has asked for."""

    number: int
    client: str | None
    member: str = ""
    generation: int | None = None
    reason: str = ""
    """Why it joins again."""
    began: bool = False
    """Its JoinGroup began the present rebalance."""
    is_new: bool = False
    """It had no member id then."""
    is_leader: bool = False


@dataclass(slots=True)
class ClientSteps:
    """Tells the history of one group by the lines of its clients."""

    messages: MessageSteps
    clients: dict[str, LoggingClient] = field(default_factory=dict)
    """By client id, else by the number of the file."""

    def add_step(self, step: str, body: Body, time: int, *, is_told: bool) -> None:
        """Tell one line; if lines of the coordinator tell the group (`is_told`), it only names clients."""
        client = self.client_of(body)
        if client is None:
            return
        client.member = text_of(body, "member") or client.member
        if not is_told:
            HANDLERS[step](self, client, body, time)
        elif step == "slow":
            self.on_slow(client, body, time)
        else:
            self.messages.builder.name_client(client.member, client.client)

    def client_of(self, body: Body) -> LoggingClient | None:
        """The client that wrote a line; None if there are too many."""
        name = text_of(body, "client") or f"file {body.get('file')}"
        if name not in self.clients and len(self.clients) < MAX_MEMBERS:
            self.clients[name] = LoggingClient(len(self.clients), text_of(body, "client") or None)
        return self.clients.get(name)

    def operation(self, client: LoggingClient, api: str, time: int, **response: object) -> Operation:
        """The request of a client as far as its lines tell it."""
        body: dict[str, object] = {"member_id": client.member, "generation_id": client.generation}
        body |= {"assignments": [{}]} if client.is_leader else {}
        told = {"error_code": Error.NONE, **response} if response else None
        return Operation(client.number, api, 0, "", body, time, told)

    # --- steps --------------------------------------------------------------------------------------------------

    def on_ask(self, client: LoggingClient, body: Body, time: int) -> None:
        """It sends JoinGroup."""
        builder = self.messages.builder
        begins = builder.phase in SETTLED
        client.is_new = not client.member if begins else client.is_new
        self.messages.on_request(self.operation(client, "JoinGroup", time))
        if builder.open is not None and begins:
            kind = CauseKind.CAME if client.is_new else builder.open.cause.kind
            builder.open.cause = ChangeCause(kind, tuple(filter(None, (client.member,))), detail=client.reason)
        client.began, client.reason = client.began or begins, ""

    def on_named(self, client: LoggingClient, body: Body, time: int) -> None:
        """It gets an id, and will ask again."""
        self.messages.issued.add(client.member)
        self.name_newcomer(client)

    def name_newcomer(self, client: LoggingClient) -> None:
        """Name the member that began the present rebalance, now that its id is known."""
        builder = self.messages.builder
        if client.began and client.is_new and builder.open is not None and builder.open.cause.kind is CauseKind.CAME:
            builder.open.cause = ChangeCause(CauseKind.CAME, (client.member,))
            self.messages.issued.add(client.member)

    def on_rejoin(self, client: LoggingClient, body: Body, time: int) -> None:
        """It is about to ask again, for a reason."""
        reason = text_of(body, "reason")
        client.reason = "" if reason.startswith(OWN_REASONS) else reason

    def on_joined(self, client: LoggingClient, body: Body, time: int) -> None:
        """It is told its generation, and maybe that it leads."""
        messages, builder = self.messages, self.messages.builder
        client.generation, leader = number_of(body, "generation"), text_of(body, "leader")
        client.is_leader = leader == client.member != ""
        client.member = client.member or client.client or f"member {client.number + 1}"
        self.name_newcomer(client)
        begins, client.began, client.is_new = client.began, False, False
        if client.generation is None:
            self.join_unnumbered(client, time)
            return
        is_open = builder.open is not None and builder.open.joined is None
        if begins and is_open and client.generation == builder.generation:
            builder.cancel_rebalance(time, STABLE)
        told = {"member_id": client.member, "generation_id": client.generation}
        messages.on_response(self.operation(client, "JoinGroup", time, **told), time)
        builder.name_client(client.member, client.client)
        count = number_of(body, "count")
        if count is not None and builder.open is not None:
            builder.open.members = count

    def join_unnumbered(self, client: LoggingClient, time: int) -> None:
        """It has joined a generation that its line does not tell."""
        builder = self.messages.builder
        builder.mark_back(time, client.member)
        builder.add_member(time, client.member, None, client.client, is_new=client.member in self.messages.issued)
        if builder.open is not None and builder.open.joined is None:
            builder.end_join_phase(time, None)

    def on_synced(self, client: LoggingClient, body: Body, time: int) -> None:
        """It has its assignment."""
        builder = self.messages.builder
        if client.generation is None and builder.phase == COMPLETING:
            builder.end_rebalance(time, STABLE)
        self.messages.on_response(self.operation(client, "SyncGroup", time, member_id=client.member), time)

    def on_settled(self, client: LoggingClient, body: Body, time: int) -> None:
        """It is told its generation and its assignment."""
        self.on_joined(client, body, time)
        self.on_synced(client, body, time)

    def on_told(self, client: LoggingClient, body: Body, time: int) -> None:
        """Its Heartbeat is answered that the group rebalances."""
        if self.messages.builder.phase != COMPLETING:
            self.messages.on_response(
                self.operation(client, "Heartbeat", time, error_code=Error.REBALANCE_IN_PROGRESS), time
            )

    def on_evicted(self, client: LoggingClient, body: Body, time: int) -> None:
        """It is told that it is no member, or that its generation is over."""
        if "generation" not in text_of(body, "error").lower():
            self.messages.on_response(
                self.operation(client, "Heartbeat", time, error_code=Error.UNKNOWN_MEMBER_ID), time
            )
            client.member = ""
        client.generation = None

    def on_slow(self, client: LoggingClient, body: Body, time: int) -> None:
        """Its application did not poll in time."""
        self.messages.builder.reasons[client.member] = SLOW

    def on_leave(self, client: LoggingClient, body: Body, time: int) -> None:
        """It leaves."""
        builder = self.messages.builder
        if client.member not in builder.members:
            return
        reason = builder.reasons.pop(client.member, text_of(body, "reason"))
        cause = ChangeCause(CauseKind.LEFT, (client.member,), detail=reason)
        if builder.phase == STABLE and len(builder.members) > 1:
            builder.begin_rebalance(time, cause)
        builder.remove_member(time, client.member, cause)
        if not builder.members:
            builder.end_rebalance(time, UNKNOWN)
        client.member, client.generation = "", None

    def on_shares(self, client: LoggingClient, body: Body, time: int) -> None:
        """As the leader it says who gets what: these are the members."""
        client.is_leader = True
        rows = [{"member_id": name} for name in SHARE.findall(text_of(body, "shares"))]
        self.messages.compare_members({"members": rows}, time)


Handler = Callable[[ClientSteps, LoggingClient, Body, int], None]
HANDLERS: Mapping[str, Handler] = {
    "ask": ClientSteps.on_ask,
    "named": ClientSteps.on_named,
    "rejoin": ClientSteps.on_rejoin,
    "joined": ClientSteps.on_joined,
    "synced": ClientSteps.on_synced,
    "settled": ClientSteps.on_settled,
    "told": ClientSteps.on_told,
    "evicted": ClientSteps.on_evicted,
    "slow": ClientSteps.on_slow,
    "leave": ClientSteps.on_leave,
    "shares": ClientSteps.on_shares,
}
