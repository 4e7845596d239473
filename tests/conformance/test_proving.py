"""`fencepost prove`: its output, its saved files, and the exit code."""

import json
import pickle
from pathlib import Path

import pytest

from fencepost.conformance.classic import proofs
from fencepost.conformance.classic.proofs import Proof, real_run_length
from fencepost.conformance.cli import main
from fencepost.conformance.results import ExitCode
from fencepost.model.classic.coordinator import dispatch
from fencepost.model.classic.core import membership
from fencepost.model.classic.proofs.induction import EventProof, ProofSize, prove_named_event
from fencepost.model.classic.proofs.results import (
    EARLY,
    IN_ONE_TERM,
    false_theorem_results,
    prove_room,
    start_inductions,
)
from fencepost.model.proofs import solver
from fencepost.model.proofs.induction import InductionCounterexample, TheoremResult
from tests.support.edits import mutant

TINY = ProofSize(slots=1, partitions=1)


def ignore_progress(doing: str, number: int, total: int) -> None:
    """Progress that nobody looks at."""


def proof(*verdicts: str) -> Proof:
    results = (
        TheoremResult("T", "Something holds.", verdict, "this", "that", 0.1, 0.1 * number)
        for number, verdict in enumerate(verdicts, 1)
    )
    return Proof(TINY, 0, tuple(results), 1.0)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (("proved", "false, as it should be"), ExitCode.CONFORMANT),
        (("proved", "undecided"), ExitCode.INCONCLUSIVE),
        (("undecided", "refuted"), ExitCode.VIOLATION),
        (("vacuous",), ExitCode.VIOLATION),
        (("not broken",), ExitCode.VIOLATION),
    ],
)
def test_exit_codes(verdicts: tuple[str, ...], code: ExitCode) -> None:
    assert proof(*verdicts).exit_code() is code


def test_what_is_in_doubt_is_counted() -> None:
    assert proofs.summary(proof("proved", "refuted")) == (
        "1 theorems proved, 0 false wordings shown false, 1 in doubt (refuted: T), in 1.0 s, the longest query 0.20 s"
    )


def test_a_query_over_its_limit_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "QUERY_STEPS", 1)
    results = prove_room("draining", 0)
    assert "undecided" in {result.verdict for result in results}
    assert Proof(TINY, 0, results, 1.0).exit_code() is ExitCode.INCONCLUSIVE


@pytest.mark.slow
def test_everything_is_proved_and_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "proof.json"
    arguments = ["prove", "--slots", "1", "--partitions", "1", "--protocols", "1", "--json", str(saved)]
    assert main(arguments) == ExitCode.CONFORMANT
    shown = capsys.readouterr()
    report = json.loads(saved.read_text())
    assert {one["verdict"] for one in report["theorems"]} == {"proved", "false, as it should be"}
    longest = report["longest_query_seconds"]
    assert longest == max(one["longest_query_seconds"] for one in report["theorems"]) > 0
    for one in report["theorems"]:
        assert f"{one['verdict']}  {one['id']}: {one['sentence']} Covers {one['covers']}." in shown.out
    assert "leave-two (2 of" in shown.err


@pytest.fixture(scope="module")
def broken() -> Proof:
    """The proof of a coordinator that forgets to compare the generations of commits."""
    with mutant(membership.commit, "request.generation != group.generation", "False"):
        (started,) = start_inductions(TINY, 0, reports=[IN_ONE_TERM])
        results = tuple(started.results(ignore_progress))
        return Proof(TINY, 0, results, 1.0, proofs.search_counterexamples(results, 100_000, ignore_progress))


@pytest.mark.slow
def test_a_broken_core_is_refuted_with_a_counterexample(broken: Proof) -> None:
    refuted = {result.id: result for result in broken.results}["T2"]
    assert refuted.verdict == "refuted"
    assert refuted.counterexamples[0].statement == "T2"
    assert "counterexamples to induction, the first at commit (commit." in proofs.result_line(refuted)


@pytest.mark.slow
def test_what_a_step_of_a_term_breaks_is_broken_across_failovers() -> None:
    with mutant(membership.commit, "request.generation != group.generation", "False"):
        term, early = start_inductions(TINY, 0, reports=[IN_ONE_TERM, EARLY])
        assert "T2" in {one.id for one in term.results(ignore_progress) if one.verdict == "refuted"}
        told = {one.id: one for one in early.results(ignore_progress)}
    assert told["early.T2"].verdict == "refuted" and told["early.T2"].counterexamples[0].event == "commit"
    assert told["early.T1"].verdict == "unproved" and "T2" in told["early.T1"].rests_on


@pytest.mark.slow
def test_what_is_refuted_is_told_once_by_its_own_name(broken: Proof) -> None:
    verdicts = {result.id: result.verdict for result in broken.results}
    assert [one for one, verdict in verdicts.items() if verdict == "refuted"] == ["T2", "T2-simple", "T52"]
    assert verdicts["T1"] == verdicts["T4"] == "unproved"
    resting = next(result for result in broken.results if result.id == "T4")
    assert proofs.result_line(resting) == f"unproved  T4: {resting.sentence} It rests on T2, T2-simple, T52."
    assert resting.counterexamples == ()


@pytest.mark.slow
def test_a_counterexample_is_paired_with_a_real_trace(broken: Proof) -> None:
    assert broken.search is not None
    text = proofs.describe_search(broken.results, broken.search).splitlines()
    assert f"T2: a real trace of 15 steps within {broken.search.states:,} states" in text
    assert "From the start to a state that breaks T52, with one member:" in text
    assert text[-13] == "   1. A joins  (generation 0, Empty)"
    assert text[-1] == "  13. A gets commit.completing  (generation 2, Completing)"
    report = json.loads(proofs.to_json(broken))
    assert report["search"]["breaches"][-1]["steps"][-1] == {
        "event": "A gets commit.stable",
        "generation": 2,
        "phase": "Stable",
    }
    examples = [example for one in report["theorems"] for example in one["counterexamples"]]
    assert {example["real_steps"] for example in examples if example["statement"] == "T2"} == {15}


def test_a_counterexample_without_a_real_trace_is_not_called_a_bug() -> None:
    example = InductionCounterexample("join", "group-parked", None, (), None, ())
    results = (TheoremResult("T1", "Something holds.", "refuted", "this", "that", 0.1, 0.1, (example,)),)
    found = proofs.search_counterexamples(results, 1_000, ignore_progress)
    assert found is not None
    text = proofs.describe_search(results, found)
    assert f"group-parked: no real trace within {found.states:,} states" in text
    assert "is not yet a bug" in text
    assert real_run_length(found, "group-parked") is None


def test_nothing_is_searched_where_nothing_is_refuted() -> None:
    assert proofs.search_counterexamples(proof("proved", "undecided").results, 1_000, ignore_progress) is None


def test_a_counterexample_of_the_dispatcher_goes_from_a_worker_to_the_command() -> None:
    with mutant(dispatch.unknown_entries_response, "Error.UNKNOWN_MEMBER_ID", "Error.NONE"):
        outcome = prove_named_event(EventProof("dispatch", "leave", TINY, 0))
    assert {one.statement for one in outcome.counterexamples} >= {"refusal"}
    assert pickle.loads(pickle.dumps(outcome)) == outcome


def test_a_false_wording_whose_script_breaks_on_a_changed_core_is_told() -> None:
    with mutant(membership.commit, "group.phase == Phase.COMPLETING", "undefined_name"):
        told = {one.id: one for one in false_theorem_results()}
    assert told["T5"].verdict == "not broken" and told["T5"].covers.startswith("no run, for its script ends with Name")
    assert told["T1-ids"].verdict == "false, as it should be"


@pytest.mark.parametrize(
    ("theorem", "verdict"), [("T45", "proved"), ("dispatch.room", "proved"), ("settles.end", "proved"), ("T5", "false")]
)
def test_one_theorem_is_proved_alone(theorem: str, verdict: str, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--slots", "1", "--partitions", "1", "--protocols", "1"]
    assert main(["prove", "--theorem", theorem, *small]) == ExitCode.CONFORMANT
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{verdict}") and f"  {theorem}: " in first
    assert last.startswith("1 theorems" if verdict == "proved" else "0 theorems proved, 1 false")


def test_a_theorem_that_is_refuted_alone_is_told_first_and_named_last(capsys: pytest.CaptureFixture[str]) -> None:
    with mutant(membership.heartbeat, "request.generation != group.generation", "False"):
        (started,) = start_inductions(TINY, 0, reports=[one for one in [IN_ONE_TERM.only("T15")] if one is not None])
        (result,) = started.results(ignore_progress)
    assert result.verdict == "refuted"
    assert "the other statements are assumed before a step" in proofs.result_line(result)
    assert IN_ONE_TERM.only("T99") is None


def test_a_theorem_that_is_none_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--theorem", "T99"]) == ExitCode.COULD_NOT_RUN
    assert capsys.readouterr().err.count("no theorem is called 'T99'") == 1


@pytest.mark.parametrize("arguments", [["--slots", "0"], ["--partitions", "x"], ["--states", "0"]])
def test_sizes_are_numbers_above_0(arguments: list[str]) -> None:
    assert main(["prove", *arguments]) == ExitCode.COULD_NOT_RUN
