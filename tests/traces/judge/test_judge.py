"""What the judge allows, and what it does not: full groups, ids, deletions, lists, likely and unusual responses."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios.leaves import leaves
from fencepost.conformance.classic.scenarios.rejoining import full_group_members, rejoining
from fencepost.conformance.classic.scenarios.statics import statics
from fencepost.conformance.classic.scenarios.syncing import syncing
from fencepost.conformance.classic.zoo.strangers import DIFFERENCES
from fencepost.conformance.classic.zoo.variants import VARIANTS
from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.play import play_scenario
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.conformance.zoo.fault import Patch
from fencepost.conformance.zoo.strangers import Disguise
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.settings import Settings
from fencepost.traces.classic import stepping
from fencepost.traces.events import Body, Event, Header, Kind, Order
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import Judge, judge
from fencepost.traces.judge.search import search
from fencepost.traces.judge.search.configuration import high
from fencepost.traces.verdict import CheckStatus, TraceVerdict
from tests.support.altered_traces import altered_trace
from tests.support.trace_builder import OK, OneMemberTrace, commit_offset, join_body, sync_error

# --- A static member that restarts into a full group is refused on Kafka, but may be let in (STATIC-26).

IN_A_FULL_GROUP = "restart-in-a-full-group"


def restart_in_a_full_group() -> ScenarioRun:
    async def run() -> ScenarioRun:
        target = InProcessTarget(Settings(max_group_size=3))
        (scenario,) = (one for one in statics.scenarios if one.name == IN_A_FULL_GROUP)
        return await play_scenario(scenario, target, await target.open(), "g", grace=0)

    return run_virtual(run())


def with_member_admitted(events: tuple[Event, ...], **changes: Any) -> list[Event]:
    """The same, but the member gets its place back under a new id, as on the fast path."""
    (marked,) = {event.of for event in events if event.api == "check"}
    led = next(
        event.body
        for event in events
        if event.api == "JoinGroup" and event.kind is Kind.RESPONSE and event.body["members"]
    )
    old = next(row["member_id"] for row in led["members"] if row["group_instance_id"])
    members = [{**row, "member_id": "new" if row["member_id"] == old else row["member_id"]} for row in led["members"]]
    leads = led["leader"] == old
    body = {
        **led,
        "member_id": "new",
        "leader": "new" if leads else led["leader"],
        "members": members if leads else [],
        "skip_assignment": leads,
        **changes,
    }
    return [
        replace(event, body=body) if event.kind is Kind.RESPONSE and event.of == marked else event for event in events
    ]


def test_protocols_may_be_looked_at_before_room() -> None:
    """LAT-27: of two errors that both apply a target may tell either."""

    async def ask_for_room(group: ScenarioContext) -> None:
        await group.form_stable_group(*full_group_members(group))
        await group.check("JOIN-46", group.join(group.member("N", "other")), fields="member")

    async def run() -> ScenarioRun:
        target = InProcessTarget(Settings(max_group_size=2))
        scenario = Scenario("other-protocols-in-a-full-group", ("JOIN-46",), ask_for_room)
        return await play_scenario(scenario, target, await target.open(), "g", grace=0)

    known = next(each for each in DIFFERENCES if each.name == "protocols before capacity")
    for differences, decided in (((), True), ((known,), False)):
        with Patch() as patch:
            for each in differences:
                each.put_in("", Disguise(patch))
            seen = run_virtual(run())
        verdict = judge(seen.header, seen.events)
        assert not verdict.violations
        assert verdict.decisions["room_comes_before_protocols"] is decided


def test_returning_static_member_may_be_admitted() -> None:
    seen = restart_in_a_full_group()
    verdict = judge(seen.header, with_member_admitted(seen.events))
    assert not verdict.violations
    assert [mark.status for mark in verdict.check_results] == [CheckStatus.PASS]
    assert verdict.decisions["restart_needs_room"] is False


@pytest.mark.parametrize(
    "changes", [{"generation_id": 2}, {"leader": "another"}, {"error_code": Error.UNKNOWN_MEMBER_ID}]
)
def test_returning_static_member_keeps_its_state(changes: dict[str, Any]) -> None:
    seen = restart_in_a_full_group()
    assert judge(seen.header, with_member_admitted(seen.events, **changes)).violations


# --- A parked request that the member's next one supersedes: NOT_COORDINATOR or nothing, decided once (DIV-23).


@pytest.mark.parametrize(("family", "requirement"), [(rejoining, "JOIN-51"), (syncing, "SYNC-24")])
def test_superseded_request_is_answered_always_or_never(family: ScenarioFamily, requirement: str) -> None:
    async def run() -> ScenarioRun:
        target = InProcessTarget()
        (scenario,) = (one for one in family.scenarios if requirement in one.requirements)
        return await play_scenario(scenario, target, await target.open(), "g", grace=0)

    silent = run_virtual(run())
    with VARIANTS["ends-superseded-requests"].activate():
        answering = run_virtual(run())
    assert not judge(silent.header, silent.events).violations
    verdict = judge(answering.header, answering.events)
    assert (verdict.violations, verdict.decisions["superseded_stays_silent"]) == ((), False)
    assert judge(answering.header, answering.events, {"superseded_stays_silent": True}).violations
    assert judge(silent.header, silent.events, {"superseded_stays_silent": False}).violations


# --- A leader whose assignments are being stored waits, and a rebalance sends it away (SYNC-11).


LONE_PLAN = {"generation_id": 1, "member_id": "a", "assignments": [{"member_id": "a", "assignment": b"plan"}]}
"""What the leader of a group of one member brings."""


def sync_while_the_leader_rejoins(rejoins: int, error: int = Error.REBALANCE_IN_PROGRESS) -> TraceVerdict:
    """The verdict on a lone leader whose SyncGroup of 20 ms gets this response at 200 ms, and that rejoins with other
    metadata."""
    tape = OneMemberTrace(Order.INTERVALS)
    tape.join(10, 1)
    asked = tape.send_request(20, "SyncGroup", LONE_PLAN, 1)
    changed = {**join_body("a"), "protocols": [{"name": "p", "metadata": b"n"}]}
    rejoined = tape.send_request(rejoins, "JoinGroup", changed, 2) if rejoins < 200 else None
    tape.send_response(200, asked, sync_error(error))
    rejoined = rejoined or tape.send_request(rejoins, "JoinGroup", changed, 2)
    row = {"member_id": "a", "metadata": b"n"}
    told = {"generation_id": 2, "protocol_name": "p", "leader": "a", "member_id": "a", "members": [row]}
    tape.send_response(rejoins + 150, rejoined, {**OK, **told})
    return tape.verdict()


def test_a_rebalance_interrupts_the_leader_whose_assignments_are_being_stored() -> None:
    assert not sync_while_the_leader_rejoins(100).violations


@pytest.mark.parametrize(("rejoins", "error"), [(250, Error.REBALANCE_IN_PROGRESS), (100, Error.UNKNOWN_MEMBER_ID)])
def test_a_leader_is_sent_away_by_a_rebalance_alone(rejoins: int, error: Error) -> None:
    (violation,) = sync_while_the_leader_rejoins(rejoins, error).violations
    assert violation.api == "SyncGroup"


OTHER_REQUESTS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "nothing": ("Heartbeat", {"generation_id": 1, "member_id": "a"}, OK),
    "its assignments again": ("SyncGroup", LONE_PLAN, {**OK, "assignment": b"plan"}),
    "that it leaves": ("LeaveGroup", {"member_id": "a"}, OK),
}
"""The request that a leader sends while its SyncGroup waits, and the response."""


@pytest.mark.parametrize("sent", OTHER_REQUESTS)
def test_a_leader_is_without_a_response_once_it_syncs_again_or_leaves(sent: str) -> None:
    tape = OneMemberTrace(Order.INTERVALS)
    tape.join(10, 1)
    tape.send_request(20, "SyncGroup", LONE_PLAN, 1)
    api, body, response = OTHER_REQUESTS[sent]
    tape.send_response(320, tape.send_request(120, api, body, 2), response)
    left = Error.UNKNOWN_MEMBER_ID if api == "LeaveGroup" else Error.NONE
    tape.heartbeat(9_000, left)
    tape.events = [replace(each, connection=each.of or each.sequence) for each in tape.events]
    assert [each.api for each in tape.verdict().violations] == ["SyncGroup"] * (sent == "nothing")


# --- Fields within the protocol's latitude: unusual only if they are so in every configuration that explains the
# trace.

LEAVE_BEFORE_JOIN = "leave-answers-the-parked-join"


def leave_with_a_parked_join() -> tuple[Header, Sequence[Event]]:
    """A member leaves while its JoinGroup is parked, as seen from outside: either may have been handled first, and
    the answer to the leave comes first."""

    async def run() -> ScenarioRun:
        target = InProcessTarget()
        (scenario,) = (one for one in leaves.scenarios if one.name == LEAVE_BEFORE_JOIN)
        return await play_scenario(scenario, target, await target.open(), "g", grace=0)

    seen = run_virtual(run())
    *before, joined, left, mark = seen.events
    before += [replace(left, sequence=joined.sequence), replace(joined, sequence=left.sequence), mark]
    return replace(seen.header, order=Order.INTERVALS, clock="wall", grace=100), before


def check_statuses(header: Header, events: Sequence[Event]) -> set[CheckStatus]:
    """How the marks stand."""
    verdict = judge(header, events)
    assert not verdict.violations
    return {mark.status for mark in verdict.check_results}


def test_one_explanation_without_it_is_enough() -> None:
    # Answered because of the leave the member id is empty; refused after it, it would be echoed.
    assert check_statuses(*leave_with_a_parked_join()) == {CheckStatus.PASS}


def test_unusual_whatever_happened() -> None:
    header, events = leave_with_a_parked_join()
    (marked,) = {event.of for event in events if event.api == "check"}
    changed = [
        replace(event, body={**event.body, "member_id": "another"})
        if event.kind is Kind.RESPONSE and event.of == marked
        else event
        for event in events
    ]
    assert check_statuses(header, changed) == {CheckStatus.FAIL}


# --- Traces of random schedules on Apache Kafka that the quick passes of the judge must explain.

REGRESSIONS = Path(__file__).parents[1] / "regressions"


def read_regression(name: str) -> tuple[Header, tuple[Event, ...]]:
    header, events = open_trace(REGRESSIONS / f"{name}.jsonl.gz")
    return header, tuple(events)


def test_a_timer_is_likeliest_to_fire_as_soon_as_it_may() -> None:
    """Of the JoinGroup that began the delay no answer was seen, so the model cannot tell when exactly it ends."""
    header, events = read_regression("delay-in-three-parts")
    assert header.settings != Settings()
    verdict = Judge(header, beam_width=search.EAGER_BEAM_WIDTH, eager=True).judge_events(events)
    assert (verdict.violations, verdict.inconclusive) == ((), ())


def test_without_that_the_same_trace_is_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "low", high)
    header, events = read_regression("delay-in-three-parts")
    assert Judge(header, beam_width=search.EAGER_BEAM_WIDTH, eager=True).judge_events(events).violations


@pytest.mark.slow
def test_what_few_explanations_leave_open_more_of_them_decide() -> None:
    header, events = read_regression("hidden-by-a-restart")
    assert Judge(header, beam_width=2).judge_events(events).violations
    verdict = judge(header, events, eager=True)
    assert (verdict.violations, verdict.inconclusive) == ((), ())


# --- The judge learns the names of topic ids from a trace, and leaves a group undecided where it cannot.

T, GHOST = "11111111-0000-0000-0000-000000000000", "22222222-0000-0000-0000-000000000000"
TOLD: Body = {"topics": {"t": 1}, "ids": {"t": T}}
METADATA: Body = {"topics": [{"name": "t", "topic_id": T, "partitions": []}, {"name": "u"}]}


class TopicIdTrace:
    """A trace seen at the coordinator."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add_event(self, kind: Kind, api: str, version: int, body: Body, of: int | None = None) -> int:
        number = len(self.events)
        self.events.append(Event(number, 10 * number, 0, "", kind, api, version, body, of))
        return number

    def exchange(self, api: str, version: int, body: Body, response: Body) -> None:
        self.add_event(Kind.RESPONSE, api, version, response, self.add_event(Kind.REQUEST, api, version, body))

    def commit(self, topic: str, error: int) -> None:
        asked = [{"topic_id": topic, "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
        told = [{"topic_id": topic, "partitions": [{"partition_index": 0, "error_code": error}]}]
        self.exchange("OffsetCommit", 10, {"group_id": "g", "topics": asked}, {"topics": told})

    def fetch_by_name(self, offset: int) -> None:
        asked = [{"name": "t", "partition_indexes": [0]}]
        row = {"partition_index": 0, "committed_offset": offset, "metadata": "", "error_code": 0}
        told: dict[str, Any] = {"topics": [{"name": "t", "partitions": [row]}], "error_code": 0}
        self.exchange("OffsetFetch", 2, {"group_id": "g", "topics": asked}, told)

    def verdict(self) -> TraceVerdict:
        return judge(Header("test", Order.TOTAL, "virtual", Settings(), 10), self.events)


@pytest.mark.parametrize(("offset", "faults"), [(7, 0), (-1, 1), (8, 1)])
@pytest.mark.parametrize("learnt", ["told", "metadata"])
def test_a_commit_by_id_is_seen_by_name(learnt: str, offset: int, faults: int) -> None:
    tape = TopicIdTrace()
    if learnt == "told":
        tape.add_event(Kind.INTERNAL, "topics", 0, TOLD)
    else:
        tape.exchange("Metadata", 12, {"topics": None}, METADATA)
    tape.commit(T, 0)
    tape.fetch_by_name(offset)
    verdict = tape.verdict()
    assert (len(verdict.violations), verdict.inconclusive) == (faults, ())


@pytest.mark.parametrize(("error", "faults"), [(100, 0), (3, 1), (0, 1)])
def test_an_id_that_was_not_told_is_no_topics(error: int, faults: int) -> None:
    tape = TopicIdTrace()
    tape.add_event(Kind.INTERNAL, "topics", 0, TOLD)
    tape.commit(GHOST, error)
    assert len(tape.verdict().violations) == faults


def test_ids_that_nobody_told_leave_the_group_undecided() -> None:
    tape = TopicIdTrace()
    tape.commit(T, 0)
    tape.fetch_by_name(-1)
    verdict = tape.verdict()
    assert verdict.violations == ()
    assert verdict.inconclusive == ("group 'g', request 0: the trace does not tell which topics the ids in it are of",)


# --- Deletions on the older coordinator of Apache Kafka: what goes with the last offset, and what a failover brings
# back.

CASES = {
    "group-removed-with-its-last-offset": "emptied_group_stays",
    "deleted-offset-comes-back": "deleted_offsets_stay_deleted",
    "offset-of-a-deleted-group-comes-back": "deleted_offsets_stay_deleted",
}
"""By trace, the difference of the two coordinators that it shows."""


def judge_regression(name: str, decisions: dict[str, bool]) -> TraceVerdict:
    """The verdict on a trace, with some differences settled."""
    header, events = open_trace(REGRESSIONS / f"{name}.jsonl.gz")
    return judge(header, tuple(events), decisions, eager=True)


@pytest.mark.parametrize("name", CASES)
def test_it_is_told_from_what_it_looks_like(name: str) -> None:
    verdict = judge_regression(name, {})
    assert (verdict.violations, verdict.inconclusive) == ((), ())


@pytest.mark.parametrize(("name", "difference"), CASES.items())
def test_of_a_target_that_is_as_the_newer_one_it_is_a_violation(name: str, difference: str) -> None:
    """A clean-up pass may come at any time, and explains that a group without offsets is gone."""
    is_explained = difference == "emptied_group_stays"
    assert bool(judge_regression(name, {difference: True}).violations) is not is_explained


# --- Groups that a clean-up has to remove: InitProducerId ends a transaction, and so it is the last use of its group.


@pytest.mark.parametrize(("later", "is_overdue"), [(0, False), (120_000, True)])
def test_a_transaction_keeps_its_group_until_its_producer_begins_anew(later: int, is_overdue: bool) -> None:
    header, events = read_regression("transaction-ended-by-its-producer")
    looks = {event.sequence for event in events if event.api in ("OffsetFetch", "DescribeGroups")}
    moved = (evolve(event, time=event.time + later) if event.sequence in looks else event for event in events)
    violations = judge(header, tuple(moved)).violations
    assert [each.requirements for each in violations] == [("ADMIN-35",)] * is_overdue


# --- A list of groups without a group that exists is a violation; after its members have left it may be gone.


def listed_without(order: Order, *, has_left: bool, has_offset: bool) -> list[str]:
    """The requirements that a list without the group violates."""
    trace = OneMemberTrace(order)
    if has_offset:
        commit_offset(trace, 5, 3, answered=True)
    trace.form_stable_group()
    if has_left:
        trace.exchange(60, "LeaveGroup", {"member_id": "a"}, OK, 1)
    asked = trace.add_event(Kind.REQUEST, 80, "ListGroups", {"states_filter": []}, version=4)
    trace.send_response(81, asked, {"error_code": 0, "groups": []})
    verdict = trace.verdict()
    assert verdict.inconclusive == ()
    return [id for each in verdict.violations for id in each.requirements]


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize(("has_left", "has_offset"), [(False, False), (False, True), (True, True)])
def test_a_group_that_exists_is_listed(order: Order, has_left: bool, has_offset: bool) -> None:
    assert listed_without(order, has_left=has_left, has_offset=has_offset) == ["ADMIN-11"]


@pytest.mark.parametrize("order", Order)
def test_an_empty_group_without_offsets_may_have_been_removed(order: Order) -> None:
    assert listed_without(order, has_left=True, has_offset=False) == []


def seen_again(trace: OneMemberTrace, protocol_type: str = "") -> list[str]:
    """The requirements that a group violates which is described as Dead, and then listed with this protocol type."""
    gone = {"error_code": 0, "group_id": "g", "group_state": "Dead", "protocol_type": "", "protocol_data": ""}
    asked = trace.add_event(Kind.REQUEST, 80, "DescribeGroups", {"groups": ["g"]}, version=1)
    trace.send_response(81, asked, {"groups": [{**gone, "members": []}]})
    asked = trace.add_event(Kind.REQUEST, 82, "ListGroups", {}, version=3)
    trace.send_response(83, asked, {"error_code": 0, "groups": [{"group_id": "g", "protocol_type": protocol_type}]})
    return [id for each in trace.verdict().violations for id in each.requirements]


@pytest.mark.parametrize("order", Order)
def test_a_group_of_which_nothing_is_stored_may_be_overlooked_for_a_while(order: Order) -> None:
    """LAT-21: Kafka 4 looks at what is committed, and an id that was handed out is not written."""
    trace = OneMemberTrace(order)
    trace.exchange(0, "JoinGroup", join_body(""), {"error_code": Error.MEMBER_ID_REQUIRED, "member_id": "a"}, 4)
    assert seen_again(trace) == []


@pytest.mark.parametrize("order", Order)
def test_a_group_with_a_generation_is_not_overlooked(order: Order) -> None:
    assert seen_again(OneMemberTrace(order).form_stable_group(), "x") == ["ADMIN-02"]


# --- Members whose ids no response has shown can be matched with a description in more ways than there is time for.

TRACE = REGRESSIONS / "sixteen-unknown-ids.jsonl.gz"
"""A random schedule: DescribeGroups shows the ids of members whose JoinGroups all lost their connections."""


@pytest.fixture(scope="module")
def trace() -> tuple[Header, tuple[Event, ...]]:
    header, events = open_trace(TRACE)
    return header, tuple(events)


def test_some_of_the_ways_are_enough_to_accept_a_trace(trace: tuple[Header, tuple[Event, ...]]) -> None:
    header, events = trace
    verdict = judge(header, events, eager=True)
    assert (verdict.violations, verdict.inconclusive) == ((), ())


@pytest.mark.slow
def test_a_search_that_wants_all_of_them_gives_up(trace: tuple[Header, tuple[Event, ...]]) -> None:
    header, events = trace
    verdict = Judge(header, max_configurations=3_000).judge_events(events)
    assert verdict.violations == ()
    assert any("720 ways to match the ids of one response" in each for each in verdict.inconclusive)


# --- Questions that the judge takes as answered make no difference.


def ignore_room(*_: object) -> None:
    """Leave the question open."""


@pytest.mark.parametrize("seed", range(12))
def test_a_join_where_there_is_room_needs_no_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    header, events = altered_trace(seed)
    events = tuple(events)
    verdict = Judge(header).judge_events(events)
    monkeypatch.setattr(stepping, "settle_question_of_room", ignore_room)
    assert Judge(header).judge_events(events) == verdict


# --- What a response says of its members beside their state: ids in the rows of LeaveGroup, clients in a description.


@pytest.mark.parametrize(("echoed", "violated"), [("a", []), ("", ["LEAVE-11"]), ("b", ["LEAVE-11"])])
def test_rows_of_a_leave_echo_their_ids(echoed: str, violated: list[str]) -> None:
    trace = OneMemberTrace(Order.TOTAL).form_stable_group()
    row = {"member_id": echoed, "group_instance_id": None, "error_code": 0}
    leaving = {"members": [{"member_id": "a", "group_instance_id": None}]}
    trace.exchange(30, "LeaveGroup", leaving, {"error_code": 0, "members": [row]}, 3)
    trace.heartbeat(40, Error.UNKNOWN_MEMBER_ID)
    verdict = trace.verdict()
    assert [id for each in verdict.violations for id in each.requirements] == violated
    assert verdict.inconclusive == ()


@pytest.mark.parametrize(
    ("client", "host", "wrong"),
    [("c", "10.0.0.7", []), ("", "10.0.0.7", ["client_id"]), ("a", "host", ["client_id"]), ("c", "", ["client_host"])],
)
@pytest.mark.parametrize("known", [True, False])
def test_members_are_described_with_their_clients(client: str, host: str, wrong: list[str], known: bool) -> None:
    """The host in any form; nothing is said where the trace does not tell the client id."""
    trace = OneMemberTrace(Order.TOTAL)
    if known:
        trace.events[0] = replace(trace.events[0], body={**trace.events[0].body, "client_id": "c"})
    trace.form_stable_group()
    member = {"member_id": "a", "member_metadata": b"m", "member_assignment": b"plan"}
    row = {"error_code": 0, "group_id": "g", "group_state": "Stable", "protocol_type": "x", "protocol_data": "p"}
    asked = trace.add_event(Kind.REQUEST, 40, "DescribeGroups", {"groups": ["g"]}, version=1)
    described = {**row, "members": [{**member, "client_id": client, "client_host": host}]}
    trace.send_response(41, asked, {"groups": [described]})
    violations = trace.verdict().violations
    assert [each.requirements for each in violations] == [("ADMIN-03",)] * bool(wrong and known)
    assert [field for each in violations for field in each.fields] == wrong * known
