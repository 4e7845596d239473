"""A run as a stream of events: order, errors, cancellation, and traces saved from it."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import fields, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fencepost.adapters.target import Description, SettingOrigin
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.analysis.causes import note_ambiguities
from fencepost.conformance.analysis.report_builder import ReportBuilder, TraceTotals
from fencepost.conformance.capabilities import REMEDIES, describe_facts, offered_capabilities, requirements_not_told
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.cli import main
from fencepost.conformance.events import Progress, RunEvent, RunFinished, ScenarioFinished, ScheduleShrunk
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.reports.junit import to_junit
from fencepost.conformance.reports.report import render_report
from fencepost.conformance.results import Failure, Remark, RemarkKind, Report, RequirementResult, Verdict
from fencepost.conformance.run.stream import Emit, TraceSaver, consume, progress_consumer, stream_events
from fencepost.conformance.subject import select_scenarios
from fencepost.model.catalogue.requirement import CAPABILITIES
from fencepost.model.classic.catalogue import CATALOGUE, CLASSIC
from fencepost.model.classic.catalogue.reference import DIFFERENCES, describe_side
from fencepost.model.classic.dialect import Dialect
from fencepost.model.settings import Settings
from fencepost.traces.events import Header, Order
from fencepost.traces.verdict import CheckStatus, TraceVerdict
from tests.support.odd_brokers import ODD_BROKERS
from tests.support.sample_reports import KEPT
from tests.support.served_coordinator import serve_in_thread

REPORT = Report({"name": "target"}, 0, ())
CUT_SHORT = Report({"name": "target"}, 0, (), cut_short=True)
HEADER = Header("source", Order.TOTAL, "virtual", Settings(), 0)


async def short_run(emit: Emit) -> None:
    """One of two scenarios, then the end."""
    emit(Progress(1, 2, 1.0))
    await asyncio.sleep(1)
    emit(RunFinished(REPORT))


async def endless_run(emit: Emit) -> None:
    """A run that ends when it is cancelled, and reports what it has."""
    emit(Progress(1, 2, 1.0))
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        emit(RunFinished(CUT_SHORT))


async def failing_run(emit: Emit) -> None:
    """A run whose target goes away."""
    emit(Progress(1, 2, 1.0))
    raise ConnectionError("gone")


async def collect(stream: AsyncGenerator[RunEvent, None]) -> list[RunEvent]:
    return [event async for event in stream]


def test_consumers_get_every_event_in_order() -> None:
    seen: list[RunEvent] = []
    shown: list[Progress] = []
    report = run_virtual(consume(stream_events(short_run), seen.append, progress_consumer(shown.append)))
    assert report is REPORT
    assert seen == [Progress(1, 2, 1.0), RunFinished(REPORT)]
    assert shown == seen[:1]


def test_an_error_of_the_run_comes_after_its_events() -> None:
    seen: list[RunEvent] = []
    with pytest.raises(ConnectionError, match="gone"):
        run_virtual(consume(stream_events(failing_run), seen.append))
    assert len(seen) == 1


def test_a_cancelled_consumer_still_gets_the_report() -> None:
    async def cancel() -> list[RunEvent]:
        task = asyncio.create_task(collect(stream_events(endless_run)))
        await asyncio.sleep(1)
        task.cancel()
        return await task

    assert run_virtual(cancel())[-1] == RunFinished(CUT_SHORT)


def test_a_stream_that_is_closed_waits_for_the_end_of_its_run() -> None:
    ended: list[bool] = []

    async def slow_to_end(emit: Emit) -> None:
        emit(Progress(1, 2, 1.0))
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            ended.append(True)

    async def close_early() -> None:
        stream = stream_events(slow_to_end)
        await anext(stream)
        await stream.aclose()

    run_virtual(close_early())
    assert ended == [True]


def test_traces_of_failures_are_saved_apart(tmp_path: Path) -> None:
    failures, traces = tmp_path / "failures", tmp_path / "traces"
    failures.mkdir()
    traces.mkdir()
    save = TraceSaver(failures, traces)
    verdict = TraceVerdict((), (), {})
    save(ScenarioFinished("kept", (), HEADER, (), verdict))
    save(ScenarioFinished("broken", (), HEADER, (), verdict, violated=frozenset({"HB-05"})))
    save(ScheduleShrunk("schedule-HB-05", "HB-05", HEADER, (), confirmed=True))
    save(RunFinished(REPORT))
    assert sorted(path.name for path in traces.iterdir()) == ["broken.jsonl", "kept.jsonl"]
    assert sorted(path.name for path in failures.iterdir()) == ["broken.jsonl", "schedule-HB-05.jsonl"]


# --- What was known about a target decides what is tested, and heads the report.

UNTOLD = dict.fromkeys(
    (
        "min_session_timeout",
        "max_session_timeout",
        "initial_rebalance_delay",
        "max_group_size",
        "max_offset_metadata",
        "offsets_retention",
        "retention_check_interval",
    ),
    SettingOrigin.NOT_TOLD,
)
KNOWN = Description("target", Order.INTERVALS, "wall", {"JoinGroup": (0, 9)}, Settings(max_group_size=6), "topic")
UNKNOWN = replace(KNOWN, origins=UNTOLD, remarks=("DescribeConfigs: the target closed the connection",))


def test_every_capability_has_a_remedy() -> None:
    assert set(REMEDIES) == set(CAPABILITIES)


def test_a_setting_that_is_not_known_takes_its_capabilities_away() -> None:
    lost = offered_capabilities(KNOWN, (), slow=False) - offered_capabilities(UNKNOWN, (), slow=False)
    assert lost == {"size-limit", "initial-delay", "session-bounds", "metadata-limit"}
    assert "retention" not in offered_capabilities(UNKNOWN, ("retention",), slow=False)


def test_requirements_that_depend_on_an_unknown_setting_are_unsupported_with_the_remedy() -> None:
    offered = offered_capabilities(UNKNOWN, (), slow=False)
    requirements = tuple(CATALOGUE.values())
    not_told = requirements_not_told(requirements, UNKNOWN)
    assert {"JOIN-02", "JOIN-03", "COMMIT-15", "COMMIT-26", "TIMER-16", "TIMER-23", "JOIN-46"} <= not_told
    assert requirements_not_told(requirements, KNOWN) == frozenset()
    selection = select_scenarios(ALL, requirements, offered, smoke=False)
    assert "[settings] max_offset_metadata = N" in selection.left_out["COMMIT-15"]
    assert "[settings] min_session_timeout = MS and max_session_timeout = MS" in selection.left_out["JOIN-02"]


@pytest.mark.parametrize(
    ("not_told", "verdict"), [(frozenset({"JOIN-02"}), Verdict.UNSUPPORTED), (frozenset[str](), Verdict.FAIL)]
)
def test_what_is_seen_of_such_a_requirement_means_nothing(not_told: frozenset[str], verdict: Verdict) -> None:
    builder = ReportBuilder(["JOIN-02"], {"JOIN-02": "needs bounds"}, not_told=not_told)
    builder.add_failure("JOIN-02", Failure("trace", 1, "refused", ("accepted",), ""))
    (result,) = builder.build(schedules=1, events=1, seconds=1, target={"name": "t"}).results
    assert result.verdict is verdict


@pytest.mark.parametrize(
    ("left_out", "verdict"), [({"JOIN-02": "needs bounds"}, Verdict.UNSUPPORTED), ({}, Verdict.INCONCLUSIVE)]
)
def test_what_follows_from_another_violation_means_nothing_for_it(left_out: dict[str, str], verdict: Verdict) -> None:
    builder = ReportBuilder(["JOIN-02"], left_out)
    builder.add_check("JOIN-02", CheckStatus.INCONCLUSIVE, "blocked by JOIN-01")
    (result,) = builder.build(schedules=1, events=1, seconds=1, target={"name": "t"}).results
    assert result.verdict is verdict


def test_the_head_of_every_report_has_the_facts() -> None:
    facts = describe_facts(UNKNOWN, offered_capabilities(UNKNOWN, (), slow=False))
    report = replace(KEPT, facts=facts)
    text = render_report(report)
    head = text[: text.index("\n\n")]
    assert "not told: min_session_timeout, max_session_timeout" in " ".join(head.split())
    assert "kit: offsets_partitions 50" in " ".join(head.split())
    assert "JoinGroup 0-9" in head
    assert "metadata-limit: [settings] max_offset_metadata = N" in " ".join(head.split())
    assert "DescribeConfigs: the target closed the connection" in head
    assert from_json(to_json(report)) == report
    properties = {
        each.get("name"): each.get("value") for each in ElementTree.fromstring(to_junit(report)).iter("property")
    }
    assert properties["setting.max_group_size"] == "not told"
    assert properties["setting.offsets_partitions"] == "50 (kit)"
    assert properties["api.JoinGroup"] == "0-9"
    assert "off: [target] start = 'COMMAND'" in str(properties["capability.restart"])
    assert properties["remark.1"] == "DescribeConfigs: the target closed the connection"


@pytest.mark.real_time
def test_a_broker_that_hangs_up_on_describe_configs_is_tested(tmp_path: Path) -> None:
    """With what it needs measured; what cannot be measured is told as such."""
    report = tmp_path / "report.json"
    settings = Settings(min_session_timeout=500, initial_rebalance_delay=200, max_group_size=4, offsets_partitions=2)
    with ODD_BROKERS["hangs-up"].activate(), serve_in_thread(settings) as bootstrap:
        options = ["--only", "JOIN-02", "JOIN-46", "TIMER-16", "COMMIT-15", "COMMIT-26", "--json", str(report)]
        assert main(["test", f"kafka://{bootstrap}", *options]) == 0
    document = json.loads(report.read_text())
    verdicts = {each["id"]: each["verdict"] for each in document["requirements"]}
    assert verdicts == {
        "JOIN-02": "pass",
        "JOIN-46": "pass",
        "TIMER-16": "unsupported",
        "COMMIT-15": "pass",
        "COMMIT-26": "unsupported",
    }
    assert document["facts"]["settings"]["max_group_size"] == {"value": 4, "origin": "probe"}


@pytest.mark.real_time
def test_a_contradicting_profile_is_one_line_and_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text("[settings]\nmax_group_size = 5\n")
    with serve_in_thread() as bootstrap:
        assert main(["test", f"kafka://{bootstrap}", "--profile", str(profile), "--only", "FIND-01"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "max_group_size = 5, but the broker says 2147483647 (group.max.size)" in line
        profile.write_text("[settings]\nmax_group_size = 5\noverride = true\n")
        assert main(["test", f"kafka://{bootstrap}", "--profile", str(profile), "--only", "FIND-01"]) == 0


# --- A pass that rests on an ambiguous source says which side the target takes.

PASS = RequirementResult("COMMIT-11", Verdict.PASS)
NAMED = "from version 9 on a commit with a generation to an unknown group gets GROUP_ID_NOT_FOUND"


def test_each_difference_is_one_that_the_judge_asks_for_and_of_a_requirement() -> None:
    assert DIFFERENCES.keys() <= {each.name for each in fields(Dialect)}
    assert all(re.fullmatch(r"DIV-\d\d", each.id) and each.requirement in CATALOGUE for each in DIFFERENCES.values())
    assert len({each.id for each in DIFFERENCES.values()}) == len(DIFFERENCES)


def test_sides_are_those_of_the_coordinators() -> None:
    assert describe_side("unknown_group_named", True) == f"as the newer coordinator, {NAMED} (DIV-05)"
    assert describe_side("unknown_group_named", False).startswith("as the older coordinator, ")
    assert describe_side("replaced_stays_new", True).startswith("as the older coordinator, ")
    assert describe_side("replaced_stays_new", False).startswith("as the newer coordinator, ")
    assert describe_side("superseded_stays_silent", False).startswith("as Apache Kafka since KAFKA-20938, ")


def test_a_pass_with_nothing_else_to_say_tells_the_side() -> None:
    (result,) = note_ambiguities([PASS], {"unknown_group_named": True, "initial_delay_grows": False}, CLASSIC)
    assert result.comment == f"ambiguous in the sources: as the newer coordinator, {NAMED} (DIV-05)"
    unusual = RequirementResult("COMMIT-11", Verdict.PASS, remark=Remark(RemarkKind.UNUSUAL, "odd"))
    failed = RequirementResult("COMMIT-11", Verdict.FAIL)
    other = RequirementResult("COMMIT-12", Verdict.PASS)
    assert [*note_ambiguities([unusual, failed, other], {"unknown_group_named": True}, CLASSIC)] == [
        unusual,
        failed,
        other,
    ]


def test_traces_that_disagree_take_no_side() -> None:
    totals = TraceTotals()
    for decisions in ({"a": True, "b": True}, {"b": False, "c": False}, {}):
        totals.add_decisions(decisions)
    assert totals.common_decisions() == {"a": True, "c": False}


def test_a_run_tells_its_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    assert main(["test", "bundled", "--only", "COMMIT-11", "--json", str(report)]) == 0
    assert "ambiguous in the sources: as the newer coordinator" in capsys.readouterr().out.replace("\n    ", " ")
    (result,) = (one for one in json.loads(report.read_text())["requirements"] if one["id"] == "COMMIT-11")
    assert (result["verdict"], result["remark"]["kind"]) == ("pass", "ambiguous")
