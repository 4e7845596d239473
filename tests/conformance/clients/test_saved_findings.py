"""Findings about clients after the run: traces judged again, badges, the registry, and the catalogue."""

import json
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.client.cluster import CLIENT_LABEL
from fencepost.conformance.analysis import failures
from fencepost.conformance.analysis.trace_report import judge_files
from fencepost.conformance.classic.clients import CLASSIC_CLIENTS
from fencepost.conformance.cli import main
from fencepost.conformance.clients.run import judge_client_files
from fencepost.conformance.plan import BUNDLED
from fencepost.conformance.profile import Profile
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.results import ExitCode, Report, Verdict
from fencepost.conformance.run.replay import replay_trace
from fencepost.model.classic.catalogue.client import CLIENT_CATALOGUE
from fencepost.traces.client_judge.judge import judge_client
from fencepost.traces.events import SAVED
from fencepost.traces.files.trace_files import TraceError, open_trace
from tests.support.client_scenarios import make_run
from tests.support.faulty_clients import FRESH_ID
from tests.support.wire_client import WireClient

ABOUT = 'name = "Reference"\nlanguage = "Python"\nlicense = "Apache-2.0"\n'


async def faulty_report(tmp_path: Path) -> Report:
    """The report on a client that forgets its member id; its traces are in folders."""
    for name in ("traces", "failures"):
        (tmp_path / name).mkdir()
    run = make_run("MEMBER-1*", tamper=FRESH_ID, traces=tmp_path / "traces", save=tmp_path / "failures")
    return await run.run()


async def test_saved_traces_are_judged_alike(tmp_path: Path) -> None:
    report = await faulty_report(tmp_path)
    failed = {result.id for result in report.failed_results()}
    assert failed == {"MEMBER-10", "MEMBER-11", "MEMBER-12", "MEMBER-14"}
    assert main(["judge", str(tmp_path / "traces"), "--json", str(tmp_path / "r.json")]) == ExitCode.VIOLATION
    again = from_json((tmp_path / "r.json").read_text())
    assert {result.id for result in again.failed_results()} >= failed
    passed = {result.id for result in report.results if result.verdict is Verdict.PASS}
    assert passed <= {result.id for result in again.results if result.verdict is Verdict.PASS}
    assert again.result("HBT-06").verdict is Verdict.UNSUPPORTED


async def test_saved_traces_have_the_marks_of_their_scenarios(tmp_path: Path) -> None:
    """A client that sends no SyncGroup blocks the scenario."""

    def send_no_sync(client: WireClient, api: str, body: dict[str, Any]) -> dict[str, Any] | None:
        return None if api == "SyncGroup" else body

    report = await make_run("MEMBER-11", tamper=send_no_sync, traces=tmp_path).run()
    again = judge_client_files(sorted(tmp_path.glob("*.jsonl")), lambda progress: None, CLASSIC_CLIENTS)
    mark = "a-sync-during-a-rebalance: no response REBALANCE_IN_PROGRESS to SyncGroup came within 30 s"
    assert [each.result("MEMBER-11").note for each in (report, again)] == [mark, mark]
    assert [each.result("MEMBER-11").verdict for each in (report, again)] == [Verdict.INCONCLUSIVE] * 2


async def test_an_excerpt_is_judged_by_what_it_was_made_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "MAX_EXCERPT", 12_000)
    path, whole, others = tmp_path / "excerpt.jsonl", tmp_path / "whole.jsonl", set[str]()
    for result in (await faulty_report(tmp_path)).failed_results():
        for excerpt in (each.excerpt for each in result.failures if each.excerpt):
            path.write_text(excerpt)
            again = judge_client_files([path], lambda progress: None, CLASSIC_CLIENTS)
            assert [each.id for each in again.failed_results()] == [result.id]
            told = f"excerpt.jsonl: an excerpt without ApiVersions, Fetch, Metadata: only {result.id} is judged"
            assert again.undecided == (told,) and again.exit_code() is ExitCode.VIOLATION
            whole.write_text("".join(excerpt.splitlines(keepends=True)[:-1]))
            again = judge_client_files([whole], lambda progress: None, CLASSIC_CLIENTS)
            others |= {each.id for each in again.failed_results()} - {result.id}
    assert others


async def test_a_saved_trace_of_a_kit_that_was_late_blames_nobody(tmp_path: Path) -> None:
    await make_run("MEMBER-12", tamper=FRESH_ID, traces=tmp_path).run()
    traces = sorted(tmp_path.glob("*.jsonl"))
    assert judge_client_files(traces, lambda progress: None, CLASSIC_CLIENTS).failed_results()
    for path in traces:
        path.write_text(path.read_text().replace('"late_ms":0', '"late_ms":900'))
    assert not judge_client_files(traces, lambda progress: None, CLASSIC_CLIENTS).failed_results()


async def test_a_saved_trace_of_a_kit_that_was_late_has_no_remarks(tmp_path: Path) -> None:
    """A client that does not leave when it closes."""

    def stay(client: WireClient, api: str, body: dict[str, Any]) -> dict[str, Any] | None:
        return None if api == "LeaveGroup" else body

    await make_run("MEMBER-22", tamper=stay, traces=tmp_path).run()
    traces = sorted(tmp_path.glob("*.jsonl"))
    assert judge_client_files(traces, lambda progress: None, CLASSIC_CLIENTS).result("MEMBER-22").remark is not None
    for path in traces:
        path.write_text(path.read_text().replace('"late_ms":0', '"late_ms":900'))
    assert judge_client_files(traces, lambda progress: None, CLASSIC_CLIENTS).result("MEMBER-22").remark is None


async def test_failures_are_saved_with_their_requirements(tmp_path: Path) -> None:
    report = await faulty_report(tmp_path)
    saved = sorted((tmp_path / "failures").iterdir())
    assert saved
    for path in saved:
        header, stream = open_trace(path)
        events = tuple(stream)
        assert events[-1].api == SAVED
        named = set(events[-1].body["requirements"])
        assert named and named <= judge_client(header, events, CLIENT_LABEL, CLASSIC_CLIENTS.follow).violated
    shown = {failure.trace for result in report.failed_results() for failure in result.failures}
    assert shown and shown <= {str(path) for path in saved}


async def test_the_trace_of_a_client_is_none_of_a_coordinator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await faulty_report(tmp_path)
    trace = next(iter((tmp_path / "traces").iterdir()))
    with pytest.raises(TraceError, match="the trace of a client"):
        judge_files([trace], lambda progress: None)
    other = tmp_path / "other.jsonl"
    other.write_text(trace.read_text().replace('"subject":"client"', '"subject":"x"'))
    assert main(["judge", str(trace), str(other)]) == ExitCode.COULD_NOT_RUN
    assert "judge them apart" in capsys.readouterr().err


async def test_a_broken_trace_is_told_beside_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await faulty_report(tmp_path)
    with (tmp_path / "traces" / "a-client-alone.jsonl").open("a") as file:
        file.write("{}\n")
    assert main(["report", str(tmp_path / "traces"), "--html", str(tmp_path / "r.html")]) == ExitCode.VIOLATION
    output = capsys.readouterr().out
    assert "Cut short: 1 of " in output and "FAIL MEMBER-12" in output
    assert main(["report", str(tmp_path / "r.html")]) == ExitCode.VIOLATION


async def test_a_badge_names_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = await make_run("MEMBER-34").run()
    (tmp_path / "r.json").write_text(to_json(report))
    assert main(["badge", str(tmp_path / "r.json"), "-o", str(tmp_path)]) == ExitCode.CONFORMANT
    badge = json.loads((tmp_path / "fencepost.json").read_text())
    assert badge["label"] == "kafka group client" and badge["message"] == f"partial: 1/{len(CLIENT_CATALOGUE)} checked"


async def test_a_registry_has_clients_beside_coordinators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "clients" / "reference" / "1.0"
    folder.mkdir(parents=True)
    (folder.parent / "about.toml").write_text(ABOUT)
    report = await make_run("MEMBER-12", tamper=FRESH_ID).run()
    (folder / "report.json").write_text(to_json(report))
    assert main(["registry", "check", str(tmp_path)]) == ExitCode.VIOLATION
    problems = capsys.readouterr().out
    assert "nobody names the target" in problems and "1 report: 2 problems" in problems
    assert main(["registry", "build", str(tmp_path), "-o", str(tmp_path / "site")]) == ExitCode.CONFORMANT
    page = (tmp_path / "site" / "requirements" / "MEMBER-12.html").read_text()
    assert "Reference" in page and "fail" in page
    assert "clients by tier" in (tmp_path / "site" / "index.html").read_text()
    assert main(["registry", "reproduce", str(folder)]) == ExitCode.COULD_NOT_RUN
    assert "fencepost test-client --only MEMBER-12 -- reference" in capsys.readouterr().err


async def test_a_registry_finds_a_failure_that_its_trace_does_not_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "clients" / "reference" / "1.0"
    folder.mkdir(parents=True)
    (folder.parent / "about.toml").write_text(ABOUT)
    text = to_json(await make_run("MEMBER-12", tamper=FRESH_ID).run())
    (folder / "report.json").write_text(text.replace('\\"error_code\\":22', '\\"error_code\\":0'))
    main(["registry", "check", str(tmp_path)])
    assert "MEMBER-12: judged again, no trace in the report violates it" in capsys.readouterr().out


def test_the_catalogue_of_clients_is_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "HBT-*", "HB-01", "--json"]) == ExitCode.CONFORMANT
    rows = json.loads(capsys.readouterr().out)
    assert [row["subject"] for row in rows] == ["coordinator"] + ["client"] * 17
    assert main(["explain", "MEMBER-12", "HBT-06"]) == ExitCode.CONFORMANT
    output = capsys.readouterr().out
    assert "a-heartbeat-of-an-old-generation" in output and "a client with a poll interval" in output


async def test_the_trace_of_a_client_is_not_replayed(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    await make_run("MEMBER-34", traces=tmp_path / "traces").run()
    trace = next(iter((tmp_path / "traces").iterdir()))
    with pytest.raises(TraceError, match="the trace of a client"):
        await replay_trace(trace, BUNDLED, Profile())
