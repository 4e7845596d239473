"""One group, its processes and every message they ever sent: a run told step by step, each message at will.

A message may be delivered at any time, many times or never. Of all that happened, `facts` keeps what the theorems
speak of.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

from fencepost.model.classic.coordinator.admin import on_delete
from fencepost.model.classic.coordinator.dispatch import absorbed, with_room
from fencepost.model.classic.coordinator.internal_actions import restarted
from fencepost.model.classic.coordinator.state import World
from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import commit, heartbeat, leave
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    CommitAnswer,
    Context,
    CoreAnswer,
    Group,
    HeartbeatRequest,
    JoinAnswer,
    JoinRequest,
    LeaveRequest,
    Output,
    Step,
    SyncAnswer,
    SyncRequest,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.core.timers import expire_join
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import MemberRequest, MemberSettings, MemberStep, PartitionCommit
from fencepost.model.classic.messages.requests import Delete
from fencepost.model.classic.theorems.ghost_state import (
    Accepted,
    JoinAnswered,
    Ledger,
    Process,
    SyncAnswered,
    Written,
    born,
    observed,
    recorded,
)
from fencepost.model.classic.theorems.statements import Statement
from fencepost.model.errors import Error

SLOTS = 4


class Story:
    """A run of a group that consumes some partitions, from its first day."""

    def __init__(self, partitions: int = 1) -> None:
        self.partitions = partitions
        self.world = World(self._new_group())
        self.ledger: Ledger = Written()
        self.processes: dict[int, Process] = {}
        self.facts: list[Any] = []
        self.lines: list[str] = []
        self.outputs: tuple[Output, ...] = ()
        self.now = 0
        self.born = 0

    @staticmethod
    def _new_group() -> Group:
        return Group(slots=(FREE,) * SLOTS)

    @property
    def group(self) -> Group:
        """The group as its coordinator knows it."""
        assert self.world.group is not None
        return self.world.group

    def number(self) -> int:
        """A number never used before, for an id or a handle."""
        self.born += 1
        return self.born

    def start(self, name: int, settings: MemberSettings) -> None:
        """A process starts, or starts again."""
        self.processes[name] = Process(name, members.started(settings, self.partitions))

    def act(self, name: int, handler: Callable[..., MemberStep], *arguments: Any) -> list[MemberRequest]:
        """A member acts or hears; what it sends is on its way from now on."""
        step = handler(self.processes[name].member, *arguments)
        self.processes[name] = Process(name, step.member)
        sent = [one.request for one in step.sent if one.when]
        for request in sent:
            self.ledger = recorded(self.ledger, name, request)
            self.facts.append(request)
        self.lines.append(f"member {name}: {step.rule}")
        return sent

    def arrive(self, request: MemberRequest, **choices: Any) -> list[Any]:
        """A request arrives at the coordinator; the answers are on their way from now on."""
        drawn = self.number()
        context = Context(self.now, Choices(member_id=drawn, **choices))
        core = request.request if isinstance(request, PartitionCommit) else request
        handlers: dict[type, Callable[..., Step]] = {
            JoinRequest: join,
            SyncRequest: sync,
            HeartbeatRequest: heartbeat,
            LeaveRequest: leave,
            PartitionCommit: commit,
        }
        before = with_room(self.group)
        step = handlers[type(request)](before, core, context)
        if isinstance(core, JoinRequest):
            self.ledger = born(self.ledger, before, drawn, core.instance, core.handle)
        if isinstance(request, PartitionCommit) and CommitAnswer(Error.NONE) in [one.answer for one in step.outputs]:
            self.facts.append(Accepted(before, request))
        return self._became(step)

    def wait(self, timer: Callable[..., Step] = expire_join, *slot: int, milliseconds: int = 400_000) -> list[Any]:
        """Time passes, and a timer fires if it is due."""
        self.now += milliseconds
        return self._became(timer(self.group, *slot, Context(self.now)))

    def _became(self, step: Step) -> list[Any]:
        before = self.group
        self.outputs = tuple(one for one in step.outputs if one.when)
        self.world = absorbed(self.world, step, self.now).world
        self.ledger = observed(self.ledger, before, self.group, self.partitions)
        answers = [answered(one.handle, one.answer) for one in self.outputs]
        self.facts += [one for one in answers if one is not None]
        self.lines.append(f"coordinator: {step.rule}, generation {self.group.generation}")
        return [one for one in answers if one is not None]

    def hear(self, name: int, given: JoinAnswered | SyncAnswered, plan: tuple[Any, ...] = ()) -> list[MemberRequest]:
        """An answer arrives at a member."""
        if isinstance(given, JoinAnswered):
            wish = plan or (None,) * self.partitions
            return self.act(name, members.on_join_answer, given.handle, given.answer, self.number(), wish)
        return self.act(name, members.on_sync_answer, given.handle, given.answer, self.number())

    def fail_over(self) -> None:
        """Another coordinator loads the group from the log."""
        outcome = restarted(self.world, Context(self.now))
        self.world = outcome.world
        if self.world.group is None:
            self.world = World(self._new_group())
        self.lines.append(f"fail-over: {outcome.rule}")

    def delete(self) -> None:
        """The empty group is deleted, and a new one of that name comes into being."""
        outcome = on_delete(self.world, Delete("", self.number()))
        assert outcome.world.group is None
        self.world = World(self._new_group())
        self.lines.append(f"deletion: {outcome.rule}")

    def breaches(self, statement: Statement, newest: int = 1_000_000) -> list[tuple[Any, ...]]:
        """For what the statement does not hold, among the newest so many facts."""
        there: dict[type, list[Any]] = {Group: [self.group], Ledger: [self.ledger]}
        there[Process] = list(self.processes.values())
        for fact in self.facts[-newest:]:
            there.setdefault(type(fact), []).append(fact)
        arguments = product(*(there.get(kind, []) for kind in statement.about))
        return [one for one in arguments if not statement.holds(*one)]


def answered(handle: int, answer: CoreAnswer) -> JoinAnswered | SyncAnswered | None:
    """The answer as a fact, if a theorem speaks of it."""
    if isinstance(answer, JoinAnswer):
        return JoinAnswered(handle, answer)
    return SyncAnswered(handle, answer) if isinstance(answer, SyncAnswer) else None
