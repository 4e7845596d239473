"""Reports as documents: of a run, failures first; of several runs side by side; and of what changed between two."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from fencepost.conformance.analysis.causes import compare_reports, find_causes
from fencepost.conformance.plan import ReplayOutcome, ReplayResult
from fencepost.conformance.reports.document import (
    NEW_LINE,
    RICH_MEDIA,
    SIGNS,
    Block,
    Bullets,
    Diagram,
    Document,
    FamilyMap,
    Fold,
    Headline,
    Medium,
    Only,
    Pairs,
    Paragraph,
    Part,
    Section,
    Span,
    Style,
    Table,
    Text,
    link_to,
    sign_of,
)
from fencepost.conformance.reports.drawings import draw_coverage, draw_failure, draw_failure_as_mermaid
from fencepost.conformance.reports.html import render_html
from fencepost.conformance.reports.json_report import count_tiers, to_json
from fencepost.conformance.reports.markdown import render_markdown
from fencepost.conformance.reports.text import render_text
from fencepost.conformance.reports.words import (
    count_verdicts,
    describe_ending,
    fold_ids,
    format_duration,
    name_of,
    outcome_line,
    pluralize,
)
from fencepost.conformance.results import (
    Coverage,
    ExitCode,
    Failure,
    NamedBy,
    Provenance,
    Report,
    RequirementResult,
    Scope,
    TargetFacts,
    Verdict,
    describe_kit,
)
from fencepost.model.catalogue.requirement import Requirement

NO_CHANGE = "Nothing is newly broken, and everything that was checked still is."
MAX_DRAWN = 30
"""How many causes are drawn; of the others there is the schedule. Code hosts take a summary of 1 MiB at most."""
MAX_NEAREST = 3
"""How many transitions that were missed, or schedules that were not judged, are told with their reasons."""
MAX_OPEN_SHOWN = 20
"""How many lines say what recorded traces leave open."""
MAX_RESPONSE = 600
"""How many characters of a whole response are shown."""
TIMING_NAMES = frozenset({"early", "late", "response"})
"""Names of differences that are no fields of a response."""

REASONS = {
    Verdict.KNOWN: ("Known deviations", "declared in the profile"),
    Verdict.INCONCLUSIVE: ("Inconclusive", "the run could not decide"),
    Verdict.UNSUPPORTED: ("Unsupported", "the target does not offer what the test needs"),
    Verdict.NOT_OBSERVED: ("Not observed", "nothing in the run touched it"),
}
NOT_ASKED = {Scope.SMOKE: "that the smoke scenarios do not touch", Scope.TRACES: "of which the traces show nothing"}
"""What is not observed in a run that did not set out for everything; the table of a page has the ids."""
NAMED = {
    NamedBy.PROFILE: "named by its profile",
    NamedBy.TARGET: "named by itself",
    NamedBy.NOBODY: "an unnamed build",
}
TONES = {
    ExitCode.VIOLATION: Verdict.FAIL,
    ExitCode.CONFORMANT: Verdict.PASS,
    ExitCode.INCONCLUSIVE: Verdict.INCONCLUSIVE,
    ExitCode.COULD_NOT_RUN: Verdict.FAIL,
}
REPLAY_TONES = {ReplayOutcome.FIXED: Verdict.PASS, ReplayOutcome.INCONCLUSIVE: Verdict.INCONCLUSIVE}
Rows = list[tuple[str, tuple[Text, ...]]]
Links = Sequence[tuple[str, str | None]]
"""Names of sources with their addresses, None where none is known."""


def render_report(report: Report, *, colour: bool = False, width: int | None = None) -> str:
    """The whole report, for a terminal of this width in columns if it is known; ends in a newline."""
    return render_text(describe_report(report), colour=colour, width=width)


def to_html(report: Report) -> str:
    """The page of a report, which contains the report as JSON. Equal reports give equal pages."""
    return render_html(describe_report(report), to_json(report))


def to_markdown(report: Report) -> str:
    """The report as Markdown text that ends in a newline."""
    return render_markdown(describe_report(report))


def render_summary(report: Report) -> str:
    """The target, the verdicts by families and the outcome, as a few lines."""
    blocks = (target_line(report), Part("Families", (family_map(report),)), *closing_blocks(report))
    return render_text(Document("", (Part("", blocks),)))


def render_replay(replay: ReplayResult, *, colour: bool = False, width: int | None = None) -> str:
    """The outcome of a replay, with the failure that was seen; width as for `render_report`."""
    blocks: list[Block] = []
    outcome = [Span(replay.outcome, tone=REPLAY_TONES.get(replay.outcome, Verdict.FAIL))]
    if replay.failure is not None:
        requirement = replay.specification.requirements.get(replay.requirement)
        result = RequirementResult(replay.requirement, Verdict.FAIL, failures=(replay.failure,))
        if requirement is None:
            blocks.append(unclassified_part(replay.failure))
        else:
            blocks.append(failure_part(result, requirement, replay.specification.links_of(requirement.id)))
    elif replay.note:
        outcome.append(Span(f": {replay.note}"))
    blocks += [Paragraph(f"Violated beside it: {', '.join(replay.others)}")] if replay.others else []
    blocks += [Paragraph(f"No longer violated: {', '.join(replay.gone)}")] if replay.gone else []
    return render_text(Document("", (*blocks, Headline(tuple(outcome)))), colour=colour, width=width)


def describe_report(report: Report) -> Document:
    """The document of a report."""
    return Document(
        f"{SIGNS[TONES[report.exit_code()]]} {report.target['name']}: Fencepost",
        (
            Only(RICH_MEDIA, (Headline(outcome_of(report)),)),
            head_part(report),
            Only(RICH_MEDIA, tuple(origin_blocks(report))),
            *detail_sections(report),
            Only(Medium.TERMINAL, (Part("", closing_blocks(report)),)),
        ),
    )


def detail_sections(report: Report) -> Iterator[Section | Only]:
    """All of a report between its head and its end."""
    yield from result_sections(report)
    if (members := report.members) is not None:
        blocks = (
            Only(RICH_MEDIA, (Paragraph(outcome_line(members)),)),
            Only(Medium.TERMINAL, (head_part(members),)),
            *(part for section in result_sections(members, is_drawn=False) for part in parts_of(section)),
            requirements_part(members, is_searched=False),
            Only(Medium.TERMINAL, (Part("", closing_blocks(members)),)),
        )
        yield Section("members", f"The {members.target['name']}", blocks)
    yield Only(
        Medium.PAGE, (Section("requirements", "All requirements", (requirements_part(report, is_searched=True),)),)
    )
    run = fact_rows(report.facts) if report.facts is not None else []
    run += origin_rows(report.provenance) if report.provenance is not None else []
    if run:
        yield Only(RICH_MEDIA, (Section("run", "How it was run", (Pairs(tuple(run)),)),))


def result_sections(report: Report, *, is_drawn: bool = True) -> Iterator[Section]:
    """What came of the requirements of a report."""
    causes = len(find_causes(report)) + sum(not each.is_harm for each in report.unclassified)
    if causes:
        title = f"Violations: {pluralize(causes, 'cause')}"
        yield Section("violations", title, tuple(violation_parts(report, is_drawn=is_drawn)))
    if report.results:
        counts = [(verdict, count) for verdict, count in report.summary().items() if count]
        signs = (span for verdict, count in counts for span in (*sign_of(verdict), f" {count}  "))
        legend = Only(Medium.PAGE, (Paragraph(tuple(signs)),))
        whole = family_map(report)
        asked = [row for row in whole.rows if any(cell.tone is not Verdict.NOT_OBSERVED for cell in row[1])]
        short = Only(Medium.TERMINAL, (FamilyMap(tuple(asked)) if asked else whole,))
        tiers = tier_table(report, "verdicts by tier" if is_drawn else "verdicts of members by tier")
        blocks = (legend, short, Only(RICH_MEDIA, (whole, tiers)))
        yield Section("map", "Families", blocks, is_titled=True)
    if reasons := tuple(reason_parts(report)):
        yield Section("reasons", "Not decided, and remarks", reasons)
    if report.coverage is not None or report.rules:
        told = tuple(coverage_blocks(report))
        yield Section("coverage", "Coverage of the model", told, is_titled=report.coverage is not None)
    if left := tuple(open_blocks(report)):
        yield Section("open", "Left open, or seen while idle", left)


def parts_of(section: Section) -> Iterator[Block]:
    """The blocks of a section within another one."""
    if section.is_titled:
        yield Part(section.title, section.blocks)
    else:
        yield from section.blocks


# --- head and end -------------------------------------------------------------------------------------------------


def outcome_of(report: Report) -> Span:
    """The outcome in its colour."""
    return Span(outcome_line(report), tone=TONES[report.exit_code()])


def head_part(report: Report) -> Part:
    """The target, and on a terminal what was known about it."""
    about = report.provenance.about if report.provenance is not None else {}
    told = ", ".join(f"{key} {value}" for key, value in about.items() if key not in ("name", "version"))
    facts = (Pairs(tuple(fact_rows(report.facts))),) if report.facts is not None else ()
    return Part("", (target_line(report), Pairs(row("about", told)), Only(Medium.TERMINAL, facts)))


def target_line(report: Report) -> Paragraph:
    """The target by name, and what else it is called."""
    others = ", ".join(f"{key} {value}" for key, value in report.target.items() if key != "name")
    spans = [Span("Target: "), Span(report.target["name"], Style.STRONG)]
    spans += [Span(" ("), Span(others, Style.CODE), Span(")")] if others else []
    if report.provenance is not None:
        spans.append(Span(f" ({NAMED[report.provenance.named_by]})", Style.SOFT, media=Medium.PAGE))
    return Paragraph(tuple(spans))


def origin_blocks(report: Report) -> Iterator[Block]:
    """How much was put to the test, and where the report comes from."""
    if report.scope is not Scope.FULL:
        yield Paragraph(f"Only a part was put to the test: {report.scope}.", is_banner=True)
    if report.ended is not None:
        yield Paragraph(f"The run was cut short: {describe_ending(report.ended)}", is_banner=True)
    kit, origin = report.kit or describe_kit(report.specification), report.provenance
    told = f"Fencepost {kit.version}, {kit.requirements} requirements, catalogue {kit.catalogue[:12]}"
    first = next((cause for cause in find_causes(report) if cause.failure is not None), None)
    if first is not None and first.failure is not None:
        begin = (link_to(each) for each in first.requirements[:1])
        replay = (": ", Span(first.failure.replay, Style.COMMAND)) if first.failure.replay else ()
        yield Paragraph(("Next step: mend ", *begin, *replay), is_banner=True)
    command = " ".join(origin.plan.command) if origin is not None and origin.plan is not None else ""
    yield Pairs(
        (
            *row("date", origin.started if origin is not None else ""),
            *row("kit", told),
            *row("run", counts_line(report)),
            *row("command", command, Style.COMMAND),
        )
    )


def closing_blocks(report: Report) -> tuple[Block, ...]:
    """How much was done, and the outcome as the last line."""
    return (Paragraph(counts_line(report)), Headline(outcome_of(report)))


def counts_line(report: Report) -> str:
    """The number of requirements by verdict, and what the run did."""
    seen = sum(1 for rule in report.rules.values() if rule.seen)
    run = [
        pluralize(report.schedules, "schedule"),
        pluralize(report.events, "event"),
        *([f"{seen} of {len(report.rules)} rules seen"] if report.rules else []),
        format_duration(report.seconds),
        f"seed {report.seed}",
    ]
    counts = f"{pluralize(len(report.results), 'requirement')}: {count_verdicts(report.results) or 'none'}"
    return f"{counts}; {', '.join(run)}."


def fact_rows(facts: TargetFacts) -> Rows:
    """The target: settings by origin, APIs, capabilities, and the lines that would switch the others on."""
    by_origin: dict[str, list[str]] = {}
    for name, fact in facts.settings.items():
        by_origin.setdefault(fact.origin, []).append(name if fact.value is None else f"{name} {fact.value}")
    return [
        ("settings", tuple(f"{origin}: {', '.join(names)}" for origin, names in by_origin.items())),
        ("apis", (", ".join(f"{api} {low}-{high}" for api, (low, high) in facts.apis.items()),)),
        ("capabilities", (", ".join(facts.capabilities) or "none",)),
        ("off", tuple(f"{name}: {remedy}" for name, remedy in facts.off.items())),
        ("remarks", facts.remarks),
    ]


def origin_rows(origin: Provenance) -> Rows:
    """The machine of the kit, and the profile."""
    machine, profile = origin.machine, origin.profile
    rows = [*row("machine", f"{machine.os}, {machine.cpus} processors, Python {machine.python}")]
    rows += (*row("job", machine.ci), *row("commit", machine.commit))
    if profile is not None:
        rows += row("offers", ", ".join(profile.offers))
        rows += ((f"declared: {id}", (reason,)) for id, reason in profile.known.items())
    return rows


# --- requirements -------------------------------------------------------------------------------------------------


def family_map(report: Report) -> FamilyMap:
    """The families, each with its requirements and the number of those with each verdict."""
    requirements = report.specification.requirements
    cells: dict[str, list[Span]] = {}
    families: dict[str, list[RequirementResult]] = {}
    for result in report.results:
        requirement = requirements[result.id]
        label = f"{result.id} {result.verdict}: {requirement.title}"
        cell = Span(SIGNS[result.verdict], href=f"#{result.id}", tone=result.verdict, label=label)
        cells.setdefault(requirement.family, []).append(cell)
        families.setdefault(requirement.family, []).append(result)
    return FamilyMap(tuple((name, tuple(cells[name]), count_verdicts(families[name])) for name in families))


def tier_table(report: Report, name: str) -> Table:
    """How many requirements of each tier got each verdict."""
    rows = (
        (tier, str(sum(counts.values())), *(str(counts.get(str(verdict), 0)) for verdict in Verdict))
        for tier, counts in count_tiers(report).items()
    )
    return Table(name, ("tier", "requirements", *map(str, Verdict)), tuple(rows))


def requirements_part(report: Report, *, is_searched: bool) -> Block:
    """A row for each requirement, on pages alone."""
    requirements = report.specification.requirements
    rows = tuple(requirement_row(result, requirements[result.id]) for result in report.results)
    table = Table("all requirements", ("id", "verdict", "requirement", "checks"), rows, is_searched=is_searched)
    return Only(Medium.PAGE, (Part(pluralize(len(rows), "requirement"), (table,), Fold.CLOSED),))


def requirement_row(result: RequirementResult, requirement: Requirement) -> tuple[Text, ...]:
    """The cells of a requirement."""
    since = f" Since {requirement.since}." if requirement.since is not None else ""
    words = (
        Span(requirement.title, Style.STRONG),
        f" ({requirement.level}, {requirement.tier})",
        NEW_LINE,
        requirement.sentence,
        NEW_LINE,
        Span(f"{requirement.source}.{since}", Style.SOFT),
    )
    note = (NEW_LINE, result.comment) if result.comment else ()
    return Span(result.id, id=result.id), (*sign_of(result.verdict), *note), words, str(result.checks)


def reason_parts(report: Report) -> Iterator[Part]:
    """Everything that was not decided, with its reasons, and remarks on what passes."""
    requirements = report.specification.requirements
    for verdict, (heading, reason) in REASONS.items():
        results = [result for result in report.results if result.verdict is verdict]
        if results and verdict is Verdict.NOT_OBSERVED and report.scope in NOT_ASKED:
            yield Part(heading, (Paragraph(f"{pluralize(len(results), 'requirement')} {NOT_ASKED[report.scope]}"),))
        elif results:
            fold = Fold.OPEN if verdict is Verdict.INCONCLUSIVE else Fold.CLOSED
            yield reason_part(heading, reason, results, requirements, fold)
    noted = [result for result in report.results if result.verdict is Verdict.PASS and result.comment]
    if noted:
        yield reason_part("Notes", "", noted, requirements, Fold.CLOSED)


def reason_part(
    heading: str,
    default: str,
    results: Sequence[RequirementResult],
    requirements: Mapping[str, Requirement],
    fold: Fold,
) -> Part:
    """Each reason once, with the requirements that it holds for."""
    by_reason: dict[str, list[str]] = {}
    for result in results:
        by_reason.setdefault(result.comment or default, []).append(result.id)
    rows = tuple((linked_ids(ids, requirements), reason) for reason, ids in by_reason.items())
    title = (heading, Span(f": {len(results)}", media=RICH_MEDIA))
    return Part(title, (Table(heading, ("requirements", "reason"), rows, is_stacked=True),), fold)


def linked_ids(ids: Iterable[str], requirements: Mapping[str, Requirement]) -> Text:
    """Ids in a line; on a page each is a link."""
    shown = list(ids)
    links = (Span(text, href=href, media=Medium.PAGE) for id in shown for text, href in ((id, f"#{id}"), (" ", "")))
    return (Span(fold_ids(shown, requirements), media=Medium.TERMINAL | Medium.SUMMARY), *links)


def coverage_blocks(report: Report) -> Iterator[Block]:
    """What was seen of the model, the nearest misses, and the first schedules that could not be judged."""
    coverage = report.coverage
    if coverage is not None:
        yield Pairs(tuple(coverage_rows(coverage, len(report.rules))))
        drawing = Diagram("phases", partial(draw_coverage, coverage))
        missed = Table("missed transitions", ("transition", "how near"), tuple(coverage.missed.items()))
        title = f"{pluralize(len(coverage.missed), 'missed transition')} in {coverage.schedules} random schedules"
        yield Only(Medium.PAGE, (drawing, Part(title, (missed,), Fold.CLOSED)))
    if report.rules:
        rows = (
            (name, str(rule.seen), tuple(span for id in rule.requirements for span in (link_to(id), " ")))
            for name, rule in sorted(report.rules.items())
        )
        seen = sum(1 for rule in report.rules.values() if rule.seen)
        title = f"{seen} of {len(report.rules)} rules of the model explained a response"
        table = Table("rules", ("rule", "responses", "requirements"), tuple(rows))
        yield Only(Medium.PAGE, (Part(title, (table,), Fold.CLOSED),))


def coverage_rows(coverage: Coverage, rules: int) -> Rows:
    """The coverage in numbers."""
    seen, missed = len(coverage.transitions), len(coverage.missed)
    undecided = pluralize(len(coverage.undecided), "schedule") if coverage.undecided else ""
    return [
        *row("rules", f"{rules - len(coverage.rules)} of {rules} seen"),
        *row("transitions", f"{seen} of {seen + missed} known ones seen"),
        ("nearest", tuple(f"{name}: {near}" for name, near in list(coverage.missed.items())[:MAX_NEAREST])),
        *row("not judged", undecided),
        ("", tuple(f"{name}: {reason}" for name, reason in list(coverage.undecided.items())[:MAX_NEAREST])),
    ]


def open_blocks(report: Report) -> Iterator[Block]:
    """What recorded traces leave open, how the run ended, and what the target did while it was idle."""
    if report.undecided:
        more = len(report.undecided) - MAX_OPEN_SHOWN
        lines = (*report.undecided[:MAX_OPEN_SHOWN], *([f"and {more} more"] if more > 0 else []))
        yield Part("Left open", (Bullets(lines, is_wrapped=True),))
    if report.ended is not None:
        yield Only(Medium.TERMINAL, (Paragraph(f"Cut short: {describe_ending(report.ended)}"),))
    if report.idle_findings:
        yield Part("While idle", (Bullets(report.idle_findings),))


# --- failures -----------------------------------------------------------------------------------------------------


def violation_parts(report: Report, *, is_drawn: bool = True) -> Iterator[Part]:
    """The causes in a list if there are several, what brought the target down, then each failed requirement, and what
    no requirement speaks of."""
    requirements, causes = report.specification.requirements, find_causes(report)
    if len(causes) > 1:
        names = (", ".join(each.requirements) or "UNCLASSIFIED" for each in causes)
        told = (f"{each.harm}. {shorten(each.title)}" for each in causes)
        yield Part("Causes", (Bullets(tuple(map(": ".join, zip(names, told, strict=True))), is_numbered=True),))
    yield from (unclassified_part(failure) for failure in report.unclassified if failure.is_harm)
    by_id = {result.id: result for result in report.results}
    for number, cause in enumerate(each for each in causes if each.requirements):
        first, *others = cause.requirements
        links = report.specification.links_of
        yield failure_part(by_id[first], requirements[first], links(first), is_drawn=is_drawn and number < MAX_DRAWN)
        for id in others:
            as_first = first if id in cause.alike else ""
            yield failure_part(by_id[id], requirements[id], links(id), as_first)
    for number, failure in enumerate(each for each in report.unclassified if not each.is_harm):
        yield unclassified_part(failure, is_drawn=is_drawn and number < MAX_DRAWN)


def failure_part(
    result: RequirementResult, requirement: Requirement, links: Links, as_first: str = "", *, is_drawn: bool = False
) -> Part:
    """A failed requirement with its shortest failure, or with the requirement whose part shows the same response."""
    shown = next(iter(result.failures_by_length()), None)
    since = str(requirement.since) if requirement.since is not None else ""
    words = [
        *row("requirement", requirement.sentence),
        *source_rows(links),
        *row("since", since),
        *row("note", result.comment),
    ]
    title = (*sign_of(Verdict.FAIL, "FAIL"), " ", link_to(result.id), f" {requirement.level}: {requirement.title}")
    if as_first and shown is not None:
        alike = (link_to(as_first), ": the same wrong response of the same rule")
        return Part(title, (Pairs((*words, ("as", (alike,)), *trace_rows(shown))),))
    if shown is None:
        return Part(title, (Pairs(tuple(words)),))
    others = len(result.failures) + result.more_failures - 1
    further = row("further", pluralize(others, "other failure") if others else "")
    return Part(title, failure_blocks(shown, words, further, requirement.title if is_drawn else ""))


def source_rows(links: Links) -> Rows:
    """The sources of a requirement, with the addresses where they can be read."""
    told = ((name, address or "", f", {address}" if address else "") for name, address in links)
    texts = ((Span(name, href=href), Span(shown, Style.CODE, media=Medium.TERMINAL)) for name, href, shown in told)
    return [("source", tuple(texts))]


def unclassified_part(failure: Failure, *, is_drawn: bool = False) -> Part:
    """A violation that no requirement speaks of."""
    told = " no behaviour of the model explains this, and no requirement speaks of it"
    if failure.is_harm:
        told = " no request may bring a target down"
    title = (Span("UNCLASSIFIED", tone=Verdict.FAIL), told)
    return Part(title, failure_blocks(failure, (), (), "a violation that no requirement speaks of" if is_drawn else ""))


def failure_blocks(
    failure: Failure,
    words: Iterable[tuple[str, tuple[Text, ...]]],
    further: Iterable[tuple[str, tuple[Text, ...]]],
    drawn_as: str,
) -> tuple[Block, ...]:
    """What is wrong, the words of the requirement, how it came about and how to see it again; the drawing has a title
    if there is one."""
    pairs = Pairs(
        (
            *difference_rows(failure),
            *words,
            *row("model", failure.describe_model()),
            *row("state", failure.state),
            ("schedule", tuple(failure.numbered_steps())),
            *trace_rows(failure),
            *row("replayed", "yes, it failed again" if failure.replayed else "no"),
            *further,
        )
    )
    title = (Paragraph(failure.title),) if failure.title else ()
    if not drawn_as:
        return (*title, pairs)
    svg, mermaid = partial(draw_failure, failure, drawn_as), partial(draw_failure_as_mermaid, failure)
    return (*title, pairs, Only(RICH_MEDIA, (Diagram(f"sequence diagram: {drawn_as}", svg, mermaid),)))


def difference_rows(failure: Failure) -> Rows:
    """The fields with the values expected and observed, or else the whole responses."""
    rows: Rows = []
    for difference in failure.differences:
        name = "" if difference.name in TIMING_NAMES else f"{difference.label} = "
        rows += (*row("expected", name + difference.expected), *row("observed", name + difference.observed))
    if not failure.differences:
        rows += (("expected", tuple(map(shorten, failure.allowed))), *row("observed", shorten(failure.observed)))
    return rows


def trace_rows(failure: Failure) -> Rows:
    """The trace that shows a failure, and the command that runs its schedule again."""
    trace = row("trace", f"{failure.trace or 'not saved'}, event {failure.step}", Style.CODE)
    return [*trace, *row("replay", failure.replay, Style.COMMAND)]


def shorten(text: str) -> str:
    """A response in words, cut to a readable length; the JSON report has the whole."""
    return text if len(text) <= MAX_RESPONSE else f"{text[:MAX_RESPONSE]}... ({len(text)} characters)"


def row(label: str, text: str, style: Style = Style.PLAIN) -> tuple[tuple[str, tuple[Text, ...]], ...]:
    """A label with its text, if there is one."""
    return ((label, (Span(text, style),)),) if text else ()


# --- several reports ----------------------------------------------------------------------------------------------


def describe_reports(reports: Sequence[Report]) -> Document:
    """The document with a line for each of several reports; a page has a column of verdicts for each."""
    lines = (Headline(f"{name_of(report)}: {outcome_line(report)}") for report in reports)
    head = Only(RICH_MEDIA, (Headline(f"{len(reports)} reports of Fencepost"),))
    terminal = Only(Medium.TERMINAL, (Part("", tuple(lines)),))
    return Document("Fencepost: several reports", (head, terminal, *report_sections(reports)))


def report_sections(reports: Sequence[Report]) -> Iterator[Block]:
    """The reports in a table, and their verdicts side by side."""
    starts = (report.provenance.started if report.provenance is not None else "" for report in reports)
    rows = tuple((name_of(one), outcome_line(one), start) for one, start in zip(reports, starts, strict=True))
    table = Table("reports", ("target", "outcome", "date"), rows)
    yield Only(RICH_MEDIA, (Section("reports", "Reports", (table,)),))
    by_id = [{result.id: result for result in report.results} for report in reports]
    requirements = reports[0].specification.requirements
    cells = tuple(
        (
            (Span(id, Style.STRONG), f" {requirements[id].title if id in requirements else ''}"),
            *(sign_of(results[id].verdict) if id in results else Span("not asked", Style.SOFT) for results in by_id),
        )
        for id in dict.fromkeys(id for results in by_id for id in results)
    )
    verdicts = Table("verdicts", ("requirement", *map(name_of, reports)), cells, is_searched=True)
    yield Only(Medium.PAGE, (Section("requirements", "Requirements", (verdicts,)),))


def describe_comparison(old: Report, new: Report) -> Document:
    """The document of what changed since an older report; the summary of a job has the newer report too."""
    changes = compare_reports(old, new)
    requirements = new.specification.requirements
    rows = [("before", (f"{name_of(old)}: {outcome_line(old)}",)), ("now", (outcome_line(new),))]
    for label, ids in (
        ("newly broken", changes.broken),
        ("mended", changes.mended),
        ("not checked", changes.no_longer_checked),
        ("newly checked", changes.newly_checked),
    ):
        rows += [(label, (f"{len(ids)}: {fold_ids(ids, requirements)}",))] if ids else []
    told: tuple[Block, ...] = (Paragraph(f"Target: {name_of(new)}"), Pairs(tuple(rows)))
    told += () if changes.is_worse else (Paragraph(NO_CHANGE),)
    return Document(
        f"Fencepost: {name_of(new)}, compared",
        (
            Only(Medium.SUMMARY, describe_report(new).blocks),
            Only(Medium.PAGE, (Headline("2 reports of Fencepost"),)),
            Section("changes", f"Since {name_of(old)}", (Part("", told),)),
            Only(Medium.PAGE, tuple(report_sections([old, new]))),
        ),
    )
