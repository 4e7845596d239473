"""A model coordinator to talk to: requests in short form, answers by handle, time that passes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.internal_actions import (
    ArmedTimer,
    armed_timers,
    fire_timer,
    restart_coordinator,
)
from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core.state import (
    Choices,
    Context,
    Group,
    HeartbeatRequest,
    JoinRequest,
    LeaveRequest,
    Phase,
    Protocol,
    Slot,
    SyncRequest,
)
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup, Request, Response, SyncGroup
from fencepost.model.errors import Error
from fencepost.model.groups.messages import CommitRequest, Offset, OffsetCommit
from fencepost.model.groups.protocol import Cluster
from fencepost.model.settings import Settings
from tests.support.plain_values import build

ONLY_P = (("p", b"1"),)
P_THEN_Q = (("p", b"1"), ("q", b"2"))
Q_THEN_P = (("q", b"2"), ("p", b"1"))
ONLY_Q = (("q", b"2"),)
SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS, INITIAL_DELAY_MS = 10_000, 20_000, 3_000
SETTINGS = Settings(max_group_size=4)
Handle = Callable[[GroupState, Request, Context, Cluster], StepResult]
Load = Callable[[GroupState, Context], StepResult]


class ModelCoordinatorDriver:
    """One group on a model coordinator. Member ids are `m1`, `m2`, ... in the order they are made up."""

    def __init__(
        self,
        settings: Settings = SETTINGS,
        dialect: Dialect | None = None,
        handle: Handle = handle_request,
        load: Load = restart_coordinator,
    ) -> None:
        self.handle, self.load = handle, load
        self.state = GroupState()
        self.now = 0
        self.cluster = Cluster(settings, {"t": 2})
        self.dialect = dialect or Dialect()
        self.responses: dict[int, Response] = {}
        self.rules: list[str] = []
        self.handles = 0
        self.id_count = 0

    # --- what there is ------------------------------------------------------------------------------------------

    @property
    def group(self) -> Group:
        assert self.state.group is not None
        return self.state.group

    @property
    def phase(self) -> Phase:
        return self.group.phase

    def member(self, name: str) -> Slot:
        (slot,) = (slot for slot in self.group.slots if slot.id == name)
        return slot

    def members(self) -> set[str]:
        return {slot.id for slot in self.group.slots if slot.id is not None}

    def error_of(self, number: int) -> Error | None:
        """The error of an answer, None while the request is parked."""
        response: Any = self.responses.get(number)
        return None if response is None else response.error

    def response_to(self, number: int) -> Any:
        return self.responses[number]

    # --- what happens -------------------------------------------------------------------------------------------

    def context(self, member_id: str | None = None) -> Context:
        settings = self.cluster.settings
        return Context(
            self.now,
            build(Choices, member_id),
            self.dialect,
            settings.max_group_size,
            settings.initial_rebalance_delay,
            settings.new_member_timeout,
        )

    def send(self, request: Request) -> int:
        """Have a request handled; returns its handle."""
        self.id_count += isinstance(request, JoinGroup) and request.core.member is None
        outcome = self.handle(self.state, request, self.context(f"m{self.id_count}"), self.cluster)
        self.state = outcome.state
        self.rules.append(outcome.rule)
        self.responses |= {reply.handle: reply.response for reply in outcome.replies}
        return self.handles

    def armed_timers(self) -> list[ArmedTimer]:
        return sorted(armed_timers(self.state), key=lambda each: each.deadline)

    def wait(self, milliseconds: int) -> None:
        """Let time pass; timers fire at their deadlines."""
        end = self.now + milliseconds
        while (dues := self.armed_timers()) and dues[0].deadline <= end:
            self.now = dues[0].deadline
            outcome = fire_timer(self.state, dues[0], self.context())
            self.state = outcome.state
            self.rules.append(outcome.rule)
            self.responses |= {reply.handle: reply.response for reply in outcome.replies}
        self.now = end

    def restart(self, settings: Settings | None = None) -> None:
        self.cluster = replace(self.cluster, settings=settings or self.cluster.settings)
        outcome = self.load(self.state, self.context())
        self.state = outcome.state
        self.rules.append(outcome.rule)

    def next_handle(self) -> int:
        self.handles += 1
        return self.handles

    # --- requests -----------------------------------------------------------------------------------------------

    def join(
        self,
        member: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = ONLY_P,
        *,
        instance: str | None = None,
        version: int = 9,
        session: int = SESSION_TIMEOUT_MS,
        rebalance: int = REBALANCE_TIMEOUT_MS,
        kind: str | None = "consumer",
        group: str = "g",
    ) -> int:
        offered = tuple(build(Protocol, name, metadata) for name, metadata in protocols)
        core = build(
            JoinRequest,
            self.next_handle(),
            member,
            instance,
            kind,
            offered,
            session,
            rebalance,
            version >= 4,
            version >= 9,
        )
        return self.send(JoinGroup(group, core))

    def sync(
        self,
        member: str | None,
        generation: int,
        given: tuple[tuple[str, bytes], ...] = (),
        *,
        instance: str | None = None,
        kind: str | None = "consumer",
        protocol: str | None = "p",
        complete: bool = True,
        group: str = "g",
    ) -> int:
        core = build(SyncRequest, self.next_handle(), member, instance, generation, kind, protocol, given)
        return self.send(SyncGroup(group, core, complete))

    def heartbeat(self, member: str | None, generation: int, instance: str | None = None, group: str = "g") -> int:
        return self.send(Heartbeat(group, build(HeartbeatRequest, self.next_handle(), member, instance, generation)))

    def leave(self, *entries: tuple[str | None, str | None], group: str = "g") -> int:
        return self.send(LeaveGroup(group, build(LeaveRequest, self.next_handle(), entries)))

    def commit(
        self, member: str | None, generation: int, instance: str | None = None, version: int = 9, topic: str = "t"
    ) -> int:
        core = build(CommitRequest, self.next_handle(), member, instance, generation)
        return self.send(OffsetCommit("g", core, version, (((topic, 0), Offset(7)),)))

    def commit_error(self, number: int) -> Error:
        """The error of the only partition of a commit."""
        (error,) = self.responses[number].errors.values()  # type: ignore[union-attr]
        return error

    # --- situations ---------------------------------------------------------------------------------------------

    def join_new(self, **offer: Any) -> tuple[str, int]:
        """A member that takes both steps, or the one of a static member: its id, and its parked JoinGroup."""
        first = self.join(**offer)
        if self.error_of(first) == Error.MEMBER_ID_REQUIRED:
            return f"m{self.id_count}", self.join(f"m{self.id_count}", **offer)
        return f"m{self.id_count}", first

    def form_generation(self, *offers: dict[str, Any]) -> list[str]:
        """New members in one generation that waits for its leader; the first one leads."""
        names = [self.join_new(**offer)[0] for offer in offers]
        self.wait(2 * INITIAL_DELAY_MS)
        assert self.phase is Phase.COMPLETING and self.group.leader == names[0]
        return names

    def form_stable_group(self, *offers: dict[str, Any]) -> list[str]:
        """New members in one Stable generation; assignments are the ids."""
        names = self.form_generation(*offers)
        self.sync_all(names)
        return names

    def sync_all(self, names: list[str]) -> None:
        """The leader, who comes first, and its followers sync."""
        generation, protocol = self.group.generation, self.group.protocol
        self.sync(names[0], generation, tuple((name, name.encode()) for name in names), protocol=protocol)
        for name in names[1:]:
            self.sync(name, generation, protocol=protocol)
        assert self.phase is Phase.STABLE


def driver_in_phase(phase: Phase, **settings: Any) -> ModelCoordinatorDriver:
    """A group in this phase: leader m1, follower m2 with instance id `i`, generation 1 (Empty: 2, both have left).

    In Preparing a newcomer m3 waits for them.
    """
    desk = ModelCoordinatorDriver(**settings)
    if phase is Phase.COMPLETING:
        desk.form_generation({"protocols": P_THEN_Q}, {"protocols": P_THEN_Q, "instance": "i"})
        return desk
    desk.form_stable_group({"protocols": P_THEN_Q}, {"protocols": P_THEN_Q, "instance": "i"})
    if phase is Phase.EMPTY:
        desk.leave(("m1", None), ("m2", None))
    elif phase is Phase.PREPARING:
        desk.join_new(protocols=P_THEN_Q)
    assert desk.phase is phase
    return desk
