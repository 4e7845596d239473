"""The group's world: pinned counts, its properties and witnesses, and the soundness of reductions."""

import io
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.core import join, join_phase, member_table, membership, sync, timers
from fencepost.model.classic.core.member_table import NOWHERE, check_member
from fencepost.model.classic.core.membership import renew_session, respond_to_commit
from fencepost.model.classic.core.state import Context, Group, Phase, Step
from fencepost.model.classic.explore import coordinator_tour
from fencepost.model.classic.explore.group_system import group_system
from fencepost.model.classic.explore.properties import (
    EVERYONE_STABLE,
    NO_STALE_COMMIT,
    ONE_LEADER_ID,
    PROPERTIES,
    REJOINED_OWNING,
    TWO_GENERATIONS,
)
from fencepost.model.classic.explore.state_diagram import (
    Arrow,
    mermaid_diagram,
    searched_arrows,
)
from fencepost.model.classic.explore.state_layout import (
    Bounds,
    CoordinatorState,
    ModelConfig,
    ProcessState,
    untimed_member,
)
from fencepost.model.classic.explore.step_checks import (
    ABOUT_COMMITS,
    ABOUT_STEPS,
    MEMBER_WITNESSES,
    PROBES,
    STALE_COMMIT_REFUSED,
    WITNESSES,
)
from fencepost.model.classic.explore.symmetry import ReducedGroupModel
from fencepost.model.classic.member import member
from fencepost.model.classic.theorems.member_statements import MEMBER_THEOREMS
from fencepost.model.classic.theorems.request_statements import STEP_THEOREMS
from fencepost.model.errors import Error
from fencepost.model.explore.engine import (
    Engine,
    apply_transition,
    explore_system,
    has_numpy,
    replay_path,
    transitions_from,
)
from fencepost.model.explore.rendering import explored_graph, is_complete, quote_dot, write_dot, write_graphml
from fencepost.model.explore.search import PlainSearch, Row, SearchProgress
from fencepost.model.explore.transition_system import TransitionSystem, Value
from fencepost.model.explore.transition_tables import TransitionTables
from fencepost.model.groups.messages import CommitRequest
from tests.model.explore.phases_page import documented_arrows, render_page
from tests.support.edits import mutant

ONE = ModelConfig((untimed_member(),))
TWO = ModelConfig((untimed_member(), untimed_member()), heartbeats=False)
EAGER = ModelConfig((untimed_member(cooperative=False),) * 2, heartbeats=False)
STATIC = ModelConfig((untimed_member(), untimed_member(instance="one")), heartbeats=False)
SMALL, TINY, LONG = Bounds(2, 1, 2, 2), Bounds(1, 1, 3, 1), Bounds(2, 2, 4, 2)
ENGINES = [Engine.PLAIN, Engine.NUMPY] if has_numpy() else [Engine.PLAIN]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("config", "bounds", "reduced", "states", "transitions", "cut"),
    [
        (ONE, TINY, False, 368, 1346, 495),
        (ONE, TINY, True, 172, 607, 219),
        (ONE, LONG, False, 10830, 59159, 10715),
        (ONE, LONG, True, 3079, 16637, 2582),
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
    engine: Engine, config: ModelConfig, bounds: Bounds, reduced: bool, states: int, transitions: int, cut: int
) -> None:
    found, _ = explore_system(group_system(config, bounds, reduced), engine)
    assert (found.states, found.transitions, found.cut) == (states, transitions, cut)
    assert (found.finished, found.deadlocks, found.violations) == (True, 0, ())


def test_states_that_get_too_wide_are_searched_in_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    from fencepost.model.explore import vectorized_search

    monkeypatch.setattr(vectorized_search, "WORD_BITS", 24)
    with pytest.raises(vectorized_search.StateTooWide):
        explore_system(group_system(TWO, TINY), Engine.NUMPY)
    found, engine = explore_system(group_system(TWO, TINY))
    assert (found.states, found.finished, engine) == (1059, True, Engine.PLAIN)


def test_what_was_found_before_states_got_too_wide_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from fencepost.model.explore import vectorized_search

    monkeypatch.setattr(vectorized_search, "WORD_BITS", 24)
    depths: list[int] = []

    def once(progress: SearchProgress) -> bool:
        depths.append(progress.depth)
        return depths.count(0) < 2

    found, engine = explore_system(group_system(TWO, TINY), watch=once)
    assert engine == Engine.NUMPY and not found.finished and max(depths) > 0
    states = list(found.reached_states())
    assert found.states == len(states) == len(set(states)) > 1
    rows = {found.tables.values(state) for state in states}
    whole, _ = explore_system(group_system(TWO, TINY), Engine.PLAIN)
    assert rows <= {whole.tables.values(state) for state in whole.reached_states()}


def test_everyone_gets_stable() -> None:
    found, _ = explore_system(group_system(TWO, Bounds(2, 1, 3, 2)))
    assert (found.states, found.finished, found.violations) == (41370, True, ())
    (witness,) = (finding for finding in found.discoveries if finding.name == EVERYONE_STABLE.name)
    assert len(witness.path) == 18
    story = replay_path(found.tables, witness)
    assert len(story) == 17
    coordinator, first, second = story[-1].row[0], story[-1].row[1], story[-1].row[5]
    assert first.member.generation == second.member.generation == coordinator.group.generation == 1
    assert set(found.rule_counts()) >= {
        "join.pending",
        "sync.leader",
        "commit.preparing",
        "timer.session",
        "timer.sync",
    }
    assert all(rule in RULES for rule in found.rule_counts() if not rule.startswith("member."))


@pytest.mark.slow
def test_a_leader_is_named_twice_if_ids_are_compared() -> None:
    """The plain wording of one-leader is false: a static leader that comes back goes on under another id (KIP-345)."""
    found, _ = explore_system(group_system(replace(STATIC, by_id=True), Bounds(2, 1, 3, 2)), Engine.PLAIN, limit=20_000)
    (finding,) = found.violations
    assert finding.name == ONE_LEADER_ID.name
    story = replay_path(found.tables, finding)
    assert [told.label for told in story[-2:]] == ["B joins", "B gets join.replace.stable"]
    assert len(story) == 8
    before, group = story[-2].row[0].group, story[-1].row[0].group
    assert before.generation == group.generation == 1 and before.leader != group.leader


@pytest.mark.parametrize("engine", ENGINES)
def test_a_coordinator_that_forgets_generations_is_caught(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(group: Group, request: CommitRequest, context: Context) -> Step:
        _, index = check_member(group, request.member, request.instance)
        alive = group if index == NOWHERE else renew_session(group, index, context.now)
        return respond_to_commit(alive, request, Error.NONE, "commit.stable")

    monkeypatch.setattr(coordinator_tour, "commit", lenient)
    found, _ = explore_system(group_system(ONE, Bounds(2, 2, 4, 2)), engine)
    (finding,) = found.violations
    assert finding.name == NO_STALE_COMMIT.name
    *_, last = replay_path(found.tables, finding)
    assert last.label == "A gets commit.stable" and len(finding.path) == 12


def memoized_system(system: TransitionSystem) -> TransitionSystem:
    """The system, where no handler runs twice on the same values."""
    return replace(system, actions=tuple(replace(site, transitions=cache(site.transitions)) for site in system.actions))


def reduced_row(smaller: ReducedGroupModel, row: Row) -> Row:
    """The row as the reduced world keeps it."""

    def kept(value: Value) -> Value:
        match value:
            case CoordinatorState():
                return smaller.reduce_coordinator(value)
            case ProcessState():
                return smaller.reduce_process(value)
        return value

    return tuple(kept(value) for value in row)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "bounds"),
    [(ONE, Bounds(2, 2, 3, 2)), (TWO, TINY), (STATIC, TINY), (replace(TWO, heartbeats=True), Bounds(1, 1, 2, 1))],
)
def test_a_reduced_state_can_do_what_all_it_stands_for_can(config: ModelConfig, bounds: Bounds) -> None:
    """State by state: whatever a state does, the one that stands for it does as well, and the other way round."""
    full, small = (
        memoized_system(group_system(config, bounds, reduced=False)),
        memoized_system(group_system(config, bounds)),
    )
    search = PlainSearch(TransitionTables(full))
    search.run()
    tables = TransitionTables(small)
    known = PlainSearch(tables)
    known.run()
    smaller = ReducedGroupModel(config, bounds)

    def standing_for(row: Row) -> Row | None:
        return tables.canonical_row(reduced_row(smaller, row))

    reached: set[Row] = set()
    for state in search.parents:
        row = search.tables.values(state)
        short = standing_for(row)
        assert short is not None
        reached.add(short)
        full_steps = {standing_for(apply_transition(row, move)) for move in transitions_from(full, row)}
        short_steps = {tables.canonical_row(apply_transition(short, move)) for move in transitions_from(small, short)}
        assert full_steps | {short} == short_steps | {short}
    assert reached == {tables.values(state) for state in known.parents}


def test_every_property_is_named_once() -> None:
    assert len({one.name for one in PROPERTIES}) == len(PROPERTIES)


def test_every_statement_about_steps_has_a_property_and_a_witness() -> None:
    named = {one.name for one in PROPERTIES}
    assert {one.id for one in STEP_THEOREMS} <= named
    shown = {*WITNESSES, *PROBES, *MEMBER_WITNESSES}
    assert {one.id for one in (*ABOUT_COMMITS, *ABOUT_STEPS, *MEMBER_THEOREMS)} <= shown <= named


SEARCHED_BREAKS: tuple[tuple[Callable[..., Any], str, str, str], ...] = (
    (sync.sync_completing, "request.member != group.leader", "False", "T8"),
    (
        join_phase.complete_join,
        "emit(has_rejoined(slot), ",
        "emit(has_rejoined(slot) and slot.id == group.leader, ",
        "T12",
    ),
    (join_phase.try_complete_join, "all_joined(group)", "True", "T10"),
    (
        join_phase.current_response,
        "member_views(group) if slot.id == group.leader else ()",
        "member_views(group)",
        "T16",
    ),
    (timers.expire_sync, "is_member(slot) and slot.unsynced", "False", "T13"),
    (join_phase.become_empty, "group.generation + 1", "0", "T17"),
    (sync.names_protocol, "request.protocol == group.protocol", "True", "T23"),
    (member_table.add_member, "protocols=request.protocols", "protocols=()", "T26"),
    (timers.expire_member, "slot.join != 0 or slot.sync != 0", "False", "T28"),
    (membership.remove_member, "return clear_slot(group, index), outputs", "return group, outputs", "T29"),
    (join_phase.complete_join, "is_new=False, ", "", "T30"),
    (join_phase.become_empty, "leader=None,", "", "T32"),
    (member_table.accepts, "member_count(group) < limit", "True", "T41"),
    (join.join, "None if known == NOWHERE else request.member", "request.member", "T42"),
    (member.handle_error, "not is_current(member, sender, generation)", "False", "T43"),
    (member.on_sync_response, "response.error == Error.UNKNOWN_MEMBER_ID", "False", "T44"),
    (member.leave, "member.settings.instance is None", "False", "T45"),
    (member.commit, "any(partitions)", "True", "T46"),
    (member.disconnect, "member.rejoins or member.waiting != 0", "member.rejoins", "T47"),
)


@pytest.mark.slow
@pytest.mark.parametrize(("function", "before", "after", "broken"), SEARCHED_BREAKS)
def test_a_broken_step_is_found_by_the_search(
    function: Callable[..., Any], before: str, after: str, broken: str
) -> None:
    with mutant(function, before, after):
        found, _ = explore_system(group_system(TWO, Bounds(2, 2, 3, 2)), limit=40_000)
    assert broken in {finding.name for finding in found.violations}


def test_what_a_world_cannot_show_is_not_shown() -> None:
    tiny, _ = explore_system(group_system(ONE, TINY))
    assert "T13" not in tiny.find_witnesses() and "T12" in tiny.find_witnesses()
    longer, _ = explore_system(group_system(ONE, LONG))
    assert {"T13", STALE_COMMIT_REFUSED} <= longer.find_witnesses()
    assert {TWO_GENERATIONS.name, REJOINED_OWNING.name} <= {one.name for one in longer.discoveries}


# --- The explored graph for other tools: all of it, or as much as it says.

SINGLE = group_system(ModelConfig((untimed_member(),)), Bounds(1, 1, 3, 1))
PAIR = group_system(ModelConfig((untimed_member(), untimed_member()), heartbeats=False), Bounds(1, 1, 3, 1))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_state_and_every_move_is_in_the_graph(engine: Engine) -> None:
    found, _ = explore_system(PAIR, engine)
    graph = explored_graph(found)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (1059, 5283) == (found.states, found.transitions)
    assert graph.graph == {"states": 1059, "complete": True}
    assert graph.nodes[0]["label"] == "coordinator: Empty, generation 0; A process: unjoined; B process: unjoined"
    assert set(nx.single_source_shortest_path_length(graph, 0)) == set(graph)
    assert ("A gets join.pending", "join.pending") in {(e["label"], e["rule"]) for *_, e in graph.edges(data=True)}


def test_a_part_of_the_graph_says_so() -> None:
    found, _ = explore_system(SINGLE)
    graph = explored_graph(found, max_states=50)
    assert len(graph) == 50 and not is_complete(found, 50) and not graph.graph["complete"]
    short, _ = explore_system(SINGLE, limit=60)
    assert not is_complete(short) and 60 < len(explored_graph(short)) < 172


def test_dot_and_graphml_hold_the_same_graph() -> None:
    graph = explored_graph(explore_system(SINGLE)[0])
    dot, graphml = io.StringIO(), io.BytesIO()
    write_dot(graph, dot)
    write_graphml(graph, graphml)
    graphml.seek(0)
    read = nx.read_graphml(graphml, node_type=int)
    assert list(read.nodes(data="label")) == list(graph.nodes(data="label"))
    assert sorted(read.edges(data="label")) == sorted(graph.edges(data="label"))
    assert dot.getvalue().count("\n") == 3 + len(graph) + graph.number_of_edges()


def test_labels_are_quoted() -> None:
    assert quote_dot('a "b"\\\nc') == '"a \\"b\\"\\\\\\nc"'


# --- PHASES.md agrees with rules and handlers. `python -m tests.model.explore.test_group_search` writes it anew.

PAGE = Path(__file__).parents[3] / "model" / "PHASES.md"
DRAWN = group_system(ModelConfig((untimed_member(),)), Bounds(1, 2, 3, 1))


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(*documented_arrows())


def test_arrows_between_phases_are_drawn() -> None:
    drawn = list(
        mermaid_diagram(
            {Arrow(Phase.EMPTY, Phase.EMPTY, "a"), Arrow(Phase.EMPTY, Phase.STABLE, "b")}, Phase, Phase.EMPTY
        )
    )
    assert drawn == ["```mermaid", "stateDiagram-v2", "    [*] --> Empty", "    Empty --> Stable: b", "```"]


def test_another_handler_makes_another_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = Arrow(Phase.STABLE, Phase.EMPTY, "leave.member")
    assert ends in searched_arrows(explore_system(DRAWN)[0].tables)
    monkeypatch.setattr(membership, "trigger_rebalance", lambda group, context: (group, ()))
    assert ends not in searched_arrows(explore_system(DRAWN)[0].tables)


if __name__ == "__main__":
    PAGE.write_text(render_page(*documented_arrows()), encoding="utf-8")
