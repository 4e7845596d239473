"""The requirements and holes of the consistent region: numbers, wording, references, and that each is accounted for."""

import re
from importlib import import_module

import pytest

from fencepost.model.region.specification import REGION_CATALOGUE, REGION_HOLES, REGION_RULES

BESIDE_RULES = {"REGION-38": "settings.merge_wait_ms"}
"""Requirements that no rule is about, each with the function of `model/region` that decides it."""


def test_ids_of_holes_of_the_region_go_without_a_gap() -> None:
    assert list(REGION_HOLES) == [f"REGION-H{number:02}" for number in range(1, len(REGION_HOLES) + 1)]


@pytest.mark.parametrize("one", [*REGION_CATALOGUE.values(), *REGION_HOLES.values()], ids=lambda one: one.id)
def test_region_wording(one: object) -> None:
    sentence, title = str(getattr(one, "sentence", "")), str(getattr(one, "title", ""))
    assert sentence.endswith(".") and sentence[0].isupper()
    assert not re.search(r"\s\s|\brepl(y|ies)\b|\.\s", sentence)
    assert 4 < len(sentence.split()) < 45
    assert title and len(title) <= 51 and not title.endswith(".")
    assert str(getattr(one, "source", "")).startswith("page, section")


def test_no_region_sentence_is_said_twice() -> None:
    sentences = [one.sentence for one in REGION_CATALOGUE.values()]
    assert len(set(sentences)) == len(sentences)


def test_every_requirement_of_the_region_has_a_rule_or_a_function() -> None:
    ruled = {id for rule in REGION_RULES.values() for id in rule.requirements}
    assert ruled | BESIDE_RULES.keys() == REGION_CATALOGUE.keys()
    assert not ruled & BESIDE_RULES.keys()
    for place in BESIDE_RULES.values():
        module, name = place.split(".")
        assert callable(getattr(import_module(f"fencepost.model.region.{module}"), name))


def test_holes_of_the_region_name_requirements() -> None:
    assert all(hole.requirements for hole in REGION_HOLES.values())
    assert {id for hole in REGION_HOLES.values() for id in hole.requirements} <= REGION_CATALOGUE.keys()
