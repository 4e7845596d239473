"""How mutants of the core are compared with it: `python -m tests.bars.mutants` judges them all and writes a table."""

from pathlib import Path

from fencepost.conformance.zoo.mutation import Mutant
from tests.model.mutants.core import Loaded, core_mutants
from tests.model.mutants.judging import recording, relevant
from tests.model.mutants.lockstep import compare, everything, found_by_tour
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
    (quick, whole) = (compare(shipped, mine, relevant(mutant)), compare(shipped, mine, everything))
    assert quick.shortest == whole.shortest is not None
    assert quick.taken < whole.taken


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
    assert "| `sync.sync: never: a \\| b -> False` | equivalent | 7 transitions that run it, the same answers |" in page
    assert "sync breaks T4" in page
