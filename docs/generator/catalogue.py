"""The catalogue: a page for each requirement, with a schedule that tests it and who keeps it."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from docs.generator.formats import table
from docs.generator.pictures import play
from fencepost.conformance.reports.registry import RegistryEntry, read_entries
from fencepost.conformance.reports.registry_site import entry_order, how_it_responds
from fencepost.conformance.reports.requirements import describe_capabilities, explain_requirement
from fencepost.conformance.run.registry import DEFAULT_PROTOCOL
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.model.catalogue.requirement import CAPABILITIES, Requirement, Tier

PAGE_COLUMNS = 84
"""How many characters of fixed width a page of the site has beside its lists of pages and of headings."""


def catalogue_pages(registry: Path) -> dict[str, str]:
    """A page for each requirement, and one that lists them by family."""
    requirements = DEFAULT_PROTOCOL.specification.requirements
    entries = sorted(read_entries(registry), key=entry_order)
    pages = {f"reference/catalogue/{id}.md": requirement_page(each, entries) for id, each in requirements.items()}
    return {"reference/catalogue/index.md": index_page(list(requirements.values())), **pages}


def index_page(requirements: Sequence[Requirement]) -> str:
    """All requirements by family."""
    text = (
        f"# Catalogue\n\nThe {len(requirements)} requirements for the coordinator of a group. A requirement has an id "
    )
    text += "that stays, a sentence, a source, and a tier by what a target must offer for it to be tested.\n"
    counts = ((str(tier), str(sum(each.tier is tier for each in requirements))) for tier in Tier)
    text += f"\n{table(('tier', 'requirements'), counts)}"
    for family in dict.fromkeys(map(family_of, requirements)):
        own = [each for each in requirements if family_of(each) == family]
        text += f"\n## {family}\n\n| id | title | level | tier |\n|---|---|---|---|\n"
        text += "".join(f"| [{each.id}]({each.id}.md) | {each.title} | {each.level} | {each.tier} |\n" for each in own)
    return text


def family_of(requirement: Requirement) -> str:
    """The family of a requirement."""
    return requirement.id.rpartition("-")[0]


def requirement_page(requirement: Requirement, entries: Sequence[RegistryEntry]) -> str:
    """A requirement: its words, how it is tested with a picture, and what the registry has on it."""
    text = f"# {requirement.id}: {requirement.title}\n\n{requirement.level}. {escape(requirement.sentence)}\n\n"
    sources = (
        escape(name) if address is None else f"[{escape(name)}]({address})"
        for name, address in DEFAULT_SPECIFICATION.links_of(requirement.id)
    )
    text += f"Source: {', '.join(sources)}. Tier: {requirement.tier}.\n"
    if requirement.needs:
        text += "\nIt needs " + "; ".join(escape(CAPABILITIES[name]) for name in requirement.needs) + ".\n"
    names = [each.name for each in DEFAULT_PROTOCOL.scenarios if requirement.id in each.requirements]
    specification, needs = DEFAULT_PROTOCOL.specification, describe_capabilities()
    explained = explain_requirement(requirement, specification, needs, names, width=PAGE_COLUMNS)
    text += f"\n## How it is tested\n\n```text\n{explained.rstrip()}\n```\n"
    name = next(iter(names), None)
    if name is not None and has_picture(name):
        text += f"\nThe scenario `{name}` on the bundled coordinator, on virtual time:\n\n"
        text += f"![A sequence diagram of the scenario {name}](../../pictures/{name}.svg)\n"
    rows = list(verdict_rows(requirement, entries))
    return text + (
        f"\n## Who keeps it\n\n{table(('implementation', 'verdict', 'how it responds'), rows)}" if rows else ""
    )


def has_picture(scenario: str) -> bool:
    """Whether a scenario sends anything."""
    _, events = play(scenario)
    return len(events) > 1


def verdict_rows(requirement: Requirement, entries: Sequence[RegistryEntry]) -> Iterator[tuple[str, str, str]]:
    """The verdicts in the registry."""
    for entry in entries:
        for result in entry.report.results:
            if result.id == requirement.id:
                told = escape(" ".join(how_it_responds(result).split()))
                yield f"{entry.about.name} {entry.version}", str(result.verdict), told


def escape(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", text)
