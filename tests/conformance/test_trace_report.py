"""`fencepost judge`: traces without a target."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fencepost.conformance.analysis.trace_report import (
    MAX_MEMBER_FAILURES,
    MAX_SHOWN_EVENTS,
    PROGRESS_INTERVAL,
    judge_files,
)
from fencepost.conformance.cli import main
from fencepost.conformance.events import Progress
from fencepost.conformance.pipeline.shard_findings import shard_findings
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.reports.junit import to_junit
from fencepost.conformance.reports.report import render_report, to_html, to_markdown
from fencepost.conformance.results import EndKind, ExitCode, Report, Verdict
from fencepost.conformance.run import runner
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Event, Header, Kind, Order
from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.history.builder import TraceHistory
from fencepost.traces.pipeline.corpus import Corpus
from tests.support.altered_traces import write_in_parts
from tests.support.faulty_coordinators import FORGIVING, install
from tests.support.member_recording import RECORDED, MemberRecording, record_stable_member, record_wrong_member
from tests.support.same_reports import merge_findings
from tests.support.shards import findings_in

Capture = pytest.CaptureFixture[str]
HEADER = Header("somebody's broker", Order.TOTAL, "wall", Settings(), 0, {"name": "made up", "version": "1"})


def heartbeats(times: int, error: int = 25, group: str = "g") -> Iterator[Event]:
    """Heartbeats to a group that does not exist, each answered at once."""
    body = {"group_id": group, "generation_id": 1, "member_id": "m", "group_instance_id": None}
    response = {"throttle_time_ms": 0, "error_code": error}
    for number in range(times):
        yield Event(2 * number, number, 0, "A", Kind.REQUEST, "Heartbeat", 4, body)
        yield Event(2 * number + 1, number, 0, "A", Kind.RESPONSE, "Heartbeat", 4, response, 2 * number)


def break_trace(path: Path, line: int) -> Path:
    """Make one line of a trace nonsense."""
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[: line - 1], "nonsense", *lines[line:]]))
    return path


def ignore_progress(progress: Progress) -> None:
    """Nobody wants to know."""


def save_trace(path: Path, events: Iterator[Event], header: Header = HEADER) -> Path:
    write_trace(path, header, events)
    return path


def verdict_on(requirement: str, report: Report) -> Verdict:
    return next(result.verdict for result in report.results if result.id == requirement)


def test_a_trace_without_marks_gets_verdicts_by_the_rules_it_shows(tmp_path: Path, capsys: Capture) -> None:
    trace = save_trace(tmp_path / "t.jsonl", heartbeats(3))
    assert main(["judge", str(trace)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Target: somebody's broker (version 1)\n")
    checked = f"1 of {len(CATALOGUE)} requirements checked"
    assert text.endswith(f"NO VIOLATION: {checked} (traces of a coordinator), none violated.\n")
    report = judge_files([trace], ignore_progress)
    assert verdict_on("HB-02", report) is Verdict.PASS
    assert verdict_on("HB-01", report) is Verdict.NOT_OBSERVED
    assert report.rules["heartbeat.unknown-group"].seen == 3
    assert (report.schedules, report.events, report.cut_short) == (1, 6, False)


def test_a_fault_without_a_mark_breaks_the_requirement_of_its_rule(tmp_path: Path) -> None:
    trace = save_trace(tmp_path / "t.jsonl", heartbeats(1, error=0))
    report = judge_files([trace], ignore_progress)
    assert verdict_on("HB-02", report) is Verdict.FAIL
    (failure,) = next(result.failures for result in report.results if result.id == "HB-02")
    assert (failure.trace, failure.step, failure.replayed) == (str(trace), 0, False)
    assert failure.schedule == ("at 0 ms A: Heartbeat v4 member_id='m', generation_id=1",)
    assert main(["judge", str(trace)]) == 1


def test_marks_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FORGIVING)
    assert main(["test", "bundled", "--only", "HB-04", "--traces", str(tmp_path)]) == 1
    report = judge_files(sorted(tmp_path.glob("*.jsonl")), ignore_progress)
    assert verdict_on("HB-04", report) is Verdict.FAIL
    assert verdict_on("HB-05", report) is Verdict.PASS


def test_several_traces_add_up(tmp_path: Path, capsys: Capture) -> None:
    good = save_trace(tmp_path / "good.jsonl.gz", heartbeats(2), replace(HEADER, implementation={"version": "1"}))
    bad = save_trace(tmp_path / "bad.jsonl", heartbeats(1, error=0), replace(HEADER, source="another"))
    assert main(["judge", str(good), str(bad)]) == 1
    output = capsys.readouterr()
    assert output.out.startswith("Target: 2 traces (version 1)\n")
    assert "2 schedules, 6 events" in output.out
    assert output.err.splitlines()[-1].startswith("2/2 schedules, 1 violated, ")


def test_the_schedule_of_a_failure_is_that_of_its_group(tmp_path: Path) -> None:
    def both() -> Iterator[Event]:
        yield from heartbeats(MAX_SHOWN_EVENTS, group="other")
        for event in heartbeats(1, error=0):
            sequence = event.sequence + 2 * MAX_SHOWN_EVENTS
            yield replace(
                event, sequence=sequence, time=MAX_SHOWN_EVENTS, of=None if event.of is None else 2 * MAX_SHOWN_EVENTS
            )

    report = judge_files([save_trace(tmp_path / "t", both())], ignore_progress)
    (failure,) = next(result.failures for result in report.results if result.id == "HB-02")
    assert failure.schedule == (f"at {MAX_SHOWN_EVENTS} ms A: Heartbeat v4 member_id='m', generation_id=1",)


def pressing_ctrl_c_after(events: int) -> Callable[[Progress], None]:
    def progress(progress: Progress) -> None:
        if f"{events} events" in progress.current:
            signal.raise_signal(signal.SIGINT)

    return progress


def test_ctrl_c_keeps_what_was_judged(tmp_path: Path) -> None:
    trace = save_trace(tmp_path / "t", heartbeats(2 * PROGRESS_INTERVAL))
    report = judge_files([trace, trace], pressing_ctrl_c_after(PROGRESS_INTERVAL))
    assert (report.schedules, report.events, report.cut_short) == (0, PROGRESS_INTERVAL, True)
    assert verdict_on("HB-02", report) is Verdict.PASS
    assert report.exit_code() == 3


def test_what_the_judge_gives_up_on_is_no_pass(tmp_path: Path, capsys: Capture) -> None:
    """A coordinator that is not ready may say so at any time; nothing is known of the group after that."""
    trace = save_trace(tmp_path / "t", heartbeats(2, error=Error.NOT_COORDINATOR))
    assert main(["judge", str(trace)]) == 3
    assert capsys.readouterr().out.endswith("INCONCLUSIVE: the run was cut short.\n")


# --- traces that cannot be judged


def remark(api: str, body: Body) -> str:
    """A line of a trace in which the schedule says something about itself."""
    event = {"sequence": 0, "time": 0, "connection": 0, "member": "", "kind": "internal", "api": api, "version": 0}
    return json.dumps({**event, "body": body})


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([], "the file is empty: a trace begins with a header line"),
        (["{}"], "1: not a header: a trace begins with a line that has the key 'fencepost_trace'"),
        (["HEADER", "REQUEST", "nonsense"], "3: not JSON: Expecting value at column 1"),
        (["HEADER", "REQUEST", '{"sequence": 1, "ti'], "3: not JSON: Unterminated string starting at at column 17"),
        (["HEADER", "REQUEST", "REQUEST"], "3: sequence 0 does not rise: 0 came before"),
        (["HEADER", "EVIDENCE"], "2: key 'requirement' is missing"),
        (["HEADER", "FIELDS"], "2: 'fields' is not an array of strings"),
        (["HEADER", "TOPICS"], "2: 'topics' has a number of partitions that is not an integer"),
        (["HEADER", "IDS"], "2: 'ids' has an id that is not a string"),
        (["HEADER", "SAVED"], "2: 'left_out' is not an array of strings"),
    ],
)
@pytest.mark.parametrize("command", [["judge"], ["replay"]])
def test_a_malformed_trace(
    command: list[str], lines: list[str], complaint: str, tmp_path: Path, capsys: Capture
) -> None:
    header, request, *_ = save_trace(tmp_path / "good", heartbeats(1)).read_text().splitlines()
    known = {"HEADER": header, "REQUEST": request, "EVIDENCE": remark("check", {})}
    known["FIELDS"] = remark("check", {"requirement": "HB-01", "fields": [1]})
    known["TOPICS"] = remark("topics", {"topics": {"t": None}})
    known["SAVED"] = remark("saved", {"requirements": [], "left_out": 7})
    known["IDS"] = remark("topics", {"topics": {}, "ids": {"t": 1}})
    trace = tmp_path / "bad"
    trace.write_text("\n".join(known.get(line, line) for line in lines))
    assert main([*command, str(trace), *(["bundled"] if command == ["replay"] else [])]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines()[-1].startswith(f"fencepost: {trace}:")
    assert output.err.splitlines()[-1].endswith(complaint)


@pytest.mark.parametrize("command", ["judge", "replay"])
def test_a_truncated_gzip(command: str, tmp_path: Path, capsys: Capture) -> None:
    trace = save_trace(tmp_path / "t.gz", heartbeats(50))
    trace.write_bytes(trace.read_bytes()[:-20])
    assert main([command, str(trace), *(["bundled"] if command == "replay" else [])]) == 2
    assert "damaged or truncated gzip" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("command", ["judge", "replay"])
def test_a_trace_that_is_not_there(command: str, tmp_path: Path, capsys: Capture) -> None:
    assert main([command, str(tmp_path / "t"), *(["bundled"] if command == "replay" else [])]) == 2
    assert capsys.readouterr().err == f"fencepost: {tmp_path}/t: cannot be read: No such file or directory\n"


@pytest.mark.parametrize("command", ["judge", "replay"])
def test_a_body_that_no_message_has(command: str, tmp_path: Path, capsys: Capture) -> None:
    def odd() -> Iterator[Event]:
        for event in heartbeats(1):
            yield replace(event, body={**event.body, "group_id": {}}) if event.kind is Kind.REQUEST else event

    trace = save_trace(tmp_path / "t", odd())
    assert main([command, str(trace), *(["bundled"] if command == "replay" else [])]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    reason = "'group_id' of Heartbeat v4 is not a string" if command == "judge" else "HeartbeatRequest v4 group_id: "
    assert line.startswith(f"fencepost: {trace}: event 0: {reason}")


def test_what_a_trace_leaves_open_is_told(tmp_path: Path) -> None:
    beat = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    events = [
        Event(0, 0, 0, "", Kind.INTERNAL, "unknown", 0, {"reason": "the recording begins"}),
        Event(1, 1, 1, "A", Kind.REQUEST, "Heartbeat", 0, beat),
        Event(2, 2, 1, "A", Kind.RESPONSE, "Heartbeat", 0, {"error_code": 0}, 1),
    ]
    write_trace(tmp_path / "t.jsonl", Header("here", Order.INTERVALS, "wall", Settings(), 1_000), events)
    report = judge_files([tmp_path / "t.jsonl"], lambda _: None)
    (line,) = report.undecided
    assert "group 'g': what was before is not known" in line
    told = render_report(report, width=90)
    assert f"Left open {line}" in " ".join(told.split()) and report.exit_code() == 3
    assert max(map(len, told.partition("Left open")[2].splitlines())) <= 90
    assert from_json(to_json(report)) == report
    many = render_report(replace(report, undecided=(line,) * 30))
    assert " ".join(many.split()).count(line) == 20 and "  and 10 more\n" in many


# --- many traces, some of them bad


@pytest.mark.parametrize(("error", "code"), [(25, 2), (0, 1)], ids=["without a violation", "with a violation"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_bad_file_does_not_stop_the_others(
    error: int, code: int, place: int, tmp_path: Path, capsys: Capture
) -> None:
    traces = [save_trace(tmp_path / f"{name}.jsonl", heartbeats(2, error)) for name in "abc"]
    traces[place].write_text("nonsense\n")
    assert main(["judge", *map(str, traces), "--json", str(tmp_path / "r.json")]) == code
    assert f"{traces[place]}:1: not JSON" in capsys.readouterr().out
    report = from_json((tmp_path / "r.json").read_text())
    assert (report.schedules, report.events) == (2, 8)
    assert report.ended is not None and report.ended.kind is EndKind.UNREADABLE
    assert verdict_on("HB-02", report) is (Verdict.FAIL if code == 1 else Verdict.PASS)


def test_what_comes_before_a_bad_line_is_judged(tmp_path: Path, capsys: Capture) -> None:
    trace = break_trace(save_trace(tmp_path / "t.jsonl", heartbeats(3, 0)), 6)
    assert main(["judge", str(trace)]) == 1
    output = " ".join(capsys.readouterr().out.split())
    assert "FAIL HB-02" in output and f"not judged: {trace}:6: not JSON" in output


def test_a_message_outside_the_wire_format_spoils_its_own_trace_only(tmp_path: Path) -> None:
    def odd() -> Iterator[Event]:
        for event in heartbeats(2):
            yield replace(event, body={**event.body, "group_id": []}) if event.kind is Kind.REQUEST else event

    traces = [save_trace(tmp_path / "a.jsonl", odd()), save_trace(tmp_path / "b.jsonl", heartbeats(2))]
    report = judge_files(traces, ignore_progress)
    assert report.ended is not None and str(traces[0]) in report.ended.reason
    assert verdict_on("HB-02", report) is Verdict.PASS
    assert report.exit_code() == 2


def heartbeats_with_an_odd_answer(times: int, odd: int) -> list[Event]:
    """Heartbeats of which one is answered with an error code that is none."""
    events = list(heartbeats(times))
    events[2 * odd + 1] = replace(events[2 * odd + 1], body={"throttle_time_ms": 0, "error_code": []})
    return events


@pytest.mark.parametrize("odd", [0, 3, 5])
def test_a_message_outside_the_wire_format_in_any_part_of_a_recording(
    odd: int, tmp_path: Path, capsys: Capture
) -> None:
    parts = write_in_parts(tmp_path, HEADER, heartbeats_with_an_odd_answer(6, odd), 3)
    assert main(["judge", *map(str, parts)]) == 2
    told = capsys.readouterr()
    wrong = next(event for part in parts for event in open_trace(part)[1] if event.body.get("error_code") == [])
    place = f"{parts[0]}: event {wrong.sequence}: HeartbeatResponse v4 error_code: [] does not fit"
    assert place in told.err.splitlines()[-1] + told.out and "Traceback" not in told.err


def test_a_message_outside_the_wire_format_through_a_pipe(tmp_path: Path) -> None:
    trace = save_trace(tmp_path / "t.jsonl", iter(heartbeats_with_an_odd_answer(2, 1)))
    command = [sys.executable, "-m", "fencepost", "judge", "-"]
    with trace.open("rb") as text:
        done = subprocess.run(command, stdin=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("fencepost: -: event 3: HeartbeatResponse v4 error_code: [] does")


def test_a_folder_stands_for_the_traces_in_it(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    save_trace(tmp_path / "in" / "a.jsonl", heartbeats(1))
    save_trace(tmp_path / "in" / "deep" / "b.jsonl.gz", heartbeats(1))
    (tmp_path / "in" / "notes.txt").write_text("no trace")
    assert main(["judge", str(tmp_path / "in")]) == 0
    assert "2 schedules, 4 events" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    assert main(["judge", str(tmp_path / "empty")]) == 2
    assert capsys.readouterr().err.endswith("no trace in this folder: their names end in .jsonl or .jsonl.gz\n")


def test_standard_input_is_a_trace_too(tmp_path: Path) -> None:
    trace = save_trace(tmp_path / "t.jsonl", heartbeats(2))
    command = [sys.executable, "-m", "fencepost", "judge", "-"]
    with trace.open("rb") as text:
        done = subprocess.run(command, stdin=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "1 schedule, 4 events" in done.stdout


def test_a_trace_with_nothing_to_check_is_not_green(tmp_path: Path, capsys: Capture) -> None:
    assert main(["judge", str(save_trace(tmp_path / "t.jsonl", iter(())))]) == 3
    assert capsys.readouterr().out.endswith("NOTHING CHECKED: no requirement was put to the test.\n")


@pytest.mark.parametrize(
    ("encoding", "reason"),
    [
        ("utf-8-sig", "1: begins with a byte order mark; save it as UTF-8 without one"),
        ("utf-16", "1: is UTF-16; save it as UTF-8"),
    ],
)
def test_byte_order_marks(encoding: str, reason: str, tmp_path: Path, capsys: Capture) -> None:
    trace = save_trace(tmp_path / "t.jsonl", heartbeats(1))
    trace.write_text(trace.read_text(), encoding=encoding)
    assert main(["judge", str(trace)]) == 2
    assert capsys.readouterr().err == f"fencepost: {trace}:{reason}\n"


# --- `fencepost judge` on recordings: what members did wrong, beside what their coordinator did.


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


def test_a_terminal_is_told_the_families_that_a_trace_touches(tmp_path: Path, capsys: Capture) -> None:
    write_trace(tmp_path / "t.jsonl", HEADER, heartbeats(1))
    main(["judge", str(tmp_path / "t.jsonl"), "--html", str(tmp_path / "t.html")])
    families = capsys.readouterr().out.partition("\nFamilies\n")[2].partition("\n\n")[0]
    assert families.startswith("  HB ") and "JOIN" not in families
    assert ">JOIN</div>" in (tmp_path / "t.html").read_text()


# --- many processes ---------------------------------------------------------------------------------------------------


def test_several_processes_report_what_one_does(tmp_path: Path) -> None:
    """Traces with and without a violation, a recording of two parts, a file that is no trace, and their histories."""
    for number in range(5):
        save_trace(tmp_path / f"{number}.jsonl", heartbeats(3 + number, error=0 if number % 2 else 25))
    (tmp_path / "5.jsonl").write_text("no trace\n")
    paths = sorted(tmp_path.glob("*.jsonl"))
    told: list[list[TraceHistory]] = [[], []]
    one = runner.judge_files(paths, lambda _: None, told[0])
    several = runner.judge_files(paths, lambda _: None, told[1], 2)
    assert replace(one, seconds=0, ended=None) == replace(several, seconds=0, ended=None)
    assert one.ended is not None and several.ended is not None and one.ended.reason == several.ended.reason
    assert told[0] == told[1] and len(told[0]) == 5 and one.failed_results()


def test_holes_in_the_numbers_of_a_recording_are_told(tmp_path: Path) -> None:
    """Recorders skip none: lines may be missing. Of other traces, which may be shrunk, nothing is said."""
    events = [event for event in heartbeats(4) if event.sequence not in (2, 3)]
    for implementation, told in (({"recorder": "r"}, "2 numbers of events"), ({}, None)):
        path = tmp_path / f"{len(implementation)}.jsonl"
        write_trace(path, replace(HEADER, implementation=implementation), events)
        assert judge_files([path], lambda _: None).target.get("skipped") == told
