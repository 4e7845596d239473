"""Notes to failures of a target that is, by its API versions, an older Apache Kafka."""

from collections.abc import Mapping

from fencepost.model.catalogue.requirement import Requirement


def describe_older_kafka(requirements: Mapping[str, Requirement], release: str) -> dict[str, str]:
    """By id of each requirement that Apache Kafka of this release does not keep yet, a note that says so.

    There are none if `release` is "".
    """
    return {
        id: f"as Apache Kafka before {requirement.since.release} ({requirement.since.source})"
        for id, requirement in requirements.items()
        if requirement.since is not None and release and requirement.since.is_after(release)
    }
