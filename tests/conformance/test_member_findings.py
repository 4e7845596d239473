"""`fencepost judge` on recordings: what members did wrong, beside what their coordinator did."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from fencepost.conformance.analysis.trace_report import MAX_MEMBER_FAILURES, judge_files
from fencepost.conformance.cli import main
from fencepost.conformance.pipeline.shard_findings import shard_findings
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.reports.junit import to_junit
from fencepost.conformance.reports.report import render_report, to_html, to_markdown
from fencepost.conformance.results import ExitCode, Report, Verdict
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline.corpus import Corpus
from tests.support.member_recording import RECORDED, MemberRecording, record_stable_member, record_wrong_member
from tests.support.same_reports import merge_findings
from tests.support.shards import findings_in


def save(path: Path, recording: MemberRecording) -> Path:
    write_trace(path, RECORDED, recording.events)
    return path


def judge(*paths: Path) -> Report:
    return judge_files(paths, lambda progress: None)


def members_of(report: Report) -> Report:
    assert report.members is not None
    return report.members


def test_a_member_that_does_as_it_should(tmp_path: Path) -> None:
    report = judge(save(tmp_path / "t.jsonl", record_stable_member()))
    members = members_of(report)
    assert members.failed_results() == () and members.result("HBT-02").verdict is Verdict.PASS
    assert members.target == {"name": "members of kafka://broker"}
    assert members.specification.subject == "client"
    assert (members.schedules, members.events) == (1, report.events)


def test_a_wrong_member_is_told_apart_from_its_coordinator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = save(tmp_path / "t.jsonl", record_wrong_member())
    assert main(["judge", str(trace), "--html", str(tmp_path / "r.html"), "--junit", str(tmp_path / "r.xml")]) == 1
    text = capsys.readouterr().out
    assert "FAIL MEMBER-13 MUST: " in text
    assert "A in group 'g': JoinGroup has the wrong member_id" in text
    assert "Target: members of kafka://broker" in text
    assert "1 requirement violated by members" in text.rstrip().rpartition("\n")[2]
    assert "MEMBER-13" in (tmp_path / "r.html").read_text()
    suites = ElementTree.parse(tmp_path / "r.xml").getroot()
    failed = [case.get("name", "") for case in suites.iterfind(".//failure/..")]
    assert any(name.startswith("MEMBER-13") for name in failed)


def test_a_report_with_members_is_read_back(tmp_path: Path) -> None:
    report = judge(save(tmp_path / "t.jsonl", record_wrong_member()))
    assert from_json(to_json(report)) == report
    assert report.exit_code() is ExitCode.VIOLATION
    assert "MEMBER-13" in to_markdown(report) and "MEMBER-13" in to_html(report) and "MEMBER-13" in to_junit(report)


def test_the_excerpt_shows_the_violation_again(tmp_path: Path) -> None:
    (result,) = members_of(judge(save(tmp_path / "t.jsonl", record_wrong_member()))).failed_results()
    (failure,) = result.failures
    assert failure.schedule[-1].endswith("<-- wrong")
    (tmp_path / "excerpt.jsonl").write_text(failure.excerpt)
    (again,) = members_of(judge(tmp_path / "excerpt.jsonl")).failed_results()
    assert again.id == result.id == "MEMBER-13"


def test_of_many_violations_the_first_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    recording = record_stable_member()
    events = list(recording.events)
    for number in range(MAX_MEMBER_FAILURES + 5):
        other = record_wrong_member()
        offset, connection = len(recording.events), number + 2
        for event in other.events:
            recording.now = 20_000 * (number + 1) + event.time
            of = None if event.of is None else event.of + offset
            body = {**event.body, **({"group_id": f"g{number}"} if "group_id" in event.body else {})}
            recording.add(event.kind, event.api, event.version, body, member=f"M{number}", connection=connection, of=of)
    assert len(recording.events) > len(events)
    (result,) = members_of(judge(save(tmp_path / "t.jsonl", recording))).failed_results()
    assert (len(result.failures), result.more_failures) == (MAX_MEMBER_FAILURES, 5)


def test_what_is_no_recording_has_no_members(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    assert main(["test", "bundled", "--only", "HB-02", "--traces", str(tmp_path / "traces")]) == 0
    for trace in (tmp_path / "traces").glob("*.jsonl"):
        assert judge(trace).members is None


@pytest.mark.parametrize("split", [10**9, 0])
def test_the_pipeline_says_the_same_of_members(tmp_path: Path, split: int) -> None:
    paths = [save(tmp_path / "a.jsonl", record_wrong_member()), save(tmp_path / "b.jsonl", record_stable_member())]
    expected = members_of(judge(*paths))
    found = members_of(merge_findings(findings_in(Corpus(tmp_path, 3), paths, split, shard_findings), 0))
    assert found.results == expected.results and len(found.failed_results()) == 1
    assert found.target == expected.target and found.schedules == expected.schedules
    assert render_report(found).splitlines()[:5] == render_report(expected).splitlines()[:5]
