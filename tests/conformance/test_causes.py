"""Notes on undecided requirements name nothing but requirements that failed."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from fencepost.adapters.classic.group import Group, State
from fencepost.adapters.classic.membership import Heartbeats, Joining, Syncing
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.conformance.analysis.causes import UNCONFIRMED, Cause, Harm, find_causes, resolve_causes
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import WENT_DOWN, Failure, Report, RequirementResult, Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.subject import select_requirements
from fencepost.model.errors import Error
from fencepost.traces.verdict import FieldDifference
from tests.support.faulty_coordinators import altering_coordinator, install
from tests.support.sample_reports import JOIN_29, LONGER


def undecided(id: str, note: str) -> RequirementResult:
    return RequirementResult(id, Verdict.INCONCLUSIVE, note)


FAILED = RequirementResult("JOIN-29", Verdict.FAIL, failures=(JOIN_29,))
PASSED = RequirementResult("JOIN-07", Verdict.PASS)


@pytest.mark.parametrize(
    ("results", "notes", "causes"),
    [
        ([undecided("HB-05", "blocked by JOIN-29")], {"HB-05": "blocked by JOIN-29"}, {"HB-05": ("JOIN-29",)}),
        (
            [undecided("HB-05", "too late, blocked by JOIN-07, JOIN-29")],
            {"HB-05": "too late, blocked by JOIN-29"},
            {"HB-05": ("JOIN-29",)},
        ),
        (
            [undecided("HB-05", "blocked by HB-06"), undecided("HB-06", "blocked by JOIN-29 at request 5")],
            {"HB-05": "blocked by JOIN-29", "HB-06": "blocked by JOIN-29 at request 5"},
            {"HB-05": ("JOIN-29",), "HB-06": ("JOIN-29",)},
        ),
        ([undecided("HB-05", "blocked by JOIN-07")], {"HB-05": f"blocked by {UNCONFIRMED}"}, {"HB-05": ()}),
        (
            [undecided("HB-05", "blocked by HB-06"), undecided("HB-06", "blocked by HB-05")],
            {"HB-05": f"blocked by {UNCONFIRMED}", "HB-06": f"blocked by {UNCONFIRMED}"},
            {"HB-05": (), "HB-06": ()},
        ),
        (
            [undecided("HB-05", "failed once, see failures/schedule-0-JOIN-07.jsonl")],
            {"HB-05": "failed once, see failures/schedule-0-JOIN-07.jsonl"},
            {"HB-05": ()},
        ),
    ],
)
def test_notes(
    results: list[RequirementResult], notes: Mapping[str, str], causes: Mapping[str, tuple[str, ...]]
) -> None:
    resolved = {each.id: each for each in resolve_causes([FAILED, PASSED, *results])}
    assert {id: resolved[id].note for id in notes} == notes
    assert {id: resolved[id].causes for id in causes} == causes
    assert resolved["JOIN-29"] is FAILED and resolved["JOIN-07"] is PASSED


def test_the_requirement_with_the_shortest_schedule_shows_a_cause() -> None:
    other = RequirementResult("JOIN-32", Verdict.FAIL, failures=(LONGER,))
    (cause, alone) = find_causes_of(FAILED, other, PASSED)
    assert (cause.requirements, alone.requirements) == (("JOIN-29",), ("JOIN-32",))
    assert cause.title.endswith("expected 1, observed -1")


# --- which failures have one cause


def fail(id: str, api: str, name: str, expected: str, observed: str, state: str = "") -> RequirementResult:
    """A failed requirement, of a kind of its own."""
    failure = replace(
        JOIN_29,
        title=f"{api} response has the wrong {name}",
        differences=(FieldDifference(name, expected, observed),),
        state=state or f"as it is for {id}",
        kind=id,
    )
    return RequirementResult(id, Verdict.FAIL, failures=(failure,))


def causes_of(*results: RequirementResult) -> list[tuple[str, ...]]:
    """The requirements of each cause."""
    return [cause.requirements for cause in find_causes_of(*results)]


def find_causes_of(*results: RequirementResult, unclassified: tuple[Failure, ...] = ()) -> tuple[Cause, ...]:
    """The causes in a report on these results."""
    return find_causes(Report({"name": "target"}, 0, results, unclassified=unclassified))


def test_a_wrong_error_of_an_api_in_place_of_the_same_error_is_one_cause() -> None:
    results = (
        fail("JOIN-05", "JoinGroup", "error_code", "UNKNOWN_MEMBER_ID", "NONE"),
        fail("JOIN-07", "JoinGroup", "error_code", "MEMBER_ID_REQUIRED", "NONE"),
        fail("JOIN-23", "JoinGroup", "error_code", "UNKNOWN_MEMBER_ID", "NONE"),
        fail("COMMIT-05", "OffsetCommit", "error_code", "UNKNOWN_MEMBER_ID", "NONE"),
    )
    assert causes_of(*results) == [("JOIN-05", "JOIN-23"), ("JOIN-07",), ("COMMIT-05",)]
    first = find_causes_of(*results)[0]
    assert first.title.endswith("expected UNKNOWN_MEMBER_ID, observed NONE")
    assert first.alike == frozenset()


def test_an_api_may_have_several_reasons_to_refuse_what_is_to_succeed() -> None:
    assert causes_of(
        fail("COMMIT-08", "OffsetCommit", "error_code", "NONE", "UNKNOWN_MEMBER_ID", "Empty, no members"),
        fail("COMMIT-14", "OffsetCommit", "error_code", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_MEMBER_ID"),
        fail("COMMIT-19", "OffsetCommit", "error_code", "NONE", "UNKNOWN_MEMBER_ID"),
    ) == [("COMMIT-08",), ("COMMIT-19",), ("COMMIT-14",)]


def test_a_wrong_error_among_members_may_have_to_do_with_different_ones() -> None:
    stable = "Stable, generation 2, members A, leader A"
    commits = (
        fail("COMMIT-14", "OffsetCommit", "error_code", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_MEMBER_ID", stable),
        fail("COMMIT-19", "OffsetCommit", "error_code", "NONE", "UNKNOWN_MEMBER_ID", stable),
    )
    assert causes_of(*commits) == [("COMMIT-19",), ("COMMIT-14",)]


def test_a_check_that_several_apis_lack_is_a_cause_for_each() -> None:
    def fail_for_lack_of_check(id: str, api: str) -> RequirementResult:
        result = fail(id, api, "error_code", "INVALID_GROUP_ID", "GROUP_ID_NOT_FOUND")
        (failure,) = result.failures
        return replace(result, failures=(replace(failure, rule="any.invalid-group: the group id is empty"),))

    assert causes_of(
        fail_for_lack_of_check("JOIN-01", "JoinGroup"),
        fail_for_lack_of_check("SYNC-01", "SyncGroup"),
        fail_for_lack_of_check("SYNC-06", "SyncGroup"),
        fail_for_lack_of_check("HB-01", "Heartbeat"),
    ) == [("SYNC-01", "SYNC-06"), ("JOIN-01",), ("HB-01",)]


def test_what_a_restart_loses_and_what_is_wrong_without_one_are_two_causes() -> None:
    results = (
        fail("ADMIN-01", "DescribeGroups", "error_code", "GROUP_ID_NOT_FOUND", "NONE"),
        fail("FAILOVER-15", "DescribeGroups", "error_code", "GROUP_ID_NOT_FOUND", "NONE"),
    )
    assert [(each.requirements, each.harm) for each in find_causes_of(*results)] == [
        (("FAILOVER-15",), Harm.LOSS),
        (("ADMIN-01",), Harm.ADMINISTRATION),
    ]


def test_the_same_number_under_different_rules_is_no_evidence_of_one_cause() -> None:
    def count_rows(id: str, rule: str) -> RequirementResult:
        result = fail(id, "ListGroups", "number of rows for the group", "0", "1")
        return replace(result, failures=(replace(result.failures[0], rule=rule),))

    listed, filtered = count_rows("ADMIN-15", "list.unknown: no group"), count_rows("ADMIN-14", "list.filter: another")
    assert causes_of(listed, filtered) == [("ADMIN-15",), ("ADMIN-14",)]
    assert causes_of(listed, replace(listed, id="ADMIN-10")) == [("ADMIN-15", "ADMIN-10")]


def test_what_brought_the_target_down_comes_first_among_the_causes() -> None:
    down = Failure("trace", 3, WENT_DOWN, ("a response",), "", title="the target went down by one request: JoinGroup")
    harm, other = find_causes_of(FAILED, unclassified=(down, replace(down, observed="NONE")))
    assert (harm.harm, harm.title, harm.requirements) == (Harm.DOWN, down.title, ())
    assert other.requirements == ("JOIN-29",)


@pytest.mark.parametrize(
    ("api", "field", "expected", "observed", "harm"),
    [
        ("DeleteGroups", "error_code", "GROUP_ID_NOT_FOUND", "NONE", Harm.ADMINISTRATION),
        ("OffsetDelete", "error_code", "GROUP_SUBSCRIBED_TO_TOPIC", "NONE", Harm.LOSS),
        ("OffsetCommit", "error_code", "UNKNOWN_TOPIC_OR_PARTITION", "NONE", Harm.ADMINISTRATION),
        ("OffsetCommit", "error_code", "ILLEGAL_GENERATION", "NONE", Harm.FENCING),
        ("OffsetFetch", "error_code", "UNSTABLE_OFFSET_COMMIT", "NONE", Harm.LOSS),
        ("Heartbeat", "error_code", "REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", Harm.REFUSAL),
        ("Heartbeat", "error_code", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", Harm.VALUE),
        ("DescribeGroups", "error_code", "NONE", "GROUP_ID_NOT_FOUND", Harm.ADMINISTRATION),
        ("JoinGroup", "early", "no response yet", "NONE at 9 ms", Harm.EARLY),
        ("JoinGroup", "late", "9 ms at the latest", "99 ms", Harm.TIMING),
    ],
)
def test_harm_is_what_users_suffer(api: str, field: str, expected: str, observed: str, harm: Harm) -> None:
    (cause,) = find_causes_of(fail("HB-05", api, field, expected, observed))
    assert cause.harm is harm


def test_wrong_errors_of_several_apis_are_several_causes() -> None:
    gone = "the group does not exist"
    assert causes_of(
        fail("HB-01", "Heartbeat", "error_code", "INVALID_GROUP_ID", "GROUP_ID_NOT_FOUND", gone),
        fail("SYNC-02", "SyncGroup", "error_code", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND", gone),
        fail("COMMIT-11", "OffsetCommit", "error_code", "ILLEGAL_GENERATION", "NONE", gone),
        fail("JOIN-05", "JoinGroup", "error_code", "UNKNOWN_MEMBER_ID", "NONE", gone),
    ) == [("COMMIT-11",), ("JOIN-05",), ("HB-01",), ("SYNC-02",)]


def test_a_wrong_value_is_one_cause_if_the_same_is_expected() -> None:
    assert causes_of(
        fail("JOIN-29", "JoinGroup", "generation_id", "2", "3"),
        fail("GEN-01", "JoinGroup", "generation_id", "1", "3"),
        fail("JOIN-32", "JoinGroup", "generation_id", "2", "3"),
    ) == [("JOIN-29", "JOIN-32"), ("GEN-01",)]


def test_moments_are_those_of_one_run() -> None:
    early = "no response yet"
    assert causes_of(
        fail("JOIN-28", "JoinGroup", "early", early, "NONE at 335 ms"),
        fail("JOIN-44", "JoinGroup", "early", early, "NONE at 335 ms"),
    ) == [("JOIN-28",), ("JOIN-44",)]


def test_causes_meet_over_a_failure_that_is_like_both() -> None:
    gone = "the group does not exist"
    assert causes_of(
        fail("SYNC-01", "SyncGroup", "error_code", "ILLEGAL_GENERATION", "GROUP_ID_NOT_FOUND", gone),
        fail("SYNC-06", "SyncGroup", "error_code", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND"),
        fail("SYNC-02", "SyncGroup", "error_code", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND", gone),
    ) == [("SYNC-01", "SYNC-06", "SYNC-02")]


def test_the_most_harmful_cause_comes_first_then_the_one_that_reaches_furthest() -> None:
    waiting = replace(undecided("HB-05", "blocked by JOIN-24"), causes=("JOIN-24",))
    silent = fail("LEAVE-09", "JoinGroup", "response", "UNKNOWN_MEMBER_ID", "none")
    results = (
        fail("ADMIN-03", "DescribeGroups", "client_id", "'a'", "''"),
        fail("COMMIT-18", "OffsetFetch", "committed_leader_epoch", "7", "-1"),
        fail("JOIN-24", "JoinGroup", "generation_id", "1", "2"),
        fail("COMMIT-01", "OffsetCommit", "error_code", "NONE", "UNKNOWN_MEMBER_ID"),
        fail("HB-04", "Heartbeat", "error_code", "ILLEGAL_GENERATION", "NONE"),
        silent,
        fail("SYNC-08", "SyncGroup", "assignment", "1 bytes", "no bytes"),
        fail("ADMIN-32", "DeleteGroups", "error_code", "INVALID_GROUP_ID", "NONE"),
        waiting,
    )
    ids = [id for (id,) in causes_of(*results)]
    assert ids == ["ADMIN-32", "SYNC-08", "HB-04", "LEAVE-09", "COMMIT-01", "JOIN-24", "COMMIT-18", "ADMIN-03"]
    closed = fail("JOIN-37", "JoinGroup", "response", "a response", "the connection was closed")
    assert find_causes_of(*results, closed)[0].harm is Harm.DOWN


def test_the_requirement_that_speaks_of_the_very_response_shows_a_cause() -> None:
    looked_at = fail("JOIN-23", "JoinGroup", "error_code", "UNKNOWN_MEMBER_ID", "NONE")
    named = fail("JOIN-05", "JoinGroup", "error_code", "UNKNOWN_MEMBER_ID", "NONE")
    (failure,) = named.failures
    exact = replace(failure, kind="join.unknown ['error'] [0] ('JOIN-05',)", schedule=("one", "two", "three"))
    assert causes_of(looked_at, replace(named, failures=(exact,))) == [("JOIN-05", "JOIN-23")]


def test_a_failed_check_alone_is_a_cause_of_its_own_kind() -> None:
    def differing(id: str, note: str) -> RequirementResult:
        shown = Failure("trace", 1, f"(differs in {note})", (), "", title=f"differs in {note}", kind=note)
        return RequirementResult(id, Verdict.FAIL, failures=(shown,))

    found = find_causes_of(
        differing("JOIN-01", "member"), differing("JOIN-05", "member"), differing("FETCH-02", "offset")
    )
    assert [(cause.requirements, cause.alike) for cause in found] == [
        (("JOIN-01", "JOIN-05"), {"JOIN-05"}),
        (("FETCH-02",), frozenset()),
    ]


def test_a_note_on_a_pass_names_what_failed_and_has_no_cause() -> None:
    note = "1 of 2 scenarios undecided: no answer, blocked by HB-06, JOIN-29"
    passed = RequirementResult("HB-05", Verdict.PASS, note)
    resolved = {each.id: each for each in resolve_causes([FAILED, passed, RequirementResult("HB-06", Verdict.PASS)])}
    assert resolved["HB-05"].note == "1 of 2 scenarios undecided: no answer, blocked by JOIN-29"
    assert resolved["HB-05"].causes == ()


def test_requests_of_an_api_that_are_never_answered_alike_are_one_cause() -> None:
    silence = "none, although the coordinator answers later requests of the group"
    assert causes_of(
        fail("JOIN-44", "JoinGroup", "response", "NONE, generation=3", silence),
        fail("LEAVE-09", "JoinGroup", "response", "UNKNOWN_MEMBER_ID", silence),
        fail("JOIN-27", "JoinGroup", "response", "NONE, generation=2", silence),
        fail("SYNC-10", "SyncGroup", "response", "NONE", silence),
    ) == [("JOIN-44", "JOIN-27"), ("LEAVE-09",), ("SYNC-10",)]


def test_what_ends_the_connection_is_one_cause_whatever_is_expected() -> None:
    closed = "the connection was closed"
    assert causes_of(
        fail("JOIN-17", "JoinGroup", "response", "a response", closed),
        fail("GEN-09", "JoinGroup", "response", "UNKNOWN_MEMBER_ID", closed),
    ) == [("JOIN-17", "GEN-09")]


# --- One flaw, one requirement: the consequences of a flaw in other scenarios are not reported as further violations.

Patch = pytest.MonkeyPatch


def failed_requirements() -> set[str]:
    """The requirements that a whole run on the bundled coordinator, as it is now, reports as broken."""
    bundled = BundledRun(Plan(BUNDLED), Profile())
    report = asyncio.run(bundled.run(select_requirements(()), lambda progress: None))
    return {result.id for result in report.results if result.verdict is Verdict.FAIL}


def told_in_completing(patch: Patch) -> None:
    """Heartbeats are told of a rebalance while the assignment is awaited, too (HB-07)."""
    unsettled = (State.PREPARING, State.COMPLETING)
    patch.setattr(
        Heartbeats,
        "rebalance_error",
        lambda heartbeats, group: Error.REBALANCE_IN_PROGRESS if group.state in unsettled else Error.NONE,
    )


def assigning_followers_are_refused(patch: Patch) -> None:
    """A follower that brings assignments is sent away (SYNC-15)."""
    check = Syncing.check_group

    def check_assignments(syncing: Syncing, group: Group | None, request: Request) -> Error:
        error = check(syncing, group, request)
        if error or group is None or request.body["member_id"] == group.leader or not request.body["assignments"]:
            return error
        return Error.UNKNOWN_SERVER_ERROR

    patch.setattr(Syncing, "check_group", check_assignments)


def rounds_end_early(patch: Patch) -> None:
    """Nobody is waited for longer than a third of the rebalance timeout (JOIN-44)."""

    def start_short_timer(rounds: Rebalancer, group: Group) -> None:
        runtime, group_id = rounds._runtime, group.group_id
        deadline = runtime.now + group.rebalance_timeout // 3
        runtime.timers.arm(("join", group_id), deadline, lambda: rounds.on_join_timer(group_id))

    patch.setattr(Rebalancer, "start_join_timer", start_short_timer)


def protocol_type_is_free(patch: Patch) -> None:
    """Whoever offers a protocol of the right name is let in (JOIN-16)."""
    supports = Group.supports

    def supports_any_type(group: Group, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]) -> bool:
        return supports(group, protocol_type if group.state is State.EMPTY else group.protocol_type or "", protocols)

    patch.setattr(Group, "supports", supports_any_type)


def epochs_are_zero(patch: Patch) -> None:
    """An offset without a leader epoch comes back with epoch 0 (COMMIT-18)."""

    def change(request: Request, response: Response) -> Response:
        for group in response.body.get("groups", (response.body,)) if request.api == "OffsetFetch" else ():
            for topic in group.get("topics") or ():
                for row in topic["partitions"]:
                    if row.get("committed_leader_epoch") == -1:
                        row["committed_leader_epoch"] = 0
        return response

    install(patch, altering_coordinator(change))


def empty_rounds_do_not_count(patch: Patch) -> None:
    """A round that ends with nobody leaves the generation as it is (GEN-02)."""
    begin = Group.begin_generation

    def begin_if_anybody(group: Group, now: int) -> None:
        group.generation -= not group.members
        begin(group, now)

    patch.setattr(Group, "begin_generation", begin_if_anybody)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flaw", "broken"),
    [
        (told_in_completing, {"HB-07"}),
        (assigning_followers_are_refused, {"SYNC-15"}),
        (rounds_end_early, {"JOIN-44"}),
        (protocol_type_is_free, {"JOIN-16"}),
        (epochs_are_zero, {"COMMIT-18"}),
        (empty_rounds_do_not_count, {"GEN-02"}),
    ],
)
def test_run_reports_only_the_root_cause(flaw: Callable[[Patch], None], broken: set[str], monkeypatch: Patch) -> None:
    flaw(monkeypatch)
    assert failed_requirements() == broken


def unknown_groups_are_told(request: Request, response: Response) -> Response:
    """A group that does not exist gets GROUP_ID_NOT_FOUND from every API of members."""
    if request.api in {"Heartbeat", "SyncGroup"} and response.body["error_code"] == Error.UNKNOWN_MEMBER_ID:
        return replace(response, body={**response.body, "error_code": Error.GROUP_ID_NOT_FOUND})
    return response


def test_what_shows_by_an_answer_that_is_wrong_everywhere_follows_from_it(monkeypatch: Patch) -> None:
    install(monkeypatch, altering_coordinator(unknown_groups_are_told))
    bundled = BundledRun(Plan(BUNDLED), Profile())
    asked = select_requirements(("HB-02", "HB-03", "TIMER-01", "STATIC-21", "FETCH-08"))
    report = asyncio.run(bundled.run(asked, lambda progress: None))
    assert {result.id for result in report.failed_results()} == {"HB-02", "HB-03"}
    follow = {result.id: result.causes for result in report.results if result.verdict is Verdict.INCONCLUSIVE}
    assert follow == dict.fromkeys(("STATIC-21", "FETCH-08"), ("HB-02",))


def test_what_shows_by_the_rule_of_another_requirement_follows_from_it(monkeypatch: Patch) -> None:
    """No leader starts a round by joining again: nothing is known of the timeouts of rounds."""
    monkeypatch.setattr(Joining, "needs_rebalance", lambda joining, group, member, join: False)
    bundled = BundledRun(Plan(BUNDLED), Profile())
    report = asyncio.run(bundled.run(select_requirements(("JOIN-31", "TIMER-27")), lambda progress: None))
    assert {result.id: result.causes for result in report.results if result.verdict is not Verdict.PASS} == {
        "JOIN-31": (),
        "TIMER-27": ("JOIN-31",),
    }
