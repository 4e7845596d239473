"""Plays one scenario with a client, and judges the requests of the client."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from fencepost.adapters.client.cluster import (
    CLIENT_LABEL,
    DOUBLED,
    FloodError,
    NotOffered,
    ScriptedCluster,
    flood_error,
)
from fencepost.adapters.client.program import ClientPlace, ClientUnderTest
from fencepost.adapters.target import format_address
from fencepost.conformance.clients.stage import ClientFacts, ClientStage, NotShown, StageBlocked, is_request
from fencepost.conformance.execution.loop_lag import LoopLagMonitor, discard_if_lagging, explain_lag
from fencepost.conformance.scenario.scenario import Scenario, ScenarioRun
from fencepost.model.settings import Settings
from fencepost.traces.client_judge.judge import FollowClient, judge_client
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.model_transitions import Transition
from fencepost.traces.verdict import TraceVerdict

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


@dataclass(frozen=True, slots=True)
class ClientPlay:
    """What all scenarios of a run have in common. `start_cluster` starts a cluster that clients can reach."""

    subject: ClientUnderTest
    name: str
    follow: FollowClient
    start_cluster: Callable[[Settings], Awaitable[ScriptedCluster]]
    start_seconds: float
    clock: str = "wall"
    is_driven: bool = False
    grace_ms: int = GRACE_MS

    async def play(self, scenario: Scenario, facts: ClientFacts) -> ScenarioRun:
        """Play a scenario from the start of a cluster to the end of the client, again if the kit was too late to blame
        anybody. Raises `TargetError`."""
        run = await self._play_once(scenario, facts)
        for _ in range(MAX_REPEATS):
            if not (run.verdict.violated and explain_lag(run.loop_lag, run.header.grace)):
                break
            run = await self._play_once(scenario, facts)
        return discard_if_lagging(run)

    async def _play_once(self, scenario: Scenario, facts: ClientFacts) -> ScenarioRun:
        """Play a scenario."""
        cluster = await self.start_cluster(CLIENT_SETTINGS)
        unique = uuid4().hex[:8]
        host, port = cluster.brokers.address
        place = ClientPlace(format_address(host, port), f"fencepost-{unique}", f"topic-{unique}")
        stage = ClientStage(cluster, self.subject, place, facts, self.start_seconds)
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
        if self.clock == "wall":  # other scenarios go on beside
            verdict = await asyncio.to_thread(judge_client, header, events, CLIENT_LABEL, self.follow)
        else:
            verdict = judge_client(header, events, CLIENT_LABEL, self.follow)
        return ScenarioRun(
            scenario,
            header,
            events,
            replace(verdict, rules=count_rules(transitions), transitions=transitions),
            blocked=blocked,
            loop_lag=monitor.worst_since(0),
            not_shown=not_shown,
            misconduct=misconduct,
        )


def run_in_trace(header: Header, events: tuple[Event, ...], verdict: TraceVerdict, scenario: Scenario) -> ScenarioRun:
    """The run of a scenario that its saved trace shows, with the marks that it has."""
    end = end_of_scenario(events)
    blocked, not_shown, misconduct = (str(end.get(mark, "")) for mark in ("blocked", "not_shown", "misconduct"))
    late = lateness_in(events)
    return ScenarioRun(
        scenario,
        header,
        events,
        verdict,
        blocked=blocked,
        loop_lag=late,
        not_shown=not_shown,
        misconduct=misconduct,
    )


def lateness_in(events: tuple[Event, ...]) -> int:
    """How late the kit was at most in a saved trace, in milliseconds."""
    return int(end_of_scenario(events).get("late_ms", 0))


def end_of_scenario(events: tuple[Event, ...]) -> Mapping[str, Any]:
    """What the last step of a saved trace says; empty if the trace has none."""
    steps = (event.body for event in reversed(events) if event.kind is Kind.INTERNAL and event.api == "script")
    return next((body for body in steps if body.get("step") == END_OF_SCENARIO), {})


def count_rules(transitions: Mapping[Transition, int]) -> Mapping[str, int]:
    """How often each rule applied."""
    rules: Counter[str] = Counter()
    for transition, times in transitions.items():
        rules[transition.rule] += times
    return rules


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


def facts_of(run: ScenarioRun) -> ClientFacts | None:
    """What a scenario has shown of the client; None if it has not joined."""
    join = next((event for event in run.events if is_request(event, "JoinGroup")), None)
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
