"""Releases of Apache Kafka by their API versions, and the requirements that hold since one of them."""

import re

import pytest

from fencepost.model.catalogue.requirement import Change
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.model.classic.catalogue.reference import COMPARED_APIS, HIGHEST_VERSIONS, latest_release

KAFKA_3_4 = dict(zip(COMPARED_APIS, ((0, highest) for highest in HIGHEST_VERSIONS["3.6.2"]), strict=True))
"""What Kafka 3.4.1 advertises: 3.2 to 3.6 all advertise the same."""


def test_a_release_is_known_by_its_versions() -> None:
    assert latest_release(KAFKA_3_4) == "3.6.2"
    assert all(
        latest_release({api: (0, highest) for api, highest in zip(COMPARED_APIS, known, strict=True)}) == release
        for release, known in HIGHEST_VERSIONS.items()
    )


@pytest.mark.parametrize("api", COMPARED_APIS)
def test_one_other_version_makes_another_release_or_none(api: str) -> None:
    lowest, highest = KAFKA_3_4[api]
    assert latest_release({**KAFKA_3_4, api: (lowest, highest + 1)}) != "3.6.2"


def test_a_target_without_one_of_the_apis_is_no_release() -> None:
    assert latest_release({api: found for api, found in KAFKA_3_4.items() if api != "DeleteGroups"}) == ""


def test_releases_are_compared_by_number() -> None:
    assert Change("3.10.0", "").is_after("3.9.2")
    assert Change("3.3.2", "").is_after("3.3.1")
    assert not Change("3.3.2", "").is_after("3.3.2")
    assert not Change("3.7.1", "").is_after("3.7.2")


def test_every_change_names_a_release_and_its_source() -> None:
    changes = [requirement.since for requirement in CATALOGUE.values() if requirement.since is not None]
    assert changes
    for change in changes:
        assert re.fullmatch(r"\d+\.\d+\.\d+", change.release)
        assert re.search(r"KAFKA-\d+|commit [0-9a-f]{11}", change.source)
