"""The report as plain text for a terminal: failures first, then inconclusive requirements with their reasons."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from fencepost.conformance.plan import ReplayOutcome, ReplayResult
from fencepost.conformance.reports.progress import format_duration
from fencepost.conformance.results import Coverage, ExitCode, Failure, Report, RequirementResult, TargetFacts, Verdict
from fencepost.model.catalogue.classic import CATALOGUE

_WIDTH = 100
_LABEL = 16  # the column where the values of labelled lines begin

_MAX_SHOWN = 3

_REASONS = {
    Verdict.KNOWN: ("Known deviations", "declared in the profile"),
    Verdict.INCONCLUSIVE: ("Inconclusive", "the run could not decide"),
    Verdict.UNSUPPORTED: ("Unsupported", "the target does not offer what the test needs"),
    Verdict.NOT_OBSERVED: ("Not observed", "nothing in the run touched it"),
}


MAX_OPEN_SHOWN = 20
"""How many lines say what recorded traces leave open."""
_Painter: TypeAlias = Callable[[str, str], str]
_RED, _GREEN, _YELLOW = "31", "32", "33"
_OUTCOME_COLOURS = {ReplayOutcome.FIXED: _GREEN, ReplayOutcome.INCONCLUSIVE: _YELLOW}
_EXIT_COLOURS = {ExitCode.VIOLATION: _RED, ExitCode.CONFORMANT: _GREEN, ExitCode.INCONCLUSIVE: _YELLOW}


def _paint(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m"


def _no_paint(text: str, colour: str) -> str:
    return text


def render_report(report: Report, *, colour: bool = False) -> str:
    """The whole report; ends in a newline."""
    paint = _paint if colour else _no_paint
    blocks = ["\n".join([_target_line(report), *(_fact_lines(report.facts) if report.facts is not None else ())])]
    blocks += (_failure_block(result, paint) for result in report.results if result.verdict is Verdict.FAIL)
    if report.results:
        blocks.append(_family_table(report))
    for verdict, (heading, reason) in _REASONS.items():
        blocks += _reason_block(heading, reason, [r for r in report.results if r.verdict is verdict])
    blocks += _reason_block("Notes", "", [r for r in report.results if r.verdict is Verdict.PASS and r.note])
    if report.coverage is not None:
        blocks.append(_coverage_block(report.coverage, len(report.rules)))
    if report.undecided:
        blocks.append(_open_questions(report.undecided))
    if report.idle_findings:
        blocks.append("\n".join(["While idle", *(f"  {escape_unprintable(each)}" for each in report.idle_findings)]))
    blocks.append(_closing_lines(report, paint))
    return "\n\n".join(blocks) + "\n"


def _open_questions(undecided: Sequence[str]) -> str:
    """What recorded traces leave open."""
    lines = [f"  {escape_unprintable(each)}" for each in undecided[:MAX_OPEN_SHOWN]]
    more = len(undecided) - len(lines)
    return "\n".join(["Left open", *lines, *([f"  and {more} more"] if more else [])])


def render_replay(replay: ReplayResult, *, colour: bool = False) -> str:
    """The outcome of a replay, with the failure that was seen."""
    paint = _paint if colour else _no_paint
    outcome = paint(replay.outcome, _OUTCOME_COLOURS.get(replay.outcome, _RED))
    if replay.failure is None:
        return f"{outcome}: {escape_unprintable(replay.note)}\n" if replay.note else f"{outcome}\n"
    result = RequirementResult(replay.requirement, Verdict.FAIL, failures=(replay.failure,))
    return f"{_failure_block(result, paint)}\n\n{outcome}\n"


def outcome_line(report: Report) -> str:
    """The outcome in one line, as the exit code tells it."""
    summary = report.summary()
    exit_code = report.exit_code()
    if exit_code is ExitCode.VIOLATION:
        cut = " The run was cut short." if report.cut_short else ""
        return (
            f"NOT CONFORMANT: {_pluralize(summary[Verdict.FAIL], 'requirement is', 'requirements are')} violated.{cut}"
        )
    if report.cut_short:
        return "INCONCLUSIVE: the run was cut short."
    if exit_code is ExitCode.INCONCLUSIVE:
        undecided = summary[Verdict.INCONCLUSIVE]
        if not undecided:
            return f"INCONCLUSIVE: nothing is violated, but {escape_unprintable(report.idle_findings[0])}."
        return f"INCONCLUSIVE: {_pluralize(undecided, 'requirement', 'requirements')} could not be decided."
    known = summary[Verdict.KNOWN]
    if not summary[Verdict.PASS] + known:
        return "NOTHING CHECKED: no requirement was put to the test."
    apart = f", apart from {_pluralize(known, 'known deviation', 'known deviations')}" if known else ""
    return f"CONFORMANT: everything that was checked is kept{apart}."


def escape_unprintable(text: str) -> str:
    """`text` with everything escaped that could upset a terminal; a target may answer with any characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _target_line(report: Report) -> str:
    name, *rest = (escape_unprintable(value) for value in _name_first(report))
    return f"Target: {name}" + (f" ({', '.join(rest)})" if rest else "")


def _fact_lines(facts: TargetFacts) -> Iterator[str]:
    """What was known about the target: settings by origin, APIs, capabilities, and what would switch the others on."""
    by_origin: dict[str, list[str]] = {}
    for name, fact in facts.settings.items():
        by_origin.setdefault(fact.origin, []).append(name if fact.value is None else f"{name} {fact.value}")
    origins = (f"{origin}: {', '.join(names)}" for origin, names in by_origin.items())
    for label, text in zip(_label_once("settings"), origins, strict=False):
        yield from _wrapped_lines(label, text)
    yield from _wrapped_lines("apis", ", ".join(f"{api} {low}-{high}" for api, (low, high) in facts.apis.items()))
    yield from _wrapped_lines("capabilities", ", ".join(facts.capabilities) or "none")
    for label, (name, remedy) in zip(_label_once("off"), facts.off.items(), strict=False):
        yield from _wrapped_lines(label, f"{name}: {remedy}")
    for label, remark in zip(_label_once("remarks"), facts.remarks, strict=False):
        yield from _wrapped_lines(label, remark)


def _name_first(report: Report) -> Iterator[str]:
    yield report.target["name"]
    yield from (f"{key} {value}" for key, value in report.target.items() if key != "name")


def _failure_block(result: RequirementResult, paint: _Painter) -> str:
    requirement = CATALOGUE[result.id]
    lines = [f"{paint('FAIL', _RED)} {result.id} {requirement.level}: {requirement.title}"]
    lines += _wrapped_lines("requirement", requirement.sentence)
    lines += _wrapped_lines("source", requirement.source)
    if result.note:
        lines += _wrapped_lines("note", result.note)
    if result.failures:
        lines += _failure_lines(result.failures_by_length()[0])
        if len(result.failures) > 1:
            lines += _wrapped_lines("further", _pluralize(len(result.failures) - 1, "other failure", "other failures"))
    return "\n".join(lines)


def _failure_lines(failure: Failure) -> Iterator[str]:
    yield from _wrapped_lines("observed", failure.observed)
    for label, allowed in zip(_label_once("allowed"), failure.allowed, strict=False):
        yield from _wrapped_lines(label, allowed)
    if failure.guard:
        yield from _wrapped_lines("false guard", failure.guard)
    numbered = (f"{n}. {step}" for n, step in enumerate(failure.schedule, 1))
    for label, step in zip(_label_once("schedule"), numbered, strict=False):
        yield from _wrapped_lines(label, step)
    yield _unwrapped_line("trace", f"{failure.trace or 'not saved'}, event {failure.step}")
    if failure.replay:
        yield _unwrapped_line("replay", failure.replay)
    yield _unwrapped_line("replayed", "yes, it failed again" if failure.replayed else "no")


def _label_once(label: str) -> Iterator[str]:
    yield label
    while True:
        yield ""


def _unwrapped_line(label: str, text: str) -> str:
    """A line that is never wrapped, so that it can be copied."""
    return f"  {label:<{_LABEL - 2}}{escape_unprintable(text)}".rstrip()


def _wrapped_lines(label: str, text: str) -> list[str]:
    return _wrap_text(f"  {label:<{_LABEL - 2}}", text, " " * _LABEL)


def _wrap_text(first: str, text: str, rest: str) -> list[str]:
    lines = textwrap.wrap(
        escape_unprintable(text),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return lines or [first.rstrip()]


def _family_table(report: Report) -> str:
    families: dict[str, list[RequirementResult]] = {}
    for result in report.results:
        families.setdefault(CATALOGUE[result.id].family, []).append(result)
    lines = ["Families"]
    lines += (_unwrapped_line(family, _count_verdicts(results)) for family, results in families.items())
    return "\n".join(lines)


def _count_verdicts(results: Iterable[RequirementResult]) -> str:
    verdicts = [result.verdict for result in results]
    counts = ((verdict, verdicts.count(verdict)) for verdict in _VERDICT_WORDS)
    return ", ".join(f"{count} {_VERDICT_WORDS[verdict]}" for verdict, count in counts if count)


_VERDICT_WORDS = {
    Verdict.FAIL: "fail",
    Verdict.PASS: "pass",
    Verdict.KNOWN: "known",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.UNSUPPORTED: "unsupported",
    Verdict.NOT_OBSERVED: "not observed",
}


def _reason_block(heading: str, default: str, results: list[RequirementResult]) -> Iterator[str]:
    """One block that gives each reason once, with the ids it holds for."""
    if not results:
        return
    by_reason: dict[str, list[str]] = {}
    for result in results:
        by_reason.setdefault(result.note or default, []).append(result.id)
    lines = [heading]
    for reason, ids in by_reason.items():
        lines += _wrap_text("  ", ", ".join(ids), "  ")
        lines += _wrap_text("    ", reason, "    ")
    yield "\n".join(lines)


def _coverage_block(coverage: Coverage, rules: int) -> str:
    """What was seen of the model, the nearest misses, and the first schedules that could not be judged."""
    seen, missed = len(coverage.transitions), len(coverage.missed)
    lines = ["Coverage of the model"]
    lines.append(_unwrapped_line("rules", f"{rules - len(coverage.rules)} of {rules} seen"))
    lines.append(_unwrapped_line("transitions", f"{seen} of {seen + missed} known ones seen"))
    for label, (name, near) in zip(_label_once("nearest"), list(coverage.missed.items())[:_MAX_SHOWN], strict=False):
        lines += _wrapped_lines(label, f"{name}: {near}")
    if coverage.undecided:
        lines.append(_unwrapped_line("not judged", _pluralize(len(coverage.undecided), "schedule", "schedules")))
        for name, reason in list(coverage.undecided.items())[:_MAX_SHOWN]:
            lines += _wrapped_lines("", f"{name}: {reason}")
    return "\n".join(lines)


def _closing_lines(report: Report, paint: _Painter) -> str:
    seen = sum(1 for rule in report.rules.values() if rule.seen)
    run = [
        _pluralize(report.schedules, "schedule", "schedules"),
        _pluralize(report.events, "event", "events"),
        *([f"{seen} of {len(report.rules)} rules seen"] if report.rules else []),
        format_duration(report.seconds),
        f"seed {report.seed}",
    ]
    counts = (
        f"{_pluralize(len(report.results), 'requirement', 'requirements')}: {_count_verdicts(report.results) or 'none'}"
    )
    outcome = paint(outcome_line(report), _EXIT_COLOURS[report.exit_code()])
    return f"{counts}; {', '.join(run)}.\n{outcome}"


def _pluralize(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
