"""The findings of a trace about the requirements of a client: violations, and results of checks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fencepost.model.catalogue.requirement import Level, Requirement
from fencepost.traces.verdict import CheckResult, CheckStatus, Violation, without_remarks


def build_violation(
    requirement: str, sequence: int, title: str, expected: str, observed: str, told: str = ""
) -> Violation:
    """The violation by a request that a client must not send as it did, or did not send. `told` says what the client
    knew, in words."""
    return Violation(
        sequence,
        group="",
        api="",
        fields=(),
        observed=observed,
        allowed=(expected,),
        rule="",
        guard="",
        requirements=(requirement,),
        kind=f"{requirement}: {title}",
        tolerated=True,
        state=told,
        title=title,
    )


@dataclass(slots=True)
class Evidence:
    """Collects what is found of some requirements. A broken recommendation is no violation: it is unusual. Of
    violations that are alike the first is kept. Once it is closed, nothing is added any more."""

    requirements: Mapping[str, Requirement]
    violations: list[Violation] = field(default_factory=list)
    checks: list[CheckResult] = field(default_factory=list)
    is_closed: bool = False

    def close(self) -> None:
        """From now on nothing is expected of the client."""
        self.is_closed = True

    def drop_remarks(self) -> None:
        """Forget the recommendations that are not kept."""
        self.checks = without_remarks(self.checks)

    def hold(self, requirement: str, sequence: int) -> None:
        """A request keeps a requirement."""
        self._add_check(CheckResult(requirement, sequence, CheckStatus.PASS))

    def violate(self, violation: Violation) -> None:
        """A request breaks a requirement."""
        if violation.requirement not in self.requirements:
            return
        if self.requirements[violation.requirement].level is Level.SHOULD:
            note = f"{violation.title}: expected {violation.allowed[0]}, observed {violation.observed}"
            self._add_check(CheckResult(violation.requirement, violation.sequence, CheckStatus.UNUSUAL, note))
        elif not self.is_closed and all(
            (each.requirement, each.title) != (violation.requirement, violation.title) for each in self.violations
        ):
            self.violations.append(violation)

    def leave_open(self, requirement: str, sequence: int, note: str) -> None:
        """A request might keep a requirement or break it."""
        self._add_check(CheckResult(requirement, sequence, CheckStatus.INCONCLUSIVE, note))

    def miss(self, requirement: str, note: str) -> None:
        """The trace does not show what a requirement is about, for this reason."""
        self._add_check(CheckResult(requirement, 0, CheckStatus.NOT_OBSERVED, note))

    def judge(self, holds: bool, violation: Violation) -> None:
        """A request keeps a requirement, or else breaks it in this way."""
        if holds:
            self.hold(violation.requirement, violation.sequence)
        else:
            self.violate(violation)

    def _add_check(self, result: CheckResult) -> None:
        if not self.is_closed and result.requirement in self.requirements:
            self.checks.append(result)
