"""Causes: which failed requirements are one, and which failure an undecided requirement follows from."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

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


_ID = r"(?<![\w./-])[A-Z]+-\d+(?![\w/-]|\.\w)"
"""The id of a requirement in a note; in a path it is none."""
_IDS = re.compile(rf"{_ID}(?:, {_ID})*")
UNCONFIRMED = "a wrong response that no failure here explains"
"""What blocks a requirement where nothing that is named failed."""


def resolve_causes(results: Iterable[RequirementResult]) -> list[RequirementResult]:
    """The results, inconclusive ones with the failed requirements that they follow from.

    A note names the violations that blocked a requirement in its own trace. What they follow from in turn counts, so
    that a note names nothing but requirements that failed.
    """
    by_id = {result.id: result for result in results}
    return [resolve_cause(result, by_id) for result in by_id.values()]


def resolve_cause(result: RequirementResult, by_id: Mapping[str, RequirementResult]) -> RequirementResult:
    """The result with its causes, if it is inconclusive and its note names any requirement."""
    if result.verdict is not Verdict.INCONCLUSIVE or _IDS.search(result.note) is None:
        return result
    causes = tuple(sorted(failed_causes(result, by_id)))
    note = _IDS.sub(", ".join(causes) or UNCONFIRMED, result.note)
    return replace(result, note=note, causes=causes)


def failed_causes(result: RequirementResult, by_id: Mapping[str, RequirementResult]) -> set[str]:
    """The failed requirements that the note of an inconclusive one leads to, directly or by other notes."""
    found: set[str] = set()
    seen: set[str] = set()
    todo = [result]
    while todo:
        for id in re.findall(_ID, todo.pop().note):
            named = by_id.get(id)
            if named is None or id in seen:
                continue
            seen.add(id)
            if named.verdict in (Verdict.FAIL, Verdict.KNOWN):
                found.add(id)
            elif named.verdict is Verdict.INCONCLUSIVE:
                todo.append(named)
    return found
