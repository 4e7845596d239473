"""A target that goes down: noticing it, starting it again, and the request that brought it down.

When a target goes down, it takes every connection with it, so that all requests in flight are suspect. Once it is up
again each of them is sent alone, those first that were sent last. The one after which it is down again is the culprit:
the target cannot be left to anybody who may send that request. If none is, the state of its group is needed as well;
which scenario brings that about the pool finds out (`pool`).
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fencepost.adapters.address import TargetError
from fencepost.adapters.target import SendOptions, TraceBuilder
from fencepost.conformance.analysis.failures import MemberLabels, Origin, excerpt_of, schedule_lines
from fencepost.conformance.results import WENT_DOWN, Failure
from fencepost.conformance.run.protocol import RemoteTarget
from fencepost.conformance.subject import ScenarioRun
from fencepost.traces.events import Event, Kind

# -- noticing that a target went down ---------------------------------------------------------------------------------

DISCONNECT_FAULTS = frozenset({"closed", "unreachable"})
"""Faults that a target leaves in traces when it goes down."""
MAX_REVIVALS = 60
"""How often a target is started again before the run ends."""
MAX_REVIVING_S = 300.0
"""How long starting it again may take in all, in seconds."""
MAX_SUSPECTS = 12
"""How many requests are sent alone after a crash."""
TRIAL_S = 0.5
"""How long a suspect that gets no response is waited for: the target may be about to go down."""
MAX_VALUE = 240
"""How many characters a value of a request is told with."""
SENDER_FIELDS = frozenset({"group_id", "member_id", "group_instance_id"})


@dataclass(frozen=True, slots=True)
class ConnectionLosses:
    """The lost connections of a scenario: `lost_at` is when the first one was lost, in seconds of the event loop;
    `reason` says why the target could not be reached any more, "" if that was not tried."""

    lost_at: float
    scenario: str
    reason: str


@dataclass(frozen=True, slots=True)
class CutRequest:
    """A request of a run that had no response when the target went down; it was sent at so many seconds of the event
    loop."""

    run: ScenarioRun
    request: Event
    sent_at: float

    def describe(self) -> str:
        """The request with all of its fields."""
        fields = (f"{name}={abbreviate_value(value)}" for name, value in self.request.body.items())
        return f"{self.request.api} v{self.request.version} {', '.join(fields)}"

    def signature(self) -> tuple[str, int, str]:
        """What requests have in common that differ in their senders alone."""
        body = {name: value for name, value in self.request.body.items() if name not in SENDER_FIELDS}
        return self.request.api, self.request.version, repr(body)


@dataclass(frozen=True, slots=True)
class Crash:
    """The target went down: the requests that were unanswered, and the one of them that brings it down again when it is
    sent alone, None if none does or it could not be tried."""

    requests: tuple[CutRequest, ...]
    culprit: CutRequest | None = None


def abbreviate_value(value: object) -> str:
    """A value of a request as it is written in Python; the beginning of a long one, and how long that is."""
    text = repr(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}... ({len(text):,} characters)"


class TargetGone(Exception):
    """The target is gone and cannot be started again.

    The message says why. `losses` are those of the scenarios that noticed, the first one first; `last_sign` is when the
    target responded for the last time, in seconds of the event loop, None if it never did.
    """

    def __init__(self, reason: str, losses: Sequence[ConnectionLosses] = (), last_sign: float | None = None) -> None:
        super().__init__(reason)
        self.losses = tuple(losses)
        self.last_sign = last_sign


class CrashMonitor:
    """Whether a target is down, how often it went down, and the scenarios that were being played when it did."""

    def __init__(self, target: RemoteTarget, *, can_restart: bool) -> None:
        self.target = target
        self.can_restart = can_restart
        self.is_gone = asyncio.Event()
        """Set while the target is down."""
        self.crashing_scenarios: set[str] = set()
        self.last_sign: float | None = None
        """When the target responded for the last time, in seconds of the event loop."""
        self.losses: list[ConnectionLosses] = []
        """Of the scenarios that were being played when the target went down."""
        self.suspects: list[CutRequest] = []
        """The requests that were unanswered when it went down."""
        self.crashes: list[Crash] = []
        self._revivals = 0
        self._reviving_s = 0.0
        self._lock = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        self._is_restarting = False

    @property
    def is_down(self) -> bool:
        """Whether the target is down."""
        return self.is_gone.is_set()

    def on_fault(self, fault: Event) -> None:
        """Look whether the target is down, if a trace has a fault that says so, and nobody is looking."""
        is_looking = self._looking is not None and not self._looking.done()
        if fault.api in DISCONNECT_FAULTS and not (is_looking or self.is_down or self._is_restarting):
            self._looking = asyncio.create_task(self.look())

    async def look(self) -> None:
        """Note that the target is down if it does not respond."""
        if not await self.target.is_alive() and not self._is_restarting:
            self.is_gone.set()

    async def restart(self) -> None:
        """Kill the target and start it again; if it is down, it is started again once it is known why. Raises
        `TargetError` and `TargetGone`."""
        if await self.revive() is None:
            await self._restart()

    async def _restart(self) -> None:
        self._is_restarting = True
        try:
            await self.target.restart()
        finally:
            self._is_restarting = False
        self.is_gone.clear()

    async def went_down(self, run: ScenarioRun, begun: float = 0.0) -> bool:
        """Whether a run may have brought the target down: it lost a connection, and the target does not respond any
        more. The run began at `begun` seconds of the event loop."""
        events = run.events
        signs = [begun + event.time / 1000 for event in events if event.kind is Kind.RESPONSE]
        self.last_sign = max(signs if self.last_sign is None else (self.last_sign, *signs), default=None)
        if not disconnections(events) and run.blocked != WENT_DOWN:
            return False
        if not self.is_down and not await self.target.is_alive():
            self.is_gone.set()
        if self.is_down:
            self.losses.append(connection_losses(events, run.scenario.name, begun))
            self.suspects += (
                CutRequest(run, request, begun + request.time / 1000) for request in requests_cut_off(events)
            )
        return self.is_down

    async def revive(self) -> Crash | None:
        """Start the target again if it is down, and find out what brought it down. Raises `TargetGone` if the profile
        does not say how to start it, if that fails, and if it went down too often."""
        async with self._lock:
            if not self.is_down:
                return None
            suspects, self.suspects = distinct_suspects(self.suspects), []
            try:
                await self._start()
                culprit = await self._find_culprit(suspects)
            except TargetGone:
                self.crashes.append(Crash(suspects))
                raise
            self.crashes.append(Crash(suspects, culprit))
            self.losses.clear()
            return self.crashes[-1]

    async def _start(self) -> None:
        losses = sorted(self.losses, key=lambda each: each.lost_at)
        reasons = [each.reason for each in losses if each.reason] or ["it responds on no new connection"]
        if not self.can_restart:
            raise TargetGone(f"the target stopped answering: {reasons[-1]}", losses, self.last_sign)
        if self._revivals >= MAX_REVIVALS or self._reviving_s >= MAX_REVIVING_S:
            told = f"the target went down {self._revivals + 1} times; starting it again took {self._reviving_s:.0f} s"
            raise TargetGone(told, losses, self.last_sign)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            await self._restart()
        except TargetError as error:
            told = f"the target stopped answering and could not be started again: {error}"
            raise TargetGone(told, losses, self.last_sign) from error
        self._revivals += 1
        self._reviving_s += loop.time() - begun

    async def _find_culprit(self, suspects: Iterable[CutRequest]) -> CutRequest | None:
        """The first of the suspects that brings the target down alone; it is up again afterwards."""
        for suspect in suspects:
            if await self._kills(suspect.request):
                self.is_gone.set()
                await self._start()
                return suspect
        return None

    async def _kills(self, request: Event) -> bool:
        """Whether the target is down after a request."""
        channel = self.target.channel(TraceBuilder(lambda: 0))
        try:
            with suppress(TargetError):
                sent = channel.send(request.api, request.version, request.body, SendOptions(request.member))
                await asyncio.wait([sent.response], timeout=TRIAL_S)
                if sent.response.done() and sent.response.result() is not None:
                    return False
            return not await self.target.is_alive()
        finally:
            await channel.close()


def distinct_suspects(suspects: Iterable[CutRequest]) -> tuple[CutRequest, ...]:
    """The first of suspects that differ in more than their senders, those first that were sent last."""
    found: dict[Any, CutRequest] = {}
    for suspect in sorted(suspects, key=lambda each: -each.sent_at):
        found.setdefault(suspect.signature(), suspect)
    return tuple(found.values())[:MAX_SUSPECTS]


def disconnections(events: Iterable[Event]) -> list[Event]:
    """The faults that say that the target closed a connection or could not be reached."""
    return [event for event in events if event.kind is Kind.FAULT and event.api in DISCONNECT_FAULTS]


def last_disconnections(events: Sequence[Event]) -> list[Event]:
    """The disconnections of a trace; those before its last response do not count if there are later ones."""
    faults = disconnections(events)
    heard = max((event.sequence for event in events if event.kind is Kind.RESPONSE), default=-1)
    return [fault for fault in faults if fault.sequence > heard] or faults


def requests_cut_off(events: Sequence[Event]) -> list[Event]:
    """The requests whose connections the target closed at the end of a trace."""
    lost = {fault.of for fault in last_disconnections(events) if fault.api == "closed"}
    return [event for event in events if event.kind is Kind.REQUEST and event.sequence in lost]


def connection_losses(events: Sequence[Event], scenario: str, begun: float) -> ConnectionLosses:
    """The lost connections of a scenario whose trace began at `begun` seconds."""
    last = last_disconnections(events)
    unreachable = [str(fault.body.get("reason", "unreachable")) for fault in last if fault.api == "unreachable"]
    reason = f"{unreachable[-1]} since" if unreachable else ""
    first = next(iter((*last, *events[-1:])), None)
    return ConnectionLosses(begun + (first.time / 1000 if first is not None else 0.0), scenario, reason)


# -- what the report says of it ---------------------------------------------------------------------------------------

ANY_RESPONSE = "any response: no request may bring a coordinator down"


def failures_of(crashes: Sequence[Crash], origins: Mapping[str, Origin]) -> tuple[Failure, ...]:
    """The failures of a target that went down, and was seen to go down again: one for each API of a request that brings
    it down alone, that with the fewest fields; else one for the scenario with the fewest requests unanswered.
    `origins` has where a scenario is found, by its name."""
    culprits = sorted((crash.culprit for crash in crashes if crash.culprit), key=lambda each: len(each.describe()))
    found = {culprit.request.api: culprit for culprit in reversed(culprits)}
    if found:
        title = f"{WENT_DOWN} by one request: "
        return tuple(_failure(each, origins, [each.request], title) for each in found.values())
    repeated = [crash for crash in crashes if crash.requests]
    if len(repeated) < 2:
        return ()
    suspect, *others = min(repeated, key=lambda crash: len(crash.requests)).requests
    more = f"{len(others)} other requests or " if others else ""
    return (_failure(suspect, origins, suspect.run.events, f"{WENT_DOWN} instead of responding to {more}"),)


def _failure(suspect: CutRequest, origins: Mapping[str, Origin], shown: Sequence[Event], title: str) -> Failure:
    events, request = suspect.run.events, suspect.request
    schedule, wrong_step = schedule_lines(shown, request.sequence, MemberLabels(events))
    origin = origins.get(suspect.run.scenario.name, Origin(suspect.run.scenario.name, ""))
    return Failure(
        trace=origin.trace,
        step=request.sequence,
        observed=WENT_DOWN,
        allowed=(ANY_RESPONSE,),
        guard="",
        schedule=schedule,
        replay=origin.replay,
        replayed=True,
        title=f"{title}{suspect.describe()}",
        wrong_step=wrong_step,
        kind=f"{WENT_DOWN}: {request.api}",
        excerpt=excerpt_of(suspect.run.header, events),
    )


def describe_unexplained(crashes: Sequence[Crash]) -> tuple[str, ...]:
    """What is left open of a target that went down and was not seen to go down again: the requests unanswered."""
    if any(crash.culprit for crash in crashes) or len([crash for crash in crashes if crash.requests]) > 1:
        return ()
    return tuple(
        f"{WENT_DOWN} while {suspect.describe()} of {suspect.run.scenario.name} was unanswered"
        for crash in crashes
        for suspect in crash.requests
    )
