"""The table of rules: complete, without idle rows, and every row answers to requirements of the catalogue."""

import ast
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.model.classic.catalogue import CATALOGUE, RULES
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
