"""Give the breaks made by hand to `prove` and to the default `explore`, each alone, and write the outcomes to a table.

python -m tests.acceptance.core_breaks [--only NUMBER...] [--prove] [--explore]

The table keeps what is not judged again.
"""

import argparse
import ast
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fencepost.conformance.zoo.mutants import load_changed, source_of
from fencepost.model.classic.proofs.induction import ProofSize
from fencepost.model.classic.theorems.registry import REGISTRY
from tests.acceptance.framework import Figure, at_least, exactly, without_threshold
from tests.model.mutants.classify import prove_changed
from tests.model.proofs.breaks import BREAKS, Break

EXPLORATION = "fencepost.conformance.classic.run.exploration"
PROOF_SIZE = ProofSize(slots=2, partitions=1, protocols=2)
FILE = Path(__file__).parent / "results" / "core_breaks.json"
NEEDED = 36
"""How many of them have to be refuted."""
UNNOTICED = {
    "12 assignments outlive an interrupted generation": "no statement is broken: a new assignment overwrites each old"
    " one before anybody is handed it"
}
"""Why a break is refuted by neither."""
EVERY = 13
"""One in so many is proved again by the check."""


@dataclass(frozen=True, slots=True)
class BreakVerdict:
    """What `prove` and `explore` say of a break: the first refuted event with its statements, and the properties that
    the search finds violated; None where that was not asked."""

    proof: Mapping[str, list[str]] | None = None
    search: list[str] | None = None
    by_theorems: list[str] = field(default_factory=list)
    """The theorems among all of these, which people read."""

    @property
    def is_refuted(self) -> bool:
        """One of the two commands would not exit 0."""
        return bool(self.proof or self.search)


def search(changed: Mapping[str, ast.Module]) -> list[str]:
    """The properties that the default search finds violated where the sources of some modules are changed."""
    exploration: Any = load_changed(changed, (EXPLORATION,))[EXPLORATION]
    try:
        found = exploration.run_exploration(exploration.Instance(), ignore, ignore, ignore)
    except Exception as error:
        return [f"the search stops: {type(error).__name__}"]
    return [one.property.name for one in found.results if one.verdict not in ("holds", "seen")]


def ignore(_: object) -> None:
    """Progress that nobody looks at."""


def broken_source(broken: Break) -> Mapping[str, ast.Module]:
    """The module of the broken function, as it is then."""
    name, whole = broken.function.__module__, inspect.getsource(broken.function)
    assert whole.count(broken.before) == 1, broken.name
    module = source_of(name)
    assert module.count(whole) == 1, broken.name
    return {name: ast.parse(module.replace(whole, whole.replace(broken.before, broken.after)))}


def judge_by_proof(broken: Break) -> dict[str, list[str]]:
    """The first event of which the proof refutes statements, with these; the one that has to notice comes first."""
    function = f"{broken.function.__module__.rpartition('.')[2]}.{broken.function.__name__}"
    return dict(prove_changed(broken_source(broken), (), function, PROOF_SIZE, broken.event).broken)


def with_theorems(verdict: BreakVerdict) -> BreakVerdict:
    """The verdict with the theorems in it."""
    names = {one.id: one.id for one in REGISTRY} | {one.search_name: one.id for one in REGISTRY if one.search_name}
    found = [*(name for names in (verdict.proof or {}).values() for name in names), *(verdict.search or ())]
    return replace(verdict, by_theorems=sorted({names[one] for one in found if one in names}))


def read_table(file: Path = FILE) -> dict[str, BreakVerdict]:
    """The verdicts so far."""
    rows = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {name: BreakVerdict(**row) for name, row in rows.items()}


def write_table(verdicts: Mapping[str, BreakVerdict], file: Path = FILE) -> None:
    """Write the verdicts in the order of the breaks."""
    rows = {one.name: asdict(verdicts[one.name]) for one in BREAKS if one.name in verdicts}
    file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def check_core_breaks(_: Path) -> Iterator[Figure]:
    """The table of the breaks: complete, and the same where it is proved again."""
    verdicts = read_table()
    yield exactly("breaks given to prove", sum(one.proof is not None for one in verdicts.values()), len(BREAKS))
    yield exactly("breaks given to explore", sum(one.search is not None for one in verdicts.values()), len(BREAKS))
    yield at_least("refuted by one of the two", sum(one.is_refuted for one in verdicts.values()), NEEDED)
    yield without_threshold("refuted by prove", sum(bool(one.proof) for one in verdicts.values()))
    yield without_threshold("refuted by explore", sum(bool(one.search) for one in verdicts.values()))
    yield without_threshold("refuted by a theorem", sum(bool(one.by_theorems) for one in verdicts.values()))
    unexplained = [name for name, one in verdicts.items() if not one.is_refuted and name not in UNNOTICED]
    yield exactly("refuted by neither, without a reason", len(unexplained), 0)
    missed = [
        one.name for one in BREAKS if one.name in verdicts and not one.theorems <= {*verdicts[one.name].by_theorems}
    ]
    yield exactly("breaks of which a theorem that they violate is not refuted", ", ".join(missed), "")
    again = [one for one in BREAKS[::EVERY] if one.name in verdicts]
    changed = sum(judge_by_proof(one) != verdicts[one.name].proof for one in again)
    yield exactly("proofs other than in the table", changed, 0)
    for name, reason in UNNOTICED.items():
        yield without_threshold(name, reason)


def main() -> int:
    """Judge breaks, all of them if none is named."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.core_breaks", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NUMBER", help="the breaks of these numbers (default: all)")
    parser.add_argument("--prove", action="store_true", help="ask the proof alone")
    parser.add_argument("--explore", action="store_true", help="ask the search alone")
    chosen = parser.parse_args()
    for broken in BREAKS:
        if chosen.only and broken.name.split()[0] not in chosen.only:
            continue
        verdict = read_table().get(broken.name, BreakVerdict())
        if chosen.prove or not chosen.explore:
            verdict = replace(verdict, proof=judge_by_proof(broken))
        if chosen.explore or not chosen.prove:
            verdict = replace(verdict, search=search(broken_source(broken)))
        write_table(read_table() | {broken.name: with_theorems(verdict)})
        print(f"{broken.name}: {verdict}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
