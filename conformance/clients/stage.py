"""The stage of a scenario for clients, and how a scenario is played on it and judged."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
from uuid import uuid4

from fencepost.adapters.address import format_address
from fencepost.adapters.client.cluster import (
    CLIENT_LABEL,
    DOUBLED,
    Cue,
    Fault,
    FloodError,
    InterceptedRequest,
    NotOffered,
    ScriptedCluster,
    flood_error,
    refuse,
)
from fencepost.adapters.client.program import (
    UNSUPPORTED,
    Application,
    ClientPlace,
    ClientUnderTest,
    RunningClient,
    ScriptedMember,
)
from fencepost.conformance.run.play import JudgeFunction, LoopLagMonitor, discard_if_lagging, explain_lag
from fencepost.conformance.subject import NO_DECISIONS, CheckedScenarios, Scenario, ScenarioRun, TraceJudge
from fencepost.model.errors import Error, FencepostError
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import Body, DecodedRequest
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.verdict import TraceVerdict

# -- the stage of a scenario for clients ------------------------------------------------------------------------------

PARTITIONS = 4
RECORDS = 20
"""In each partition of a topic."""
PATIENCE_S = 10.0
"""How long a scenario waits for what a client does by itself."""
COMMAND_S = 45.0
"""How long a driver may take for a command, and for the poll before it."""
LAST_WORDS_S = 1.0
"""How long what a driver wrote before it ended may take to be read."""
CLOSING_S = 12.0
"""How long a client may take to close."""
START_S = 30.0


class StageBlocked(FencepostError):
    """A scenario cannot go on; the message is the reason."""


class NotShown(StageBlocked):
    """The client does not get to the point of a scenario, and need not; the message is the reason."""


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """What the first scenario has shown of a client: the protocols that it offers, in its order, and its timeouts in
    milliseconds."""

    protocols: tuple[str, ...] = ("range",)
    session_timeout: int = 0
    rebalance_timeout: int = 0
    is_static: bool = False


@dataclass(slots=True)
class ClientStage:
    """A scenario under way. `start_seconds` are what the client may take to its first JoinGroup."""

    cluster: ScriptedCluster
    subject: ClientUnderTest
    place: ClientPlace
    facts: ClientFacts = ClientFacts()
    start_seconds: float = START_S
    running: RunningClient | None = None
    ended: "asyncio.Task[int] | None" = None
    tasks: list["asyncio.Task[Any]"] = field(default_factory=list)
    wants_end: bool = False
    has_ended_early: bool = False
    """Whether the client ended before it was asked to."""

    # -- the client -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the client. Raises `TargetError`."""
        await self.cluster.create_topic(self.place.topic, PARTITIONS, RECORDS)
        self.running = await self.subject.start(self.place, self.cluster)
        self.ended = asyncio.ensure_future(self._watch(self.running))

    @property
    def application(self) -> Application:
        """The application that drives the client; only scenarios that need a driver may ask for it."""
        assert self.running is not None and self.running.application is not None
        return self.running.application

    async def do(self, command: str, **fields: Any) -> None:
        """Have the application do something. Raises `NotShown` if its driver cannot, `StageBlocked` if it ends."""
        assert self.ended is not None
        doing = asyncio.ensure_future(self.application.do(command, **fields))
        try:
            await asyncio.wait([doing, self.ended], timeout=COMMAND_S, return_when=asyncio.FIRST_COMPLETED)
            if self.ended.done():
                await asyncio.wait([doing], timeout=LAST_WORDS_S)
            if not doing.done():
                late = "the program ended before it could" if self.ended.done() else f"in {COMMAND_S:g} s it could not"
                raise StageBlocked(f"{late} {command}")
        finally:
            doing.cancel()
        result = doing.result()
        if result.get("error") == UNSUPPORTED:
            raise NotShown(f"the driver cannot {command}")

    async def _watch(self, running: RunningClient) -> int:
        code = await running.wait()
        self.has_ended_early = not self.wants_end
        self.cluster.annotate("program", {"state": "ended", "code": code})
        return code

    async def ask_to_end(self) -> None:
        """Have the client close, and wait until it has ended; a client that does not is killed later."""
        assert self.running is not None and self.ended is not None
        self.wants_end = True
        self.cluster.annotate("program", {"state": "asked to end"})
        self.running.ask_to_end()
        await asyncio.wait([self.ended], timeout=CLOSING_S)

    async def close(self) -> None:
        """End everything that the scenario has started."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if self.ended is not None:
            self.ended.cancel()
            await asyncio.gather(self.ended, return_exceptions=True)
        if self.running is not None:
            await self.running.kill()
        await self.cluster.brokers.close()

    # -- waiting --------------------------------------------------------------------------------------------------

    def mark(self) -> int:
        """The number of the next event."""
        return len(self.cluster.events)

    async def wait_for(
        self, what: str, sees: Callable[[Event], bool], *, since: int = 0, seconds: float = PATIENCE_S
    ) -> Event:
        """The first event from number `since` on that is seen so. Raises `StageBlocked` if none comes."""
        has_ended = self.ended is not None and self.ended.done()

        def sees_or_ended(event: Event) -> bool:
            has_ended_now = event.kind is Kind.INTERNAL and event.api == "program" and event.body["state"] == "ended"
            return sees(event) or (has_ended_now and not self.wants_end)

        found = await self.cluster.wait_for(sees_or_ended, 0 if has_ended else seconds, since=since)
        if found is not None and sees(found):
            return found
        if found is not None or has_ended:
            raise StageBlocked(f"the program ended before {what} came")
        raise StageBlocked(f"no {what} came within {seconds:g} s")

    async def request(
        self,
        api: str,
        *,
        since: int = 0,
        seconds: float = PATIENCE_S,
        where: Callable[[Event], bool] = lambda event: True,
    ) -> Event:
        """The client's next request to an API. Raises `StageBlocked`."""
        return await self.wait_for(
            api, lambda event: is_request(event, api) and where(event), since=since, seconds=seconds
        )

    async def response(
        self, api: str, error: Error = Error.NONE, *, since: int = 0, seconds: float = PATIENCE_S
    ) -> Event:
        """The next response with this error to a request of the client. Raises `StageBlocked`."""

        def sees(event: Event) -> bool:
            is_own = event.kind is Kind.RESPONSE and event.api == api and event.member == CLIENT_LABEL
            return is_own and event.body.get("error_code", 0) == error

        return await self.wait_for(f"response {error.name} to {api}", sees, since=since, seconds=seconds)

    async def become_stable(self, *, since: int = 0, seconds: float | None = None) -> Event:
        """The next response to SyncGroup with an assignment. Raises `StageBlocked`."""
        if seconds is None:
            seconds = self.start_seconds if since == 0 else PATIENCE_S
        return await self.response("SyncGroup", since=since, seconds=seconds)

    async def start_and_become_stable(self) -> Event:
        """Start the client, and wait until it has an assignment."""
        await self.start()
        await self.request("JoinGroup", seconds=self.start_seconds)
        return await self.become_stable()

    async def watch(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    async def watch_request(self, api: str, *, since: int, seconds: float) -> None:
        """Wait until the client sends a request, at the longest so many seconds. Whether it has to is the judge's
        affair."""
        with suppress(StageBlocked):
            await self.request(api, since=since, seconds=seconds)

    async def watch_rejoin(self, since: int) -> None:
        """Wait until the client joins again, as long as it may take, and is stable again. Whether it has to is the
        judge's affair, so that nothing is raised."""
        patience = min(max(PATIENCE_S, self.facts.rebalance_timeout / 1000 + 2), 2 * PATIENCE_S)
        try:
            await self.request("JoinGroup", since=since, seconds=patience)
            await self.become_stable(since=since)
        except StageBlocked:
            return
        await self.watch(0.5)

    # -- what the cluster does ------------------------------------------------------------------------------------

    def refuse(self, api: str, error: Error, *, times: int = 1, **options: Any) -> Cue:
        """Have the next requests to an API refused."""
        return self.play(api, refuse(error), f"the next {api} gets {error.name}", times=times, **options)

    def play(self, api: str, fault: Fault, note: str, *, times: int = 1, **options: Any) -> Cue:
        """Have a fault happen to the next requests to an API."""
        return self.cluster.script.add(api, fault, note, times=times, **options)

    def evict(self, api: str) -> Cue:
        """Have the coordinator forget the client when its next request to an API comes."""

        async def respond(intercepted: InterceptedRequest) -> Body | None:
            await self.remove(str(intercepted.request.body["member_id"]))
            return await intercepted.pass_on()

        return self.play(api, respond, f"the coordinator forgets the member before its {api}", matches=has_member_id)

    async def remove(self, member_id: str) -> None:
        """Have the coordinator remove a member."""
        row = {"member_id": member_id, "group_instance_id": None}
        await self.cluster.brokers.ask("LeaveGroup", 3, {"group_id": self.place.group, "members": [row]})

    def add_member(self, label: str = "B") -> ScriptedMember:
        """A second member, which offers what the client offers."""
        return ScriptedMember(self.cluster, label, self.place.group, [self.place.topic], self.facts.protocols)

    def start_task(self, work: Any) -> "asyncio.Task[Any]":
        """Do something beside the scenario, at the longest until its end."""
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self.tasks.append(task)
        return task


def is_request(event: Event, api: str) -> bool:
    """Whether an event is a request of the client to an API."""
    return event.kind is Kind.REQUEST and event.api == api and event.member == CLIENT_LABEL


def has_member_id(request: DecodedRequest) -> bool:
    """Whether a request carries a member id."""
    return bool(request.body.get("member_id"))


ClientScenarioFamily: TypeAlias = CheckedScenarios[Callable[[ClientStage], Coroutine[Any, Any, None]]]
"""The scenarios of one module that test a client."""


# -- playing one scenario ---------------------------------------------------------------------------------------------

CLIENT_SETTINGS = Settings(min_session_timeout=1, initial_rebalance_delay=0)
"""Those of the cluster that clients meet: it takes every session timeout, and begins at once."""
MAX_REPEATS = 2
"""How often a scenario is played again in which the kit was too late."""
GRACE_MS = 1_000
"""How long news may be on its way to a client."""
END_OF_SCENARIO = "the scenario ends"
"""The last step of the script, which has the marks of the scenario."""
DOUBLED_END = "the program ended after a response that came twice, which no broker sends"
"""A client may: Apache Kafka's fails then."""


RunPlaying: TypeAlias = Callable[[Coroutine[Any, Any, ScenarioRun]], Awaitable[ScenarioRun]]


@dataclass(frozen=True, slots=True)
class ClientPlayer:
    """Plays scenarios with a client, of which `facts` are known. `start_cluster` starts a cluster that clients can
    reach. A client in this process is played on virtual time, if the loop that asks for it is on another one: `run`
    runs it then."""

    subject: ClientUnderTest
    name: str
    judge: TraceJudge
    start_cluster: Callable[[Settings], Awaitable[ScriptedCluster]]
    start_seconds: float
    clock: str = "wall"
    is_driven: bool = False
    grace_ms: int = GRACE_MS
    facts: ClientFacts = ClientFacts()
    run: RunPlaying | None = None

    async def play(self, scenario: Scenario, name: str = "", judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """Play a scenario from the start of a cluster to the end of the client, again if the kit was too late to blame
        anybody. Raises `TargetError`."""
        if self.run is not None:
            return await self.run(self._play_once(scenario, judge_trace))
        run = await self._play_once(scenario, judge_trace)
        for _ in range(MAX_REPEATS):
            if not (run.verdict.violated and explain_lag(run.loop_lag, run.header.grace)):
                break
            run = await self._play_once(scenario, judge_trace)
        return discard_if_lagging(run)

    async def _play_once(self, scenario: Scenario, judge_trace: JudgeFunction | None) -> ScenarioRun:
        """Play a scenario."""
        cluster = await self.start_cluster(CLIENT_SETTINGS)
        unique = uuid4().hex[:8]
        host, port = cluster.brokers.address
        place = ClientPlace(format_address(host, port), f"fencepost-{unique}", f"topic-{unique}")
        stage = ClientStage(cluster, self.subject, place, self.facts, self.start_seconds)
        blocked = not_shown = ""
        monitor = LoopLagMonitor()
        if self.clock == "wall":
            stage.start_task(monitor.watch())
        try:
            await scenario.play(stage)
        except (NotShown, NotOffered) as missing:
            not_shown = str(missing)
        except (StageBlocked, FloodError) as reason:
            blocked = f"{reason}{describe_last_words(stage)}"
        except TimeoutError:
            blocked = f"the client did not take part in a rebalance in time{describe_last_words(stage)}"
        finally:
            misconduct = describe_misconduct(stage)
            if stage.has_ended_early and not misconduct:
                blocked, not_shown = "", DOUBLED_END
            marks = {"blocked": blocked, "not_shown": not_shown, "misconduct": misconduct}
            told = {mark: reason for mark, reason in marks.items() if reason}
            cluster.annotate("script", {"step": END_OF_SCENARIO, "late_ms": monitor.worst_since(0), **told})
            events = tuple(cluster.events)
            transitions = dict(stage.running.transitions) if stage.running is not None else {}
            await stage.close()
        about = {"name": self.name, "subject": "client", "scenario": scenario.name}
        if self.is_driven:
            about["driver"] = "json"
        header = Header("fencepost test-client", Order.TOTAL, self.clock, CLIENT_SETTINGS, self.grace_ms, about)
        if judge_trace is not None:
            verdict = await judge_trace(header, events)
        elif self.clock == "wall":  # other scenarios go on beside
            verdict = await asyncio.to_thread(self.judge, header, events, NO_DECISIONS)
        else:
            verdict = self.judge(header, events, NO_DECISIONS)
        rules: Counter[str] = Counter()
        for transition, times in transitions.items():
            rules[transition.rule] += times
        return ScenarioRun(
            scenario,
            header,
            events,
            replace(verdict, rules=rules, transitions=transitions),
            blocked=blocked,
            loop_lag=monitor.worst_since(0),
            not_shown=not_shown,
            misconduct=misconduct,
        )


def run_in_trace(header: Header, events: tuple[Event, ...], verdict: TraceVerdict, scenario: Scenario) -> ScenarioRun:
    """The run of a scenario that its saved trace shows, with the marks that it has."""
    steps = (event.body for event in reversed(events) if event.kind is Kind.INTERNAL and event.api == "script")
    end = next((body for body in steps if body.get("step") == END_OF_SCENARIO), {})
    blocked, not_shown, misconduct = (str(end.get(mark, "")) for mark in ("blocked", "not_shown", "misconduct"))
    return ScenarioRun(
        scenario,
        header,
        events,
        verdict,
        blocked=blocked,
        loop_lag=int(end.get("late_ms", 0)),
        not_shown=not_shown,
        misconduct=misconduct,
    )


def describe_misconduct(stage: ClientStage) -> str:
    """What no client should do that this one has done, "" if there is nothing."""
    if stage.cluster.flooded.is_set():
        return str(flood_error())
    has_doubled = any(event.kind is Kind.FAULT and event.api == DOUBLED for event in stage.cluster.events)
    if stage.has_ended_early and not has_doubled:
        return f"the program ended by itself{describe_last_words(stage)}"
    return ""


def describe_last_words(stage: ClientStage) -> str:
    """The exit code of a client that ended by itself, and what it said last; "" if it said nothing."""
    told = []
    if stage.ended is not None and stage.ended.done():
        told.append(f"exit code {stage.ended.result()}")
    words = stage.running.last_words() if stage.running is not None else ""
    return "".join(f"; {each}" for each in (*told, *([f"its last words: {words}"] if words else [])))


def facts_in(events: Sequence[Event]) -> ClientFacts | None:
    """What a scenario has shown of the client; None if it has not joined."""
    join = next((event for event in events if is_request(event, "JoinGroup")), None)
    if join is None:
        return None
    session = join.body["session_timeout_ms"]
    names = tuple(protocol["name"] for protocol in join.body["protocols"])
    is_static = join.body.get("group_instance_id") is not None
    return ClientFacts(names, session, join.body.get("rebalance_timeout_ms", session), is_static)


def software_of(run: ScenarioRun) -> dict[str, str]:
    """What the client says of itself in ApiVersions (KIP-511)."""
    for event in run.events:
        if is_request(event, "ApiVersions") and event.body.get("client_software_name"):
            name, version = event.body["client_software_name"], event.body.get("client_software_version", "")
            return {"software": f"{name} {version}".strip(), **({"version": version} if version else {})}
    return {}
