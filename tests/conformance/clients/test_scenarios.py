"""Every scenario with the reference client, which keeps all requirements, on virtual time."""

import asyncio
from itertools import dropwhile
from typing import Any

import pytest

from fencepost.adapters.client.cluster import DOUBLED
from fencepost.conformance.classic.clients import SCENARIOS
from fencepost.conformance.clients.stage import DOUBLED_END
from fencepost.model.assignors.consumer_protocol import decode_assignment, encode_assignment
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.model.frozen import evolve
from fencepost.traces.classic.client.client import ClassicClient
from fencepost.traces.client_judge.judge import judge_client
from fencepost.traces.events import Event, Kind
from fencepost.traces.verdict import PASSING, CheckStatus
from tests.support.client_scenarios import COOPERATIVE, EAGER, play_scenario
from tests.support.faulty_applications import BY_HAND, WITNESSED_BY_DRIVERS
from tests.support.faulty_clients import STATIC, WITNESSED
from tests.support.faulty_drivers import MIXED
from tests.support.wire_client import Tell, WireClient, tell_as_it_is

PLAYS = [
    (scenario.name, tell) for scenario in SCENARIOS for tell in (None, tell_as_it_is) if tell or not scenario.needs
]
LATE = "a-sync-without-a-response"
"""The scenario in which JoinGroup comes over another connection while SyncGroup has no response (MEMBER-06)."""
FIRST_INVENTED = 1_000
"""Later generations are those of invented groups."""
SETTINGS = {"eager": EAGER, "cooperative": COOPERATIVE, "mixed": MIXED}


@pytest.mark.parametrize(("name", "tell"), PLAYS, ids=[f"{name}{'-driven' if tell else ''}" for name, tell in PLAYS])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
async def test_the_reference_client_keeps_all_requirements(
    name: str, tell: Tell | None, settings: ClientSettings
) -> None:
    run = await play_scenario(name, settings, tell=tell)
    not_shown = "the client is not cooperative" if is_for_another(name, settings) else ""
    if "static-membership" in needs_of(name):
        not_shown = "the client has no group.instance.id"
    if name == "plans-for-odd-groups" and settings is EAGER:
        not_shown = "the client offers no assignor that has such groups"
    assert (run.verdict.violations, run.blocked, run.not_shown) == ((), "", not_shown)
    assert [check for check in run.verdict.check_results if check.status not in PASSING and name != LATE] == []
    assert [check for check in run.verdict.check_results if check.status is CheckStatus.UNUSUAL] == []
    assert {check.requirement for check in run.verdict.check_results} <= WITNESSED | WITNESSED_BY_DRIVERS


@pytest.mark.parametrize("name", ["during-a-rebalance", "of-a-forgotten-member", "while-loading", "elsewhere"])
async def test_a_static_member_shows_how_it_joins_with_an_id(name: str) -> None:
    run = await play_scenario(f"a-join-{name}", STATIC)
    assert (run.verdict.violations, run.blocked, run.not_shown) == ((), "", "")
    assert "MEMBER-17" in {check.requirement for check in run.verdict.check_results} or name != "while-loading"


def needs_of(name: str) -> tuple[str, ...]:
    return next(each for each in SCENARIOS if each.name == name).needs


def is_for_another(name: str, settings: ClientSettings) -> bool:
    return "cooperative" in needs_of(name) and settings is not COOPERATIVE


async def test_all_requirements_of_drivers_are_seen_to_be_kept() -> None:
    seen: set[str] = set()
    for name, tell in PLAYS:
        static = (STATIC,) if "static-membership" in needs_of(name) else ()
        for settings in (*SETTINGS.values(), BY_HAND, *static) if tell else ():
            run = await play_scenario(name, settings, tell=tell)
            seen |= {check.requirement for check in run.verdict.check_results}
        if seen >= WITNESSED_BY_DRIVERS:
            break
    assert seen >= WITNESSED_BY_DRIVERS


@pytest.mark.parametrize("known_after", [0.0, 0.3, None], ids=["the next time", "soon", "never"])
async def test_a_leader_may_plan_with_older_metadata_once(known_after: float | None) -> None:
    """A topic is in the plans of the client so many seconds after it was told of it first, or never. That it had
    metadata of it before breaks ASSIGN-03, which is about what a leader was told; the checks of assignors take a later
    plan."""
    told: dict[str, float] = {}

    def leave_out_new_topics(client: WireClient, api: str, body: dict[str, Any]) -> dict[str, Any]:
        if api != "SyncGroup" or body["generation_id"] < FIRST_INVENTED:
            return body
        plan = [(row, decode_assignment(row["assignment"])) for row in body["assignments"]]
        now = asyncio.get_running_loop().time()
        known = {topic for topic, since in told.items() if known_after is not None and now - since >= known_after}
        told.update((topic, now) for _, own in plan for topic, _ in own if topic not in told)
        rows = [{**row, "assignment": encode_assignment([one for one in own if one[0] in known])} for row, own in plan]
        return {**body, "assignments": rows}

    run = await play_scenario("plans-for-invented-groups", tamper=leave_out_new_topics)
    assert (run.verdict.violated <= {"ASSIGN-03"}) is (known_after is not None)


@pytest.mark.parametrize("is_awake", [False, True], ids=["held up", "awake"])
async def test_a_client_that_was_held_up_may_send_by_its_timers_before_it_reads(is_awake: bool) -> None:
    """The last heartbeat of a membership that is over comes 1.5 s late: either nothing else was sent meanwhile, or the
    client was awake."""
    late: list[tuple[int, Event]] = []
    run = await play_scenario("a-heartbeat-of-a-forgotten-member")
    (told,) = (event for event in run.events if event.kind is Kind.RESPONSE and event.body.get("error_code") == 25)
    heartbeat = next(event for event in run.events if event.sequence == told.of)
    kept = [event for event in run.events if event.sequence <= told.sequence]
    last = kept[-1]
    if is_awake:
        late = [(600, evolve(heartbeat, api="Metadata", body={})), (1_050, evolve(heartbeat, api="Metadata", body={}))]
    late.append((1_600, heartbeat))
    for place, (delay, event) in enumerate(late, 1):
        kept.append(evolve(event, sequence=last.sequence + place, time=last.time + delay))
    verdict = judge_client(run.header, kept, "A", ClassicClient)
    assert ("MEMBER-13" in verdict.violated) is is_awake


async def test_a_client_may_end_after_a_response_that_comes_twice() -> None:
    def end(client: WireClient, api: str, body: dict[str, Any]) -> dict[str, Any] | None:
        if any(event.api == DOUBLED for event in client.cluster.events):
            client.end()
            return None
        return body

    run = await play_scenario("a-response-that-comes-twice", tamper=end)
    assert (run.verdict.violations, run.blocked, run.misconduct, run.not_shown) == ((), "", "", DOUBLED_END)


async def test_a_client_that_ends_by_itself_is_told() -> None:
    def end(client: WireClient, api: str, body: dict[str, Any]) -> dict[str, Any] | None:
        if api == "Heartbeat":
            client.end()
            return None
        return body

    run = await play_scenario("a-response-that-comes-twice", tamper=end)
    assert run.misconduct == "the program ended by itself; exit code 0"


@pytest.mark.parametrize(
    ("name", "kept", "blocked", "not_shown"),
    [
        ("seeks-and-pauses-at-any-time", 0, "in 45 s it could not seek", ""),
        ("polls-without-a-subscription", 1, "", "a poll without a subscription does not return"),
    ],
)
async def test_a_driver_that_does_not_return_is_told(name: str, kept: int, blocked: str, not_shown: str) -> None:
    told: list[dict[str, Any]] = []

    def hide_results(client: WireClient, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Only so many commands return from the first revocation on."""
        told.append(message)
        since = dropwhile(lambda each: each.get("event") != "revoked", told)
        return [] if "done" in message and sum("done" in each for each in since) > kept else [message]

    run = await play_scenario(name, tell=hide_results)
    assert (run.blocked, run.not_shown) == (blocked, not_shown)
