"""Faults: functions that respond to an intercepted request in the cluster's place, and the script that has them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fencepost.adapters.bundled.classic.messages import Request
from fencepost.adapters.bundled.nodes.refusals import ELSEWHERE, refuse_elsewhere
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body, DecodedRequest

FIRST_LOOKUP_OF_KEYS = 4
"""The first version of FindCoordinator with several keys."""


class HangUp(ConnectionError):
    """The cluster closes the connection without a response."""


@dataclass(slots=True)
class InterceptedRequest:
    """A request of the client that waits for its response. `pass_on` has the cluster handle it and returns the
    response; `copies` says how often the response is sent."""

    request: DecodedRequest
    pass_on: Callable[[], Awaitable[Body | None]]
    copies: int = 1


Fault: TypeAlias = Callable[[InterceptedRequest], Awaitable[Body | None]]
"""Returns the body of the response, None for no response. Raises `HangUp`."""
Matches: TypeAlias = Callable[[DecodedRequest], bool]


def refuse(error: Error) -> Fault:
    """Respond with an error in the place of the cluster, which does not see the request."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        return refusal_of(intercepted.request, error)

    return respond


def delay(seconds: float) -> Fault:
    """Have the cluster handle the request, and keep its response back."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        body = await intercepted.pass_on()
        await asyncio.sleep(seconds)
        return body

    return respond


def hold(release: asyncio.Event) -> Fault:
    """Keep the request back until the release, and hand it to the cluster then."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        await release.wait()
        return await intercepted.pass_on()

    return respond


def lose() -> Fault:
    """Have the cluster handle the request, and lose the response: nothing more comes on this connection."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        await intercepted.pass_on()
        await asyncio.Event().wait()
        return None

    return respond


def double() -> Fault:
    """Send the response twice."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        intercepted.copies = 2
        return await intercepted.pass_on()

    return respond


def hang_up(*, after_handling: bool = False) -> Fault:
    """Close the connection in the place of a response, before or after the cluster has handled the request."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        if after_handling:
            await intercepted.pass_on()
        raise HangUp

    return respond


def edit(change: Callable[[Body], Body]) -> Fault:
    """Change the response of the cluster."""

    async def respond(intercepted: InterceptedRequest) -> Body | None:
        body = await intercepted.pass_on()
        return None if body is None else change(body)

    return respond


def refusal_of(request: DecodedRequest, error: Error) -> Body:
    """The body of a response with this error, wherever the API has its place for it."""
    if request.api == "FindCoordinator":
        return refuse_lookup(request, error)
    api = request.api or ""
    refused = refuse_elsewhere(Request(0, api, request.version, request.client_id, "/", request.body))
    if refused is None:
        raise ValueError(f"{api} has no place for {error.name}")
    changed = with_error(refused.body, error)
    assert isinstance(changed, Mapping)
    return changed


def refuse_lookup(request: DecodedRequest, error: Error) -> Body:
    """The body for FindCoordinator."""
    nowhere = {"node_id": -1, "host": "", "port": -1, "error_code": error, "error_message": None}
    if request.version < FIRST_LOOKUP_OF_KEYS:
        return nowhere
    return {"coordinators": [{"key": key, **nowhere} for key in request.body.get("coordinator_keys", ())]}


def with_error(value: Any, error: Error) -> Any:
    """A body, or a value in it, with the error in the place of NOT_COORDINATOR."""
    if isinstance(value, Mapping):
        return {
            name: error if name == "error_code" and each == ELSEWHERE else with_error(each, error)
            for name, each in value.items()
        }
    return [with_error(each, error) for each in value] if isinstance(value, list | tuple) else value


@dataclass(slots=True)
class Cue:
    """A fault of a script, and the requests that it is for: those to an API that match, so many of them."""

    api: str
    fault: Fault
    note: str
    times: int
    matches: Matches
    taken: int = 0


@dataclass(slots=True)
class Script:
    """The faults that are still to happen."""

    cues: list[Cue] = field(default_factory=list)

    def add(self, api: str, fault: Fault, note: str, *, times: int = 1, matches: Matches = lambda request: True) -> Cue:
        """Have a fault happen to the next requests to an API; `note` says so in words."""
        cue = Cue(api, fault, note, times, matches)
        self.cues.append(cue)
        return cue

    def take(self, request: DecodedRequest) -> Cue | None:
        """The first cue for a request, which counts it; None if there is none."""
        for cue in self.cues:
            if cue.api == request.api and cue.taken < cue.times and cue.matches(request):
                cue.taken += 1
                return cue
        return None

    def drop(self, cue: Cue) -> None:
        """Have a fault happen no more."""
        if cue in self.cues:
            self.cues.remove(cue)
