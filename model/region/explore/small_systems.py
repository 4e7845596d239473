"""First sight of a partition, and a reset into a log that has lost records: small systems beside the main one."""

from dataclasses import dataclass

from fencepost.model.explore.transition_system import Action, Check, Column, Transition, TransitionSystem
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.dialect import RegionDialect
from fencepost.model.region.settings import (
    MAX_ATTEMPTS,
    Attempts,
    FirstSight,
    begin_attempt,
    look,
    position_after_reset,
    reset_succeeds,
    start_position,
    store,
)

START_SENTENCES = {
    "G9": "Every operator that has begun a partition has begun it at its control variable.",
    "REGION-46": "A partition that was added is begun at its first record.",
    "REGION-52": "A reset that succeeds is at the offset that was sought.",
    "V2": "No more attempts follow each other than the maximum before the region fails.",
}


@fast_frozen
@dataclass(frozen=True, slots=True)
class StartState:
    """The end of the log, the control variable, what two operators have seen, the first of which was assigned first."""

    end: int = 0
    variable: int | None = None
    operators: tuple[FirstSight, FirstSight] = (FirstSight(), FirstSight())


@dataclass(frozen=True, slots=True)
class StartBounds:
    """How far the log grows, whether the partition existed when the operators subscribed."""

    dialect: RegionDialect
    records: int = 2
    knew_partition: bool = True


def start_system(bounds: StartBounds) -> TransitionSystem:
    """Two operators that are assigned a partition one after the other, with the start position End."""

    def transitions(state: StartState) -> tuple[Transition, ...]:
        return tuple(Transition(label, ((0, after),)) for label, after in start_steps(bounds, state))

    def begins_at_variable(state: StartState) -> bool:
        return all(not one.is_done or one.sought == state.variable for one in state.operators)

    def begins_first(state: StartState) -> bool:
        return bounds.knew_partition or all(one.sought in (None, 0) for one in state.operators)

    checks = (Check("G9", (0,), begins_at_variable), Check("REGION-46", (0,), begins_first))
    return TransitionSystem(
        (Column("start", "start"),), (StartState(),), (Action("step", (0,), transitions),), checks=checks
    )


def start_steps(bounds: StartBounds, state: StartState) -> list[tuple[str, StartState]]:
    """A record is written, an operator looks, an operator stores what it has sought."""
    found = []
    if state.end < bounds.records:
        found.append((f"record {state.end} is written", evolve(state, end=state.end + 1)))
    for place, (name, own) in enumerate(zip("AB", state.operators, strict=True)):
        if own.is_done:
            continue
        if own.sought is None:
            start = start_position(state.end, bounds.knew_partition, bounds.dialect)
            after, variable = look(own, state.variable, start, bounds.dialect)
            label = f"{name} looks for the control variable, and seeks {after.sought}"
        else:
            after, variable = store(own, state.variable)
            label = f"{name} stores {own.sought} unless there is a variable"
        operators = (after, state.operators[1]) if place == 0 else (state.operators[0], after)
        found.append((label, evolve(state, variable=variable, operators=operators)))
    return found


@fast_frozen
@dataclass(frozen=True, slots=True)
class LogState:
    """The log's first offset, and the position of an operator that was reset to offset 1, None before that."""

    first: int = 0
    position: int | None = None
    has_failed: bool = False


def log_system(dialect: RegionDialect, sought: int = 1, end: int = 3) -> TransitionSystem:
    """A log that loses records, and an operator that is reset to one of them."""

    def transitions(state: LogState) -> tuple[Transition, ...]:
        found = []
        if state.first < end:
            found.append(Transition(f"retention deletes {state.first}", ((0, evolve(state, first=state.first + 1)),)))
        if state.position is None and not state.has_failed:
            position = position_after_reset(sought, state.first, end)
            good = reset_succeeds(sought, position, dialect)
            after = evolve(state, position=position) if good else evolve(state, has_failed=True)
            what = f"goes on at {position}" if good else "reports that it is gone"
            found.append(Transition(f"the operator seeks {sought} and {what}", ((0, after),)))
        return tuple(found)

    check = Check("REGION-52", (0,), lambda state: state.position in (None, sought))
    return TransitionSystem(
        (Column("log", "log"),), (LogState(),), (Action("step", (0,), transitions),), checks=(check,)
    )


def attempt_system(dialect: RegionDialect, relaunch: int = 3, wait: int = 2) -> TransitionSystem:
    """Resets one after the other, with no checkpoint between them: a merge times out if the relaunch takes longer than
    the wait; the operator that comes back then causes a rebalance, and the other one, which has fetched, forces a
    reset. `relaunch` and `wait` are in the same unit."""

    def transitions(attempts: Attempts) -> tuple[Transition, ...]:
        if attempts.has_failed or attempts.made > MAX_ATTEMPTS:
            return ()
        found = []
        if relaunch > wait:
            timed_out = begin_attempt(attempts, False, dialect)
            found.append(Transition("a merge is waited for in vain, and the region is reset", ((0, timed_out),)))
        forced = begin_attempt(attempts, True, dialect)
        found.append(Transition("an operator is revoked, and forces a reset", ((0, forced),)))
        return tuple(found)

    check = Check("V2", (0,), lambda attempts: attempts.made <= MAX_ATTEMPTS)
    return TransitionSystem(
        (Column("attempts", "attempts"),), (Attempts(),), (Action("step", (0,), transitions),), checks=(check,)
    )
