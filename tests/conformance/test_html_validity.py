"""Pages and badges are valid: a real checker finds nothing wrong with them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost import run
from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.cli import main
from fencepost.conformance.reports.badge import make_badge, to_badge_svg
from fencepost.conformance.reports.html import render_html
from fencepost.conformance.reports.registry import read_entries
from fencepost.conformance.reports.registry_site import build_site
from fencepost.conformance.reports.report import describe_comparison, describe_reports, to_html
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.traces.importers.broker_log import import_log
from tests.acceptance.checks.pages import make_documents
from tests.support.faulty_coordinators import FORGIVING
from tests.support.html_validator import find_invalid
from tests.support.sample_reports import KEPT, VIOLATED

pytestmark = pytest.mark.java
DATA = Path(__file__).parent.parent / "traces" / "data"
COMMITTED = Path(__file__).parents[2] / "docs" / "registry"
HOSTILE = "</script><script>alert(1)</script> \u202e \x1b \x00 \ud800 \ufffe &amp; -->"


def test_pages_and_badges_are_valid(tmp_path: Path) -> None:
    report = run(InProcessTarget(BUNDLED_SETTINGS, make_coordinator=FORGIVING), only=["HB-*", "JOIN-1?"], schedules=3)
    hostile = replace(VIOLATED, target={"name": HOSTILE, "x": HOSTILE}, undecided=(HOSTILE,))
    pages = {
        "found.html": to_html(report),
        "kept.html": to_html(KEPT),
        "hostile.html": to_html(hostile),
        "overview.html": render_html(describe_reports([report, VIOLATED])),
        "comparison.html": render_html(describe_comparison(VIOLATED, report)),
        "badge.svg": to_badge_svg(make_badge(report)),
        "hostile.svg": to_badge_svg(make_badge(hostile)),
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    site = build_site(list(read_entries(COMMITTED)))
    shown = ["index.html", "coordinators/fencepost-bundled/index.html", "requirements/JOIN-29.html"]
    shown += (
        name for name in site if re.fullmatch(r"(coordinators/librdkafka-mock|clients/aiokafka)/.+/index.html", name)
    )
    assert len(shown) == 5
    for number, name in enumerate(shown):
        pages[f"site-{number}.html"] = site[name]
        (tmp_path / f"site-{number}.html").write_text(site[name], encoding="utf-8")
    import_log([DATA / "kafka-4.log"], tmp_path / "trace.jsonl")
    assert main(["report", str(tmp_path / "trace.jsonl"), "--html", str(tmp_path / "incident.html")]) == 0
    files = sorted([*tmp_path.glob("*.html"), *tmp_path.glob("*.svg")])
    assert len(files) == len(pages) + 1
    assert find_invalid(files) == []


@pytest.mark.slow
@pytest.mark.extra("zensical")
def test_pages_of_the_documents_are_valid(tmp_path: Path) -> None:
    assert find_invalid(list(make_documents(tmp_path).values())) == []


def test_what_is_not_valid_is_found(tmp_path: Path) -> None:
    page, image = tmp_path / "page.html", tmp_path / "image.svg"
    page.write_text(to_html(KEPT).replace("<main>", "<main><p><div></p>", 1), encoding="utf-8")
    image.write_text(to_badge_svg(make_badge(KEPT)).replace("<g ", "<group ").replace("</g>", "</group>"))
    found = " ".join(find_invalid([page, image]))
    assert "page.html:" in found and "image.svg:" in found
