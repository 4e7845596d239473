"""Faulty coordinators, made by altering the responses of the bundled one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.group import Group
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.model.settings import Settings

Change = Callable[[Request, Response], Response | None]


def altering_coordinator(change: Change) -> type[Coordinator]:
    """A coordinator whose answers go through `change`, which may leave one out."""

    class AlteringCoordinator(Coordinator):
        def __init__(self, *given: Any, **named: Any) -> None:
            self.requests: dict[int, Request] = {}
            super().__init__(*given, **named)

        def handle(self, request: Request, now: int) -> list[Response]:
            self.requests[request.handle] = request
            return self.alter_responses(super().handle(request, now))

        def advance(self, now: int) -> list[Response]:
            return self.alter_responses(super().advance(now))

        def alter_responses(self, responses: list[Response]) -> list[Response]:
            found = (change(self.requests[response.handle], response) for response in responses)
            return [response for response in found if response is not None]

    return AlteringCoordinator


def replace_error(api: str, wrong: int, right: int) -> Change:
    """One error of an API in the place of another."""

    def change(request: Request, response: Response) -> Response:
        if request.api == api and response.body["error_code"] == right:
            return replace(response, body={**response.body, "error_code": wrong})
        return response

    return change


def drop_responses(api: str) -> Change:
    """No answer to an API."""
    return lambda request, response: None if request.api == api else response


def install(patch: pytest.MonkeyPatch, coordinator: type[Coordinator], **settings: int) -> None:
    """Put a coordinator in the place of the bundled one, with some settings of its own."""

    def target(given: Settings) -> InProcessTarget:
        return InProcessTarget(replace(given, **settings), make_coordinator=coordinator)

    patch.setattr("fencepost.conformance.run.bundled.InProcessTarget", target)
    patch.setattr("fencepost.conformance.run.replay.InProcessTarget", target)


FORGIVING = altering_coordinator(replace_error("Heartbeat", 0, 22))
"""Wrong generations are as good as right ones (HB-04)."""
STRICT = altering_coordinator(replace_error("Heartbeat", 22, 0))
"""No generation is right (HB-05)."""
SILENT_ON_HEARTBEAT = altering_coordinator(drop_responses("Heartbeat"))


class EagerSyncCoordinator(Coordinator):
    """Followers are answered before the leader has assigned anything (SYNC-10)."""

    def handle(self, request: Request, now: int) -> list[Response]:
        responses = super().handle(request, now)
        if request.api == "SyncGroup" and all(response.handle != request.handle for response in responses):
            body: dict[str, Any] = {"error_code": 0, "assignment": b"too early"}
            if request.version >= 1:
                body["throttle_time_ms"] = 0
            if request.version >= 5:
                body |= {"protocol_type": "consumer", "protocol_name": "range"}
            responses.append(Response(request.handle, body))
        return responses


def withhold_parked_responses(api: str) -> type[Coordinator]:
    """A coordinator that never responds to a request of an API once it has parked it."""

    class WithholdingCoordinator(Coordinator):
        def __init__(self, *given: Any, **named: Any) -> None:
            self.apis: dict[int, str] = {}
            super().__init__(*given, **named)

        def handle(self, request: Request, now: int) -> list[Response]:
            self.apis[request.handle] = request.api
            return self.without_parked(super().handle(request, now), request.handle)

        def advance(self, now: int) -> list[Response]:
            return self.without_parked(super().advance(now))

        def without_parked(self, responses: list[Response], immediate: int = 0) -> list[Response]:
            return [each for each in responses if each.handle == immediate or self.apis[each.handle] != api]

    return WithholdingCoordinator


NEVER_ENDS_JOIN_PHASE = withhold_parked_responses("JoinGroup")
NEVER_HANDS_OUT_ASSIGNMENTS = withhold_parked_responses("SyncGroup")
"""Followers wait for ever (SYNC-10)."""
LATE_FACTOR = 10


def install_late_rebalance_timeout(patch: pytest.MonkeyPatch) -> None:
    """Have the bundled coordinator wait ten times as long as the rebalance timeout (JOIN-44)."""

    def start_join_timer(rounds: Rebalancer, group: Group) -> None:
        group_id, deadline = group.group_id, rounds._runtime.now + LATE_FACTOR * group.rebalance_timeout
        rounds._runtime.timers.arm(("join", group_id), deadline, lambda: rounds.on_join_timer(group_id))

    patch.setattr(Rebalancer, "start_join_timer", start_join_timer)
