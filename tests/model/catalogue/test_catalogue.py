"""The catalogues: worded alike, complete, and apart from each other; and the selection of requirements by pattern."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module

import pytest

from fencepost.model.catalogue.requirement import (
    CAPABILITIES,
    Level,
    Requirement,
    UnknownRequirement,
    Verifiability,
    select_requirements,
)
from fencepost.model.catalogue.specification import Hole, Rule
from fencepost.model.classic.catalogue import CATALOGUE, CLASSIC, PREREQUISITES, RULES
from fencepost.model.classic.catalogue.client import CLIENT_CAPABILITIES, CLIENT_CATALOGUE, CLIENT_SUBJECT
from fencepost.model.push.specification import PUSH_CATALOGUE, PUSH_HOLES, PUSH_RULES
from fencepost.model.region.specification import REGION_CATALOGUE, REGION_HOLES, REGION_RULES

CATALOGUES: Mapping[str, Mapping[str, Requirement]] = {
    "coordinator": CATALOGUE,
    "client": CLIENT_CATALOGUE,
    "push": PUSH_CATALOGUE,
    "region": REGION_CATALOGUE,
}
REQUIREMENTS = tuple(CATALOGUE.values())
EVERY_REQUIREMENT = [one for catalogue in CATALOGUES.values() for one in catalogue.values()]
HOLES = [*PUSH_HOLES.values(), *REGION_HOLES.values()]
LAST = {one.family: one.id for one in REQUIREMENTS}
"""The last id of each family of coordinators."""
DESIGNS = pytest.mark.parametrize(
    ("catalogue", "holes", "rules"),
    [(PUSH_CATALOGUE, PUSH_HOLES, PUSH_RULES), (REGION_CATALOGUE, REGION_HOLES, REGION_RULES)],
    ids=("push", "region"),
)
SOURCES = {"PUSH": "draft, section", "REGION": "page, section"}
"""How the sources of the requirements and holes of a design begin."""
BESIDE_RULES = {"REGION-38": "settings.merge_wait_ms"}
"""Requirements of the region that no rule is about, each with the function of `model/region` that decides it."""

# --- words


@pytest.mark.parametrize("one", [*EVERY_REQUIREMENT, *HOLES], ids=lambda one: one.id)
def test_wording(one: Requirement | Hole) -> None:
    assert one.sentence.endswith(".") and (one.sentence[0].isupper() or one.sentence[0].isdigit())
    assert not re.search(r"\s\s|\bMUST\b|\bSHOULD\b|\bMAY\b|\brepl(y|ies)\b|\.\s", one.sentence)
    assert 4 < len(one.sentence.split()) < 45
    assert one.title and len(one.title) <= 51 and not one.title.endswith(".")
    assert one.source.startswith(SOURCES.get(one.id.partition("-")[0], "")) and one.source
    assert "\n" not in "".join(str(getattr(one, field.name)) for field in fields(one))


def test_why_a_requirement_is_not_tested_reads_like_any_other_reason() -> None:
    """It stands in reports beside reasons that begin with a small letter and have no full stop."""
    reasons = [each.why for each in REQUIREMENTS if each.why]
    assert reasons and all(reason[0].islower() and not reason.endswith(".") for reason in reasons)


@pytest.mark.parametrize("catalogue", [CATALOGUE, CLIENT_CATALOGUE], ids=("coordinator", "client"))
def test_a_permission_or_a_recommendation_reads_like_one(catalogue: Mapping[str, Requirement]) -> None:
    words = {Level.SHOULD: "should", Level.MAY: "may"}
    for one in catalogue.values():
        assert one.level not in words or words[one.level] in one.sentence.split(), one.id
    others = [one for one in CLIENT_CATALOGUE.values() if one.level is not Level.SHOULD]
    assert [one.id for one in others if "should" in one.sentence.split()] == []


def test_no_sentence_is_said_twice() -> None:
    sentences = Counter(one.sentence for one in EVERY_REQUIREMENT)
    assert [sentence for sentence, times in sentences.items() if times > 1] == []


@pytest.mark.parametrize("catalogue", [CATALOGUE, CLIENT_CATALOGUE], ids=("coordinator", "client"))
def test_titles_are_unique_within_a_family(catalogue: Mapping[str, Requirement]) -> None:
    titles = Counter((one.family, one.title) for one in catalogue.values())
    assert [title for title, times in titles.items() if times > 1] == []


# --- what belongs together


@pytest.mark.parametrize(
    ("catalogue", "families"),
    [
        (CATALOGUE, "FIND JOIN SYNC HB LEAVE COMMIT FETCH ADMIN STATIC TIMER GEN FAILOVER"),
        (CLIENT_CATALOGUE, "MEMBER HBT CALLBACK MCOMMIT ASSIGN RANGE RR STICKY COOP POLL PREFETCH WIRE"),
    ],
    ids=("coordinator", "client"),
)
def test_the_order_of_the_families_is_that_of_reports(catalogue: Mapping[str, Requirement], families: str) -> None:
    assert list(dict.fromkeys(each.family for each in catalogue.values())) == families.split()


def test_ids_are_keys() -> None:
    assert all(one.id == key for catalogue in CATALOGUES.values() for key, one in catalogue.items())


def test_the_catalogue_of_the_coordinator_knows_nothing_of_clients() -> None:
    assert CATALOGUE.keys().isdisjoint(CLIENT_CATALOGUE)
    assert {one.family for one in REQUIREMENTS}.isdisjoint(one.family for one in CLIENT_CATALOGUE.values())
    assert CLASSIC.requirements is CATALOGUE and CLIENT_SUBJECT == "client"
    assert not any(name.startswith(("client.", "member.")) for name in RULES)


def test_presumptions_go_in_no_circle() -> None:
    def reaches(start: str, goal: str) -> bool:
        return any(each == goal or reaches(each, goal) for each in PREREQUISITES.get(start, ()))

    assert [each for each in PREREQUISITES if reaches(each, each)] == []


@pytest.mark.parametrize(
    ("catalogue", "capabilities"), [(CATALOGUE, CAPABILITIES), (CLIENT_CATALOGUE, CLIENT_CAPABILITIES)]
)
def test_every_capability_is_needed(catalogue: Mapping[str, Requirement], capabilities: Mapping[str, str]) -> None:
    assert {need for one in catalogue.values() for need in one.needs} == set(capabilities)


def test_a_permission_is_all_that_no_response_can_break() -> None:
    assert {r.level for r in REQUIREMENTS if r.testability is Verifiability.UNTESTABLE} == {Level.MAY}


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


# --- patterns


def matching(pattern: str) -> tuple[Requirement, ...]:
    return select_requirements(REQUIREMENTS, (pattern,))


def test_a_pattern_selects_in_catalogue_order() -> None:
    assert [requirement.id for requirement in matching("JOIN-29")] == ["JOIN-29"]
    assert [requirement.id for requirement in matching("HB-0[1-3]")] == ["HB-01", "HB-02", "HB-03"]
    assert matching("*") == REQUIREMENTS


@pytest.mark.parametrize(
    ("pattern", "near"),
    [("", max(CATALOGUE)), ("JOIN-290", "JOIN-29"), ("NOPE-*", LAST["FAILOVER"]), ("*-99", "HB-09")],
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
