"""The report as plain text for a terminal: failures first, then inconclusive requirements with their reasons."""

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from fencepost.conformance.analysis.causes import Cause, find_causes
from fencepost.conformance.plan import ReplayOutcome, ReplayResult
from fencepost.conformance.reports.ending import describe_ending
from fencepost.conformance.reports.progress import format_duration
from fencepost.conformance.results import (
    Coverage,
    EndKind,
    ExitCode,
    Failure,
    Report,
    RequirementResult,
    Scope,
    TargetFacts,
    Verdict,
)
from fencepost.model.catalogue.requirement import Requirement

_WIDTH = 100
_LABEL = 16  # the column where the values of labelled lines begin

_MAX_SHOWN = 3
_MAX_RESPONSE = 600
"""How many characters of a whole response are shown."""
_TIMING_NAMES = frozenset({"early", "late", "response"})
"""Names of differences that are no fields of a response."""

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
_EXIT_COLOURS = {
    ExitCode.VIOLATION: _RED,
    ExitCode.CONFORMANT: _GREEN,
    ExitCode.INCONCLUSIVE: _YELLOW,
    ExitCode.COULD_NOT_RUN: _RED,
}


def _paint(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m"


def _no_paint(text: str, colour: str) -> str:
    return text


def render_report(report: Report, *, colour: bool = False) -> str:
    """The whole report; ends in a newline."""
    paint = _paint if colour else _no_paint
    blocks = ["\n".join([_target_line(report), *(_fact_lines(report.facts) if report.facts is not None else ())])]
    requirements, causes = report.specification.requirements, find_causes(report.results)
    if len(causes) > 1:
        blocks.append(_cause_list(causes))
    by_id = {result.id: result for result in report.results}
    for cause in causes:
        first, *others = cause.requirements
        blocks.append(_failure_block(by_id[first], requirements[first], paint))
        blocks += (_same_failure_block(by_id[id], requirements[id], first, paint) for id in others)
    blocks += (_unclassified_block(failure, paint) for failure in report.unclassified)
    if report.results:
        blocks.append(_family_table(report))
    for verdict, (heading, reason) in _REASONS.items():
        blocks += _reason_block(heading, reason, [r for r in report.results if r.verdict is verdict], requirements)
    noted = [r for r in report.results if r.verdict is Verdict.PASS and r.note]
    blocks += _reason_block("Notes", "", noted, requirements)
    if report.coverage is not None:
        blocks.append(_coverage_block(report.coverage, len(report.rules)))
    if report.undecided:
        blocks.append(_open_questions(report.undecided))
    if report.ended is not None:
        blocks.append("\n".join(_wrap_text("", f"Cut short: {describe_ending(report.ended)}", "  ")))
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
    requirement = replay.specification.requirements[replay.requirement]
    return f"{_failure_block(result, requirement, paint)}\n\n{outcome}\n"


def outcome_line(report: Report) -> str:
    """The outcome in one line, as the exit code tells it."""
    summary, exit_code, checked = report.summary(), report.exit_code(), report.checked()
    part = "" if report.scope is Scope.FULL else f" ({report.scope})"
    if exit_code is ExitCode.COULD_NOT_RUN:
        unreadable = report.ended is not None and report.ended.kind is EndKind.UNREADABLE
        return "INCOMPLETE: not all files could be read." if unreadable else "NOT RUN: nothing was tested."
    if exit_code is ExitCode.VIOLATION:
        causes = _pluralize(len(find_causes(report.results)), "cause", "causes")
        violated = _pluralize(summary[Verdict.FAIL], "requirement", "requirements")
        cut = " The run was cut short." if report.cut_short else ""
        other = _pluralize(len(report.unclassified), "unclassified violation", "unclassified violations")
        told = [f"{causes}, {violated} violated of {checked} checked"] if summary[Verdict.FAIL] else []
        told += [other] if report.unclassified else []
        return f"NOT CONFORMANT: {', '.join(told)}{part}.{cut}"
    if report.cut_short:
        return "INCONCLUSIVE: the run was cut short."
    if undecided := summary[Verdict.INCONCLUSIVE]:
        return f"INCONCLUSIVE: {_pluralize(undecided, 'requirement', 'requirements')} could not be decided."
    if report.idle_findings:
        return f"INCONCLUSIVE: nothing is violated, but {escape_unprintable(report.idle_findings[0])}."
    if not checked:
        return "NOTHING CHECKED: no requirement was put to the test."
    known = summary[Verdict.KNOWN]
    apart = f", apart from {_pluralize(known, 'known deviation', 'known deviations')}" if known else ""
    word = "CONFORMANT" if report.scope is Scope.FULL else "NO VIOLATION"
    of = _pluralize(len(report.results), "requirement", "requirements")
    return f"{word}: {checked} of {of} checked{part}, none violated{apart}."


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


def _failure_block(result: RequirementResult, requirement: Requirement, paint: _Painter) -> str:
    lines = [f"{paint('FAIL', _RED)} {result.id} {requirement.level}: {requirement.title}"]
    shown = result.failures_by_length()[:1]
    for failure in shown:
        lines += _difference_lines(failure)
    lines += _wrapped_lines("requirement", requirement.sentence)
    lines += _source_lines(result, requirement)
    for failure in shown:
        lines += _failure_lines(failure)
        if len(result.failures) > 1:
            lines += _wrapped_lines("further", _pluralize(len(result.failures) - 1, "other failure", "other failures"))
    return "\n".join(lines)


def _source_lines(result: RequirementResult, requirement: Requirement) -> Iterator[str]:
    """Where the requirement comes from and since when it holds, and the note to the verdict."""
    yield from _wrapped_lines("source", requirement.source)
    if requirement.since is not None:
        yield from _wrapped_lines("since", str(requirement.since))
    if result.note:
        yield from _wrapped_lines("note", result.note)


def _cause_list(causes: Sequence[Cause]) -> str:
    """All causes, each in a line with the requirements that it violates."""
    lines = ["Causes"]
    for number, cause in enumerate(causes, 1):
        lines += _wrap_text(f"  {number:>2}. ", f"{', '.join(cause.requirements)}: {_shorten(cause.title)}", " " * 6)
    return "\n".join(lines)


def _same_failure_block(result: RequirementResult, requirement: Requirement, first: str, paint: _Painter) -> str:
    """A requirement that fails by a response that another block shows."""
    lines = [f"{paint('FAIL', _RED)} {result.id} {requirement.level}: {requirement.title}"]
    lines += _wrapped_lines("requirement", requirement.sentence)
    lines += _source_lines(result, requirement)
    lines += _wrapped_lines("as", f"{first}: the same wrong response of the same rule")
    failure = result.failures_by_length()[0]
    lines.append(_unwrapped_line("trace", f"{failure.trace or 'not saved'}, event {failure.step}"))
    if failure.replay:
        lines.append(_unwrapped_line("replay", failure.replay))
    return "\n".join(lines)


def _unclassified_block(failure: Failure, paint: _Painter) -> str:
    """A violation that no requirement speaks of."""
    lines = [f"{paint('UNCLASSIFIED', _RED)} no behaviour of the model explains this, and no requirement speaks of it"]
    lines += _difference_lines(failure)
    lines += _failure_lines(failure)
    return "\n".join(lines)


def _difference_lines(failure: Failure) -> Iterator[str]:
    """What is wrong: the fields with the values expected and observed, or else the whole responses."""
    if failure.title:
        yield from _wrap_text("  ", failure.title, "  ")
    for difference in failure.differences:
        field = f"{difference.name} of {difference.place}" if difference.place else difference.name
        name = "" if difference.name in _TIMING_NAMES else f"{field} = "
        yield from _wrapped_lines("expected", name + difference.expected)
        yield from _wrapped_lines("observed", name + difference.observed)
    if not failure.differences:
        for label, allowed in zip(_label_once("expected"), failure.allowed, strict=False):
            yield from _wrapped_lines(label, _shorten(allowed))
        yield from _wrapped_lines("observed", _shorten(failure.observed))


def _failure_lines(failure: Failure) -> Iterator[str]:
    if failure.guard:
        yield from _wrapped_lines("false guard", failure.guard)
    if failure.rule:
        yield from _wrapped_lines("rule", failure.rule)
    if failure.state:
        yield from _wrapped_lines("state", failure.state)
    steps = enumerate(failure.schedule, 1)
    numbered = (f"{n}. {step}{'   <-- wrong response' if n == failure.wrong_step else ''}" for n, step in steps)
    for label, step in zip(_label_once("schedule"), numbered, strict=False):
        yield from _wrapped_lines(label, step)
    yield _unwrapped_line("trace", f"{failure.trace or 'not saved'}, event {failure.step}")
    if failure.replay:
        yield _unwrapped_line("replay", failure.replay)
    yield _unwrapped_line("replayed", "yes, it failed again" if failure.replayed else "no")


def _shorten(text: str) -> str:
    """A response in words, cut to a readable length; the JSON report has the whole."""
    return text if len(text) <= _MAX_RESPONSE else f"{text[:_MAX_RESPONSE]}... ({len(text)} characters)"


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
        families.setdefault(report.specification.requirements[result.id].family, []).append(result)
    lines = ["Families"]
    lines += (_unwrapped_line(family, _count_verdicts(results)) for family, results in families.items())
    return "\n".join(lines)


def _count_verdicts(results: Sequence[RequirementResult]) -> str:
    counts = Counter(result.verdict for result in results)
    told = {verdict: f"{counts[verdict]} {word}" for verdict, word in _VERDICT_WORDS.items() if counts[verdict]}
    follow = sum(bool(result.causes) for result in results)
    if follow:
        told[Verdict.INCONCLUSIVE] += f" ({follow} by a failure)"
    return ", ".join(told.values())


_VERDICT_WORDS = {
    Verdict.FAIL: "fail",
    Verdict.PASS: "pass",
    Verdict.KNOWN: "known",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.UNSUPPORTED: "unsupported",
    Verdict.NOT_OBSERVED: "not observed",
}


def _reason_block(
    heading: str, default: str, results: list[RequirementResult], requirements: Mapping[str, Requirement]
) -> Iterator[str]:
    """One block that gives each reason once, with the ids it holds for."""
    if not results:
        return
    by_reason: dict[str, list[str]] = {}
    for result in results:
        by_reason.setdefault(result.note or default, []).append(result.id)
    lines = [heading]
    for reason, ids in by_reason.items():
        lines += _wrap_text("  ", fold_ids(ids, requirements), "  ")
        lines += _wrap_text("    ", reason, "    ")
    yield "\n".join(lines)


def fold_ids(ids: Sequence[str], requirements: Mapping[str, Requirement]) -> str:
    """Ids in a line, three or more in a row as the first and the last: `JOIN-01..JOIN-09, JOIN-12`."""
    order = {id: (requirement.family, place) for place, (id, requirement) in enumerate(requirements.items())}
    rows: list[list[str]] = []
    for id in ids:
        family, place = order[id]
        if rows and order[rows[-1][-1]] == (family, place - 1):
            rows[-1].append(id)
        else:
            rows.append([id])
    return ", ".join(f"{row[0]}..{row[-1]}" if len(row) > 2 else ", ".join(row) for row in rows)


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
