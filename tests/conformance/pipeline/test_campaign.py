"""A campaign: many seeds, one corpus, one report; one that was killed goes on."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fencepost.adapters.address import TargetError
from fencepost.conformance.analysis.report_builder import merge_reports
from fencepost.conformance.pipeline.campaign import check_same_campaign, find_reports, merge_shortest, run_seeds
from fencepost.conformance.pipeline.merge import MAX_SHOWN_FAILURES
from fencepost.conformance.plan import Plan
from fencepost.conformance.reports.json_report import to_json
from fencepost.conformance.results import Ending, EndKind, ExitCode, Failure, Report, RequirementResult, Verdict
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline import ingest as module
from fencepost.traces.pipeline.corpus import Corpus, CorpusWriter
from fencepost.traces.pipeline.trace_rows import extract_trace
from tests.support.corpus_tables import ProcessKilled, quiet, read_rows

PLAN = Plan("bundled", patterns=("HB-0*",), smoke=True, schedules=3)
PUSH_PLAN = replace(PLAN, target="push://bundled", patterns=("PUSH-3*",))
RUN_HERE = lambda _, items, work, told: [work([each]) for each in items]  # noqa: E731


def rows(corpus: Corpus) -> list[tuple[object, ...]]:
    """Every event, without the folder its trace was in."""
    return sorted((Path(str(row[0])).name, *row[1:3], row[12]) for row in read_rows(corpus, "events"))


@pytest.mark.slow
@pytest.mark.parametrize("plan", [PLAN, PUSH_PLAN], ids=["classic", "push"])
def test_workers_play_seeds(plan: Plan, spark: SparkSession, tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c", 2)
    report = run_seeds(spark, corpus, plan, (1, 2), quiet)
    assert report.exit_code() == 0 and report.schedules >= 2 * PLAN.schedules
    assert find_reports(corpus).keys() == {1, 2}
    names = {str(row[0]) for row in read_rows(corpus, "traces")}
    assert {name.partition("/")[0] for name in names} == {"seed 1", "seed 2"}
    count = extract_trace(corpus, min(names), tmp_path / "t.jsonl")
    assert count == sum(1 for _ in open_trace(tmp_path / "t.jsonl")[1]) > 0
    assert report.events == sum(row.events for row in corpus.inputs()) == len(read_rows(corpus, "events"))


@pytest.mark.slow
def test_a_killed_campaign_goes_on(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "map_parallel", RUN_HERE)
    undisturbed, corpus = Corpus.create(tmp_path / "u", 2), Corpus.create(tmp_path / "c", 2)
    whole = run_seeds(spark, undisturbed, PLAN, (1, 2, 3), quiet)
    append = CorpusWriter.append

    def dying(self: CorpusWriter, inputs: set[str], files: dict[str, int]) -> frozenset[str]:
        if self.corpus.inputs():
            raise ProcessKilled
        return append(self, inputs, files)

    monkeypatch.setattr(CorpusWriter, "append", dying)
    with pytest.raises(ProcessKilled):
        run_seeds(spark, corpus, PLAN, (1, 2, 3), quiet, at_once=1)
    assert find_reports(corpus).keys() == {1}
    monkeypatch.setattr(CorpusWriter, "append", append)
    again = run_seeds(spark, corpus, PLAN, (1, 2, 3), quiet)
    assert to_json(replace(again, seconds=0, provenance=None)) == to_json(replace(whole, seconds=0, provenance=None))
    assert rows(corpus) == rows(undisturbed)


def test_another_campaign_needs_another_folder(tmp_path: Path) -> None:
    check_same_campaign(tmp_path, PLAN)
    check_same_campaign(tmp_path, replace(PLAN, seed=5))
    with pytest.raises(PipelineError, match="belongs to a campaign with a different target"):
        check_same_campaign(tmp_path, replace(PLAN, schedules=4))


@pytest.mark.parametrize(
    ("target", "profile", "error", "line"),
    [
        (
            "kafka://127.0.0.1:1",
            "[target]\nmove = 'move {group}'",
            PipelineError,
            r"a campaign cannot move groups: .* \(leave out \[target\] move\)$",
        ),
        ("kafka://127.0.0.1:1", "[target]\nstart = 'true'\nkill = 'true'", PipelineError, "cannot restart"),
        ("kafka://me:geheim@127.0.0.1:1", "", TargetError, "an address holds no user and no password"),
        (
            "127.0.0.1:1",
            "[security]\nmechanism = 'PLAIN'\nuser = 'me'\npassword_file = 'none'",
            TargetError,
            r"\[security\] password_file: .*none: No such file",
        ),
    ],
    ids=["groups of others", "a target that is shared", "a password in an address", "a secret that is missing"],
)
def test_what_cannot_be_a_campaign_is_refused_before_anything_is_written(
    target: str, profile: str, error: type[Exception], line: str, tmp_path: Path
) -> None:
    (tmp_path / "p.toml").write_text(profile)
    with pytest.raises(error, match=line):
        check_same_campaign(tmp_path / "c", replace(PLAN, target=target, profile=tmp_path / "p.toml"))
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("address", ["push://nowhere", "region://nowhere"])
def test_an_address_of_another_protocol_is_looked_at(address: str, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=address):
        check_same_campaign(tmp_path, replace(PLAN, target=address))
    check_same_campaign(tmp_path, replace(PLAN, target=f"{address}:1"))


def result(verdict: Verdict, checks: int) -> RequirementResult:
    return RequirementResult("HB-01", verdict, verdict.value, checks)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (Verdict.PASS, Verdict.FAIL, Verdict.FAIL),
        (Verdict.NOT_OBSERVED, Verdict.PASS, Verdict.PASS),
        (Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.PASS),
        (Verdict.INCONCLUSIVE, Verdict.NOT_OBSERVED, Verdict.INCONCLUSIVE),
    ],
)
def test_reports_add_up(one: Verdict, other: Verdict, both: Verdict) -> None:
    reports = [Report({"name": "x"}, seed, (result(each, seed),)) for seed, each in ((1, one), (2, other))]
    (found,) = merge_reports(reports).results
    assert (found.verdict, found.note, found.checks) == (both, both.value, 3)


def test_what_one_report_says_of_its_run_is_not_lost() -> None:
    """An unclassified violation, a busy target and an early end of one run stay in the report of all."""
    failure = Failure(trace="t", step=1, observed="", allowed=(), guard="", kind="wrong")
    ended = Ending(EndKind.STOPPED, "the time is up")
    clean = Report({"name": "x"}, 1, (result(Verdict.PASS, 1),))
    other = replace(clean, seed=2, unclassified=(failure,), idle_findings=("spins",), cut_short=True, ended=ended)
    merged = merge_reports([clean, other, other])
    assert (merged.unclassified, merged.idle_findings, merged.ended) == ((failure,), ("spins", "spins"), ended)
    assert merged.exit_code() is ExitCode.VIOLATION


def test_the_shortest_failures_are_shown_and_all_are_counted() -> None:
    failure = Failure(trace="t", step=1, observed="", allowed=(), guard="")
    reports = []
    for seed in range(3):
        found = tuple(replace(failure, step=each, schedule=("x",) * (each % 10 + seed)) for each in range(15))
        failed = replace(result(Verdict.FAIL, 1), failures=found, more_failures=2)
        reports.append(Report({"name": "x"}, seed, (failed,)))
    (whole,) = merge_shortest(reports).results
    assert (len(whole.failures), whole.more_failures) == (MAX_SHOWN_FAILURES, 3 * 17 - MAX_SHOWN_FAILURES)
    every = sorted(len(each.schedule) for report in reports for each in report.results[0].failures)
    assert sorted(len(each.schedule) for each in whole.failures) == every[:MAX_SHOWN_FAILURES]
    assert merge_shortest([merge_shortest(reports[:2]), reports[2]]).results == (whole,)


def test_no_seed_is_no_campaign(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="needs a seed"):
        run_seeds(spark, Corpus.create(tmp_path / "c", 2), PLAN, (), quiet)
