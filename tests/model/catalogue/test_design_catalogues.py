"""The requirements and holes of designs: numbers, wording, references, and that each of the region is accounted for."""

import re
from importlib import import_module

import pytest

from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.catalogue.specification import Hole, Rule
from fencepost.model.push.specification import PUSH_CATALOGUE, PUSH_HOLES, PUSH_RULES
from fencepost.model.region.specification import REGION_CATALOGUE, REGION_HOLES, REGION_RULES

SOURCES = {"PUSH": "draft, section", "REGION": "page, section"}
"""How the sources of each family begin."""
DESIGNS = pytest.mark.parametrize(
    ("catalogue", "holes", "rules"),
    [(PUSH_CATALOGUE, PUSH_HOLES, PUSH_RULES), (REGION_CATALOGUE, REGION_HOLES, REGION_RULES)],
    ids=SOURCES,
)
EVERYTHING = [one for found in (PUSH_CATALOGUE, PUSH_HOLES, REGION_CATALOGUE, REGION_HOLES) for one in found.values()]
BESIDE_RULES = {"REGION-38": "settings.merge_wait_ms"}
"""Requirements of the region that no rule is about, each with the function of `model/region` that decides it."""


@pytest.mark.parametrize("one", EVERYTHING, ids=lambda one: one.id)
def test_wording(one: Requirement | Hole) -> None:
    assert one.sentence.endswith(".") and one.sentence[0].isupper()
    assert not re.search(r"\s\s|\brepl(y|ies)\b|\.\s", one.sentence)
    assert 4 < len(one.sentence.split()) < 45
    assert one.title and len(one.title) <= 51 and not one.title.endswith(".")
    assert one.source.startswith(SOURCES[one.id.partition("-")[0]])


@DESIGNS
def test_no_sentence_is_said_twice(catalogue: dict[str, Requirement], holes: object, rules: object) -> None:
    sentences = [one.sentence for one in catalogue.values()]
    assert len(set(sentences)) == len(sentences)


@DESIGNS
def test_holes_and_rules_name_requirements(
    catalogue: dict[str, Requirement], holes: dict[str, Hole], rules: dict[str, Rule]
) -> None:
    family = next(iter(catalogue)).partition("-")[0]
    assert list(holes) == [f"{family}-H{number:02}" for number in range(1, len(holes) + 1)]
    assert all(hole.requirements for hole in holes.values())
    named = {id for hole in holes.values() for id in hole.requirements}
    assert named | {id for rule in rules.values() for id in rule.requirements} <= catalogue.keys()


def test_every_requirement_of_the_region_has_a_rule_or_a_function() -> None:
    ruled = {id for rule in REGION_RULES.values() for id in rule.requirements}
    assert ruled | BESIDE_RULES.keys() == REGION_CATALOGUE.keys()
    assert not ruled & BESIDE_RULES.keys()
    for place in BESIDE_RULES.values():
        module, name = place.split(".")
        assert callable(getattr(import_module(f"fencepost.model.region.{module}"), name))
