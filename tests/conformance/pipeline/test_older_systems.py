"""The pipeline on traces of push and of a region: what `fencepost judge` says of them, from ingest to report."""

from pathlib import Path

import pytest

from fencepost.traces.pipeline import PipelineError
from tests.support.faulty_regions import FAULTS as REGION_FAULTS
from tests.support.push.faults import FAULTS as PUSH_FAULTS
from tests.support.same_reports import expect_same, pipeline_report
from tests.support.system_traces import write_push_traces, write_region_traces


def test_push_is_judged_alike(tmp_path: Path) -> None:
    whole = expect_same(write_push_traces(tmp_path))
    assert whole.specification.subject == "push coordinator" and whole.checked_count() > 20
    broken = expect_same(write_push_traces(tmp_path, "PUSH-38", PUSH_FAULTS["NoBarrier"].make_target))
    assert [each.id for each in broken.failed_results()] == ["PUSH-38"]


def test_a_region_is_judged_alike(tmp_path: Path) -> None:
    whole = expect_same(write_region_traces(tmp_path))
    assert whole.specification.subject == "consistent region" and whole.checked_count() > 40
    fault = REGION_FAULTS["leave_out_seek_map"]
    with fault.activate():
        broken = expect_same(write_region_traces(tmp_path, "REGION-31"))
    assert {each.id for each in broken.failed_results()} & set(fault.breaks)


def test_a_trace_stays_whole_however_long_it_is(tmp_path: Path) -> None:
    paths = write_push_traces(tmp_path, "PUSH-38")
    split, whole = pipeline_report(paths, split=0), pipeline_report(paths)
    assert split.results == whole.results and split.checked_count() > 5


def test_a_report_is_about_one_protocol(tmp_path: Path) -> None:
    paths = [*write_push_traces(tmp_path, "PUSH-38"), *write_region_traces(tmp_path, "REGION-31")]
    with pytest.raises(PipelineError, match=r"subjects: consistent region, push coordinator; put those of each in a"):
        pipeline_report(paths)


def test_a_trace_of_an_unknown_protocol_is_told(tmp_path: Path) -> None:
    (path, *_) = write_push_traces(tmp_path / "push", "PUSH-38")
    unknown = tmp_path / "rent.jsonl"
    unknown.write_bytes(path.read_bytes().replace(b'"protocol":"push"', b'"protocol":"rent"', 1))
    report = expect_same([path, unknown])
    assert any("rent.jsonl:1: protocol 'rent' is none that is judged" in line for line in report.undecided)
