"""How mutants of the core are compared with it: `python -m tests.bars.mutants` judges them all and writes a table."""

from pathlib import Path

from fencepost.conformance.zoo.mutation import Mutant
from fencepost.model.core.logic import and_, or_
from tests.model.mutants.calls import calls, gives
from tests.model.mutants.core import Loaded, core_mutants, function_of
from tests.model.mutants.judging import recording, shipped_code
from tests.model.mutants.lockstep import compare, everything, found_by_tour, runs, toured
from tests.model.mutants.reach import reaches, readers
from tests.model.mutants.verdicts import EQUIVALENT, REFUTED, TOUR, Verdict, markdown, read, write

MUTANTS = {mutant.name: mutant for mutant in core_mutants()}
QUICK = ("connectives", "one member", "odd joins", "odd static", "newcomers", "patient static", "static member")
"""Machines that do not take long."""


def named(text: str) -> Mutant:
    """The first mutant whose name has the text."""
    return next(mutant for name, mutant in MUTANTS.items() if text in name)


def test_a_transition_that_does_not_run_the_function_is_the_same() -> None:
    mutant = named("session.heartbeat: never: request.generation != group.generation")
    shipped = recording("one member")
    mine = Loaded(mutant).machine("one member")
    (quick, whole) = (compare(shipped, mine, runs("session.heartbeat")), compare(shipped, mine, everything))
    assert quick.shortest == whole.shortest is not None
    assert quick.taken < whole.taken


def test_a_transition_whose_calls_get_the_same_is_the_same() -> None:
    shipped, function = recording("one member"), "members.check_member"
    known = calls(shipped, function, shipped_code(function))
    assert known is not None
    taken, needed = 0, 0
    for mutant in (one for one in core_mutants() if function_of(one) == function):
        loaded = Loaded(mutant)
        mine = loaded.machine("one member")
        whole, few = (compare(shipped, mine, one) for one in (runs(function), known.affected(loaded.function)))
        assert (few.shortest, few.complete) == (whole.shortest, whole.complete)
        taken, needed = taken + whole.taken, needed + few.taken
    assert 0 < needed < taken / 2


def test_calls_that_a_mutant_answers_alike_are_not_taken_again() -> None:
    shipped = recording("one member")
    known = calls(shipped, "logic.and_", shipped_code("logic.and_"))
    assert known is not None and 1 < len(known.results) < 50 < len(known.made)
    assert not any(map(known.affected(and_), (move for move, _ in known.made)))
    assert any(map(known.affected(or_), (move for move, _ in known.made)))


def test_a_call_with_an_iterator_is_not_repeated() -> None:
    assert calls(recording("one member"), "logic.all_", shipped_code("logic.all_")) is None


def test_one_is_not_true() -> None:
    assert gives(lambda: (True, "a"), (), (True, "a"))
    assert not gives(lambda: (1, "a"), (), (True, "a"))
    assert not gives(lambda: [][0], (), None)


def test_tours_try_the_inputs_in_both_orders() -> None:
    tours = toured(recording("odd static"))
    assert {move for tour in tours for move in tour} == {
        move for moves in recording("odd static").moves for move in moves
    }
    half = len(tours) // 2
    assert tours[0][0].step.input != tours[half][0].step.input


def test_a_line_is_reached_or_not() -> None:
    early, late = named("join.join: never: absent(request.member)"), named("join.evict: always: known == NOWHERE")
    for machine, mutant, reached in (("one member", early, True), ("full", late, True), ("one member", late, False)):
        assert reaches(recording(machine), mutant, everything) is reached


def test_a_field_of_the_dialect_matters_where_it_is_read() -> None:
    found = {readers(mutant) for name, mutant in MUTANTS.items() if name.startswith("values.Dialect")}
    assert found >= {frozenset(), frozenset({"sync.sync_stable"}), frozenset({"join.evict"})}
    assert readers(named("values.Slot: constant: False -> True")) is None


def test_a_default_of_the_dialect_is_a_mutant_of_a_machine() -> None:
    mutant = named("values.Dialect: constant: True -> False")
    shipped = recording("newcomers")
    universe = Loaded(mutant).machine("newcomers").follow.__self__.universe  # type: ignore[attr-defined]
    assert not universe.dialect.sync_in_stable_keeps_session
    assert shipped.machine.follow.__self__.universe.dialect.sync_in_stable_keeps_session  # type: ignore[attr-defined]


def test_the_shipped_core_differs_from_itself_in_nothing() -> None:
    for machine in QUICK:
        shipped = recording(machine)
        comparison = compare(shipped, shipped.machine, everything)
        assert (comparison.complete, comparison.taken) == (True, shipped.transitions)
        assert found_by_tour(shipped, shipped.machine, everything) is None


def test_a_table_is_read_back(tmp_path: Path) -> None:
    verdicts = {
        "sync.sync: never: a | b -> False": Verdict(EQUIVALENT, compared=7, asked=True),
        "sync.sync: term: x -> y": Verdict(REFUTED, compared=3, proof={"sync": ["T4"]}, asked=True),
        "vote.vote: call: a -> b": Verdict(TOUR, "votes", 1, 2, 3),
    }
    file = tmp_path / "table.json"
    write(verdicts, file)
    assert read(file) == verdicts
    page = markdown(verdicts)
    assert (
        "| `sync.sync: never: a \\| b -> False` | equivalent | 7 transitions that run its function, the same answers |"
        in page
    )
    assert "sync breaks T4" in page
