"""Schedules that a test writes step by step: members, requests and pauses; the model judges the responses."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from fencepost.conformance.analysis.failures import Origin, build_failure
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.requests import Call, Member
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.conformance.testing.case import Undecided, make_violation
from fencepost.conformance.testing.runs import FailedRequirement
from fencepost.model.errors import Error
from fencepost.model.wire.compiler import default_of, schema_of
from fencepost.traces.verdict import CheckResult, TraceVerdict, violations_in

MAX_RESPONSE_MS = 10_000
"""How long a schedule waits for a response before it goes on without it."""


PlaySchedule: TypeAlias = Callable[[Scenario], ScenarioRun]
"""Plays a schedule on the target of a test, in a group of its own, and judges its trace. Raises `TargetError`."""


@dataclass(frozen=True, slots=True)
class MemberValue:
    """A value that is known when a schedule is played: the `id` or the `generation` of a member, the `earlier id` that
    it got as its number `offset`, or the `group` or the `topic id` of the schedule."""

    label: str
    name: str
    offset: int = 0

    def __add__(self, other: int) -> "MemberValue":
        return MemberValue(self.label, self.name, self.offset + other)

    def __sub__(self, other: int) -> "MemberValue":
        return self + -other


@dataclass(slots=True)
class PlayedSchedule:
    """A schedule that is being played: its context, its members by label, and its requests by their number."""

    context: ScenarioContext
    members: dict[str, Member] = field(default_factory=dict)
    calls: dict[int, Call] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)
    """The ids that each member got, in order."""

    def resolve(self, value: Any) -> Any:
        """A field of a request with the values of members put in."""
        if isinstance(value, MemberValue):
            return self.value_of(value)
        if isinstance(value, Mapping):
            return {name: self.resolve(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.resolve(each) for each in value]
        return value

    def value_of(self, wanted: MemberValue) -> Any:
        """A value of the target, as it is now."""
        match wanted.name:
            case "group":
                return self.context.group_id
            case "topic id":
                return self.context.description.topic_id
            case "earlier id":
                known = self.ids.get(wanted.label, [])
                return known[wanted.offset] if wanted.offset < len(known) else ""
        found = getattr(self.members[wanted.label], wanted.name)
        return found + wanted.offset if wanted.offset else found

    async def settle(self, call: Call, parks: bool) -> None:
        """Wait for the response of a request, unless the schedule goes on without it."""
        if not parks:
            await asyncio.wait([call.exchange.response], timeout=MAX_RESPONSE_MS / 1000)
        await self.let_happen()

    async def let_happen(self) -> None:
        """Let happen what is due now, and learn the ids that members got."""
        for _ in range(3):
            await asyncio.sleep(0)
        for label, member in self.members.items():
            known = self.ids.setdefault(label, [])
            if member.id and member.id not in known:
                known.append(member.id)


ScheduleStep: TypeAlias = Callable[[PlayedSchedule], Awaitable[None]]
Fields: TypeAlias = Any
"""Fields of a request in the place of those that the member would send."""


class SentRequest:
    """A request of a schedule."""

    def __init__(self, schedule: "GroupSchedule", number: int) -> None:
        self._schedule = schedule
        self._number = number

    def drop(self) -> None:
        """Close the connection of the request, as a client does that goes away."""

        async def step(played: PlayedSchedule) -> None:
            played.calls[self._number].drop_connection()

        self._schedule._steps.append(step)


class ScheduleMember:
    """A member of the group in a schedule. Each method adds a step; `fields` replace fields of the request.

    A step waits for the response; with `parks` the schedule goes on at once, as for a JoinGroup that has to wait for
    other members.
    """

    def __init__(self, schedule: "GroupSchedule", label: str) -> None:
        self._schedule = schedule
        self._label = label

    @property
    def id(self) -> Any:
        """Its member id at that time, for fields of other requests."""
        return MemberValue(self._label, "id")

    def earlier_id(self, number: int) -> Any:
        """One of the member ids that it got, counted from 0."""
        return MemberValue(self._label, "earlier id", number)

    @property
    def generation(self) -> Any:
        """Its generation at that time, for fields of other requests; `generation - 1` is an older one."""
        return MemberValue(self._label, "generation")

    def join(self, *, parks: bool = False, **fields: Fields) -> None:
        """Send JoinGroup, and once more with the member id if the target asks for that (KIP-394)."""

        async def step(played: PlayedSchedule) -> None:
            member = played.members[self._label]
            call = played.context.join(member, **played.resolve(fields))
            await played.settle(call, parks=True)
            if call.done and call.exchange.response.result() and call.error == Error.MEMBER_ID_REQUIRED:
                call = played.context.join(member, **played.resolve(fields))
            await played.settle(call, parks)

        self._schedule._steps.append(step)

    def send(self, api: str, **fields: Fields) -> SentRequest:
        """Send one request of an API, with the fields that the member would send; see `GroupSchedule.send`."""
        return self._schedule.send(api, member=self._label, **fields)

    def sync(self, *, parks: bool = False, **fields: Fields) -> SentRequest:
        """Send SyncGroup; a leader assigns each member of its generation the member's id."""
        return self.send("SyncGroup", parks=parks, **fields)

    def heartbeat(self, **fields: Fields) -> SentRequest:
        """Send Heartbeat."""
        return self.send("Heartbeat", **fields)

    def leave(self, **fields: Fields) -> SentRequest:
        """Send LeaveGroup."""
        return self.send("LeaveGroup", **fields)

    def commit(self, offsets: Mapping[int, int] | None = None, **fields: Fields) -> SentRequest:
        """Send OffsetCommit for partitions of the topic (None: offset 1 for partition 0)."""
        return self.send("OffsetCommit", offsets=dict(offsets or {0: 1}), **fields)


class GroupSchedule:
    """A schedule for one group, as `fencepost_schedule` gives it. Steps are added one by one and played by `check`."""

    def __init__(self, play: PlaySchedule, node: str = "", save: Path | None = None) -> None:
        self._play_on_target = play
        self._node = node
        self._save = save
        self._steps: list[ScheduleStep] = []
        self._labels: set[str] = set()
        self._requests = 0

    @property
    def group(self) -> Any:
        """The id of the group, for fields of requests."""
        return MemberValue("", "group")

    @property
    def topic_id(self) -> Any:
        """The id of the topic (KIP-516), for fields of requests."""
        return MemberValue("", "topic id")

    def member(
        self,
        label: str,
        *protocols: tuple[str, bytes] | str,
        session_timeout: int | None = None,
        rebalance_timeout: int | None = None,
        instance: str | None = None,
    ) -> ScheduleMember:
        """A new member, which has not joined yet. For the arguments see `ScenarioContext.member`; times are in
        milliseconds, and the session is short unless another is given.

        Raises `ValueError` for a label that is taken.
        """
        if label in self._labels:
            raise ValueError(f"the schedule has a member {label!r} already; give this one another label")
        self._labels.add(label)

        async def step(played: PlayedSchedule) -> None:
            played.members[label] = played.context.member(
                label,
                *protocols,
                session_timeout=session_timeout or played.context.session_timeout,
                rebalance_timeout=rebalance_timeout,
                instance=instance,
            )

        self._steps.append(step)
        return ScheduleMember(self, label)

    def form_stable_group(self, *members: ScheduleMember) -> None:
        """Bring new members into one Stable generation."""

        async def step(played: PlayedSchedule) -> None:
            await played.context.form_stable_group(*(played.members[member._label] for member in members))

        self._steps.append(step)

    def wait(self, milliseconds: int) -> None:
        """Let so much time pass, on the clock of the target."""

        async def step(played: PlayedSchedule) -> None:
            await played.context.sleep(milliseconds)
            await played.let_happen()

        self._steps.append(step)

    def wait_for_responses(self) -> None:
        """Wait for the responses to all requests in flight, for each as long as it may be parked."""

        async def step(played: PlayedSchedule) -> None:
            for call in played.calls.values():
                await asyncio.wait([call.exchange.response], timeout=call.timeout / 1000)
            await played.let_happen()

        self._steps.append(step)

    def restart(self, **settings: int) -> None:
        """Kill the target without warning and start it again."""

        async def step(played: PlayedSchedule) -> None:
            if played.context.restart_hook is not None:
                await played.context.restart_hook(**settings)

        self._steps.append(step)

    def send(
        self,
        api: str,
        *,
        member: str = "",
        parks: bool = False,
        share: int | None = None,
        checks: Sequence[str] = (),
        **fields: Fields,
    ) -> SentRequest:
        """Send one request, of the member with this label or of nobody in particular; `version` chooses a version.

        With `parks` the schedule goes on without the response. With a `share`, only so many percent of the bytes are
        sent before the connection is cut. `checks` is the id of the requirement that the response is about, and the
        fields of the response that matter (none: all): if the response is wrong, this requirement is named.
        """
        number = self._requests
        self._requests += 1

        async def step(played: PlayedSchedule) -> None:
            played.context.share = share
            try:
                call = send_request(played, api, member, played.resolve(fields))
            finally:
                played.context.share = None
            played.calls[number] = call
            if checks:
                played.context.add_check(checks[0], call, fields=tuple(checks[1:]))
            await played.settle(call, parks)

        self._steps.append(step)
        return SentRequest(self, number)

    def check(self) -> TraceVerdict:
        """Play the schedule and have the model judge every response.

        Raises `Violation` for the first that the model does not allow, if that is seen again when the schedule is
        played once more. The test is skipped if the target does not offer what the schedule needs.
        """
        __tracebackhide__ = True
        scenario = Scenario("schedule", (), self._play)
        run = self._play_on_target(scenario)
        first = first_violation(run.verdict)
        if first is not None:
            if first.requirement not in self._play_on_target(scenario).verdict.violated:
                raise Undecided(f"{first.requirement} was violated once and not when the schedule was played again")
            failure = build_failure(run.events, first, Origin("", ""), replayed=True, header=run.header)
            finding = FailedRequirement(first.requirement, failure)
            raise make_violation(finding)
        if run.unsupported:
            pytest.skip(run.unsupported)
        if run.blocked or run.verdict.inconclusive:
            raise Undecided(f"undecided: {run.blocked or run.verdict.inconclusive[0]}")
        return run.verdict

    async def _play(self, context: ScenarioContext) -> None:
        played = PlayedSchedule(context)
        for step in self._steps:
            await step(played)


def first_violation(verdict: TraceVerdict) -> CheckResult | None:
    """The first violation of a trace; of several in one response that which a check is about."""
    return min(violations_in(verdict), key=lambda each: (each.sequence, not each.is_checked), default=None)


def send_request(played: PlayedSchedule, api: str, label: str, fields: dict[str, Any]) -> Call:
    """Send a request of a member, or of nobody if the label is empty."""
    context, member = played.context, played.members.get(label)
    if api == "OffsetCommit":
        return context.commit(member, fields.pop("offsets", {0: 1}), **fields)
    if member is not None:
        match api:
            case "JoinGroup":
                return context.join(member, **fields)
            case "SyncGroup":
                ids = [row["member_id"] for row in member.members] if member.is_leader else []
                usual = [{"member_id": id, "assignment": id.encode()} for id in ids]
                rows = fields.pop("assignments", usual)
                return context.sync(member, [(row["member_id"], row["assignment"]) for row in rows], **fields)
            case "Heartbeat":
                return context.heartbeat(member, **fields)
            case "LeaveGroup":
                return context.leave(member, **fields)
    version = fields.pop("version", None)
    if version is None:
        version = context.highest_version(api)
    own = {"group_id": context.group_id, "groups": [context.group_id] if api == "DescribeGroups" else []}
    body = {name: own.get(name) or default for name, default in default_fields(api, version)}
    return context.send(api, body | fields, version=version, member=label)


def default_fields(api: str, version: int) -> Iterator[tuple[str, Any]]:
    """The fields of a request of a version that are not tagged, each with its default."""
    for each in schema_of(f"{api}Request", version).fields:
        if version in each.versions and each.tag is None:
            yield each.name, default_of(each, version)
