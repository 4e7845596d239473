"""The context of a scenario: the group under test, its members, the requests they send, and the checks.

A scenario only sends requests and checks responses. A check says that a response is evidence of a requirement; the
judge weighs the evidence after the scenario has ended.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from fencepost.adapters.address import TargetError
from fencepost.conformance.run.requests import (
    CONSUMER,
    RANGE,
    RESPONSE_TIMEOUT_MS,
    AdminRequests,
    Blocked,
    Call,
    Check,
    Member,
    MembershipRequests,
    OffsetRequests,
    Unanswered,
    Unsupported,
)
from fencepost.conformance.subject import CheckedScenarios
from fencepost.model.errors import COORDINATOR_NOT_READY, TRANSIENT_ERRORS, Error, error_name
from fencepost.traces.events import Kind
from fencepost.traces.judge.diagnosis.diagnosis import errors_in
from fencepost.traces.judge.groups.group_judge import SILENCE_GRACE_MS

OneOrMore = str | tuple[str, ...]

REJOIN_ERRORS = TRANSIENT_ERRORS | {
    Error.MEMBER_ID_REQUIRED,
    Error.UNKNOWN_MEMBER_ID,
    Error.ILLEGAL_GENERATION,
    Error.REBALANCE_IN_PROGRESS,
}
"""After these errors to a JoinGroup or SyncGroup a client joins again."""
MAX_REJOINS = 3
"""How often each of the members that are brought together rejoins; how long their requests wait does not count."""
MAX_ROUNDS = 3
"""How often members that are told to rejoin when they sync are brought together."""
PREPARING = "PreparingRebalance"
"""The state in which a group waits for JoinGroup requests, as DescribeGroups names it."""
MAX_STATE_POLLS = 8
"""How often a scenario asks for a state before it goes on without it."""
MAX_READY_ATTEMPTS = 120
"""How often a restarted target is asked whether it is ready."""


class ScenarioContext(MembershipRequests, OffsetRequests, AdminRequests):
    """The group under test of one scenario. Every scenario has a group id of its own."""

    # --- members ------------------------------------------------------------------------------------------------

    def member(
        self,
        label: str,
        *protocols: tuple[str, bytes] | str,
        session_timeout: int | None = None,
        rebalance_timeout: int | None = None,
        instance: str | None = None,
        protocol_type: str = CONSUMER,
    ) -> Member:
        """A new member that offers the protocols: names, or pairs of name and metadata; none stand for `range`.

        Metadata default to a subscription to the kit's topic. Timeouts are in milliseconds: the session outlasts the
        scenario unless another is given, so that no expiry explains a response, and the rebalance timeout is short.
        `instance` makes it a static member.
        """
        offered = tuple(
            (protocol, self.metadata(label)) if isinstance(protocol, str) else protocol
            for protocol in protocols or (RANGE,)
        )
        if rebalance_timeout is None:
            rebalance_timeout = max(2 * (session_timeout or 0), self.rebalance_timeout)
        if session_timeout is None:
            session_timeout = self.long_session_timeout
        instance_id = f"{instance}-{self.group_id}" if instance else None
        return Member(label, offered, session_timeout, rebalance_timeout, instance_id, protocol_type)

    def patient_member(self, label: str) -> Member:
        """A new member whose rebalance timeout outlasts a dozen slow responses: for scenarios that ask in every version
        before it syncs."""
        return self.member(label, rebalance_timeout=3 * self.rebalance_timeout)

    def expiring_member(
        self, label: str, *, rebalance_timeout: int | None = None, instance: str | None = None
    ) -> Member:
        """A new member with the shortest session that outlasts a rebalance: for scenarios about its expiry alone."""
        return self.member(
            label, session_timeout=self.session_timeout, rebalance_timeout=rebalance_timeout, instance=instance
        )

    def replacement_of(self, member: Member) -> Member:
        """A new member with the instance id of a static member, as its process has after a crash."""
        return replace(member, label=f"{member.label}'", id="", generation=-1, protocol=None, leader=None, members=())

    # --- states of the group ------------------------------------------------------------------------------------

    async def form_generation(self, *members: Member) -> tuple[Member, ...]:
        """Bring members, new ones or not, into one generation that awaits SyncGroup; returns them, the leader first.

        Raises `Blocked` if they do not reach one generation with one leader.
        """
        if len(members) > self.settings.max_group_size:
            raise Unsupported(f"groups of {len(members)} members")
        calls = await asyncio.gather(*(self.join_or_rejoin(member) for member in members))
        patience = max(call.timeout for call in calls)
        rejoins, silence = MAX_REJOINS * len(members), 0
        while rejoins > 0 and silence < patience:
            waiting = [call.exchange.response for call in calls if not call.done]
            behind = self.find_behind(members, calls)
            if not waiting and not behind:
                break
            # Those that wait may wait for a member that has a response, which may not come too late.
            turn = 500 if behind else self.initial_delay + 500
            if waiting:
                await asyncio.wait(waiting, timeout=turn / 1000, return_when=asyncio.FIRST_COMPLETED)
            is_silent = not any(response.done() for response in waiting)
            await self.sleep(self.short_pause)
            behind = self.find_behind(members, calls)
            for index in behind:
                self.forget_unknown_id(members[index], calls[index])
                calls[index] = self.join(members[index])
            rejoins -= len(behind)
            silence = silence + turn if is_silent and not behind else 0
        for call in calls:
            body = await call
            self.require(
                body["error_code"] == 0, f"JoinGroup got {error_name(body['error_code'])} while forming a group"
            )
        self.require(len({member.generation for member in members}) == 1, "the members did not reach one generation")
        self.require(sum(member.is_leader for member in members) == 1, "not exactly one member was told that it leads")
        return tuple(sorted(members, key=lambda member: not member.is_leader))

    async def join_or_rejoin(self, member: Member) -> Call:
        """Join as a new member if it has no id, else with its id; returns the call, to await."""
        return self.join(member) if member.id else await self.join_new(member)

    @staticmethod
    def find_behind(members: Sequence[Member], calls: Sequence[Call]) -> list[int]:
        """Which members were told to rejoin, or have a response while a newer generation has formed or begun."""
        newest = max(member.generation for member in members)
        is_under_way = any(not call.done for call in calls)
        return [
            index
            for index, (member, call) in enumerate(zip(members, calls, strict=True))
            if call.done
            and call.exchange.response.result()
            and (call.error in REJOIN_ERRORS or member.generation < newest or is_under_way)
        ]

    @staticmethod
    def forget_unknown_id(member: Member, call: Call) -> None:
        """Have a member forget its id, as any client does, if a response does not know it."""
        if call.error == Error.UNKNOWN_MEMBER_ID:
            member.id = ""

    async def form_led_generation(self, leader: Member, follower: Member) -> None:
        """Bring two new members into one generation that awaits SyncGroup, the first of them as its leader.

        Raises `Blocked` if another one leads.
        """
        await self.form_stable_group(leader)
        newcomer = await self.join_new(follower)
        await self.sleep(self.short_pause)
        await self.join(leader)
        await newcomer
        self.require(leader.generation == follower.generation, "the members did not reach one generation")
        self.require(leader.is_leader and not follower.is_leader, "the first member does not lead")

    async def form_stable_group(self, *members: Member) -> tuple[Member, ...]:
        """Bring new members into one Stable generation; returns them, the leader first.

        Members that are told to rejoin when they sync do so. Raises `Blocked` if they are told so again and again.
        """
        for _ in range(MAX_ROUNDS):
            ordered = await self.form_generation(*members)
            calls = await self.sync_members(*ordered)
            if not any(call.error in REJOIN_ERRORS for call in calls):
                break
            for member, call in zip((*ordered[1:], ordered[0]), calls, strict=True):
                self.forget_unknown_id(member, call)
        self.require_synced(calls)
        return ordered

    async def sync_all(self, leader: Member, *followers: Member, plan: Mapping[str, bytes] | None = None) -> None:
        """Send SyncGroup for all members of a completed join phase, the leader last, and await successes.

        `plan` is the assignment by member id (None: the labels of the members).
        """
        self.require_synced(await self.sync_members(leader, *followers, plan=plan))

    async def sync_members(
        self, leader: Member, *followers: Member, plan: Mapping[str, bytes] | None = None
    ) -> list[Call]:
        """Send SyncGroup for all members, the leader last, and await the responses; returns the calls in this order."""
        calls = [self.sync(follower) for follower in followers]
        if followers:
            await self.sleep(self.short_pause)
        calls.append(self.sync_leader(leader, *followers) if plan is None else self.sync(leader, plan))
        for call in calls:
            await call
        return calls

    def require_synced(self, calls: Iterable[Call]) -> None:
        """Raise `Blocked` unless each SyncGroup succeeded."""
        for call in calls:
            self.require(call.error == 0, f"SyncGroup got {error_name(call.error)}")

    async def rebalance(self, leader: Member, *followers: Member) -> list[Call]:
        """Run another join phase of a Stable group, begun by its leader; returns the calls, all with responses."""
        calls = [self.join(leader)]
        await self.sleep(self.short_pause)
        calls += [self.join(follower) for follower in followers]
        for call in calls:
            await call
        return calls

    async def keep_alive(self, members: Iterable[Member], milliseconds: int) -> None:
        """Wait for that long while the members heartbeat often enough to keep their sessions."""
        left = milliseconds
        while left > 0:
            pause = min(left, max(100, self.session_timeout // 4))
            await self.sleep(pause)
            left -= pause
            for call in [self.heartbeat(member) for member in members]:
                await call

    async def keep_when_empty(self) -> None:
        """Commit an offset, so that no clean-up pass removes the group once its last member is gone."""
        if "OffsetCommit" in self.description.versions:
            await self.commit(None, {0: 0})

    async def wait_for_state(self, state: str) -> bool:
        """Wait until DescribeGroups shows the group in the state: requests that lead there are then handled.

        Returns False if the state does not come or the target lacks DescribeGroups.
        """
        for _ in range(MAX_STATE_POLLS):
            await self.sleep(self.short_pause)
            if "DescribeGroups" not in self.description.versions:
                return False
            body = await self.describe_groups()
            if any(row.get("group_state") == state for row in body.get("groups") or ()):
                return True
        return False

    async def restart(self, **settings: int) -> None:
        """Kill the target without warning, restart it, and wait until it has loaded the group.

        `settings` are in force from then on (capability `resize`). Raises `Unsupported` if it cannot be restarted.
        """
        if self.restart_hook is None:
            raise Unsupported("restart")
        await self.restart_hook(**settings)
        await self.wait_until_ready()

    async def move(self) -> None:
        """Have another node coordinate the group while its old one stays up, and wait until all nodes know and the new
        one has loaded the group. Raises `Unsupported` if it cannot be moved."""
        if self.move_hook is None:
            raise Unsupported("graceful-move")
        await self.move_hook(self.group_id)
        await self.sleep(self.grace)
        await self.wait_until_ready()

    async def wait_until_ready(self) -> None:
        """Wait until the coordinator of the group responds without an error. Raises `Blocked` if it does not."""
        for _ in range(MAX_READY_ATTEMPTS):
            probe = self.fetch()
            await asyncio.wait([probe.exchange.response], timeout=probe.timeout / 1000)
            if probe.done and probe.exchange.response.result() and not errors_in(probe.body) & COORDINATOR_NOT_READY:
                return
            await self.sleep(250)
        raise Blocked("the coordinator was not ready again in time")

    async def seek_sign_of_life(self) -> None:
        """Send a request that changes nothing of the group, and wait for its response.

        Beside a sign of life, the silence about an earlier request is evidence.
        """
        await self.sleep(max(0, SILENCE_GRACE_MS + self.grace - RESPONSE_TIMEOUT_MS))
        try:
            probe = self.describe_groups() if "DescribeGroups" in self.description.versions else self.fetch()
        except (Unsupported, TargetError):
            return
        await asyncio.wait([probe.exchange.response], timeout=probe.timeout / 1000)

    # --- checks -------------------------------------------------------------------------------------------------

    async def check(
        self,
        requirements: OneOrMore,
        call: Call,
        *,
        fields: OneOrMore = (),
        reached: bool = True,
        note: str = "",
        unusual: str = "",
    ) -> None:
        """Await the response of a call and add a check of it; `add_check` explains the arguments.

        Raises `Blocked` if no response comes; there is a check all the same, as the silence may be wrong.
        """
        try:
            await call
        finally:
            self.add_check(requirements, call, fields=fields, reached=reached, note=note, unusual=unusual)

    async def check_versions(
        self,
        requirements: OneOrMore,
        call: Call,
        *,
        since: int = 0,
        until: int = 99,
        fields: OneOrMore = (),
        reached: bool = True,
    ) -> None:
        """Check a call, and the same request in each other version between the bounds that the target offers.

        It has to be a request that may be sent again: one that is refused, or that leaves the group as it is, and so at
        once. An API is asked in its other versions the first time that the scenario calls this for the requirements.
        """
        others = sorted(set(self.offered_versions(call.api, since, until)) - {call.version})
        is_first = (requirements, call.api) not in self.asked_in_versions
        self.asked_in_versions.add((requirements, call.api))
        for version in (call.version, *(others if is_first else ())):
            begun = self.now_ms
            asked = call if version == call.version else call.send_in(version)
            await self.check(requirements, asked, fields=fields, reached=reached)
            if self.now_ms - begun > self.grace:
                break  # a target that lets the request wait has taken it

    def add_check(
        self,
        requirements: OneOrMore,
        call: Call,
        *,
        fields: OneOrMore = (),
        reached: bool = True,
        note: str = "",
        unusual: str = "",
    ) -> None:
        """Declare the response of a call, received or awaited elsewhere, evidence of each of the requirements.

        The check passes if the model allows the response. `fields` limits it to mismatches in these fields of the
        response ("error", "generation", "members", "time", ...); empty stands for all. `reached` is False if the
        schedule missed the situation that the requirement is about: the requirement then counts as not observed,
        never as failed, and `note` says why. `unusual` describes an allowed response that is not as it should be.
        """
        names = (fields,) if isinstance(fields, str) else fields
        for requirement in (requirements,) if isinstance(requirements, str) else requirements:
            self.checks.append(Check(requirement, call, names, reached, note, unusual))

    async def check_refused_or_closed(self, requirement: str, call: Call, *, reached: bool, note: str) -> None:
        """Wait for the end of a request, and add a check that it is refused, or that the target closes its connection.

        Raises `Unanswered` if it does not end.
        """
        try:
            await call
        except Unanswered:
            raise
        except Blocked:
            self.checks.append(Check(requirement, call, ("error",), reached, note, may_close=True))
        else:
            self.add_check(requirement, call, fields="error", reached=reached, note=note)

    async def check_join_new(self, requirements: OneOrMore, member: Member) -> Call:
        """Join as a new member; returns the last call, to await. If that takes two steps, the error of the first is
        evidence of each of the requirements, and the last call where it is not MEMBER_ID_REQUIRED."""
        first = self.join(member)
        if self.highest_version("JoinGroup") < 4:
            return first
        await self.check(requirements, first, fields="error")
        return self.join(member) if first.error == Error.MEMBER_ID_REQUIRED else first

    async def check_rebalance_started(
        self, requirement: str, *, observer: Member, request: Callable[[Member], Call] | None = None
    ) -> None:
        """Check that a request of an established member gets REBALANCE_IN_PROGRESS, as soon as a rebalance is seen.

        `request` sends it (None: Heartbeat). If neither DescribeGroups nor the response shows a rebalance, the
        requirement counts as not reached.
        """
        is_preparing = await self.wait_for_state(PREPARING)
        call = (request or self.heartbeat)(observer)
        body = await call
        is_reached = is_preparing or body["error_code"] == Error.REBALANCE_IN_PROGRESS
        self.add_check(requirement, call, reached=is_reached)

    def record_checks(self) -> None:
        """Append the checks to the trace, behind the responses that they are about."""
        for check in self.checks:
            request = check.call.exchange.request
            if request is not None:
                body = {
                    "requirement": check.requirement,
                    "fields": list(check.fields),
                    "met": check.reached,
                    "note": check.note,
                    **({"unusual": check.unusual} if check.unusual else {}),
                    **({"may_close": True} if check.may_close else {}),
                }
                self.recorder.record(Kind.INTERNAL, "check", 0, body, of=request.sequence)


ScenarioFunction = Callable[[ScenarioContext], Coroutine[Any, Any, None]]
ScenarioFamily: TypeAlias = CheckedScenarios[ScenarioFunction]
"""The scenarios of one module that test a coordinator."""
