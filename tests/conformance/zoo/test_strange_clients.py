"""Strange clients: correct ones are blamed for nothing, faulty ones are named, and what can be said of a fault is
measured."""

from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.classic.client import client
from fencepost.adapters.classic.client.client import ReferenceClient
from fencepost.conformance.classic.zoo.clients import CLIENT_BUGS
from fencepost.conformance.classic.zoo.clients.reference import COOPERATIVE, EAGER
from fencepost.conformance.classic.zoo.strange_clients import CLIENT_DIFFERENCES
from fencepost.conformance.classic.zoo.strange_clients_run import (
    STRANGE_CLIENTS,
    Course,
    base_settings,
    broken_plans,
    client_pools,
    goes_with,
    names_of,
    play_faulty,
    play_stranger,
    put_in_fault,
    requirements_of,
)
from fencepost.conformance.cli import main
from fencepost.conformance.zoo.fault import Patch, Side
from fencepost.conformance.zoo.registry import stranger_kind
from fencepost.conformance.zoo.strangers import Difference, FaultNames, Stranger, draw_stranger, hold_against
from fencepost.model.assignors.group import ClusterTopics, GroupMember, Subscription
from fencepost.model.assignors.properties import broken_properties
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.traces.events import Event, Kind

PLAIN = Stranger(1, 0, (), (), only=("MEMBER-02", "POLL-02"), side=Side.MEMBER)
MEMBERS = (GroupMember("a", Subscription(("known", "unknown"))),)
TOPICS = ClusterTopics({"known": 1})
IDLE = {"no driver"}
"""The differences with which a client shows no records."""


@pytest.mark.parametrize("difference", CLIENT_DIFFERENCES, ids=lambda each: each.name)
def test_an_allowed_difference_takes_part_and_is_not_blamed(difference: Difference) -> None:
    only = PLAIN.only[: 1 if difference.name in IDLE else 2]
    for value in {difference.values[0], difference.values[-1]}:
        outcome = play_stranger(replace(PLAIN, differences=((difference.name, value),), only=only))
        assert (outcome.ended, outcome.failed, outcome.undecided) == ("", (), {}), value
        assert outcome.passed == len(only), value


def test_a_seed_draws_the_same_clients() -> None:
    drawn = [draw_stranger(STRANGE_CLIENTS, 5, number, 0) for number in range(40)]
    assert drawn == [draw_stranger(STRANGE_CLIENTS, 5, number, 0) for number in range(40)]
    assert {each.side for each in drawn} == {Side.MEMBER} and len({each.differences for each in drawn}) > 20
    assert stranger_kind(Side.MEMBER) is STRANGE_CLIENTS


def test_a_fault_is_found_and_named() -> None:
    outcome = play_stranger(replace(PLAIN, faults=("BUG-58",), only=("MEMBER-13",)))
    judged = hold_against(outcome)
    assert (judged.found, judged.outside, judged.is_first_right) == (("BUG-58",), (), True)


def test_faults_that_need_other_settings_do_not_go_together() -> None:
    by_hand, cooperative = (
        CLIENT_BUGS["BUG-61"],
        next(bug for bug in CLIENT_BUGS.values() if bug.setting == COOPERATIVE),
    )
    assert not goes_with(by_hand, [cooperative], ()) and not goes_with(by_hand, [], ["assignors"])
    assert goes_with(by_hand, [CLIENT_BUGS["BUG-58"]], ["push"])
    assert base_settings((CLIENT_BUGS["BUG-58"], cooperative)) == replace(COOPERATIVE, request_timeout=10_000)
    assert base_settings(()) == replace(EAGER, request_timeout=10_000)


def test_faults_of_one_function_and_of_assertions_are_not_drawn() -> None:
    mutants, one = client_pools()["mutants"], CLIENT_BUGS["BUG-76"]  # in the place of heartbeats.work
    inside = next(each for name, each in mutants.items() if name.startswith("heartbeats.work:"))
    beside = next(each for name, each in mutants.items() if name.startswith("leaving.close:"))
    assert not goes_with(inside, [one], ()) and goes_with(beside, [one], ())
    assert not any(name.startswith("commits.install_assignment: ") and "completion" in name for name in mutants)


def test_what_an_assignor_breaks_is_measured_without_a_group() -> None:
    assert {"RANGE-02", "RANGE-03"} <= broken_plans(CLIENT_BUGS["BUG-134"], EAGER)
    assert not broken_plans(CLIENT_BUGS["BUG-134"], COOPERATIVE) and not broken_plans(CLIENT_BUGS["BUG-58"], EAGER)


@pytest.mark.slow
def test_what_no_rule_of_a_member_has_follows_from_what_it_declares() -> None:
    names = names_of((CLIENT_BUGS["BUG-139"],))
    assert names is not None and "COOP-01" in names.own and "CALLBACK-14" in names.consequences


def test_a_fault_shows_in_what_is_sent_and_not_in_reasons_in_words() -> None:
    told = Event(1, 0, 0, "A", Kind.REQUEST, "JoinGroup", 8, {"member_id": "a", "reason": "one"})
    same, other = (replace(told, body={**told.body, name: "two"}) for name in ("reason", "member_id"))
    courses = [Course(events=(each,)).events_without_reasons() for each in (told, same, other)]
    assert courses[0] == courses[1] != courses[2]


def test_a_push_client_that_sends_no_heartbeat_in_its_listener_is_found() -> None:
    pushes = replace(PLAIN, differences=(("push", ""),), only=("HBT-12",))
    silent = play_faulty(replace(pushes, faults=("BUG-76",)), (CLIENT_BUGS["BUG-76"],))
    assert (silent.failed, play_faulty(pushes, ()).failed) == (("HBT-12",), ())


@pytest.mark.slow
def test_the_names_of_a_mutant_are_measured_from_the_steps_of_the_model() -> None:
    mutants = client_pools()["mutants"]
    fault = next(each for name, each in mutants.items() if name.startswith("leaving.close: always: client.closing"))
    names = names_of((fault,))
    assert names is not None and "MEMBER-22" in names.own


def test_a_rule_that_no_client_has_names_no_requirement() -> None:
    assert not list(requirements_of(["member.join.refused"]))
    assert list(requirements_of(["member.join.unknown-member"]))


def test_a_fault_of_an_assignor_is_not_one_of_the_judge() -> None:
    fault = CLIENT_BUGS["BUG-118"]
    with Patch() as patch:
        put_in_fault(fault, patch)
        with pytest.raises(KeyError):
            vars(client)["ASSIGNORS"]["range"].assign(MEMBERS, TOPICS)
        assert ASSIGNORS["range"].assign(MEMBERS, TOPICS) == {"a": (("known", 0),)}
        assert not broken_properties("range", MEMBERS, TOPICS, {"a": (("known", 0),)})


def test_a_client_that_uses_no_assignment_forms_no_group() -> None:
    mutants = client_pools()["mutants"]
    deaf = next(each for name, each in mutants.items() if name.startswith("member.on_sync_response: comparison: mem"))
    outcomes = [play_faulty(PLAIN, faults) for faults in ((), (CLIENT_BUGS["BUG-58"],), (deaf,))]
    assert [each.forms_no_group for each in outcomes] == [False, False, True]


def test_the_command_measures_strange_clients(capsys: pytest.CaptureFixture[str]) -> None:
    plain = next(number for number in range(50) if not draw_stranger(STRANGE_CLIENTS, 1, number, 0).faults)
    arguments = ["--seed", "1", "--only", str(plain), "--schedules", "0", "--workers", "1"]
    assert main(["strangers", "--clients", "1", *arguments]) in (0, 1)
    assert "runs that ended" in capsys.readouterr().out


def test_a_client_that_reads_slowly_and_returns_little_is_not_blamed() -> None:
    differences = (("reads slowly", 400), ("records of a poll", 5))
    only = ("POLL-05", "POLL-06", "PREFETCH-03")
    outcome = play_stranger(replace(PLAIN, differences=differences, only=only))
    assert (outcome.ended, outcome.failed, outcome.undecided) == ("", (), {})


def test_a_fault_that_keeps_a_client_from_joining_hides_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = ReferenceClient.transmit

    def transmit(client: ReferenceClient, api: str, *rest: Any) -> None:
        if api != "JoinGroup":
            shipped(client, api, *rest)

    monkeypatch.setattr(ReferenceClient, "transmit", transmit)
    faulty = replace(PLAIN, faults=("BUG-58",))
    outcome = play_faulty(faulty, (CLIENT_BUGS["BUG-58"],))
    judged = hold_against(replace(outcome, names={"BUG-58": FaultNames(frozenset({"MEMBER-13"}))}))
    assert (outcome.ended, outcome.undecided, judged.hidden) == ("", {}, ("BUG-58",))
    assert "no JoinGroup" in play_faulty(PLAIN, ()).ended


@pytest.mark.parametrize(
    ("differences", "only"),
    [
        (
            {"commits one by one": "", "commits by hand": "", "assignors": "cooperative-sticky"},
            ("CALLBACK-16", "MCOMMIT-22"),
        ),
        ({"callbacks per partition": "", "commits one by one": "", "lookups": "before all"}, ("POLL-09",)),
        ({"versions": 7, "Fetch": 13}, ("POLL-02",)),
        ({"versions": 8}, ("MEMBER-02",)),
    ],
)
def test_differences_that_go_together_are_not_blamed(differences: dict[str, Any], only: tuple[str, ...]) -> None:
    outcome = play_stranger(replace(PLAIN, differences=tuple(differences.items()), only=only))
    assert (outcome.ended, outcome.failed, outcome.undecided, outcome.passed) == ("", (), {}, len(only))


def test_a_client_that_is_fenced_owes_no_commit() -> None:
    differences = (("static", "i"), ("callbacks per partition", ""))
    outcome = play_stranger(replace(PLAIN, differences=differences, only=("HBT-10", "MCOMMIT-05")))
    assert (outcome.ended, outcome.failed, outcome.passed) == ("", (), 1)


def test_what_an_old_version_cannot_be_told_is_asked_of_nobody() -> None:
    differences = (("versions", 3),)  # JoinGroup tells of no static members, and gives no id before a generation
    outcome = play_stranger(replace(PLAIN, differences=differences, only=("RANGE-05", "MEMBER-24", "MEMBER-34")))
    assert (outcome.ended, outcome.failed, outcome.undecided) == ("", (), {})
