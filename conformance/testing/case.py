"""Cases, one for each requirement, and the assertion error by which one fails."""

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fencepost.conformance.reports.drawings import to_text
from fencepost.conformance.reports.layout import escape_unprintable, label_once, unwrapped_line, wrapped_lines
from fencepost.conformance.reports.report import TIMING_NAMES
from fencepost.conformance.reports.sequence import draw_excerpt, follow_phases, read_excerpt
from fencepost.conformance.reports.words import describe_ending
from fencepost.conformance.results import Failure, RequirementResult, Verdict
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.testing.runs import FailedRequirement, SessionRun, exceptions_in
from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.errors import FencepostError
from fencepost.traces.verdict import UNCLASSIFIED

if TYPE_CHECKING:

    class _Failed(BaseException):
        """What pytest shows without frames."""

        def __init__(self, msg: str | None = None, pytrace: bool = True) -> None: ...

        msg: str | None

else:
    _Failed = pytest.fail.Exception


# -- a violation as a test shows it -----------------------------------------------------------------------------------

UNCLASSIFIED_SENTENCE = "No behaviour of the model explains this, and no requirement speaks of it."


class Violation(AssertionError, _Failed):
    """The target violates the protocol. The message shows how; pytest prints it without the frames of the kit.

    `requirement` is the id of the requirement, "unclassified" if no requirement speaks of it; `failure` has the rest.
    """

    def __init__(self, text: str, requirement: str, failure: Failure) -> None:
        _Failed.__init__(self, text, pytrace=False)
        self.requirement = requirement
        self.failure = failure

    def __str__(self) -> str:
        return str(self.msg)


Violation.__module__ = "builtins"  # as pytest does for its own, so that summaries show the bare name


class Undecided(AssertionError, _Failed):
    """A requirement was exercised, and the run could not decide it."""

    def __init__(self, text: str) -> None:
        _Failed.__init__(self, text, pytrace=False)

    def __str__(self) -> str:
        return str(self.msg)


Undecided.__module__ = "builtins"


@dataclass(frozen=True, slots=True)
class NextSteps:
    """How to go on from a violation: the command that runs the test `again`, and the saved `trace` ("" for none)."""

    again: str = ""
    trace: str = ""


NOTHING_NEXT = NextSteps()


def make_violation(finding: FailedRequirement, steps: NextSteps = NOTHING_NEXT) -> Violation:
    """The exception that shows a violation."""
    text = "\n".join(describe_finding(finding, steps))
    return Violation(text, finding.requirement, finding.failure)


def describe_finding(finding: FailedRequirement, steps: NextSteps) -> Iterator[str]:
    """The lines of a violation."""
    yield from heading(finding)
    yield ""
    yield from diagram_lines(finding.failure)
    yield ""
    yield from difference_lines(finding.failure)
    if steps.again:
        yield unwrapped_line("again", steps.again)
    if steps.trace:
        yield unwrapped_line("as test", f"fencepost replay {steps.trace} --as-test")
    excerpt = read_excerpt(finding.failure)
    yield from exception_lines(exceptions_in(excerpt[1]) if excerpt is not None else ())


def exception_lines(exceptions: Iterable[str]) -> Iterator[str]:
    """The tracebacks of the exceptions that ended coordinators."""
    for exception in exceptions:
        yield ""
        yield "The coordinator raised an exception, and was gone from then on:"
        yield from (f"  {escape_unprintable(line)}" for line in exception.splitlines())


def heading(finding: FailedRequirement) -> Iterator[str]:
    """The requirement with its sentence and its source."""
    requirement = DEFAULT_SPECIFICATION.requirements.get(finding.requirement)
    if requirement is None:
        yield f"{UNCLASSIFIED.upper()}: {escape_unprintable(finding.failure.title)}"
        yield from wrapped_lines("meaning", UNCLASSIFIED_SENTENCE)
        return
    yield f"{requirement.id} {requirement.level}: {requirement.title}"
    yield from wrapped_lines("requirement", requirement.sentence)
    yield from wrapped_lines("source", requirement.source)


def diagram_lines(failure: Failure) -> Iterator[str]:
    """The sequence of the trace up to the violation; the schedule in words where there is no trace."""
    excerpt = read_excerpt(failure)
    if excerpt is None:
        for label, step in zip(label_once("schedule"), failure.numbered_steps(), strict=False):
            yield from wrapped_lines(label, step)
        return
    header, events = excerpt
    diagram = draw_excerpt(excerpt, failure.step)
    yield from (f"  {line}" for line in to_text(diagram, follow_phases(header, events, diagram.steps)))


def difference_lines(failure: Failure) -> Iterator[str]:
    """The observed and the allowed values, and the reason."""
    if failure.title:
        yield from wrapped_lines("wrong", failure.title)
    for difference in failure.differences:
        name = "" if difference.name in TIMING_NAMES else f"{difference.label} = "
        yield from wrapped_lines("observed", name + difference.observed)
        yield from wrapped_lines("allowed", name + difference.expected)
    if not failure.differences:
        yield from wrapped_lines("observed", failure.observed)
        for label, allowed in zip(label_once("allowed"), failure.allowed, strict=False):
            yield from wrapped_lines(label, allowed)
    if model := failure.describe_model():
        yield from wrapped_lines("model", model)
    if failure.state:
        yield from wrapped_lines("state", failure.state)


# -- test cases -------------------------------------------------------------------------------------------------------

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

    def _play_batch(self) -> tuple[FailedRequirement, ...]:
        """What the random schedules of a batch show."""
        __tracebackhide__ = True
        try:
            return self._get_run().run_batch(self._id.batch, self._id.size, self._id.seed)
        except FencepostError as error:
            pytest.fail(str(error), pytrace=False)

    def _own_findings(self, result: RequirementResult) -> list[FailedRequirement]:
        """The violation of the requirement itself, if it is violated."""
        if result.verdict not in (Verdict.FAIL, Verdict.KNOWN):
            return []
        return [FailedRequirement(result.id, result.failures_by_length()[0])]

    def _raise_first(self, findings: Collection[FailedRequirement]) -> None:
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
                family = result.id.partition("-")[0]
                first = next((each for each in failed if each.startswith(family)), failed[0])
                pytest.skip(f"{result.id} inconclusive: {told}; mend {first} first, 1 of {len(failed)} that failed")
            if self._context.skips_undecided:
                pytest.skip(f"{result.id} inconclusive: {told}")
            raise Undecided(f"{result.id} inconclusive: {told}")

    def _save_trace(self, finding: FailedRequirement) -> str:
        """Write the trace of a failure, and return its path; "" if it is not saved."""
        folder, excerpt = self._context.save, finding.failure.excerpt
        if folder is None or not excerpt:
            return ""
        path = folder / f"{finding.requirement[:_SAVE_LIMIT]}.jsonl"
        path.write_text(excerpt, encoding="ascii")
        here = Path.cwd()
        return str(path.relative_to(here) if path.is_relative_to(here) else path)
