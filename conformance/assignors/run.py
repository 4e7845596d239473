"""A whole test of an assignor: checks, random groups, and the report."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from fencepost.adapters.assignor import AssignorError
from fencepost.conformance.analysis.report_builder import ReportBuilder
from fencepost.conformance.assignors.random_groups import draw_group
from fencepost.conformance.results import Failure, Report, Scope
from fencepost.conformance.run.provenance import record_judging
from fencepost.conformance.specification import CLIENT_SPECIFICATION
from fencepost.model.assignors.checks import CHECKS
from fencepost.model.assignors.group import Assign, ClusterTopics
from fencepost.model.assignors.notation import as_text, members_as_text
from fencepost.model.assignors.properties import ANY_ASSIGNOR, PROPERTIES, Members, broken_properties
from fencepost.traces.verdict import CheckStatus

DEFAULT_GROUPS = 500
"""How many random groups an assignor gets."""


@dataclass(slots=True)
class AssignorTest:
    """A test of an assignor under way. `name` is the name that it has on the wire; one that is not well known is held
    against what every assignor promises. `assign` may raise `AssignorError`."""

    name: str
    assign: Assign
    groups: int = DEFAULT_GROUPS
    seed: int = 0
    target: str = "assignor"
    broken: dict[str, Failure] = field(default_factory=dict)
    """The first failure of each requirement."""
    kept: dict[str, int] = field(default_factory=dict)
    """How many assignments were checked for each requirement."""

    def run(self) -> Report:
        """Ask for all assignments, and report on them."""
        provenance, begun = record_judging(), time.monotonic()
        for requirement, groups, sentences in self._checks():
            self._judge(requirement, groups, sentences)
        for number in range(self.groups):
            group = draw_group(Random(f"{self.seed}-{number}"))
            self._judge_random(group.members, group.cluster)
        requirements = [*self.kept, *(id for id in self.broken if id not in self.kept)]
        catalogue = CLIENT_SPECIFICATION.requirements
        builder = ReportBuilder([id for id in catalogue if id in requirements], specification=CLIENT_SPECIFICATION)
        for id, times in self.kept.items():
            for _ in range(times if id not in self.broken else 0):
                builder.add_check(id, CheckStatus.PASS, "")
        for id, failure in self.broken.items():
            if CLIENT_SPECIFICATION.is_recommendation(id):
                builder.add_check(id, CheckStatus.UNUSUAL, f"{failure.schedule[0]}: {failure.observed}")
            else:
                builder.add_failure(id, failure)
        report = builder.build(
            target={"name": self.target, "assignor": self.name},
            schedules=self.groups,
            events=0,
            seconds=time.monotonic() - begun,
            seed=self.seed,
            scope=Scope.SELECTED,
        )
        return replace(report, provenance=provenance)

    def _checks(self) -> Iterator[tuple[str, str, Iterator[str]]]:
        for check in CHECKS:
            if self.name in check.names:
                yield check.requirement, check.groups, check.run(self.assign, self.name)

    def _judge(self, requirement: str, groups: str, sentences: Iterator[str]) -> None:
        try:
            wrong = next(sentences, None)
        except AssignorError as error:
            wrong = str(error)
        self._note(requirement, groups, wrong)

    def _judge_random(self, members: Members, cluster: ClusterTopics) -> None:
        """An assignment for a random group has all properties of its assignor."""
        topics = " ".join(f"{topic}:{count}" for topic, count in cluster.partitions.items())
        text = f"{topics}: {members_as_text(members)}"
        try:
            assignment = self.assign(members, cluster)
        except AssignorError as error:
            self._note("ASSIGN-04", text, str(error))
            return
        wrong = {
            each.property.requirement: f"{each.sentence}, in {as_text(assignment)}"
            for each in reversed(broken_properties(self.name, members, cluster, assignment))
        }
        for each in PROPERTIES.get(self.name, ANY_ASSIGNOR):
            self._note(each.requirement, text, wrong.get(each.requirement))

    def _note(self, requirement: str, groups: str, wrong: str | None) -> None:
        self.kept[requirement] = self.kept.get(requirement, 0) + 1
        if wrong is not None and requirement not in self.broken:
            sentence = CLIENT_SPECIFICATION.requirements[requirement].title
            self.broken[requirement] = Failure(
                trace="",
                step=0,
                observed=wrong,
                allowed=(),
                guard="",
                schedule=(groups,),
                replayed=True,
                title=f"The assignment is wrong: {sentence}",
                kind=requirement,
            )
