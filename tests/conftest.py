"""Fixtures that more than one room uses: the real targets, each started at most once in a test run."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from fencepost.traces.pipeline.spark_session import spark_session
from tests.targets.running import RunningTarget, load_target

# The same examples every time, and no opinion on how quick the machine is.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


def _run_target(name: str, factory: pytest.TempPathFactory) -> Iterator[RunningTarget]:
    target = load_target(name, factory.mktemp(name))
    target.start()
    yield target
    target.kill()


@pytest.fixture(scope="session")
def kafka4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTarget]:
    """The newest Apache Kafka 4.x; mark the test `kafka4`."""
    yield from _run_target("kafka4", tmp_path_factory)


@pytest.fixture(scope="session")
def kafka3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTarget]:
    """The newest Apache Kafka 3.9.x; mark the test `kafka3`."""
    yield from _run_target("kafka3", tmp_path_factory)


@pytest.fixture(scope="session")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTarget]:
    """librdkafka's mock cluster; mark the test `mock`."""
    yield from _run_target("mock", tmp_path_factory)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark on this machine; it takes long to start."""
    # Small jobs: a Java that compiles little and collects simply is quicker.
    quick = {"spark.driver.memory": "800m", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    with spark_session("tests", "local[2]", quick | {"spark.sql.shuffle.partitions": "2"}) as running:
        yield running
