"""The client's requirements: complete, worded like the coordinator's, and apart from them."""

import re
from collections import Counter
from dataclasses import fields

import pytest

from fencepost.model.catalogue.requirement import Level, Requirement
from fencepost.model.classic.catalogue import CATALOGUE, CLASSIC, RULES
from fencepost.model.classic.catalogue.client import CLIENT_CAPABILITIES, CLIENT_CATALOGUE, CLIENT_SUBJECT

REQUIREMENTS = tuple(CLIENT_CATALOGUE.values())


def test_the_order_of_the_families_is_that_of_reports() -> None:
    families = "MEMBER HBT CALLBACK MCOMMIT ASSIGN RANGE RR STICKY COOP POLL PREFETCH WIRE"
    assert list(dict.fromkeys(each.family for each in REQUIREMENTS)) == families.split()
    assert CLIENT_SUBJECT == "client"


def test_the_catalogue_of_the_coordinator_knows_nothing_of_it() -> None:
    assert CATALOGUE.keys().isdisjoint(CLIENT_CATALOGUE)
    assert {one.family for one in CATALOGUE.values()}.isdisjoint(one.family for one in REQUIREMENTS)
    assert CLASSIC.requirements is CATALOGUE
    assert not any(name.startswith(("client.", "member.")) for name in RULES)


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.id)
def test_wording(requirement: Requirement) -> None:
    assert requirement.sentence.endswith(".")
    assert requirement.sentence[0].isupper()
    assert not re.search(r"\s\s|\bMUST\b|\bSHOULD\b|\bMAY\b|\.\s", requirement.sentence)
    assert 4 < len(requirement.sentence.split()) < 45
    assert requirement.title and len(requirement.title) <= 50 and not requirement.title.endswith(".")
    assert requirement.source
    assert "\n" not in "".join(str(getattr(requirement, field.name)) for field in fields(requirement))


def test_a_permission_or_a_recommendation_reads_like_one() -> None:
    words = {Level.SHOULD: "should", Level.MAY: "may"}
    for requirement in REQUIREMENTS:
        for level, word in words.items():
            if requirement.level is level:
                assert word in requirement.sentence.split(), requirement.id
        assert requirement.level is Level.SHOULD or "should" not in requirement.sentence.split(), requirement.id


def test_no_sentence_is_said_twice_and_titles_are_unique_within_a_family() -> None:
    sentences = Counter(requirement.sentence for requirement in (*REQUIREMENTS, *CATALOGUE.values()))
    titles = Counter((requirement.family, requirement.title) for requirement in REQUIREMENTS)
    assert [one for one, times in (sentences + Counter(map(str, titles.elements()))).items() if times > 1] == []


def test_every_capability_is_needed() -> None:
    assert {need for requirement in REQUIREMENTS for need in requirement.needs} == set(CLIENT_CAPABILITIES)
