"""The stage of a scenario: its group, its members, and the requests they send.

A stage only sends and remembers; what the answers are worth is the judge's business. A mark says that an answer is
evidence of a requirement, and the judge weighs it.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from fencepost.conformance.scenario.actors import (
    CONSUMER,
    PATIENCE_MS,
    RANGE,
    Blocked,
    Call,
    Mark,
    Member,
    Unsupported,
    subscription,
)
from fencepost.conformance.scenario.admin_requests import Administration
from fencepost.conformance.scenario.membership_requests import Membership
from fencepost.model.errors import error_name
from fencepost.traces.judge.classic.failover import NOT_READY
from fencepost.traces.judge.diagnosis.wording import errors_in

__all__ = [
    "CONSUMER",
    "PATIENCE_MS",
    "RANGE",
    "Blocked",
    "Call",
    "Mark",
    "Member",
    "Stage",
    "Unsupported",
    "subscription",
]


READY_TRIES = 120
"""How often a target is asked whether it is ready again."""


class Stage(Membership, Administration):
    """One scenario's group and what its members do. Every scenario has a group id of its own."""

    async def completing(self, *members: Member) -> tuple[Member, ...]:
        """Bring new members into one generation that waits for SyncGroup; the leader comes first."""
        if len(members) > self.settings.max_group_size:
            raise Unsupported(f"groups of {len(members)} members")
        calls = await asyncio.gather(*(self.enter(member) for member in members))
        for _ in range(3 * len(members)):
            if all(call.done for call in calls) and len({member.generation for member in members}) == 1:
                break
            waiting = [call.exchange.answer for call in calls if not call.done]
            if waiting:
                await asyncio.wait(waiting, timeout=(self.delay + 500) / 1000, return_when=asyncio.FIRST_COMPLETED)
            await self.sleep(self.step)
            behind = [index for index, call in enumerate(calls) if call.done and self.is_behind(members, index, calls)]
            for index in behind:
                calls[index] = self.join(members[index])
        for call in calls:
            body = await call
            self.need(body["error_code"] == 0, f"JoinGroup got {error_name(body['error_code'])} while forming a group")
        self.need(len({member.generation for member in members}) == 1, "the members did not reach one generation")
        self.need(sum(member.leads for member in members) == 1, "not exactly one member was told that it leads")
        return tuple(sorted(members, key=lambda member: not member.leads))

    @staticmethod
    def is_behind(members: Sequence[Member], index: int, calls: Sequence[Call]) -> bool:
        """A newer round has begun without this member."""
        newest = max(member.generation for member in members)
        return members[index].generation < newest or any(not call.done for call in calls)

    async def stable(self, *members: Member, plan: Mapping[str, bytes] | None = None) -> tuple[Member, ...]:
        """Bring new members into one Stable generation; the leader comes first. Assignments are the labels."""
        ordered = await self.completing(*members)
        await self.settle(*ordered, plan=plan)
        return ordered

    async def settle(self, leader: Member, *followers: Member, plan: Mapping[str, bytes] | None = None) -> None:
        """All members of a completed join phase sync, the leader last; assignments are the labels but for a plan."""
        calls = [self.sync(follower) for follower in followers]
        if followers:
            await self.sleep(self.step)
        calls.append(self.lead(leader, *followers) if plan is None else self.sync(leader, plan))
        for call in calls:
            body = await call
            self.need(body["error_code"] == 0, f"SyncGroup got {error_name(body['error_code'])}")

    async def regroup(self, leader: Member, *followers: Member) -> list[Call]:
        """A further join phase of a Stable group, begun by its leader; the answered calls in the order given."""
        calls = [self.join(leader)]
        await self.sleep(self.step)
        calls += [self.join(follower) for follower in followers]
        for call in calls:
            await call
        return calls

    async def alive(self, members: Iterable[Member], milliseconds: int) -> None:
        """Let time pass while members heartbeat often enough to stay."""
        left = milliseconds
        while left > 0:
            pause = min(left, max(100, self.session // 4))
            await self.sleep(pause)
            left -= pause
            for call in [self.heartbeat(member) for member in members]:
                await call

    async def restart(self, **settings: int) -> None:
        """Kill the target without warning and wait until it is back and has loaded the group.

        `settings` change with it where the target can do that (capability `resize`).
        """
        if self._restart is None:
            raise Unsupported("restart")
        await self._restart(**settings)
        await self.until_ready()

    async def until_ready(self) -> None:
        """Wait until the group's coordinator answers for it again."""
        for _ in range(READY_TRIES):
            probe = self.fetch()
            await asyncio.wait([probe.exchange.answer], timeout=probe.patience / 1000)
            if probe.done and probe.exchange.answer.result() and not errors_in(probe.body) & NOT_READY:
                return
            await self.sleep(250)
        raise Blocked("the coordinator was not ready again in time")
