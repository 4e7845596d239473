"""Every scenario with the reference client, which keeps all requirements, on virtual time."""

import pytest

from fencepost.conformance.clients.classic import SCENARIOS
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.model.frozen import evolve
from fencepost.traces.client_judge.classic.client import ClassicClient
from fencepost.traces.client_judge.judge import judge_client
from fencepost.traces.events import Event, Kind
from fencepost.traces.verdict import PASSING, CheckStatus
from tests.support.client_scenarios import COOPERATIVE, EAGER, play_scenario
from tests.support.faulty_clients import WITNESSED
from tests.support.faulty_drivers import MIXED, WITNESSED_BY_DRIVERS
from tests.support.wire_client import Tell, tell_as_it_is

PLAYS = [
    (scenario.name, tell) for scenario in SCENARIOS for tell in (None, tell_as_it_is) if tell or not scenario.needs
]
SETTINGS = {"eager": EAGER, "cooperative": COOPERATIVE, "mixed": MIXED}


@pytest.mark.parametrize(("name", "tell"), PLAYS, ids=[f"{name}{'-driven' if tell else ''}" for name, tell in PLAYS])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
async def test_the_reference_client_keeps_all_requirements(
    name: str, tell: Tell | None, settings: ClientSettings
) -> None:
    run = await play_scenario(name, settings, tell=tell)
    not_shown = "the client is not cooperative" if is_for_another(name, settings) else ""
    if name == "plans-for-odd-groups" and settings is EAGER:
        not_shown = "the client offers no assignor that has such groups"
    assert (run.verdict.violations, run.blocked, run.not_shown) == ((), "", not_shown)
    assert [check for check in run.verdict.check_results if check.status not in PASSING] == []
    assert [check for check in run.verdict.check_results if check.status is CheckStatus.UNUSUAL] == []
    assert {check.requirement for check in run.verdict.check_results} <= WITNESSED | WITNESSED_BY_DRIVERS


def is_for_another(name: str, settings: ClientSettings) -> bool:
    scenario = next(each for each in SCENARIOS if each.name == name)
    return "cooperative" in scenario.needs and settings is not COOPERATIVE


async def test_all_requirements_of_drivers_are_seen_to_be_kept() -> None:
    seen: set[str] = set()
    for name, tell in PLAYS:
        for settings in SETTINGS.values() if tell else ():
            run = await play_scenario(name, settings, tell=tell)
            seen |= {check.requirement for check in run.verdict.check_results}
    assert seen >= WITNESSED_BY_DRIVERS


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
