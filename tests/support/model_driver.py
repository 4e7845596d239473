"""A model coordinator to talk to: requests in short form, answers by handle, time that passes."""

from dataclasses import replace
from typing import Any

from fencepost.model.classic.coordinator.dispatch import handle
from fencepost.model.classic.coordinator.internal_actions import Due, fire, restarted, timers
from fencepost.model.classic.coordinator.state import Cluster, World
from fencepost.model.classic.core.state import (
    Choices,
    CommitRequest,
    Context,
    Dialect,
    Group,
    HeartbeatRequest,
    JoinRequest,
    LeaveRequest,
    Phase,
    Protocol,
    Slot,
    SyncRequest,
)
from fencepost.model.classic.messages.requests import Commit, Heartbeat, Join, Leave, Offset, Request, Sync
from fencepost.model.classic.messages.responses import Answer
from fencepost.model.errors import Error
from fencepost.model.settings import Settings

P = (("p", b"1"),)
PQ = (("p", b"1"), ("q", b"2"))
QP = (("q", b"2"), ("p", b"1"))
Q = (("q", b"2"),)
SESSION, REBALANCE, DELAY = 10_000, 20_000, 3_000
SETTINGS = Settings(max_group_size=4)


class Desk:
    """One group on a model coordinator. Member ids are `m1`, `m2`, ... in the order they are made up."""

    def __init__(self, settings: Settings = SETTINGS, dialect: Dialect | None = None) -> None:
        self.world = World()
        self.now = 0
        self.cluster = Cluster(settings, {"t": 2})
        self.dialect = dialect or Dialect()
        self.answers: dict[int, Answer] = {}
        self.rules: list[str] = []
        self.handles = 0
        self.made = 0

    # --- what there is ------------------------------------------------------------------------------------------

    @property
    def group(self) -> Group:
        assert self.world.group is not None
        return self.world.group

    @property
    def phase(self) -> Phase:
        return self.group.phase

    def member(self, name: str) -> Slot:
        (slot,) = (slot for slot in self.group.slots if slot.id == name)
        return slot

    def members(self) -> set[str]:
        return {slot.id for slot in self.group.slots if slot.id is not None}

    def error(self, number: int) -> Error | None:
        """The error of an answer, None while the request is parked."""
        answer: Any = self.answers.get(number)
        return None if answer is None else answer.error

    def answer(self, number: int) -> Any:
        return self.answers[number]

    # --- what happens -------------------------------------------------------------------------------------------

    def context(self, member_id: str | None = None) -> Context:
        settings = self.cluster.settings
        return Context(
            self.now,
            Choices(member_id),
            self.dialect,
            settings.max_group_size,
            settings.initial_rebalance_delay,
            settings.new_member_timeout,
        )

    def ask(self, request: Request) -> int:
        """Have a request handled; returns its handle."""
        self.made += isinstance(request, Join) and request.core.member is None
        outcome = handle(self.world, request, self.context(f"m{self.made}"), self.cluster)
        self.world = outcome.world
        self.rules.append(outcome.rule)
        self.answers |= {reply.handle: reply.answer for reply in outcome.replies}
        return self.handles

    def due(self) -> list[Due]:
        return sorted(timers(self.world), key=lambda each: each.deadline)

    def wait(self, milliseconds: int) -> None:
        """Let time pass; timers fire at their deadlines."""
        end = self.now + milliseconds
        while (dues := self.due()) and dues[0].deadline <= end:
            self.now = dues[0].deadline
            outcome = fire(self.world, dues[0], self.context())
            self.world = outcome.world
            self.rules.append(outcome.rule)
            self.answers |= {reply.handle: reply.answer for reply in outcome.replies}
        self.now = end

    def restart(self, settings: Settings | None = None) -> None:
        self.cluster = replace(self.cluster, settings=settings or self.cluster.settings)
        outcome = restarted(self.world, self.context())
        self.world = outcome.world
        self.rules.append(outcome.rule)

    def handle(self) -> int:
        self.handles += 1
        return self.handles

    # --- requests -----------------------------------------------------------------------------------------------

    def join(
        self,
        member: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = P,
        *,
        instance: str | None = None,
        version: int = 9,
        session: int = SESSION,
        rebalance: int = REBALANCE,
        kind: str | None = "consumer",
        group: str = "g",
    ) -> int:
        offered = tuple(Protocol(name, metadata) for name, metadata in protocols)
        core = JoinRequest(
            self.handle(), member, instance, kind, offered, session, rebalance, version >= 4, version >= 9
        )
        return self.ask(Join(group, core))

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
        core = SyncRequest(self.handle(), member, instance, generation, kind, protocol, given)
        return self.ask(Sync(group, core, complete))

    def beat(self, member: str | None, generation: int, instance: str | None = None, group: str = "g") -> int:
        return self.ask(Heartbeat(group, HeartbeatRequest(self.handle(), member, instance, generation)))

    def leave(self, *entries: tuple[str | None, str | None], group: str = "g") -> int:
        return self.ask(Leave(group, LeaveRequest(self.handle(), entries)))

    def commit(
        self, member: str | None, generation: int, instance: str | None = None, version: int = 9, topic: str = "t"
    ) -> int:
        core = CommitRequest(self.handle(), member, instance, generation)
        return self.ask(Commit("g", core, version, (((topic, 0), Offset(7)),)))

    def commit_error(self, number: int) -> Error:
        """The error of the only partition of a commit."""
        (error,) = self.answers[number].errors.values()  # type: ignore[union-attr]
        return error

    # --- situations ---------------------------------------------------------------------------------------------

    def newcomer(self, **offer: Any) -> tuple[str, int]:
        """A member that takes both steps, or the one of a static member: its id, and its parked JoinGroup."""
        first = self.join(**offer)
        if self.error(first) == Error.MEMBER_ID_REQUIRED:
            return f"m{self.made}", self.join(f"m{self.made}", **offer)
        return f"m{self.made}", first

    def completing(self, *offers: dict[str, Any]) -> list[str]:
        """New members in one generation that waits for its leader; the first one leads."""
        names = [self.newcomer(**offer)[0] for offer in offers]
        self.wait(2 * DELAY)
        assert self.phase is Phase.COMPLETING and self.group.leader == names[0]
        return names

    def stable(self, *offers: dict[str, Any]) -> list[str]:
        """New members in one Stable generation; assignments are the ids."""
        names = self.completing(*offers)
        self.settle(names)
        return names

    def settle(self, names: list[str]) -> None:
        """The leader, who comes first, and its followers sync."""
        generation, protocol = self.group.generation, self.group.protocol
        self.sync(names[0], generation, tuple((name, name.encode()) for name in names), protocol=protocol)
        for name in names[1:]:
            self.sync(name, generation, protocol=protocol)
        assert self.phase is Phase.STABLE


def desk_in(phase: Phase, **settings: Any) -> Desk:
    """A group in this phase: leader m1, follower m2 with instance id `i`, generation 1 (Empty: 2, both have left).

    In Preparing a newcomer m3 waits for them.
    """
    desk = Desk(**settings)
    if phase is Phase.COMPLETING:
        desk.completing({"protocols": PQ}, {"protocols": PQ, "instance": "i"})
        return desk
    desk.stable({"protocols": PQ}, {"protocols": PQ, "instance": "i"})
    if phase is Phase.EMPTY:
        desk.leave(("m1", None), ("m2", None))
    elif phase is Phase.PREPARING:
        desk.newcomer(protocols=PQ)
    assert desk.phase is phase
    return desk
