"""Replaying a trace: drive its schedule against a target, judge what comes back, and compare."""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Description, Exchange, Recorder, Target, TargetError
from fencepost.adapters.virtual import run_beside
from fencepost.conformance.aggregation import Origin, Violation, failure, violations
from fencepost.conformance.execution import DEFAULT_GRACE_MS
from fencepost.conformance.plan import BUNDLED, Replay, ReplayOutcome
from fencepost.conformance.profile import Profile
from fencepost.conformance.remote_run import remote_target
from fencepost.conformance.stage import PATIENCE_MS
from fencepost.traces.events import Body, Event, Header, Kind
from fencepost.traces.format import TraceError, open_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.verdict import Standing, TraceVerdict
from fencepost.traces.replay import Script, Step, Translation, script

KEPT = (Standing.PASS, Standing.UNUSUAL)


@dataclass(frozen=True, slots=True)
class Judged:
    """A trace with what the judge made of it; `rules` are those behind the answer to each request."""

    events: tuple[Event, ...]
    verdict: TraceVerdict
    rules: Mapping[int, frozenset[str]]

    def answered(self) -> frozenset[int | None]:
        """The requests that got an answer."""
        return frozenset(event.of for event in self.events if event.kind is Kind.ANSWER)


@dataclass(frozen=True, slots=True)
class Repetition:
    """What was done again: the events, and for each request of the trace its sequence number among them."""

    events: tuple[Event, ...]
    twins: Mapping[int, int]


def judged(header: Header, events: Iterable[Event]) -> Judged:
    """Judge a trace, and keep what is needed to compare it with another."""
    kept = tuple(events)
    judge = Judge(header)
    verdict = judge.read(kept)
    rules = {handle - 1: frozenset(record.rules) for handle, record in judge.judged.items()}
    return Judged(kept, verdict, rules)


async def replay(path: Path, target: str, profile: Profile) -> Replay:
    """Drive the schedule of a trace against a target. Raises `TraceError` and `TargetError`."""
    header, events = open_trace(path)
    then = judged(header, events)
    premature = {fault.sequence for fault in then.verdict.faults if "time" in fault.fields}
    try:
        todo = script(then.events, premature)
    except ValueError as error:
        raise TraceError(str(path), 0, str(error)) from None
    if not any(step.event.kind is Kind.REQUEST for step in todo.steps):
        raise TraceError(str(path), 0, "holds no request, so there is nothing to replay")
    if target == BUNDLED:
        again = await run_beside(repeat(path.name, todo, InProcessTarget(header.settings), "replay", 0))
    else:
        grace = profile.grace if profile.grace is not None else DEFAULT_GRACE_MS
        again = await repeat(path.name, todo, remote_target(target, profile), f"replay-{secrets.token_hex(3)}", grace)
    header_now, repetition = again
    now = judged(header_now, repetition.events)
    return Comparison(then, now, repetition.twins, Origin(str(path), "")).outcome()


async def repeat(source: str, script: Script, target: Target, token: str, grace: int) -> tuple[Header, Repetition]:
    """Do everything again on a target of its own; the header says how it was seen this time."""
    translation = Translation(lambda name: f"{name}-{token}")
    try:
        description = await target.open()
        check_offered(script, description)
        header = Header(
            source=f"replay of {source}",
            order=description.order,
            clock=description.clock,
            settings=description.settings,
            grace=grace,
            implementation=description.implementation,
        )
        return header, await Performance(script, translation, target).perform()
    finally:
        await target.close()


def check_offered(script: Script, description: Description) -> None:
    """The target has every version and can be restarted if need be. Raises `TargetError`."""
    for step in script.steps:
        event = step.event
        lowest, highest = description.versions.get(event.api, (0, -1))
        if event.kind is Kind.REQUEST and not lowest <= event.version <= highest:
            offers = f"versions {lowest} to {highest}" if highest >= 0 else "none"
            raise TargetError(f"{description.name}: the trace needs {event.api} v{event.version}, it offers {offers}")
        if event.api == "restart" and event.kind is Kind.FAULT and not description.can_restart:
            raise TargetError(f"{description.name}: the trace restarts its target; say how with --profile")


class Performance:
    """One run of a script."""

    def __init__(self, script: Script, translation: Translation, target: Target) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        self.script = script
        self.translation = translation
        self.target = target
        self.now: Callable[[], float] = loop.time
        self.recorder = Recorder(lambda: int((loop.time() - begun) * 1000 + 1e-6))
        self.channel = target.channel(self.recorder)
        self.exchanges: dict[int, Exchange] = {}
        self.times: dict[int, tuple[int, float]] = {}
        """When each request was sent: in the trace in milliseconds, now in seconds of the loop."""
        self.came: dict[int, float] = {}
        self.given_up: set[int] = set()
        self.last = begun

    async def perform(self) -> Repetition:
        """Take every step, wait for what is still to come, and repeat the remarks."""
        try:
            for step in self.script.steps:
                await self.wait_before(step)
                await self.take(step.event)
                self.last = self.now()
            for sequence in self.script.answers:
                await self.wait_for(sequence)
        finally:
            await self.channel.close()
        twins = {
            then: exchange.request.sequence for then, exchange in self.exchanges.items() if exchange.request is not None
        }
        for remark in self.script.remarks:
            if remark.of in twins:
                self.recorder.record(remark.kind, remark.api, remark.version, remark.body, of=twins[remark.of])
        return Repetition(self.recorder.events, twins)

    async def wait_before(self, step: Step) -> None:
        """Wait for the answers that were there before the step, and then as long as was waited then."""
        for sequence in step.after:
            await self.wait_for(sequence)
        last = max([self.last, *(self.came.get(sequence, 0.0) for sequence in step.after)])
        await asyncio.sleep(max(0.0, last + step.gap / 1000 - self.now()))

    async def wait_for(self, sequence: int) -> None:
        """Wait for an answer, as long as it took then and some more. One that does not come is given up for good."""
        exchange = self.exchanges.get(sequence)
        if exchange is None or sequence in self.given_up:
            return
        sent_then, sent_now = self.times[sequence]
        limit = sent_now + (self.script.answers[sequence].time - sent_then + PATIENCE_MS) / 1000
        done, _ = await asyncio.wait([exchange.answer], timeout=max(0.0, limit - self.now()))
        if not done:
            self.given_up.add(sequence)
        elif exchange.answer.exception() is not None:
            exchange.answer.result()

    async def take(self, event: Event) -> None:
        """Do one thing again."""
        if event.kind is Kind.REQUEST:
            self.send(event)
        elif event.kind is Kind.INTERNAL:
            self.recorder.record(event.kind, event.api, event.version, event.body)
        elif event.api == "restart":
            await self.target.restart()
        elif event.of in self.exchanges:
            self.exchanges[event.of].drop()

    def send(self, event: Event) -> None:
        """Send a request in today's words, and learn from its answer as soon as it comes."""
        body = self.translation.request(event.body)
        exchange = self.channel.send(event.api, event.version, body, member=event.member)
        self.exchanges[event.sequence] = exchange
        self.times[event.sequence] = event.time, self.now()
        exchange.answer.add_done_callback(lambda answer: self.receive(event, answer))

    def receive(self, request: Event, answer: "asyncio.Future[Body | None]") -> None:
        """An answer came, or will never come."""
        self.came[request.sequence] = self.now()
        then = self.script.answers.get(request.sequence)
        if answer.cancelled() or answer.exception() is not None or then is None:
            return
        now = answer.result()
        if now is not None:
            self.translation.learn(request, then.body, now)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A trace and its repetition. Requests go by their sequence number in the trace; `twins` are those of now."""

    then: Judged
    now: Judged
    twins: Mapping[int, int]
    origin: Origin

    def outcome(self) -> Replay:
        """What became of the failures of the trace."""
        failed = {(one.requirement, one.sequence): one for one in violations(self.then.verdict)}
        fails = violations(self.now.verdict)
        same = [one for one in fails if (one.requirement, self.original(one.sequence)) in failed]
        if same or fails:
            outcome = ReplayOutcome.STILL_FAILS if same else ReplayOutcome.DIFFERENT
            first = (same or fails)[0]
            shown = failure(self.now.events, first, self.origin, replayed=bool(same))
            return Replay(outcome, first.requirement, shown)
        doubt = self.doubt_about_failures(failed.values()) if failed else self.doubt_about_anything()
        if doubt or self.now.verdict.inconclusive:
            return Replay(ReplayOutcome.INCONCLUSIVE, note=doubt or self.now.verdict.inconclusive[0])
        return Replay(ReplayOutcome.FIXED)

    def original(self, sequence: int) -> int:
        """The request of the trace that this one repeats."""
        return next((then for then, now in self.twins.items() if now == sequence), -1)

    def doubt_about_failures(self, failed: Iterable[Violation]) -> str:
        """Why one of the failures cannot be said to be fixed, "" if they all are."""
        answered = self.now.answered()
        standings = {(mark.requirement, mark.sequence): mark for mark in self.now.verdict.evidence}
        for one in failed:
            now = self.twins.get(one.sequence, -1)
            where = f"{one.requirement} at request {one.sequence} of the trace"
            if now not in answered:
                return f"{where}: no answer came this time"
            mark = standings.get((one.requirement, now))
            if mark is not None and mark.standing not in KEPT:
                return f"{where}: {mark.note or mark.standing}"
            rules = {one.fault.rule} if one.fault is not None else self.then.rules.get(one.sequence, frozenset())
            if one.fault is not None and not one.fault.group:
                continue  # lookups have no state that could be another one this time
            if not rules & self.now.rules.get(now, frozenset()):
                return f"{where}: the schedule did not lead to the same state this time"
        return ""

    def doubt_about_anything(self) -> str:
        """Why a trace without failures cannot be said to go well again, "" if it does."""
        answered, expected = self.now.answered(), self.then.answered()
        for then, now in self.twins.items():
            if then in expected and now not in answered:
                return f"request {then} of the trace: no answer came this time"
        before = {(mark.requirement, mark.sequence): mark.standing for mark in self.then.verdict.evidence}
        for mark in self.now.verdict.evidence:
            where = (mark.requirement, self.original(mark.sequence))
            if mark.standing is Standing.INCONCLUSIVE and before.get(where) is not Standing.INCONCLUSIVE:
                return f"{mark.requirement} at request {where[1]} of the trace: {mark.note}"
        return ""
