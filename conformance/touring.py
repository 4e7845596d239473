"""Transition tours as schedules: every state of a small coordinator under every input, as a target can be asked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fencepost.conformance.actors import CONSUMER, RANGE, Call, Member
from fencepost.conformance.scenario import Scenario
from fencepost.conformance.stage import Stage
from fencepost.model.explore.coordinator_tour import Input, Universe, coordinator_machine
from fencepost.model.explore.tours import Tours, TourStep, cover
from fencepost.model.settings import Settings

UNKNOWN = "nobody"
"""A member id that no coordinator hands out."""


def coordinator_tours(settings: Settings, universe: Universe, longest: int = 200) -> Tours[Input]:
    """Tours for a target with these settings; its timers decide how long a tour waits."""
    return cover(coordinator_machine(timed(settings, universe)), longest)


def timed(settings: Settings, universe: Universe) -> Universe:
    """The universe on the target's clock."""
    session = max(settings.min_session_timeout, 1_500)
    return Universe(
        universe.ids,
        universe.generations,
        universe.metadata,
        session_timeout=session,
        rebalance_timeout=2 * session + 1_000,
        initial_delay=settings.initial_rebalance_delay,
        new_member_timeout=settings.new_member_timeout,
    )


def scenarios(tours: Tours[Input], universe: Universe) -> Iterator[Scenario]:
    """One scenario for each tour. `universe` is the one on the target's clock."""
    for number, tour in enumerate(tours.tours, 1):
        yield Scenario(f"tour-{number}", (), Touring(tour, universe))


@dataclass(frozen=True, slots=True)
class Touring:
    """Plays one tour. The judge follows whatever the target does, so it does no harm if it goes another way."""

    tour: Sequence[TourStep[Input]]
    universe: Universe

    async def __call__(self, stage: Stage) -> None:
        """Send everything, waiting for no answer but those that hand out an id."""
        cast = Cast(stage, self.universe)
        for step in self.tour:
            if step.input.kind == "wait":
                await stage.sleep(step.milliseconds)
                continue
            call = cast.send(step.input)
            if step.rule == "join.id-required":
                body = await call
                cast.ids.append(body.get("member_id") or UNKNOWN)


@dataclass(slots=True)
class Cast:
    """The members of a tour, by the order in which they got their ids."""

    stage: Stage
    universe: Universe
    ids: list[str] = field(default_factory=list)

    def send(self, given: Input) -> Call:
        """Send one input."""
        member = self.member(given)
        match given.kind:
            case "join":
                return self.stage.join(member)
            case "sync":
                owners = {one: b"all" if place == given.variant else b"" for place, one in enumerate(self.ids, 1)}
                return self.stage.sync(member, owners if given.variant else {})
            case "heartbeat":
                return self.stage.heartbeat(member)
            case "commit":
                return self.stage.commit(member, {0: 1})
            case _:
                return self.stage.leave(member)

    def member(self, given: Input) -> Member:
        """The actor, as it knows itself at this moment."""
        label = f"M{given.member}" if given.member else "new"
        known = given.member <= len(self.ids)
        name = (self.ids[given.member - 1] if known else UNKNOWN) if given.member else ""
        return Member(
            label,
            ((RANGE, self.stage.metadata(f"variant {given.variant}")),),
            self.universe.session_timeout,
            self.universe.rebalance_timeout,
            protocol_type=CONSUMER,
            id=name,
            generation=given.generation,
            protocol=RANGE,
        )
