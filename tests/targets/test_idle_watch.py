"""The watch of idle targets on Apache Kafka: a spin that is brought about is found, and a calm broker is not blamed.

A static member with a rebalance timeout of 0 that alone is left in its group, and does not rejoin, has every Kafka
complete the join phase over and over until the member's session ends: nobody has rejoined, and the next try is due at
once (`onCompleteJoin` of GroupCoordinator, `completeClassicGroupJoin` of GroupMetadataManager).
"""

import pytest

from fencepost.conformance.plan import Plan
from fencepost.conformance.results import ExitCode, Report
from fencepost.conformance.run.context import ScenarioContext, ScenarioFunction
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.requests import Member
from fencepost.conformance.subject import Scenario
from fencepost.model.classic.catalogue import CATALOGUE
from tests.targets.running import RunningTarget

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

MAX_REPEATS = 3
"""A spin is not seen where so many other processes want the cores that a broker gets hardly anything of them."""
CHECKED = "HB-01"
"""The requirement under which the scenarios are played; the kit's own scenario of it is played beside them."""


async def form_group(group: ScenarioContext) -> Member:
    """Form a group of a static member with a rebalance timeout of 0 and another member, which is returned."""
    static, other = group.member("A", instance="A"), group.member("B")
    static.rebalance_timeout = 0
    await group.form_stable_group(other, static)
    await group.check(CHECKED, group.heartbeat(static))
    return other


async def let_be(group: ScenarioContext) -> None:
    """Form the group and nothing more."""
    await form_group(group)


async def leave_static_member_alone(group: ScenarioContext) -> None:
    """Form the group, and have the other member leave it."""
    await group.leave(await form_group(group))


async def play(target: RunningTarget, function: ScenarioFunction, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The report on a run with one more scenario."""
    monkeypatch.setenv("FENCEPOST_RUN", str(target.folder))
    scenario = Scenario("group", (CHECKED,), function)
    run = RemoteRun(Plan(f"kafka://{target.bootstrap}", (CHECKED,)), target.profile, scenarios=(scenario,))
    return await run.run([CATALOGUE[CHECKED]], lambda event: None)


async def check_watch(target: RunningTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    """The spin is found, with its group, and makes the run inconclusive; without it there is nothing to find."""
    report = await play(target, leave_static_member_alone, monkeypatch)
    for _ in range(MAX_REPEATS):
        if not report.idle_findings:
            report = await play(target, leave_static_member_alone, monkeypatch)
    assert report.exit_code() is ExitCode.INCONCLUSIVE
    (finding,) = report.idle_findings
    assert finding.startswith("the target ") and "after the scenarios; rebalancing at that time: group-" in finding

    calm = await play(target, let_be, monkeypatch)
    assert calm.idle_findings == () and calm.exit_code() is ExitCode.CONFORMANT
    assert calm.facts is not None and not [remark for remark in calm.facts.remarks if "not watched" in remark]


@pytest.mark.kafka28
async def test_kafka28(kafka28: RunningTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    await check_watch(kafka28, monkeypatch)


@pytest.mark.acceptance
@pytest.mark.kafka34
async def test_kafka34(kafka34: RunningTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    await check_watch(kafka34, monkeypatch)


@pytest.mark.acceptance
@pytest.mark.kafka3
async def test_kafka3(kafka3: RunningTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    await check_watch(kafka3, monkeypatch)


@pytest.mark.kafka4
async def test_kafka4(kafka4: RunningTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    await check_watch(kafka4, monkeypatch)
