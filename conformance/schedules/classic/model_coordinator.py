"""The model as a coordinator: what it makes of a schedule foretells what a target will, and which rules that shows.

It takes the place of the bundled coordinator in an `InProcessTarget`, and answers with as much as members learn from.
"""

from collections.abc import Callable, Iterable
from typing import Any

from fencepost.adapters.bundled.classic.log import Log
from fencepost.adapters.bundled.classic.messages import Answer, Request
from fencepost.adapters.bundled.classic.topics import Topics
from fencepost.adapters.in_process import TOPICS
from fencepost.model.classic.coordinator.dispatch import handle
from fencepost.model.classic.coordinator.internal_actions import Due, deadlines, fire, restarted, timers
from fencepost.model.classic.coordinator.state import Cluster, Outcome, World
from fencepost.model.classic.core.state import Choices, Context, JoinAnswer, Silence
from fencepost.model.classic.messages import requests as model
from fencepost.model.classic.messages import responses
from fencepost.model.classic.messages.parsing import read_requests
from fencepost.model.logic import Time
from fencepost.model.settings import Settings

Witness = Callable[[World, model.Request | None, Outcome], None]
"""Is told of every step: the world before it, the request unless it is the coordinator's own, what came of it."""


class Foretelling:
    """Stands for the class of coordinators: called, it is the coordinator that was just started."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.worlds: dict[str, World] = {}
        self.started = False

    def __call__(
        self, settings: Settings, log: Log, new_id: Callable[[str], str], topics: Topics, *, now: int = 0
    ) -> Any:
        """Start, with what was stored before if this is not the first time."""
        self.settings = settings
        self.new_id = new_id
        names = {str(topics.id_of(name)): name for name in TOPICS}
        self.cluster = Cluster(settings, TOPICS, names)
        if self.started:
            for group, world in self.worlds.items():
                self.take(group, world, None, restarted(world, self.context(now)))
        self.started = True
        return self

    def context(self, now: Time, member_id: str | None = None) -> Context:
        """What a step happens in."""
        settings = self.settings
        return Context(
            now,
            Choices(member_id),
            max_group_size=settings.max_group_size,
            initial_rebalance_delay=settings.initial_rebalance_delay,
            new_member_timeout=settings.new_member_timeout,
        )

    def take(self, group: str, before: World, request: model.Request | None, outcome: Outcome) -> list[Answer]:
        """Go on from what came of a step."""
        self.witness(before, request, outcome)
        self.worlds[group] = outcome.world
        return [
            Answer(reply.handle, body(reply.answer))
            for reply in outcome.replies
            if not isinstance(reply.answer, Silence)
        ]

    def handle(self, request: Request, now: int) -> list[Answer]:
        """Handle a request in every group that it concerns."""
        given: dict[int, Answer] = {}
        member_id = self.new_id("member") if request.api == "JoinGroup" else None
        read = read_requests(
            request.api, request.version, request.body, request.handle, tuple(self.worlds), self.cluster.names
        )
        for one in read:
            world = self.worlds.get(one.group, World())
            outcome = handle(world, one, self.context(now, member_id), self.cluster)
            given |= {answer.handle: answer for answer in self.take(one.group, world, one, outcome)}
        if not read:
            given[request.handle] = Answer(request.handle, {"error_code": 0, "producer_id": 1, "producer_epoch": 0})
        return list(given.values())

    def advance(self, now: int) -> list[Answer]:
        """Fire the timers that are due, in the order of their deadlines."""
        given: list[Answer] = []
        while (found := self.first_due()) is not None and found[1].deadline <= now:
            group, due = found
            world = self.worlds[group]
            given += self.take(group, world, None, fire(world, due, self.context(due.deadline)))
        return given

    def first_due(self) -> tuple[str, Due] | None:
        """The group and the timer that come due next."""
        found = ((group, due) for group, world in self.worlds.items() for due in timers(world))
        return min(found, key=lambda one: one[1].deadline, default=None)

    def next_deadline(self) -> int | None:
        """When something comes due next."""
        return min(self.all_deadlines(), default=None)

    def all_deadlines(self) -> Iterable[int]:
        """When each timer is due."""
        return (deadline for world in self.worlds.values() for deadline in deadlines(world))


def body(answer: responses.Answer) -> dict[str, Any]:
    """As much of an answer as members learn from."""
    if isinstance(answer, JoinAnswer):
        rows = [
            {"member_id": view.id, "group_instance_id": view.instance, "metadata": view.metadata}
            for view in answer.members
        ]
        return {
            "error_code": int(answer.error),
            "member_id": answer.member or "",
            "generation_id": answer.generation,
            "protocol_name": answer.protocol,
            "leader": answer.leader or "",
            "members": rows,
        }
    return {"error_code": int(getattr(answer, "error", 0))}
