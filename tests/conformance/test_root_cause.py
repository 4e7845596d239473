"""One flaw, one requirement: the consequences of a flaw in other scenarios are not reported as further violations.

Each coordinator here has a single flaw that gives wrong answers in many scenarios, most of them made to look at
something else. A whole run has to report the flaw under the requirements that speak of it, and nothing else as failed.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from fencepost.adapters.classic.group import Group, State
from fencepost.adapters.classic.membership import Heartbeats, Syncing
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.subject import select_requirements
from fencepost.model.errors import Error
from tests.support.faulty_coordinators import altering_coordinator, install

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
