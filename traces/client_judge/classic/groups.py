"""Groups that the script has invented for a leader, held against the checks of the assignor that it is told to use.

An annotation before each response to JoinGroup says which group of which check the members in it are. The plan in the
SyncGroup that follows is the assignment; the topics have longer names on the wire than in the check.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fencepost.model.assignors.checks import CHECKS, OWN_RULES, AssignorCheck, MissingPlan, PlanFailure, SeenPlans
from fencepost.model.assignors.group import Assignment
from fencepost.traces.client_judge.evidence import Evidence, build_violation
from fencepost.traces.events import Event

CHECKS_BY_NAME: Mapping[tuple[str, str], AssignorCheck] = {
    (assignor, check.name): check for check in CHECKS for assignor in check.names
}
"""The checks of each assignor, by its name and the name of the check."""
REPEATED = "group-again"
"""The annotation behind a plan that counts for nothing: the leader will be told of the group again."""
PATIENCE_MS = 5_000
"""How long a leader may take for a plan."""


@dataclass(frozen=True, slots=True)
class InventedGroup:
    """A group that the leader was told, with the topics of the check by their names on the wire."""

    assignor: str
    check: str
    topics: Mapping[str, str]
    sequence: int
    time: int
    is_last_try: bool
    """Whether the leader was told of it before, and has joined again in the place of a plan."""

    @property
    def requirement(self) -> str:
        """The requirement of the check."""
        return self.check.partition(" ")[0]

    @property
    def is_odd(self) -> bool:
        """Whether it is a group for which the assignors of Apache Kafka fail."""
        return self.requirement in OWN_RULES


@dataclass(slots=True)
class InventedGroups:
    """The plans for invented groups, by assignor and check, in their order; None where none came."""

    told: InventedGroup | None = None
    """The group that has no plan yet."""
    plans: dict[tuple[str, str], list[Assignment | None]] = field(default_factory=dict)
    planned: InventedGroup | None = None
    """The group of the last plan."""
    last: dict[tuple[str, str], int] = field(default_factory=dict)
    """The sequence number of the last plan, or of the group without one."""

    def tell(self, event: Event) -> None:
        """The leader is told of a group, perhaps again; at another one before that it has failed then."""
        body, is_again = event.body, bool(event.body["again"])
        if self.told is not None and not is_again:
            self._add(None, self.told.sequence)
        self.told = InventedGroup(body["assignor"], body["check"], body["topics"], event.sequence, event.time, is_again)

    def join(self) -> None:
        """The leader joins again: for the second time in the place of a plan, it has failed."""
        if self.told is not None and self.told.is_last_try:
            self._add(None, self.told.sequence)

    def take(self, plan: Assignment, sequence: int) -> None:
        """The leader brings a plan."""
        assert self.told is not None
        topics = self.told.topics
        own = {id: tuple((topics.get(name, name), number) for name, number in given) for id, given in plan.items()}
        self._add(own, sequence)

    def repeat(self) -> None:
        """The last plan counts for nothing."""
        if self.planned is not None:
            self.plans[self.planned.assignor, self.planned.check].pop()
            self.told, self.planned = replace(self.planned, is_last_try=False), None

    def finish(self, time: int, has_ended: bool) -> None:
        """The trace ends."""
        if self.told is not None and (has_ended or time - self.told.time > PATIENCE_MS):
            self._add(None, self.told.sequence)

    def _add(self, plan: Assignment | None, sequence: int) -> None:
        assert self.told is not None
        key = self.told.assignor, self.told.check
        self.plans.setdefault(key, []).append(plan)
        self.last[key] = sequence
        self.told, self.planned = None, self.told


def judge_groups(groups: InventedGroups, evidence: Evidence) -> None:
    """Each check whose groups have all been planned for holds, or does not."""
    for (assignor, name), plans in groups.plans.items():
        check = CHECKS_BY_NAME.get((assignor, name))
        if check is None:
            continue
        try:
            wrong = next(check.run(SeenPlans(plans).assign, assignor), None)
        except PlanFailure as failure:
            wrong = str(failure)
        except MissingPlan:
            continue
        title, expected = f"{assignor} plans wrongly for {check.groups}", "a plan that keeps the rule"
        violation = build_violation(
            check.requirement, groups.last[assignor, name], title, expected, wrong or "", f"a group: {check.groups}"
        )
        evidence.judge(wrong is None, violation)
