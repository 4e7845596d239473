"""The zoo of clients: each bug is put back and taken out again, a few are found, and the tables tell of them."""

import re
from typing import Any

import pytest

from fencepost.conformance.classic.clients import SCENARIOS as CLIENT_SCENARIOS
from fencepost.conformance.classic.zoo.client_stand import CLIENT_HANGS, CLIENTS, shown_by
from fencepost.conformance.classic.zoo.clients import CLIENT_BUGS, NOT_PUT_BACK
from fencepost.conformance.classic.zoo.zoo import member_mutants
from fencepost.conformance.run.play import Bench
from fencepost.conformance.zoo.fault import Fault, Patch, Side
from fencepost.conformance.zoo.hunt import HuntTask, usual_run
from fencepost.conformance.zoo.registry import hunts_for, match_patterns, run_hunt
from fencepost.conformance.zoo.results import (
    ResultRow,
    ResultTable,
    from_json,
    load_results,
    render_markdown,
    result_row,
    table_lines,
    to_json,
)
from fencepost.conformance.zoo.strategies import GROUPS, SCENARIOS, SCHEDULES
from fencepost.model.classic.catalogue.client import CLIENT_CATALOGUE
from fencepost.model.classic.member import member


class RecordingPatch(Patch):
    """A patch that keeps what it replaces: the owner, the name and what was there before."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced: list[tuple[Any, str, Any]] = []

    def replace(self, owner: object, name: str, value: Any) -> None:
        self.replaced.append((owner, name, getattr(owner, name)))
        super().replace(owner, name, value)


def assert_put_in_and_taken_out(fault: Fault[Any]) -> None:
    """Fail unless the fault replaces something, and what was there before is there again."""
    with RecordingPatch() as patch:
        fault.apply(patch)
        assert patch.replaced
        assert all(getattr(owner, name) is not before for owner, name, before in patch.replaced)
    assert all(getattr(owner, name) == before for owner, name, before in patch.replaced)


KNOWN = {f"BUG-{number}" for number in range(58, 167)}


def test_every_known_bug_is_put_back_or_has_a_reason_not_to_be() -> None:
    assert CLIENT_BUGS.keys() | NOT_PUT_BACK.keys() == KNOWN
    assert not CLIENT_BUGS.keys() & NOT_PUT_BACK.keys()


@pytest.mark.parametrize("number", CLIENT_BUGS)
def test_a_bug_changes_the_client_and_is_taken_out_again(number: str) -> None:
    bug = CLIENT_BUGS[number]
    assert bug.sentence and "http" in bug.source and set(bug.breaks) <= CLIENT_CATALOGUE.keys()
    assert_put_in_and_taken_out(bug)


@pytest.mark.parametrize(
    ("number", "strategy", "requirement"),
    [
        ("BUG-58", SCENARIOS, "MEMBER-13"),
        pytest.param("BUG-84", SCENARIOS, "MEMBER-13", marks=pytest.mark.acceptance),
        pytest.param("BUG-101", SCENARIOS, "MCOMMIT-09", marks=pytest.mark.acceptance),
        pytest.param("BUG-152", SCENARIOS, "POLL-01", marks=pytest.mark.acceptance),
        ("BUG-140", GROUPS, "RANGE-02"),
    ],
)
def test_a_bug_is_found(number: str, strategy: str, requirement: str) -> None:
    result = run_hunt(HuntTask(number, strategy, 1, 60.0))
    assert result.requirement == requirement in CLIENT_BUGS[number].breaks


@pytest.mark.parametrize(
    ("number", "scenario", "requirement"),
    [
        ("BUG-59", "a-topic-that-grows-during-a-rebalance", "MEMBER-21"),
        ("BUG-60", "a-subscription-that-changes-while-joining", "MEMBER-27"),
        ("BUG-61", "an-application-that-does-not-wait-for-the-join", "HBT-01"),
        ("BUG-63", "a-coordinator-that-moves-from-a-manual-assignment", "MCOMMIT-17"),
        ("BUG-66", "a-membership-lost-before-the-assignment-is-read", "MEMBER-13"),
        ("BUG-75", "an-application-that-commits-while-joining", "MCOMMIT-08"),
        ("BUG-76", "a-listener-that-is-slow", "HBT-12"),
        ("BUG-79", "offsets-that-come-late", "MCOMMIT-18"),
        ("BUG-91", "an-offset-fetch-across-a-rebalance", "PREFETCH-03"),
        ("BUG-92", "an-application-that-commits-while-joining", "MCOMMIT-08"),
        ("BUG-95", "a-topic-that-comes-later", "MEMBER-21"),
        ("BUG-126", "a-leader-of-two", "WIRE-04"),
        ("BUG-165", "a-fetch-that-is-lost", "PREFETCH-03"),
    ],
)
def test_a_scenario_shows_a_bug(number: str, scenario: str, requirement: str) -> None:
    bug = CLIENT_BUGS[number]
    played = next(each for each in CLIENT_SCENARIOS if each.name == scenario)
    assert requirement in bug.breaks
    assert shown_by(CLIENTS.run_with(bug, played)) == {requirement}
    assert not shown_by(usual_run(CLIENTS, bug.setting, played))


BY_GROUPS = [row for row in load_results().rows if row.found_by == GROUPS and row.requirement != CLIENT_HANGS]
"""To see that one hangs takes a minute and a half."""


@pytest.mark.slow
@pytest.mark.parametrize("row", BY_GROUPS, ids=lambda row: row.name)
def test_a_bug_of_an_assignor_is_found_again(row: ResultRow) -> None:
    assert run_hunt(HuntTask(row.name, GROUPS, row.seed)).requirement == row.requirement


def test_a_bug_is_found_by_schedules_and_told() -> None:
    bug = CLIENT_BUGS["BUG-58"]
    result = run_hunt(HuntTask(bug.id, SCHEDULES, 1, 30.0, shrink=1.0))
    assert result.is_found and result.found_with
    row = result_row(bug, [result])
    assert (row.hunts[SCHEDULES].found, row.hunts[SCHEDULES].of, row.found_by) == (1, 1, SCHEDULES)
    text = "\n".join(table_lines(ResultTable(1, 0, 30.0, (row,))))
    assert "BUG-58" in text and "clients: 1 of 1 found (1 of 1 of members)" in text


def test_what_the_client_violates_without_a_fault_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "violated_by", lambda bench, schedule: frozenset({"MEMBER-01"}))
    assert not run_hunt(HuntTask("BUG-58", SCHEDULES, 1, 0.1)).is_found


def test_the_fault_is_out_when_a_run_of_a_scenario_is_looked_at() -> None:
    shipped = member.lose_membership
    CLIENTS.run_with(CLIENT_BUGS["BUG-84"], CLIENT_SCENARIOS[0])
    assert member.lose_membership is shipped


def test_what_was_not_found_is_told() -> None:
    table = ResultTable(1, 0, 30.0, (result_row(CLIENT_BUGS["BUG-76"], [], "nothing was seen broken"),))
    assert not table.rows[0].found_by and "not found" in table_lines(table)[1]
    assert from_json(to_json(table)) == table
    page = render_markdown(table)
    assert "| BUG-76 | member |" in page and "Not put back" in page


def test_patterns_match_numbers() -> None:
    assert [bug.id for bug in match_patterns(("BUG-8?",))] == [f"BUG-{n}" for n in (80, 81, 84, 85, 86, 87, 89)]
    assert {hunts_for(bug).strategies[0] for bug in CLIENT_BUGS.values() if bug.subject is Side.ASSIGNOR} == {GROUPS}


# -- mutants ----------------------------------------------------------------------------------------------------------


def test_mutants_are_of_the_guards_of_the_member() -> None:
    mutants = member_mutants()
    assert len(mutants) > 500
    assert {fault.mutant.operator for fault in mutants.values() if fault.mutant} == {"always", "never", "comparison"}
    assert all(re.match(r"[a-z_]+\.", name) for name in mutants)


@pytest.mark.acceptance
def test_a_mutant_is_found() -> None:
    beginning = "joining.lead_group: never: not leads -> False"
    (fault,) = (fault for name, fault in member_mutants().items() if name.startswith(beginning))
    assert run_hunt(HuntTask(fault.id, SCENARIOS, seconds=60.0)).is_found
