"""Give a sample of the core's mutants to `prove` and `explore` alone, and write the outcomes to a table.

python -m tests.acceptance.core_sample [--count N]

The sample is that of the table, which was drawn at random. A mutant whose code is gone is replaced by the first of the
others in the order of the digests of their names. Each run goes on with the next N that the table lacks: it can be made
in parts.
"""

import argparse
import ast
import hashlib
import json
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from fencepost.conformance.zoo.faults.mutants import Mutant, load_changed
from fencepost.model.proofs.classic.induction import ProofSize
from tests.acceptance.framework import Figure, exactly, without_threshold
from tests.model.mutants import results
from tests.model.mutants.classify import prove_inductions
from tests.model.mutants.core import LoadedMutant, core_mutants

SIZE = 200
PROOF_SIZE = ProofSize(slots=2, partitions=1, protocols=2)
"""What is refuted here is refuted in the default size too, which has more of each."""
WIDER_SIZE = ProofSize(slots=3, partitions=1, protocols=2)
"""Where that finds nothing: a JoinGroup without an id, which needs a free slot, finds two members."""
FILE = Path(__file__).parent / "results" / "core_sample.json"
EXPLORATION = "fencepost.conformance.run.classic.exploration"
EVERY = 40
"""One in so many is judged again by the check."""


@dataclass(frozen=True, slots=True)
class SampleVerdict:
    """What `prove` and `explore` say of a mutant: the first refuted event with its statements, and the properties that
    a search finds violated, None if it was not searched. `stops` says where the mutant cannot be run at all; `reason`
    why nothing is refuted, written by a person who read the mutant."""

    proof: Mapping[str, list[str]] = field(default_factory=dict)
    search: list[str] | None = None
    stops: str = ""
    reason: str = ""

    @property
    def is_refuted(self) -> bool:
        """One of the two commands would not exit 0."""
        return bool(self.proof or self.search or self.stops)


@cache
def sample() -> tuple[Mutant, ...]:
    """The mutants of the table that the core still has, and as many others as are missing."""
    mutants = {one.name: one for one in core_mutants()}
    kept = [name for name in read_table() if name in mutants]
    others = sorted(mutants.keys() - kept, key=lambda name: hashlib.sha256(name.encode()).digest())
    return tuple(mutants[name] for name in [*kept, *others][:SIZE])


def judge(mutant: Mutant) -> SampleVerdict:
    """Give the mutant to the proof, and to the default search if that is silent."""
    try:
        loaded = LoadedMutant(mutant)
    except Exception as error:
        return SampleVerdict(stops=f"it does not load: {type(error).__name__}")
    for size in (PROOF_SIZE, WIDER_SIZE):
        proof = prove_inductions(mutant, loaded, size)
        if proof.broken or proof.stops:
            return SampleVerdict(dict(proof.broken), stops="" if proof.broken else proof.stops)
    return SampleVerdict(search=search(loaded.changed, loaded.shared))


def search(changed: Mapping[str, ast.Module], shared: Collection[str] = ()) -> list[str]:
    """The properties that the default search finds violated where the sources of some modules are changed."""
    exploration: Any = load_changed(changed, (EXPLORATION,), shared)[EXPLORATION]
    try:
        found = exploration.run_exploration(exploration.Instance(), ignore, ignore, ignore)
    except Exception as error:
        return [f"the search stops: {type(error).__name__}"]
    return [one.property.name for one in found.results if one.verdict not in ("holds", "seen")]


def ignore(_: object) -> None:
    """Progress that nobody looks at."""


def read_table(file: Path = FILE) -> dict[str, SampleVerdict]:
    """The verdicts so far."""
    rows = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {name: SampleVerdict(**row) for name, row in rows.items()}


def write_table(verdicts: Mapping[str, SampleVerdict], file: Path = FILE) -> None:
    """Write the verdicts in the order of the sample."""
    rows = {one.name: asdict(verdicts[one.name]) for one in sample() if one.name in verdicts}
    file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def explanations(verdicts: Mapping[str, SampleVerdict]) -> dict[str, str]:
    """Why mutants that are not refuted are not: no answer differs in the comparison with the core, or the reason that
    somebody gave who read the mutant. Without either it is not explained."""
    known = results.read()
    equal = {name for name, row in known.items() if row.verdict == results.EQUIVALENT}
    reasons = dict.fromkeys(equal, "no different answer in an exhaustive comparison")
    silent = {
        name: verdict.reason or reasons.get(name, "") for name, verdict in verdicts.items() if not verdict.is_refuted
    }
    return {name: reason for name, reason in silent.items() if reason}


def check_core_sample(_: Path) -> Iterator[Figure]:
    """The table of the sample: complete, of this core, and the same where it is judged again."""
    verdicts = read_table()
    names = [one.name for one in sample()]
    refuted = sum(one.is_refuted for one in verdicts.values())
    explained = explanations(verdicts)
    again = [one for one in sample()[::EVERY] if one.name in verdicts]
    yield exactly("mutants in the table", len(verdicts), SIZE)
    yield exactly("rows that are not of the sample", len(verdicts.keys() - set(names)), 0)
    changed = sum(judge(one).is_refuted != verdicts[one.name].is_refuted for one in again)
    yield exactly("verdicts other than in the table", changed, 0)
    yield without_threshold("verdicts made again", len(again))
    yield without_threshold("refuted by the proof", sum(bool(one.proof or one.stops) for one in verdicts.values()))
    yield without_threshold("found by the search alone", sum(bool(one.search) for one in verdicts.values()))
    yield without_threshold(
        "not refuted by the proof, and not searched",
        sum(one.search is None and not one.is_refuted for one in verdicts.values()),
    )
    yield exactly("neither, and not explained", len(verdicts) - refuted - len(explained), 0)
    for name, reason in explained.items():
        yield without_threshold(name, reason)


def main() -> int:
    """Judge the next mutants of the sample."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.core_sample", description=__doc__)
    parser.add_argument("--count", metavar="N", type=int, default=SIZE, help="how many to judge now (default: all)")
    verdicts = read_table()
    missing = [one for one in sample() if one.name not in verdicts][: parser.parse_args().count]
    for mutant in missing:
        verdicts[mutant.name] = judge(mutant)
        write_table(verdicts)
        print(f"{mutant.name}: {verdicts[mutant.name]}", file=sys.stderr, flush=True)
    print(f"{len(verdicts)} of {SIZE} judged, {sum(one.is_refuted for one in verdicts.values())} refuted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
