"""The client's requirements: complete, worded like the coordinator's, and apart from them."""

import re
from collections import Counter
from dataclasses import fields

import pytest

from fencepost.model.catalogue.classic import CATALOGUE
from fencepost.model.catalogue.classic.client import CLIENT_CATALOGUE, CLIENT_SUBJECT
from fencepost.model.catalogue.classic.client.constructors import CLIENT_CAPABILITIES
from fencepost.model.catalogue.requirement import Level, Requirement, Verifiability
from fencepost.model.classic.rules import RULES
from fencepost.model.classic.rules.specification import CLASSIC

FAMILY_SIZES = {
    "MEMBER": 39,
    "HBT": 17,
    "CALLBACK": 19,
    "MCOMMIT": 22,
    "ASSIGN": 8,
    "RANGE": 10,
    "RR": 7,
    "STICKY": 19,
    "COOP": 18,
    "POLL": 19,
    "PREFETCH": 11,
    "WIRE": 6,
}
REQUIREMENTS = tuple(CLIENT_CATALOGUE.values())


def test_every_family_is_complete_in_order_and_without_a_gap() -> None:
    expected = [f"{family}-{n:02}" for family, size in FAMILY_SIZES.items() for n in range(1, size + 1)]
    assert list(CLIENT_CATALOGUE) == expected
    assert len(CLIENT_CATALOGUE) == 195
    assert CLIENT_SUBJECT == "client"


def test_the_catalogue_of_the_coordinator_knows_nothing_of_it() -> None:
    assert CATALOGUE.keys().isdisjoint(CLIENT_CATALOGUE)
    assert {one.family for one in CATALOGUE.values()}.isdisjoint(FAMILY_SIZES)
    assert CLASSIC.requirements is CATALOGUE and len(CATALOGUE) == 308
    assert not any(name.startswith(("client.", "member.")) for name in RULES)


def test_levels() -> None:
    levels = Counter(requirement.level for requirement in REQUIREMENTS)
    assert levels == {Level.MUST: 137, Level.SHOULD: 49, Level.MAY: 9}


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


def test_needs_are_known_capabilities_and_every_capability_is_needed() -> None:
    assert {need for requirement in REQUIREMENTS for need in requirement.needs} == set(CLIENT_CAPABILITIES)


def test_testability_agrees_with_needs_and_reasons() -> None:
    for requirement in REQUIREMENTS:
        if requirement.testability is Verifiability.RESTART:
            assert "restart" in requirement.needs, requirement.id
        assert bool(requirement.why) == (requirement.testability is Verifiability.UNTESTABLE), requirement.id
    counts = Counter(requirement.testability for requirement in REQUIREMENTS)
    assert counts == {
        Verifiability.CHECKED: 163,
        Verifiability.INCIDENTAL: 19,
        Verifiability.RESTART: 1,
        Verifiability.UNTESTABLE: 12,
    }
