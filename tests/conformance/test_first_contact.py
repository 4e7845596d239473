"""What was known about a target decides what is tested, and heads the report."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fencepost.adapters.target import Description, SettingOrigin
from fencepost.conformance.analysis.report_builder import ReportBuilder
from fencepost.conformance.capabilities import (
    REMEDIES,
    describe_facts,
    offered_capabilities,
    requirements_not_told,
)
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.cli import main
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.reports.junit import to_junit
from fencepost.conformance.reports.report import render_report
from fencepost.conformance.results import Failure, Verdict
from fencepost.conformance.subject import select_scenarios
from fencepost.model.catalogue.requirement import CAPABILITIES
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.model.settings import Settings
from fencepost.traces.events import Order
from fencepost.traces.verdict import CheckStatus
from tests.support.odd_brokers import ODD_BROKERS
from tests.support.sample_reports import KEPT
from tests.support.served_coordinator import serve_in_thread

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
    assert properties["capability.restart"] == "off: [target] start = 'COMMAND'"
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
        "TIMER-16": "pass",
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
