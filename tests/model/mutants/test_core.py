"""Mutants of the core are compared with it; `python -m tests.acceptance.mutant_verdicts` judges all, writes a table."""

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from fencepost.conformance.zoo.mutants import Mutant
from fencepost.model.classic.core.membership import rebalance_after_leave
from fencepost.model.classic.core.state import FREE, Slot
from tests.model.mutants.classify import (
    changed_transitions,
    classify_mutant,
    prove_events,
    reached_in,
    reaches,
    readers,
    recording,
)
from tests.model.mutants.comparison import (
    Calls,
    any_transition,
    compare,
    find_by_extended_tour,
    find_by_tour,
    recorded_tours,
    returns_same,
    runs_function,
)
from tests.model.mutants.core import LoadedMutant, core_mutants, function_of
from tests.model.mutants.corner_cases import CORNER_CASES
from tests.model.mutants.machines import NAMES
from tests.model.mutants.results import EQUIVALENT, REFUTED, TOUR, UNEXPLAINED, Verdict, read, render_markdown, write

MUTANTS = {mutant.name: mutant for mutant in core_mutants()}
QUICK = ("connectives", "one member", "odd joins", "odd static", "newcomers", "patient static", "static member")
"""Machines that do not take long."""


TABLE = read()
PROOFS = Path(__file__).parents[3] / "model" / "PROOFS.md"
BY_TOUR = 40
"""How many that a tour finds are judged anew."""
SMALL = 2
"""How many ids a small corner hands out."""
SAMPLE = 12
"""How many are compared in all transitions as well."""
ALIKE = (
    "logic.and_: never: term is False -> False",
    "logic.or_: always: term is not False -> True",
    "logic.emit: never: when is True -> False",
    "member_table.find: never: member is None -> False",
    "member_table.joined_count: term: is_member(slot) and slot.join != 0 -> slot.join != 0",
    "join_phase.has_unsynced_member: term: is_member(slot) and slot.unsynced -> slot.unsynced",
    "membership.remove_entry: never: instance is None -> False",
    "sync.sync_completing: always: is_member(member) -> True",
)
"""Mutants that make no difference."""
REFUTED_ALONE = (
    ("member.on_sync_response: field: owned_in=member.generation -> nothing", "member-sync-response", "T4-belief"),
    ("member.on_sync_response: constant: 0 -> 1", "member-sync-response-quietly", "T4"),
    (
        "timers.expire_join: term: group.phase != Phase.PREPARING or not group.join_armed or "
        "context.now < group.join_deadline -> not group.join_armed or context.now < group.join_deadline",
        "expire-join",
        "syncing-claims",
    ),
)
"""Mutants that make no difference in any machine but break a proof: of which event, and what."""


def mutant_named(text: str) -> Mutant:
    """The first mutant whose name has the text."""
    return next(mutant for name, mutant in MUTANTS.items() if text in name)


@pytest.mark.slow
def test_a_transition_that_does_not_run_the_function_is_the_same() -> None:
    mutant = mutant_named("membership.heartbeat: never: request.generation != group.generation")
    shipped = recording("one member")
    mine = LoadedMutant(mutant).machine("one member")
    (quick, whole) = (
        compare(shipped, mine, runs_function("membership.heartbeat")),
        compare(shipped, mine, any_transition),
    )
    assert quick.shortest == whole.shortest is not None
    assert quick.taken < whole.taken


@pytest.mark.slow
def test_a_transition_whose_calls_get_the_same_is_the_same() -> None:
    shipped, function = recording("one member"), "member_table.check_member"
    taken, needed = 0, 0
    for mutant in (one for one in core_mutants() if function_of(one) == function):
        loaded = LoadedMutant(mutant)
        mine, few = loaded.machine("one member"), changed_transitions(mutant, loaded, "one member")
        whole, some = (compare(shipped, mine, one) for one in (runs_function(function), few))
        assert (some.shortest, some.complete) == (whole.shortest, whole.complete)
        assert find_by_tour(shipped, mine, few) == find_by_tour(shipped, mine, runs_function(function))
        taken, needed = taken + whole.taken, needed + some.taken
    assert 0 < needed < taken / 2


@pytest.mark.slow
@pytest.mark.parametrize("place", range(SAMPLE))
def test_the_few_transitions_tell_what_all_of_them_tell(place: int) -> None:
    inside = [mutant for mutant in core_mutants() if function_of(mutant) is not None]
    mutant = inside[place * len(inside) // SAMPLE]
    try:
        loaded = LoadedMutant(mutant)
        machines = {name: loaded.machine(name) for name in QUICK}
    except Exception as error:
        pytest.skip(f"never runs: {error}")
    for name, mine in machines.items():
        few, all_of_them = (
            compare(recording(name), mine, one) for one in (changed_transitions(mutant, loaded, name), any_transition)
        )
        assert (few.shortest, few.complete) == (all_of_them.shortest, all_of_them.complete)


def test_calls_that_a_mutant_answers_alike_are_not_taken_again() -> None:
    shipped = recording("one member")
    known = shipped.calls["membership.rebalance_after_leave"]
    made = set(itertools.chain.from_iterable(known.makers))
    assert 1 < len(known.results) < len(made)
    assert known.changed_transitions(rebalance_after_leave) == frozenset()
    assert frozenset() != known.changed_transitions(lambda group, _: (group, ())) < made


def test_the_transitions_that_make_a_call_run_the_function() -> None:
    shipped = recording("odd static")
    moves = [move for moves in shipped.moves for move in moves]
    assert [move.number for move in moves] == list(range(shipped.transitions))
    for function, known in shipped.calls.items():
        made = set(itertools.chain.from_iterable(known.makers))
        assert made == {move.number for move in moves if function in move.runs}


def test_a_call_with_an_iterator_is_not_repeated() -> None:
    assert "logic.all_" not in recording("one member").calls
    calls = Calls()
    calls.add_call((1,), 2, 0)
    assert calls.changed_transitions(lambda one: one) == {0}
    calls.add_call((iter((1,)),), 2, 1)
    assert (calls.repeatable, calls.results) == (False, [])


def test_strict_equality_tells_one_from_true() -> None:
    assert returns_same(lambda: (True, "a"), (), (True, "a"))
    assert not returns_same(lambda: (1, "a"), (), (True, "a"))
    assert not returns_same(lambda: [][0], (), None)
    assert not returns_same(lambda: Slot(is_new=1), (), Slot(is_new=True))  # type: ignore[arg-type]


def test_tours_try_the_inputs_in_both_orders() -> None:
    tours = recorded_tours(recording("odd static"))
    assert {move for tour in tours for move in tour} == {
        move for moves in recording("odd static").moves for move in moves
    }
    half = len(tours) // 2
    assert tours[0][0].step.input != tours[half][0].step.input


def test_a_difference_that_shows_later_is_found_by_going_on() -> None:
    mutant = mutant_named("member.disconnect: term: member.rejoins or member.waiting != 0 -> member.waiting != 0")
    shipped, mine = recording("static member"), LoadedMutant(mutant).machine("static member")
    assert find_by_tour(shipped, mine, any_transition) is None
    found = find_by_extended_tour(shipped, mine, any_transition, runs_function("member.disconnect"))
    assert found is not None and (found.further, found.step) == (1, 2)
    assert classify_mutant(mutant, ("static member",)).further == 1
    assert find_by_extended_tour(shipped, shipped.machine, any_transition, runs_function("member.disconnect")) is None


def test_a_mutant_of_the_member_is_not_in_the_coordinator() -> None:
    loaded = LoadedMutant(mutant_named("member.disconnect: "))
    assert (loaded.is_shipped("newcomers"), loaded.is_shipped("static member")) == (True, False)


def test_each_input_of_a_small_corner_is_taken() -> None:
    for name, corner in CORNER_CASES.items():
        if corner.arguments[0] > SMALL:
            continue
        taken = {move.step.input for moves in recording(name).moves for move in moves}
        assert taken == set(corner.inputs), name


def test_the_last_place_of_a_corner_is_taken() -> None:
    first, *_, last = recording("last place taken").states[0].group.slots
    assert first == FREE != last


@pytest.mark.slow
def test_lines_of_calls_are_lines_of_transitions() -> None:
    shipped = recording("odd static")
    for name in ("member_table.check_member", "join.evict", "sync.sync_stable"):
        of_function = [mutant for mutant in core_mutants() if function_of(mutant) == name]
        for mutant in {mutant.line: mutant for mutant in of_function}.values():
            assert reached_in("odd static", name, mutant) is reaches(shipped, mutant, any_transition)


@pytest.mark.slow
def test_a_line_is_reached_or_not() -> None:
    early, late = (
        mutant_named("join.join: never: request.member is None"),
        mutant_named("join.evict: always: known == NOWHERE"),
    )
    for machine, mutant, reached in (("one member", early, True), ("full", late, True), ("one member", late, False)):
        assert reaches(recording(machine), mutant, any_transition) is reached


def test_a_field_of_the_dialect_matters_where_it_is_read() -> None:
    found = {readers(mutant) for name, mutant in MUTANTS.items() if name.startswith("state.CoreDialect")}
    assert found >= {frozenset({"sync.sync_stable"}), frozenset({"join.evict"})}
    assert frozenset() not in found
    assert readers(mutant_named("state.Slot: constant: False -> True")) is None


def test_a_default_of_the_dialect_is_a_mutant_of_a_machine() -> None:
    mutant = mutant_named("state.CoreDialect: constant: True -> False")
    shipped = recording("newcomers")
    universe = LoadedMutant(mutant).machine("newcomers").follow.__self__.universe  # type: ignore[attr-defined]
    assert not universe.dialect.sync_in_stable_keeps_session
    assert shipped.machine.follow.__self__.universe.dialect.sync_in_stable_keeps_session  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_shipped_core_differs_from_itself_in_nothing() -> None:
    for machine in QUICK:
        shipped = recording(machine)
        comparison = compare(shipped, shipped.machine, any_transition)
        assert (comparison.complete, comparison.taken) == (True, shipped.transitions)
        assert find_by_tour(shipped, shipped.machine, any_transition) is None


def test_a_table_is_read_back(tmp_path: Path) -> None:
    verdicts = {
        "sync.sync: never: a | b -> False": Verdict(EQUIVALENT, compared=7, asked=True),
        "sync.sync: term: x -> y": Verdict(REFUTED, compared=3, proof={"sync": ["T4"]}, asked=True),
        "protocol_selection.vote: call: a -> b": Verdict(TOUR, "votes", 1, 2, 3),
    }
    file = tmp_path / "table.json"
    write(verdicts, file)
    assert read(file) == verdicts
    page = render_markdown(verdicts)
    assert (
        "| `sync.sync: never: a \\| b -> False` | equivalent | 7 transitions that run its function, the same answers |"
        in page
    )
    assert "sync breaks T4" in page


# -- the table ---------------------------------------------------------------------------------------------------


def table_errors(table: Mapping[str, Verdict], mutants: Iterable[str]) -> list[str]:
    """What is wrong with a table of these mutants: one is missing, a name is not theirs, a verdict has no evidence."""
    names = dict.fromkeys(mutants)
    found = [f"no row: {name}" for name in names if name not in table]
    found += [f"no mutant: {name}" for name in table if name not in names]
    return found + [f"unexplained: {name}" for name, verdict in table.items() if not has_evidence(verdict)]


def has_evidence(verdict: Verdict) -> bool:
    """The verdict comes with what it rests on."""
    if verdict.verdict == TOUR:
        return verdict.machine in NAMES and verdict.tour > 0 and verdict.step > 0
    return bool(verdict.proof if verdict.verdict == REFUTED else verdict.verdict == EQUIVALENT and verdict.compared)


def sample_mutants(count: int) -> list[str]:
    """So many mutants that a tour of a quick machine finds, from all over the core."""
    names = [name for name, one in TABLE.items() if one.verdict == TOUR and one.machine in QUICK]
    return [names[place * len(names) // count] for place in range(count)] if len(names) >= count else []


def test_the_table_explains_every_mutant_of_the_core() -> None:
    assert list(TABLE) == list(MUTANTS)
    assert table_errors(TABLE, MUTANTS) == []


def test_a_mutant_without_a_row_is_missed() -> None:
    first, *rest = TABLE
    assert table_errors({name: TABLE[name] for name in rest}, MUTANTS) == [f"no row: {first}"]


def test_a_table_that_is_not_of_this_core_or_explains_nothing_is_wrong() -> None:
    first, *rest = TABLE
    assert table_errors(TABLE, rest) == [f"no mutant: {first}"]
    for verdict in (Verdict(UNEXPLAINED, compared=9, asked=True), Verdict(EQUIVALENT), Verdict(TOUR)):
        assert table_errors({**TABLE, first: verdict}, MUTANTS) == [f"unexplained: {first}"]


@pytest.mark.parametrize("name", sample_mutants(BY_TOUR))
def test_a_tour_finds_it_again(name: str) -> None:
    verdict = TABLE[name]
    assert classify_mutant(MUTANTS[name], (verdict.machine,)) == verdict


def alike_in_quick_machines(name: str) -> bool:
    """The quick machines run what the mutant changes, and none of them answers differently."""
    return classify_mutant(MUTANTS[name], QUICK).verdict == EQUIVALENT


@pytest.mark.parametrize("name", ALIKE)
def test_no_quick_machine_tells_it_from_the_core(name: str) -> None:
    assert alike_in_quick_machines(name)


def test_a_mutant_that_a_tour_finds_is_not_equivalent() -> None:
    assert not any(map(alike_in_quick_machines, sample_mutants(3)))


def refuted_by(name: str, event: str) -> set[str]:
    """The statements that an event, proved again, breaks with a mutant."""
    return {one for broken in prove_events(LoadedMutant(MUTANTS[name]), (event,)).broken.values() for one in broken}


@pytest.mark.parametrize(("name", "event", "statement"), REFUTED_ALONE)
def test_the_proof_refutes_what_no_tour_finds(name: str, event: str, statement: str) -> None:
    assert alike_in_quick_machines(name)
    assert statement in refuted_by(name, event)


def test_the_proof_does_not_refute_what_is_the_same() -> None:
    assert refuted_by("sync.sync_completing: always: is_member(member) -> True", "sync") == set()


def test_the_document_tells_how_many_mutants_tours_find() -> None:
    found = sum(one.verdict == TOUR for one in TABLE.values())
    refuted, same = (sum(one.verdict == kind for one in TABLE.values()) for kind in (REFUTED, EQUIVALENT))
    text = PROOFS.read_text(encoding="utf-8")
    assert f"tours find {found:,} of {len(MUTANTS):,} mutants of the core" in text
    assert f"the proof refutes {refuted} more" in text
    assert f"the other {same} have no different answer" in text
