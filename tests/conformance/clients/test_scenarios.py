"""The scenarios for clients: the reference client keeps what they check, and faulty clients and drivers are found."""

import asyncio
import json
import sys
from itertools import dropwhile
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.client.cluster import CLIENT_LABEL, DOUBLED, ScriptedCluster, start_cluster
from fencepost.adapters.client.program import Application, ClientPlace, DrivenProgram, DriverError, decode_message
from fencepost.conformance.classic.clients import SCENARIOS
from fencepost.conformance.classic.zoo.client_stand import shown_by
from fencepost.conformance.cli import main
from fencepost.conformance.clients.stage import CLIENT_SETTINGS, DOUBLED_END
from fencepost.conformance.reports.json_report import from_json
from fencepost.conformance.results import ExitCode, Verdict
from fencepost.model.assignors.consumer_protocol import decode_assignment, encode_assignment
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.model.frozen import evolve
from fencepost.model.settings import Settings
from fencepost.traces.classic.client.client import ClassicClient
from fencepost.traces.client_judge.judge import judge_client
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.verdict import PASSING, CheckStatus
from tests.support.client_scenarios import COOPERATIVE, EAGER, play_fault, play_scenario
from tests.support.faulty_applications import BY_HAND, FAULTY_APPLICATIONS, WITNESSED_BY_DRIVERS, look_up_again
from tests.support.faulty_clients import FAULTY, STATIC, WITNESSED, FaultyClient, ask_for_bounds, replace_in
from tests.support.faulty_drivers import FAULTY_DRIVERS, MIXED, Message, rewrite
from tests.support.wire_client import Tamper, Tell, WireClient, tell_as_it_is

# -- the reference client, which keeps all requirements, on virtual time ---------------------------------------------

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


# -- each check of the judge can fail: every faulty client is found, and violates the requirement that it is for -----


@pytest.mark.parametrize(
    "faulty", [*FAULTY, *FAULTY_DRIVERS, *FAULTY_APPLICATIONS], ids=lambda each: each.fault.id.replace(" in ", "-")
)
async def test_a_faulty_client_is_found(faulty: FaultyClient) -> None:
    run = await play_fault(faulty.fault, faulty.scenario)
    assert shown_by(run) >= set(faulty.fault.breaks), (shown_by(run), run.blocked)


@pytest.mark.parametrize(
    ("name", "tamper"),
    [
        ("a-client-alone", replace_in("OffsetFetch", ask_for_bounds)),
        ("a-parked-join", replace_in("SyncGroup", look_up_again)),
    ],
    ids=["bounds beside offsets", "lookups at any time"],
)
async def test_another_design_of_client_is_no_fault(name: str, tamper: Tamper) -> None:
    run = await play_scenario(name, tell=tell_as_it_is, tamper=tamper)
    assert run.verdict.violated == frozenset()


async def test_a_callback_that_an_unsubscribing_client_leaves_out_is_missed_once() -> None:
    def hide_first(client: WireClient, message: Message) -> list[Message]:
        return [message] if client.count("LeaveGroup") else []

    run = await play_scenario("a-topic-that-matches-a-pattern", tell=rewrite("revoked", hide_first))
    assert run.verdict.violated == {"CALLBACK-11"}


async def test_a_commit_succeeds_only_if_it_is_sent() -> None:
    run = await play_scenario("a-commit-of-the-application", evolve(EAGER, auto_commit=False), tell=tell_as_it_is)
    header = Header("a test", Order.TOTAL, "virtual", CLIENT_SETTINGS, 1_000)
    unsent = [event for event in run.events if event.api != "OffsetCommit"]
    assert "MCOMMIT-01" not in judge_client(header, run.events, CLIENT_LABEL, ClassicClient).violated
    assert judge_client(header, unsent, CLIENT_LABEL, ClassicClient).violated == {"MCOMMIT-01"}


# -- the protocol of drivers: commands and messages in pipes, and drivers that break it ------------------------------

FAKE = Path(__file__).parents[2] / "support" / "fake_driver.py"
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "clients"


@pytest.mark.parametrize("line", [b"garbage", b"[1]", b'{"done"'])
def test_a_line_that_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(DriverError, match="no JSON object"):
        decode_message(line)


@pytest.mark.parametrize(
    "message",
    [{"done": 7}, {"event": "moved", "partitions": []}, {"records": 1}, {"error": "x"}, {"event": "lost"}, {}],
)
async def test_an_unknown_message_is_refused(message: dict[str, Any]) -> None:
    application = Application(ScriptedCluster(Settings()), lambda command: None)
    with pytest.raises(DriverError, match="unknown message"):
        application.receive(message)


async def test_commands_come_one_at_a_time() -> None:
    sent: list[Any] = []
    application = Application(ScriptedCluster(Settings()), sent.append)
    first, second = (asyncio.ensure_future(application.do("poll", ms=1)) for _ in range(2))
    await asyncio.sleep(0)
    assert sent == [{"id": 1, "do": "poll", "ms": 1}]
    application.receive({"done": 1})
    await first
    await asyncio.sleep(0)
    assert [command["id"] for command in sent] == [1, 2]
    application.receive({"error": "no", "of": 2})
    assert (await second)["error"] == "no"


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("says", "problem"),
    [
        ('{"done": ID}', ""),
        ("hello", "the driver wrote no JSON object: 'hello'"),
        ('{"done": 99}', 'the driver wrote an unknown message: {"done": 99}'),
    ],
)
async def test_a_driver_talks_through_pipes(says: str, problem: str) -> None:
    cluster = await start_cluster(Settings())
    running = await DrivenProgram([sys.executable, str(FAKE), says]).start(ClientPlace("h:1", "g", "t"), cluster)
    running.ask_to_end()
    async with asyncio.timeout(20):
        code = await running.wait()
    running.read_messages()
    assert running.last_words() == problem and (code == 0) is not bool(problem)
    seen = [event.body["do"] for event in cluster.events if event.kind is Kind.INTERNAL and event.api == "command"]
    assert seen == (["subscribe"] if problem else ["subscribe", "close"])
    await running.kill()
    await cluster.brokers.close()


def test_a_driver_that_breaks_its_protocol_cannot_be_tested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["test-client", "--driven", "--startup-seconds", "10", "--", sys.executable, str(FAKE), "hello"]
    assert main(options) == ExitCode.COULD_NOT_RUN
    assert "the driver wrote no JSON object" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kafka_python"])
@pytest.mark.extra("kafka")
def test_an_example_drives_its_client(name: str, tmp_path: Path) -> None:
    file, driver = tmp_path / "r.json", EXAMPLES / f"{name}_driver.py"
    options = ["test-client", "--driven", "-q", "--at-once", "2", "--json", str(file), "--only", "CALLBACK-0[1-3]"]
    main([*options, "POLL-03", "--", sys.executable, str(driver)])
    report = from_json(file.read_text())
    assert report.failed_results() == ()
    assert {report.result(id).verdict for id in ("CALLBACK-01", "CALLBACK-03", "POLL-03")} == {Verdict.PASS}
    assert json.loads(file.read_text())["subject"] == "client"
