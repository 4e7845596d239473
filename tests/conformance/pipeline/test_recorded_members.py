"""`fencepost pipeline judge` on recordings: the report on members, and who had which partitions."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fencepost.conformance.analysis.trace_report import judge_files
from fencepost.conformance.pipeline.overview import SUMMARY, overview_lines
from fencepost.conformance.pipeline.shard_findings import shard_findings
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.query_corpus import query_corpus
from fencepost.traces.pipeline.results import CorpusResults, fold_here, judge_corpus
from fencepost.traces.pipeline.shard_plan import plan_parts
from tests.support.corpus_tables import ingest_here
from tests.support.member_recording import RECORDED, T0, record_stable_member, record_wrong_member


def quiet(done: int, total: int, doing: str) -> None:
    """Nobody wants to know."""


@pytest.mark.slow
def test_members_are_judged_and_their_partitions_are_followed(spark: SparkSession, tmp_path: Path) -> None:
    handed_on = record_stable_member()
    handed_on.join(generation=2)
    handed_on.wait(200)
    handed_on.sync((T0,), 2)
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, recording in zip(paths, (handed_on, record_wrong_member()), strict=True):
        write_trace(path, RECORDED, recording.events)
    corpus, folder = Corpus.create(tmp_path / "c", 2), tmp_path / "judged"
    ingest_here(corpus, paths)
    parts = plan_parts(spark, corpus)
    judge_corpus(spark, corpus, parts, folder, shard_findings, quiet)
    query_corpus(spark, corpus, parts, folder, quiet)
    summary = fold_here(folder, SUMMARY)
    found, expected = summary.report.build_report(0).members, judge_files(paths, lambda progress: None).members
    assert found is not None and expected is not None
    assert found.results == expected.results and [each.id for each in found.failed_results()] == ["MEMBER-13"]
    rows = {
        (Path(row["trace"]).name, row["partition"]): (row["periods"], row["unowned"])
        for row in CorpusResults(folder).query_rows("unowned")
    }
    assert rows["a.jsonl", "t/0"] == (2, 210) and rows["a.jsonl", "t/1"] == (1, 0)
    assert rows["b.jsonl", "t/0"] == (1, 0)
    assert "Partitions without an owner for a while: 1 of 6, at most 210 ms at a stretch" in overview_lines(
        summary.overview
    )
