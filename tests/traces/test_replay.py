"""Replay scripts of traces, and the translation of ids."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.model.errors import Error
from fencepost.traces.events import Body, Event, Kind
from fencepost.traces.replay_script import IdTranslation, ReplayStep, build_script

HEARTBEAT: Body = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}


def event(sequence: int, time: int, kind: Kind, api: str = "Heartbeat", of: int | None = None, **body: Any) -> Event:
    version = 4 if kind in (Kind.REQUEST, Kind.RESPONSE) else 0
    return Event(sequence, time, 0, "A", kind, api, version, body, of)


def request(sequence: int, time: int) -> Event:
    return event(sequence, time, Kind.REQUEST, **HEARTBEAT)


def response(sequence: int, time: int, of: int) -> Event:
    return event(sequence, time, Kind.RESPONSE, of=of, error_code=0)


def awaited_by_step(steps: tuple[ReplayStep, ...]) -> list[tuple[int, tuple[int, ...], int]]:
    return [(step.event.sequence, step.after, step.gap) for step in steps]


def test_a_step_waits_for_the_answers_before_it_and_then_as_long_as_then() -> None:
    events = [request(3, 1000), request(4, 1010), response(5, 1300, 3), request(6, 1350), response(7, 1400, 4)]
    found = build_script(events)
    assert awaited_by_step(found.steps) == [(3, (), 0), (4, (), 10), (6, (3,), 50)]
    assert set(found.responses) == {3, 4}


def test_a_dropped_connection_is_a_step_and_nobody_sees_its_answer() -> None:
    events = [request(0, 0), event(1, 20, Kind.FAULT, "drop", of=0), response(2, 30, 0), request(3, 50)]
    found = build_script(events)
    assert awaited_by_step(found.steps) == [(0, (), 0), (1, (), 20), (3, (), 30)]
    assert not found.responses


def test_what_the_target_did_is_no_step() -> None:
    events = [
        request(0, 0),
        event(1, 5, Kind.FAULT, "closed", of=0),
        event(2, 6, Kind.FAULT, "unreachable"),
        event(3, 7, Kind.CALLBACK, "revoked"),
        event(4, 9, Kind.FAULT, "restart"),
    ]
    assert awaited_by_step(build_script(events).steps) == [(0, (), 0), (4, (), 9)]


def test_nothing_waits_for_a_premature_answer() -> None:
    events = [request(0, 0), response(1, 10, 0), request(2, 100)]
    found = build_script(events, premature={0})
    assert awaited_by_step(found.steps) == [(0, (), 0), (2, (), 100)]
    assert set(found.responses) == {0}


def test_remarks_are_repeated_in_their_place_or_with_their_request() -> None:
    events = [
        event(0, 0, Kind.INTERNAL, "topics", topics={"t": 4}),
        request(1, 0),
        event(2, 0, Kind.INTERNAL, "routed", of=1, broker=2),
        event(3, 9, Kind.INTERNAL, "check", of=1, requirement="HB-05"),
    ]
    found = build_script(events)
    assert awaited_by_step(found.steps) == [(0, (), 0), (1, (), 0)]
    assert [remark.sequence for remark in found.annotations] == [3]
    assert found.routes == {1: 2}


def test_fields_that_were_left_out_get_their_defaults() -> None:
    (step,) = build_script([event(0, 0, Kind.REQUEST, group_id="g", member_id="m")]).steps
    assert step.event.body == {**HEARTBEAT, "generation_id": 0}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"group": "g"}, "there is no field 'group'"),
        ({"group_id": 5}, r"HeartbeatRequest v4 group_id: 5 does not fit"),
        ({"group_id": None}, "null in"),
    ],
)
def test_a_request_that_cannot_be_sent_is_named(body: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=f"request 7 cannot be sent: .*{complaint}"):
        build_script([event(7, 0, Kind.REQUEST, **body)])


# --- translation


def join_response(group: str, member: str, generation: int, *rows: Body) -> dict[str, Any]:
    return {"error_code": 0, "member_id": member, "generation_id": generation, "members": list(rows)}


def learned_translation(*told: tuple[str, int, int], group: str = "g") -> IdTranslation:
    """One in which members were told a generation then and another one now; an id then is `old-NAME`."""
    found = IdTranslation(lambda name: f"{name}-2")
    for name, then, now in told:
        asked = event(0, 0, Kind.REQUEST, "JoinGroup", group_id=group)
        found.learn_response(asked, join_response(group, f"old-{name}", then), join_response(group, f"new-{name}", now))
    return found


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ({"group_id": "g"}, {"group_id": "g-2"}),
        ({"group_id": ""}, {"group_id": ""}),
        ({"groups": ["g", "h", ""]}, {"groups": ["g-2", "h-2", ""]}),
        ({"groups_names": ["g"]}, {"groups_names": ["g-2"]}),
        (
            {"groups": [{"group_id": "g", "member_id": None, "member_epoch": -1, "topics": [{"name": "t"}]}]},
            {"groups": [{"group_id": "g-2", "member_id": None, "member_epoch": -1, "topics": [{"name": "t"}]}]},
        ),
        ({"key": "g"}, {"key": "g-2"}),
        ({"key_type": 1, "coordinator_keys": ["t"]}, {"key_type": 1, "coordinator_keys": ["t-2"]}),
        ({"key_type": 2, "coordinator_keys": ["share"]}, {"key_type": 2, "coordinator_keys": ["share"]}),
        ({"v3_and_below_transactional_id": "t"}, {"v3_and_below_transactional_id": "t-2"}),
        ({"transactional_id": None}, {"transactional_id": None}),
        ({"states_filter": ["Stable"]}, {"states_filter": ["Stable"]}),
    ],
)
def test_groups_and_transactions_get_names_of_their_own(then: Body, now: Body) -> None:
    assert learned_translation().translate_request(then) == now


def test_member_ids_are_those_of_now_wherever_they_occur() -> None:
    words = learned_translation(("a", 1, 1), ("b", 1, 1))
    body = {
        "member_id": "old-a",
        "assignments": [
            {"member_id": "old-b", "assignment": b"old-b"},
            {"member_id": "stranger", "assignment": b""},
        ],
        "members": [{"member_id": "old-a", "group_instance_id": "old-a"}, {"member_id": ""}],
    }
    assert words.translate_request(body) == {
        "member_id": "new-a",
        "assignments": [
            {"member_id": "new-b", "assignment": b"old-b"},
            {"member_id": "stranger", "assignment": b""},
        ],
        "members": [{"member_id": "new-a", "group_instance_id": "old-a"}, {"member_id": ""}],
    }


@pytest.mark.parametrize(
    ("member", "then", "now"),
    [
        ("old-a", 3, 7),
        ("old-a", 4, 8),
        ("old-a", 2, 6),
        ("old-a", 0, 4),
        ("old-a", -1, -1),
        ("old-b", 5, 20),
        ("old-b", 4, 19),
        ("stranger", 3, 7),
        ("stranger", 6, 21),
        ("", -1, -1),
    ],
)
def test_generations_are_told_or_as_far_from_what_was_told(member: str, then: int, now: int) -> None:
    words = learned_translation(("a", 3, 7), ("b", 5, 20))
    body = {"group_id": "g", "member_id": member, "generation_id": then}
    assert words.translate_request(body)["generation_id"] == now
    other = {"group_id": "g", "member_id": member, "generation_id_or_member_epoch": then}
    assert words.translate_request(other)["generation_id_or_member_epoch"] == now


def test_a_generation_below_what_was_told_never_becomes_none() -> None:
    assert learned_translation(("a", 9, 1)).translate_generation("g", "old-a", 4) == 0


def test_generations_of_another_group_are_left_alone() -> None:
    assert learned_translation(("a", 3, 7)).translate_generation("h", "old-a", 3) == 3


def test_an_older_generation_of_a_member_is_still_known() -> None:
    words = learned_translation(("a", 1, 4), ("a", 2, 9))
    assert [words.translate_generation("g", "old-a", each) for each in (0, 1, 2, 3)] == [3, 4, 9, 10]


def test_an_id_that_has_to_be_brought_along_is_learnt_and_a_refusal_is_not() -> None:
    words = learned_translation()
    asked = event(0, 0, Kind.REQUEST, "JoinGroup", group_id="g")
    words.learn_response(
        asked,
        {"error_code": Error.MEMBER_ID_REQUIRED, "member_id": "x"},
        {"error_code": 0, "member_id": "y", "generation_id": 1},
    )
    words.learn_response(
        asked,
        {"error_code": Error.UNKNOWN_MEMBER_ID, "member_id": "stranger"},
        {"error_code": Error.UNKNOWN_MEMBER_ID, "member_id": "other"},
    )
    assert words.members == {"x": "y"}
    assert not words.generations


def test_a_leader_learns_of_members_that_were_not_answered_yet() -> None:
    def row(member: str, metadata: bytes) -> Body:
        return {"member_id": member, "group_instance_id": None, "metadata": metadata}

    words = learned_translation()
    then = join_response("g", "old-a", 1, row("old-a", b"A"), row("old-c", b"C"), row("old-b", b"B"))
    now = join_response("g", "new-a", 1, row("new-b", b"B"), row("new-a", b"A"), row("new-c", b"C"))
    words.learn_response(event(0, 0, Kind.REQUEST, "JoinGroup", group_id="g"), then, now)
    assert words.members == {"old-a": "new-a", "old-b": "new-b", "old-c": "new-c"}


def test_producers_keep_their_distance_too() -> None:
    words = learned_translation()
    then, now = ({"error_code": 0, "producer_id": each, "producer_epoch": epoch} for each, epoch in ((7, 0), (90, 3)))
    words.learn_response(event(0, 0, Kind.REQUEST, "InitProducerId"), then, now)
    asked = {"transactional_id": "t", "producer_id": 7, "producer_epoch": 1}
    assert words.translate_request(asked) == {"transactional_id": "t-2", "producer_id": 90, "producer_epoch": 4}
    fresh = {"transactional_id": "t", "producer_id": -1, "producer_epoch": -1}
    assert words.translate_request(fresh) == {"transactional_id": "t-2", "producer_id": -1, "producer_epoch": -1}


@pytest.mark.parametrize(
    ("then", "brokers", "now"),
    [(0, (1,), 1), (2, (1,), None), (2, (1, 2), 2), (2, (1, 5), 5), (0, (0, 1), 1)],
)
def test_nodes_are_the_coordinator_or_another_one(then: int, brokers: tuple[int, ...], now: int | None) -> None:
    words = learned_translation()
    row = {"error_code": 0, "node_id": 0}
    words.learn_response(event(0, 0, Kind.REQUEST, "FindCoordinator"), row, {"coordinators": [row | {"node_id": 1}]})
    assert words.translate_node(then, brokers) == now


BODIES: st.SearchStrategy[Mapping[str, Any]] = st.fixed_dictionaries(
    {
        "group_id": st.text(max_size=3),
        "member_id": st.text(max_size=3),
        "generation_id": st.integers(-1, 9),
        "members": st.lists(st.fixed_dictionaries({"member_id": st.text(max_size=3)}), max_size=3),
        "producer_id": st.integers(-1, 9),
        "producer_epoch": st.integers(-1, 9),
    }
)


@given(BODIES, st.lists(BODIES, max_size=4))
def test_where_nothing_changed_nothing_is_changed(body: Body, responses: list[Body]) -> None:
    words = IdTranslation(lambda name: name)
    for each in responses:
        same = {"error_code": 0, **each}
        words.learn_response(event(0, 0, Kind.REQUEST, "JoinGroup", group_id=each["group_id"]), same, same)
        words.learn_response(event(0, 0, Kind.REQUEST, "InitProducerId"), same, same)
    assert words.translate_request(body) == body
