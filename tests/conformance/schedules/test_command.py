"""`fencepost test --schedules`: the schedules it plays, the traces it saves, the verdicts on faulty coordinators."""

import json
import os
import re
import shlex
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.serve.coordination import Response
from fencepost.conformance.classic.protocol import CLASSIC
from fencepost.conformance.cli import main
from fencepost.conformance.run.engine import ScheduleResult
from fencepost.conformance.run.engines import BatchWorker
from fencepost.conformance.run.schedule import BatchSpec
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.events import Kind
from fencepost.traces.files.trace_files import open_trace
from tests.conformance.schedules.planted_faults import FAULTS
from tests.support.faulty_coordinators import FORGIVING, EagerSyncCoordinator, altering_coordinator, install
from tests.support.served_coordinator import serve_in_thread

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


NOTHING_CHECKED = 3
"""The exit code of a run without scenarios: random schedules find violations and put no requirement to the test."""


@pytest.fixture
def only_schedules(monkeypatch: Patch) -> None:
    """No scenario is there to find anything first."""
    monkeypatch.setattr("fencepost.conformance.run.registry.DEFAULT_PROTOCOL", replace(CLASSIC, scenarios=()))


@pytest.mark.slow
def test_schedules_come_after_the_scenarios_and_find_nothing(tmp_path: Path, capsys: Capture) -> None:
    report = tmp_path / "r.json"
    options = ["--only", "HB-05", "--schedules", "45", "--seed", "3", "--json", str(report)]
    assert main(["test", "bundled", *options, "--traces", str(tmp_path / "all")]) == 0
    output = capsys.readouterr()
    assert output.out.endswith("checked (selected), none violated.\n")
    document = json.loads(report.read_text())
    traces = list((tmp_path / "all").glob("schedule-3-*.jsonl"))
    assert len(traces) == 45
    assert document["schedules"] - 45 == len(list((tmp_path / "all").glob("*.jsonl"))) - 45
    assert (document["seed"], document["coverage"]["undecided"]) == (3, {})
    assert len([each for each in document["rules"].values() if each["seen"]]) > 50


@pytest.mark.slow
@pytest.mark.usefixtures("only_schedules")
def test_the_same_seed_gives_the_same_report(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    reports = []
    for name in ("first", "second"):
        assert main(["test", "bundled", "--schedules", "20", "--json", str(tmp_path / name)]) == NOTHING_CHECKED
        reports.append(json.loads((tmp_path / name).read_text()) | {"seconds": 0})
    assert reports[0] == reports[1]


@pytest.mark.slow
@pytest.mark.usefixtures("only_schedules")
def test_what_is_found_is_saved_short_and_can_be_replayed(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    report, folder = tmp_path / "r.json", tmp_path / "failures"
    with monkeypatch.context() as patch:
        install(patch, EagerSyncCoordinator)
        options = ["--schedules", "40", "--only", "SYNC-10", "--save", str(folder), "--json", str(report)]
        assert main(["test", "bundled", *options]) == 1
        (found,) = json.loads(report.read_text())["requirements"]
        (failure,) = found["failures"]
        assert (found["id"], found["verdict"], failure["replayed"]) == ("SYNC-10", "fail", True)
        (saved,) = folder.iterdir()
        assert saved.name.startswith("schedule-0-") and saved.name.endswith("-SYNC-10.jsonl")
        _, events = open_trace(saved)
        assert sum(event.kind is Kind.REQUEST for event in events) <= 12
        words = shlex.split(failure["replay"])
        assert words == ["fencepost", "replay", str(saved), "bundled"]
        capsys.readouterr()
        assert main(words[1:]) == 1
        assert capsys.readouterr().out.endswith("STILL FAILS\n")
    assert main(words[1:]) == 0
    assert capsys.readouterr().out == "FIXED\n"


@pytest.mark.slow
@pytest.mark.usefixtures("only_schedules")
def test_a_failure_with_several_groups_and_producers_can_be_replayed(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    folder = tmp_path / "failures"
    with FAULTS["end_in_one_group"].activate():
        assert main(["test", "bundled", "--schedules", "40", "--save", str(folder)]) == 1
        saved = sorted(folder.iterdir())[0]
        _, events = open_trace(saved)
        asked = [event for event in events if event.kind is Kind.REQUEST]
        assert {event.api for event in asked} >= {"InitProducerId", "TxnOffsetCommit", "EndTxn"}
        assert len({event.body["group_id"] for event in asked if event.api == "TxnOffsetCommit"}) == 2
        capsys.readouterr()
        assert main(["replay", str(saved), "bundled"]) == 1
        assert capsys.readouterr().out.endswith("STILL FAILS\n")
    assert main(["replay", str(saved), "bundled"]) == 0
    assert capsys.readouterr().out == "FIXED\n"


@pytest.mark.slow
@pytest.mark.usefixtures("only_schedules")
def test_what_is_not_saved_is_found_again_by_its_seed(tmp_path: Path, monkeypatch: Patch) -> None:
    install(monkeypatch, FORGIVING)
    report = tmp_path / "r.json"
    assert main(["test", "bundled", "--schedules", "40", "--seed", "5", "--json", str(report)]) == 1
    failures = [each for one in json.loads(report.read_text())["requirements"] for each in one["failures"]]
    assert failures
    assert {each["replay"] for each in failures} == {"fencepost test bundled --schedules 40 --seed 5"}


@pytest.mark.usefixtures("only_schedules")
def test_what_fails_once_and_not_again_is_no_failure(tmp_path: Path, monkeypatch: Patch) -> None:
    told: list[bool] = []

    def once(_: Any, response: Response) -> Response:
        if response.body.get("error_code") == 25 and "generation_id" not in response.body and not told:
            told.append(True)
            return Response(response.handle, {**response.body, "error_code": Error.ILLEGAL_GENERATION})
        return response

    install(monkeypatch, altering_coordinator(once))
    report = tmp_path / "r.json"
    assert main(["test", "bundled", "--schedules", "20", "--json", str(report)]) == 3
    found = [each for each in json.loads(report.read_text())["requirements"] if each["verdict"] == "inconclusive"]
    (note,) = [each["note"] for each in found]
    assert re.fullmatch(r"failed once and not when it was replayed, see schedule-0-\S+", note)


@pytest.mark.slow
def test_what_holds_elsewhere_does_not_outvote_a_violation_that_did_not_come_again(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    told: list[bool] = []

    def once(request: Any, response: Response) -> Response:
        random = request.body.get("group_id", "").startswith("schedule")
        if (
            random
            and request.api == "Heartbeat"
            and response.body["error_code"] == Error.UNKNOWN_MEMBER_ID
            and not told
        ):
            told.append(True)
            return Response(response.handle, {**response.body, "error_code": Error.ILLEGAL_GENERATION})
        return response

    install(monkeypatch, altering_coordinator(once))
    report, folder = tmp_path / "r.json", tmp_path / "failures"
    options = ["--only", "HB-*", "--schedules", "20", "--json", str(report), "--save", str(folder)]
    assert main(["test", "bundled", *options]) == 3
    document = json.loads(report.read_text())["requirements"]
    (found,) = [each for each in document if each["verdict"] == "inconclusive"]
    (trace,) = folder.iterdir()
    assert (found["verdict"], found["failures"]) == ("inconclusive", [])
    assert found["checks"] > 1
    assert found["note"] == f"failed once and not when it was replayed, see {trace}"


@pytest.mark.slow
@pytest.mark.usefixtures("only_schedules")
def test_ctrl_c_keeps_what_was_judged(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    install(monkeypatch, FORGIVING)
    fulfil = BatchWorker.run_batch

    def run_interrupted(worker: BatchWorker, spec: BatchSpec) -> list[ScheduleResult]:
        if spec.batch == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return fulfil(worker, spec)

    monkeypatch.setattr(BatchWorker, "run_batch", run_interrupted)
    report, folder = tmp_path / "r.json", tmp_path / "failures"
    options = ["--schedules", "60", "--seed", "5", "--json", str(report), "--save", str(folder)]
    assert main(["test", "bundled", *options]) == 3
    assert capsys.readouterr().out.endswith("INCONCLUSIVE: the run was cut short.\n")
    document = json.loads(report.read_text())
    assert document["schedules"] == 20
    notes = {each["note"] for each in document["requirements"] if each["verdict"] == "inconclusive"}
    found = [re.fullmatch(r"failed once, see (\S+/schedule-5-\S+); the run was cut short .*", each) for each in notes]
    assert notes and all(each is not None and Path(each[1]).is_file() for each in found)


@pytest.mark.acceptance
def test_schedules_over_the_wire(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr("fencepost.conformance.run.registry.DEFAULT_PROTOCOL", replace(CLASSIC, scenarios=()))
    report = tmp_path / "r.json"
    settings = Settings(min_session_timeout=300, initial_rebalance_delay=100, offsets_partitions=2)
    with serve_in_thread(settings) as bootstrap:
        options = ["--schedules", "2", "--seed", "2", "--json", str(report), "--traces", str(tmp_path)]
        assert main(["test", f"kafka://{bootstrap}", *options]) == NOTHING_CHECKED
    document = json.loads(report.read_text())
    assert (document["schedules"], document["coverage"]["undecided"]) == (2, {})
    assert len(list(tmp_path.glob("schedule-2-*.jsonl"))) == 2


@pytest.mark.parametrize("given", ["-1", "many", "1.5"])
def test_a_number_of_schedules_that_is_none(given: str, capsys: Capture) -> None:
    assert main(["test", "bundled", f"--schedules={given}"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
