"""The files of a badge: an SVG image, the JSON that shields.io reads as an endpoint, and the line to paste."""

import json

from fencepost.conformance.badges.badge import Badge, BadgeColour, make_badge
from fencepost.conformance.diagrams.svg import clean
from fencepost.conformance.pages.markdown import escape
from fencepost.conformance.results import Report
from fencepost.model.catalogue.requirement import Tier

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
