"""After a wrong response from which nothing follows, the rest of the trace is judged as if it had been right."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.context import ScenarioContext, ScenarioFunction
from fencepost.conformance.subject import Scenario
from fencepost.model.errors import Error
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import CheckStatus
from tests.support.faulty_coordinators import altering_coordinator, install

Patch = pytest.MonkeyPatch
FAIL, PASS = CheckStatus.FAIL, CheckStatus.PASS


def checked(patch: Patch, coordinator: type[Coordinator], play: ScenarioFunction) -> Mapping[str, CheckStatus]:
    """The status of each checked requirement in a scenario on a faulty coordinator."""
    install(patch, coordinator)
    run = run_virtual(BundledRun(Plan(BUNDLED), Profile()).play(Scenario("played", (), play), "run"))
    assert not run.blocked
    return {result.requirement: result.status for result in judge(run.header, run.events).check_results}


def forgiving_heartbeats(
    change: Callable[[Request, dict[str, Any]], dict[str, Any]],
) -> type[Coordinator]:
    """A coordinator with responses changed, and, independent of that, a Heartbeat of any generation is right."""

    def alter(request: Request, response: Response) -> Response:
        body = change(request, dict(response.body))
        if request.api == "Heartbeat" and body["error_code"] == Error.ILLEGAL_GENERATION:
            body = {**body, "error_code": Error.NONE}
        return replace(response, body=body)

    return altering_coordinator(alter)


async def check_heartbeats(group: ScenarioContext, member: Any) -> None:
    """Check a right heartbeat, and one of another generation."""
    await group.check("HB-05", group.heartbeat(member))
    await group.check("HB-04", group.heartbeat(member, generation_id=member.generation + 1))


# --- lists of members for those that do not lead


def tell_everyone(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """A follower gets a list of members, too."""
    if request.api != "JoinGroup" or body["error_code"] or body["members"]:
        return body
    row = {"member_id": body["member_id"], "group_instance_id": None, "metadata": b"x"}
    return {**body, "members": [row]}


async def form_pair_and_go_on(group: ScenarioContext) -> None:
    """Two members form a group; then heartbeats."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))
    await group.check("JOIN-37", group.join(follower), fields="members")
    await group.sync_all(leader, follower)
    await check_heartbeats(group, follower)


def test_a_list_of_members_for_a_follower_blocks_nothing(monkeypatch: Patch) -> None:
    found = checked(monkeypatch, forgiving_heartbeats(tell_everyone), form_pair_and_go_on)
    assert found == {"JOIN-37": FAIL, "HB-05": PASS, "HB-04": FAIL}


# --- a detail of a response


def hide_instances(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """The members listed show no instance ids."""
    if request.api != "JoinGroup" or not body["members"]:
        return body
    return {**body, "members": [{**row, "group_instance_id": None} for row in body["members"]]}


async def join_with_an_instance_and_go_on(group: ScenarioContext) -> None:
    """A static member joins; then heartbeats."""
    member = group.member("A", instance="a")
    joined = await group.join_new(member)
    await joined
    await group.check("JOIN-55", joined, fields="instances")
    await group.sync_all(member)
    await check_heartbeats(group, member)


def test_hidden_instance_ids_block_nothing(monkeypatch: Patch) -> None:
    found = checked(monkeypatch, forgiving_heartbeats(hide_instances), join_with_an_instance_and_go_on)
    assert found == {"JOIN-55": FAIL, "HB-05": PASS, "HB-04": FAIL}


# --- refusals with another error


def refuse_commits_otherwise(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """A commit is refused with another error."""
    if request.api != "OffsetCommit":
        return body
    topics = [
        {
            **topic,
            "partitions": [
                {**row, "error_code": Error.INVALID_GROUP_ID if row["error_code"] else 0} for row in topic["partitions"]
            ],
        }
        for topic in body["topics"]
    ]
    return {**body, "topics": topics}


async def commit_as_a_stranger_and_go_on(group: ScenarioContext) -> None:
    """A commit that is refused; then heartbeats, and a commit that is not."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.check("COMMIT-05", group.commit(a, {0: 7}, member_id="nobody"))
    await check_heartbeats(group, a)
    await group.check("COMMIT-01", group.commit(a, {0: 8}))


def test_a_commit_refused_with_another_error_blocks_nothing(monkeypatch: Patch) -> None:
    found = checked(monkeypatch, forgiving_heartbeats(refuse_commits_otherwise), commit_as_a_stranger_and_go_on)
    assert found == {"COMMIT-05": FAIL, "HB-05": PASS, "HB-04": FAIL, "COMMIT-01": PASS}


def refuse_leaves_otherwise(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """An entry of an unknown member is refused with another error."""
    if request.api != "LeaveGroup":
        return body
    rows = [{**row, "error_code": Error.INVALID_GROUP_ID if row["error_code"] else 0} for row in body["members"]]
    return {**body, "members": rows}


async def leave_as_a_stranger_and_go_on(group: ScenarioContext) -> None:
    """An unknown member leaves; then heartbeats."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.check("LEAVE-13", group.leave({"member_id": "nobody", "group_instance_id": None, "reason": None}))
    await check_heartbeats(group, a)


def test_a_leave_refused_with_another_error_blocks_nothing(monkeypatch: Patch) -> None:
    found = checked(monkeypatch, forgiving_heartbeats(refuse_leaves_otherwise), leave_as_a_stranger_and_go_on)
    assert found == {"LEAVE-13": FAIL, "HB-05": PASS, "HB-04": FAIL}


def accept_one_of_two(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Of two entries that are to be refused the first is said to have left."""
    if request.api != "LeaveGroup":
        return body
    first, *others = body["members"]
    return {**body, "members": [{**first, "error_code": 0}, *others]}


async def leave_as_two_strangers_and_go_on(group: ScenarioContext) -> None:
    """Two unknown members leave; then heartbeats."""
    (a,) = await group.form_stable_group(group.member("A"))
    entries = [{"member_id": name, "group_instance_id": None, "reason": None} for name in ("nobody", "none")]
    await group.check("LEAVE-13", group.leave(*entries))
    await check_heartbeats(group, a)


def test_a_leave_that_was_accepted_in_part_leaves_the_rest_open(monkeypatch: Patch) -> None:
    found = checked(monkeypatch, forgiving_heartbeats(accept_one_of_two), leave_as_two_strangers_and_go_on)
    assert found["LEAVE-13"] is FAIL
    assert found["HB-04"] is CheckStatus.INCONCLUSIVE


# --- where a clean-up pass may have changed the group


async def leave_and_commit_twice(group: ScenarioContext) -> None:
    """The last member leaves and commits, which looks like a clean-up; then the group shows that it is there."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    await group.commit(a, {0: 7})
    await group.check("COMMIT-05", group.commit(a, {0: 7}, member_id="nobody"))
    await group.check("ADMIN-02", group.describe_groups(), fields="state")


def test_nothing_is_blamed_on_a_group_that_is_gone_by_a_guess_alone(monkeypatch: Patch) -> None:
    commits = 0

    def refuse_the_first_as_if_gone(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        nonlocal commits
        if request.api != "OffsetCommit":
            return body
        commits += 1
        error = Error.GROUP_ID_NOT_FOUND if commits == 1 else Error.INVALID_GROUP_ID
        [topic] = body["topics"]
        return {
            **body,
            "topics": [{**topic, "partitions": [{**row, "error_code": error} for row in topic["partitions"]]}],
        }

    found = checked(monkeypatch, forgiving_heartbeats(refuse_the_first_as_if_gone), leave_and_commit_twice)
    assert found == {"COMMIT-05": FAIL, "ADMIN-02": CheckStatus.INCONCLUSIVE}
