"""Replaying a trace: drive its schedule against a target, judge what comes back, and compare."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Description, Exchange, Recorder, Target, TargetError
from fencepost.adapters.virtual_clock import run_beside
from fencepost.conformance.analysis.aggregation import Origin, failure
from fencepost.conformance.analysis.root_cause import Violation, violations
from fencepost.conformance.analysis.trace_report import Reading, check
from fencepost.conformance.execution.play import DEFAULT_GRACE_MS
from fencepost.conformance.plan import BUNDLED, Replay, ReplayOutcome
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.remote import remote_target
from fencepost.conformance.scenario.context import PATIENCE_MS
from fencepost.model.errors import error_name
from fencepost.traces.events import Body, Event, Header, Kind
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.judge.diagnosis.wording import errors_in
from fencepost.traces.judge.judge import Judge
from fencepost.traces.operations import Lookahead
from fencepost.traces.replay_script import Script, Step, Translation, script
from fencepost.traces.verdict import KEPT, Standing, TraceVerdict

TRANSIENT = frozenset({14, 15, 16, 51})
"""Not ready: the coordinator loads or moves, or a transaction is still being ended."""
TRIES = 40
PAUSE_SECONDS = 0.15
"""How often, and how far apart, a request is sent to a target that says that it is not ready."""
UNJUDGED = frozenset({"InitProducerId", "AddOffsetsToTxn", "AddPartitionsToTxn", "EndTxn"})
"""What is asked of the transaction coordinator: set-up, which is not judged."""

STATELESS = frozenset({"find.coordinator"})
"""Rules that hold in every state."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A trace with what the judge made of it; `rules` are those behind the answer to each request."""

    events: tuple[Event, ...]
    verdict: TraceVerdict
    rules: Mapping[int, frozenset[str]]

    def answers(self) -> dict[int | None, Body]:
        """The answers by request."""
        return {event.of: event.body for event in self.events if event.kind is Kind.ANSWER}


@dataclass(frozen=True, slots=True)
class Repetition:
    """What was done again: the events, and for each request of the trace its sequence number among them."""

    events: tuple[Event, ...]
    twins: Mapping[int, int]


def judged(path: Path, header: Header, events: Iterable[Event]) -> Judged:
    """Judge a trace, and keep what is needed to compare it with another. Raises `TraceError`."""
    kept = tuple(events)
    reading = Reading(path, Judge(header))
    for moment in Lookahead(kept).moments():
        reading.take(moment)
    rules = {handle - 1: frozenset(record.rules) for handle, record in reading.judge.judged.items()}
    return Judged(kept, reading.finish(), rules)


async def replay(path: Path, target: str, profile: Profile) -> Replay:
    """Drive the schedule of a trace against a target. Raises `TraceError` and `TargetError`."""
    check(path)
    header, events = open_trace(path)
    then = judged(path, header, events)
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
    now = judged(path, header_now, repetition.events)
    return Comparison(todo, then, now, repetition.twins, Origin(str(path), "")).outcome()


async def repeat(source: str, script: Script, target: Target, token: str, grace: int) -> tuple[Header, Repetition]:
    """Do everything again on a target of its own; the header says how it was seen this time."""
    translation = Translation(lambda name: f"{name}-{token}")
    try:
        description = await target.open()
        check_offered(script, description)
        if description.topic_id is not None:
            remarks = (step.event for step in script.steps if step.event.kind is Kind.INTERNAL)
            translation.renew(remarks, description.topic, description.topic_id)
        header = Header(
            source=f"replay of {source}",
            order=description.order,
            clock=description.clock,
            settings=description.settings,
            grace=grace,
            implementation=description.implementation,
        )
        return header, await Performance(script, translation, target, description).perform()
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
        if event.kind is Kind.FAULT and event.api == "restart":
            if not description.can_restart:
                raise TargetError(f"{description.name}: the trace restarts its target; say how with --profile")
            if event.body and description.name != BUNDLED:
                changed = ", ".join(event.body)
                raise TargetError(
                    f"{description.name}: the trace restarts its target with another {changed}; use bundled"
                )


class Performance:
    """One run of a script."""

    def __init__(self, script: Script, translation: Translation, target: Target, description: Description) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        self.script = script
        self.translation = translation
        self.target = target
        self.description = description
        self.now: Callable[[], float] = loop.time
        self.recorder = Recorder(lambda: int((loop.time() - begun) * 1000 + 1e-6))
        self.channel = target.channel(self.recorder)
        self.exchanges: dict[int, Exchange] = {}
        self.times: dict[int, tuple[int, float]] = {}
        """When each request was sent: in the trace in milliseconds, now in seconds of the loop."""
        self.tasks: dict[int, asyncio.Task[None]] = {}
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
            for task in self.tasks.values():
                task.cancel()
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
        task = self.tasks.get(sequence)
        if task is None or sequence in self.given_up:
            return
        sent_then, sent_now = self.times[sequence]
        limit = sent_now + (self.script.answers[sequence].time - sent_then + PATIENCE_MS) / 1000
        done, _ = await asyncio.wait([task], timeout=max(0.0, limit - self.now()))
        if done:
            task.result()
        else:
            self.given_up.add(sequence)

    async def take(self, event: Event) -> None:
        """Do one thing again."""
        if event.kind is Kind.REQUEST:
            self.send(event)
        elif event.kind is Kind.INTERNAL:
            self.recorder.record(event.kind, event.api, event.version, self.translation.remark(event.body))
        elif event.api == "restart":
            restart: Callable[..., Awaitable[None]] = self.target.restart
            await restart(**event.body)
        elif event.api == "torn":
            api, share, request = (event.body[name] for name in ("api", "share", "request"))
            body = self.translation.request(request)
            self.channel.send(api, event.version, body, member=event.member, share=share)
        elif event.of in self.exchanges:
            self.exchanges[event.of].drop()

    def send(self, event: Event) -> None:
        """Send a request in today's words, and attend to its answer."""
        self.times[event.sequence] = event.time, self.now()
        self.exchanges[event.sequence] = self.exchange(event)
        self.tasks[event.sequence] = asyncio.get_running_loop().create_task(self.attend(event))

    def exchange(self, event: Event) -> Exchange:
        """Send a request."""
        body = self.translation.request(event.body)
        broker = self.broker(event.sequence)
        return self.channel.send(event.api, event.version, body, member=event.member, broker=broker)

    def broker(self, sequence: int) -> int | None:
        """The node that a request has to be sent to, None for the coordinator's. Raises `TargetError`."""
        then = self.script.routes.get(sequence)
        if then is None:
            return None
        node = self.translation.node(then, self.description.brokers)
        if node is None:
            raise TargetError(f"{self.description.name}: the trace needs a node that is not the group's coordinator")
        return node

    async def attend(self, request: Event) -> None:
        """Learn from the answer once it comes; send the request again while the target is not ready for it."""
        then = self.script.answers.get(request.sequence)
        for _ in range(TRIES):
            now = await self.exchanges[request.sequence].answer
            if now is None or then is None or is_transient(then.body) or not is_transient(now):
                break
            await asyncio.sleep(PAUSE_SECONDS)
            self.exchanges[request.sequence] = self.exchange(request)
        self.came[request.sequence] = self.now()
        if now is not None and then is not None:
            self.translation.learn(request, then.body, now)


def is_transient(answer: Body) -> bool:
    """The target says that it is not ready."""
    return errors_in(answer) <= TRANSIENT and bool(errors_in(answer))


@dataclass(frozen=True, slots=True)
class Comparison:
    """A trace and its repetition. Requests go by their sequence number in the trace; `twins` are those of now."""

    script: Script
    then: Judged
    now: Judged
    twins: Mapping[int, int]
    origin: Origin

    def outcome(self) -> Replay:
        """What became of the failures of the trace."""
        failed = {(one.requirement, one.sequence) for one in violations(self.then.verdict)}
        fails = violations(self.now.verdict)
        for one in fails:
            if (one.requirement, self.original(one.sequence)) in failed:
                return self.failing(ReplayOutcome.STILL_FAILS, one)
        doubt = self.doubt_about_set_up()
        if fails and not doubt:
            return self.failing(ReplayOutcome.DIFFERENT, fails[0])
        doubt = doubt or next(iter(self.now.verdict.inconclusive), "")
        doubt = doubt or (self.doubt_about_failures(list(failed)) if failed else self.doubt_about_anything())
        return Replay(ReplayOutcome.INCONCLUSIVE, note=doubt) if doubt else Replay(ReplayOutcome.FIXED)

    def failing(self, outcome: ReplayOutcome, violation: Violation) -> Replay:
        """The outcome with what is wrong now."""
        again = outcome is ReplayOutcome.STILL_FAILS
        return Replay(outcome, violation.requirement, failure(self.now.events, violation, self.origin, replayed=again))

    def original(self, sequence: int) -> int:
        """The request of the trace that this one repeats."""
        return next((then for then, now in self.twins.items() if now == sequence), -1)

    def doubt_about_set_up(self) -> str:
        """Which request that is not judged failed this time only."""
        answers = self.now.answers()
        for then, now in self.twins.items():
            before, after = self.script.answers.get(then), answers.get(now)
            if before is None or before.api not in UNJUDGED or after is None or before.body.get("error_code"):
                continue
            if after.get("error_code"):
                return f"{before.api} at request {then} of the trace: {error_name(after['error_code'])} this time"
        return ""

    def doubt_about_failures(self, failed: Collection[tuple[str, int]]) -> str:
        """Why one of the failures cannot be said to be fixed, "" if they all are.

        The first wrong answer has to be a right one now, given in the same state. Where the schedule went after that
        depended on the wrong answer, so the same state need not come again.
        """
        answers = self.now.answers()
        standings = {(mark.requirement, mark.sequence): mark for mark in self.now.verdict.evidence}
        first = min(sequence for _, sequence in failed)
        for requirement, sequence in sorted(failed, key=lambda one: one[1]):
            now = self.twins.get(sequence, -1)
            where = f"{requirement} at request {sequence} of the trace"
            mark = standings.get((requirement, now))
            if now not in answers:
                return f"{where}: no answer came this time"
            if mark is not None and mark.standing not in KEPT:
                return f"{where}: {mark.note or mark.standing}"
            then = self.rules_then(first)
            if sequence == first and then and not then & (self.now.rules.get(now, frozenset()) | STATELESS):
                return f"{where}: the schedule did not lead to the same state this time"
        return ""

    def rules_then(self, sequence: int) -> frozenset[str]:
        """The rules by which a request should have been answered in the trace, or was."""
        broken = {fault.rule for fault in self.then.verdict.faults if fault.sequence == sequence}
        return frozenset(broken - {""}) or self.then.rules.get(sequence, frozenset())

    def doubt_about_anything(self) -> str:
        """Why a trace without failures cannot be said to go well again, "" if it does."""
        answers = self.now.answers()
        for then in self.script.answers:
            if self.twins.get(then, -1) not in answers:
                return f"request {then} of the trace: no answer came this time"
        before = {(mark.requirement, mark.sequence): mark.standing for mark in self.then.verdict.evidence}
        for mark in self.now.verdict.evidence:
            where = (mark.requirement, self.original(mark.sequence))
            if mark.standing is Standing.INCONCLUSIVE and before.get(where) is not Standing.INCONCLUSIVE:
                return f"{mark.requirement} at request {where[1]} of the trace: {mark.note}"
        return ""
