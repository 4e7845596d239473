"""The requirements and holes of the push coordinator: numbers, wording, references."""

import re

import pytest

from fencepost.model.push.specification import PUSH_CATALOGUE, PUSH_HOLES, PUSH_RULES


def test_ids_of_holes_go_without_a_gap() -> None:
    assert list(PUSH_HOLES) == [f"PUSH-H{number:02}" for number in range(1, len(PUSH_HOLES) + 1)]


@pytest.mark.parametrize("one", [*PUSH_CATALOGUE.values(), *PUSH_HOLES.values()], ids=lambda one: one.id)
def test_push_wording(one: object) -> None:
    sentence, title = str(getattr(one, "sentence", "")), str(getattr(one, "title", ""))
    assert sentence.endswith(".") and sentence[0].isupper()
    assert not re.search(r"\s\s|\brepl(y|ies)\b|\.\s", sentence)
    assert 4 < len(sentence.split()) < 45
    assert title and len(title) <= 50 and not title.endswith(".")
    assert str(getattr(one, "source", "")).startswith("draft, section")


def test_no_push_sentence_is_said_twice() -> None:
    sentences = [one.sentence for one in PUSH_CATALOGUE.values()]
    assert len(set(sentences)) == len(sentences)


def test_holes_and_rules_name_requirements() -> None:
    named = {id for hole in PUSH_HOLES.values() for id in hole.requirements}
    ruled = {id for rule in PUSH_RULES.values() for id in rule.requirements}
    assert named | ruled <= PUSH_CATALOGUE.keys()
    assert all(hole.requirements for hole in PUSH_HOLES.values())
