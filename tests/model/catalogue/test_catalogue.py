import re
from collections import Counter
from dataclasses import fields

import pytest

from fencepost.model.catalogue.requirement import (
    CAPABILITIES,
    Level,
    Requirement,
    UnknownRequirement,
    Verifiability,
    select_requirements,
)
from fencepost.model.classic.catalogue import CATALOGUE, PREREQUISITES

REQUIREMENTS = tuple(CATALOGUE.values())


def matching(pattern: str) -> tuple[Requirement, ...]:
    return select_requirements(REQUIREMENTS, (pattern,))


def test_the_order_of_the_families_is_that_of_reports() -> None:
    families = "FIND JOIN SYNC HB LEAVE COMMIT FETCH ADMIN STATIC TIMER GEN FAILOVER"
    assert list(dict.fromkeys(each.family for each in REQUIREMENTS)) == families.split()


def test_presumptions_go_in_no_circle() -> None:
    def reaches(start: str, goal: str) -> bool:
        return any(each == goal or reaches(each, goal) for each in PREREQUISITES.get(start, ()))

    assert [each for each in PREREQUISITES if reaches(each, each)] == []


def test_ids_are_keys() -> None:
    assert all(requirement.id == key for key, requirement in CATALOGUE.items())


def test_levels() -> None:
    levels = {level: [r.id for r in REQUIREMENTS if r.level is level] for level in Level}
    assert levels[Level.SHOULD] == ["FIND-09", "COMMIT-26", "COMMIT-30", "ADMIN-33", "TIMER-17", "TIMER-23"]
    assert levels[Level.MAY] == ["COMMIT-27", "STATIC-26", "FAILOVER-09"]


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.id)
def test_wording(requirement: Requirement) -> None:
    assert requirement.sentence.endswith(".")
    assert requirement.sentence[0].isupper() or requirement.sentence[0].isdigit()
    assert not re.search(r"\s\s|\bMUST\b|\bSHOULD\b|\bMAY\b|\.\s", requirement.sentence)
    assert 4 < len(requirement.sentence.split()) < 45
    assert requirement.title and len(requirement.title) <= 50 and not requirement.title.endswith(".")
    assert requirement.source
    assert "\n" not in "".join(str(getattr(requirement, field.name)) for field in fields(requirement))


def test_why_a_requirement_is_not_tested_reads_like_any_other_reason() -> None:
    """It stands in reports beside reasons that begin with a small letter and have no full stop."""
    reasons = [each.why for each in REQUIREMENTS if each.why]
    assert reasons and all(reason[0].islower() and not reason.endswith(".") for reason in reasons)


def test_a_permission_or_a_recommendation_reads_like_one() -> None:
    words = {Level.SHOULD: "should", Level.MAY: "may"}
    for requirement in REQUIREMENTS:
        if requirement.level in words:
            assert words[requirement.level] in requirement.sentence.split(), requirement.id


LAST_FAILOVER = max(requirement.id for requirement in REQUIREMENTS if requirement.family == "FAILOVER")


def test_no_sentence_is_said_twice() -> None:
    sentences = Counter(requirement.sentence for requirement in REQUIREMENTS)
    assert [sentence for sentence, times in sentences.items() if times > 1] == []


def test_titles_are_unique_within_a_family() -> None:
    titles = Counter((requirement.family, requirement.title) for requirement in REQUIREMENTS)
    assert [title for title, times in titles.items() if times > 1] == []


def test_every_capability_is_needed() -> None:
    assert {need for requirement in REQUIREMENTS for need in requirement.needs} == set(CAPABILITIES)


def test_a_permission_is_all_that_no_response_can_break() -> None:
    assert {r.level for r in REQUIREMENTS if r.testability is Verifiability.UNTESTABLE} == {Level.MAY}


def test_a_pattern_selects_in_catalogue_order() -> None:
    assert [requirement.id for requirement in matching("JOIN-29")] == ["JOIN-29"]
    assert [requirement.id for requirement in matching("HB-0[1-3]")] == ["HB-01", "HB-02", "HB-03"]
    assert matching("*") == REQUIREMENTS


@pytest.mark.parametrize(
    ("pattern", "near"),
    [("", "TIMER-27"), ("JOIN-56", "JOIN-55"), ("NOPE-*", LAST_FAILOVER), ("*-99", "HB-09")],
)
def test_a_pattern_that_fits_nothing_is_an_error_in_one_line(pattern: str, near: str) -> None:
    with pytest.raises(UnknownRequirement) as caught:
        matching(pattern)
    family, _ = near.split("-")
    assert str(caught.value) == (
        f"no requirement matches {pattern!r}; try an id like {near} or a pattern like '{family}-*'"
    )


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [("JOIN", "JOIN-*"), ("join-*", "JOIN-*"), ("JION-29", "JOIN-29"), ("hb-5", "HB-05"), ("TIMERS-2?", "TIMER-2?")],
)
def test_a_mistyped_pattern_is_guessed(pattern: str, meant: str) -> None:
    with pytest.raises(UnknownRequirement) as caught:
        matching(pattern)
    assert str(caught.value) == f"no requirement matches {pattern!r}; did you mean {meant!r}?"
