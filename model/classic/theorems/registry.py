"""The registry of theorems: one name and one sentence each, in the forms in which they are proved and checked.

A theorem is a statement about the handlers, with ghost state; most have two more forms. A search checks a property of
single steps or states, which needs no ghost state. The kernel's proof shows an invariant of any number of members.
"""

from dataclasses import dataclass

from fencepost.model.classic.theorems import kernel_statements, request_statements, statements
from fencepost.model.classic.theorems.kernel_statements import Invariant
from fencepost.model.classic.theorems.member_statements import MEMBER_THEOREMS
from fencepost.model.statement import Statement


@dataclass(frozen=True, slots=True)
class Theorem:
    """A theorem with the statement about handlers, and its limits."""

    statement: Statement
    excludes: str
    search_name: str = ""
    """The name of the property that a search checks, empty for none."""
    invariant: Invariant | None = None
    """The form about the kernel."""

    @property
    def id(self) -> str:
        """The name under which it is proved of the handlers."""
        return self.statement.id

    @property
    def sentence(self) -> str:
        """The sentence, of the handlers and in a search."""
        return self.statement.sentence

    @property
    def kernel_id(self) -> str:
        """The name under which it is proved of the kernel, empty for none."""
        return "" if self.invariant is None else f"kernel.{self.invariant.__name__}"

    @property
    def kernel_sentence(self) -> str:
        """What is proved of the kernel, in its words."""
        return "" if self.invariant is None else (self.invariant.__doc__ or "")


ONE_LEADER = Theorem(
    statements.one_leader,
    "fail-over, deletion; a static member's next id counts as the same leader",
    "one-leader",
    kernel_statements.one_leader,
)
NO_STALE_COMMIT = Theorem(
    statements.no_stale_commit, "commits below generation 0", "no-stale-commit", kernel_statements.no_stale_commit
)
NO_FOREIGN_COMMIT = Theorem(
    statements.commit_by_owner,
    "fail-over, deletion, commits below generation 0; several writers that nobody was assigned (T5 is false)",
    "no-foreign-commit",
    kernel_statements.no_foreign_commit,
)
ONE_OWNER = Theorem(
    statements.one_assignee,
    "fail-over, deletion; a static member's next id counts as the same member",
    "one-owner",
    kernel_statements.one_owner,
)
ONE_BELIEVER = Theorem(
    statements.one_owner,
    "fail-over, deletion; beliefs from different generations",
    "one-believer",
    kernel_statements.one_believer,
)
ONE_PROCESS = Theorem(statements.one_process, "fail-over, deletion")
STEPS = tuple(
    Theorem(one, "" if one in MEMBER_THEOREMS else "fail-over, deletion", one.id)
    for one in request_statements.STEP_THEOREMS
)
"""The theorems about single steps and what every group has."""
REGISTRY = (ONE_LEADER, NO_STALE_COMMIT, NO_FOREIGN_COMMIT, ONE_OWNER, ONE_BELIEVER, ONE_PROCESS, *STEPS)
"""All theorems about groups and members."""
