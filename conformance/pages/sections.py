"""The sections of the page of a report."""

from collections.abc import Iterator, Mapping, Sequence

from fencepost.conformance.analysis.causes import Cause, find_causes
from fencepost.conformance.diagrams.coverage import draw_coverage
from fencepost.conformance.diagrams.excerpt import draw_excerpt, read_excerpt
from fencepost.conformance.diagrams.phases import follow_phases
from fencepost.conformance.diagrams.svg import clean, to_svg
from fencepost.conformance.pages.elements import (
    GLYPHS,
    command_line,
    element,
    fold,
    listing,
    requirement_link,
    section,
    table,
    verdict_mark,
)
from fencepost.conformance.provenance import NamedBy, describe_kit
from fencepost.conformance.reports.document import count_tiers
from fencepost.conformance.reports.ending import describe_ending
from fencepost.conformance.reports.progress import format_duration
from fencepost.conformance.reports.text import outcome_line
from fencepost.conformance.results import Coverage, Failure, Report, RequirementResult, Scope, TargetFacts, Verdict
from fencepost.model.catalogue.requirement import Requirement

MAX_DIAGRAMS = 50
"""How many causes are drawn; of the others there is the schedule as text."""
NAMED = {
    NamedBy.PROFILE: "named by its profile",
    NamedBy.TARGET: "named by itself",
    NamedBy.NOBODY: "an unnamed build",
}
REASONS = {
    Verdict.INCONCLUSIVE: "Inconclusive",
    Verdict.KNOWN: "Declared deviations",
    Verdict.UNSUPPORTED: "Unsupported",
    Verdict.NOT_OBSERVED: "Not observed",
}


def head_section(report: Report) -> str:
    """The outcome, the target, and where the report comes from."""
    kit = report.kit or describe_kit(report.specification)
    origin = report.provenance
    named = f" <span class='soft'>({NAMED[origin.named_by]})</span>" if origin is not None else ""
    pairs = [("target", clean(report.target["name"]) + named)]
    pairs += ((key, clean(value)) for key, value in report.target.items() if key != "name")
    if origin is not None:
        pairs += ((key, clean(value)) for key, value in origin.about.items() if key not in report.target)
        pairs.append(("date", clean(origin.started)))
    pairs.append(
        ("kit", clean(f"Fencepost {kit.version}, {kit.requirements} requirements, catalogue {kit.catalogue[:12]}"))
    )
    pairs.append(
        (
            "run",
            clean(
                f"seed {report.seed}, {report.schedules} schedules, {report.events} events, "
                f"{format_duration(report.seconds)}"
            ),
        )
    )
    if origin is not None and origin.plan is not None:
        pairs.append(("command", command_line(" ".join(origin.plan.command))))
    banners = [f"Only a part was put to the test: {report.scope}."] if report.scope is not Scope.FULL else []
    if report.ended is not None:
        banners.append(f"The run was cut short: {describe_ending(report.ended)}")
    told = "".join(element("p", clean(each), class_="banner") for each in banners)
    return f"<header><h1>{clean(outcome_line(report))}</h1>{told}{listing(pairs)}</header>"


def map_section(report: Report) -> str:
    """A cell for each requirement, in a row for each family, and the counts by tier."""
    requirements = report.specification.requirements
    families: dict[str, list[str]] = {}
    for result in report.results:
        requirement = requirements[result.id]
        label = f"{result.id} {result.verdict}: {requirement.title}"
        cell = element(
            "a", GLYPHS[result.verdict], href=f"#{result.id}", class_=str(result.verdict), title=label, aria_label=label
        )
        families.setdefault(requirement.family, []).append(f"<li>{cell}</li>")
    rows = "".join(f"<div>{clean(family)}</div><ul>{''.join(cells)}</ul>" for family, cells in families.items())
    return section("map", "Requirements", legend(report), element("div", rows, class_="map"), tier_table(report))


def legend(report: Report) -> str:
    """What the signs of the map mean, with the number of requirements of each verdict."""
    counts = report.summary()
    told = (f"{verdict_mark(verdict)} {counts[verdict]}" for verdict in Verdict if counts[verdict])
    return element("p", " &nbsp; ".join(told))


def tier_table(report: Report) -> str:
    """How many requirements of each tier got each verdict."""
    rows = (
        [clean(tier), str(sum(counts.values())), *(str(counts.get(str(verdict), 0)) for verdict in Verdict)]
        for tier, counts in count_tiers(report).items()
    )
    return table(["tier", "of", *map(str, Verdict)], rows, aria_label="verdicts by tier")


def violations_section(report: Report) -> str:
    """The causes with their diagrams."""
    by_id = {result.id: result for result in report.results}
    causes = find_causes(report.results)
    blocks = [
        cause_block(cause, report.specification.requirements, by_id, is_drawn=number < MAX_DIAGRAMS)
        for number, cause in enumerate(causes)
    ]
    for failure in report.unclassified:
        title = "A violation that no requirement speaks of"
        blocks.append(element("article", f"<h3>{title}</h3>{failure_block(failure, title, True)}", class_="cause"))
    count = len(causes) + len(report.unclassified)
    return section("violations", f"Violations: {count} cause{'' if count == 1 else 's'}", *blocks)


def cause_block(
    cause: Cause, requirements: Mapping[str, Requirement], results: Mapping[str, RequirementResult], *, is_drawn: bool
) -> str:
    """A cause: the requirements that it violates, and the failure that shows it best."""
    first, *others = cause.requirements
    shown = requirements[first]
    heading = f"<h3>{verdict_mark(Verdict.FAIL)} {requirement_link(first)} {clean(cause.title)}</h3>"
    pairs = [
        ("requirement", f"{clean(str(shown.level))}: {clean(shown.sentence)}"),
        ("source", clean(shown.source)),
        ("note", clean(results[first].comment)),
        ("violates too", "<br>".join(f"{requirement_link(id)} {clean(requirements[id].title)}" for id in others)),
    ]
    failure = failure_block(cause.failure, shown.title, is_drawn) if cause.failure is not None else ""
    return element("article", f"{heading}{listing(pairs)}{failure}", class_="cause")


def failure_block(failure: Failure, title: str, is_drawn: bool) -> str:
    """A failure: the wrong fields, the condition that was false, the diagram, the schedule, and how to replay it."""
    if failure.differences:
        rows = ([clean(each.label), clean(each.expected), clean(each.observed)] for each in failure.differences)
        wrong = table(["field", "expected", "observed"], rows, aria_label="wrong fields")
    else:
        pairs = [("observed", clean(failure.observed)), ("allowed", clean("; ".join(failure.allowed)))]
        wrong = listing(pairs)
    pairs = [("false guard", clean(failure.guard)), ("rule", clean(failure.rule)), ("state", clean(failure.state))]
    schedule = "".join(f"<li>{clean(step)}</li>" for step in failure.schedule)
    text = fold("The schedule as text", f"<ol>{schedule}</ol>") if schedule else ""
    replay = listing([("replay", command_line(failure.replay))]) if failure.replay else ""
    return wrong + listing(pairs) + (diagram_of(failure, title) if is_drawn else "") + text + replay


def diagram_of(failure: Failure, title: str) -> str:
    """The sequence diagram of a failure with the phases of the model; "" without a trace."""
    excerpt = read_excerpt(failure)
    if excerpt is None:
        return ""
    header, events = excerpt
    diagram = draw_excerpt(excerpt, failure.step)
    phases = follow_phases(header, events, diagram.steps)
    picture = to_svg(diagram, phases, f"Sequence diagram: {title}", "The schedule as text follows.")
    return element("div", picture, class_="scroll", tabindex="0", role="region", aria_label="sequence diagram")


def reasons_section(report: Report) -> str:
    """Everything that was not decided, with its reasons, and remarks on what passes."""
    groups = [(heading, [r for r in report.results if r.verdict is verdict]) for verdict, heading in REASONS.items()]
    groups.append(("Passed, with a remark", [r for r in report.results if r.verdict is Verdict.PASS and r.comment]))
    blocks = [
        fold(f"{heading}: {len(results)}", reason_table(results), is_open=heading == REASONS[Verdict.INCONCLUSIVE])
        for heading, results in groups
        if results
    ]
    told = [*report.undecided, *report.idle_findings]
    if told:
        blocks.append(
            fold("Left open, or seen while idle", "".join(f"<p>{clean(each)}</p>" for each in told), is_open=True)
        )
    return section("reasons", "Not decided, and remarks", *blocks)


def reason_table(results: Sequence[RequirementResult]) -> str:
    """Reasons with the requirements that they hold for."""
    by_reason: dict[str, list[str]] = {}
    for result in results:
        by_reason.setdefault(result.comment or "not exercised", []).append(requirement_link(result.id))
    return table(
        ["reason", "requirements"],
        ([clean(reason), " ".join(ids)] for reason, ids in by_reason.items()),
        aria_label="reasons",
    )


def requirements_section(report: Report) -> str:
    """All requirements in a table that can be searched."""
    label = (
        '<p hidden><label>Filter: <input id="filter" type="search" placeholder="JOIN, fail, generation"></label></p>'
    )
    rows = "".join(map(str, requirement_rows(report)))
    head = "".join(f'<th scope="col">{each}</th>' for each in ("id", "verdict", "requirement", "checks"))
    inner = f'<table id="requirements-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    box = element("div", inner, class_="scroll", tabindex="0", role="region", aria_label="all requirements")
    return section("requirements", "All requirements", fold(f"{len(report.results)} requirements", label, box))


def requirement_rows(report: Report) -> Iterator[str]:
    """A row for each requirement."""
    for result in report.results:
        requirement = report.specification.requirements[result.id]
        since = f" Since {requirement.since}." if requirement.since is not None else ""
        words = (
            f"<b>{clean(requirement.title)}</b> ({clean(str(requirement.level))}, {clean(str(requirement.tier))})<br>"
            f"{clean(requirement.sentence)}<br><span class='soft'>{clean(requirement.source)}.{clean(since)}</span>"
        )
        note = f"<br>{clean(result.comment)}" if result.comment else ""
        cells = [clean(result.id), verdict_mark(result.verdict) + note, words, str(result.checks)]
        yield element("tr", "".join(f"<td>{cell}</td>" for cell in cells), id=result.id)


def coverage_section(report: Report) -> str:
    """What random schedules covered of the model, on a diagram of the phases, and the rules."""
    parts = [coverage_block(report.coverage)] if report.coverage is not None else []
    if report.rules:
        rows = (
            [clean(name), str(rule.seen), " ".join(map(requirement_link, rule.requirements))]
            for name, rule in sorted(report.rules.items())
        )
        seen = sum(1 for rule in report.rules.values() if rule.seen)
        title = f"{seen} of {len(report.rules)} rules of the model explained a response"
        parts.append(fold(title, table(["rule", "responses", "requirements"], rows, aria_label="rules")))
    return section("coverage", "Coverage of the model", *parts)


def coverage_block(coverage: Coverage) -> str:
    """The phases with the transitions that were seen, and those that were missed."""
    seen, missed = len(coverage.transitions), len(coverage.missed)
    told = f"<p>{seen} of {seen + missed} known transitions were seen in {coverage.schedules} random schedules.</p>"
    picture = element("div", draw_coverage(coverage), class_="scroll", tabindex="0", role="region", aria_label="phases")
    rows = ([clean(name), clean(near)] for name, near in coverage.missed.items())
    table_of_missed = table(["transition", "how near a schedule came"], rows, aria_label="missed transitions")
    return told + picture + (fold(f"{missed} missed transitions", table_of_missed) if missed else "")


def run_section(report: Report) -> str:
    """How it was run: settings, APIs, capabilities, profile, machine."""
    parts = [facts_block(report.facts)] if report.facts is not None else []
    origin = report.provenance
    if origin is not None:
        machine = origin.machine
        pairs = [
            ("machine", clean(f"{machine.os}, {machine.cpus} processors, Python {machine.python}")),
            ("job", clean(machine.ci)),
            ("commit", clean(machine.commit)),
        ]
        if origin.profile is not None:
            pairs.append(("offers", clean(", ".join(origin.profile.offers))))
            pairs += ((f"declared: {id}", clean(reason)) for id, reason in origin.profile.known.items())
        parts.append(listing(pairs))
    return section("run", "How it was run", *parts)


def facts_block(facts: TargetFacts) -> str:
    """What was known about the target."""
    settings = table(
        ["setting", "value", "origin"],
        (
            [clean(name), "not told" if fact.value is None else str(fact.value), clean(fact.origin)]
            for name, fact in facts.settings.items()
        ),
        aria_label="settings",
    )
    apis = ", ".join(f"{name} {low}-{high}" for name, (low, high) in facts.apis.items())
    off = table(
        ["capability that is off", "what switches it on"],
        ([clean(name), element("code", clean(remedy))] for name, remedy in facts.off.items()),
        aria_label="capabilities that are off",
    )
    pairs = [
        ("capabilities", clean(", ".join(facts.capabilities))),
        ("APIs", clean(apis)),
        ("remarks", clean("; ".join(facts.remarks))),
    ]
    return settings + listing(pairs) + (off if facts.off else "")


def members_section(report: Report) -> str:
    """What the members of recorded groups did wrong, and what else of them was checked; "" without recordings."""
    members = report.members
    if members is None:
        return ""
    requirements, by_id = members.specification.requirements, {result.id: result for result in members.results}
    blocks = [cause_block(cause, requirements, by_id, is_drawn=False) for cause in find_causes(members.results)]
    rows = [
        [element("span", clean(each.id), id=each.id), verdict_mark(each.verdict), clean(requirements[each.id].title)]
        for each in members.results
        if each.verdict is not Verdict.NOT_OBSERVED
    ]
    told = element("p", clean(outcome_line(members)))
    checked = table(["requirement", "verdict", "title"], rows, aria_label="requirements of members")
    return section("members", f"The {members.target['name']}", told, *blocks, checked)


def detail_sections(report: Report) -> str:
    """All sections of a report but the head."""
    parts = (
        map_section(report),
        violations_section(report),
        members_section(report),
        reasons_section(report),
        requirements_section(report),
        coverage_section(report),
        run_section(report),
    )
    return "\n".join(filter(None, parts))
