"""Reports as an HTML page and as Markdown: all is there, nothing is loaded, and no text of a target does harm."""

import re
from dataclasses import replace

import pytest

from fencepost import Report, run
from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.reports.document import SIGNS
from fencepost.conformance.reports.html import POLICY, render_html
from fencepost.conformance.reports.json_report import ReportError, from_html, from_json, to_json
from fencepost.conformance.reports.report import describe_reports, to_html, to_markdown
from fencepost.conformance.reports.text import render_text
from fencepost.conformance.results import Ending, EndKind, Scope, Verdict
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from tests.support.faulty_coordinators import FORGIVING
from tests.support.html_reader import HtmlReader
from tests.support.sample_reports import JOIN_29, KEPT, VIOLATED

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> \u202e \x1b[31m | `x` **b** [a](http://x)"


@pytest.fixture(scope="module")
def report() -> Report:
    return run(InProcessTarget(BUNDLED_SETTINGS, make_coordinator=FORGIVING), only=["HB-*", "JOIN-1?"], schedules=3)


@pytest.mark.parametrize(
    "sample",
    [
        KEPT,
        VIOLATED,
        replace(KEPT, cut_short=True, ended=Ending(EndKind.TARGET_DOWN, "it is gone")),
        replace(KEPT, unclassified=(JOIN_29,), idle_findings=("spins",), undecided=("who knows",)),
    ],
)
def test_every_report_makes_a_page(sample: Report) -> None:
    page = HtmlReader(to_html(sample))
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids) | {"JOIN-29"} | {
        id for rule in sample.rules.values() for id in rule.requirements
    }


def test_a_page_shows_outcome_map_cause_diagram_and_how_it_was_run(report: Report) -> None:
    text = to_html(report)
    page = HtmlReader(text)
    assert page.tags.count("h1") == 1 and {"map", "violations", "reasons", "requirements", "coverage", "run"} <= {
        *page.ids
    }
    assert {result.id for result in report.results} <= {*page.ids}
    assert "Heartbeat response has the wrong error_code: expected ILLEGAL_GENERATION, observed NONE" in text
    assert '<svg class="sequence"' in text and '<svg class="phases"' in text
    assert len(text) < 1_500_000


def test_the_sections_can_be_reached_without_the_cells_of_the_map(report: Report) -> None:
    page = HtmlReader(to_html(report))
    assert page.links[:6] == ["#violations", "#map", "#reasons", "#coverage", "#requirements", "#run"]


def test_a_page_loads_nothing(report: Report) -> None:
    text = to_html(report)
    page = HtmlReader(text)
    assert page.loaded == [] and page.handlers == []
    assert all(link.startswith("#") for link in page.links)
    assert f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">' in text


def test_a_page_is_made_from_json_alone_and_contains_it(report: Report) -> None:
    assert to_html(from_json(to_json(report))) == to_html(report)
    assert from_html(to_html(report)) == report
    with pytest.raises(ReportError, match="the page contains none"):
        from_html("<html></html>")


def test_texts_of_a_target_do_no_harm() -> None:
    failure = replace(JOIN_29, title=HOSTILE, observed=HOSTILE, guard=HOSTILE, schedule=(HOSTILE,), replay=HOSTILE)
    results = tuple(
        replace(each, note=HOSTILE, failures=(failure,) if each.failures else ()) for each in VIOLATED.results
    )
    hostile = replace(VIOLATED, target={"name": HOSTILE, "x": HOSTILE}, results=results, undecided=(HOSTILE,))
    text = to_html(hostile)
    page = HtmlReader(text)
    assert page.tags.count("script") == 2 and "img" not in page.tags and page.handlers == []
    assert "\u202e" not in text and "\x1b" not in text
    assert from_html(text) == hostile
    markdown = to_markdown(hostile)
    assert not re.search(r"<(?!/?(?:details|summary|code|sub)\b)", markdown)
    assert "**b**" not in markdown and "](" not in markdown and "\u202e" not in markdown


def test_a_summary_has_outcome_tiers_diagram_and_reasons(report: Report) -> None:
    text = to_markdown(report)
    first, *_ = text.splitlines()
    assert first.startswith("## NOT CONFORMANT")
    assert "| core |" in text and "```mermaid\nsequenceDiagram\n" in text
    assert "\n#### FAIL HB-04 MUST&#58; " in text and "<details><summary>Not observed" in text
    assert to_markdown(from_json(to_json(report))) == text


def test_several_reports_stand_side_by_side(report: Report) -> None:
    other = replace(VIOLATED, target={"name": HOSTILE, "version": "2"}, scope=Scope.FULL)
    page = HtmlReader(render_html(describe_reports([report, other])))
    assert page.tags.count("table") == 2
    assert len(render_text(describe_reports([report, other])).splitlines()) == 2


def test_every_verdict_has_a_sign_of_its_own() -> None:
    assert set(SIGNS) == set(Verdict) and len(set(SIGNS.values())) == len(Verdict)
