"""The site of a registry: a matrix, a page for each implementation, report and requirement, badges at stable paths, and
a feed. It is made of the reports alone; equal registries make equal sites."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

from fencepost.conformance.reports.badge import badge_files, make_badge, to_badge_svg
from fencepost.conformance.reports.document import (
    SIGNS,
    Block,
    Bullets,
    Diagram,
    Document,
    Headline,
    Pairs,
    Paragraph,
    Section,
    Span,
    Style,
    Table,
    Text,
    sign_of,
)
from fencepost.conformance.reports.html import clean, render_html
from fencepost.conformance.reports.json_report import count_tiers
from fencepost.conformance.reports.registry import RegistryEntry
from fencepost.conformance.reports.report import row, to_html
from fencepost.conformance.reports.words import outcome_line
from fencepost.conformance.results import RequirementResult, Verdict
from fencepost.conformance.specification import DEFAULT_SPECIFICATION, all_specifications
from fencepost.model.catalogue.requirement import Requirement, Tier

RULES = (
    "Rows are in the order of names; nothing is ranked. Four numbers stand for a tier: kept (✓), violated (✗), "
    "declared as a deviation (!), and not decided or not asked (?). A report on violations is welcome.",
    "Badges here are made again from the reports. A report that is forged as a whole is not detected by its form: the "
    "traces of its failures are judged again, and anybody can reproduce a run with fencepost registry reproduce.",
)
MAP_RULE = "Filter by an id, a word of a title, or the word differs: some keep the requirement, and others do not."
SITE_VERSION = 1
MAX_ENTRIES = 50
"""How many reports are in the feed."""
NO_DATE = "1970-01-01T00:00:00Z"


def build_site(entries: Sequence[RegistryEntry]) -> dict[str, str]:
    """The texts of the site's files by their paths."""
    ordered = sorted(entries, key=entry_order)
    site = {"index.html": index_page(ordered), "index.json": index_json(ordered), "feed.xml": to_feed(ordered)}
    for entry in ordered:
        base = entry.path
        site[f"{base}/index.html"] = to_html(entry.report)
        site |= {f"badges/{base}/{name}": text for name, text in badges_for(entry).items()}
    for place, versions in by_implementation(ordered):
        site[f"{place}/index.html"] = implementation_page(versions)
        latest = versions[-1]
        path = f"badges/{place}/latest"
        site |= {f"{path}/{name}": text for name, text in badges_for(latest).items()}
    for id, requirement in requirements_of(ordered).items():
        site[f"requirements/{id}.html"] = requirement_page(requirement, ordered)
    return site


def entry_order(entry: RegistryEntry) -> tuple[int, str, list[tuple[int, str]]]:
    """The place of an entry: coordinators first, then by implementation, then by version as numbers."""
    shelves = [specification.shelf for specification in all_specifications()]
    return shelves.index(entry.shelf), entry.implementation, version_order(entry.version)


def version_order(version: str) -> list[tuple[int, str]]:
    """A version as it is ordered: its numbers as numbers, other parts as text."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in version.replace("-", ".").split(".")]


def by_implementation(entries: Sequence[RegistryEntry]) -> Iterator[tuple[str, list[RegistryEntry]]]:
    """The entries of each implementation by its path, the latest version last."""
    for name, found in groupby(entries, key=lambda entry: f"{entry.shelf}/{entry.implementation}"):
        yield name, list(found)


def requirements_of(entries: Sequence[RegistryEntry]) -> dict[str, Requirement]:
    """The requirements of coordinators, and those of clients if there is a report on one, by their ids."""
    subjects = {DEFAULT_SPECIFICATION.subject, *(entry.report.specification.subject for entry in entries)}
    found: dict[str, Requirement] = {}
    for specification in all_specifications():
        if specification.subject in subjects:
            found |= specification.requirements
    return found


def badges_for(entry: RegistryEntry) -> dict[str, str]:
    """The badges of an entry, one for each tier."""
    files: dict[str, str] = {}
    for tier in Tier:
        files |= badge_files(make_badge(entry.report, tier), f"{entry.path}/index.html")
    return files


# --- pages --------------------------------------------------------------------------------------------------------


def index_page(entries: Sequence[RegistryEntry]) -> str:
    """The matrix of implementations and tiers."""
    shelves = dict.fromkeys(entry.shelf for entry in entries)
    matrices = (tier_matrix(shelf, [entry for entry in entries if entry.shelf == shelf]) for shelf in shelves)
    links = (
        Span(versions[-1].about.name, href=f"{place}/index.html") for place, versions in by_implementation(entries)
    )
    maps = (heat_map([entry for entry in entries if entry.shelf == shelf]) for shelf in shelves)
    feed = Paragraph(Span("Feed", href="feed.xml"))
    blocks = (
        Headline("Implementations of the Kafka group protocol"),
        Section("matrix", "Reports", (*map(Paragraph, RULES), *matrices)),
        Section("implementations", "Implementations", (Bullets(tuple(links)), feed)),
        Section("requirements", "Requirement by requirement", (Paragraph(MAP_RULE), *maps)),
    )
    return render_html(Document("Fencepost registry", blocks))


def heat_map(entries: Sequence[RegistryEntry]) -> Table:
    """The verdict on each requirement for the latest version of each implementation in one folder of a registry."""
    latest = [versions[-1] for _, versions in by_implementation(entries)]
    verdicts = [{result.id: result.verdict for result in entry.report.results} for entry in latest]
    rows: list[tuple[Text, ...]] = []
    for id, requirement in latest[0].report.specification.requirements.items():
        told = [by_id.get(id, Verdict.NOT_OBSERVED) for by_id in verdicts]
        name = (Span(id, href=f"requirements/{id}.html"), f" {requirement.title}")
        signs = (Span(SIGNS[verdict], tone=verdict, label=f"{id} {verdict}") for verdict in told)
        differs = "differs" if Verdict.PASS in told and Verdict.FAIL in told else ""
        rows.append((name, *signs, differs))
    columns = ("requirement", *(f"{entry.about.name} {entry.version}" for entry in latest), "differs")
    return Table(f"verdicts of {entries[0].shelf} by requirement", columns, tuple(rows), is_searched=True)


def tier_matrix(shelf: str, entries: Sequence[RegistryEntry]) -> Table:
    """The tiers of the implementations in one folder of a registry."""
    rows = (
        (
            Span(f"{entry.about.name} {entry.version}", href=f"{entry.path}/index.html"),
            *(tier_cell(entry, tier) for tier in Tier),
            day_and_catalogue(entry),
        )
        for entry in entries
    )
    return Table(f"{shelf} by tier", (shelf, *map(str, Tier), "report"), tuple(rows))


def tier_cell(entry: RegistryEntry, tier: Tier) -> Text:
    """Four numbers for a tier: kept, violated, declared, and neither decided nor asked."""
    counts = count_tiers(entry.report).get(str(tier), {})
    if not counts:
        return "–"
    told = {verdict: counts.get(str(verdict), 0) for verdict in (Verdict.PASS, Verdict.FAIL, Verdict.KNOWN)}
    told[Verdict.INCONCLUSIVE] = sum(counts.values()) - sum(told.values())
    words = ("kept", "violated", "declared", "not decided or not asked")
    numbers = (
        Span(f"{SIGNS[verdict]} {count}", tone=verdict, label=f"{count} {word}")
        for (verdict, count), word in zip(told.items(), words, strict=True)
    )
    return tuple(span for number in numbers for span in (number, " "))


def day_and_catalogue(entry: RegistryEntry) -> str:
    """When the run was, and with which kit."""
    kit, origin = entry.report.kit, entry.report.provenance
    day = origin.started[:10] if origin is not None else "no date"
    return f"{day}, {'another catalogue' if kit is not None else 'this catalogue'}"


def implementation_page(versions: Sequence[RegistryEntry]) -> str:
    """An implementation with its versions, and what changed from one to the next."""
    latest = versions[-1]
    about = latest.about
    pairs = (
        *row("site", about.url),
        *row("language", about.language),
        *row("license", about.license),
        *row("contact", about.contact),
        *row("notes", about.notes),
        *row("reports sent by", "its maintainers" if about.official else "others"),
    )
    rows = []
    for place, entry in enumerate(versions):
        broken = newly_broken(versions[place - 1], entry) if place else []
        told = f"newly broken: {', '.join(broken)}" if broken else ""
        rows.append((Span(entry.version, href=f"{entry.version}/index.html"), outcome_line(entry.report), told))
    table = Table("versions", ("version", "outcome", "since the one before"), tuple(rows))
    badge = Diagram("badge", partial(to_badge_svg, make_badge(latest.report)))
    path = f"badges/{latest.shelf}/{latest.implementation}/latest/fencepost.svg"
    answers = tuple((id, (answer,)) for id, answer in about.answers.items())
    blocks: tuple[Block, ...] = (
        Headline(about.name),
        Pairs(pairs),
        Section("versions", "Versions", (table,)),
        Section("badge", "Badge", (badge, Paragraph(Span(path, Style.COMMAND)))),
    )
    blocks += (Section("answers", "Answers of its maintainers", (Pairs(answers),)),) if answers else ()
    return render_html(Document(f"Fencepost registry: {about.name}", blocks))


def newly_broken(before: RegistryEntry, after: RegistryEntry) -> list[str]:
    """The requirements that a version violates and the one before it kept."""
    kept = {result.id for result in before.report.results if result.verdict is Verdict.PASS}
    return [result.id for result in after.report.failed_results() if result.id in kept]


def requirement_page(requirement: Requirement, entries: Sequence[RegistryEntry]) -> str:
    """A requirement: who keeps it, who does not, and how they respond."""
    rows = []
    for entry in entries:
        result = next((each for each in entry.report.results if each.id == requirement.id), None)
        if result is not None:
            name = Span(entry.about.name, href=f"../{entry.path}/index.html#{requirement.id}")
            answer = entry.about.answers.get(requirement.id, "")
            told = f"{how_it_responds(result)}{f'; its maintainers: {answer}' if answer else ''}"
            rows.append(((name, f" {entry.version}"), sign_of(result.verdict), told))
    table = Table("implementations", ("implementation", "verdict", "how it responds"), tuple(rows))
    pairs = (
        *row("level", str(requirement.level)),
        *row("tier", str(requirement.tier)),
        *row("sentence", requirement.sentence),
        *row("source", requirement.source),
    )
    title = f"{requirement.id} {requirement.title}"
    section = Section("implementations", "Implementations", (table,))
    return render_html(Document(f"{requirement.id}: {requirement.title}", (Headline(title), Pairs(pairs), section)))


def how_it_responds(result: RequirementResult) -> str:
    """What was seen: the wrong response with the right one, or the remark or the reason."""
    failure = next(iter(result.failures_by_length()), None)
    if failure is None:
        return result.comment
    if failure.differences:
        told = (f"{each.label} = {each.observed} in place of {each.expected}" for each in failure.differences)
        return "; ".join(told)
    allowed = "; ".join(failure.allowed)
    return f"{failure.observed}{f' in place of {allowed}' if allowed else ''}"


# --- for programs -------------------------------------------------------------------------------------------------


def index_json(entries: Sequence[RegistryEntry]) -> str:
    """All entries for programs; ends in a newline."""
    rows = [entry_row(entry) for entry in entries]
    return json.dumps({"fencepost_registry": SITE_VERSION, "entries": rows}, indent=2, ensure_ascii=False) + "\n"


def entry_row(entry: RegistryEntry) -> Mapping[str, object]:
    """An entry for programs."""
    return {
        "implementation": entry.implementation,
        "name": entry.about.name,
        "version": entry.version,
        "official": entry.about.official,
        "outcome": outcome_line(entry.report),
        "tiers": count_tiers(entry.report),
        "started": entry.report.provenance.started if entry.report.provenance is not None else None,
        "badge": f"badges/{entry.path}/fencepost.json",
        "report": f"{entry.path}/index.html",
    }


def to_feed(entries: Sequence[RegistryEntry]) -> str:
    """The feed. Its ids stay the same wherever the site is; its links are relative to the feed."""
    newest = sorted(entries, key=lambda entry: (format_start(entry), entry.path), reverse=True)[:MAX_ENTRIES]
    updated = format_start(newest[0]) if newest else NO_DATE
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        "<id>urn:fencepost:registry</id>",
        "<title>Implementations of the Kafka group protocol</title>",
        "<author><name>Fencepost registry</name></author>",
        f"<updated>{updated}</updated>",
        '<link rel="self" href="feed.xml"/>',
        '<link rel="alternate" type="text/html" href="index.html"/>',
    ]
    for entry in newest:
        lines += feed_lines(entry)
    return "\n".join([*lines, "</feed>"]) + "\n"


def feed_lines(entry: RegistryEntry) -> Iterator[str]:
    """A report in the feed."""
    yield "<entry>"
    yield f"<id>urn:fencepost:registry:{clean(entry.path.replace('/', ':'))}</id>"
    yield f"<title>{clean(entry.about.name)} {clean(entry.version)}</title>"
    yield f"<updated>{format_start(entry)}</updated>"
    yield f'<link rel="alternate" type="text/html" href="{clean(entry.path)}/index.html"/>'
    yield f"<summary>{clean(outcome_line(entry.report))}</summary>"
    yield "</entry>"


def format_start(entry: RegistryEntry) -> str:
    """When the run of an entry began (RFC 3339)."""
    origin = entry.report.provenance
    return clean(origin.started) if origin is not None and origin.started else NO_DATE
