"""Replaying a trace: drive its schedule against a target, judge the responses, and compare."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from fencepost.adapters.address import TargetError
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Description, Exchange, SendOptions, Target, TraceBuilder
from fencepost.adapters.virtual_clock import run_virtual_in_thread
from fencepost.conformance.analysis.failures import Origin, build_failure
from fencepost.conformance.analysis.trace_report import TraceJudging, check_wire_format, read_files
from fencepost.conformance.plan import BUNDLED, ReplayOutcome, ReplayResult
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.play import DEFAULT_GRACE_MS, NewTarget, Player
from fencepost.conformance.run.protocol import ProtocolDescription, ReplayRules
from fencepost.conformance.run.registry import (
    DEFAULT_PROTOCOL,
    is_bundled,
    name_of_target,
    protocol_named,
    protocol_of_target,
)
from fencepost.conformance.run.remote import CLEAN_UP_S
from fencepost.conformance.run.requests import RESPONSE_TIMEOUT_MS
from fencepost.conformance.run.stream import saved_requirements
from fencepost.conformance.subject import NO_DECISIONS, Scenario, ScenarioRun, Subject
from fencepost.model.errors import error_name
from fencepost.model.settings import Settings
from fencepost.traces.client_judge.judge import is_client_trace
from fencepost.traces.events import Body, Event, Header, Kind, Lookahead
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.replay_script import ReplayScript, ReplayStep, Translation, build_script
from fencepost.traces.verdict import PASSING, CheckResult, CheckStatus, TraceVerdict, violations_in

# -- a recorded trace with its verdict --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JudgedTrace:
    """A trace with its verdict; `rules` are those that explain the response to each request."""

    events: tuple[Event, ...]
    verdict: TraceVerdict
    rules: Mapping[int, frozenset[str]]

    def responses(self) -> dict[int | None, Body]:
        """The responses by the sequence number of their request."""
        return {event.of: event.body for event in self.events if event.kind is Kind.RESPONSE}


def judge_trace(
    path: Path, header: Header, events: Iterable[Event], protocol: ProtocolDescription = DEFAULT_PROTOCOL
) -> JudgedTrace:
    """Judge a trace, keeping what is needed to compare it with its replay. Raises `TraceError`."""
    kept = tuple(events)
    reading = TraceJudging(path, Judge(header, protocol=protocol.judged), files=(path,))
    for moment in Lookahead(kept).pair_operations():
        reading.judge_event(moment)
    verdict = reading.finish()  # where several explanations are left at the end, it settles the rules
    rules = {handle - 1: frozenset(record.rules) for handle, record in reading.judge.records.items()}
    return JudgedTrace(kept, verdict, rules)


# -- replaying a trace as a scenario ----------------------------------------------------------------------------------

NEVER_FAILED = "nothing fails in the trace, so there is nothing to be fixed; nothing failed this time either"


ATTEMPTS = 2
"""How often what a watched subject does not show again is played."""
Prepare = Callable[[Header, tuple[Event, ...]], tuple[Scenario, Player]]
"""Makes the scenario that plays a trace again, and who plays it. Raises `TraceError`."""


async def replay_scenario(path: Path, subject: Subject, prepare: Prepare, name: str) -> ReplayResult:
    """Play a trace again as a scenario, under this name, and say whether what the trace violates is fixed: what it was
    saved for, or all if it does not name any of that. Raises `TraceError` and `TargetError`."""
    header, stream = open_trace(path)
    events = tuple(stream)
    scenario, player = prepare(header, events)
    recorded = subject.judge(header, events, NO_DECISIONS)
    wanted = saved_requirements(events) & recorded.violated or recorded.violated
    runs: list[ScenarioRun] = []
    for _ in range(ATTEMPTS if subject.is_watched else 1):
        runs.append(await player.play(scenario, name))
        if runs[-1].verdict.violated & (wanted or runs[-1].verdict.violated):
            break
    run, specification = runs[-1], subject.specification
    violated = run.verdict.violated
    again = violated & wanted
    shown = next((each for each in violations_in(run.verdict) if each.requirement in (again or violated)), None)
    if shown is not None:
        return ReplayResult(
            ReplayOutcome.STILL_FAILS if again else ReplayOutcome.DIFFERENT,
            shown.requirement,
            build_failure(run.events, shown, Origin(str(path), ""), replayed=bool(again), specification=specification),
            specification=specification,
            others=tuple(sorted(violated - {shown.requirement})),
            gone=() if again else tuple(sorted(wanted - violated)),
        )
    doubts = (each.misconduct or each.unsupported or each.blocked for each in runs)
    doubt = next(filter(None, doubts), "") or next((each for run in runs for each in run.verdict.inconclusive), "")
    doubt = doubt or ("" if wanted else NEVER_FAILED)
    if not doubt and subject.is_watched:
        kept = {each.requirement for run in runs for each in run.verdict.check_results if each.status in PASSING}
        missing = ", ".join(sorted(wanted - kept))
        doubt = f"the client did not come to where {missing} shows" if missing else ""
    outcome = ReplayOutcome.INCONCLUSIVE if doubt else ReplayOutcome.FIXED
    return ReplayResult(outcome, note=doubt, specification=specification)


# -- replaying a trace ------------------------------------------------------------------------------------------------

MAX_ATTEMPTS = 40
RETRY_PAUSE_SECONDS = 0.15
"""The pause between attempts to send a request to a target that is not ready."""


@dataclass(frozen=True, slots=True)
class RepeatedTrace:
    """The events of a replay; `counterparts` maps requests of the trace to theirs, by sequence number."""

    events: tuple[Event, ...]
    counterparts: Mapping[int, int]


Replay = Callable[[str, ReplayScript, Settings], Awaitable[tuple[Header, "RepeatedTrace"]]]
"""Drives a script with a name against a target; the settings are those of the recorded target."""


async def replay_trace(path: Path, target: str, profile: Profile) -> ReplayResult:
    """Drive the schedule of a trace against a target. Raises `TraceError` and `TargetError`."""
    remote = None if is_bundled(target) else protocol_of_target(target).make_target(target, profile)
    protocol = protocol_to_replay(path, target)
    if remote is None and protocol.repeat is not None and protocol.make_bundled is not None:
        return await run_virtual_in_thread(replay_whole(path, protocol, protocol.make_bundled(Settings()), "replay", 0))
    if remote is None:
        return await replay_in_process(path, InProcessTarget)
    grace = profile.grace if profile.grace is not None else DEFAULT_GRACE_MS
    token = secrets.token_hex(3)
    if protocol.repeat is not None:
        return await replay_whole(path, protocol, remote, f"replay-{token}", grace)
    stays: list[str] = []

    async def clean_up() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(CLEAN_UP_S):
                stays.extend(await remote.remove_traces(token))

    async def drive(name: str, script: ReplayScript, settings: Settings) -> tuple[Header, RepeatedTrace]:
        return await replay_script(name, script, remote, f"replay-{token}", grace, protocol.replay, clean_up=clean_up)

    return replace(await compare_replay(path, drive, protocol), stays=tuple(stays))


async def replay_whole(
    path: Path, protocol: ProtocolDescription, target: Target, group: str, grace: int
) -> ReplayResult:
    """Play a trace again on a target, in this group. Raises `TraceError` and `TargetError`."""
    repeat = protocol.repeat
    assert repeat is not None

    def prepare(header: Header, events: tuple[Event, ...]) -> tuple[Scenario, Player]:
        try:
            return repeat(events), NewTarget(lambda: target, grace)
        except ValueError as error:
            raise TraceError(str(path), 0, str(error)) from None

    return await replay_scenario(path, protocol.subject, prepare, group)


def protocol_to_replay(path: Path, target: str) -> ProtocolDescription:
    """The protocol of a trace, which must be that of the target. Raises `TraceError`."""
    name, spoken = open_trace(path)[0].protocol, name_of_target(target)
    if name != spoken:
        raise TraceError(str(path), 1, f"of the protocol {name}; {target or 'the target'} speaks {spoken}")
    return protocol_named(name)


async def replay_in_process(
    path: Path, make_target: Callable[[Settings], Target], protocol: ProtocolDescription = DEFAULT_PROTOCOL
) -> ReplayResult:
    """Drive the schedule of a trace against a target in this process, on virtual time and without grace. Raises
    `TraceError` and `TargetError`."""

    async def drive(name: str, script: ReplayScript, settings: Settings) -> tuple[Header, RepeatedTrace]:
        replay = replay_script(name, script, make_target(settings), "replay", 0, protocol.replay)
        return await run_virtual_in_thread(replay)

    return await compare_replay(path, drive, protocol)


async def compare_replay(path: Path, drive: Replay, protocol: ProtocolDescription) -> ReplayResult:
    """Judge a trace and its replay and compare what fails in them."""
    header, events = open_trace(path)
    if is_client_trace(header):
        raise TraceError(str(path), 0, "the trace of a client; fencepost test-client runs its scenario again")
    check_wire_format(str(path), read_files([path]), protocol.judged(header))
    recorded = judge_trace(path, header, events, protocol)
    premature = {violation.sequence for violation in recorded.verdict.violations if "time" in violation.fields}
    try:
        script = build_script(recorded.events, premature, protocol.replay.complete_request)
    except ValueError as error:
        raise TraceError(str(path), 0, str(error)) from None
    if not any(step.event.kind is Kind.REQUEST for step in script.steps):
        raise TraceError(str(path), 0, "holds no request, so there is nothing to replay")
    header_now, repeated = await drive(path.name, script, header.settings)
    replayed = judge_trace(path, header_now, repeated.events, protocol)
    origin = Origin(str(path), "")
    return ReplayComparison(script, recorded, replayed, repeated.counterparts, origin, protocol).replay_result()


async def replay_script(
    source: str,
    script: ReplayScript,
    target: Target,
    token: str,
    grace: int,
    rules: ReplayRules,
    clean_up: Callable[[], Awaitable[None]] | None = None,
) -> tuple[Header, RepeatedTrace]:
    """Replay a script on a target; the header is that of the replay. Opens and closes the target, before that cleans up
    if it was opened."""
    is_open = False
    translation = rules.make_translation(lambda name: f"{name}-{token}")
    try:
        description = await target.open()
        is_open = True
        check_supported(script, description)
        if description.topic_id is not None:
            remarks = (step.event for step in script.steps if step.event.kind is Kind.INTERNAL)
            translation.learn_topic_id(remarks, description.topic, description.topic_id)
        header = Header(
            source=f"replay of {source}",
            order=description.order,
            clock=description.clock,
            settings=description.settings,
            grace=grace,
            implementation=description.implementation,
            not_told=description.not_told,
        )
        return header, await ScriptDriver(script, translation, target, description, rules.is_transient).run()
    finally:
        if is_open and clean_up is not None:
            await clean_up()
        await target.close()


def check_supported(script: ReplayScript, description: Description) -> None:
    """Raises `TargetError` if the target lacks a version that the script needs, or cannot be restarted as it asks."""
    for step in script.steps:
        event = step.event
        lowest, highest = description.versions.get(event.api, (0, -1))
        if event.kind is Kind.REQUEST and not lowest <= event.version <= highest:
            offers = f"versions {lowest} to {highest}" if highest >= 0 else "none"
            raise TargetError(f"{description.name}: the trace needs {event.api} v{event.version}, it offers {offers}")
        if event.kind is Kind.FAULT and event.api == "move" and not description.can_move:
            raise TargetError(f"{description.name}: the trace moves a group to another node; say how with --profile")
        if event.kind is Kind.FAULT and event.api == "restart":
            if not description.can_restart:
                raise TargetError(f"{description.name}: the trace restarts its target; say how with --profile")
            if event.body and description.name != BUNDLED:
                changed = ", ".join(event.body)
                raise TargetError(
                    f"{description.name}: the trace restarts its target with another {changed}; use bundled"
                )


class ScriptDriver:
    """Drives one run of a script."""

    def __init__(
        self,
        script: ReplayScript,
        translation: Translation,
        target: Target,
        description: Description,
        is_transient: Callable[[Body], bool],
    ) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        self.script = script
        self.translation = translation
        self.target = target
        self.description = description
        self.is_transient = is_transient
        self.loop_time: Callable[[], float] = loop.time
        self.recorder = TraceBuilder(lambda: int((loop.time() - begun) * 1000 + 1e-6))
        self.channel = target.channel(self.recorder)
        self.exchanges: dict[int, Exchange] = {}
        self.sent_at: dict[int, tuple[int, float]] = {}
        """When each request was sent: in the trace in milliseconds, in the replay in seconds of the loop."""
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.responded_at: dict[int, float] = {}
        self.given_up: set[int] = set()
        self.last_step_at = begun

    async def run(self) -> RepeatedTrace:
        """Take every step, wait for the remaining responses, and repeat the annotations."""
        try:
            for step in self.script.steps:
                await self.wait_before(step)
                await self.repeat_event(step.event)
                self.last_step_at = self.loop_time()
            for sequence in self.script.responses:
                await self.wait_for_response(sequence)
        finally:
            for task in self.tasks.values():
                task.cancel()
            await self.channel.close()
        twins = {
            then: exchange.request.sequence for then, exchange in self.exchanges.items() if exchange.request is not None
        }
        for remark in self.script.annotations:
            if remark.of in twins:
                self.recorder.record(remark.kind, remark.api, remark.version, remark.body, of=twins[remark.of])
        return RepeatedTrace(self.recorder.events, twins)

    async def wait_before(self, step: ReplayStep) -> None:
        """Wait for the responses that came before the step in the trace, then for its gap."""
        for sequence in step.after:
            await self.wait_for_response(sequence)
        last = max([self.last_step_at, *(self.responded_at.get(sequence, 0.0) for sequence in step.after)])
        await asyncio.sleep(max(0.0, last + step.gap / 1000 - self.loop_time()))

    async def wait_for_response(self, sequence: int) -> None:
        """Wait for a response as long as it took in the trace and `RESPONSE_TIMEOUT_MS` more, then never again."""
        task = self.tasks.get(sequence)
        if task is None or sequence in self.given_up:
            return
        sent_then, sent_now = self.sent_at[sequence]
        limit = sent_now + (self.script.responses[sequence].time - sent_then + RESPONSE_TIMEOUT_MS) / 1000
        done, _ = await asyncio.wait([task], timeout=max(0.0, limit - self.loop_time()))
        if done:
            task.result()
        else:
            self.given_up.add(sequence)

    async def repeat_event(self, event: Event) -> None:
        """Repeat one event of the trace."""
        if event.kind is Kind.REQUEST:
            self.send_request(event)
        elif event.kind is Kind.INTERNAL:
            self.recorder.record(
                event.kind, event.api, event.version, self.translation.translate_annotation(event.body)
            )
        elif event.api == "restart":
            restart: Callable[..., Awaitable[None]] = self.target.restart
            await restart(**event.body)
        elif event.api == "move":
            await self.target.move(self.translation.translate_request({"group_id": event.body["group"]})["group_id"])
        elif event.api == "torn":
            api, share, request = (event.body[name] for name in ("api", "share", "request"))
            body = self.translation.translate_request(request)
            self.channel.send(api, event.version, body, SendOptions(event.member, share=share))
        elif event.of in self.exchanges:
            self.exchanges[event.of].drop()

    def send_request(self, event: Event) -> None:
        """Send a request with the ids of this replay, and start a task that waits for its response."""
        self.sent_at[event.sequence] = event.time, self.loop_time()
        self.exchanges[event.sequence] = self.start_exchange(event)
        self.tasks[event.sequence] = asyncio.get_running_loop().create_task(self.await_response(event))

    def start_exchange(self, event: Event) -> Exchange:
        """Send a request with the ids of this replay."""
        body = self.translation.translate_request(event.body)
        broker = self.broker_for(event.sequence)
        return self.channel.send(event.api, event.version, body, SendOptions(event.member, broker=broker))

    def broker_for(self, sequence: int) -> int | None:
        """The node that a request has to be sent to, None for the coordinator's. Raises `TargetError`."""
        then = self.script.routes.get(sequence)
        if then is None:
            return None
        node = self.translation.translate_node(then, self.description.brokers)
        if node is None:
            raise TargetError(f"{self.description.name}: the trace needs a node that is not the group's coordinator")
        return node

    async def await_response(self, request: Event) -> None:
        """Learn ids from the response once it comes; send the request again while the target is not ready."""
        then = self.script.responses.get(request.sequence)
        for _ in range(MAX_ATTEMPTS):
            now = await self.exchanges[request.sequence].response
            if now is None or then is None or self.is_transient(then.body) or not self.is_transient(now):
                break
            await asyncio.sleep(RETRY_PAUSE_SECONDS)
            self.exchanges[request.sequence] = self.start_exchange(request)
        self.responded_at[request.sequence] = self.loop_time()
        if now is not None and then is not None:
            self.translation.learn_response(request, then.body, now)


@dataclass(frozen=True, slots=True)
class ReplayComparison:
    """A trace and its replay. Requests go by their sequence number in the trace; `counterparts` are those of the
    replay."""

    script: ReplayScript
    recorded: JudgedTrace
    replayed: JudgedTrace
    counterparts: Mapping[int, int]
    origin: Origin
    protocol: ProtocolDescription

    def replay_result(self) -> ReplayResult:
        """Whether the failures of the trace are fixed: those of the requirements that it was saved for, or all if it
        does not name any of them. Nothing is fixed while the replay violates anything; what is new comes first."""
        recorded = {(one.requirement, one.sequence) for one in violations_in(self.recorded.verdict)}
        saved_for = saved_requirements(self.recorded.events)
        wanted = {one for one in recorded if one[0] in saved_for} or recorded
        fails = violations_in(self.replayed.verdict)
        then = {one: (one.requirement, self.original_request(one.sequence)) for one in fails}
        for one in fails:
            if then[one] in wanted:
                return self.failed_replay(ReplayOutcome.STILL_FAILS, one)
        set_up = self.doubt_about_set_up()
        doubt = set_up or next(iter(self.replayed.verdict.inconclusive), "")
        doubt = doubt or (self.doubt_about_failures(list(wanted)) if wanted else self.doubt_about_anything())
        if fails and not set_up:
            gone = set() if doubt else {id for id, _ in wanted} - {one.requirement for one in fails}
            shown = next((one for one in fails if then[one] not in recorded), fails[0])
            return self.failed_replay(ReplayOutcome.DIFFERENT, shown, gone)
        doubt = doubt or ("" if wanted else NEVER_FAILED)
        outcome = ReplayOutcome.INCONCLUSIVE if doubt else ReplayOutcome.FIXED
        return ReplayResult(outcome, note=doubt, others=self.violated_beside(""))

    def failed_replay(self, outcome: ReplayOutcome, violation: CheckResult, gone: Collection[str] = ()) -> ReplayResult:
        """The result with a violation of the replay as its failure, and the requirements that hold now."""
        again = outcome is ReplayOutcome.STILL_FAILS
        return ReplayResult(
            outcome,
            violation.requirement,
            build_failure(
                self.replayed.events, violation, self.origin, replayed=again, specification=self.protocol.specification
            ),
            specification=self.protocol.specification,
            others=self.violated_beside(violation.requirement),
            gone=tuple(sorted(gone)),
        )

    def violated_beside(self, requirement: str) -> tuple[str, ...]:
        """The requirements but this one that the replay violates, in their order."""
        return tuple(sorted({one.requirement for one in violations_in(self.replayed.verdict)} - {requirement}))

    def original_request(self, sequence: int) -> int:
        """The request of the trace that a request of the replay repeats, -1 if there is none."""
        return next((then for then, now in self.counterparts.items() if now == sequence), -1)

    def doubt_about_set_up(self) -> str:
        """The set-up request that failed in the replay only, in words, or ""."""
        responses = self.replayed.responses()
        for then, now in self.counterparts.items():
            before, after = self.script.responses.get(then), responses.get(now)
            is_set_up = before is not None and before.api in self.protocol.replay.setup_apis
            if before is None or not is_set_up or after is None or before.body.get("error_code"):
                continue
            if after.get("error_code"):
                return f"{before.api} at request {then} of the trace: {error_name(after['error_code'])} this time"
        return ""

    def doubt_about_failures(self, failed: Collection[tuple[str, int]]) -> str:
        """Why one of the failures may not be fixed, "" if they all are.

        The first wrong answer has to be a right one now, given in the same state. Where the schedule went after that
        depended on the wrong answer, so the same state need not come again.
        """
        responses = self.replayed.responses()
        standings = {(mark.requirement, mark.sequence): mark for mark in self.replayed.verdict.check_results}
        first = min(sequence for _, sequence in failed)
        for requirement, sequence in sorted(failed, key=lambda one: one[1]):
            now = self.counterparts.get(sequence, -1)
            where = f"{requirement} at request {sequence} of the trace"
            mark = standings.get((requirement, now))
            if now not in responses:
                return f"{where}: no answer came this time"
            if mark is not None and mark.status not in PASSING:
                return f"{where}: {mark.note or mark.status}"
            broken = {fault.rule for fault in self.recorded.verdict.violations if fault.sequence == first}
            then = broken - {""} or self.recorded.rules.get(first, frozenset())
            explained = self.replayed.rules.get(now, frozenset()) | self.protocol.replay.stateless_rules
            if sequence == first and then and not then & explained:
                return f"{where}: the schedule did not lead to the same state this time"
        return ""

    def doubt_about_anything(self) -> str:
        """Why the replay of a trace without failures may have failed, "" if it did not."""
        responses = self.replayed.responses()
        for then in self.script.responses:
            if self.counterparts.get(then, -1) not in responses:
                return f"request {then} of the trace: no answer came this time"
        before = {(mark.requirement, mark.sequence): mark.status for mark in self.recorded.verdict.check_results}
        for mark in self.replayed.verdict.check_results:
            where = (mark.requirement, self.original_request(mark.sequence))
            if mark.status is CheckStatus.INCONCLUSIVE and before.get(where) is not CheckStatus.INCONCLUSIVE:
                return f"{mark.requirement} at request {where[1]} of the trace: {mark.note}"
        return ""
