"""Test cases: pytest runs one for each requirement, and one for each batch of random schedules."""

import shlex
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import pytest

from fencepost.conformance.reports.words import describe_ending
from fencepost.conformance.results import RequirementResult, Verdict
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.testing.runs import Finding, SessionRun
from fencepost.conformance.testing.violation import NextSteps, Undecided, make_violation
from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.errors import FencepostError

_SAVE_LIMIT = 64


@dataclass(frozen=True, slots=True)
class CaseId:
    """What a test case is about: the id of a requirement, or the number of a batch of so many random schedules."""

    requirement: str = ""
    batch: int = 0
    size: int = 0
    seed: int = 0

    def __str__(self) -> str:
        return self.requirement or f"schedules-{self.batch + 1}"


@dataclass(frozen=True, slots=True)
class CaseContext:
    """The surroundings of a test case: its node id, the ids of all requirements that the session tests, the folder for
    traces (None: they are not saved), and whether an undecided requirement is skipped."""

    node: str
    tested: Collection[str]
    save: Path | None = None
    skips_undecided: bool = False


class Case:
    """A test case, as `fencepost_case` gives it. `id` is that of the requirement, or the name of a batch."""

    def __init__(self, id: CaseId, get_run: Callable[[], SessionRun], context: CaseContext) -> None:
        self._id = id
        self._get_run = get_run
        self._context = context

    @property
    def id(self) -> str:
        """The id of the requirement, such as "JOIN-29"; `schedules-1` for the first batch of random schedules."""
        return str(self._id)

    @property
    def requirement(self) -> Requirement | None:
        """The requirement; None for a batch of random schedules."""
        return DEFAULT_SPECIFICATION.requirements.get(self._id.requirement)

    @property
    def result(self) -> RequirementResult | None:
        """The result of the requirement; its scenarios are played if they were not. None for a batch.

        A target that cannot be used fails the test.
        """
        __tracebackhide__ = True
        try:
            return self._get_run().result(self._id.requirement) if self._id.requirement else None
        except FencepostError as error:
            pytest.fail(str(error), pytrace=False)

    def check(self) -> None:
        """Pass if the target keeps the requirement, or the schedules show nothing wrong.

        Raises `Violation` otherwise, and skips the test if nothing was asked or could be. What was exercised and could
        not be decided is an error as well.
        """
        __tracebackhide__ = True
        result = self.result
        if result is None:
            self._raise_first(self._play_batch())
            return
        self._raise_first([*self._own_findings(result), *self._get_run().findings_beside(self.id)])
        self._weigh(result)
        if doubt := self._get_run().doubt_beside(self.id):
            raise Undecided(doubt)

    def _play_batch(self) -> tuple[Finding, ...]:
        """What the random schedules of a batch show."""
        __tracebackhide__ = True
        try:
            return self._get_run().run_batch(self._id.batch, self._id.size, self._id.seed)
        except FencepostError as error:
            pytest.fail(str(error), pytrace=False)

    def _own_findings(self, result: RequirementResult) -> list[Finding]:
        """The violation of the requirement itself, if it is violated."""
        if result.verdict not in (Verdict.FAIL, Verdict.KNOWN):
            return []
        return [Finding(result.id, result.failures_by_length()[0])]

    def _raise_first(self, findings: Collection[Finding]) -> None:
        """Raises `Violation` for the first of the findings."""
        __tracebackhide__ = True
        for finding in findings:
            again = f"pytest {shlex.quote(self._context.node)}"
            steps = NextSteps(again, self._save_trace(finding))
            raise make_violation(finding, steps)

    def _weigh(self, result: RequirementResult) -> None:
        """Skip the test or raise `Undecided` unless the verdict is a pass."""
        __tracebackhide__ = True
        told = result.comment or "nothing in the run touched it"
        ended = self._get_run().ended
        if ended is not None and result.verdict is not Verdict.PASS:
            raise Undecided(f"{result.id} was not tested: {describe_ending(ended)}")
        if result.verdict in (Verdict.UNSUPPORTED, Verdict.NOT_OBSERVED):
            pytest.skip(f"{result.id} {result.verdict}: {told}")
        if result.verdict is Verdict.INCONCLUSIVE:
            if result.causes and set(result.causes) <= set(self._context.tested):
                pytest.skip(f"{result.id} inconclusive: follows from {', '.join(result.causes)}, which failed")
            if failed := sorted(self._get_run().failed_ids() & set(self._context.tested)):
                pytest.skip(f"{result.id} inconclusive: {told}; {', '.join(failed)} failed")
            if self._context.skips_undecided:
                pytest.skip(f"{result.id} inconclusive: {told}")
            raise Undecided(f"{result.id} inconclusive: {told}")

    def _save_trace(self, finding: Finding) -> str:
        """Write the trace of a failure, and return its path; "" if it is not saved."""
        folder, excerpt = self._context.save, finding.failure.excerpt
        if folder is None or not excerpt:
            return ""
        path = folder / f"{finding.requirement[:_SAVE_LIMIT]}.jsonl"
        path.write_text(excerpt, encoding="ascii")
        here = Path.cwd()
        return str(path.relative_to(here) if path.is_relative_to(here) else path)
