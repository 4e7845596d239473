"""Transition tours as scenarios: together they take every transition of a small group in the model."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.requests import Call, Member
from fencepost.conformance.subject import Scenario
from fencepost.model.classic.explore.coordinator_inputs import Input, JoinOptions, Universe, joinings, request_handle
from fencepost.model.classic.explore.coordinator_tour import TIMED_KINDS, coordinator_machine
from fencepost.model.explore.tours import Tours, TourStep, cover_transitions
from fencepost.model.settings import Settings

UNKNOWN_ID = "nobody"
"""A member id that no coordinator issues."""
MAX_TOUR_STEPS = 100
"""The number of steps after which a tour ends as soon as it can."""
MAX_TIMERS_MS = 30_000
"""The sum of its timers after which a tour ends as soon as it can."""
PROMPT_TIMEOUT_MS = 1_000
"""How long a tour waits for an immediate response; a target that took another transition may not send it."""
LEEWAY_MS = 50
"""How long after its deadline a tour relies on a timer of a target on a real clock."""

UNIVERSES = (
    Universe(ids=2, generations=1, joinings=joinings(1)),
    Universe(
        ids=2, generations=1, joinings=joinings(1), instances=1, only=("join", "sync", "leave", "wait"), strangers=False
    ),
)
"""The universes of the tours of a run: two members; a static member beside a dynamic one."""


def sample_tours(settings: Settings, count: int, seed: int) -> tuple[Scenario, ...]:
    """At most `count` of the tours for a target with these settings, drawn by the seed."""
    if not count:
        return ()
    universes = [with_target_timeouts(settings, universe) for universe in UNIVERSES]
    plays = [play for universe in universes for play in tour_scenarios(universe)]
    return tuple(Random(seed).sample(plays, min(count, len(plays))))


def tour_scenarios(universe: Universe) -> Iterator[Scenario]:
    """One scenario for each tour over the universe, whose timeouts the target has to allow."""
    what = "static-tour" if universe.instances else "tour"
    for number, tour in enumerate(tours_over(universe).tours, 1):
        yield Scenario(f"{what}-{number}", (), TourRunner(tour, universe))


def tours_over(universe: Universe) -> Tours[Input]:
    """Tours that cover every transition of the universe, limited in steps and in the time of their timers."""
    return cover_transitions(coordinator_machine(universe), MAX_TOUR_STEPS, MAX_TIMERS_MS)


def with_target_timeouts(settings: Settings, universe: Universe) -> Universe:
    """A copy of the universe with the delays and limits of the settings, and with timeouts that they allow."""
    session = max(settings.min_session_timeout, 1_500)
    ways = (JoinOptions(each.names, each.metadata, session, 2 * session + 1_000) for each in universe.joinings)
    return replace(
        universe,
        joinings=tuple(ways),
        initial_delay=settings.initial_rebalance_delay,
        new_member_timeout=settings.new_member_timeout,
        max_group_size=settings.max_group_size,
    )


@dataclass(frozen=True, slots=True)
class TourRunner:
    """Plays one tour. The judge follows the target, so it does no harm if the target takes other transitions."""

    tour: Sequence[TourStep[Input]]
    universe: Universe

    async def __call__(self, group: ScenarioContext) -> None:
        """Take the steps one by one and await immediate responses; on a real clock, timers get some leeway."""
        cast = TourMembers(group, self.universe)
        leeway = 0 if group.description.clock == "virtual" else LEEWAY_MS
        for step in self.tour:
            if step.input.kind in TIMED_KINDS:
                await group.sleep(step.milliseconds + leeway)
                continue
            if step.input.kind == "look" and "DescribeGroups" not in group.description.versions:
                continue
            at_once = cast.expects_response(step)
            call = cast.send(step)
            if at_once:
                await asyncio.wait([call.exchange.response], timeout=PROMPT_TIMEOUT_MS / 1000)


@dataclass(slots=True)
class TourMembers:
    """The members of a tour, numbered in the order of their ids; some learn theirs when a join phase ends."""

    group: ScenarioContext
    universe: Universe
    ids: list[Call] = field(default_factory=list)

    def expects_response(self, step: TourStep[Input]) -> bool:
        """Whether the model responds to the request in the same step."""
        if step.input.kind == "look":
            return True
        mine = request_handle(self.universe, step.input, len(self.ids) + 1)
        return any(isinstance(one, tuple) and one[1] == mine for one in step.responses)

    def send(self, step: TourStep[Input]) -> Call:
        """Send the request of a step."""
        given = step.input
        member = self.member_for(given)
        match given.kind:
            case "join":
                call = self.group.join(member)
                if assigns_id(step.rule):
                    self.ids.append(call)
                return call
            case "sync":
                present = range(1, len(self.ids) + 1)
                owners = {self.member_id(one): b"all" if one == given.variant else b"" for one in present}
                return self.group.sync(member, owners if given.variant else {})
            case "heartbeat":
                return self.group.heartbeat(member)
            case "commit":
                return self.group.commit(member, {0: 1})
            case "look":
                return self.group.describe_groups()
            case _:
                return self.group.leave(member)

    def member_id(self, number: int) -> str:
        """The number-th issued member id, or `UNKNOWN_ID` as long as its owner has not received it."""
        if not 0 < number <= len(self.ids):
            return UNKNOWN_ID
        call = self.ids[number - 1]
        body = call.exchange.response.result() if call.done else None
        return (body or {}).get("member_id") or UNKNOWN_ID

    def member_for(self, given: Input) -> Member:
        """The member that sends an input, with the id that it has received so far."""
        how = self.universe.joinings[given.variant if given.kind == "join" else 0]
        return Member(
            f"M{given.member}" if given.member else "new",
            tuple((name, self.group.metadata(f"variant {how.metadata}")) for name in how.names),
            how.session_timeout,
            how.rebalance_timeout,
            instance=f"{given.instance}-{self.group.group_id}" if given.instance else None,
            protocol_type=how.protocol_type,
            id=self.member_id(given.member) if given.member else "",
            generation=given.generation,
            protocol=how.names[0],
        )


def assigns_id(rule: str) -> bool:
    """Whether the rule gives the sender of JoinGroup a member id."""
    return rule in ("join.id-required", "join.new", "join.new-static") or rule.startswith("join.replace")
