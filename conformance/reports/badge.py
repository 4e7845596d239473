"""Badges: the result of a report in a line and a colour, as a pure function of it, with the files of a badge.

A badge counts requirements that are kept, out of all in a tier of the catalogue. No option changes the number. The
first of these holds:

1. a violation, also one that no requirement speaks of: red;
2. the report is of another catalogue, has no date, or is too old: grey;
3. the run did not come to its end: grey;
4. the run put only a part of the catalogue to the test: grey;
5. something stayed undecided: yellow;
6. deviations are declared: yellow-green;
7. nothing of the tier was asked for: grey; only a part: green;
8. all of the tier is kept: bright green.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from fencepost.conformance.reports.html import clean
from fencepost.conformance.reports.json_report import to_json
from fencepost.conformance.reports.markdown import escape
from fencepost.conformance.reports.words import name_of
from fencepost.conformance.results import NamedBy, Report, Scope, Verdict, describe_kit
from fencepost.model.catalogue.requirement import Tier

DIGEST_LENGTH = 7
"""How much of the digest of the catalogue is in the line."""


class BadgeColour(StrEnum):
    """The colours, the worst first, by their names at shields.io."""

    RED = "red"
    GREY = "lightgrey"
    YELLOW = "yellow"
    YELLOW_GREEN = "yellowgreen"
    GREEN = "green"
    BRIGHT_GREEN = "brightgreen"

    @property
    def rank(self) -> int:
        """The place of the colour; the higher, the better."""
        return list(BadgeColour).index(self)


HEX = {
    BadgeColour.RED: "#b3261e",
    BadgeColour.GREY: "#6e7781",
    BadgeColour.YELLOW: "#8a6d00",
    BadgeColour.YELLOW_GREEN: "#5c7a00",
    BadgeColour.GREEN: "#2f7d32",
    BadgeColour.BRIGHT_GREEN: "#1a7f37",
}
"""Dark enough that white letters are read on all of them."""
NARROW, WIDE = frozenset("iljt.,:;'|!()[] "), frozenset("mwMW@%")
CACHE_SECONDS = 3_600
HEIGHT, PADDING = 20, 6


@dataclass(frozen=True, slots=True)
class Badge:
    """A badge: `message` and `colour` are seen, `title` tells the rest (target, counts, kit, day, report)."""

    tier: Tier
    message: str
    colour: BadgeColour
    title: str
    label: str

    @property
    def is_error(self) -> bool:
        """Whether the report says nothing about the tier as a whole."""
        return self.colour is BadgeColour.GREY


def make_badge(
    report: Report, tier: Tier = Tier.CORE, today: datetime | None = None, max_age: timedelta | None = None
) -> Badge:
    """The badge of a report for a tier. With `today` and `max_age`, a report that is older is outdated."""
    message, colour = judge_report(report, tier, today, max_age)
    return Badge(tier, message, colour, describe_report(report), report.specification.badge)


def judge_report(
    report: Report, tier: Tier, today: datetime | None, max_age: timedelta | None
) -> tuple[str, BadgeColour]:
    """The line and the colour."""
    requirements, summary = report.specification.requirements, report.summary()
    violations = summary[Verdict.FAIL] + len(report.unclassified)
    if violations:
        return f"{violations} violated of {report.checked_count()} checked{age_note(report)}", BadgeColour.RED
    if is_outdated(report, today, max_age):
        day = day_of(report)
        return f"outdated ({day[:7] if day else 'no date'})", BadgeColour.GREY
    if report.cut_short or report.ended is not None:
        return "run not finished", BadgeColour.GREY
    if is_partial(report):
        return f"partial: {report.checked_count()}/{len(requirements)} checked", BadgeColour.GREY
    members = {id for id, requirement in requirements.items() if requirement.tier is tier}
    kept = sum(result.verdict is Verdict.PASS for result in report.results if result.id in members)
    counted = f"{tier} {kept}/{len(members)}"
    undecided = summary[Verdict.INCONCLUSIVE] + len(report.undecided) + len(report.idle_findings)
    if undecided:
        return f"{counted}, {undecided} open{age_note(report)}", BadgeColour.YELLOW
    if summary[Verdict.KNOWN]:
        return f"{counted}, {summary[Verdict.KNOWN]} declared{age_note(report)}", BadgeColour.YELLOW_GREEN
    if not kept:
        return f"{counted}{age_note(report)}", BadgeColour.GREY
    colour = BadgeColour.BRIGHT_GREEN if kept == len(members) else BadgeColour.GREEN
    return f"{counted}{age_note(report)}", colour


def is_outdated(report: Report, today: datetime | None, max_age: timedelta | None) -> bool:
    """Whether a report is of another catalogue, has no date, or is older than allowed."""
    started = start_of(report)
    if report.kit is not None or started is None:
        return True
    return today is not None and max_age is not None and today - started > max_age


def is_partial(report: Report) -> bool:
    """Whether a run set out to exercise less than the whole catalogue, by its scope, its plan or its results."""
    plan = report.provenance.plan if report.provenance is not None else None
    is_chosen = plan is None or bool(plan.smoke or plan.only or plan.exclude)
    ids, present = {result.id for result in report.results}, describe_kit(report.specification)
    is_older = report.kit is not None and report.kit.catalogue != present.catalogue
    # Of an older catalogue only the size is known.
    is_whole = is_older and report.kit is not None and len(ids) == report.kit.requirements
    return (
        report.scope is not Scope.FULL or is_chosen or not (is_whole or ids == set(report.specification.requirements))
    )


def start_of(report: Report) -> datetime | None:
    """When the run started; None if the report does not say."""
    try:
        return datetime.strptime(report.provenance.started, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        return None


def day_of(report: Report) -> str:
    """The day on which the run started; "" if the report does not say."""
    started = start_of(report)
    return f"{started:%Y-%m-%d}" if started is not None else ""


def age_note(report: Report) -> str:
    """The day of the report and its catalogue, for the end of the line: both age in plain sight."""
    kit = report.kit or describe_kit(report.specification)
    return f" · {day_of(report) or 'no date'} · {kit.catalogue[:DIGEST_LENGTH]}"


def describe_report(report: Report) -> str:
    """The report in a sentence: target, tiers, the findings against it, kit, catalogue, day, and the digest of
    the report."""
    kit, summary = report.kit or describe_kit(report.specification), report.summary()
    digest = hashlib.sha256(to_json(report).encode()).hexdigest()
    against = (
        f"{summary[Verdict.FAIL] + len(report.unclassified)} violated, {summary[Verdict.KNOWN]} declared, "
        f"{summary[Verdict.INCONCLUSIVE]} open, {summary[Verdict.UNSUPPORTED]} unsupported, "
        f"{summary[Verdict.NOT_OBSERVED]} not observed"
    )
    is_named = report.provenance is not None and report.provenance.named_by is not NamedBy.NOBODY
    target = name_of(report) if is_named else f"{name_of(report)} (unnamed build)"
    return (
        f"{target}: {', '.join(tier_words(report))}; {against}; fencepost {kit.version}, "
        f"catalogue {kit.catalogue[:12]}, {day_of(report) or 'no date'}; report sha256 {digest[:16]}"
    )


def tier_words(report: Report) -> Iterator[str]:
    """How many requirements of each tier are kept, out of how many in the catalogue."""
    requirements = report.specification.requirements
    kept = {result.id for result in report.results if result.verdict is Verdict.PASS}
    for tier in Tier:
        members = [id for id, requirement in requirements.items() if requirement.tier is tier]
        if members:
            yield f"{tier} {sum(id in kept for id in members)}/{len(members)} kept"


# --- files --------------------------------------------------------------------------------------------------------


def to_badge_svg(badge: Badge) -> str:
    """The badge as an SVG image that loads nothing; it ends in a newline."""
    left, right = (text_width(text) + 2 * PADDING for text in (badge.label, badge.message))
    width = left + right
    text = f"{badge.label}: {badge.message}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}" '
        f'role="img" aria-label="{clean(text)}">\n'
        f"<title>{clean(badge.title)}</title>\n"
        f"<metadata>{clean(json.dumps(to_plain(badge), sort_keys=True))}</metadata>\n"
        f'<rect width="{left}" height="{HEIGHT}" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{HEX[badge.colour]}"/>\n'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"{label_element(badge.label, PADDING, left)}{label_element(badge.message, left + PADDING, right)}"
        "</g>\n</svg>\n"
    )


def label_element(text: str, x: int, width: int) -> str:
    """A text that is stretched to its part of the badge, whatever font there is."""
    return f'<text x="{x}" y="14" textLength="{width - 2 * PADDING}">{clean(text)}</text>'


def text_width(text: str) -> int:
    """About the width of a text in 11 px Verdana."""
    return round(sum(4 if each in NARROW else 10 if each in WIDE else 7 for each in text))


def to_plain(badge: Badge) -> dict[str, object]:
    """What a badge says, for programs."""
    return {
        "label": badge.label,
        "message": badge.message,
        "color": str(badge.colour),
        "tier": str(badge.tier),
        "title": badge.title,
    }


def to_badge_json(badge: Badge) -> str:
    """The badge as shields.io reads it; ends in a newline."""
    endpoint = {
        "schemaVersion": 1,
        "label": badge.label,
        "message": badge.message,
        "color": str(badge.colour),
        "isError": badge.is_error,
        "cacheSeconds": CACHE_SECONDS,
    }
    return json.dumps(endpoint, indent=2, ensure_ascii=False) + "\n"


def to_badge_markdown(badge: Badge, image: str, link: str) -> str:
    """The line to paste: the image as a link to the report; ends in a newline."""
    return f"[![{escape(f'{badge.label}: {badge.message}')}]({address(image)})]({address(link)})\n"


def address(text: str) -> str:
    """An address as Markdown takes it."""
    return "".join(each if each.isalnum() or each in "-._~:/?#@!$&*+,;=%" else percent(each) for each in text)


def percent(character: str) -> str:
    """A character as it is in addresses."""
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def badge_files(badge: Badge, link: str) -> dict[str, str]:
    """The texts of a badge's files by their names."""
    stem = "fencepost" if badge.tier is Tier.CORE else f"fencepost-{badge.tier}"
    return {
        f"{stem}.svg": to_badge_svg(badge),
        f"{stem}.json": to_badge_json(badge),
        f"{stem}.md": to_badge_markdown(badge, f"{stem}.svg", link),
    }


def render_badge(report: Report) -> str:
    """The badge of a report for its core tier, as SVG."""
    return to_badge_svg(make_badge(report))
