"""The group's world: pinned counts, what holds, what has to happen, and what a reduction may leave out."""

from dataclasses import replace
from functools import cache

import pytest

from fencepost.model.classic.core.membership import judged
from fencepost.model.classic.core.state import CommitRequest, Context, Group, Step
from fencepost.model.classic.rules import RULES
from fencepost.model.errors import Error
from fencepost.model.explore.classic import group_model
from fencepost.model.explore.classic.group_search import (
    Engine,
    after,
    explore,
    group_system,
    has_numpy,
    moves_from,
    retold,
)
from fencepost.model.explore.classic.properties import EVERYONE_STABLE, NO_STALE_COMMIT, ONE_LEADER_ID, PROPERTIES
from fencepost.model.explore.classic.reductions import ReducedWorld
from fencepost.model.explore.classic.state_layout import Bounds, Coordinator, Process, Setting, plain
from fencepost.model.explore.search import PlainSearch, Pulse, Row
from fencepost.model.explore.transition_system import System, Value
from fencepost.model.explore.transition_tables import Tables

ONE = Setting((plain(),))
TWO = Setting((plain(), plain()), heartbeats=False)
EAGER = Setting((plain(cooperative=False),) * 2, heartbeats=False)
STATIC = Setting((plain(), plain(instance="one")), heartbeats=False)
SMALL, TINY, LONG = Bounds(2, 1, 2, 2), Bounds(1, 1, 3, 1), Bounds(2, 2, 4, 2)
ENGINES = [Engine.PLAIN, Engine.NUMPY] if has_numpy() else [Engine.PLAIN]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("setting", "bounds", "reduced", "states", "transitions", "cut"),
    [
        (ONE, TINY, False, 368, 1346, 495),
        (ONE, TINY, True, 172, 607, 219),
        (ONE, LONG, False, 10955, 59841, 10798),
        (ONE, LONG, True, 3099, 16763, 2596),
        (TWO, TINY, False, 6691, 34644, 16658),
        (TWO, TINY, True, 1059, 5283, 2454),
        (TWO, SMALL, False, 51219, 329058, 134850),
        (TWO, SMALL, True, 6723, 42076, 16634),
        (EAGER, SMALL, True, 6723, 42076, 16634),
        (STATIC, TINY, False, 6453, 32916, 18116),
        (STATIC, SMALL, True, 15490, 96673, 46888),
    ],
)
def test_counts(
    engine: Engine, setting: Setting, bounds: Bounds, reduced: bool, states: int, transitions: int, cut: int
) -> None:
    found, _ = explore(group_system(setting, bounds, reduced), engine)
    assert (found.states, found.transitions, found.cut) == (states, transitions, cut)
    assert (found.finished, found.deadlocks, found.violations) == (True, 0, ())


def test_states_that_get_too_wide_are_searched_in_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    from fencepost.model.explore import vectorized_search

    monkeypatch.setattr(vectorized_search, "WORD", 24)
    with pytest.raises(vectorized_search.TooWide):
        explore(group_system(TWO, TINY), Engine.NUMPY)
    found, engine = explore(group_system(TWO, TINY))
    assert (found.states, found.finished, engine) == (1059, True, Engine.PLAIN)


def test_what_was_found_before_states_got_too_wide_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from fencepost.model.explore import vectorized_search

    monkeypatch.setattr(vectorized_search, "WORD", 24)
    depths: list[int] = []

    def once(pulse: Pulse) -> bool:
        depths.append(pulse.depth)
        return depths.count(0) < 2

    found, engine = explore(group_system(TWO, TINY), watch=once)
    assert engine == Engine.NUMPY and not found.finished and max(depths) > 0
    states = list(found.reached())
    assert found.states == len(states) == len(set(states)) > 1
    rows = {found.tables.values(state) for state in states}
    whole, _ = explore(group_system(TWO, TINY), Engine.PLAIN)
    assert rows <= {whole.tables.values(state) for state in whole.reached()}


def test_everyone_gets_stable() -> None:
    found, _ = explore(group_system(TWO, Bounds(2, 1, 3, 2)))
    assert (found.states, found.finished, found.violations) == (41370, True, ())
    (witness,) = (finding for finding in found.findings if finding.name == EVERYONE_STABLE.name)
    assert len(witness.way) == 18
    story = retold(found.tables, witness)
    assert len(story) == 17
    coordinator, first, second = story[-1].row[0], story[-1].row[1], story[-1].row[5]
    assert first.member.generation == second.member.generation == coordinator.group.generation == 1
    assert set(found.rules()) >= {"join.pending", "sync.leader", "commit.preparing", "timer.session", "timer.sync"}
    assert all(rule in RULES for rule in found.rules() if not rule.startswith("member."))


def test_a_leader_is_named_twice_if_ids_are_compared() -> None:
    """The plain wording of one-leader is false: a static leader that comes back goes on under another id (KIP-345)."""
    found, _ = explore(group_system(replace(STATIC, by_id=True), Bounds(2, 1, 3, 2)), Engine.PLAIN, limit=20_000)
    (finding,) = found.violations
    assert finding.name == ONE_LEADER_ID.name
    story = retold(found.tables, finding)
    assert [told.label for told in story[-2:]] == ["B joins", "B gets join.replace.stable"]
    assert len(story) == 8
    before, group = story[-2].row[0].group, story[-1].row[0].group
    assert before.generation == group.generation == 1 and before.leader != group.leader


@pytest.mark.parametrize("engine", ENGINES)
def test_a_coordinator_that_forgets_generations_is_caught(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(group: Group, request: CommitRequest, context: Context) -> Step:
        return judged(group, request, Error.NONE, "commit.stable")

    monkeypatch.setattr(group_model, "commit", lenient)
    found, _ = explore(group_system(ONE, Bounds(2, 2, 4, 2)), engine)
    (finding,) = found.violations
    assert finding.name == NO_STALE_COMMIT.name
    *_, last = retold(found.tables, finding)
    assert last.label == "A gets commit.stable" and len(finding.way) == 12


def remembering(system: System) -> System:
    """The system, where no handler runs twice on the same values."""
    return replace(system, sites=tuple(replace(site, moves=cache(site.moves)) for site in system.sites))


def reduced_row(smaller: ReducedWorld, row: Row) -> Row:
    """The row as the reduced world keeps it."""

    def kept(value: Value) -> Value:
        match value:
            case Coordinator():
                return smaller.live_coordinator(value)
            case Process():
                return smaller.live_process(value)
        return value

    return tuple(kept(value) for value in row)


@pytest.mark.parametrize(
    ("setting", "bounds"),
    [(ONE, Bounds(2, 2, 3, 2)), (TWO, TINY), (STATIC, TINY), (replace(TWO, heartbeats=True), Bounds(1, 1, 2, 1))],
)
def test_a_reduced_state_can_do_what_all_it_stands_for_can(setting: Setting, bounds: Bounds) -> None:
    """State by state: whatever a state does, the one that stands for it does as well, and the other way round."""
    full, small = remembering(group_system(setting, bounds, reduced=False)), remembering(group_system(setting, bounds))
    search = PlainSearch(Tables(full))
    search.run()
    tables = Tables(small)
    known = PlainSearch(tables)
    known.run()
    smaller = ReducedWorld(setting, bounds)

    def standing_for(row: Row) -> Row | None:
        return tables.stands_for(reduced_row(smaller, row))

    reached: set[Row] = set()
    for state in search.parents:
        row = search.tables.values(state)
        short = standing_for(row)
        assert short is not None
        reached.add(short)
        full_steps = {standing_for(after(row, move)) for move in moves_from(full, row)}
        short_steps = {tables.stands_for(after(short, move)) for move in moves_from(small, short)}
        assert full_steps | {short} == short_steps | {short}
    assert reached == {tables.values(state) for state in known.parents}


def test_every_property_is_named_once() -> None:
    assert len({one.name for one in PROPERTIES}) == len(PROPERTIES)
