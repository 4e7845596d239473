"""The table of the client's rules: complete, without idle rows, and each row reached by a test."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.model.classic.catalogue.client import CLIENT_CATALOGUE, MEMBER_RULES

HERE = Path(__file__).parent
HANDLERS = sorted((HERE.parents[2] / "model" / "classic" / "member").glob("*.py"))
REFINED = {"member.commit.answered", "member.join.refused", "member.sync.refused"}
"""Branches of the proved member for which the client has several rules each, one for each reaction."""


def rule_names_in(path: Path) -> Iterator[str]:
    """The strings in a module that look like the name of a rule."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            prefix, dot, rest = node.value.partition(".")
            if prefix in ("client", "member") and dot and rest and " " not in rest:
                yield node.value


def rules_reached_by(path: Path) -> Iterator[str]:
    """The rules that the tests of a module promise to reach; the decorator fails where one does not."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reaches":
            yield from (one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str))


def test_every_rule_that_a_handler_names_is_in_the_table_and_the_other_way_round() -> None:
    assert {name for path in HANDLERS for name in rule_names_in(path)} == set(MEMBER_RULES) | REFINED


def test_a_test_reaches_every_rule() -> None:
    reached = {rule for path in HERE.glob("test_*.py") for rule in rules_reached_by(path)}
    assert reached == set(MEMBER_RULES)


def test_every_requirement_of_a_member_has_a_rule_unless_it_is_about_settings_or_about_the_group() -> None:
    families = ("MEMBER", "HBT", "CALLBACK", "MCOMMIT", "WIRE")
    answered = {id for row in MEMBER_RULES.values() for id in row.requirements}
    open_ones = {id for id, one in CLIENT_CATALOGUE.items() if one.family in families} - answered
    assert open_ones == {"HBT-13", "CALLBACK-14", "MCOMMIT-21"}  # test_joining, test_swarm, test_swarm


@pytest.mark.parametrize("name", MEMBER_RULES)
def test_rows_answer_to_requirements_that_exist(name: str) -> None:
    row = MEMBER_RULES[name]
    assert row.name == name and row.guard and row.requirements
    assert set(row.requirements) <= set(CLIENT_CATALOGUE)
    assert len(set(row.requirements)) == len(row.requirements)
