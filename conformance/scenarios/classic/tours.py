"""Transition tours as schedules: every state of a small coordinator under every input, as a target can be asked."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from fencepost.conformance.plan import Plan
from fencepost.conformance.scenario.actors import Call, Member
from fencepost.conformance.scenario.context import Stage
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.selection import Selection
from fencepost.model.explore.classic.coordinator_inputs import Input, Joining, Universe, handle, joinings
from fencepost.model.explore.classic.coordinator_tour import WAITS, coordinator_machine
from fencepost.model.explore.tours import Tours, TourStep, cover
from fencepost.model.settings import Settings

UNKNOWN = "nobody"
"""A member id that no coordinator hands out."""
LONGEST = 100
"""About how many steps a tour has."""
PATIENCE_MS = 30_000
"""About how long the timers of a tour take together."""
AT_ONCE_MS = 1_000
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
    tours = chosen(settings, plan.tours, plan.seed) if plan.tours else ()
    return replace(selection, scenarios=(*selection.scenarios, *tours))


def chosen(settings: Settings, count: int, seed: int) -> tuple[Scenario, ...]:
    """So many of the tours for a target with these settings, drawn by the seed; all of them if there are no more."""
    universes = [timed(settings, universe) for universe in UNIVERSES]
    plays = [play for universe in universes for play in scenarios(universe)]
    return tuple(Random(seed).sample(plays, min(count, len(plays))))


def scenarios(universe: Universe) -> Iterator[Scenario]:
    """One scenario for each tour over a universe that is on the target's clock."""
    what = "static-tour" if universe.instances else "tour"
    for number, tour in enumerate(tours_over(universe).tours, 1):
        yield Scenario(f"{what}-{number}", (), Touring(tour, universe))


def tours_over(universe: Universe) -> Tours[Input]:
    """The tours, none of them much longer than a person waits for."""
    return cover(coordinator_machine(universe), LONGEST, PATIENCE_MS)


def timed(settings: Settings, universe: Universe) -> Universe:
    """The universe with timeouts that the target allows, on the target's clock."""
    session = max(settings.min_session_timeout, 1_500)
    ways = (Joining(each.names, each.metadata, session, 2 * session + 1_000) for each in universe.joinings)
    return replace(
        universe,
        joinings=tuple(ways),
        initial_delay=settings.initial_rebalance_delay,
        new_member_timeout=settings.new_member_timeout,
        max_group_size=settings.max_group_size,
    )


@dataclass(frozen=True, slots=True)
class Touring:
    """Plays one tour. The judge follows whatever the target does, so it does no harm if it goes another way."""

    tour: Sequence[TourStep[Input]]
    universe: Universe

    async def __call__(self, stage: Stage) -> None:
        """Send everything, waiting for the answers that come at once; a real clock needs more time for a timer."""
        cast = Cast(stage, self.universe)
        leeway = 0 if stage.description.clock == "virtual" else LEEWAY_MS
        for step in self.tour:
            if step.input.kind in WAITS:
                await stage.sleep(step.milliseconds + leeway)
                continue
            if step.input.kind == "look" and "DescribeGroups" not in stage.description.versions:
                continue
            at_once = cast.is_answered(step)
            call = cast.send(step)
            if at_once:
                await asyncio.wait([call.exchange.answer], timeout=AT_ONCE_MS / 1000)


@dataclass(slots=True)
class Cast:
    """The members of a tour, by the order in which they got their ids; some learn theirs only when a round ends."""

    stage: Stage
    universe: Universe
    ids: list[Call] = field(default_factory=list)

    def is_answered(self, step: TourStep[Input]) -> bool:
        """The model answers the request at once."""
        if step.input.kind == "look":
            return True
        mine = handle(self.universe, step.input, len(self.ids) + 1)
        return any(isinstance(one, tuple) and one[1] == mine for one in step.answers)

    def send(self, step: TourStep[Input]) -> Call:
        """Send one input."""
        given = step.input
        member = self.member(given)
        match given.kind:
            case "join":
                call = self.stage.join(member)
                if gives_id(step.rule):
                    self.ids.append(call)
                return call
            case "sync":
                present = range(1, len(self.ids) + 1)
                owners = {self.id(one): b"all" if one == given.variant else b"" for one in present}
                return self.stage.sync(member, owners if given.variant else {})
            case "heartbeat":
                return self.stage.heartbeat(member)
            case "commit":
                return self.stage.commit(member, {0: 1})
            case "look":
                return self.stage.describe()
            case _:
                return self.stage.leave(member)

    def id(self, number: int) -> str:
        """The id that was handed out so many-th, as far as its owner knows it."""
        if not 0 < number <= len(self.ids):
            return UNKNOWN
        call = self.ids[number - 1]
        body = call.exchange.answer.result() if call.done else None
        return (body or {}).get("member_id") or UNKNOWN

    def member(self, given: Input) -> Member:
        """The actor, as it knows itself at this moment."""
        how = self.universe.joinings[given.variant if given.kind == "join" else 0]
        return Member(
            f"M{given.member}" if given.member else "new",
            tuple((name, self.stage.metadata(f"variant {how.metadata}")) for name in how.names),
            how.session_timeout,
            how.rebalance_timeout,
            instance=f"{given.instance}-{self.stage.group}" if given.instance else None,
            protocol_type=how.protocol_type,
            id=self.id(given.member) if given.member else "",
            generation=given.generation,
            protocol=how.names[0],
        )


def gives_id(rule: str) -> bool:
    """A JoinGroup that went by this rule was given an id."""
    return rule in ("join.id-required", "join.new", "join.new-static") or rule.startswith("join.replace")
