"""Simulation of a schedule on the model while it is drawn: the actors' knowledge and the group's members."""

from collections.abc import Callable
from dataclasses import replace

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import TraceBuilder
from fencepost.adapters.virtual_clock import VirtualClock
from fencepost.conformance.classic.schedules.interpreter import ScheduleInterpreter
from fencepost.conformance.classic.schedules.model_coordinator import ModelCoordinator, StepObserver
from fencepost.conformance.classic.schedules.moves.cast import MemberRole
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.schedule import Move
from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import Phase
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Event, Kind

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
