"""The steps of an accepted trace, checked against the kernel of the protocol (`model.classic.kernel.refinement`).

The judge reports every step that it settled on. What the members of a trace do is their own affair: their commits are
taken as sent, and bytes as shares that no other member has. So this is about the coordinator alone. Commits within a
transaction are left out, since no barrier holds them back while an assignment is awaited (coordinator.md 2.12).
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from fencepost.model.classic.core.state import CommitResponse, Group, JoinResponse
from fencepost.model.classic.kernel.refinement import (
    OPAQUE_READER,
    KernelRun,
    begin_kernel_run,
    follow_commit,
    follow_coordinator,
)
from fencepost.model.classic.messages import SyncGroup
from fencepost.model.errors import Error
from fencepost.model.groups.messages import OffsetCommit
from fencepost.traces.judge.search.configuration import FreshId, Path

ACCEPTED = frozenset({"commit.stable", "commit.preparing"})
"""The rules by which a commit with a generation is accepted."""


@dataclass(slots=True)
class KernelCheck:
    """The shadows of the groups in a trace. Raises RefinementError at a step that no action of the kernel explains."""

    runs: dict[str, KernelRun] = field(default_factory=dict)
    groups: dict[str, Group | None] = field(default_factory=dict)
    steps: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    fresh_starts: int = 0
    """How often a shadow had to begin with a group that had a past: after a restart, or at a gap."""

    def __call__(self, group: str, step: Path) -> None:
        """Take one step."""
        if step.start is None or step.outcome is None:
            return
        start, end = step.start.group, step.outcome.state.group
        shadow = self.run_of(group, start)
        self.groups[group] = end
        if step.rule.startswith("load.") or end is None:
            self.runs.pop(group, None)
            return
        self.steps += 1
        self.rules[step.rule] += 1
        responses = [reply.response for reply in step.outcome.replies if isinstance(reply.response, JoinResponse)]
        sender = step.request.core.member if isinstance(step.request, SyncGroup) else None
        shadow = follow_coordinator(shadow, start or Group(), end, responses, sender, OPAQUE_READER)
        if isinstance(step.request, OffsetCommit) and step.rule in ACCEPTED:
            shadow = apply_commit(shadow, step.request)
        self.runs[group] = shadow

    def run_of(self, group: str, start: Group | None) -> KernelRun:
        """The shadow of a group that is like this now."""
        known = self.runs.get(group)
        last = self.groups.get(group)
        if known is not None and last is not None and start is not None:
            known = with_resolved_ids(known, last, start)
            if known is not None:
                return known
        self.fresh_starts += start is not None and start.generation > 0
        return begin_kernel_run(start or Group(), OPAQUE_READER)


def with_resolved_ids(shadow: KernelRun, last: Group, start: Group) -> KernelRun | None:
    """The shadow with ids that have come to light; None if the group is another one."""
    persons = dict(shadow.identities)
    if (last.generation, last.phase) != (start.generation, start.phase):
        return None
    if {slot.id for slot in last.slots} == {slot.id for slot in start.slots}:
        return shadow
    for slot, now in zip(last.slots, start.slots, strict=False):
        if slot.id != now.id:
            if not isinstance(slot.id, FreshId):
                return None
            persons[now.id] = shadow.identity_of(slot.id)
    return replace(shadow, identities=persons)


def apply_commit(shadow: KernelRun, request: OffsetCommit) -> KernelRun:
    """The shadow after a commit was accepted that its sender was free to send."""
    sender, generation = shadow.identity_of(request.core.member), request.core.generation
    sent = replace(shadow, kernel=replace(shadow.kernel, sent=shadow.kernel.sent.plus(sender, generation, sender)))
    return follow_commit(sent, request.core, CommitResponse(Error.NONE), (sender,))
