"""Probes of settings that neither the profile nor the cluster tells, in groups of the kit's own."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from fencepost.adapters.target import SettingOrigin, TargetError
from fencepost.adapters.wire.cluster_settings import LearnedSettings
from fencepost.adapters.wire.connection import ConnectionLossError
from fencepost.adapters.wire.group_requests import GroupRequests
from fencepost.model.errors import Error
from fencepost.traces.events import Body

INT32_MAX = 2_147_483_647
MAX_PROBED_SIZE = 12
"""The largest size limit of a group that is looked for."""
MAX_PROBED_METADATA = 32_767
"""The longest metadata that are tried: a string of every version can hold them."""
MIN_DELAY_MS = 100
"""A shorter initial delay is not told from the time that a response takes."""
MAX_DELAY_S = 10.0
"""How long the first member of a group is waited for."""
PARKED_S = 0.5
"""A request without a response for so long is parked."""
MEMBER_IDS_SINCE = 4
"""The first version of JoinGroup that issues a member id before a member joins (KIP-394)."""
SESSION_TIMEOUTS_MS = (30_000, 10_000, 60_000, 6_000, 300_000, 1_000)
"""Session timeouts one of which a broker accepts."""
DELAY_GROUPS = 3
_NEVER_PARKS = "a JoinGroup during a rebalance is answered at once: the target does not park it"


class UnclearResponseError(Exception):
    """The response to a probe leaves the setting open."""


class SettingsProbe:
    """Measures the settings that `learned` lacks, in groups whose names end in `token`, with commits for `topic` (its
    name and id). What cannot be measured stays unknown."""

    def __init__(self, requests: GroupRequests, learned: LearnedSettings, topic: Body, token: str) -> None:
        self._requests = requests
        self._learned = learned
        self._topic = topic
        self._token = token
        self._groups: list[str] = []

    async def measure(self) -> LearnedSettings:
        """Measure, remove the groups again, and return what is known now."""
        try:
            for name, measure in (
                ("min_session_timeout", self._measure_shortest_session),
                ("max_session_timeout", self._measure_longest_session),
                ("initial_rebalance_delay", self._measure_initial_delay),
                ("max_group_size", self._measure_group_size),
                ("max_offset_metadata", self._measure_metadata),
            ):
                if self._learned.lacks(name):
                    await self._try(measure)
        finally:
            await self._requests.remove_groups(self._groups)
        return self._learned

    async def _try(self, measure: Callable[[], Awaitable[None]]) -> None:
        with suppress(ConnectionLossError, TargetError, UnclearResponseError, TimeoutError):
            await measure()  # if it fails, the setting stays unknown, and the report says so

    def _learn(self, origin: SettingOrigin, **values: int) -> None:
        self._learned = self._learned.with_values(origin, **values)

    def _new_group(self) -> str:
        group = f"fencepost-probe-{self._token}-{len(self._groups)}"
        self._groups.append(group)
        return group

    async def _join(self, group: str, member: str, session: int) -> Body:
        body: dict[str, Any] = {
            "group_id": group,
            "session_timeout_ms": session,
            "rebalance_timeout_ms": 60_000,
            "member_id": member,
            "group_instance_id": None,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b"\0\0\0\0\0\0\xff\xff\xff\xff"}],
            "reason": None,
        }
        return await self._requests.send("JoinGroup", group, body)

    # --- session timeouts ---------------------------------------------------------------------------------------

    async def _accepts_session(self, group: str, session: int) -> bool:
        """Whether the target issues a member id for this session timeout."""
        async with asyncio.timeout(PARKED_S):
            body = await self._join(group, "", session)
        if body.get("error_code") == Error.INVALID_SESSION_TIMEOUT:
            return False
        if body.get("error_code") != Error.MEMBER_ID_REQUIRED:
            raise UnclearResponseError
        await self._requests.leave(group, [body.get("member_id") or ""])
        return True

    async def _acceptable_session(self, group: str) -> int:
        if self._requests.version_of("JoinGroup", 99) < MEMBER_IDS_SINCE:
            raise UnclearResponseError
        for session in SESSION_TIMEOUTS_MS:
            if await self._accepts_session(group, session):
                return session
        raise UnclearResponseError

    async def _measure_shortest_session(self) -> None:
        group = self._new_group()
        accepted = await self._acceptable_session(group)
        if await self._accepts_session(group, 1):
            self._learn(SettingOrigin.UNLIMITED, min_session_timeout=1)
            return
        accepted = await self._last_accepted_session(group, accepted, refused=1)
        self._learn(SettingOrigin.PROBE, min_session_timeout=accepted)

    async def _measure_longest_session(self) -> None:
        group = self._new_group()
        accepted = await self._acceptable_session(group)
        if await self._accepts_session(group, INT32_MAX):
            self._learn(SettingOrigin.UNLIMITED, max_session_timeout=INT32_MAX)
            return
        accepted = await self._last_accepted_session(group, accepted, refused=INT32_MAX)
        self._learn(SettingOrigin.PROBE, max_session_timeout=accepted)

    async def _last_accepted_session(self, group: str, accepted: int, *, refused: int) -> int:
        """The session timeout nearest to a refused one that is accepted, found by bisection; in milliseconds."""
        while abs(accepted - refused) > 1:
            middle = (accepted + refused) // 2
            if await self._accepts_session(group, middle):
                accepted = middle
            else:
                refused = middle
        return accepted

    @property
    def _session(self) -> int:
        """A session timeout that outlasts the probes and is within the known bounds."""
        settings = self._learned.settings()
        return min(max(30_000, settings.min_session_timeout), settings.max_session_timeout)

    # --- the first join -----------------------------------------------------------------------------------------

    async def _obtain_id(self, group: str) -> str:
        """A member id that the target issues beforehand, "" in versions without."""
        if self._requests.version_of("JoinGroup", 99) < MEMBER_IDS_SINCE:
            return ""
        async with asyncio.timeout(MAX_DELAY_S):
            body = await self._join(group, "", self._session)
        if body.get("error_code") != Error.MEMBER_ID_REQUIRED:
            raise UnclearResponseError
        return str(body.get("member_id") or "")

    async def _join_first(self, group: str, member: str) -> tuple[float, str]:
        """Bring the first member into a group; returns the milliseconds until it is answered and its id."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        async with asyncio.timeout(MAX_DELAY_S):
            body = await self._join(group, member, self._session)
        if body.get("error_code") != Error.NONE:
            raise UnclearResponseError
        return (loop.time() - begun) * 1000, str(body.get("member_id") or member)

    async def _measure_initial_delay(self) -> None:
        measured: list[float] = []
        for _ in range(2):
            groups = [self._new_group() for _ in range(DELAY_GROUPS)]
            ids = [await self._obtain_id(group) for group in groups]
            joined = await asyncio.gather(*map(self._join_first, groups, ids))
            measured += [milliseconds for milliseconds, _ in joined]
            if max(measured) < 1.1 * min(measured) + 20:
                break
        self._learn(SettingOrigin.PROBE, initial_rebalance_delay=round_delay(min(measured)))
        if not await self._parks_join(groups[0]):
            self._learned = self._learned.with_remark(_NEVER_PARKS)

    async def _parks_join(self, group: str) -> bool:
        """Whether a newcomer's JoinGroup waits for the member of a group, which does not rejoin."""
        member = await self._obtain_id(group)
        try:
            async with asyncio.timeout(PARKED_S):
                body = await self._join(group, member, self._session)
        except TimeoutError:
            return True
        return bool(body.get("error_code") != Error.NONE)

    # --- limits -------------------------------------------------------------------------------------------------

    async def _measure_group_size(self) -> None:
        """Have more members join a group than a limit in reach allows, and count those that are not refused."""
        group = self._new_group()
        ids = [await self._obtain_id(group) for _ in range(MAX_PROBED_SIZE + 1)]
        calls = [asyncio.ensure_future(self._join(group, member, self._session)) for member in ids]
        _, parked = await asyncio.wait(calls, timeout=PARKED_S)
        for call in parked:
            call.cancel()
        ended = await asyncio.gather(*calls, return_exceptions=True)
        try:
            refused = sum(_is_refused(outcome) for outcome in ended)
        finally:
            await self._requests.leave(group, filter(None, ids))
        if not refused:
            self._learn(SettingOrigin.UNLIMITED, max_group_size=INT32_MAX)
        else:
            self._learn(SettingOrigin.PROBE, max_group_size=len(ids) - refused)

    async def _accepts_metadata(self, group: str, length: int) -> bool:
        partition = {
            "partition_index": 0,
            "committed_offset": 1,
            "committed_leader_epoch": -1,
            "committed_metadata": "m" * length,
        }
        body = {
            "group_id": group,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "group_instance_id": None,
            "topics": [{**self._topic, "partitions": [partition]}],
        }
        response = await self._requests.send("OffsetCommit", group, body, 7)
        codes = [row.get("error_code") for topic in response.get("topics") or () for row in topic.get("partitions", ())]
        if codes not in ([Error.NONE], [Error.OFFSET_METADATA_TOO_LARGE]):
            raise UnclearResponseError
        return codes == [Error.NONE]

    async def _measure_metadata(self) -> None:
        if not self._requests.offers("OffsetCommit"):
            return
        group = self._new_group()
        if await self._accepts_metadata(group, MAX_PROBED_METADATA):
            self._learn(SettingOrigin.UNLIMITED, max_offset_metadata=MAX_PROBED_METADATA)
            return
        accepted, refused = 0, MAX_PROBED_METADATA
        while refused - accepted > 1:
            middle = (accepted + refused) // 2
            if await self._accepts_metadata(group, middle):
                accepted = middle
            else:
                refused = middle
        self._learn(SettingOrigin.PROBE, max_offset_metadata=accepted)


def _is_refused(outcome: Body | BaseException) -> bool:
    """Whether a join found the group full. Raises `UnclearResponseError` if it was refused for another reason."""
    if isinstance(outcome, asyncio.CancelledError):
        return False
    if isinstance(outcome, BaseException) or outcome.get("error_code") not in _JOIN_OUTCOMES:
        raise UnclearResponseError
    return outcome.get("error_code") == Error.GROUP_MAX_SIZE_REACHED


_JOIN_OUTCOMES: Sequence[int] = (Error.NONE, Error.GROUP_MAX_SIZE_REACHED, Error.REBALANCE_IN_PROGRESS)


def round_delay(measured: float) -> int:
    """The initial delay behind a measured one, in milliseconds: the roundest number that is a little less, as the
    measurement is never too short; 0 for what is too short to be told from none.

    A number that is too small is harmless: it is the earliest moment at which a response may come.
    """
    if measured < MIN_DELAY_MS:
        return 0
    for quantum in (1_000, 500, 100, 50):
        rounded = int(measured) // quantum * quantum
        if rounded >= measured - max(60, 0.1 * measured):
            return rounded
    return int(measured) // 10 * 10
