"""What every format says in the same words: the outcome of a run, how it ended, its target, and ids in a line."""

from collections import Counter
from collections.abc import Mapping, Sequence

from fencepost.conformance.analysis.causes import find_causes
from fencepost.conformance.reports.layout import escape_unprintable
from fencepost.conformance.results import Ending, EndKind, ExitCode, Report, RequirementResult, Scope, Verdict
from fencepost.model.catalogue.requirement import Requirement

VERDICT_WORDS = {
    Verdict.FAIL: "fail",
    Verdict.PASS: "pass",
    Verdict.KNOWN: "known",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.UNSUPPORTED: "unsupported",
    Verdict.NOT_OBSERVED: "not observed",
}


def outcome_line(report: Report) -> str:
    """The outcome in one line, as the exit code tells it."""
    summary, exit_code, checked = report.summary(), report.exit_code(), report.checked_count()
    whose = f" of a {report.specification.subject}" if report.scope is Scope.TRACES else ""  # they show clients too
    part = f" ({report.scope}{whose})" if report.scope is not Scope.FULL else ""
    if exit_code is ExitCode.COULD_NOT_RUN:
        unreadable = report.ended is not None and report.ended.kind is EndKind.UNREADABLE
        return "INCOMPLETE: not all files could be read." if unreadable else "NOT RUN: nothing was tested."
    if exit_code is ExitCode.VIOLATION:
        cut = " The run was cut short." if report.cut_short else ""
        return f"NOT CONFORMANT: {', '.join(violated_words(report, summary[Verdict.FAIL], checked))}{part}.{cut}"
    if report.ended is not None and report.ended.kind is EndKind.QUARANTINED:
        return "INCONCLUSIVE: not all files could be read."
    if report.cut_short:
        return "INCONCLUSIVE: the run was cut short."
    if undecided := summary[Verdict.INCONCLUSIVE]:
        return f"INCONCLUSIVE: {pluralize(undecided, 'requirement')} could not be decided."
    if report.idle_findings:
        return f"INCONCLUSIVE: nothing is violated, but {escape_unprintable(report.idle_findings[0])}."
    if not checked:
        return "NOTHING CHECKED: no requirement was put to the test."
    known = summary[Verdict.KNOWN]
    apart = f", apart from {pluralize(known, 'known deviation')}" if known else ""
    word = "CONFORMANT" if report.scope is Scope.FULL else "NO VIOLATION"
    of = pluralize(len(report.results), "requirement")
    return f"{word}: {checked} of {of} checked{part}, none violated{apart}."


def violated_words(report: Report, failed: int, checked: int) -> list[str]:
    """What is violated, by the target and by the members of its groups."""
    told = []
    if failed:
        causes = pluralize(sum(bool(each.requirements) for each in find_causes(report)), "cause")
        told.append(f"{causes}, {pluralize(failed, 'requirement')} violated of {checked} checked")
    if report.unclassified:
        told.append(pluralize(len(report.unclassified), "unclassified violation"))
    if report.members is not None and (wrong := len(report.members.failed_results())):
        told.append(f"{pluralize(wrong, 'requirement')} violated by members")
    return told


def describe_ending(ended: Ending) -> str:
    """When a run ended early, during what, and why; without a full stop."""
    if ended.kind is EndKind.NOT_STARTED:
        return f"the run did not start: {ended.reason}"
    if ended.kind in (EndKind.UNREADABLE, EndKind.QUARANTINED):
        return ended.reason
    during = f", during {ended.during}" if ended.during else ""
    heard = f"; its last response came after {format_duration(ended.last_sign)}" if ended.last_sign is not None else ""
    return f"the run ended after {format_duration(ended.seconds)}{during}: {ended.reason}{heard}"


def format_duration(seconds: float) -> str:
    """Seconds as a person writes them: "8.3 s", "2 min 05 s"."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"


def name_of(report: Report) -> str:
    """The target of a report by name and version."""
    return " ".join(filter(None, (report.target["name"], report.target.get("version", ""))))


def count_verdicts(results: Sequence[RequirementResult]) -> str:
    """How many requirements got each verdict, in a line."""
    counts = Counter(result.verdict for result in results)
    told = {verdict: f"{counts[verdict]} {word}" for verdict, word in VERDICT_WORDS.items() if counts[verdict]}
    follow = sum(bool(result.causes) for result in results)
    if follow:
        told[Verdict.INCONCLUSIVE] += f" ({follow} by a failure)"
    return ", ".join(told.values())


def fold_ids(ids: Sequence[str], requirements: Mapping[str, Requirement]) -> str:
    """Ids in a line, three or more in a row as the first and the last: `JOIN-01..JOIN-09, JOIN-12`."""
    order = {id: (requirement.family, place) for place, (id, requirement) in enumerate(requirements.items())}
    rows: list[list[str]] = []
    for id in ids:
        family, place = order.get(id, ("", -1))  # of another catalogue
        if rows and order.get(rows[-1][-1]) == (family, place - 1):
            rows[-1].append(id)
        else:
            rows.append([id])
    return ", ".join(f"{row[0]}..{row[-1]}" if len(row) > 2 else ", ".join(row) for row in rows)


def pluralize(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
