"""What a target does otherwise is charged to the requirement whose own sentence is broken, and to no other."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.group import Group
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.analysis.failures import Origin
from fencepost.conformance.analysis.report_builder import ReportBuilder, RequirementFindings, note_versions
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.zoo.bugs.environments import CrashingTarget
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import ExitCode, Report, Verdict
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.run.context import ScenarioContext, ScenarioFunction
from fencepost.conformance.run.registry import DEFAULT_PROTOCOL
from fencepost.conformance.subject import Scenario, ScenarioRun, select_requirements
from fencepost.conformance.zoo.registry import fault_named
from fencepost.model.errors import Error
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import UNCLASSIFIED, CheckResult, CheckStatus, TraceVerdict, Violation
from tests.support.faulty_coordinators import altering_coordinator, install, replace_error

Patch = pytest.MonkeyPatch
Body = dict[str, Any]


def run_altered(patch: Patch, coordinator: type[Coordinator], *patterns: str) -> Report:
    """The report of a run on a faulty coordinator."""
    install(patch, coordinator)
    return asyncio.run(BundledRun(Plan(BUNDLED), Profile()).run(select_requirements(patterns), lambda progress: None))


def failed(report: Report) -> set[str]:
    """The requirements that fail."""
    return {result.id for result in report.failed_results()}


def violations_without_checks(patch: Patch, coordinator: type[Coordinator], scenario: str) -> tuple[Violation, ...]:
    """The violations in the trace of a scenario on a faulty coordinator, as if no scenario had checked anything."""
    install(patch, coordinator)
    chosen = next(each for each in ALL if each.name == scenario)
    run = run_virtual(BundledRun(Plan(BUNDLED), Profile()).play(chosen, "run"))
    return judge(run.header, [event for event in run.events if event.api != "check"]).violations


def alter_partitions(api: str, change: Callable[[Body], Body]) -> Callable[[Request, Response], Response]:
    """Change the rows of partitions in the responses to an API."""

    def alter(request: Request, response: Response) -> Response:
        if request.api != api or "topics" not in response.body:
            return response
        topics = [
            {**topic, "partitions": [change(row) for row in topic["partitions"]]} for topic in response.body["topics"]
        ]
        return replace(response, body={**response.body, "topics": topics})

    return alter


# --- wrong in some versions


def forgive_in_old_versions(request: Request, response: Response) -> Response | None:
    """Before version 3 of Heartbeat, a wrong generation is as good as the right one."""
    forgive = replace_error("Heartbeat", Error.NONE, Error.ILLEGAL_GENERATION)
    return forgive(request, response) if request.version < 3 else response


def test_a_failure_names_its_versions(monkeypatch: Patch) -> None:
    report = run_altered(monkeypatch, altering_coordinator(forgive_in_old_versions), "HB-04", "HB-03")
    assert failed(report) == {"HB-04"}
    assert report.result("HB-04").note == "fails in Heartbeat v0 to v2, not v3 to v4"


def test_versions_are_compared_where_they_are_asked_the_same() -> None:
    asked = [(5, "A", "unknown", True), (3, "A", "unknown", True), (5, "nobody", "i", False), (4, "nobody", "i", True)]
    events, checks = [], []
    for number, (version, member, instance, holds) in enumerate(asked):
        row = {"member_id": member, "group_instance_id": instance}
        events.append(Event(number, 0, 0, "", Kind.REQUEST, "LeaveGroup", version, {"members": [row]}))
        checks.append(CheckResult("LEAVE-15", number, CheckStatus.PASS if holds else CheckStatus.FAIL))
    header = Header("s", Order.TOTAL, "virtual", BUNDLED_SETTINGS, 0)
    scenario = next(each for each in ALL if "LEAVE-15" in each.requirements)
    found = {"LEAVE-15": RequirementFindings()}
    note_versions(found, ScenarioRun(scenario, header, tuple(events), TraceVerdict((), tuple(checks))))
    assert found["LEAVE-15"].failing_versions == "fails in LeaveGroup v5, not v4"


# --- allowed, and not as Apache Kafka 4.4


def judge_fetch(version: int, error: int, offset: int) -> tuple[Violation, ...]:
    """The violations if a fetch of this version, after a commit, has this error and offset."""
    chosen = next(each for each in ALL if each.name == "fetch-in-version-1")
    run = run_virtual(BundledRun(Plan(BUNDLED), Profile()).play(chosen, "run"))
    events = []
    for event in run.events:
        if event.api == "OffsetFetch" and event.kind is Kind.REQUEST:
            event = replace(event, version=version)
        elif event.api == "OffsetFetch":
            [topic] = event.body["topics"]
            row = {**topic["partitions"][0], "error_code": error, "committed_offset": offset}
            event = replace(event, body={**event.body, "topics": [{**topic, "partitions": [row]}]})
        events.append(event)
    return judge(run.header, [event for event in events if event.api != "check"]).violations


def test_offsets_of_version_0_may_be_elsewhere() -> None:
    assert judge_fetch(version=0, error=Error.UNKNOWN_TOPIC_OR_PARTITION, offset=-1) == ()


@pytest.mark.parametrize(
    ("version", "error", "offset"),
    [
        (0, Error.INVALID_GROUP_ID, -1),
        (0, Error.NONE, 8),
        (0, Error.UNKNOWN_TOPIC_OR_PARTITION, 8),
        (1, Error.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ],
)
def test_offsets_of_version_0_are_there_or_not(version: int, error: int, offset: int) -> None:
    assert judge_fetch(version, error, offset) != ()


def test_any_error_refuses_a_pending_id_with_an_instance_id(monkeypatch: Patch) -> None:
    unknown = altering_coordinator(replace_error("JoinGroup", Error.UNKNOWN_MEMBER_ID, Error.UNKNOWN_SERVER_ERROR))
    result = run_altered(monkeypatch, unknown, "JOIN-14").result("JOIN-14")
    assert (result.verdict, result.comment) == (
        Verdict.PASS,
        "unusual: allowed, but not as Apache Kafka has it: error",
    )


def filter_by_exact_case(request: Request, response: Response) -> Response:
    """States and types in a filter are compared as they are written."""
    states, types = request.body.get("states_filter"), request.body.get("types_filter")
    if request.api != "ListGroups" or not (states or types):
        return response
    rows = [
        row
        for row in response.body["groups"]
        if row["group_state"] in (states or row["group_state"])
        and (request.version < 5 or row["group_type"] in (types or row["group_type"]))
    ]
    return replace(response, body={**response.body, "groups": rows})


def test_case_in_filters_is_a_recommendation(monkeypatch: Patch) -> None:
    report = run_altered(monkeypatch, altering_coordinator(filter_by_exact_case), "ADMIN-*")
    assert failed(report) == set()
    assert report.result("ADMIN-33").verdict is Verdict.PASS
    assert report.result("ADMIN-33").comment.startswith("unusual: ")
    assert report.result("ADMIN-12").note == ""


# --- wrong, and which requirement says it


class TypedPendingGroups(Coordinator):
    """A group that has only issued ids is described and listed with the protocol type of the request for them."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.used: set[str] = set()
        super().__init__(*given, **named)

    def handle(self, request: Request, now: int) -> list[Response]:
        joins = request.api == "JoinGroup" and (request.body["member_id"] or request.version < 4)
        if joins or request.api in ("OffsetCommit", "TxnOffsetCommit") or request.body.get("group_instance_id"):
            self.used.add(request.body["group_id"])
        responses = super().handle(request, now)
        if request.api not in ("DescribeGroups", "ListGroups"):
            return responses
        return [replace(each, body={**each.body, "groups": self.with_types(each.body["groups"])}) for each in responses]

    def with_types(self, rows: list[Body]) -> list[Body]:
        return [
            {**row, "protocol_type": "consumer"}
            if row["group_id"] not in self.used and row.get("group_state", "Empty") == "Empty"
            else row
            for row in rows
        ]


def test_a_type_of_pending_ids_breaks_nothing_about_states_or_lists(monkeypatch: Patch) -> None:
    assert failed(run_altered(monkeypatch, TypedPendingGroups, "ADMIN-*")) == {"ADMIN-34"}


def test_a_type_of_pending_ids_is_charged_to_the_same_requirement_without_a_check(monkeypatch: Patch) -> None:
    found = violations_without_checks(monkeypatch, TypedPendingGroups, "look-at-a-pending-id")
    assert {violation.requirements for violation in found} == {("ADMIN-34",)}


def test_timeouts_that_a_rejoin_does_not_change_are_no_matter_of_the_longest() -> None:
    with fault_named("BUG-21").activate():
        run = BundledRun(Plan(BUNDLED), Profile())
        run.make_target = CrashingTarget
        report = asyncio.run(run.run(select_requirements(("TIMER-*", "JOIN-*")), lambda progress: None))
    assert failed(report) == {"TIMER-27"}


def accept_long_metadata(row: Body) -> Body:
    return {**row, "error_code": 0} if row["error_code"] == Error.OFFSET_METADATA_TOO_LARGE else row


def test_an_error_of_one_partition_is_no_matter_of_the_state_of_the_group(monkeypatch: Patch) -> None:
    coordinator = altering_coordinator(alter_partitions("OffsetCommit", accept_long_metadata))
    found = violations_without_checks(monkeypatch, coordinator, "metadata-has-a-limit")
    assert found[0].requirements == ("COMMIT-15",)


def test_an_error_of_all_partitions_is_that_of_the_group(monkeypatch: Patch) -> None:
    def refuse(row: Body) -> Body:
        return {**row, "error_code": Error.INVALID_GROUP_ID}

    coordinator = altering_coordinator(alter_partitions("OffsetCommit", refuse))
    found = violations_without_checks(monkeypatch, coordinator, "metadata-has-a-limit")
    assert "COMMIT-15" not in found[0].requirements


class ImpatientCoordinator(Coordinator):
    """A join phase that lacks only the owner of a pending id ends at once."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.joined: set[str] = set()
        super().__init__(*given, **named)

    def handle(self, request: Request, now: int) -> list[Response]:
        responses = super().handle(request, now)
        member = request.body["member_id"] if request.api == "JoinGroup" else ""
        if member in self.joined and not responses:
            protocol = request.body["protocols"][0]
            roster = [{"member_id": member, "group_instance_id": None, "metadata": protocol["metadata"]}]
            body = {"error_code": 0, "generation_id": 2, "protocol_type": "consumer", "protocol_name": protocol["name"]}
            rest = {"leader": member, "member_id": member, "members": roster, "skip_assignment": False}
            responses.append(Response(request.handle, {"throttle_time_ms": 0, **body, **rest}))
        self.joined |= {member} - {""}
        return responses


def test_a_phase_that_does_not_wait_for_a_pending_id_breaks_what_says_so(monkeypatch: Patch) -> None:
    found = violations_without_checks(monkeypatch, ImpatientCoordinator, "pending-id-holds-up-the-phase")
    assert found[0].requirements == ("JOIN-28",)


def test_a_delay_that_newcomers_extend_too_far_breaks_what_says_how_far(monkeypatch: Patch) -> None:
    def start_initial_delay(rounds: Rebalancer, group: Group) -> None:
        delay = rounds._runtime.settings.initial_rebalance_delay
        group.remaining_delay = group.rebalance_timeout
        rounds._arm_initial_delay(group, delay)

    monkeypatch.setattr(Rebalancer, "start_initial_delay", start_initial_delay)
    found = violations_without_checks(monkeypatch, Coordinator, "initial-delay-ends-with-the-rebalance-timeout")
    assert {violation.requirements for violation in found} == {("TIMER-17",)}


def describe_unknown_groups_as_empty(request: Request, response: Response) -> Response:
    """An unknown group is described as an Empty one."""
    if request.api != "DescribeGroups":
        return response
    rows = [{**row, "group_state": "Empty"} if row["group_state"] == "Dead" else row for row in response.body["groups"]]
    return replace(response, body={**response.body, "groups": rows})


def test_a_wrong_description_of_unknown_groups_does_not_show_that_they_were_created(monkeypatch: Patch) -> None:
    coordinator = altering_coordinator(describe_unknown_groups_as_empty)
    report = run_altered(monkeypatch, coordinator, "FIND-02", "FETCH-15", "ADMIN-01")
    assert failed(report) == {"ADMIN-01"}
    assert report.result("FIND-02").verdict is report.result("FETCH-15").verdict is Verdict.PASS


class ForgetfulOfLeavers(Coordinator):
    """A commit with the id of a member that has left an Empty group is refused as if for its generation."""

    def handle(self, request: Request, now: int) -> list[Response]:
        changed = []
        for response in super().handle(request, now):
            if request.api == "OffsetCommit":
                [topic] = response.body["topics"]
                rows = [
                    {**row, "error_code": Error.ILLEGAL_GENERATION} if row["error_code"] else row
                    for row in topic["partitions"]
                ]
                response = replace(response, body={**response.body, "topics": [{**topic, "partitions": rows}]})
            changed.append(response)
        return changed


async def commit_and_join_after_leaving(group: ScenarioContext) -> None:
    """The last member leaves, commits and joins again."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    await group.commit(a, {0: 7})
    await (await group.join_new(a))


async def join_after_being_described_as_gone(group: ScenarioContext) -> None:
    """The last member leaves, the group is described, and the member joins again."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    await group.describe_groups()
    await (await group.join_new(a))


def violations_in_play(patch: Patch, coordinator: type[Coordinator], play: ScenarioFunction) -> tuple[Violation, ...]:
    """The violations in a trace of a scenario on a faulty coordinator."""
    install(patch, coordinator)
    run = run_virtual(BundledRun(Plan(BUNDLED), Profile()).play(Scenario("played", (), play), "run"))
    return judge(run.header, run.events).violations


def test_a_generation_that_counts_on_is_not_wrong_because_a_commit_looked_like_one_to_no_group(
    monkeypatch: Patch,
) -> None:
    [found] = violations_in_play(monkeypatch, ForgetfulOfLeavers, commit_and_join_after_leaving)
    assert (found.api, found.fields, found.requirements) == ("JoinGroup", ("generation",), ())


def test_a_group_that_was_seen_to_be_gone_starts_over(monkeypatch: Patch) -> None:
    def describe_as_dead(request: Request, response: Response) -> Response:
        if request.api != "DescribeGroups":
            return response
        rows = [
            {**row, "error_code": Error.GROUP_ID_NOT_FOUND, "group_state": "Dead", "protocol_type": ""}
            for row in response.body["groups"]
        ]
        return replace(response, body={**response.body, "groups": rows})

    coordinator = altering_coordinator(describe_as_dead)
    [found] = violations_in_play(monkeypatch, coordinator, join_after_being_described_as_gone)
    assert (found.api, found.fields, found.requirements) == ("JoinGroup", ("generation",), ("GEN-13",))


def test_the_first_generation_of_a_new_group_is_that_of_a_new_group(monkeypatch: Patch) -> None:
    def skip_a_generation(request: Request, response: Response) -> Response:
        wrong = {"generation_id": 5} if request.api == "JoinGroup" and response.body["generation_id"] == 1 else {}
        return replace(response, body={**response.body, **wrong})

    found = violations_without_checks(monkeypatch, altering_coordinator(skip_a_generation), "first-generation")
    assert found[0].requirements == ("GEN-01",)


def test_a_commit_after_leaving_an_empty_group_is_charged_where_an_offset_keeps_the_group(monkeypatch: Patch) -> None:
    assert failed(run_altered(monkeypatch, ForgetfulOfLeavers, "COMMIT-05")) == {"COMMIT-05"}


class StrangeToLeaders(Coordinator):
    """The leader of a Stable group that rejoins gets UNSUPPORTED_VERSION, although its request is carried out."""

    def handle(self, request: Request, now: int) -> list[Response]:
        responses = super().handle(request, now)
        is_rejoin = (
            request.api == "JoinGroup" and request.body["member_id"] and request.body["rebalance_timeout_ms"] == 1
        )
        if is_rejoin and all(response.handle != request.handle for response in responses):
            refusal: Body = {"generation_id": -1, "protocol_type": None, "protocol_name": None, "members": []}
            named = {"leader": "", "member_id": request.body["member_id"], "skip_assignment": False}
            body = {"throttle_time_ms": 0, "error_code": Error.UNSUPPORTED_VERSION, **refusal, **named}
            responses.append(Response(request.handle, body))
        return responses


async def rejoin_as_the_leader(group: ScenarioContext) -> None:
    """The leader begins a rebalance, and the follower does not come."""
    leader, _ = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.join(leader, rebalance_timeout_ms=1)


def play_as_the_leader(patch: Patch) -> ScenarioRun:
    """The run of a scenario in which the leader gets a strange refusal."""
    install(patch, StrangeToLeaders)
    play = Scenario("played", (), rejoin_as_the_leader)
    run = run_virtual(BundledRun(Plan(BUNDLED), Profile()).play(play, "run"))
    return replace(run, verdict=judge(run.header, run.events))


def test_an_error_that_no_rule_gives_instead_of_waiting_is_charged_to_nobody(monkeypatch: Patch) -> None:
    [found] = play_as_the_leader(monkeypatch).verdict.violations
    assert (found.api, found.fields, found.requirements) == ("JoinGroup", ("error", "time"), ())


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_a_violation_that_no_requirement_speaks_of_is_never_lost(is_confirmed: bool, monkeypatch: Patch) -> None:
    builder = ReportBuilder(["HB-05"])
    confirmed = {"played": frozenset({UNCLASSIFIED})} if is_confirmed else {"played": frozenset[str]()}
    runs = [play_as_the_leader(monkeypatch)]
    builder.add_runs(DEFAULT_PROTOCOL.subject, runs, confirmed, lambda run, requirement: Origin("trace.jsonl", ""))
    report = builder.build(schedules=1, events=1, seconds=0)
    assert report.exit_code() is (ExitCode.VIOLATION if is_confirmed else ExitCode.INCONCLUSIVE)
    assert len(report.unclassified) == is_confirmed
    assert ["trace.jsonl" in each for each in report.undecided] == [True] * (not is_confirmed)


@pytest.mark.parametrize(
    ("scenario", "requirement"),
    [
        ("last-rejoin-completes-the-phase", "JOIN-27"),
        ("follower-rejoins-unchanged", "JOIN-32"),
        ("same-again-in-completing", "JOIN-29"),
    ],
)
def test_a_late_join_is_about_the_end_of_a_join_phase_only_if_one_is_awaited(scenario: str, requirement: str) -> None:
    chosen = next(each for each in ALL if each.name == scenario)
    run = run_virtual(BundledRun(Plan(BUNDLED), Profile()).play(chosen, "run"))
    [asked, *_] = [event for event in run.events if event.api == "check" and event.body["requirement"] == requirement]
    late = next(event for event in run.events if event.kind is Kind.RESPONSE and event.of == asked.of)
    events = [
        replace(event, time=event.time + 100 * (event.sequence >= late.sequence))
        for event in run.events
        if event.api != "check"
    ]
    [first, *_] = judge(run.header, events).violations
    assert (first.sequence, first.requirements) == (late.of, (requirement,))
