"""Failed requirements by cause: those whose shortest failures are the same wrong response of the same rule."""

from collections.abc import Iterable
from dataclasses import dataclass

from fencepost.conformance.results import Failure, RequirementResult, Verdict


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that a target does wrong: the failure that shows it best, and the requirements that it violates.

    The requirement of that failure comes first.
    """

    requirements: tuple[str, ...]
    failure: Failure | None

    @property
    def title(self) -> str:
        """What is wrong, in a line."""
        if self.failure is None:
            return "a violation of which no failure is shown"
        if not self.failure.differences:
            return self.failure.title or self.failure.observed
        first = self.failure.differences[0]
        return f"{self.failure.title}: expected {first.expected}, observed {first.observed}"


def find_causes(results: Iterable[RequirementResult]) -> tuple[Cause, ...]:
    """The causes of all failed requirements, in the order in which they are met."""
    members: dict[str, list[tuple[RequirementResult, Failure | None]]] = {}
    for result in results:
        if result.verdict is not Verdict.FAIL:
            continue
        shown = next(iter(result.failures_by_length()), None)
        kind = shown.kind if shown is not None and shown.kind else result.id
        members.setdefault(kind, []).append((result, shown))
    return tuple(map(build_cause, members.values()))


def build_cause(members: list[tuple[RequirementResult, Failure | None]]) -> Cause:
    """The cause of failures of one kind; the shortest one shows it."""
    best = min(range(len(members)), key=lambda place: schedule_length(members[place][1]))
    ordered = [members[best], *members[:best], *members[best + 1 :]]
    return Cause(tuple(result.id for result, _ in ordered), ordered[0][1])


def schedule_length(failure: Failure | None) -> tuple[bool, int]:
    """The order of failures: those with a schedule first, short ones before long ones."""
    return (failure is None or not failure.schedule, len(failure.schedule) if failure is not None else 0)
