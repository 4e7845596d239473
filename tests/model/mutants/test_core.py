"""How mutants of the core are compared with it: `python -m tests.bars.mutants` judges them all and writes a table."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from fencepost.conformance.zoo.mutation import Mutant
from fencepost.model.core.logic import and_, or_
from tests.model.mutants.calls import calls, gives
from tests.model.mutants.core import Loaded, core_mutants, function_of
from tests.model.mutants.judging import judged, recording, shipped_code
from tests.model.mutants.lockstep import compare, everything, found_by_tour, runs, toured
from tests.model.mutants.machines import NAMES
from tests.model.mutants.proving import proof
from tests.model.mutants.reach import reaches, readers
from tests.model.mutants.verdicts import EQUIVALENT, REFUTED, TOUR, UNEXPLAINED, Verdict, markdown, read, write

MUTANTS = {mutant.name: mutant for mutant in core_mutants()}
QUICK = ("connectives", "one member", "odd joins", "odd static", "newcomers", "patient static", "static member")
"""Machines that do not take long."""


TABLE = read()
PROOFS = Path(__file__).parents[3] / "model" / "PROOFS.md"
BY_TOUR = 40
"""How many that a tour finds are judged anew."""
ALIKE = (
    "logic.and_: never: term is False -> False",
    "logic.or_: always: term is not False -> True",
    "logic.emit: never: when is True -> False",
    "members.find: never: absent(member) -> False",
    "members.joined_count: term: and_(is_member(slot), slot.join != 0) -> slot.join != 0",
    "rounds.anyone_unsynced: term: and_(is_member(slot), slot.unsynced) -> slot.unsynced",
    "session.leave_one: never: absent(instance) -> False",
    "sync.sync_completing: always: is_member(member) -> True",
)
"""Mutants that make no difference."""
REFUTED_ALONE = (
    ("member.on_sync_answer: field: owned_in=member.generation -> nothing", "member-sync-answer", "T4-belief"),
    ("member.on_sync_answer: constant: 0 -> 1", "member-sync-answer-quietly", "T4"),
    (
        "timers.expire_join: term: or_(group.phase != Phase.PREPARING, not_(group.join_armed), "
        "context.now < group.join_deadline) -> or_(not_(group.join_armed), context.now < group.join_deadline)",
        "expire-join",
        "syncing-claims",
    ),
)
"""Mutants that make no difference in any machine but break a proof: of which event, and what."""


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


# -- the table ---------------------------------------------------------------------------------------------------


def wrong(table: Mapping[str, Verdict], mutants: Iterable[str]) -> list[str]:
    """What is wrong with a table of some of these mutants: names that are not theirs, verdicts without evidence."""
    names = set(mutants)
    found = [f"no mutant: {name}" for name in table if name not in names]
    return found + [f"unexplained: {name}" for name, verdict in table.items() if not explained(verdict)]


def explained(verdict: Verdict) -> bool:
    """The verdict comes with what it rests on."""
    if verdict.verdict == TOUR:
        return verdict.machine in NAMES and verdict.tour > 0 and verdict.step > 0
    return bool(verdict.proof if verdict.verdict == REFUTED else verdict.verdict == EQUIVALENT and verdict.compared)


def spread(count: int) -> list[str]:
    """So many mutants that a tour of a quick machine finds, from all over the core."""
    names = [name for name, one in TABLE.items() if one.verdict == TOUR and one.machine in QUICK]
    return [names[place * len(names) // count] for place in range(count)] if len(names) >= count else []


def test_the_table_is_of_mutants_of_the_core_and_explains_them() -> None:
    assert len(TABLE) >= len(spread(BY_TOUR)) == BY_TOUR
    assert wrong(TABLE, MUTANTS) == []


def test_a_table_that_is_not_of_this_core_or_explains_nothing_is_wrong() -> None:
    first, *rest = TABLE
    assert wrong(TABLE, rest) == [f"no mutant: {first}"]
    for verdict in (Verdict(UNEXPLAINED, compared=9, asked=True), Verdict(EQUIVALENT), Verdict(TOUR)):
        assert wrong({**TABLE, first: verdict}, MUTANTS) == [f"unexplained: {first}"]


@pytest.mark.parametrize("name", spread(BY_TOUR))
def test_a_tour_finds_it_again(name: str) -> None:
    verdict = TABLE[name]
    assert judged(MUTANTS[name], (verdict.machine,)) == verdict


def alike_in_quick_machines(name: str) -> bool:
    """The quick machines run what the mutant changes, and none of them answers differently."""
    return judged(MUTANTS[name], QUICK).verdict == EQUIVALENT


@pytest.mark.parametrize("name", ALIKE)
def test_no_quick_machine_tells_it_from_the_core(name: str) -> None:
    assert alike_in_quick_machines(name)


def test_a_mutant_that_a_tour_finds_is_not_equivalent() -> None:
    assert not any(map(alike_in_quick_machines, spread(3)))


def refuted_by(name: str, event: str) -> set[str]:
    """The statements that an event, proved again, breaks with a mutant."""
    return {one for broken in proof(Loaded(MUTANTS[name]), (event,)).broken.values() for one in broken}


@pytest.mark.parametrize(("name", "event", "statement"), REFUTED_ALONE)
def test_the_proof_refutes_what_no_tour_finds(name: str, event: str, statement: str) -> None:
    assert alike_in_quick_machines(name)
    assert statement in refuted_by(name, event)


def test_the_proof_does_not_refute_what_is_the_same() -> None:
    assert refuted_by("sync.sync_completing: always: is_member(member) -> True", "sync") == set()


def test_the_document_tells_how_many_mutants_tours_find() -> None:
    found = sum(one.verdict == TOUR for one in TABLE.values())
    text = PROOFS.read_text(encoding="utf-8")
    assert f"tours find {found:,} of {len(MUTANTS):,} mutants of the core" in text
