"""Two targets are tested by the same schedules, and only what differs is told, each difference with its kind."""

import json
import os
import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.conformance.analysis.comparison import DifferenceKind, PlayedTarget, TargetComparison, compare_played
from fencepost.conformance.cli import main
from fencepost.conformance.cli.console import run_interruptible
from fencepost.conformance.events import RunEvent, RunStarted
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.reports.comparison import comparison_to_json, render_comparison
from fencepost.conformance.results import (
    WENT_DOWN,
    Failure,
    Report,
    RequirementResult,
    SettingFact,
    TargetFacts,
    Verdict,
)
from fencepost.conformance.run.comparing import compare_targets
from fencepost.traces.events import Event, Kind

ROOT = Path(__file__).parents[2]
WRONG = Failure("t", 1, "NONE", ("ILLEGAL_GENERATION",), "", title="it is told NONE", replayed=True)
FACTS = TargetFacts({"max_group_size": SettingFact(5, "broker")}, {"JoinGroup": (0, 9)}, (), {})


def played(
    verdict: Verdict = Verdict.PASS, *events: Event, decisions: dict[str, bool] | None = None, **changes: Any
) -> PlayedTarget:
    result = RequirementResult("HB-04", verdict, failures=(WRONG,) if verdict is Verdict.FAIL else ())
    report = Report({"name": "t"}, 0, (result,), facts=FACTS)
    return PlayedTarget(replace(report, **changes), decisions or {}, {"schedule": events} if events else {})


def differences(one: PlayedTarget, other: PlayedTarget) -> list[tuple[DifferenceKind, str, str, str]]:
    found = compare_played(one, other).differences
    return [(each.kind, each.subject, each.one, each.other) for each in found]


def test_ctrl_c_ends_it_before_the_second_target() -> None:
    started = list[RunStarted]()

    def interrupt(event: RunEvent) -> None:
        if isinstance(event, RunStarted):
            started.append(event)
            os.kill(os.getpid(), signal.SIGINT)

    plan = Plan(BUNDLED, patterns=("HB-05",))
    with pytest.raises(KeyboardInterrupt, match="before both targets were tested"):
        run_interruptible(compare_targets(plan, plan, interrupt))
    assert len(started) == 1


def test_what_is_the_same_is_not_told() -> None:
    for verdict in Verdict:
        assert differences(played(verdict), played(verdict)) == []


def test_a_requirement_that_one_target_breaks_is_a_fault() -> None:
    comparison = compare_played(played(), played(Verdict.FAIL))
    (found,) = comparison.differences
    assert (found.kind, found.subject, found.one) == (DifferenceKind.FAULT, "HB-04", "keeps it")
    assert found.other == "breaks it: it is told NONE"
    assert comparison.exit_code() == 1


@pytest.mark.parametrize("verdict", [Verdict.UNSUPPORTED, Verdict.NOT_OBSERVED, Verdict.INCONCLUSIVE])
def test_where_nothing_is_known_of_one_there_is_no_fault(verdict: Verdict) -> None:
    comparison = compare_played(played(verdict), played(Verdict.FAIL))
    assert comparison.differences == ()
    assert comparison.exit_code() == (3 if verdict is Verdict.INCONCLUSIVE else 0)


def test_what_brings_one_target_down_is_a_fault() -> None:
    harm = replace(WRONG, observed=WENT_DOWN, title="the target went down by one request", kind="k")
    (found,) = compare_played(played(), played(unclassified=(harm,))).differences
    assert (found.kind, found.other) == (DifferenceKind.FAULT, harm.title)


def test_versions_dialects_and_settings_are_told() -> None:
    facts = replace(FACTS, settings={"max_group_size": SettingFact(None, "not told")}, apis={"JoinGroup": (0, 7)})
    one = played(decisions={"unknown_group_named": True})
    other = played(decisions={"unknown_group_named": False}, facts=facts)
    versions, dialect, setting = differences(one, other)
    assert versions == (DifferenceKind.VERSION, "JoinGroup", "0-9", "0-7")
    assert dialect[:2] == (DifferenceKind.VERSION, "DIV-05")
    assert dialect[2].startswith("as the newer") and dialect[3].startswith("as the older")
    assert setting == (DifferenceKind.LATITUDE, "max_group_size", "5", "not told")


def exchange(sequence: int, api: str, version: int, **body: Any) -> tuple[Event, Event]:
    """A request of A, and its response."""
    request = Event(sequence, 0, 1, "A", Kind.REQUEST, api, version, {"group_id": f"g-{body.pop('group', '')}"})
    return request, Event(sequence + 1, 0, 1, "A", Kind.RESPONSE, api, version, body, of=sequence)


def test_the_first_response_that_differs_is_told_and_what_follows_is_not() -> None:
    one = (
        *exchange(0, "JoinGroup", 9, group="x", error_code=0, member_id="m-1", leader="m-1", throttle_time_ms=5),
        *exchange(2, "SyncGroup", 5, group="x", error_code=0, assignment=b"1"),
        *exchange(4, "Heartbeat", 4, group="x", error_code=0),
    )
    other = (
        *exchange(0, "JoinGroup", 9, group="yy", error_code=0, member_id="m-22", leader="m-22", throttle_time_ms=0),
        *exchange(2, "SyncGroup", 5, group="yy", error_code=27, assignment=b""),
        *exchange(4, "Heartbeat", 4, group="yy", error_code=25),
    )
    verdict = Verdict.PASS
    assert differences(played(verdict, *one), played(verdict, *other)) == [
        (DifferenceKind.LATITUDE, "SyncGroup.error_code", "NONE", "REBALANCE_IN_PROGRESS")
    ]
    silent = (*other[:3], *other[4:])
    assert differences(played(verdict, *one), played(verdict, *silent)) == [
        (DifferenceKind.LATITUDE, "SyncGroup.response", "one", "none")
    ]


def test_another_version_explains_a_difference() -> None:
    one, other = (exchange(0, "Heartbeat", version, error_code=version) for version in (25, 27))
    (found,) = differences(played(Verdict.PASS, *one), played(Verdict.PASS, *other))
    assert found[0] is DifferenceKind.VERSION


def test_a_page_is_not_longer_than_a_page() -> None:
    apis = {f"Api{number}": (0, 1) for number in range(100)}
    comparison: TargetComparison = compare_played(played(facts=replace(FACTS, apis=apis)), played())
    text = render_comparison(comparison)
    assert "and 89 more" in text and len(text.splitlines()) < 30
    assert len(json.loads(comparison_to_json(comparison))["differences"]) == 101


# --- whole runs


def test_a_target_does_not_differ_from_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["compare", "bundled", "bundled", "--only", "HB-0*", "--schedules", "5", "-q"]
    assert main([*words, "--json", str(tmp_path / "c.json")]) == 0
    document = json.loads((tmp_path / "c.json").read_text())
    assert document["differences"] == [] and document["fencepost_comparison"] == 1
    assert capsys.readouterr().out.endswith("NO FAULT that the other has not.\n")


def test_what_is_no_target_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "bundled", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("fencepost: 'nowhere' is no target")


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize("bundled_first", [True, False])
def test_a_broker_that_forgives_differs_by_a_fault(bundled_first: bool, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    path = f"PYTHONPATH={ROOT / '.src'}:{ROOT}"
    words = ["env", path, sys.executable, "-m", "tests.support.foreground_broker", str(tmp_path), "forgives"]
    profile, found = tmp_path / "p.toml", tmp_path / "c.json"
    profile.write_text(f"[target]\nstart = {json.dumps(shlex.join(words))}\n")
    targets = ["bundled", str(profile)] if bundled_first else [str(profile), "bundled"]
    assert main(["compare", *targets, "--only", "HB-04", "HB-05", "--schedules", "3", "--json", str(found)]) == 1
    faults = [each for each in json.loads(found.read_text())["differences"] if each["kind"] == "fault"]
    assert [each["subject"] for each in faults] == ["HB-04"]
    assert faults[0]["one" if bundled_first else "other"] == "keeps it"
