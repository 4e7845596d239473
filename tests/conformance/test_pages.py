"""Reports as an HTML page and as Markdown: all is there, nothing is loaded, and no text of a target does harm."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from fencepost import Report, run
from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.reports.document import SIGNS
from fencepost.conformance.reports.drawings import draw_coverage, escape_mermaid, to_mermaid, to_svg
from fencepost.conformance.reports.html import POLICY, render_html
from fencepost.conformance.reports.json_report import ReportError, from_html, from_json, to_json
from fencepost.conformance.reports.report import describe_reports, to_html, to_markdown
from fencepost.conformance.reports.sequence import (
    MAX_STEPS,
    SequenceDiagram,
    StepKind,
    draw_sequence,
    follow_phases,
    format_duration,
    read_excerpt,
)
from fencepost.conformance.reports.text import render_text
from fencepost.conformance.results import Ending, EndKind, Scope, Verdict
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.traces.events import Event, Kind
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
    within = [link for link in page.links if link.startswith("#")]
    assert {link.removeprefix("#") for link in within} <= set(page.ids) | {"JOIN-29"} | {
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
    assert page.links[0] == "#HB-04", "the next step comes first"
    assert page.links[1:7] == ["#violations", "#map", "#reasons", "#coverage", "#requirements", "#run"]


def test_a_page_loads_nothing(report: Report) -> None:
    text = to_html(report)
    page = HtmlReader(text)
    assert page.loaded == [] and page.handlers == []
    assert all(link.startswith(("#", "https://")) for link in page.links), "sources are linked, and loaded on a click"
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


# --- Sequence diagrams: what they show of a trace, as Mermaid and as SVG.

MERMAID = """\
sequenceDiagram
    participant P0 as A
    participant P1 as B
    participant C as coordinator
    P0->>C: JoinGroup v9 member_id='', protocols=[range]
    C-->>P0: MEMBER_ID_REQUIRED
    P1->>C: JoinGroup v9 member_id='', protocols=[range]
    C-->>P1: MEMBER_ID_REQUIRED
    P0->>C: JoinGroup v9 protocols=[range]
    P1->>C: JoinGroup v9 protocols=[range]
    Note over C: 1.2 s later
    C-->>P0: generation_id=1, leader=A, member_id=A, members=2, protocol_name='range'
    C-->>P1: generation_id=1, leader=A, member_id=B, protocol_name='range'
    P1->>C: SyncGroup v5 generation_id=1
    P0->>C: SyncGroup v5 generation_id=1, assignments=[A, B]
    C-->>P0: assignment=1 bytes, protocol_name='range'
    C-->>P1: assignment=1 bytes, protocol_name='range'
    P0->>C: Heartbeat v4 generation_id=1
    C-->>P0: OK
    P0->>C: Heartbeat v0 generation_id=1
    C-->>P0: OK
    P0->>C: Heartbeat v1 generation_id=1
    C-->>P0: OK
    P0->>C: Heartbeat v2 generation_id=1
    C-->>P0: OK
    P0->>C: Heartbeat v3 generation_id=1
    C-->>P0: OK
    P1->>C: Heartbeat v4 generation_id=1
    C-->>P1: OK
    P0->>C: Heartbeat v4 generation_id=2
    C-->>P0: WRONG OK
"""


@pytest.fixture(scope="module")
def forgiving_report() -> Report:
    """The report on a coordinator that accepts heartbeats of any generation."""
    return run(InProcessTarget(BUNDLED_SETTINGS, make_coordinator=FORGIVING), only=["HB-04"], schedules=5)


@pytest.fixture(scope="module")
def diagram(forgiving_report: Report) -> SequenceDiagram:
    (failure, *_) = forgiving_report.result("HB-04").failures_by_length()
    excerpt = read_excerpt(failure)
    assert excerpt is not None
    return draw_sequence(excerpt[1], failure.step)


def heartbeats(count: int) -> list[Event]:
    """So many equal exchanges in a row, a second apart."""
    events = []
    for number in range(count):
        common = {"time": number * 1_000, "connection": 0, "member": "A", "api": "Heartbeat", "version": 4}
        events.append(Event(sequence=2 * number, kind=Kind.REQUEST, body={"generation_id": 1}, **common))  # type: ignore[arg-type]
        answer = Event(sequence=2 * number + 1, kind=Kind.RESPONSE, body={"error_code": 0}, of=2 * number, **common)  # type: ignore[arg-type]
        events.append(answer)
    return events


def test_a_diagram_ends_with_the_wrong_response(diagram: SequenceDiagram) -> None:
    assert to_mermaid(diagram) == MERMAID


def test_a_response_that_never_comes_is_shown(forgiving_report: Report) -> None:
    events = heartbeats(1)[:1]
    (request, nothing) = draw_sequence(events, 0).steps
    assert (nothing.kind, nothing.is_wrong, nothing.request) == (StepKind.NO_RESPONSE, True, request.request)
    assert "C--xP0: WRONG no response" in to_mermaid(draw_sequence(events, 0))


def test_equal_exchanges_in_a_row_are_counted() -> None:
    drawn = draw_sequence(heartbeats(7))
    assert [step.times for step in drawn.steps] == [7, 7]
    assert "7 times Heartbeat" in to_mermaid(drawn)
    wrong = draw_sequence(heartbeats(7), 12)
    assert [step.times for step in wrong.steps] == [6, 6, 1, 1]


def test_a_long_trace_shows_its_end_and_counts_the_rest() -> None:
    events = [replace(event, member=f"m{event.time // 1000 % 7}") for event in heartbeats(100)]
    drawn = draw_sequence(events)
    assert (len(drawn.steps), drawn.omitted) == (MAX_STEPS, 200 - MAX_STEPS)
    assert f"{200 - MAX_STEPS} earlier steps are left out" in to_mermaid(drawn)


def test_a_round_of_several_members_that_comes_again_is_told_once() -> None:
    events = [replace(event, member=f"m{event.time // 1000 % 3}") for event in heartbeats(30)]
    steps = draw_sequence(events).steps
    assert [(step.times, step.kind) for step in steps] == [(10, StepKind.REQUEST), (10, StepKind.RESPONSE)] * 3


def test_a_page_says_the_next_step_and_the_outcome_in_its_title(report: Report) -> None:
    page = to_html(report)
    assert "<title>✗ " in page and 'class="banner">Next step: mend <a href="#HB-04">HB-04</a>' in page
    assert "\\xa0" not in page and "Next step" not in to_html(KEPT)


def test_phases_of_the_model_stand_beside_the_steps(forgiving_report: Report, diagram: SequenceDiagram) -> None:
    excerpt = read_excerpt(forgiving_report.result("HB-04").failures_by_length()[0])
    assert excerpt is not None
    spans = follow_phases(*excerpt, diagram.steps)
    assert [(span.phase, span.generation) for span in spans] == [
        ("Empty", 0),
        ("Preparing", 0),
        ("Completing", 1),
        ("Stable", 1),
    ]
    assert [span.end for span in spans][:-1] == [span.first for span in spans][1:]
    text = to_svg(diagram, spans, "title", "description")
    assert [each.text for each in ElementTree.fromstring(text) if each.get("class") == "phase-name"] == [
        "Empty g0",
        "Preparing g0",
        "Completing g1",
        "Stable g1",
    ]


def test_an_svg_has_words_for_those_who_do_not_see_it(diagram: SequenceDiagram) -> None:
    root = ElementTree.fromstring(to_svg(diagram, (), "<b>&", "the schedule follows"))
    assert (root.get("role"), root[0].text, root[1].text) == ("img", "<b>&", "the schedule follows")
    wrong = [each for each in root.iter() if "wrong" in str(each.get("class"))]
    assert len(wrong) == 1 and "✗ wrong: OK" in "".join(wrong[0].itertext())


def test_hostile_texts_do_nothing() -> None:
    name = 'A"; <script>alert(1)</script>\n%% end \u202e'
    events = [replace(event, member=name) for event in heartbeats(1)]
    drawn = draw_sequence(events)
    ElementTree.fromstring(to_svg(drawn, (), name, name))
    text = to_mermaid(drawn)
    assert len(text.splitlines()) == 5
    assert not set('<>"%\u202e') & set(text.split("as coordinator")[0].replace("->>", ""))
    assert escape_mermaid("end; #1") == "#101;#110;#100;#59; #35;1"


def test_coverage_is_a_ring_of_phases(forgiving_report: Report) -> None:
    assert forgiving_report.coverage is not None
    root = ElementTree.fromstring(draw_coverage(forgiving_report.coverage))
    names = [each.text for each in root if each.tag == "text" and each.get("class") is None]
    assert names == ["no group", "empty", "preparing", "completing", "stable"]
    assert any(each.get("class") == "seen" for each in root) and "taken" in "".join(root.itertext())


def test_a_failure_without_a_trace_has_no_diagram() -> None:
    assert read_excerpt(JOIN_29) is None
    assert read_excerpt(replace(JOIN_29, excerpt="nonsense")) is None


@pytest.mark.parametrize(
    ("milliseconds", "text"), [(250, "250 ms"), (1_200, "1.2 s"), (120_000, "2 min"), (200_000, "3 min 20 s")]
)
def test_durations_are_told_in_words(milliseconds: int, text: str) -> None:
    assert format_duration(milliseconds) == text
