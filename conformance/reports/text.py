"""The report as plain text for a terminal: failures first, then inconclusive requirements with their reasons."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from fencepost.conformance.analysis.causes import Cause, find_causes
from fencepost.conformance.plan import ReplayOutcome, ReplayResult
from fencepost.conformance.reports.ending import describe_ending
from fencepost.conformance.reports.layout import (
    escape_unprintable,
    label_once,
    line_width,
    unwrapped_line,
    wrap_text,
    wrapped_lines,
)
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
_NOT_ASKED = {Scope.SMOKE: "that the smoke scenarios do not touch", Scope.TRACES: "of which the traces show nothing"}
"""What is not observed in a run that did not set out for everything; the other formats have the ids."""

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


def render_report(report: Report, *, colour: bool = False, width: int | None = None) -> str:
    """The whole report, for a terminal of this width in columns if it is known; ends in a newline."""
    with line_width(width):
        blocks = _report_blocks(report, colour)
        if report.members is not None:
            blocks[-1:-1] = _report_blocks(report.members, colour)
        return "\n\n".join(blocks) + "\n"


def _report_blocks(report: Report, colour: bool) -> list[str]:
    paint = _paint if colour else _no_paint
    facts = _fact_lines(report.facts) if report.facts is not None else ()
    blocks = ["\n".join([_target_line(report), *_about_lines(report), *facts])]
    requirements, causes = report.specification.requirements, find_causes(report.results)
    if len(causes) > 1:
        blocks.append(_cause_list(causes))
    by_id = {result.id: result for result in report.results}
    for cause in causes:
        first, *others = cause.requirements
        blocks.append(_failure_block(by_id[first], requirements[first], paint))
        for id in others:
            result, requirement = by_id[id], requirements[id]
            if id in cause.alike:
                blocks.append(_same_failure_block(result, requirement, first, paint))
            else:
                blocks.append(_failure_block(result, requirement, paint))
    blocks += (_unclassified_block(failure, paint) for failure in report.unclassified)
    if report.results:
        blocks.append(_family_table(report))
    for verdict, (heading, reason) in _REASONS.items():
        results = [result for result in report.results if result.verdict is verdict]
        if verdict is Verdict.NOT_OBSERVED and report.scope in _NOT_ASKED:
            blocks += _count_block(heading, _NOT_ASKED[report.scope], results)
        else:
            blocks += _reason_block(heading, reason, results, requirements)
    noted = [r for r in report.results if r.verdict is Verdict.PASS and r.comment]
    blocks += _reason_block("Notes", "", noted, requirements)
    if report.coverage is not None:
        blocks.append(_coverage_block(report.coverage, len(report.rules)))
    if report.undecided:
        blocks.append(_open_questions(report.undecided))
    if report.ended is not None:
        blocks.append("\n".join(wrap_text("", f"Cut short: {describe_ending(report.ended)}", "  ")))
    if report.idle_findings:
        blocks.append("\n".join(["While idle", *(f"  {escape_unprintable(each)}" for each in report.idle_findings)]))
    blocks.append(_closing_lines(report, paint))
    return blocks


def render_summary(report: Report) -> str:
    """The target, the verdicts by families and the outcome, as a few lines."""
    return "\n".join([_target_line(report), _family_table(report), _closing_lines(report, _no_paint)])


def _open_questions(undecided: Sequence[str]) -> str:
    """What is left open."""
    lines = [f"  {escape_unprintable(each)}" for each in undecided[:MAX_OPEN_SHOWN]]
    more = len(undecided) - len(lines)
    return "\n".join(["Left open", *lines, *([f"  and {more} more"] if more else [])])


def render_replay(replay: ReplayResult, *, colour: bool = False, width: int | None = None) -> str:
    """The outcome of a replay, with the failure that was seen; width as for `render_report`."""
    with line_width(width):
        return _replay_text(replay, colour)


def _replay_text(replay: ReplayResult, colour: bool) -> str:
    paint = _paint if colour else _no_paint
    outcome = paint(replay.outcome, _OUTCOME_COLOURS.get(replay.outcome, _RED))
    beside = f"Violated beside it: {', '.join(replay.others)}\n\n" if replay.others else ""
    beside += f"No longer violated: {', '.join(replay.gone)}\n\n" if replay.gone else ""
    if replay.failure is None:
        return f"{beside}{outcome}{f': {escape_unprintable(replay.note)}' if replay.note else ''}\n"
    requirement = replay.specification.requirements.get(replay.requirement)
    if requirement is None:
        block = _unclassified_block(replay.failure, paint)
    else:
        result = RequirementResult(replay.requirement, Verdict.FAIL, failures=(replay.failure,))
        block = _failure_block(result, requirement, paint)
    return f"{block}\n\n{beside}{outcome}\n"


def outcome_line(report: Report) -> str:
    """The outcome in one line, as the exit code tells it."""
    summary, exit_code, checked = report.summary(), report.exit_code(), report.checked_count()
    part = f" ({_describe_scope(report)})" if report.scope is not Scope.FULL else ""
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
        told += [_describe_wrong_members(report.members)] if report.members is not None else []
        told = [each for each in told if each]
        return f"NOT CONFORMANT: {', '.join(told)}{part}.{cut}"
    if report.ended is not None and report.ended.kind is EndKind.QUARANTINED:
        return "INCONCLUSIVE: not all files could be read."
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


def _describe_wrong_members(members: Report) -> str:
    """How many requirements the members violate, "" if none."""
    failed = len(members.failed_results())
    return f"{_pluralize(failed, 'requirement', 'requirements')} violated by members" if failed else ""


def _describe_scope(report: Report) -> str:
    """How much was exercised; of traces, which show clients and brokers alike, also whose requirements these are."""
    return f"{report.scope} of a {report.specification.subject}" if report.scope is Scope.TRACES else report.scope


def _target_line(report: Report) -> str:
    name, *rest = (escape_unprintable(value) for value in _name_first(report))
    return f"Target: {name}" + (f" ({', '.join(rest)})" if rest else "")


def _about_lines(report: Report) -> Iterator[str]:
    """What the profile says of the target, beside its name and version."""
    about = report.provenance.about if report.provenance is not None else {}
    if told := ", ".join(f"{key} {value}" for key, value in about.items() if key not in ("name", "version")):
        yield from wrapped_lines("about", told)


def _fact_lines(facts: TargetFacts) -> Iterator[str]:
    """Lines about the target: settings by origin, APIs, capabilities, and the lines that would switch the others on."""
    by_origin: dict[str, list[str]] = {}
    for name, fact in facts.settings.items():
        by_origin.setdefault(fact.origin, []).append(name if fact.value is None else f"{name} {fact.value}")
    origins = (f"{origin}: {', '.join(names)}" for origin, names in by_origin.items())
    for label, text in zip(label_once("settings"), origins, strict=False):
        yield from wrapped_lines(label, text)
    yield from wrapped_lines("apis", ", ".join(f"{api} {low}-{high}" for api, (low, high) in facts.apis.items()))
    yield from wrapped_lines("capabilities", ", ".join(facts.capabilities) or "none")
    for label, (name, remedy) in zip(label_once("off"), facts.off.items(), strict=False):
        yield from wrapped_lines(label, f"{name}: {remedy}")
    for label, remark in zip(label_once("remarks"), facts.remarks, strict=False):
        yield from wrapped_lines(label, remark)


def _name_first(report: Report) -> Iterator[str]:
    yield report.target["name"]
    yield from (f"{key} {value}" for key, value in report.target.items() if key != "name")


def _failure_block(result: RequirementResult, requirement: Requirement, paint: _Painter) -> str:
    lines = [_failure_heading(requirement, paint)]
    shown = result.failures_by_length()[:1]
    for failure in shown:
        lines += _difference_lines(failure)
    lines += wrapped_lines("requirement", requirement.sentence)
    lines += _source_lines(result, requirement)
    for failure in shown:
        lines += _failure_lines(failure)
        if others := len(result.failures) + result.more_failures - 1:
            lines += wrapped_lines("further", _pluralize(others, "other failure", "other failures"))
    return "\n".join(lines)


def _failure_heading(requirement: Requirement, paint: _Painter) -> str:
    return f"{paint('FAIL', _RED)} {requirement.id} {requirement.level}: {requirement.title}"


def _source_lines(result: RequirementResult, requirement: Requirement) -> Iterator[str]:
    """Where the requirement comes from and since when it holds, and the note to the verdict."""
    yield from wrapped_lines("source", requirement.source)
    if requirement.since is not None:
        yield from wrapped_lines("since", str(requirement.since))
    if result.comment:
        yield from wrapped_lines("note", result.comment)


def _cause_list(causes: Sequence[Cause]) -> str:
    """All causes, each in a line with the requirements that it violates."""
    lines = ["Causes"]
    for number, cause in enumerate(causes, 1):
        lines += wrap_text(f"  {number:>2}. ", f"{', '.join(cause.requirements)}: {_shorten(cause.title)}", " " * 6)
    return "\n".join(lines)


def _same_failure_block(result: RequirementResult, requirement: Requirement, first: str, paint: _Painter) -> str:
    """A requirement that fails by a response that another block shows."""
    lines = [_failure_heading(requirement, paint)]
    lines += wrapped_lines("requirement", requirement.sentence)
    lines += _source_lines(result, requirement)
    lines += wrapped_lines("as", f"{first}: the same wrong response of the same rule")
    lines += _trace_lines(result.failures_by_length()[0])
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
        yield from wrap_text("  ", failure.title, "  ")
    for difference in failure.differences:
        name = "" if difference.name in _TIMING_NAMES else f"{difference.label} = "
        yield from wrapped_lines("expected", name + difference.expected)
        yield from wrapped_lines("observed", name + difference.observed)
    if not failure.differences:
        for label, allowed in zip(label_once("expected"), failure.allowed, strict=False):
            yield from wrapped_lines(label, _shorten(allowed))
        yield from wrapped_lines("observed", _shorten(failure.observed))


def _failure_lines(failure: Failure) -> Iterator[str]:
    if failure.guard:
        yield from wrapped_lines("false guard", failure.guard)
    if failure.rule:
        yield from wrapped_lines("rule", failure.rule)
    if failure.state:
        yield from wrapped_lines("state", failure.state)
    for label, step in zip(label_once("schedule"), failure.numbered_steps(), strict=False):
        yield from wrapped_lines(label, step)
    yield from _trace_lines(failure)
    yield unwrapped_line("replayed", "yes, it failed again" if failure.replayed else "no")


def _trace_lines(failure: Failure) -> Iterator[str]:
    """The trace that shows a failure, and the command that runs its schedule again."""
    yield unwrapped_line("trace", f"{failure.trace or 'not saved'}, event {failure.step}")
    if failure.replay:
        yield unwrapped_line("replay", failure.replay)


def _shorten(text: str) -> str:
    """A response in words, cut to a readable length; the JSON report has the whole."""
    return text if len(text) <= _MAX_RESPONSE else f"{text[:_MAX_RESPONSE]}... ({len(text)} characters)"


def _family_table(report: Report) -> str:
    families: dict[str, list[RequirementResult]] = {}
    for result in report.results:
        families.setdefault(report.specification.requirements[result.id].family, []).append(result)
    lines = ["Families"]
    lines += (unwrapped_line(family, _count_verdicts(results)) for family, results in families.items())
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
        by_reason.setdefault(result.comment or default, []).append(result.id)
    lines = [heading]
    for reason, ids in by_reason.items():
        lines += wrap_text("  ", fold_ids(ids, requirements), "  ")
        lines += wrap_text("    ", reason, "    ")
    yield "\n".join(lines)


def _count_block(heading: str, reason: str, results: Sequence[RequirementResult]) -> Iterator[str]:
    """One block that tells how many requirements a reason holds for."""
    if results:
        yield f"{heading}\n  {_pluralize(len(results), 'requirement', 'requirements')} {reason}"


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
    lines.append(unwrapped_line("rules", f"{rules - len(coverage.rules)} of {rules} seen"))
    lines.append(unwrapped_line("transitions", f"{seen} of {seen + missed} known ones seen"))
    for label, (name, near) in zip(label_once("nearest"), list(coverage.missed.items())[:_MAX_SHOWN], strict=False):
        lines += wrapped_lines(label, f"{name}: {near}")
    if coverage.undecided:
        lines.append(unwrapped_line("not judged", _pluralize(len(coverage.undecided), "schedule", "schedules")))
        for name, reason in list(coverage.undecided.items())[:_MAX_SHOWN]:
            lines += wrapped_lines("", f"{name}: {reason}")
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
    return "\n".join([*wrap_text("", f"{counts}; {', '.join(run)}.", "  "), outcome])


def _pluralize(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
