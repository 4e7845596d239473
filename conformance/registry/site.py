"""The site of a registry: a matrix, a page for each implementation, report and requirement, and badges at stable
paths. It is made of the reports alone; equal registries make equal sites."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from fencepost.conformance.badges.badge import make_badge
from fencepost.conformance.badges.drawing import badge_files, to_badge_svg
from fencepost.conformance.diagrams.svg import clean
from fencepost.conformance.pages.elements import GLYPHS, command_line, element, listing, section, table, verdict_mark
from fencepost.conformance.pages.html_page import make_page, to_html
from fencepost.conformance.registry.entries import RegistryEntry
from fencepost.conformance.registry.feed import to_feed
from fencepost.conformance.reports.document import count_tiers
from fencepost.conformance.reports.text import outcome_line
from fencepost.conformance.results import RequirementResult, Verdict
from fencepost.conformance.specification import DEFAULT_SPECIFICATION, all_specifications
from fencepost.model.catalogue.requirement import Requirement, Tier

RULES = (
    "Rows are in the order of names; nothing is ranked. Four numbers stand for a tier: kept (✓), violated (✗), "
    "declared as a deviation (!), and not decided or not asked (?). A report on violations is welcome.",
    "Badges here are made again from the reports. A report that is forged as a whole is not detected by its form: the "
    "traces of its failures are judged again, and anybody can reproduce a run with fencepost registry reproduce.",
)
SITE_VERSION = 1


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
    return shelves().index(entry.shelf), entry.implementation, version_order(entry.version)


def shelves() -> list[str]:
    """The folders of a registry, a folder for each kind of implementation, in the order of its pages."""
    return [specification.shelf for specification in all_specifications()]


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


# --- pages ------------------------------------------------------------------------------------------------------


def index_page(entries: Sequence[RegistryEntry]) -> str:
    """The matrix of implementations and tiers."""
    matrices = [
        tier_matrix(shelf, [entry for entry in entries if entry.shelf == shelf])
        for shelf in shelves()
        if any(entry.shelf == shelf for entry in entries)
    ]
    links = "".join(
        f'<li><a href="{place}/index.html">{clean(versions[-1].about.name)}</a></li>'
        for place, versions in by_implementation(entries)
    )
    requirements = " ".join(f'<a href="requirements/{id}.html">{clean(id)}</a>' for id in requirements_of(entries))
    body = "<header><h1>Implementations of the Kafka group protocol</h1></header>"
    body += section("matrix", "Reports", *(f"<p>{clean(rule)}</p>" for rule in RULES), *matrices)
    body += section("implementations", "Implementations", f"<ul>{links}</ul>", '<p><a href="feed.xml">Feed</a></p>')
    body += section("requirements", "Requirements", f"<p>{requirements}</p>")
    return make_page("Fencepost registry", f"<main>{body}</main>")


def tier_matrix(shelf: str, entries: Sequence[RegistryEntry]) -> str:
    """The tiers of the implementations in one folder of a registry."""
    rows = (
        [
            f'<a href="{entry.path}/index.html">{clean(entry.about.name)} {clean(entry.version)}</a>',
            *(tier_cell(entry, tier) for tier in Tier),
            clean(day_and_catalogue(entry)),
        ]
        for entry in entries
    )
    return table([shelf, *map(str, Tier), "report"], rows, aria_label=f"{shelf} by tier")


def tier_cell(entry: RegistryEntry, tier: Tier) -> str:
    """Four numbers for a tier: kept, violated, declared, and neither decided nor asked."""
    counts = count_tiers(entry.report).get(str(tier), {})
    if not counts:
        return "–"
    told = {verdict: counts.get(str(verdict), 0) for verdict in (Verdict.PASS, Verdict.FAIL, Verdict.KNOWN)}
    told[Verdict.INCONCLUSIVE] = sum(counts.values()) - sum(told.values())
    signs = (element("span", f"{GLYPHS[each]}\N{NO-BREAK SPACE}{told[each]}", class_=str(each)) for each in told)
    words = "{} kept, {} violated, {} declared, {} not decided or not asked".format(*told.values())
    return element("span", " ".join(signs), title=words, role="img", aria_label=words)


def day_and_catalogue(entry: RegistryEntry) -> str:
    """When the run was, and with which kit."""
    kit, origin = entry.report.kit, entry.report.provenance
    day = origin.started[:10] if origin is not None else "no date"
    return f"{day}, {'another catalogue' if kit is not None else 'this catalogue'}"


def implementation_page(versions: Sequence[RegistryEntry]) -> str:
    """An implementation with its versions, and what changed from one to the next."""
    latest = versions[-1]
    about = latest.about
    pairs = [
        ("site", clean(about.url)),
        ("language", clean(about.language)),
        ("license", clean(about.license)),
        ("contact", clean(about.contact)),
        ("notes", clean(about.notes)),
        ("reports sent by", "its maintainers" if about.official else "others"),
    ]
    rows = []
    for place, entry in enumerate(versions):
        link = f'<a href="{entry.version}/index.html">{clean(entry.version)}</a>'
        broken = newly_broken(versions[place - 1], entry) if place else []
        told = f"newly broken: {', '.join(broken)}" if broken else ""
        rows.append([link, clean(outcome_line(entry.report)), clean(told)])
    badge = to_badge_svg(make_badge(latest.report))
    path = f"badges/{latest.shelf}/{latest.implementation}/latest/fencepost.svg"
    answers = ((id, clean(answer)) for id, answer in about.answers.items())
    body = f"<header><h1>{clean(about.name)}</h1>{listing(pairs)}</header>"
    body += section("versions", "Versions", table(["version", "outcome", "since the one before"], rows))
    body += section("badge", "Badge", element("p", badge), f"<p>{command_line(path)}</p>")
    body += section("answers", "Answers of its maintainers", listing(answers))
    return make_page(f"Fencepost registry: {about.name}", f"<main>{body}</main>")


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
            name = f'<a href="../{entry.path}/index.html#{requirement.id}">{clean(entry.about.name)}</a>'
            answer = entry.about.answers.get(requirement.id, "")
            told = f"{how_it_responds(result)}{f'; its maintainers: {answer}' if answer else ''}"
            rows.append([f"{name} {clean(entry.version)}", verdict_mark(result.verdict), clean(told)])
    pairs = [
        ("level", clean(str(requirement.level))),
        ("tier", clean(str(requirement.tier))),
        ("sentence", clean(requirement.sentence)),
        ("source", clean(requirement.source)),
    ]
    body = f"<header><h1>{clean(requirement.id)} {clean(requirement.title)}</h1>{listing(pairs)}</header>"
    body += section("implementations", "Implementations", table(["implementation", "verdict", "how it responds"], rows))
    return make_page(f"{requirement.id}: {requirement.title}", f"<main>{body}</main>")


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
