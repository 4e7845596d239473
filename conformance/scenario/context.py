"""The stage of a scenario: its group, its members, and the requests they send.

A stage only sends and remembers; what the answers are worth is the judge's business. A mark says that an answer is
evidence of a requirement, and the judge weighs it.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from fencepost.conformance.scenario.actors import (
    CONSUMER,
    RANGE,
    RESPONSE_TIMEOUT_MS,
    Blocked,
    Call,
    Check,
    Member,
    Unsupported,
    subscription,
)
from fencepost.conformance.scenario.admin_requests import AdminRequests
from fencepost.conformance.scenario.membership_requests import MemberRequests
from fencepost.model.errors import error_name
from fencepost.traces.judge.classic.failover import NOT_READY_ERRORS
from fencepost.traces.judge.diagnosis.wording import errors_in

__all__ = [
    "CONSUMER",
    "RANGE",
    "RESPONSE_TIMEOUT_MS",
    "Blocked",
    "Call",
    "Check",
    "Member",
    "ScenarioContext",
    "Unsupported",
    "subscription",
]


MAX_READY_ATTEMPTS = 120
"""How often a target is asked whether it is ready again."""


class ScenarioContext(MemberRequests, AdminRequests):
    """One scenario's group and what its members do. Every scenario has a group id of its own."""

    async def form_generation(self, *members: Member) -> tuple[Member, ...]:
        """Bring new members into one generation that waits for SyncGroup; the leader comes first."""
        if len(members) > self.settings.max_group_size:
            raise Unsupported(f"groups of {len(members)} members")
        calls = await asyncio.gather(*(self.join_new(member) for member in members))
        for _ in range(3 * len(members)):
            if all(call.done for call in calls) and len({member.generation for member in members}) == 1:
                break
            waiting = [call.exchange.response for call in calls if not call.done]
            if waiting:
                await asyncio.wait(
                    waiting, timeout=(self.initial_delay + 500) / 1000, return_when=asyncio.FIRST_COMPLETED
                )
            await self.sleep(self.short_pause)
            behind = [index for index, call in enumerate(calls) if call.done and self.is_behind(members, index, calls)]
            for index in behind:
                calls[index] = self.join(members[index])
        for call in calls:
            body = await call
            self.require(
                body["error_code"] == 0, f"JoinGroup got {error_name(body['error_code'])} while forming a group"
            )
        self.require(len({member.generation for member in members}) == 1, "the members did not reach one generation")
        self.require(sum(member.is_leader for member in members) == 1, "not exactly one member was told that it leads")
        return tuple(sorted(members, key=lambda member: not member.is_leader))

    @staticmethod
    def is_behind(members: Sequence[Member], index: int, calls: Sequence[Call]) -> bool:
        """A newer round has begun without this member."""
        newest = max(member.generation for member in members)
        return members[index].generation < newest or any(not call.done for call in calls)

    async def form_stable_group(self, *members: Member, plan: Mapping[str, bytes] | None = None) -> tuple[Member, ...]:
        """Bring new members into one Stable generation; the leader comes first. Assignments are the labels."""
        ordered = await self.form_generation(*members)
        await self.sync_all(*ordered, plan=plan)
        return ordered

    async def sync_all(self, leader: Member, *followers: Member, plan: Mapping[str, bytes] | None = None) -> None:
        """All members of a completed join phase sync, the leader last; assignments are the labels but for a plan."""
        calls = [self.sync(follower) for follower in followers]
        if followers:
            await self.sleep(self.short_pause)
        calls.append(self.sync_leader(leader, *followers) if plan is None else self.sync(leader, plan))
        for call in calls:
            body = await call
            self.require(body["error_code"] == 0, f"SyncGroup got {error_name(body['error_code'])}")

    async def rebalance(self, leader: Member, *followers: Member) -> list[Call]:
        """A further join phase of a Stable group, begun by its leader; the answered calls in the order given."""
        calls = [self.join(leader)]
        await self.sleep(self.short_pause)
        calls += [self.join(follower) for follower in followers]
        for call in calls:
            await call
        return calls

    async def keep_alive(self, members: Iterable[Member], milliseconds: int) -> None:
        """Let time pass while members heartbeat often enough to stay."""
        left = milliseconds
        while left > 0:
            pause = min(left, max(100, self.session_timeout // 4))
            await self.sleep(pause)
            left -= pause
            for call in [self.heartbeat(member) for member in members]:
                await call

    async def restart(self, **settings: int) -> None:
        """Kill the target without warning and wait until it is back and has loaded the group.

        `settings` change with it where the target can do that (capability `resize`).
        """
        if self.restart_hook is None:
            raise Unsupported("restart")
        await self.restart_hook(**settings)
        await self.wait_until_ready()

    async def wait_until_ready(self) -> None:
        """Wait until the group's coordinator answers for it again."""
        for _ in range(MAX_READY_ATTEMPTS):
            probe = self.fetch()
            await asyncio.wait([probe.exchange.response], timeout=probe.timeout / 1000)
            if probe.done and probe.exchange.response.result() and not errors_in(probe.body) & NOT_READY_ERRORS:
                return
            await self.sleep(250)
        raise Blocked("the coordinator was not ready again in time")
