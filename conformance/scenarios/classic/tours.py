"""Transition tours as schedules: every state of a small coordinator under every input, as a target can be asked."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from fencepost.conformance.plan import Plan
from fencepost.conformance.scenario.actors import Call, Member
from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.selection import Selection
from fencepost.model.explore.classic.coordinator_inputs import Input, JoinOptions, Universe, joinings, request_handle
from fencepost.model.explore.classic.coordinator_tour import TIMED_KINDS, coordinator_machine
from fencepost.model.explore.tours import Tours, TourStep, cover_transitions
from fencepost.model.settings import Settings

UNKNOWN_ID = "nobody"
"""A member id that no coordinator hands out."""
MAX_TOUR_STEPS = 100
"""About how many steps a tour has."""
MAX_TIMERS_MS = 30_000
"""About how long the timers of a tour take together."""
PROMPT_TIMEOUT_MS = 1_000
"""How long a tour waits for an answer that comes at once, unless the target has gone another way."""
LEEWAY_MS = 50
"""How much later than it is due a timer of a target on a real clock is counted on."""

UNIVERSES = (
    Universe(ids=2, generations=1, joinings=joinings(1)),
    Universe(
        ids=2, generations=1, joinings=joinings(1), instances=1, only=("join", "sync", "leave", "wait"), strangers=False
    ),
)
"""What the tours of a run are over: two members, and a static one beside a dynamic one."""


def with_tours(selection: Selection, settings: Settings, plan: Plan) -> Selection:
    """The selection, and the tours that the plan asks for."""
    tours = sample_tours(settings, plan.tours, plan.seed) if plan.tours else ()
    return replace(selection, scenarios=(*selection.scenarios, *tours))


def sample_tours(settings: Settings, count: int, seed: int) -> tuple[Scenario, ...]:
    """So many of the tours for a target with these settings, drawn by the seed; all of them if there are no more."""
    universes = [with_target_timeouts(settings, universe) for universe in UNIVERSES]
    plays = [play for universe in universes for play in tour_scenarios(universe)]
    return tuple(Random(seed).sample(plays, min(count, len(plays))))


def tour_scenarios(universe: Universe) -> Iterator[Scenario]:
    """One scenario for each tour over a universe that is on the target's clock."""
    what = "static-tour" if universe.instances else "tour"
    for number, tour in enumerate(tours_over(universe).tours, 1):
        yield Scenario(f"{what}-{number}", (), TourRunner(tour, universe))


def tours_over(universe: Universe) -> Tours[Input]:
    """The tours, none of them much longer than a person waits for."""
    return cover_transitions(coordinator_machine(universe), MAX_TOUR_STEPS, MAX_TIMERS_MS)


def with_target_timeouts(settings: Settings, universe: Universe) -> Universe:
    """The universe with timeouts that the target allows, on the target's clock."""
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
    """Plays one tour. The judge follows whatever the target does, so it does no harm if it goes another way."""

    tour: Sequence[TourStep[Input]]
    universe: Universe

    async def __call__(self, context: ScenarioContext) -> None:
        """Send everything, waiting for the answers that come at once; a real clock needs more time for a timer."""
        cast = TourMembers(context, self.universe)
        leeway = 0 if context.description.clock == "virtual" else LEEWAY_MS
        for step in self.tour:
            if step.input.kind in TIMED_KINDS:
                await context.sleep(step.milliseconds + leeway)
                continue
            if step.input.kind == "look" and "DescribeGroups" not in context.description.versions:
                continue
            at_once = cast.expects_response(step)
            call = cast.send(step)
            if at_once:
                await asyncio.wait([call.exchange.response], timeout=PROMPT_TIMEOUT_MS / 1000)


@dataclass(slots=True)
class TourMembers:
    """The members of a tour, by the order in which they got their ids; some learn theirs only when a round ends."""

    context: ScenarioContext
    universe: Universe
    ids: list[Call] = field(default_factory=list)

    def expects_response(self, step: TourStep[Input]) -> bool:
        """The model answers the request at once."""
        if step.input.kind == "look":
            return True
        mine = request_handle(self.universe, step.input, len(self.ids) + 1)
        return any(isinstance(one, tuple) and one[1] == mine for one in step.responses)

    def send(self, step: TourStep[Input]) -> Call:
        """Send one input."""
        given = step.input
        member = self.member_for(given)
        match given.kind:
            case "join":
                call = self.context.join(member)
                if assigns_id(step.rule):
                    self.ids.append(call)
                return call
            case "sync":
                present = range(1, len(self.ids) + 1)
                owners = {self.member_id(one): b"all" if one == given.variant else b"" for one in present}
                return self.context.sync(member, owners if given.variant else {})
            case "heartbeat":
                return self.context.heartbeat(member)
            case "commit":
                return self.context.commit(member, {0: 1})
            case "look":
                return self.context.describe_groups()
            case _:
                return self.context.leave(member)

    def member_id(self, number: int) -> str:
        """The id that was handed out so many-th, as far as its owner knows it."""
        if not 0 < number <= len(self.ids):
            return UNKNOWN_ID
        call = self.ids[number - 1]
        body = call.exchange.response.result() if call.done else None
        return (body or {}).get("member_id") or UNKNOWN_ID

    def member_for(self, given: Input) -> Member:
        """The actor, as it knows itself at this moment."""
        how = self.universe.joinings[given.variant if given.kind == "join" else 0]
        return Member(
            f"M{given.member}" if given.member else "new",
            tuple((name, self.context.metadata(f"variant {how.metadata}")) for name in how.names),
            how.session_timeout,
            how.rebalance_timeout,
            instance=f"{given.instance}-{self.context.group}" if given.instance else None,
            protocol_type=how.protocol_type or "",
            id=self.member_id(given.member) if given.member else "",
            generation=given.generation,
            protocol=how.names[0],
        )


def assigns_id(rule: str) -> bool:
    """A JoinGroup that went by this rule was given an id."""
    return rule in ("join.id-required", "join.new", "join.new-static") or rule.startswith("join.replace")
