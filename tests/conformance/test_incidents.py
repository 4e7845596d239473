"""`fencepost report TRACE`: the story of each group as text, page and summary."""

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.conformance.cli import main
from fencepost.conformance.cli.files import SourceError, SourceKind, kind_of
from fencepost.conformance.reports.document import Document
from fencepost.conformance.reports.html import render_html
from fencepost.conformance.reports.incident import describe_incident, history_blocks
from fencepost.conformance.reports.incident_words import Clock, MemberNames, format_span, rebalance_sentences
from fencepost.conformance.reports.json_report import ReportDocument, from_html, from_json, report_schema, to_json
from fencepost.conformance.reports.markdown import render_markdown
from fencepost.conformance.reports.report import to_html
from fencepost.conformance.reports.text import render_text
from fencepost.conformance.reports.typed import from_plain, to_plain
from fencepost.conformance.results import Report
from fencepost.traces.history.builder import (
    CauseKind,
    ChangeCause,
    GroupTimeline,
    HoldKind,
    MemberSpan,
    PartitionLag,
    PhaseHold,
    PhaseSpan,
    TimelineRebalance,
    TraceHistory,
)
from fencepost.traces.importers.broker_log import import_log
from tests.support.html_reader import HtmlReader
from tests.support.sample_reports import KEPT, VIOLATED

Capture = pytest.CaptureFixture[str]
DATA = Path(__file__).parent.parent / "traces" / "data"
HOSTILE = "</script><img src=x onerror=alert(1)> \u202e \x1b[31m | `x` **b** [a](http://x)"
A, B, C = (f"consumer-{name}-6c1e0000-1111-2222-3333-{number:012}" for number, name in enumerate("abc"))


def rebalance(began: int, member: str = B, **changes: object) -> TimelineRebalance:
    """A rebalance that a silent member began, and that another one held up."""
    silent = ChangeCause(CauseKind.SESSION, (member,), 10_000)
    late = ChangeCause(CauseKind.NOT_BACK, (C,), 30_000)
    told = TimelineRebalance(
        began,
        silent,
        42,
        joined=began + 30_000,
        ended=began + 31_200,
        generation=43,
        members=1,
        phase="Stable",
        gone=((member, silent), (C, late)),
        back=((A, began + 1_000),),
        join_hold=PhaseHold(HoldKind.GONE, (C,), 30_000),
        sync_hold=PhaseHold(HoldKind.LEADER, (A,), 1_200),
    )
    return replace(told, **changes)  # type: ignore[arg-type]


def timeline(*rebalances: TimelineRebalance, group: str = "orders") -> GroupTimeline:
    gone = MemberSpan(B, None, None, 0, 100_000, ChangeCause(CauseKind.SESSION, (B,), 10_000))
    return GroupTimeline(
        group,
        0,
        600_000,
        "Stable",
        43,
        "range",
        rebalances,
        len(rebalances),
        sum(each.duration(600_000) for each in rebalances),
        (PhaseSpan("Stable", 42, 0, 100_000), PhaseSpan("Stable", 43, 131_200, 600_000)),
        (MemberSpan(A, "instance-1", None, None),),
        (gone,),
        ((CauseKind.SESSION, 1), (CauseKind.NOT_BACK, 1)),
        (PartitionLag("t", 0, 25, 40, A), PartitionLag("t", 1, 7, None, None)),
        2,
        ((5_000, "bytes are missing"),),
    )


def history(*groups: GroupTimeline, path: str = "trace.jsonl") -> TraceHistory:
    limits = ("It has no heartbeats.",)
    return TraceHistory(path, "source", "clients", "2026-11-22T12:00:00+00:00", 1_000, 600_000, groups, 0, limits)


STORY = history(timeline(rebalance(100_000)))


def render_histories(histories: list[TraceHistory]) -> str:
    """The story alone, without the report."""
    return render_text(Document("", tuple(history_blocks(histories))))


def to_incident_html(histories: list[TraceHistory], report: Report) -> str:
    return render_html(describe_incident(histories, report), to_json(report))


def test_the_story_says_who_was_silent_who_held_it_up_and_for_how_long() -> None:
    assert render_histories([STORY]) == (
        "1 rebalance of 1 group, the longest 31.2 s\n"
        "  trace.jsonl: messages between clients and brokers, 1,000 events in 10 min from 2026-11-22 12:00:00+0000\n"
        "\n"
        "Group orders: 1 rebalance, 31.2 s in all (5.2% of the time); at the end Stable in generation 43 with\n"
        "  1 known member\n"
        "  12:01:40.000  generation 42 → 43, 31.2 s\n"
        "    consumer-b-6c1e was silent for its session timeout (10.0 s). Join phase 30.0 s: held up by\n"
        "    consumer-c-6c1e; consumer-c-6c1e did not join again within the rebalance timeout (30.0 s). Sync\n"
        "    phase 1.2 s: the leader consumer-a-6c1e sent the assignment after 1.2 s. Then Stable with 1\n"
        "    member.\n"
        "  Members that went: 1 silent for the session timeout, 1 not back within the rebalance timeout.\n"
        "  From 12:00:05.000 on bytes are missing.\n"
        "  TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID\n"
        "  t      0          25              40              15   consumer-a-6c1e\n"
        "  t      1          7               -               -    -\n"
        "\n"
        "What this trace does not show\n"
        "  It has no heartbeats.\n"
    )


def test_a_rebalance_that_is_not_over_comes_first_and_names_whom_it_waits_for() -> None:
    hold = PhaseHold(HoldKind.AWAITED, (C,), 5_000)
    open_one = rebalance(595_000, joined=None, ended=None, generation=None, gone=(), join_hold=hold, sync_hold=None)
    text = render_histories([history(timeline(rebalance(100_000), open_one))])
    assert text.startswith("2 rebalances of 1 group, the longest 31.2 s; 1 not over at the end\n")
    assert text.index("from generation 42, NOT OVER after 5.0 s") < text.index("generation 42 → 43")
    assert "held up by consumer-c-6c1e. It was not over" in " ".join(text.split())


@pytest.mark.parametrize("kind", CauseKind)
@pytest.mark.parametrize("hold", HoldKind)
def test_every_cause_and_every_hold_has_its_words(kind: CauseKind, hold: HoldKind) -> None:
    cause = ChangeCause(kind, (B,), 10_000, "because")
    told = rebalance(0, cause=cause, gone=((C, cause),), join_hold=PhaseHold(hold, (C,), 5))
    sentences = list(rebalance_sentences(told, 0, MemberNames([A, B, C])))
    assert all(each.endswith(".") and not each.endswith("..") for each in sentences) and len(sentences) >= 3


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (31_240, "31.2 s"),
        (200_000, "3 min 20 s"),
        (600_000, "10 min"),
        (7_500_000, "2 h 5 min"),
    ],
)
def test_durations_in_words(milliseconds: int, words: str) -> None:
    assert format_span(milliseconds) == words


def test_times_are_those_of_the_wall_clock_if_the_trace_tells_it() -> None:
    clock = Clock("2026-11-22T23:59:59.500")
    assert (clock.time(250), clock.time(1_000)) == ("23:59:59.750", "2026-11-23 00:00:00.500")
    assert (clock.tick(1_000, 5_000), clock.tick(1_000, 200_000_000)) == ("00:00:00.500", "11-23 00:00")
    assert Clock("").time(1_250) == Clock("").tick(1_250, 9) == "1.250 s" and Clock("yesterday").start() == ""


@given(st.lists(st.text(max_size=60)))
def test_short_names_are_different_where_the_ids_are(ids: list[str]) -> None:
    names = MemberNames(ids)
    assert len({names.name(id) for id in ids}) == len(set(ids))


# --- page and summary -------------------------------------------------------------------------------------------


def test_the_page_has_the_story_the_drawing_and_the_report() -> None:
    text = to_incident_html([STORY], VIOLATED)
    page = HtmlReader(text)
    assert page.tags.count("h1") == 1 and len(page.ids) == len(set(page.ids))
    assert {"groups", "group-0", "limits", "verdict", "violations"} <= {*page.ids}
    assert {link for link in page.links if link.startswith("#group")} == {"#groups", "#group-0"}
    assert page.loaded == [] and page.handlers == []
    assert text.count('<svg class="timeline"') == 2  # the whole life, and the rebalance for itself
    assert "held up by consumer-c-6c1e" in text and "It has no heartbeats." in text
    assert "CURRENT-OFFSET" in text and "ASSIGNMENT-STRATEGY" in text
    assert from_html(text) == VIOLATED and to_incident_html([STORY], VIOLATED) == text


def test_the_page_tells_what_happened_when_with_the_lines_of_the_log(log_trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(log_trace), "--html", str(page), "-q"]) == 0
    text = page.read_text(encoding="utf-8")
    (section,) = re.findall(r'<section id="moments">.*?</section>', text, re.S)
    times = re.findall(r"<tr><td>([\d:.]+)</td>", section)
    assert times == sorted(times) and len(times) > 17
    assert 'value="04:58:' in section and "A rebalance begins: " in section
    told = {int(line) for line in re.findall(r"<code>(\d+): \w+ ", section)}
    log = (DATA / "kafka-4.log").read_text().splitlines()
    assert told and all("group" in log[line - 1] for line in told)
    assert re.findall(r"<td>(\d+\.\d%)</td></tr>", text), "the share of time without an owner"


def test_ids_do_no_harm() -> None:
    span = MemberSpan(HOSTILE, HOSTILE, HOSTILE, 0)
    lag = PartitionLag(HOSTILE, 0, 1, 2, HOSTILE)
    told = rebalance(100_000, cause=ChangeCause(CauseKind.OTHER, (HOSTILE,), None, HOSTILE), came=(HOSTILE,))
    group = replace(timeline(told, group=HOSTILE), members=(span,), partitions=(lag,), limits=((0, HOSTILE),))
    hostile = replace(history(group, path=HOSTILE), limits=(HOSTILE,))
    text, markdown = to_incident_html([hostile], KEPT), render_markdown(describe_incident([hostile], KEPT))
    page = HtmlReader(text)
    assert page.tags.count("script") == 2 and "img" not in page.tags and page.handlers == []
    for each in (text, markdown, render_histories([hostile])):
        assert "\u202e" not in each and "\x1b" not in each
    assert (
        not re.search(r"<(?!/?(?:details|summary|code)\b)", markdown)
        and "](" not in markdown
        and re.search(r"\*\*b\*\*", markdown) is None
    )


def test_a_page_of_many_groups_and_rebalances_stays_readable() -> None:
    members = tuple(MemberSpan(f"{A[:-6]}{n:06}", None, None, n) for n in range(500))
    many = timeline(*(rebalance(n * 5_000) for n in range(100)))
    groups = [replace(many, group=f"group-{n}", members=members) for n in range(200)]
    text = to_incident_html([replace(history(*groups), other_groups=5_000)], KEPT)
    assert len(text) < 1_500_000
    assert "5,000 more groups" in text and "80 shorter rebalances not told" in text
    assert "more members are not drawn" in text
    shown = render_histories([replace(history(*groups), other_groups=5_000)])
    assert len(shown.splitlines()) < 200 and "and 5,175 more" in shown


def test_the_summary_tells_the_longest_rebalances_before_the_report() -> None:
    text = render_markdown(describe_incident([STORY], KEPT))
    assert text.startswith("## 1 rebalance of 1 group")
    assert text.index("generation 42") < text.index("NO VIOLATION&#58; 1 of 1 requirement")
    assert "held up by consumer&#45;c" in text or "held up by consumer-c" in text


# --- the command ------------------------------------------------------------------------------------------------


@pytest.fixture
def log_trace(tmp_path: Path) -> Path:
    import_log([DATA / "kafka-4.log"], tmp_path / "trace.jsonl")
    return tmp_path / "trace.jsonl"


def test_from_a_log_to_the_story(log_trace: Path, tmp_path: Path, capsys: Capture) -> None:
    page, summary, saved = (tmp_path / name for name in ("p.html", "s.md", "r.json"))
    arguments = ["report", str(log_trace), "--html", str(page), "--markdown", str(summary), "--json", str(saved)]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert text.startswith("17 rebalances of 6 groups, the longest 4.6 s\n")
    assert "04:58:14.853  from generation 1, 1.5 s" in text and "no heartbeats, no offsets" in text
    assert text.rstrip().splitlines()[-1].startswith("NO VIOLATION: ")
    assert HtmlReader(page.read_text(encoding="utf-8")).tags.count("svg") > 6
    assert summary.read_text(encoding="utf-8").startswith("## 17 rebalances")
    assert from_json(saved.read_text(encoding="utf-8")).exit_code() == 0


def test_a_trace_that_cannot_be_read_leaves_a_report_and_one_line(tmp_path: Path, capsys: Capture) -> None:
    bad, page = tmp_path / "bad.jsonl", tmp_path / "p.html"
    bad.write_text("nonsense\n")
    assert main(["report", str(bad), "--html", str(page)]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1 and "bad.jsonl:1:" in error
    assert HtmlReader(page.read_text(encoding="utf-8")).tags.count("h1") == 1


def test_sources_are_told_apart_by_their_content(log_trace: Path, tmp_path: Path) -> None:
    for number, (content, kind) in enumerate(
        [
            (log_trace.read_bytes(), SourceKind.TRACE),
            (gzip.compress(log_trace.read_bytes()), SourceKind.TRACE),
            (to_json(KEPT).encode(), SourceKind.REPORT),
            (b"\xef\xbb\xbf" + json.dumps(json.loads(to_json(KEPT))).encode(), SourceKind.REPORT),
            (to_json(replace(KEPT, target={"name": "kafkajs"})).encode(), SourceKind.REPORT),
            (to_html(KEPT).encode(), SourceKind.PAGE),
        ]
    ):
        path = tmp_path / f"source-{number}"  # the name says nothing
        path.write_bytes(content)
        assert kind_of(path) is kind
        path.rename(path.with_suffix(".json"))  # nor may it mislead
        assert kind_of(path.with_suffix(".json")) is kind
    assert kind_of(tmp_path) is SourceKind.TRACE


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        ((DATA / "kafka-3.log").read_bytes(), "fencepost import log"),
        ((DATA / "kafka.pcap").read_bytes(), "fencepost import capture"),
        (b"", "empty or not readable"),
        (b"something else", "neither a report (JSON or HTML) nor a trace"),
    ],
)
def test_another_file_is_named_with_what_to_do(content: bytes, remedy: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=re.escape(remedy)):
        kind_of(path)
    assert main(["report", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "import" not in remedy or f"{remedy} {path} -o " in line


def test_a_violation_is_told_in_full_and_is_the_exit_code(tmp_path: Path, capsys: Capture) -> None:
    import_log([DATA / "kafka-4.log"], tmp_path / "trace.jsonl")
    lines = (tmp_path / "trace.jsonl").read_text().splitlines(keepends=True)
    wrong = [line.replace('"generation":3', '"generation":2') if '"complete"' in line else line for line in lines]
    (tmp_path / "wrong.jsonl").write_text("".join(wrong))
    assert main(["report", str(tmp_path / "wrong.jsonl")]) == 1
    text = capsys.readouterr().out
    assert text.startswith("1") and "GEN-02" in text and "NOT CONFORMANT" in text


def test_the_json_has_the_story(tmp_path: Path, capsys: Capture) -> None:
    trace, file = tmp_path / "group.jsonl", tmp_path / "r.json"
    trace.write_bytes((DATA / "group.jsonl").read_bytes())
    assert main(["report", str(trace), "--json", str(file)]) == 0
    told = json.loads(file.read_text())
    (history,) = told["histories"]
    assert len(history["groups"]) == 6 and sum(len(each["rebalances"]) for each in history["groups"]) == 17
    group = max(history["groups"], key=lambda each: len(each["rebalances"]))
    assert group["generation"] == group["rebalances"][-1]["generation"]
    document = from_plain(ReportDocument, told)
    assert document.histories is not None and to_plain(document) == told
    jsonschema.validate(told, json.loads(report_schema()))
    assert to_json(from_json(file.read_text())) == to_json(from_json(json.dumps({**told, "histories": []})))


def test_a_report_without_a_trace_has_no_story() -> None:
    assert "histories" not in json.loads(to_json(KEPT))
