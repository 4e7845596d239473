"""Random schedules of a region: walks through the model's transition system, each step as requests of its job."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Any

from fencepost.conformance.region.job import start_job
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.schedule import GeneratedSchedule, Move, Schedule, ScheduleProtocol
from fencepost.conformance.subject import Scenario
from fencepost.model.explore.engine import apply_transition
from fencepost.model.explore.rows import NOTHING, Transitions
from fencepost.model.explore.transition_system import Action, Transition, TransitionSystem
from fencepost.model.region.controller import Region, RegionMode, keys_of
from fencepost.model.region.explore.row import (
    KAFKA,
    REGION,
    VARIABLES,
    RegionBounds,
    RegionFaults,
    RegionView,
    actions_about,
)
from fencepost.model.region.explore.system import crash_operator, region_system
from fencepost.model.region.group import has_member
from fencepost.model.region.operator import RESET_OR_NEW, ClientState, Membership, Operator, Polling

# A walk through the transition system of a region, with the requests that each step stands for.
#
# Kafka, the region's controller and the operators downstream are columns of the row; the operators' columns say what
# they are expected to do, so that no request asks for what cannot be.


WALK_FAULTS = RegionFaults(failures=2, crashes=2, expulsions=2, rebalances=2, partitions=1, restarts=2)
BOUNDS = RegionBounds(operators=3, partitions=2, records=4, checkpoints=4, capacity=4, faults=WALK_FAULTS)
FIRST_OFFSETS = (10, 20, 30)
"""Where each partition begins; the model's begin at 0."""
KNOWN = 200_000
"""Steps that are remembered."""
DRAIN_MS = (9, 3, 5, 4)
"""How long an operator's drain for each checkpoint takes."""
LATER = 5
"""How much further a start position is once somebody has read the partition."""
Row = tuple[Any, ...]


# The actions of a walk that no search has: an operator waits for a merge in vain, or finds records of the log lost.


def wait_in_vain(at: RegionView) -> Transitions:
    """The time to wait for a merge is over, and the region is reset once more (X3)."""
    region = at.region
    waits = region.mode is RegionMode.RESET and region.last > 0 and at.name in region.todo & region.contributed
    is_complete = at.bean.checkpoint == region.last and at.bean.merged is not None
    if not waits or not at.own.is_up or is_complete:
        return NOTHING
    return at.does(f"{at.name} waits for a merge in vain", "merge.late", **at.reset())


def find_records_lost(at: RegionView) -> Transitions:
    """The first poll after a seek returns a later record than the one that was sought, and the PE goes down (H15)."""
    is_settled = at.own.membership is Membership.MEMBER and at.own.polling is not Polling.OFF
    if not is_settled or at.own.state not in RESET_OR_NEW or not keys_of(at.own.positions):
        return NOTHING
    return crash_operator(at)


def walk_system() -> TransitionSystem:
    """The system that is searched, with these actions of every operator."""
    searched = region_system(BOUNDS)
    more: list[Action] = []
    for name in BOUNDS.names:
        make = actions_about(BOUNDS, name).action
        more += [
            make(f"{name} waits in vain", "region store bean own", wait_in_vain),
            make(f"{name} finds records lost", "faults region store bean kafka own", find_records_lost),
        ]
    return replace(searched, actions=(*searched.actions, *more))


SYSTEM = walk_system()
ACTIONS: Mapping[str, Action] = {action.name: action for action in SYSTEM.actions}
"""The actions by name; those of operators begin with theirs."""


@dataclass(frozen=True, slots=True)
class WalkRequest:
    """A request of the line protocol. `operator` is empty where it is about none."""

    api: str
    operator: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class RegionWalk:
    """Where a walk has come to."""

    row: Row = field(default_factory=lambda: tuple(BOUNDS.initial()))
    system: TransitionSystem = SYSTEM

    def take(self, name: str, choice: int) -> tuple[Transition | None, tuple[WalkRequest, ...]]:
        """Take the action of this name, if it is possible; `choice` selects one of its transitions."""
        action = ACTIONS.get(name)
        transitions = () if action is None else transitions_of(action, self.row)
        if not transitions:
            return None, ()
        transition = transitions[choice % len(transitions)]
        before, self.row = self.row, apply_transition(self.row, transition)
        if name == "control plane restarts":
            self._connect_all()
        return transition, tuple(requests_of(name, transition, before, self.row))

    def _connect_all(self) -> None:
        """All operators that are up connect again at once."""
        for name in BOUNDS.names:
            for transition in transitions_of(ACTIONS[f"{name} registers"], self.row):
                self.row = apply_transition(self.row, transition)


def transitions_of(action: Action, row: Row) -> tuple[Transition, ...]:
    """What an action can do."""
    return known_transitions(action, tuple(row[column] for column in action.columns))


@lru_cache(maxsize=KNOWN)
def known_transitions(action: Action, values: Row) -> tuple[Transition, ...]:
    """What an action can do where its columns have these values, of which few differ from those of the step before."""
    return action.transitions(*values)


def requests_of(name: str, transition: Transition, before: Row, after: Row) -> list[WalkRequest]:
    """The requests that an action stands for."""
    if name == "control plane restarts":
        return [WalkRequest("restart")]
    who, _, what = name.partition(" ")
    if who not in BOUNDS.names:
        return []
    own, then = before[BOUNDS.column(who)], after[BOUNDS.column(who)]
    region: Region = before[REGION]
    match what:
        case "joins":
            return [WalkRequest("revoke", who)] if own.membership is Membership.MEMBER else []
        case "is assigned":
            assigned = WalkRequest("assign", who, assignment_fields(own, then, before))
            # The poll that has called back returns records to an operator that waits for a reset: it drops them (P2).
            partitions = keys_of(then.positions) if then.state is ClientState.RESET_PENDING else ()
            polled = WalkRequest("poll", who, {"records": [[one, FIRST_OFFSETS[one]] for one in partitions]})
            return [assigned, polled] if partitions else [assigned]
        case "fetches":
            return [WalkRequest("poll", who, {"records": [fetched_record(own, then)]})]
        case "takes":
            return [WalkRequest("take", who, {"permit": True})]
        case "submits":
            return [WalkRequest("submit", who, {"permit": True})]
        case "drains":
            error = "ILLEGAL_GENERATION" if transition.rule == "drain.commit-failed" else ""
            return [WalkRequest("drain", who, {"error": error, "takes": DRAIN_MS[region.last % len(DRAIN_MS)]})]
        case "checkpoints":
            member = has_member(before[KAFKA].group, who)
            written = [WalkRequest("checkpoint", who, {"number": region.last + 1, "member": member})]
            is_over = transition.rule == "checkpoint.complete" and region.last > 0
            return written + ([WalkRequest("retire", "", {"number": region.last})] if is_over else [])
        case "resumes":
            return [WalkRequest("resume", who)]
        case "contributes":
            # Older merges are needed no more, whenever that is said.
            retired = [WalkRequest("retire", "", {"number": region.last - 1})] * (region.last > 1)
            return [WalkRequest("reset", who, {"number": region.last}), *retired]
        case "waits in vain":
            return [WalkRequest("finish", who, {"number": region.last, "late": True})]
        case "finds records lost":
            return [WalkRequest("poll", who, {"records": [record_after_lost(own)]})]
        case "is reset":
            return [WalkRequest("finish" if region.last else "reset", who, {"number": region.last})]
        case "dies":
            return [WalkRequest("crash", who)]
        case "comes back":
            return [WalkRequest("launch", who, {"region": 0, "again": True})]
    return []


def assignment_fields(own: Operator, then: Operator, before: Row) -> dict[str, Any]:
    """The partitions that an operator is assigned, and the start positions, which move on once somebody has read."""
    variables = before[VARIABLES]
    partitions = keys_of(then.positions)
    starts = {str(one): FIRST_OFFSETS[one] + (0 if variables[one] is None else LATER) for one in partitions}
    return {"partitions": list(partitions), "starts": starts}


def record_after_lost(own: Operator) -> list[int]:
    """The record behind the one that an operator has sought."""
    partition = keys_of(own.positions)[0]
    offset = own.positions[partition]
    assert offset is not None
    return [partition, offset + 1 + FIRST_OFFSETS[partition]]


def fetched_record(own: Operator, then: Operator) -> list[int]:
    """The record by which the positions differ."""
    for partition, (old, new) in enumerate(zip(own.positions, then.positions, strict=True)):
        if old != new and old is not None:
            return [partition, old + FIRST_OFFSETS[partition]]
    raise AssertionError("nothing was fetched")


# The region as the schedule engine sees it: a schedule is a walk, played as requests to one job.


MOVES = (40, 160)
"""The fewest and the most steps of a walk."""
WEIGHTS = (0.1, 0.5, 1.0, 2.0, 4.0)
"""How often a kind of action may be drawn beside others: each walk has other habits."""
FAULT_MOVES = frozenset(
    {"dies", "is expelled", "control plane restarts", "downstream fails", "waits in vain", "finds records lost"}
)
FAULT_WEIGHT = 0.15
"""How much less often faults are drawn."""


@dataclass(frozen=True, slots=True)
class RegionSchedules(ScheduleProtocol):
    """Draws walks, and plays them on targets that speak the line protocol."""

    def __hash__(self) -> int:
        return hash(type(self))

    def generate(self, seed: int, batch: int, size: int) -> list[GeneratedSchedule]:
        """As `ScheduleProtocol.generate`."""
        random = Random(f"{seed} {batch}")
        return [draw_schedule(f"random-{seed}-{batch}-{number}", random) for number in range(size)]

    def simpler_moves(self, move: Move) -> Iterable[Move]:
        """The move with the first choice there is."""
        return (move.without("choice"),) if move.options else ()

    def scenario_of(self, schedule: Schedule) -> Scenario:
        """A scenario that plays the walk; moves that are impossible where it has come to are left out."""

        async def play(context: ScenarioContext) -> None:
            job, walk = await start_job(context, "".join(BOUNDS.names)), RegionWalk()
            for move in schedule.moves:
                name = BOUNDS.names[move.who % len(BOUNDS.names)]
                action = move.kind if move.kind in OF_NOBODY else f"{name} {move.kind}"
                _, requests = walk.take(action, move.number("choice"))
                for one in requests:
                    await job.repeat(one.api, {"operator": one.operator, **one.fields})

        return Scenario(schedule.name, (), play)


def draw_schedule(name: str, random: Random) -> GeneratedSchedule:
    """A walk of enabled actions."""
    walk, moves = RegionWalk(), []
    habits = {kind: random.choice(WEIGHTS) * (FAULT_WEIGHT if kind in FAULT_MOVES else 1.0) for kind in KINDS}
    for _ in range(random.randint(*MOVES)):
        enabled = [(one, found) for one in walk.system.actions if (found := transitions_of(one, walk.row))]
        if not enabled:
            break
        ((action, transitions),) = random.choices(enabled, [habits[kind_of(action.name)] for action, _ in enabled])
        choice = random.randrange(len(transitions))
        walk.take(action.name, choice)
        kind = kind_of(action.name)
        who = 0 if kind == action.name else BOUNDS.names.index(action.name[0])
        moves.append(Move(kind, who, (("choice", choice),) if choice else ()))
    return GeneratedSchedule(Schedule(name, (), tuple(moves)), Counter())


def kind_of(action: str) -> str:
    """The kind of an action: its name without that of the operator that it is about."""
    who, _, what = action.partition(" ")
    return what if who in BOUNDS.names else action


KINDS = tuple(dict.fromkeys(map(kind_of, ACTIONS)))
OF_NOBODY = frozenset(kind for kind in KINDS if kind in ACTIONS)
"""The kinds of actions that are about no operator."""
