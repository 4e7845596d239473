"""The report as plain text for a terminal: failures first, then what could not be judged and why."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from fencepost.conformance.plan import Replay, ReplayOutcome
from fencepost.conformance.reports.progress import duration
from fencepost.conformance.results import Coverage, Exit, Failure, Report, RequirementResult, Verdict
from fencepost.model.catalogue.classic import CATALOGUE

_WIDTH = 100
_LABEL = 16  # the column where the values of labelled lines begin

_FEW = 3

_REASONS = {
    Verdict.KNOWN: ("Known deviations", "declared in the profile"),
    Verdict.INCONCLUSIVE: ("Inconclusive", "the run could not decide"),
    Verdict.UNSUPPORTED: ("Unsupported", "the target does not offer what the test needs"),
    Verdict.NOT_OBSERVED: ("Not observed", "nothing in the run touched it"),
}


MOST_LEFT_OPEN = 20
"""How many lines say what recorded traces leave open."""
_Painter: TypeAlias = Callable[[str, str], str]
_RED, _GREEN, _YELLOW = "31", "32", "33"
_REPLAYED = {ReplayOutcome.FIXED: _GREEN, ReplayOutcome.INCONCLUSIVE: _YELLOW}
_COLOURS = {Exit.VIOLATION: _RED, Exit.CONFORMANT: _GREEN, Exit.INCONCLUSIVE: _YELLOW}


def _paint(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m"


def _plain(text: str, colour: str) -> str:
    return text


def render(report: Report, *, colour: bool = False) -> str:
    """The whole report; ends in a newline."""
    paint = _paint if colour else _plain
    blocks = [_target(report)]
    blocks += (_failures(result, paint) for result in report.results if result.verdict is Verdict.FAIL)
    if report.results:
        blocks.append(_families(report))
    for verdict, (heading, reason) in _REASONS.items():
        blocks += _reasons(heading, reason, [r for r in report.results if r.verdict is verdict])
    blocks += _reasons("Notes", "", [r for r in report.results if r.verdict is Verdict.PASS and r.note])
    if report.coverage is not None:
        blocks.append(_coverage(report.coverage, len(report.rules)))
    if report.undecided:
        blocks.append(_left_open(report.undecided))
    blocks.append(_closing(report, paint))
    return "\n\n".join(blocks) + "\n"


def _left_open(undecided: Sequence[str]) -> str:
    """What recorded traces leave open."""
    lines = [f"  {printable(each)}" for each in undecided[:MOST_LEFT_OPEN]]
    more = len(undecided) - len(lines)
    return "\n".join(["Left open", *lines, *([f"  and {more} more"] if more else [])])


def render_replay(replay: Replay, *, colour: bool = False) -> str:
    """The outcome of a replay, with the failure that was seen."""
    paint = _paint if colour else _plain
    outcome = paint(replay.outcome, _REPLAYED.get(replay.outcome, _RED))
    if replay.failure is None:
        return f"{outcome}: {printable(replay.note)}\n" if replay.note else f"{outcome}\n"
    result = RequirementResult(replay.requirement, Verdict.FAIL, failures=(replay.failure,))
    return f"{_failures(result, paint)}\n\n{outcome}\n"


def headline(report: Report) -> str:
    """The outcome in one line, as the exit code tells it."""
    summary = report.summary()
    exit_code = report.exit_code()
    if exit_code is Exit.VIOLATION:
        cut = " The run was cut short." if report.cut_short else ""
        return f"NOT CONFORMANT: {_count(summary[Verdict.FAIL], 'requirement is', 'requirements are')} violated.{cut}"
    if report.cut_short:
        return "INCONCLUSIVE: the run was cut short."
    if exit_code is Exit.INCONCLUSIVE:
        undecided = summary[Verdict.INCONCLUSIVE]
        return f"INCONCLUSIVE: {_count(undecided, 'requirement', 'requirements')} could not be decided."
    known = summary[Verdict.KNOWN]
    if not summary[Verdict.PASS] + known:
        return "NOTHING CHECKED: no requirement was put to the test."
    apart = f", apart from {_count(known, 'known deviation', 'known deviations')}" if known else ""
    return f"CONFORMANT: everything that was checked is kept{apart}."


def printable(text: str) -> str:
    """`text` with everything escaped that could upset a terminal; a target may answer with any characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _target(report: Report) -> str:
    name, *rest = (printable(value) for value in _name_first(report))
    return f"Target: {name}" + (f" ({', '.join(rest)})" if rest else "")


def _name_first(report: Report) -> Iterator[str]:
    yield report.target["name"]
    yield from (f"{key} {value}" for key, value in report.target.items() if key != "name")


def _failures(result: RequirementResult, paint: _Painter) -> str:
    requirement = CATALOGUE[result.id]
    lines = [f"{paint('FAIL', _RED)} {result.id} {requirement.level}: {requirement.title}"]
    lines += _labelled("requirement", requirement.sentence)
    lines += _labelled("source", requirement.source)
    if result.note:
        lines += _labelled("note", result.note)
    if result.failures:
        lines += _evidence(result.shortest_first()[0])
        if len(result.failures) > 1:
            lines += _labelled("further", _count(len(result.failures) - 1, "other failure", "other failures"))
    return "\n".join(lines)


def _evidence(failure: Failure) -> Iterator[str]:
    yield from _labelled("observed", failure.observed)
    for label, allowed in zip(_once("allowed"), failure.allowed, strict=False):
        yield from _labelled(label, allowed)
    if failure.guard:
        yield from _labelled("false guard", failure.guard)
    numbered = (f"{n}. {step}" for n, step in enumerate(failure.schedule, 1))
    for label, step in zip(_once("schedule"), numbered, strict=False):
        yield from _labelled(label, step)
    yield _label("trace", f"{failure.trace or 'not saved'}, event {failure.step}")
    if failure.replay:
        yield _label("replay", failure.replay)
    yield _label("replayed", "yes, it failed again" if failure.replayed else "no")


def _once(label: str) -> Iterator[str]:
    yield label
    while True:
        yield ""


def _label(label: str, text: str) -> str:
    """A line that is never wrapped, so that it can be copied."""
    return f"  {label:<{_LABEL - 2}}{printable(text)}".rstrip()


def _labelled(label: str, text: str) -> list[str]:
    return _wrapped(f"  {label:<{_LABEL - 2}}", text, " " * _LABEL)


def _wrapped(first: str, text: str, rest: str) -> list[str]:
    lines = textwrap.wrap(
        printable(text),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return lines or [first.rstrip()]


def _families(report: Report) -> str:
    families: dict[str, list[RequirementResult]] = {}
    for result in report.results:
        families.setdefault(CATALOGUE[result.id].family, []).append(result)
    lines = ["Families"]
    lines += (_label(family, _counts(results)) for family, results in families.items())
    return "\n".join(lines)


def _counts(results: Iterable[RequirementResult]) -> str:
    verdicts = [result.verdict for result in results]
    counts = ((verdict, verdicts.count(verdict)) for verdict in _WORDS)
    return ", ".join(f"{count} {_WORDS[verdict]}" for verdict, count in counts if count)


_WORDS = {
    Verdict.FAIL: "fail",
    Verdict.PASS: "pass",
    Verdict.KNOWN: "known",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.UNSUPPORTED: "unsupported",
    Verdict.NOT_OBSERVED: "not observed",
}


def _reasons(heading: str, default: str, results: list[RequirementResult]) -> Iterator[str]:
    """One block that gives each reason once, with the ids it holds for."""
    if not results:
        return
    by_reason: dict[str, list[str]] = {}
    for result in results:
        by_reason.setdefault(result.note or default, []).append(result.id)
    lines = [heading]
    for reason, ids in by_reason.items():
        lines += _wrapped("  ", ", ".join(ids), "  ")
        lines += _wrapped("    ", reason, "    ")
    yield "\n".join(lines)


def _coverage(coverage: Coverage, rules: int) -> str:
    """What was seen of the model, the nearest misses, and the first schedules that could not be judged."""
    seen, missed = len(coverage.transitions), len(coverage.missed)
    lines = ["Coverage of the model"]
    lines.append(_label("rules", f"{rules - len(coverage.rules)} of {rules} seen"))
    lines.append(_label("transitions", f"{seen} of {seen + missed} known ones seen"))
    for label, (name, near) in zip(_once("nearest"), list(coverage.missed.items())[:_FEW], strict=False):
        lines += _labelled(label, f"{name}: {near}")
    if coverage.undecided:
        lines.append(_label("not judged", _count(len(coverage.undecided), "schedule", "schedules")))
        for name, reason in list(coverage.undecided.items())[:_FEW]:
            lines += _labelled("", f"{name}: {reason}")
    return "\n".join(lines)


def _closing(report: Report, paint: _Painter) -> str:
    seen = sum(1 for rule in report.rules.values() if rule.seen)
    run = [
        _count(report.schedules, "schedule", "schedules"),
        _count(report.events, "event", "events"),
        *([f"{seen} of {len(report.rules)} rules seen"] if report.rules else []),
        duration(report.seconds),
        f"seed {report.seed}",
    ]
    counts = f"{_count(len(report.results), 'requirement', 'requirements')}: {_counts(report.results) or 'none'}"
    outcome = paint(headline(report), _COLOURS[report.exit_code()])
    return f"{counts}; {', '.join(run)}.\n{outcome}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
