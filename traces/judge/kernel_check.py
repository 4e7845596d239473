"""What an accepted trace went through, held against the kernel of the protocol (`model.classic.kernel.refinement`).

The judge tells of every step that it settled on. What the members of a trace do is their own affair: their commits
are taken as sent, and bytes as shares that nobody else has. So this is about the coordinator alone. Commits within a
transaction are left out, since no barrier holds them back while an assignment is awaited (coordinator.md 2.12).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from fencepost.model.classic.core.state import CommitAnswer, Group, JoinAnswer
from fencepost.model.classic.kernel.refinement import SHARES, Shadow, begun, coordinated, judged
from fencepost.model.classic.messages.requests import Commit, Sync
from fencepost.model.errors import Error
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.classic.matching import Fresh
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.search.configuration import Trail

ACCEPTED = frozenset({"commit.stable", "commit.preparing"})
"""The rules by which a commit with a generation is accepted."""


@dataclass(slots=True)
class Shadowed:
    """The shadows of the groups in a trace. Raises NotRefined at a step that no action of the kernel explains."""

    shadows: dict[str, Shadow] = field(default_factory=dict)
    groups: dict[str, Group | None] = field(default_factory=dict)
    steps: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    begun: int = 0
    """How often a shadow had to begin with a group that had a past: after a restart, or at a gap."""

    def __call__(self, group: str, step: Trail) -> None:
        """Take one step."""
        if step.start is None or step.outcome is None:
            return
        start, end = step.start.group, step.outcome.world.group
        shadow = self.shadow(group, start)
        self.groups[group] = end
        if step.rule.startswith("load.") or end is None:
            self.shadows.pop(group, None)
            return
        self.steps += 1
        self.rules[step.rule] += 1
        answers = [reply.answer for reply in step.outcome.replies if isinstance(reply.answer, JoinAnswer)]
        sender = step.request.core.member if isinstance(step.request, Sync) else None
        shadow = coordinated(shadow, start or Group(), end, answers, sender, SHARES)
        if isinstance(step.request, Commit) and step.rule in ACCEPTED:
            shadow = committed(shadow, step.request)
        self.shadows[group] = shadow

    def shadow(self, group: str, start: Group | None) -> Shadow:
        """The shadow of a group that is like this now."""
        known = self.shadows.get(group)
        last = self.groups.get(group)
        if known is not None and last is not None and start is not None:
            known = renamed(known, last, start)
            if known is not None:
                return known
        self.begun += start is not None and start.generation > 0
        return begun(start or Group(), SHARES)


def renamed(shadow: Shadow, last: Group, start: Group) -> Shadow | None:
    """The shadow with ids that have come to light; None if the group is another one."""
    persons = dict(shadow.persons)
    if (last.generation, last.phase) != (start.generation, start.phase):
        return None
    if {slot.id for slot in last.slots} == {slot.id for slot in start.slots}:
        return shadow
    for slot, now in zip(last.slots, start.slots, strict=False):
        if slot.id != now.id:
            if not isinstance(slot.id, Fresh):
                return None
            persons[now.id] = shadow.person(slot.id)
    return replace(shadow, persons=persons)


def committed(shadow: Shadow, request: Commit) -> Shadow:
    """The shadow after a commit was accepted that its sender was free to send."""
    sender, generation = shadow.person(request.core.member), request.core.generation
    sent = replace(shadow, kernel=replace(shadow.kernel, sent=shadow.kernel.sent.plus(sender, generation, sender)))
    return judged(sent, request.core, CommitAnswer(Error.NONE), (sender,))


def refined(header: Header, events: Iterable[Event]) -> Shadowed:
    """The shadows of a trace, as far as the judge could follow it. Raises NotRefined."""
    judge, shadowed = Judge(header), Shadowed()
    judge.witness = shadowed
    judge.read(events)
    return shadowed
