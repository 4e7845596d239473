"""Which groups of a trace existed before, and which of them were seen to be gone since.

A first generation is that of a new group. Whether a group that existed before is a new one may be no more than a guess
of the search, made to explain another response.
"""

from dataclasses import dataclass, field, replace

from fencepost.model.errors import Error
from fencepost.traces.events import Operation
from fencepost.traces.verdict import Violation

FIRST_GENERATION = ("GEN-01",)
RECREATED_GROUP = ("GEN-13",)
LIFETIME_APIS = frozenset({"JoinGroup", "DeleteGroups", "DescribeGroups"})
"""Requests whose responses tell that a group exists or is gone."""


@dataclass(slots=True)
class GroupLifetimes:
    """The groups that had a generation, and those of them that a response has shown to be gone since."""

    existed_at: dict[str, int] = field(default_factory=dict)
    """By group, the time of the first response that told a generation."""
    gone: set[str] = field(default_factory=set)
    latest: Operation | None = None
    """The operation whose response is being judged; nothing follows from it for its own violations."""

    def on_response(self, operation: Operation) -> None:
        """Learn from the response before this one."""
        latest, self.latest = self.latest, operation
        if latest is not None and latest.api in LIFETIME_APIS:
            self.learn(latest)

    def learn(self, operation: Operation) -> None:
        """Learn from a response."""
        body = operation.response or {}
        if operation.api == "JoinGroup" and body.get("error_code") == Error.NONE:
            group = str(operation.body.get("group_id"))
            self.existed_at.setdefault(group, operation.responded_at or operation.sent_at)
            self.gone.discard(group)
        elif operation.api == "DeleteGroups":
            absent = (Error.NONE, Error.GROUP_ID_NOT_FOUND)
            self.gone |= {row.get("group_id") for row in body.get("results") or () if row.get("error_code") in absent}
        elif operation.api == "DescribeGroups":
            self.gone |= {row.get("group_id") for row in body.get("groups") or () if row.get("group_state") == "Dead"}

    def attribute(self, violation: Violation, operation: Operation) -> Violation:
        """The violation; of a first generation of a group that existed before, with the requirement about that.

        No requirement says anything if nothing but an error showed that the group was gone.
        """
        existed_at = self.existed_at.get(violation.group)
        if violation.requirements != FIRST_GENERATION or existed_at is None or existed_at > operation.sent_at:
            return violation
        found = RECREATED_GROUP if violation.group in self.gone else ()
        return replace(violation, requirements=found)
