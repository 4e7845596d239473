"""The request that a member of a schedule would send by itself, without a target."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from fencepost.adapters.target import DEFAULT_OPTIONS, Exchange, SendOptions
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.requests import Member
from fencepost.conformance.testing.group_schedule import PlayedSchedule, send_request
from fencepost.model.wire.codec import decode_body, encode_body
from fencepost.traces.events import Body


class CapturingChannel:
    """A channel that keeps the last request instead of sending it."""

    def __init__(self) -> None:
        self.body: Body = {}

    def send(self, api: str, version: int, body: Body, options: SendOptions = DEFAULT_OPTIONS) -> Exchange:
        """Keep a request; its response never comes."""
        self.body = body
        silent = SimpleNamespace(add_done_callback=lambda callback: None)
        return Exchange(None, cast(Any, silent), lambda: None)

    async def close(self) -> None:
        """Nothing is open."""


def capture_request(
    context: ScenarioContext,
    channel: CapturingChannel,
    members: Mapping[str, Member],
    label: str,
    api: str,
    version: int,
) -> Body:
    """The body of the request that a member sends in this state, with all fields."""
    copies = {name: replace(member) for name, member in members.items()}
    send_request(PlayedSchedule(context, copies), api, label, {"version": version})
    return complete_body(api, version, channel.body)


def complete_body(api: str, version: int, body: Body) -> Body:
    """A request with all fields of its version."""
    name = f"{api}Request"
    return decode_body(name, version, encode_body(name, version, body)).body
