"""The probe on virtual time: what it learns of a target that is slow, cold, or changes its mind."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from fencepost.adapters.target import SettingOrigin
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.adapters.wire.cluster import LearnedSettings
from fencepost.adapters.wire.discovery import SettingsProbe, find_contradictions
from fencepost.model.errors import Error
from fencepost.traces.events import Body

TOLD = {"min_session_timeout": 1, "max_session_timeout": 60_000, "max_group_size": 6, "max_offset_metadata": 99}
DELAY = "initial_rebalance_delay"


@dataclass
class Groups:
    """Stands for `GroupRequests`: a target whose responses take `seconds_at(now)`, and first joins `delay` longer."""

    seconds_at: Callable[[float], float]
    delay: float = 0.0
    issues_ids: bool = True
    joined: set[str] = field(default_factory=set)

    def offers(self, api: str) -> bool:
        return True

    def version_of(self, api: str, preferred: int) -> int:
        return 9

    async def send(self, api: str, group: str, body: Body, preferred: int = 99) -> Body:
        await asyncio.sleep(self.seconds_at(asyncio.get_running_loop().time()))
        if api != "JoinGroup":
            return {"error_code": Error.UNKNOWN_MEMBER_ID}
        if self.issues_ids and not body["member_id"]:
            return {"error_code": Error.MEMBER_ID_REQUIRED, "member_id": "m"}
        if group in self.joined:
            await asyncio.Event().wait()
        self.joined.add(group)
        await asyncio.sleep(self.delay)
        return {"error_code": Error.NONE, "member_id": "m"}

    async def leave(self, group: str, members: Iterable[str]) -> None:
        pass

    async def remove_groups(self, groups: Iterable[str]) -> list[str]:
        return []


def probe(groups: Groups) -> LearnedSettings:
    told = LearnedSettings().with_values(SettingOrigin.PROFILE, **TOLD)
    requests: Any = groups
    return run_virtual(SettingsProbe(requests, told, {}, "token").measure())


def cold_until(seconds: float) -> Callable[[float], float]:
    """Responses take 150 ms at first, and no time later."""
    return lambda now: 0.15 if now < seconds else 0.001


@pytest.mark.parametrize("cold", [0.0, 0.5, 0.9, 1.1, 1.3, 2.0, 20.0])
@pytest.mark.parametrize("issues_ids", [True, False])
def test_the_slowness_of_a_cold_target_is_no_delay(cold: float, issues_ids: bool) -> None:
    learned = probe(Groups(cold_until(cold), issues_ids=issues_ids))
    assert learned.values[DELAY] == 0
    assert learned.origins[DELAY] is SettingOrigin.ESTIMATE and not learned.origins[DELAY].is_known


@pytest.mark.parametrize("slowness", [0.001, 0.15])
def test_a_delay_is_what_a_first_join_takes_longer_than_other_requests(slowness: float) -> None:
    assert probe(Groups(lambda _: slowness, delay=0.6)).values[DELAY] == 600


def test_a_second_measurement_contradicts_the_first() -> None:
    first, second = (probe(Groups(lambda _: 0.001, delay=delay)) for delay in (0.6, 3.0))
    assert find_contradictions(first, second) == {DELAY: (600, 3000)}
    assert find_contradictions(first, first) == {}
    assert find_contradictions(first, first.told_only()) == {}
    assert DELAY not in first.told_only().values


@dataclass
class LimitedGroups(Groups):
    """A target that lets `limit` members into a group and parks their joins; its n-th refusal takes `late[n]` s."""

    limit: int = 5
    late: list[float] = field(default_factory=list)
    admitted: dict[str, int] = field(default_factory=dict)

    async def send(self, api: str, group: str, body: Body, preferred: int = 99) -> Body:
        if api != "JoinGroup" or not body["member_id"]:
            return await super().send(api, group, body, preferred)
        admitted = self.admitted.setdefault(group, 0)
        if admitted < self.limit:
            self.admitted[group] = admitted + 1
            await asyncio.Event().wait()
        await asyncio.sleep(self.late.pop(0) if self.late else 0.001)
        return {"error_code": Error.GROUP_MAX_SIZE_REACHED}


def probe_size(groups: LimitedGroups) -> LearnedSettings:
    others = {name: value for name, value in TOLD.items() if name != "max_group_size"}
    told = LearnedSettings().with_values(SettingOrigin.PROFILE, **others, **{DELAY: 0})
    requests: Any = groups
    return run_virtual(SettingsProbe(requests, told, {}, "token").measure())


@pytest.mark.parametrize("late", [[], [0.3, 0.6, 0.9, 1.2], [0.001, 0.001, 9.0]])
def test_a_refusal_that_comes_late_makes_no_larger_group(late: list[float]) -> None:
    learned = probe_size(LimitedGroups(lambda _: 0.001, late=late))
    assert (learned.values["max_group_size"], learned.origins["max_group_size"]) == (5, SettingOrigin.PROBE)


def test_refusals_that_are_seen_once_only_are_no_limit() -> None:
    learned = probe_size(LimitedGroups(lambda _: 0.001, late=[9.0] * 8))
    assert learned.origins["max_group_size"] is SettingOrigin.UNLIMITED
