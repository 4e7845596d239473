"""Monitors of clients: each can be taken away, and what they say of designs and of faults that no fixed client has."""

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fencepost.conformance.classic.zoo.clients.reference import replace_function
from fencepost.conformance.zoo.fault import Patch
from fencepost.model.assignors.checks import CHECKS
from fencepost.model.assignors.group import Assignment, ClusterTopics, GroupMember
from fencepost.model.classic.member.member import lose_membership
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.traces.classic.client import client
from fencepost.traces.classic.client.application import Application
from fencepost.traces.classic.client.client import MONITORS, ClassicClient
from fencepost.traces.classic.client.plans import Plans
from fencepost.traces.classic.client.standings import NOBODY, step_on
from fencepost.traces.client_judge.judge import judge_client
from fencepost.traces.client_judge.monitors import Seen
from fencepost.traces.events import Event, Header, Kind, Operation
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.verdict import CheckResult, CheckStatus, Violation
from tests.support.client_scenarios import COOPERATIVE, EAGER, play_scenario
from tests.support.faulty_applications import send_last
from tests.support.faulty_clients import Body, old_id, replace_in
from tests.support.faulty_drivers import Message
from tests.support.wire_client import Tamper, WireClient, tell_as_it_is

DATA = Path(__file__).parent / "data"
TRACES = ("offsets-by-topic-id", "two-joins-at-once", "reset-beside-an-offset-fetch", "seek-out-of-range")


def findings_in(events: list[Event], header: Header, monitors: tuple[Any, ...]) -> Counter[Violation | CheckResult]:
    """Everything that these monitors find, and what the rest of the judge does."""
    verdict = judge_client(header, events, "A", lambda told, label: ClassicClient(told, label, monitors=monitors))
    return Counter((*verdict.violations, *verdict.check_results))


@pytest.mark.parametrize("name", TRACES)
def test_a_monitor_can_be_taken_away(name: str) -> None:
    header, stream = open_trace(DATA / f"{name}.jsonl.gz")
    events = list(stream)
    everything, nothing = findings_in(events, header, MONITORS), findings_in(events, header, ())
    alone = {each: findings_in(events, header, (each,)) - nothing for each in MONITORS}
    assert sum(alone.values(), nothing) == everything
    for monitor in MONITORS:
        fewer = findings_in(events, header, tuple(each for each in MONITORS if each is not monitor))
        assert fewer + alone[monitor] == everything


def test_a_partition_that_is_assigned_anew_is_not_paused() -> None:
    partition = "topic", 0
    application = Application(is_driven=True, paused=frozenset({partition}))
    event = Event(1, 0, 0, "A", Kind.CALLBACK, "assigned", 0, {"partitions": [["topic", 0]]})
    application.take_assigned(event, is_cooperative=False)  # of an assignment that the client may not have read
    assert application.owned == {partition} and not application.paused


FOLD = {"fold", "news"}
"""The modules that fold the view from the events, and judge nothing."""
CHANGES = {"add", "append", "clear", "discard", "extend", "pop", "popleft", "remove", "setdefault", "update"}
"""The methods that change a collection."""


def changed_places(node: ast.AST) -> list[ast.expr]:
    """What a statement assigns to, or changes."""
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return [part for each in targets for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return [target]
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in CHANGES:
            return [value]
    return []


def foreign_writes(source: str) -> set[str]:
    """The fields that a module writes of values that are not of a class of its own."""
    tree = ast.parse(source)
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    rows = [row for each in classes for row in each.body if isinstance(row, ast.AnnAssign)]
    own = {row.target.id for row in rows if isinstance(row.target, ast.Name)}
    found = set()
    for place in (each for node in ast.walk(tree) for each in changed_places(node)):
        while isinstance(place, ast.Subscript):
            place = place.value
        if isinstance(place, ast.Attribute) and ast.unparse(place.value) != "self" and place.attr not in own:
            found.add(place.attr)
    return found


def test_no_monitor_writes_what_another_module_has() -> None:
    folder = Path(client.__file__).parent
    writers = {each.stem for each in folder.glob("*.py") if foreign_writes(each.read_text(encoding="utf-8"))}
    assert writers == FOLD
    assert {each.__module__.rpartition(".")[2] for each in MONITORS}.isdisjoint(FOLD)
    assert foreign_writes("def judge(view):\n    view.debts = {}\n    view.topics['a'].add(1)") == {"debts", "topics"}


def test_a_fault_of_the_member_is_none_of_the_judge() -> None:
    events = list(open_trace(DATA / f"{TRACES[0]}.jsonl.gz")[1])
    heartbeat = next(each for each in events if each.api == "Heartbeat" and each.kind is Kind.REQUEST)
    told = evolve(heartbeat, kind=Kind.RESPONSE, body={"error_code": Error.UNKNOWN_MEMBER_ID}, of=heartbeat.sequence)
    sent = Operation(heartbeat.sequence + 1, "Heartbeat", 4, "A", heartbeat.body, heartbeat.time)
    member = evolve(NOBODY, id=sent.body["member_id"], generation=sent.body["generation_id"])
    with Patch() as patch:
        replace_function(patch, lose_membership, lambda kept: kept)
        step = step_on(member, sent, told)
    assert (step.rule, step.member.id) == ("member.unknown-member", None)


# -- faults that were missed ------------------------------------------------------------------------------------------


def join_once(api: str, first: int) -> Tamper:
    """The last JoinGroup again in the place of the request to an API with this number, once."""

    def change(client: WireClient, body: Body) -> Body | None:
        if client.is_told:
            return body
        client.is_told = True
        send_last(client, "JoinGroup")
        return None

    return replace_in(api, change, first)


def keep_dead_id(client: WireClient, body: Body) -> Body:
    """One JoinGroup with the id that the coordinator does not know any more, and then as it should be."""
    return old_id(client, body) if client.count("JoinGroup") == 2 else body


@pytest.mark.parametrize(
    ("scenario", "tamper", "requirement"),
    [
        ("a-heartbeat-of-a-forgotten-member", replace_in("JoinGroup", keep_dead_id), "MEMBER-13"),
        ("offsets-that-cannot-be-told", join_once("OffsetFetch", 1), "MEMBER-14"),
        ("an-assignment-of-a-version-to-come", join_once("Fetch", 0), "WIRE-02"),
    ],
)
async def test_a_client_that_pays_too_much_is_found_at_once(scenario: str, tamper: Tamper, requirement: str) -> None:
    run = await play_scenario(scenario, tell=tell_as_it_is, tamper=tamper)
    assert requirement in run.verdict.violated


@pytest.mark.parametrize("name", ["delivered-during-a-seek", "late-leave", "sticky-after-a-long-sync"])
def test_a_clean_close_hides_no_silence(name: str) -> None:
    header, stream = open_trace(DATA / f"{name}.jsonl.gz")
    events = list(stream)
    end = next(event.time for event in events if event.body.get("state") == "asked to end")
    signs = ("Heartbeat", "OffsetCommit")
    last = {event.sequence for event in events if event.api in signs and event.time > end - 9_500}
    silent = [event for event in events if event.sequence not in last and event.of not in last]
    assert any(event.api == "LeaveGroup" and event.time >= end for event in silent)
    assert "HBT-01" not in judge_client(header, events, "A", ClassicClient).violated
    assert "HBT-01" in judge_client(header, silent, "A", ClassicClient).violated


# -- designs that are allowed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])
@pytest.mark.parametrize("scenario", ["a-leader-of-two", "a-partition-taken-away", "a-heartbeat-of-an-old-generation"])
async def test_a_client_may_call_back_about_each_partition(scenario: str, settings: Any) -> None:
    def split(client: WireClient, message: Message) -> list[Message]:
        if "ready" in message:
            return [{"ready": {**message["ready"], "callbacks_per_partition": True, "callbacks_anywhere": True}}]
        rows = message.get("partitions", ()) if "event" in message else ()
        return [{**message, "partitions": [row]} for row in rows] if "event" in message else [message]

    run = await play_scenario(scenario, settings, tell=split)
    assert run.verdict.violated == frozenset()


# -- one cause has one name -------------------------------------------------------------------------------------------


def lose_subscriptions(event: Event) -> Event:
    """The event with subscriptions that nobody can read."""
    if event.api != "JoinGroup":
        return event
    name = "protocols" if event.kind is Kind.REQUEST else "members"
    rows = [{**row, "metadata": b"\xff\xff"} for row in event.body.get(name) or ()]
    return evolve(event, body={**event.body, name: rows})


@pytest.mark.parametrize("name", ["late-errors", "led-before", "planned-before-more-metadata", "unread-topic"])
def test_a_subscription_that_cannot_be_read_is_nothing_else(name: str) -> None:
    header, stream = open_trace(DATA / f"{name}.jsonl.gz")
    assert judge_client(header, map(lose_subscriptions, stream), "A", ClassicClient).violated == {"WIRE-01"}


def give_remainder_to_the_last(members: Any, cluster: ClusterTopics) -> Assignment:
    """Range, but the last members get the remainder."""
    found: dict[str, list[tuple[str, int]]] = {each.id: [] for each in members}
    for topic, count in cluster.partitions.items():
        own = [each for each in sorted(members, key=rank) if topic in each.subscription.topics]
        least, more = divmod(count, len(own)) if own else (0, 0)
        number = 0
        for place, each in enumerate(own):
            size = least + (place >= len(own) - more)
            found[each.id] += [(topic, number + step) for step in range(size)]
            number += size
    return {id: tuple(given) for id, given in found.items()}


def rank(member: GroupMember) -> tuple[bool, str]:
    """Static members first, each by name."""
    return member.instance_id is None, member.instance_id or member.id


def test_a_wrong_remainder_has_one_name() -> None:
    own = [each for each in CHECKS if each.requirement.startswith("RANGE") and not each.has_racks]
    broken = {each.requirement for each in own if next(each.run(give_remainder_to_the_last, "range"), None)}
    assert broken == {"RANGE-02"}


def test_an_assignor_that_reads_no_invented_group_fails_for_its_versions_alone() -> None:
    header, _ = open_trace(DATA / f"{TRACES[0]}.jsonl.gz")
    groups, events, view = Plans(), 0, ClassicClient(header, "A").view
    for name in ("RANGE-01", "RANGE-02", "ASSIGN-08"):
        check = next(each for each in CHECKS if each.requirement == name and "range" in each.names)
        body = {"assignor": "range", "check": check.name, "topics": {}, "again": False}
        groups.tell(view, Seen(Event(events := events + 1, 0, 0, "A", Kind.INTERNAL, "group", 0, body)))
    found = list(groups.finish(view, 10_000))
    assert {each.requirement for each in found if isinstance(each, Violation)} == {"ASSIGN-08"}
    is_open = [each for each in found if isinstance(each, CheckResult) and each.status is CheckStatus.INCONCLUSIVE]
    assert {each.requirement for each in is_open} == {"RANGE-01", "RANGE-02"}
