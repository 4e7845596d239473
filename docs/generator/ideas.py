"""What became of the ideas: one incident under each of the systems, played on its bundled implementation."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.proposal.coordinator import ProposedCoordinator
from fencepost.adapters.push.target import BundledPushTarget
from fencepost.adapters.region.line_target import LineTarget, connect_in_memory
from fencepost.adapters.target import Target
from fencepost.adapters.virtual_clock import run_virtual_in_thread
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.push.context import PushContext
from fencepost.conformance.push.protocol import PUSH
from fencepost.conformance.region.job import Job, run_job
from fencepost.conformance.region.protocol import REGION
from fencepost.conformance.reports.drawings import to_svg
from fencepost.conformance.reports.sequence import draw_sequence
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.context import ScenarioContext, ScenarioFunction
from fencepost.conformance.run.protocol import ProtocolDescription
from fencepost.conformance.run.registry import DEFAULT_PROTOCOL
from fencepost.conformance.run.requests import Member
from fencepost.conformance.subject import Scenario
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind
from fencepost.traces.region.judge import FIELDS

BEGUN = "resume"
"""The last request before an incident in a region; pictures begin behind it."""
PREFIX = "idea-"
"""Pictures are called `idea-INCIDENT-SYSTEM`."""


@dataclass(frozen=True, slots=True)
class System:
    """A bundled implementation; `target` is the name of the lane beside the members, `pushed` the APIs of requests that
    come from there."""

    protocol: ProtocolDescription
    make_target: Callable[[Settings], Target]
    target: str
    incidents: Mapping[str, ScenarioFunction]
    pushed: frozenset[str] = frozenset()


# -- the classic protocol, and the proposal before it ------------------------------------------------------------------


async def lose_member(group: ScenarioContext) -> None:
    """C joins the group of A and B; B is dead, and everybody waits for it until its session ends."""
    a, _ = await group.form_stable_group(group.member("A"), group.member("B"))
    c = group.member("C")
    joining = await group.join_new(c)
    rejoining = group.join(a)
    for call in (joining, rejoining):
        await call
    await group.sync_all(*in_order(a, c))


async def lose_coordinator(group: ScenarioContext) -> None:
    """The coordinator has answered both JoinGroups, and is lost before the leader's SyncGroup has come."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))
    group.sync(follower)
    await group.sleep(group.short_pause)
    await group.restart()
    again = group.sync(follower)
    stored = group.sync_leader(leader, follower)
    await stored
    if (await again)["error_code"]:
        await group.form_stable_group(leader, follower)


async def grow_by_rejoining(group: ScenarioContext) -> None:
    """The leader joins again for the partition that was added, and so does everybody."""
    leader, follower = await group.form_stable_group(group.member("A"), group.member("B"))
    rejoining = group.join_with_new_metadata(leader)
    await group.heartbeat(follower)
    await group.join(follower)
    await rejoining
    await group.sync_all(*in_order(leader, follower))


async def grow_by_assigning(group: ScenarioContext) -> None:
    """The leader sends another assignment in the same generation."""
    leader, follower = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.sync(leader, {leader.id: b"A", follower.id: b"B and the new one"})
    await group.heartbeat(follower)
    await group.sync(follower)


def in_order(*members: Member) -> list[Member]:
    """The members, their leader first."""
    return sorted(members, key=lambda one: one.leader != one.id)


# -- push --------------------------------------------------------------------------------------------------------------


async def lose_consumer(context: ScenarioContext) -> None:
    """C registers, A and B are told to stop, and A dies before it answers."""
    push = PushContext(context)
    first, second = await push.group_of("a", "b")
    first.pauses_at = "Stop"
    await push.consumer("c").join()
    await first.await_requests("Stop")
    first.crash()
    await second.await_start()
    await push.settle()


async def lose_pusher(context: ScenarioContext) -> None:
    """B has answered that it stopped, A has not: the coordinator is lost, and everybody registers with the next one."""
    push = PushContext(context)
    first, _ = await push.group_of("a", "b")
    first.pauses_at = "Stop"
    await push.consumer("c").join()
    await first.await_requests("Stop")
    await push.hooks.kill_coordinator()
    await push.settle()
    again = [await push.consumer(name).join() for name in ("a", "b", "c")]
    for one in again:
        await one.await_start()


async def grow_by_pushing(context: ScenarioContext) -> None:
    """The coordinator sees the partition that was added, stops everybody and starts them anew."""
    push = PushContext(context)
    first, _ = await push.group_of("a", "b")
    push.add_partition()
    await first.await_requests("Start")
    await push.settle()


# -- the region --------------------------------------------------------------------------------------------------------


async def start_region(context: ScenarioContext) -> Job:
    """A owns partition 0, B owns 1; checkpoint 1 is complete, and each has submitted one more record."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    for partition, name in enumerate(job.names):
        await job.poll(name, (partition, 1))
        await job.pass_on(name)
    return job


async def lose_operator(context: ScenarioContext) -> None:
    """B's process dies after A was revoked: the region goes back to the checkpoint, and B's partition waits for B."""
    job = await start_region(context)
    await job.ask("revoke", "A")
    await job.ask("crash", "B")
    await job.ask("launch", "B", region=0, again=True)
    await job.reset(1)
    await job.assign("A", 0)
    await job.assign("B", 1)


async def lose_control_plane(context: ScenarioContext) -> None:
    """The control plane restarts after one of two contributions."""
    job = await start_region(context)
    await job.contribute("A", 1)
    await job.ask("restart")
    await job.contribute("B", 1)
    for name in job.names:
        await job.ask("finish", name, number=1)


async def grow_region(context: ScenarioContext) -> None:
    """A partition is added: everybody is revoked and has fetched, so the region goes back to the checkpoint."""
    job = await start_region(context)
    for name in job.names:
        await job.ask("revoke", name)
    await job.assign("A", 0, 2)
    await job.assign("B", 1)
    await job.reset(1)


SYSTEMS: Mapping[str, System] = MappingProxyType(
    {
        "push": System(
            PUSH,
            lambda settings: BundledPushTarget(),
            "coordinator",
            {"death": lose_consumer, "failover": lose_pusher, "growth": grow_by_pushing},
            PUSH.specification.pushed,
        ),
        "proposal": System(
            DEFAULT_PROTOCOL,
            lambda settings: InProcessTarget(settings, make_coordinator=ProposedCoordinator),
            "coordinator",
            {"death": lose_member, "failover": lose_coordinator, "growth": grow_by_assigning},
        ),
        "classic": System(
            DEFAULT_PROTOCOL,
            InProcessTarget,
            "coordinator",
            {"death": lose_member, "failover": lose_coordinator, "growth": grow_by_rejoining},
        ),
        "region": System(
            REGION,
            lambda settings: LineTarget("region", connect_in_memory),
            "Kafka and region",
            {"death": lose_operator, "failover": lose_control_plane, "growth": grow_region},
            frozenset(FIELDS),
        ),
    }
)


@cache
def play_idea(incident: str, system: str) -> tuple[Event, ...]:
    """The trace of an incident under a system. Raises `KeyError` for one that there is not."""
    under = SYSTEMS[system]
    scenario = Scenario(f"{incident}-{system}", (), under.incidents[incident])
    run = BundledRun(Plan(system), Profile(), under.make_target, protocol=under.protocol)
    played = asyncio.run(run_virtual_in_thread(run.play(scenario, "picture")))
    assert not played.blocked and not played.unsupported, played.blocked or played.unsupported
    return played.events


def telling_events(events: Sequence[Event]) -> list[Event]:
    """The events of members, without what goes on at all times."""
    asked = {event.sequence for event in events if event.kind is Kind.REQUEST and event.member and event.api != "Ping"}
    return [event for event in events if event.sequence in asked or event.of in asked or is_blow(event)]


def is_blow(event: Event) -> bool:
    """Whether an event is a fault of the target, or of a member."""
    return event.kind is Kind.FAULT and (bool(event.member) or event.api in ("restart", "closed"))


def draw_idea(name: str) -> str:
    """The picture `idea-INCIDENT-SYSTEM` as an SVG element. Raises `KeyError`."""
    incident, _, system = name.removeprefix(PREFIX).partition("-")
    events = play_idea(incident, system)
    begun = max((place for place, event in enumerate(events) if event.api == BEGUN), default=-1)
    under = SYSTEMS[system]
    diagram = replace(draw_sequence(telling_events(events[begun + 1 :]), pushed=under.pushed), target=under.target)
    return to_svg(diagram, (), f"{incident}: {system}", "An incident under one of the systems.")
