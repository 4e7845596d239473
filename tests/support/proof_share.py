"""What share of the judge is inside the proof: rules, steps and lines, measured."""

import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BundledRun
from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.proofs.induction import DISPATCH, KAFKA_FAILOVERS, ONE_TERM, ProofSize, prepare_query

SMALL = ProofSize(slots=2, partitions=1)
MANY_PATHS = ("leave-two", "leave-two-settled-each")
"""They run what `leave` runs."""
ROOT = Path(__file__).parents[2]
JUDGING = (
    "model/logic.py",
    "model/classic/core",
    "model/classic/coordinator",
    "model/classic/messages",
    "model/groups",
    "traces/judge",
    "traces/classic",
)
"""The code that judges: the model, the reading of messages, and the search for an explanation; clients and histories
are told apart."""


@cache
def run_by_the_proof() -> tuple[frozenset[str], frozenset[CodeType]]:
    """The rules of the coordinator that apply on some path of the proofs, and the functions that run on symbols."""
    rules: set[str] = set()
    codes: set[CodeType] = set()

    def note(frame: FrameType, kind: str, _: object) -> None:
        if kind == "call":
            codes.add(frame.f_code)

    for induction in (ONE_TERM, KAFKA_FAILOVERS, DISPATCH):
        size = induction.own_size or SMALL
        for event in induction.events(size.slots):
            if event.name in MANY_PATHS or (induction is KAFKA_FAILOVERS and event.name != "load"):
                continue
            query = prepare_query(event, induction.statements, size)
            sys.setprofile(note)
            try:
                rules.update(result.result.rule for result, _ in query.paths())
            finally:
                sys.setprofile(None)
    return frozenset(rules & RULES.keys()), frozenset(codes)


def judging_files() -> list[Path]:
    """The files of the code that judges."""
    places = ([ROOT / name] if name.endswith(".py") else (ROOT / name).rglob("*.py") for name in JUDGING)
    return [file for files in places for file in files if "client" not in file.parts and "history" not in file.stem]


def lines_inside() -> tuple[int, int]:
    """How many lines of functions that judge run in the proof, and how many there are."""
    _, codes = run_by_the_proof()
    inside = total = 0
    ran = {(Path(code.co_filename).resolve(), code.co_firstlineno) for code in codes}
    for file in judging_files():
        for code in functions_in(compile(file.read_text(encoding="utf-8"), str(file), "exec")):
            count = len({line for _, _, line in code.co_lines() if line is not None} - {code.co_firstlineno})
            total += count
            inside += count if (file.resolve(), code.co_firstlineno) in ran else 0
    return inside, total


def functions_in(code: CodeType) -> Iterator[CodeType]:
    """The functions and methods that a code object defines, comprehensions left to the function around them."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            if not one.co_name.startswith("<") and one.co_flags & inspect.CO_OPTIMIZED:
                yield one
            yield from functions_in(one)


def steps_inside() -> tuple[int, int]:
    """How many steps have a rule that is inside the proof, and how many there are, of those that the judge takes in the
    scenarios of `fencepost test bundled`."""
    proved, _ = run_by_the_proof()
    run = BundledRun(Plan(BUNDLED), Profile())
    rules: Counter[str] = Counter()
    for scenario in ALL:
        rules += Counter(run_virtual(run.play(scenario, "run")).verdict.rules)
    return sum(count for name, count in rules.items() if name in proved), rules.total()
