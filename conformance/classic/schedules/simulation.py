"""Simulation of a schedule on the model while it is drawn: the actors' knowledge and the group's members."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fencepost.adapters.classic.log import Log
from fencepost.adapters.in_process import DEFAULT_TOPICS, InProcessTarget
from fencepost.adapters.serve.coordination import Request, Response, Topics
from fencepost.adapters.target import TraceBuilder
from fencepost.adapters.virtual_clock import VirtualClock
from fencepost.conformance.classic.schedules.cast import MemberRole
from fencepost.conformance.classic.schedules.moves import ScheduleInterpreter
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.schedule import Move
from fencepost.model.classic import messages as model
from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.internal_actions import (
    ArmedTimer,
    armed_deadlines,
    armed_timers,
    fire_timer,
    restart_coordinator,
)
from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import Choices, Context, JoinResponse, NoResponse, Phase
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import read_requests
from fencepost.model.groups.messages import InitProducerId
from fencepost.model.groups.protocol import Cluster
from fencepost.model.logic import Time
from fencepost.model.settings import Settings
from fencepost.model.sorts import MemberId
from fencepost.traces.events import Body, Event, Kind

# --- The model as a coordinator, for simulations: it predicts the responses of a target and the rules that apply.
#
# It takes the place of the bundled coordinator in an `InProcessTarget`. Responses have the fields that members read.

StepObserver = Callable[[GroupState, model.Request | None, StepResult], None]
"""Called for every step with the state before it, the request (None for a step of the coordinator's own) and the
result."""


class ModelCoordinator:
    """Takes the place of the coordinator's class: each call is a start of the coordinator, and returns it."""

    def __init__(self, observer: StepObserver) -> None:
        self.observer = observer
        self.group_states: dict[str, GroupState] = {}
        self.producers: dict[str, tuple[int, int]] = {}
        """Producer id and epoch by transactional id."""
        self.started = False

    def __call__(
        self, settings: Settings, log: Log, new_id: Callable[[str], str], topics: Topics, *, now: int = 0
    ) -> Any:
        """Start, or restart with the stored state of each group."""
        self.settings = settings
        self.new_id = new_id
        names = {str(topics.id_of(name)): name for name in DEFAULT_TOPICS}
        self.cluster = Cluster(settings, DEFAULT_TOPICS, names)
        if self.started:
            for group, state in self.group_states.items():
                self.apply_result(group, state, None, restart_coordinator(state, self.step_context(now)))
        self.started = True
        return self

    def step_context(self, now: Time, member_id: str | None = None) -> Context:
        """The context of a step at this time, with the member id to hand out."""
        settings = self.settings
        return Context(
            now,
            Choices(None if member_id is None else MemberId(member_id)),
            Dialect(),
            max_group_size=settings.max_group_size,
            initial_rebalance_delay=settings.initial_rebalance_delay,
            new_member_timeout=settings.new_member_timeout,
        )

    def apply_result(
        self, group: str, before: GroupState, request: model.Request | None, result: StepResult
    ) -> list[Response]:
        """Take over the state after a step, and return its responses."""
        self.observer(before, request, result)
        self.group_states[group] = result.state
        return [
            Response(reply.handle, response_body(reply.response))
            for reply in result.replies
            if not isinstance(reply.response, NoResponse)
        ]

    def handle(self, request: Request, now: int) -> list[Response]:
        """Handle a request in every group that it is about, and return the responses."""
        if request.api == "InitProducerId":
            return [self.initialize_producer(request, now)]
        given: dict[int, Response] = {}
        member_id = self.new_id("member") if request.api == "JoinGroup" else None
        read = read_requests(
            request.api, request.version, request.body, request.handle, tuple(self.group_states), self.cluster.names
        )
        for one in read:
            state = self.group_states.get(one.group, GroupState())
            result = handle_request(state, one, self.step_context(now, member_id), self.cluster)
            given |= {response.handle: response for response in self.apply_result(one.group, state, one, result)}
        if not read:
            given[request.handle] = Response(request.handle, {"error_code": 0})
        return list(given.values())

    def initialize_producer(self, request: Request, now: int) -> Response:
        """Give a transactional id its producer id with the next epoch, and tell the groups that know the producer."""
        name = request.body["transactional_id"]
        producer, epoch = self.producers.get(name, (len(self.producers) + 1, -1))
        self.producers[name] = producer, epoch + 1
        for group, state in self.group_states.items():
            if producer in state.epochs:
                begin = InitProducerId(group, request.handle, producer, epoch + 1)
                result = handle_request(state, begin, self.step_context(now), self.cluster)
                self.apply_result(group, state, begin, result)
        fields = {"error_code": 0, "producer_id": producer, "producer_epoch": epoch + 1}
        return Response(request.handle, fields)

    def advance(self, now: int) -> list[Response]:
        """Fire the timers that are due by `now`, in the order of their deadlines, and return the responses."""
        given: list[Response] = []
        while (found := self.next_due()) is not None and found[1].deadline <= now:
            group, due = found
            state = self.group_states[group]
            given += self.apply_result(group, state, None, fire_timer(state, due, self.step_context(due.deadline)))
        return given

    def next_due(self) -> tuple[str, ArmedTimer] | None:
        """The timer with the first deadline, and its group; None without timers."""
        found = ((group, due) for group, state in self.group_states.items() for due in armed_timers(state))
        return min(found, key=lambda one: one[1].deadline, default=None)

    def next_deadline(self) -> int | None:
        """The first deadline of all timers; None without timers."""
        deadlines = (deadline for state in self.group_states.values() for deadline in armed_deadlines(state))
        return min(deadlines, default=None)


def response_body(response: model.Response) -> dict[str, Any]:
    """The fields of a response that members read."""
    if isinstance(response, JoinResponse):
        rows = [
            {"member_id": view.id, "group_instance_id": view.instance, "metadata": view.metadata}
            for view in response.members
        ]
        return {
            "error_code": int(response.error),
            "member_id": response.member or "",
            "generation_id": response.generation,
            "protocol_name": response.protocol,
            "leader": response.leader or "",
            "members": rows,
        }
    return {"error_code": int(getattr(response, "error", 0))}


GROUP = "group"


SentRequest = tuple[str, str]
"""The API of a request, and the label of its sender ("" for none)."""


class NullRecorder(TraceBuilder):
    """Keeps no events, but which requests were sent."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__(now)
        self.sent: list[SentRequest] = []

    def record(
        self,
        kind: Kind,
        api: str,
        version: int,
        body: Body,
        *,
        connection: int = 0,
        member: str = "",
        of: int | None = None,
    ) -> Event:
        """The event, which is not kept."""
        if kind is Kind.REQUEST:
            self.sent.append((api, member))
        return Event(0, self.now(), connection, member, kind, api, version, body, of)


class Simulation:
    """A schedule at play on the model.

    If the target is not `virtual`, waits are limited as on real time; `grace` (milliseconds) is added to waits.
    """

    def __init__(
        self,
        roles: tuple[MemberRole, ...],
        settings: Settings,
        observer: StepObserver,
        *,
        grace: int = 0,
        virtual: bool = True,
    ) -> None:
        self.roles = roles
        self.restart_at = 0
        """The time of the first restart of the target in milliseconds; 0 without one."""
        self.clock = VirtualClock()
        self.coordinator = ModelCoordinator(observer)
        target = InProcessTarget(settings, make_coordinator=self.coordinator)
        description = self.clock.run_until_complete(target.open())
        self.recorder = NullRecorder(lambda: self.clock.milliseconds)
        if not virtual:
            description = replace(description, clock="wall")
        context = ScenarioContext(
            description, target.channel(self.recorder), self.recorder, GROUP, grace=grace, restart=target.restart
        )
        self.interpreter = ScheduleInterpreter(context, roles)
        self.cast = self.interpreter.cast

    def make_move(self, move: Move) -> None:
        """Make one move."""
        if move.kind == "restart" and not self.restart_at:
            self.restart_at = max(1, self.clock.milliseconds)
        self.clock.run_until_complete(self.interpreter.make_move(move))

    @property
    def duration(self) -> int:
        """The duration so far, in milliseconds."""
        return self.clock.milliseconds

    def close(self) -> None:
        """Close the event loop."""
        self.clock.close()

    def has_id(self, who: int) -> bool:
        """The actor has a member id."""
        return bool(self.cast.actors[who].member.id)

    def is_joining(self, who: int) -> bool:
        """The actor waits for a response to JoinGroup."""
        return who in self.cast.joining_since

    def is_leader(self, who: int) -> bool:
        """The actor knows that it leads."""
        return self.cast.actors[who].member.is_leader

    def is_member(self, who: int) -> bool:
        """The actor is in its group."""
        actor = self.cast.actors[who]
        return actor.member.id in self.member_ids(actor.context.group_id)

    def members(self, group: int) -> list[int]:
        """The actors in the group with this number."""
        ids = self.member_ids(self.cast.contexts[group].group_id)
        actors = enumerate(self.cast.actors)
        return [number for number, actor in actors if actor.group == group and actor.member.id in ids]

    def is_stable(self, group: int) -> bool:
        """The group with this number is Stable."""
        state = self.coordinator.group_states.get(self.cast.contexts[group].group_id)
        return state is not None and state.group is not None and state.group.phase is Phase.STABLE

    def member_ids(self, group_id: str) -> frozenset[object]:
        """The ids of a group's members on the model."""
        state = self.coordinator.group_states.get(group_id)
        if state is None or state.group is None:
            return frozenset()
        return frozenset(slot.id for slot in state.group.slots if is_member(slot))

    def open_transactions(self) -> list[int]:
        """The producers that have a transaction open, by number."""
        return sorted(number for number, each in self.cast.transactions.items() if each.groups)
