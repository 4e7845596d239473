"""Shortcuts of a failing schedule: shorter ones that lead the model to the state in which it failed.

The schedule is played on the model, which gives a walk from state to state. Of a walk only the moves of the shortest
path count: what leads back to a state that was seen before is left out. How much of a state is compared decides how
short the path is, and how likely the target fails on it as well. The shortest is made by delta debugging on the model,
which takes no time of the target. The target has the last word.
"""

import heapq
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from fencepost.conformance.classic.schedules.simulation import SentRequest, Simulation
from fencepost.conformance.run.schedule import Move, Schedule, ScheduleScope, related_items
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Group, Holder, Slot
from fencepost.traces.events import Event, Kind
from fencepost.traces.shrinker import shrink

WAIT_COST = 4
"""How many requests a wait is worth: on real time it takes longer than they do."""
MAX_TRIES = 60
"""How many parts of a path are played on the model."""
Abstraction = Callable[[Simulation, int], Hashable]
"""What counts of the state of a group and its actors."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A schedule on the model: the moves, and the state before each of them and after the last: by abstraction, and by
    group."""

    moves: tuple[Move, ...]
    states: tuple[tuple[tuple[Hashable, ...], ...], ...]


def find_shortcuts(
    schedule: Schedule, scope: ScheduleScope, events: Sequence[Event], sequence: int
) -> tuple[Schedule, ...]:
    """Schedules that may fail as the run with these events did at request `sequence`, the shortest first, each with
    fewer moves than `schedule`."""
    wanted = place_of_request(events, sequence)
    everyone = frozenset(range(len(schedule.cast)))
    last = last_move(schedule, scope, wanted)
    until = schedule.moves[: last + 1]
    candidates: dict[tuple[Move, ...], None] = {}
    if last >= 0:
        group = schedule.cast[until[-1].who % len(schedule.cast)].group
        own = frozenset(number for number in everyone if schedule.cast[number].group == group)
        for actors in dict.fromkeys((own, everyone)):
            moves = tuple(move for move in until if move.who % len(schedule.cast) in actors or move.kind == "wait")
            candidates |= dict.fromkeys(shorten_moves(replace(schedule, moves=moves), scope))
            candidates[moves] = None
    shorter = sorted((moves for moves in candidates if len(moves) < len(schedule.moves)), key=len)
    return tuple(replace(schedule, moves=moves) for moves in shorter)


def shorten_moves(schedule: Schedule, scope: ScheduleScope) -> Iterator[tuple[Move, ...]]:
    """Yield parts of the moves that end in the last one: the shortest paths, and those without what changes nothing;
    and of the first path that leads to the same outline as all moves what is needed for that."""
    last, abstractions = schedule.moves[-1], (membership_of, state_of)
    walk = walk_model(schedule, scope, abstractions)
    goal, paths = outline_before_last(schedule, scope), list[tuple[Move, ...]]()
    for level in range(len(abstractions)):
        states = [each[level] for each in walk.states[:-1]]
        paths.append(tuple(walk.moves[place] for place in shortest_path(states, walk.moves)))
    paths.append(tuple(walk.moves[place] for place, (one, other) in enumerate(pairwise(states)) if one != other))
    yield from ((*path, last) for path in paths)

    def reaches_goal(moves: tuple[Move, ...]) -> bool:
        return outline_before_last(replace(schedule, moves=(*moves, last)), scope) == goal

    path = next((each for each in paths if reaches_goal(each)), schedule.moves[:-1])
    tries = iter(range(MAX_TRIES))
    yield *shrink(path, reaches_goal, may_continue=lambda: next(tries, None) is not None, parts=related_items), last


def outline_before_last(schedule: Schedule, scope: ScheduleScope) -> Hashable:
    """The outline of the group of the last move's actor, before that move."""
    simulation, who = simulate(schedule, scope), schedule.moves[-1].who % len(schedule.cast)
    for move in schedule.moves[:-1]:
        simulation.make_move(move)
    outline = outline_of(simulation, who)
    simulation.close()
    return outline


def walk_model(schedule: Schedule, scope: ScheduleScope, abstractions: Sequence[Abstraction]) -> Walk:
    """The walk of a schedule through the states of all its groups."""
    simulation = simulate(schedule, scope)
    groups = range(len(simulation.cast.contexts))

    def states_now() -> tuple[tuple[Hashable, ...], ...]:
        return tuple(tuple(abstract(simulation, group) for group in groups) for abstract in abstractions)

    states = [states_now()]
    for move in schedule.moves:
        simulation.make_move(move)
        states.append(states_now())
    simulation.close()
    return Walk(schedule.moves, tuple(states))


def shortest_path(states: Sequence[Hashable], moves: Sequence[Move]) -> list[int]:
    """The moves of the shortest path from the first to the last of these states, by their indices: move `n` led from
    state `n` to the one behind it."""
    edges: dict[Hashable, list[tuple[int, Hashable]]] = {}
    for place, (one, other) in enumerate(pairwise(states)):
        edges.setdefault(one, []).append((place, other))
    queue: list[tuple[int, list[int], int]] = [(0, [], 0)]
    numbers = {state: number for number, state in reversed(list(enumerate(states)))}
    done: set[Hashable] = set()
    while queue:
        cost, path, number = heapq.heappop(queue)
        state = states[number]
        if state == states[-1]:
            return path
        if state in done:
            continue
        done.add(state)
        for place, other in edges.get(state, ()):
            further = WAIT_COST if moves[place].kind == "wait" else 1
            heapq.heappush(queue, (cost + further, [*path, place], numbers[other]))
    raise AssertionError("the walk itself leads from the first state to the last")


# --- which move sent a request ------------------------------------------------------------------------------------


def place_of_request(events: Sequence[Event], sequence: int) -> tuple[SentRequest, int]:
    """The API and the sender of a request, and how many alike were sent up to it."""
    asked = [event for event in events if event.kind is Kind.REQUEST and event.sequence <= sequence]
    wanted = (asked[-1].api, asked[-1].member)
    return wanted, sum((event.api, event.member) == wanted for event in asked)


def last_move(schedule: Schedule, scope: ScheduleScope, wanted: tuple[SentRequest, int]) -> int:
    """The index of the move that sends the last of the wanted requests on the model; -1 if none does."""
    request, count = wanted
    simulation = simulate(schedule, scope)
    try:
        for place, move in enumerate(schedule.moves):
            simulation.make_move(move)
            if simulation.recorder.sent.count(request) >= count:
                return place
    finally:
        simulation.close()
    return -1


def simulate(schedule: Schedule, scope: ScheduleScope) -> Simulation:
    """A simulation with the cast of a schedule."""
    return Simulation(
        schedule.cast,
        scope.settings,
        lambda before, request, result: None,
        grace=scope.grace,
        virtual=scope.virtual_time,
    )


# --- what counts of a state ---------------------------------------------------------------------------------------


def outline_of(simulation: Simulation, who: int) -> Hashable:
    """The phase of an actor's group, whether that has one or several members or waits for some, and the actor's place
    in it."""
    actor = simulation.cast.actors[who]
    state = model_state(simulation, actor.group)
    found = state.group if state is not None else None
    if found is None:
        return actor.member.id != ""
    holders = [slot.holder for slot in found.slots]
    place = next((place_in_group(found, slot) for slot in found.slots if slot.id == actor.member.id), None)
    knows = actor.member.id != "", actor.member.generation == found.generation
    return found.phase, found.initial, min(holders.count(Holder.MEMBER), 2), Holder.PENDING in holders, place, knows


def membership_of(simulation: Simulation, group: int) -> Hashable:
    """The phase of a group, and which place in it each of its actors has and knows of."""
    state = model_state(simulation, group)
    found = state.group if state is not None else None
    if found is None:
        return tuple(actor.member.id != "" for actor in simulation.cast.actors if actor.group == group)
    slots = {str(slot.id): slot for slot in found.slots}
    places = tuple(
        (
            place_in_group(found, slots.get(actor.member.id)),
            actor.member.generation == found.generation,
            number in simulation.cast.joining_since,
            actor.member.id != "",
        )
        for number, actor in enumerate(simulation.cast.actors)
        if actor.group == group
    )
    return found.phase, found.initial, places


def place_in_group(group: Group, slot: Slot | None) -> Hashable:
    """The place of a member; None if it has none."""
    if slot is None:
        return None
    return slot.holder, bool(slot.join), bool(slot.sync), bool(slot.unsynced), slot.id == group.leader


def state_of(simulation: Simulation, group: int) -> Hashable:
    """All of a group's state but times, generations and names; and what its actors and the producers know."""
    cast, state = simulation.cast, model_state(simulation, group)
    actors = [actor for actor in cast.actors if actor.group == group]
    known = tuple((actor.offer, actor.metadata, actor.client, actor.previous_id != "") for actor in actors)
    open_transactions = tuple(sorted((number, group in each.groups) for number, each in cast.transactions.items()))
    if state is None:
        return membership_of(simulation, group), known, open_transactions
    names = {actor.member.id: number for number, actor in enumerate(actors)}
    return (
        membership_of(simulation, group),
        known,
        open_transactions,
        group_details(state.group, names),
        state.group is not None and group_details(state.stored, names) == group_details(state.group, names),
        state.subscribed,
        freeze(state.offsets),
        freeze(state.pending),
        len(state.ended_transactions),
    )


def group_details(group: Group | None, names: Mapping[str, int]) -> Hashable:
    """What distinguishes groups of the same membership."""
    if group is None:
        return None
    slots = tuple(
        (
            names.get(str(slot.id)),
            slot.holder,
            slot.instance,
            slot.session_timeout,
            slot.rebalance_timeout,
            slot.protocols,
            slot.assignment is not None,
        )
        for slot in group.slots
    )
    return group.phase, group.protocol_type, group.protocol, group.leader_open, group.stale_unsynced, slots


def freeze(value: object) -> Hashable:
    """A hashable value that is equal for equal mappings."""
    if isinstance(value, Mapping):
        return frozenset((key, freeze(each)) for key, each in value.items())
    return repr(value)


def model_state(simulation: Simulation, group: int) -> GroupState | None:
    """The state of the group with this number on the model."""
    return simulation.coordinator.group_states.get(simulation.cast.contexts[group].group_id)
