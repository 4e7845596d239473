"""The table of rules: complete, without idle rows, and every row answers to requirements of the catalogue."""

import ast
import copy
import pickle
import random
from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from pathlib import Path

import pytest

from fencepost.model.classic.catalogue import CATALOGUE, RULES
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.explore.properties import PROPERTIES
from fencepost.model.classic.proofs.results import theorem_sentences
from fencepost.model.classic.theorems import kernel_statements
from fencepost.model.classic.theorems.lemmas import LEMMAS
from fencepost.model.classic.theorems.non_theorems import (
    FALSE_THEOREMS,
    FalseTheorem,
    coordinator_failover,
    double_commit,
    group_deletion,
    leader_id_change,
)
from fencepost.model.classic.theorems.ownership_lemmas import OWNERSHIP_LEMMAS
from fencepost.model.classic.theorems.registry import REGISTRY
from fencepost.model.classic.theorems.request_statements import STEP_THEOREMS
from fencepost.model.classic.theorems.scripted_run import ScriptedRun
from fencepost.model.classic.theorems.statements import THEOREMS, one_leader
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.traces.judge.judge import judge
from tests.support.random_client import random_trace

ROOT = Path(__file__).parents[2]
HANDLERS = [
    *sorted((ROOT / "model" / "classic" / "core").glob("*.py")),
    *sorted((ROOT / "model" / "classic" / "coordinator").glob("*.py")),
    *sorted((ROOT / "model" / "groups").glob("*.py")),
    *sorted((ROOT / "traces" / "judge").rglob("*.py")),
    *sorted((ROOT / "traces" / "classic").glob("*.py")),
]
PREFIXES = {name.split(".")[0] for name in RULES}
NOT_BY_CHANCE = {
    "clean-up.overdue",
    "commit.version-0",
    "fetch.version-0",
    "load.oversized",
    "timer.not-due",
    "timer.sync-idle",
    "transaction.init-producer",
    "transaction.old-epoch",
    "unload",
}
"""Rules that need a target, a setting or a producer's second epoch, which the random schedules do not have, a timer
asked too early, or a wrong response."""
AROUND_A_FAILOVER = ("gate.", "failure.")
"""Rules of coordinators that are not ready and of logs that fail, as the random schedules have none."""


def rule_names_in(path: Path) -> Iterator[str]:
    """The strings in a module that look like the name of a rule."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            prefix, _, rest = node.value.partition(".")
            if prefix in PREFIXES and (rest or node.value in RULES):
                yield node.value


def test_every_rule_that_a_handler_names_is_in_the_table_and_the_other_way_round() -> None:
    names = {name for path in HANDLERS for name in rule_names_in(path)}
    assert names == set(RULES)


@pytest.mark.slow
def test_random_schedules_come_by_every_rule() -> None:
    seen: set[str] = set()
    for seed in range(200):
        seen |= set(judge(*random_trace(random.Random(seed), 60)).rules)
    assert seen == {name for name in RULES if not name.startswith(AROUND_A_FAILOVER)} - NOT_BY_CHANCE


@pytest.mark.parametrize("name", RULES)
def test_rows_answer_to_requirements_that_exist(name: str) -> None:
    row = RULES[name]
    assert row.name == name and row.guard and row.requirements
    assert {*row.requirements, *row.fields.values()} <= set(CATALOGUE)


# --- A theorem has one name and one sentence, whichever engine looks at it.


def test_the_registry_has_every_theorem() -> None:
    assert tuple(one.statement for one in REGISTRY) == (*THEOREMS, *STEP_THEOREMS)
    kernel = {one.invariant for one in REGISTRY} - {None}
    assert kernel == {*kernel_statements.THEOREMS, kernel_statements.no_stale_commit}


def test_proof_and_search_use_its_names_and_sentences() -> None:
    sentences, searched = theorem_sentences(), {one.name: one.sentence for one in PROPERTIES}
    for one in REGISTRY:
        assert sentences[one.id] == one.sentence
        assert searched.get(one.search_name, one.sentence) == one.sentence
        assert sentences.get(one.kernel_id, "") == one.kernel_sentence
    assert {one.search_name for one in REGISTRY if one.search_name} <= searched.keys()


# --- The plain wordings are false, and true within their scope.


@pytest.mark.parametrize("false", FALSE_THEOREMS, ids=lambda false: f"{false.statement.id}-{false.script.__name__}")
def test_the_story_breaks_it(false: FalseTheorem) -> None:
    assert false.script().violations_of(false.statement)


@pytest.mark.parametrize("story", [double_commit, leader_id_change], ids=lambda story: story.__name__)
def test_within_one_tenure_and_life_everything_proved_holds(story: object) -> None:
    assert callable(story)
    told: ScriptedRun = story()
    assert [one.id for one in (*THEOREMS, *LEMMAS, *OWNERSHIP_LEMMAS) if told.violations_of(one)] == []


def test_kafka_tells_of_two_leaders_within_twelve_steps() -> None:
    run = coordinator_failover()
    assert len(run.log) <= 12
    assert run.violations_of(one_leader)


def test_a_generation_that_is_stored_early_is_not_given_again() -> None:
    """The same run in the dialect of which T1 is proved across fail-overs."""
    run = coordinator_failover(Dialect(generation_waits_for_assignment=False))
    assert run.violations_of(one_leader) == []
    assert run.log[-1] == "coordinator: timer.rebalance, generation 2"


def test_the_story_of_t5_is_short() -> None:
    assert len(double_commit().log) < 50
    assert any(line.startswith("deletion") for line in group_deletion().log)


# --- Values of `fast_frozen` classes behave in every respect like those of frozen dataclasses.


@fast_frozen
@dataclass(frozen=True, slots=True)
class Quick:
    kind: str
    value: int = 7
    self: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Plain:
    kind: str
    value: int = 7
    self: Mapping[str, int] = field(default_factory=dict, hash=False)


@fast_frozen
@dataclass(frozen=True, slots=True)
class Bare:
    pass


def describe_error(value: object) -> str:
    return repr(value).replace("Plain", "Quick")


@pytest.mark.parametrize("arguments", [("a",), ("a", 1), ("a", 1, {"b": 2})])
def test_a_quick_value_is_like_a_plain_one(arguments: tuple[object, ...]) -> None:
    made, plain = Quick(*arguments), Plain(*arguments)  # type: ignore[arg-type]
    assert describe_error(made) == describe_error(plain)
    assert type(made) is Quick
    assert (made == Quick(*arguments), hash(made)) == (True, hash(plain))  # type: ignore[arg-type]
    assert (
        describe_error(evolve(made, value=9))
        == describe_error(replace(plain, value=9))
        == describe_error(replace(made, value=9))
    )
    assert [each.name for each in fields(made)] == [each.name for each in fields(plain)]


def test_arguments_by_name_and_defaults_of_its_own() -> None:
    assert Quick(value=1, kind="a") == Quick("a", 1)
    one, other = Quick("a"), Quick("a")
    assert one.self is not other.self
    assert Bare() == Bare()


def test_it_stays_frozen() -> None:
    made = evolve(Quick("a"), kind="b")
    with pytest.raises(FrozenInstanceError):
        made.kind = "c"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        Quick("a").value = 1  # type: ignore[misc]


def test_copies_and_pickles() -> None:
    made = Quick("a", 3, {"b": 1})
    assert copy.copy(made) == copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize("arguments", [(), ("a", 1, {}, 2)])
def test_wrong_arguments_are_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        Quick(*arguments)  # type: ignore[arg-type]


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError, match="Quick has no field 'colour'"):
        evolve(Quick("a"), colour=1)
