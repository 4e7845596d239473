"""Schedules that a test writes step by step."""

from functools import partial
from itertools import count
from typing import Any

import pytest

from fencepost.conformance.testing.case import Undecided, Violation
from fencepost.conformance.testing.group_schedule import GroupSchedule
from fencepost.conformance.testing.in_memory import InMemory, Storage, Topics, in_memory
from fencepost.conformance.testing.runs import RunChoices
from fencepost.conformance.testing.targets import schedule_player
from fencepost.model.settings import Settings
from fencepost.traces.verdict import TraceVerdict
from tests.support.coordinators_under_test import make_failing, make_forgiving, make_right
from tests.support.faulty_coordinators import STRICT
from tests.support.wrapped_coordinators import make_wrapped

RIGHT = in_memory(make_right, restart=True)
FORGIVING = in_memory(make_forgiving, restart=True)


def schedule_on(target: InMemory) -> GroupSchedule:
    """An empty schedule for a coordinator."""
    return GroupSchedule(schedule_player(target, RunChoices()))


def write_zombie(schedule: GroupSchedule) -> GroupSchedule:
    """A member that heartbeats with an older generation."""
    a, b = schedule.member("A"), schedule.member("B")
    schedule.form_stable_group(a, b)
    b.heartbeat(generation_id=b.generation - 1)
    return schedule


def test_a_right_coordinator_passes() -> None:
    verdict = write_zombie(schedule_on(RIGHT)).check()
    assert isinstance(verdict, TraceVerdict) and verdict.rules["heartbeat.other-generation"] == 1


def test_a_violation_is_named_and_shown() -> None:
    with pytest.raises(Violation, match="Heartbeat v4") as found:
        write_zombie(schedule_on(FORGIVING)).check()
    assert found.value.requirement == "HB-04"
    assert str(found.value).startswith("HB-04 MUST: Wrong generation\n")


def test_the_life_of_a_member() -> None:
    s = schedule_on(RIGHT)
    a = s.member("A", "range", "roundrobin", session_timeout=5_000, instance="i")
    a.join()
    a.sync()
    a.commit({0: 7, 1: 8})
    a.heartbeat()
    s.restart()
    s.wait(300)
    a.heartbeat()
    a.leave()
    s.send("DescribeGroups")
    rules = s.check().rules
    assert {"commit.stable", "heartbeat.stable", "leave.member", "load.group"} <= rules.keys()
    assert rules["heartbeat.stable"] == 2


def test_requests_that_park() -> None:
    s = schedule_on(RIGHT)
    a, b = s.member("A"), s.member("B")
    a.join(parks=True)
    b.join()
    b.sync(parks=True)
    a.sync()
    a.send("JoinGroup", parks=True, member_id=a.id, protocols=[{"name": "range", "metadata": b"new"}])
    s.wait_for_responses()
    rules = s.check().rules
    assert rules["sync.follower"] == rules["sync.leader"] == rules["timer.session"] == 1


def test_values_of_members_in_other_requests() -> None:
    s = schedule_on(RIGHT)
    a = s.member("A")
    s.form_stable_group(a)
    s.send("Heartbeat", generation_id=a.generation, member_id=a.id)
    s.send("Heartbeat", group_id=s.group, generation_id=a.generation, member_id=a.earlier_id(0))
    s.send("LeaveGroup", members=[{"member_id": a.id}])
    assert s.check().rules["heartbeat.stable"] == 2


def test_a_request_that_is_dropped() -> None:
    s = schedule_on(RIGHT)
    a = s.member("A")
    a.send("JoinGroup")
    request = a.send("JoinGroup", parks=True)
    request.drop()
    s.wait(1_000)
    assert s.check().events == 6


def test_a_checked_response_names_its_requirement() -> None:
    schedule = schedule_on(in_memory(partial(make_wrapped, kind=STRICT)))
    a = schedule.member("A")
    schedule.form_stable_group(a)
    a.send("Heartbeat", checks=("HB-01",))
    with pytest.raises(Violation) as found:
        schedule.check()
    assert found.value.requirement == "HB-01"


def test_what_is_seen_once_is_undecided() -> None:
    places = count()

    def make(settings: Settings, topics: Topics, storage: Storage) -> Any:
        # Two are made only to be described.
        return (make_forgiving if next(places) < 3 else make_right)(settings, topics, storage)

    with pytest.raises(Undecided, match="HB-04 was violated once"):
        write_zombie(schedule_on(in_memory(make))).check()


def test_what_the_coordinator_does_not_offer_is_skipped() -> None:
    s = schedule_on(in_memory(make_right, versions={"JoinGroup": (0, 9)}))
    s.member("A").send("Heartbeat")
    with pytest.raises(pytest.skip.Exception, match="Heartbeat"):
        s.check()


def test_an_exception_of_the_coordinator_is_shown() -> None:
    s = schedule_on(in_memory(make_failing))
    a = s.member("A")
    s.form_stable_group(a)
    a.leave()
    with pytest.raises(Violation, match="LookupError: no member here"):
        s.check()


def test_a_label_is_for_one_member() -> None:
    s = schedule_on(RIGHT)
    s.member("A")
    with pytest.raises(ValueError, match="'A' already"):
        s.member("A")
