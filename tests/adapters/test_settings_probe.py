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
