"""A scripted run: one group, its processes and every message they ever sent, driven step by step.

A message may be delivered at any time, many times or never. Of all that happened, `facts` keeps what the theorems
speak of.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

from fencepost.model.classic.coordinator.dispatch import apply_core_step, takes_slot, with_free_slot
from fencepost.model.classic.coordinator.group_protocol import CLASSIC_GROUP
from fencepost.model.classic.coordinator.internal_actions import restart_coordinator
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import commit, heartbeat, leave
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    CommitResponse,
    Context,
    CoreResponse,
    Group,
    HeartbeatRequest,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    Output,
    Step,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.core.timers import expire_join
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import MemberRequest, MemberSettings, MemberStep, PartitionCommit
from fencepost.model.classic.theorems.ghost_state import (
    CommitAccepted,
    ConcreteGhostState,
    GhostState,
    JoinResponseSent,
    Process,
    SyncResponseSent,
    record_coordinator_step,
    record_new_id,
    record_request,
)
from fencepost.model.errors import Error
from fencepost.model.groups.admin import on_delete
from fencepost.model.groups.messages import DeleteGroup
from fencepost.model.sorts import Handle, HandleNumber, numbered_id
from fencepost.model.statement import Statement

SLOT_COUNT = 4


class ScriptedRun:
    """A run of a group that consumes some partitions, from its first day."""

    def __init__(self, partitions: int = 1, dialect: Dialect | None = None) -> None:
        self.partitions = partitions
        self.dialect = dialect or Dialect()
        self.state = GroupState(self._new_group())
        self.ghost: GhostState = ConcreteGhostState()
        self.processes: dict[int, Process] = {}
        self.facts: list[Any] = []
        self.log: list[str] = []
        self.outputs: tuple[Output, ...] = ()
        self.now = 0
        self.last_number = 0

    @staticmethod
    def _new_group() -> Group:
        return Group(slots=(FREE,) * SLOT_COUNT)

    @property
    def group(self) -> Group:
        """The group as its coordinator knows it."""
        assert self.state.group is not None
        return self.state.group

    def next_number(self) -> HandleNumber:
        """A number never used before, for an id or a handle."""
        self.last_number += 1
        return HandleNumber(self.last_number)

    def start_process(self, name: int, settings: MemberSettings) -> None:
        """A process starts, or starts again."""
        self.processes[name] = Process(name, members.new_member(settings, self.partitions))

    def step_member(self, name: int, handler: Callable[..., MemberStep], *arguments: Any) -> list[MemberRequest]:
        """A member acts or hears; what it sends is on its way from now on."""
        step = handler(self.processes[name].member, *arguments)
        self.processes[name] = Process(name, step.member)
        sent = [one.request for one in step.sent_requests if one.when]
        for request in sent:
            self.ghost = record_request(self.ghost, name, request)
            self.facts.append(request)
        self.log.append(f"member {name}: {step.rule}")
        return sent

    def deliver_request(self, request: MemberRequest, **choices: Any) -> list[Any]:
        """A request arrives at the coordinator; the answers are on their way from now on."""
        drawn = numbered_id(self.next_number())
        context = Context(self.now, Choices(member_id=drawn, **choices), self.dialect)
        core = request.request if isinstance(request, PartitionCommit) else request
        handlers: dict[type, Callable[..., Step]] = {
            JoinRequest: join,
            SyncRequest: sync,
            HeartbeatRequest: heartbeat,
            LeaveRequest: leave,
            PartitionCommit: commit,
        }
        before = with_free_slot(self.group) if takes_slot(core) else self.group
        step = handlers[type(request)](before, core, context)
        if isinstance(core, JoinRequest):
            self.ghost = record_new_id(self.ghost, before, drawn, core.instance, core.handle)
        if isinstance(request, PartitionCommit) and CommitResponse(Error.NONE) in [
            one.response for one in step.outputs
        ]:
            self.facts.append(CommitAccepted(before, request))
        return self._apply_step(step)

    def fire_after(
        self, timer: Callable[..., Step] = expire_join, *slot: int, milliseconds: int = 400_000
    ) -> list[Any]:
        """Time passes, and a timer fires if it is due."""
        self.now += milliseconds
        return self._apply_step(timer(self.group, *slot, self._context()))

    def _context(self) -> Context:
        return Context(self.now, dialect=self.dialect)

    def _apply_step(self, step: Step) -> list[Any]:
        before = self.group
        self.outputs = tuple(one for one in step.outputs if one.when)
        self.state = apply_core_step(self.state, step, self._context()).state
        self.ghost = record_coordinator_step(self.ghost, before, self.group, self.partitions)
        responses = [response_fact(one.handle, one.response) for one in self.outputs]
        self.facts += [one for one in responses if one is not None]
        self.log.append(f"coordinator: {step.rule}, generation {self.group.generation}")
        return [one for one in responses if one is not None]

    def deliver_response(
        self, name: int, given: JoinResponseSent | SyncResponseSent, plan: tuple[Any, ...] = ()
    ) -> list[MemberRequest]:
        """An answer arrives at a member."""
        if isinstance(given, JoinResponseSent):
            wish = plan or (None,) * self.partitions
            return self.step_member(
                name, members.on_join_response, given.handle, given.response, self.next_number(), wish
            )
        return self.step_member(name, members.on_sync_response, given.handle, given.response, self.next_number())

    def fail_over(self) -> None:
        """Another coordinator loads the group from the log."""
        outcome = restart_coordinator(self.state, self._context())
        self.state = outcome.state
        if self.state.group is None:
            self.state = GroupState(self._new_group())
        self.log.append(f"fail-over: {outcome.rule}")

    def delete_group(self) -> None:
        """The empty group is deleted, and a new one of that name comes into being."""
        deleted, _, rule = on_delete(self.state, DeleteGroup("", self.next_number()), CLASSIC_GROUP)
        assert deleted.group is None
        self.state = GroupState(self._new_group())
        self.log.append(f"deletion: {rule}")

    def violations_of(self, statement: Statement, newest: int = 1_000_000) -> list[tuple[Any, ...]]:
        """For what the statement does not hold, among the newest so many facts."""
        there: dict[type, list[Any]] = {Group: [self.group], GhostState: [self.ghost]}
        there[Process] = list(self.processes.values())
        for fact in self.facts[-newest:]:
            there.setdefault(type(fact), []).append(fact)
        arguments = product(*(there.get(kind, []) for kind in statement.subjects))
        return [one for one in arguments if not statement.holds(*one)]


def response_fact(handle: Handle, response: CoreResponse) -> JoinResponseSent | SyncResponseSent | None:
    """The answer as a fact, if a theorem speaks of it."""
    if isinstance(response, JoinResponse):
        return JoinResponseSent(handle, response)
    return SyncResponseSent(handle, response) if isinstance(response, SyncResponse) else None
