"""Draw breaks by a seed, from all mutants of what judges, and find out what refutes each.

python -m tests.acceptance.fresh_breaks --seed SEED [--count COUNT] [--next N]

As many are drawn of each of four parts: the core, the coordinator around it, the member with its client, and what the
judge does between proved steps. Each is given to `prove`, then to `explore`, then to the lists of mutants: the table of
the core's (`tests/model/mutants/core.json`), and the tests that hold the other parts. A run judges the next N that the
table lacks, so that it can be made in parts; another seed begins a table anew. What nothing refutes needs a reason in
the table, which a person writes who has read the mutant.
"""

import argparse
import ast
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from fencepost.conformance.zoo.mutants import (
    Mutant,
    apply_mutant,
    dependencies_of,
    load_changed,
    mutants_of,
    source_of,
)
from fencepost.conformance.zoo.operators import Vocabulary
from fencepost.model.classic import coordinator, core, member
from fencepost.model.classic.proofs.induction import ProofSize
from tests.acceptance.framework import ROOT, Figure, at_least, exactly, without_threshold
from tests.model.mutants import results
from tests.model.mutants.core import CORE
from tests.support import changed_module

FILE = Path(__file__).parent / "results" / "fresh_breaks.json"
COUNT, REFUTED_PERCENT = 60, 92
LONGEST_S = 900
"""Seconds for the tests of a part, which take one minute."""
SIZES = (ProofSize(slots=2, partitions=1, protocols=2), ProofSize(slots=3, partitions=1, protocols=2))
"""What is refuted in the first is refuted in the default size too; a JoinGroup without an id finds two members in the
second."""
TERM = "fencepost.model.classic.proofs.proof_events"
PROOFS, EXPLORATION = "fencepost.model.classic.proofs.results", "fencepost.conformance.classic.exploration"
BETWEEN_STEPS: Mapping[str, Collection[str]] = {
    "stepping": (
        "maybe_expired_offsets",
        "states_after_cleanup",
        "missing_offsets",
        "is_offset_unset",
        "may_commute",
        "is_commutative",
        "is_pending_id",
        "normalize_members",
        "extend_session",
        "extend_deadline",
        "CoordinatorStepper.apply_outcome",
        "CoordinatorStepper.with_expired_offsets",
        "CoordinatorStepper.is_dead_end",
    ),
    "calm_group": (
        "take_fast_path",
        "is_plain",
        "is_exact",
        "differs_in_times_alone",
        "is_calm",
        "learn_step",
        "hide_times",
        "hide_numbers",
        "stores_as_asked",
        "is_committed_now",
        "renewals_between",
        "earliest_deadline",
        "CalmGroup.follow",
        "CalmGroup.advance_to",
        "CalmGroup.meet",
        "CalmGroup.repeat",
        "CalmGroup.renew",
        "CalmGroup.catch_up",
    ),
    "nondeterminism": ("resolve_state_ids", "resolve_group_ids", "resolve_response_ids", "resolve_ids"),
}
"""By module of `traces/classic`, the functions between proved steps: reduction, normalisation, offsets that expire, the
fast path, repetition, and the ids that become known."""
TESTS: Mapping[str, tuple[str, ...]] = {
    "coordinator": ("tests/model", "--ignore=tests/model/proofs", "--ignore=tests/model/explore"),
    "member": ("tests/model/member", "tests/model/core/test_member.py"),
    "judge": (
        "tests/traces/test_calm_groups.py",
        "tests/traces/judge",
        "tests/traces",
        "--ignore=tests/traces/pipeline",
    ),
}
"""The quick tests that hold a part, the nearest first."""
SCENARIOS_OF_CLIENTS = "tests/conformance/clients/test_scenarios.py"
THOROUGH: Mapping[str, tuple[str, ...]] = {
    "coordinator": (
        "tests/traces/judge",
        "tests/conformance/test_alterations.py",
        "tests/conformance/schedules/test_falsify.py",
    ),
    "member": (
        "tests/conformance/clients/test_bundled.py",
        "tests/conformance/clients/test_monitors.py",
        f"{SCENARIOS_OF_CLIENTS}::test_all_requirements_of_drivers_are_seen_to_be_kept",
    ),
    "judge": (
        "tests/traces/test_calm_groups.py",
        "tests/traces/test_differential.py",
        "tests/conformance/test_alterations.py",
        "tests/conformance/schedules/test_falsify.py",
    ),
}
"""The tests, slow ones too, in which a part judges or plays all scenarios and what is altered in them."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a break: `by` says what refutes it, `what` which theorems, properties or tests do."""

    part: str
    by: str = ""
    what: tuple[str, ...] = ()
    reason: str = ""
    """Why nothing refutes it: the sentence that puts it outside, or why it is equivalent."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The mutants of a seed with their parts."""

    seed: int
    mutants: Mapping[str, tuple[str, Mutant]]


@cache
def parts() -> dict[str, tuple[Mutant, ...]]:
    """Every mutant of each part."""
    modules = {
        name: [f"{package.__name__}.{one.name}" for one in iter_modules(package.__path__)]
        for name, package in (("core", core), ("coordinator", coordinator), ("member", member))
    }
    judge = {f"fencepost.traces.classic.{name}": functions for name, functions in BETWEEN_STEPS.items()}
    found = {name: tuple(all_mutants(names)) for name, names in modules.items()}
    return found | {"judge": tuple(one for one in all_mutants(list(judge)) if one.function in judge[one.module])}


def all_mutants(modules: Sequence[str]) -> Iterator[Mutant]:
    """The mutants of the code of some modules, without those of what is computed when they are loaded."""
    sources = {name: source_of(name) for name in modules}
    vocabulary = Vocabulary.of((*sources.values(), source_of("fencepost.model.errors")))
    every = (one for name, source in sources.items() for one in mutants_of(name, source, vocabulary))
    return (one for one in every if one.function)


def draw(seed: int, count: int = COUNT) -> Draw:
    """As many mutants of each part."""
    choose = random.Random(seed)
    chosen = {name: choose.sample(mutants, count // len(parts())) for name, mutants in parts().items()}
    return Draw(seed, {f"{part}: {one.name}": (part, one) for part, mutants in chosen.items() for one in mutants})


def judge_break(part: str, mutant: Mutant) -> Judged:
    """Ask one after the other what refutes the mutant."""
    changed = {mutant.module: apply_mutant(source_of(mutant.module), mutant)}
    if part != "judge":
        for by, ask in (("prove", refuted_statements), ("explore", violated_properties)):
            if what := ask(changed):
                return Judged(part, by, tuple(what))
    known = results.read().get(mutant.name) if mutant.module in CORE else None
    if known is not None:
        return Judged(part, "tour" if known.verdict == results.TOUR else "", (known.machine,), known.verdict)
    failed = failed_tests(changed, ("-m", "not slow", *TESTS[part])) or failed_tests(changed, THOROUGH[part])
    return Judged(part, "tests" if failed else "", failed)


def refuted_statements(changed: Mapping[str, ast.Module]) -> list[str]:
    """The statements that the first event with a counterexample breaks, or that the proof cannot be run."""
    if dependencies_of((PROOFS,)).isdisjoint(changed):
        return []
    try:
        proofs: Any = load_changed(changed, (PROOFS,))[PROOFS]
        for size in SIZES:
            for report in proofs.REPORTS[is_around_core(changed) :]:
                own = report.induction.own_size or proofs.ProofSize(size.slots, size.partitions, size.protocols)
                for event in reversed(report.induction.event_names(own)):  # the slowest come last
                    found = proofs.prove_named_event(proofs.EventProof(report.induction.name, event, own, 0))
                    if broken := {report.prefix + one.statement for one in found.counterexamples}:
                        return [event, *sorted(broken)]
    except Exception as error:
        return [f"the proof stops: {type(error).__name__}"]
    return []


def is_around_core(changed: Collection[str]) -> bool:
    """No handler of the core or of the member is changed: the theorems of one term, the first ones, are not about
    it."""
    return dependencies_of((TERM,)).isdisjoint(changed)


def violated_properties(changed: Mapping[str, ast.Module]) -> list[str]:
    """The properties that the default search finds violated."""
    if dependencies_of((EXPLORATION,)).isdisjoint(changed):
        return []
    try:
        exploration: Any = load_changed(changed, (EXPLORATION,))[EXPLORATION]
        found = exploration.run_exploration(exploration.Instance(), ignore, ignore, ignore)
    except Exception as error:
        return [f"the search stops: {type(error).__name__}"]
    return [one.property.name for one in found.results if one.verdict not in ("holds", "seen")]


def ignore(_: object) -> None:
    """Progress that nobody looks at."""


def failed_tests(changed: Mapping[str, ast.Module], tests: Sequence[str]) -> tuple[str, ...]:
    """The first of the tests that fails; pytest gets the arguments as they are. Raises RuntimeError if it fails of the
    shipped code as well: it would refute whatever is drawn."""
    failed = first_failure(changed, tests)
    shipped = {module: ast.parse(source_of(module)) for module in changed}
    if failed.startswith(("FAILED", "ERROR")) and first_failure(shipped, [failed.split(" ", 1)[1]]):
        raise RuntimeError(f"{failed} of the shipped code as well")
    return (failed,) if failed else ()


def first_failure(changed: Mapping[str, ast.Module], tests: Sequence[str]) -> str:
    """The first of the tests that fails, as pytest tells it; empty if none does."""
    ((module, tree),) = changed.items()
    command = (sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider")
    with tempfile.NamedTemporaryFile() as file:
        pickle.dump(tree, file)
        file.flush()
        environment = os.environ | {changed_module.MODULE: module, changed_module.TREE: file.name}
        arguments = (*command, "-p", changed_module.__name__, *tests)
        try:
            done = subprocess.run(
                arguments, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST_S
            )
        except subprocess.TimeoutExpired:
            return "the tests do not end"
    if done.returncode == 0:
        return ""
    lines = (line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR")))
    return next(lines, "the tests stop").partition(" - ")[0]


# --- The table.


def read_table(file: Path = FILE) -> tuple[int, dict[str, Judged]]:
    """The seed of the table, and what became of its breaks."""
    if not file.exists():
        return 0, {}
    table = json.loads(file.read_text(encoding="utf-8"))
    return table["seed"], {name: Judged(**{**row, "what": tuple(row["what"])}) for name, row in table["breaks"].items()}


def write_table(seed: int, judged: Mapping[str, Judged], file: Path = FILE) -> None:
    """Save the seed of a draw, and what became of each of its breaks."""
    rows = {name: asdict(one) for name, one in judged.items()}
    file.write_text(json.dumps({"seed": seed, "breaks": rows}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def check_fresh_breaks(_: Path) -> Iterator[Figure]:
    """The table of fresh breaks: how many are refuted, and whether the others are explained."""
    seed, judged = read_table()
    yield without_threshold("seed", seed)
    yield exactly("breaks that were judged", len(judged), COUNT)
    for by, count in sorted(Counter(one.by for one in judged.values() if one.by).items()):
        yield without_threshold(f"refuted by {by}", count)
    silent = {name: one.reason for name, one in judged.items() if not one.by}
    harmless = sum(reason.startswith("equivalent") for reason in silent.values())
    yield without_threshold("equivalent, which are no breaks", harmless)
    refuted = len(judged) - len(silent)
    yield at_least("refuted in % of the breaks", 100 * refuted // max(len(judged) - harmless, 1), REFUTED_PERCENT)
    yield exactly("not refuted, and no reason", sum(not reason for reason in silent.values()), 0)
    for name, reason in silent.items():
        yield without_threshold(name, reason)


def main() -> int:
    """Judge the next breaks of a draw."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.fresh_breaks", description=__doc__)
    parser.add_argument("--seed", metavar="SEED", type=int, required=True)
    parser.add_argument("--count", metavar="COUNT", type=int, default=COUNT)
    parser.add_argument("--next", metavar="N", type=int, default=COUNT, help="how many to judge now (default: all)")
    options = parser.parse_args()
    drawn = draw(options.seed, options.count)
    seed, judged = read_table()
    judged = judged if seed == options.seed else {}
    for name in [name for name in drawn.mutants if name not in judged][: options.next]:
        judged[name] = judge_break(*drawn.mutants[name])
        write_table(options.seed, judged)
        print(f"{name}: {judged[name]}", file=sys.stderr, flush=True)
    print(f"{len(judged)} of {len(drawn.mutants)} judged, {sum(bool(one.by) for one in judged.values())} refuted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
