"""Coordinators with a flaw, made by changing what a sound one answers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.bundled.classic.coordinator import Coordinator
from fencepost.adapters.bundled.classic.messages import Answer, Request
from fencepost.adapters.in_process import InProcessTarget
from fencepost.model.settings import Settings

Change = Callable[[Request, Answer], Answer | None]


def flawed(change: Change) -> type[Coordinator]:
    """A coordinator whose answers go through `change`, which may leave one out."""

    class Flawed(Coordinator):
        def __init__(self, *given: Any, **named: Any) -> None:
            self.asked: dict[int, Request] = {}
            super().__init__(*given, **named)

        def handle(self, request: Request, now: int) -> list[Answer]:
            self.asked[request.handle] = request
            return self.changed(super().handle(request, now))

        def advance(self, now: int) -> list[Answer]:
            return self.changed(super().advance(now))

        def changed(self, answers: list[Answer]) -> list[Answer]:
            found = (change(self.asked[answer.handle], answer) for answer in answers)
            return [answer for answer in found if answer is not None]

    return Flawed


def error_instead(api: str, wrong: int, right: int) -> Change:
    """One error of an API in the place of another."""

    def change(request: Request, answer: Answer) -> Answer:
        if request.api == api and answer.body["error_code"] == right:
            return replace(answer, body={**answer.body, "error_code": wrong})
        return answer

    return change


def silent(api: str) -> Change:
    """No answer to an API."""
    return lambda request, answer: None if request.api == api else answer


def install(patch: pytest.MonkeyPatch, coordinator: type[Coordinator], **settings: int) -> None:
    """Put a coordinator in the place of the bundled one, with some settings of its own."""

    def target(given: Settings) -> InProcessTarget:
        return InProcessTarget(replace(given, **settings), make_coordinator=coordinator)

    patch.setattr("fencepost.conformance.run.bundled.InProcessTarget", target)
    patch.setattr("fencepost.conformance.run.replay.InProcessTarget", target)


FORGIVING = flawed(error_instead("Heartbeat", 0, 22))
"""Wrong generations are as good as right ones (HB-04)."""
STRICT = flawed(error_instead("Heartbeat", 22, 0))
"""No generation is right (HB-05)."""
DEAF = flawed(silent("Heartbeat"))


class Hasty(Coordinator):
    """Followers are answered before the leader has assigned anything (SYNC-10)."""

    def handle(self, request: Request, now: int) -> list[Answer]:
        answers = super().handle(request, now)
        if request.api == "SyncGroup" and all(answer.handle != request.handle for answer in answers):
            body = {"error_code": 0, "protocol_type": "consumer", "protocol_name": "range", "assignment": b"too early"}
            answers.append(Answer(request.handle, {"throttle_time_ms": 0, **body}))
        return answers
