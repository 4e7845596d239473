"""A violation as a test shows it: the requirement, the requests that lead there, and the commands for it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from fencepost.conformance.reports.drawings import to_text
from fencepost.conformance.reports.layout import escape_unprintable, label_once, unwrapped_line, wrapped_lines
from fencepost.conformance.reports.sequence import draw_excerpt, follow_phases, read_excerpt
from fencepost.conformance.results import Failure
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.testing.runs import Finding, exceptions_in
from fencepost.traces.verdict import UNCLASSIFIED

_TIMING_NAMES = frozenset({"early", "late", "response"})
"""Names of differences that are no fields of a response."""
UNCLASSIFIED_SENTENCE = "No behaviour of the model explains this, and no requirement speaks of it."


if TYPE_CHECKING:

    class _Failed(BaseException):
        """What pytest shows without frames."""

        def __init__(self, msg: str | None = None, pytrace: bool = True) -> None: ...

        msg: str | None

else:
    _Failed = pytest.fail.Exception


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


def make_violation(finding: Finding, steps: NextSteps = NOTHING_NEXT) -> Violation:
    """The exception that shows a violation."""
    text = "\n".join(describe_finding(finding, steps))
    return Violation(text, finding.requirement, finding.failure)


def describe_finding(finding: Finding, steps: NextSteps) -> Iterator[str]:
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


def heading(finding: Finding) -> Iterator[str]:
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
        name = "" if difference.name in _TIMING_NAMES else f"{difference.label} = "
        yield from wrapped_lines("observed", name + difference.observed)
        yield from wrapped_lines("allowed", name + difference.expected)
    if not failure.differences:
        yield from wrapped_lines("observed", failure.observed)
        for label, allowed in zip(label_once("allowed"), failure.allowed, strict=False):
            yield from wrapped_lines(label, allowed)
    if failure.guard:
        yield from wrapped_lines("not true", failure.guard)
    if failure.state:
        yield from wrapped_lines("state", failure.state)
